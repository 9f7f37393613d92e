"""Recipes on disk: recipes of the package by name, recipes of the user by path.

A recipe may start with `extends = "NAME"`; then it holds only the settings that differ from that recipe.
"""

import copy
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from cycleback.config import apply_override, build, flatten, merge, read_toml, to_toml
from cycleback.errors import ConfigError, did_you_mean
from cycleback.models import BASES, EMBEDDERS
from cycleback.recipe.sections import LossSettings, Recipe, default_settings, unused_settings

RECIPE_FILE = "recipe.toml"
FOLDER = Path(str(files("cycleback"))) / "recipes"
RENAMED = {"run.record": "run.cuda_graph"}

WEIGHTS = {
    "tcc": "tcc = 1.0",
    "tcn": "tcn = 1.0",
    "sal": "sal = 1.0",
    "supervised": "supervised = 1.0",
    "stochastic-tcc": "stochastic_tcc = 1.0",
    "tcc-sal": "tcc = 0.5, sal = 0.5",
    "tcc-sal-25": "tcc = 0.25, sal = 0.75",  # the paper searched over 25, 50 and 75 % (section 5.1)
    "tcc-sal-75": "tcc = 0.75, sal = 0.25",
    "tcc-tcn": "tcc = 0.5, tcn = 0.5",
    "tcc-tcn-25": "tcc = 0.25, tcn = 0.75",
    "tcc-tcn-75": "tcc = 0.75, tcn = 0.25",
    "tcc-sal-tcn": "tcc = 0.33, sal = 0.33, tcn = 0.34",
}
METHODS = {
    "tcc": ("loss.weights={ tcc = 1.0 }",),
    "tcn": ("loss.weights={ tcn = 1.0 }",),
    "sal": ("loss.weights={ sal = 1.0 }",),
    "lav": ("loss.weights={ lav = 1.0 }", "loss.lav.window=5"),
    "tc3i": (
        *("loss.weights={ tcc = 1.0, idm = 0.1 }", "loss.idm.window=5"),
        *("loss.tcc.normalize=true", "loss.tcc.scaling=none"),
    ),
    "gta": ("loss.weights={ gta = 1.0 }",),
    "ae2": ("loss.weights={ gta = 1.0, reversal = 1.0 }", "loss.gta.cycle_weight=0"),
    "vava": ("loss.weights={ vava = 1.0 }", "loss.vava.diagonal_share=0.1", "loss.vava.window=5"),
    "scl": ("loss.weights={ scl = 1.0 }",),
    "vaot": ("loss.weights={ vaot = 1.0 }", "loss.vaot.time_weight=0"),
}  # one method of the field each, on the streams of the default recipe
SINGLE = ("tcc", "tcn", "sal", "supervised")
COMBINED = ("tcc-sal", "tcc-sal-25", "tcc-sal-75", "tcc-tcn", "tcc-tcn-25", "tcc-tcn-75")
LOSS_ROWS = {
    "pouring-finetuned": (*SINGLE, *COMBINED),
    "pouring-scratch": SINGLE,
    "penn-action-finetuned": (*SINGLE, *COMBINED),
    "penn-action-scratch": SINGLE,
    "reference": (*SINGLE, "stochastic-tcc", "tcc-sal-tcn"),
}
DERIVED: dict[str, tuple[str, tuple[str, ...]]] = {
    # The second context frame is 9 frames back at 30 fps, or 15 at 20 fps (appendix of the paper).
    "pouring-finetuned": ("paper", ("encoder.conv.context_stride=9",)),
    "pouring-scratch": ("paper", ("encoder.base=vggm", "encoder.conv.context_stride=9")),
    "penn-action-finetuned": ("paper", ("encoder.conv.context_stride=15",)),
    "penn-action-scratch": ("paper", ("encoder.base=vggm", "encoder.conv.context_stride=15")),
    **{
        f"{parent}-{row}": (parent, (f"loss.weights={{ {WEIGHTS[row]} }}",))
        for parent, rows in LOSS_ROWS.items()
        for row in rows
    },
    **{name: ("", overrides) for name, overrides in METHODS.items()},
    **{  # the ablation of section 5.2
        f"pouring-ablation-{kind}": ("pouring-finetuned-tcc", (f"loss.tcc.kind={kind}",))
        for kind in ("mse", "classification", "regression")
    },
}
"""Recipes that differ from another in a few settings: name -> (parent recipe or "", overrides)."""


def recipe_names() -> list[str]:
    """List the recipes of the package."""
    return sorted([*DERIVED, *(path.stem for path in FOLDER.glob("*.toml"))])


def load_recipe(
    source: Path | str | None = None, overrides: Sequence[str] = (), *, shared: Sequence[str] = ()
) -> Recipe:
    """Resolve a recipe: defaults < `extends` < recipe < overrides.

    A setting without effect is refused if the user's file or an override gives it. It is dropped if it comes
    from a recipe of the package, from an extended recipe or from `shared`, or if an override disabled it.

    Args:
        source: a name of `recipe_names()`, the path of a TOML file, or None for the defaults.
        overrides: settings as `section.key=value`, such as `optimizer.num_updates=2000`; values are TOML.
        shared: overrides for several recipes at once, of which some may have no use for them.
    """
    own, values = _read(source) if source is not None else ({}, {})
    leftovers = unused_settings(lambda key: _value_of(values, key))  # before overrides change it
    requested = {key for key, _ in flatten(own) if key in leftovers}
    requested |= {key for text in overrides for key, _ in flatten(_as_table(text))}
    loss = values.setdefault("loss", {})
    if isinstance(loss, dict):
        loss.setdefault("weights", dict(LossSettings().weights))  # so that an override can change one of them
    for override in (*shared, *overrides):
        apply_override(values, override)
    name = "overrides" if source is None else str(source)
    _refuse_old_keys(values, name)
    for key, reason in unused_settings(lambda key: _value_of(values, key)).items():
        if key in requested:
            raise ConfigError(f"{name}: {reason}")
        _remove(values, key)
    return build(Recipe, values, source=name)


def load_saved_recipe(path: Path) -> Recipe:
    """Load the recipe that a run was trained with.

    A recipe without `encoder.streams` is from a version that saw only appearance, by the paper's embedder.
    """
    encoder = read_toml(path).get("encoder", {})
    if not isinstance(encoder, dict) or "streams" in encoder:
        return load_recipe(path)
    embedder = encoder.get("embedder", "conv")
    return load_recipe(path, shared=['encoder.streams=["appearance"]', f"encoder.embedder={embedder}"])


def require_used(overrides: Iterable[str], recipes: Iterable[Recipe]) -> None:
    """Refuse an override that has no effect in any of the recipes that share it."""
    unused = [recipe.unused() for recipe in recipes]
    for override in overrides:
        for key, _ in flatten(_as_table(override)):
            if unused and all(key in reasons for reasons in unused):
                raise ConfigError(f"overrides: {unused[0][key]}")


def recipe_toml(recipe: Recipe) -> str:
    """Write the resolved recipe as text for the run folder: every setting that has an effect."""
    return to_toml(recipe, without=recipe.unused())


def parse_toml(text: str) -> dict[str, Any]:
    """Return the settings in the text of a recipe, such as `optimizer.num_updates`, by their dotted keys."""
    return dict(flatten(tomllib.loads(text)))


def _read(source: Path | str, seen: tuple[Path, ...] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the settings in the user's own file, and all settings with those of the recipes it extends."""
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        return {}, _read_packaged(str(source))
    if path.resolve() in [each.resolve() for each in seen]:
        raise ConfigError(f"{path} extends itself: {' -> '.join(item.name for item in (*seen, path))}")
    own = read_toml(path)
    parent = own.pop("extends", None)
    if parent is None:
        return copy.deepcopy(own), own
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends must be the name or the file of a recipe, got {parent!r}")
    inherited = _read(path.parent / parent if parent.endswith(".toml") else parent, (*seen, path))[1]
    return own, _extend(inherited, own)


def _read_packaged(name: str) -> dict[str, Any]:
    if name in DERIVED:
        parent, overrides = DERIVED[name]
        values = _read_packaged(parent) if parent else {}
        for override in overrides:
            apply_override(values, override)
        return values
    path = FOLDER / f"{name}.toml"
    if not path.is_file():
        guess = did_you_mean(name, recipe_names())
        raise ConfigError(f"no recipe {name!r}. {guess} The name of your own file must end in .toml.")
    own = read_toml(path)
    parent = own.pop("extends", None)
    return own if parent is None else _extend(_read_packaged(parent), own)


def _extend(inherited: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    loss = own.get("loss")
    weights = loss.get("weights") if isinstance(loss, Mapping) else None
    if isinstance(weights, Mapping) and isinstance(inherited.get("loss"), dict):
        inherited["loss"].pop("weights", None)  # losses replace those of the parent; they are not added
    merge(inherited, own)
    return inherited


def _as_table(override: str) -> dict[str, Any]:
    table: dict[str, Any] = {}
    apply_override(table, override)
    return table


def _value_of(values: Mapping[str, Any], key: str) -> Any:
    """Return a value of nested tables by its dotted key, or the default of that setting."""
    inner: Any = values
    for name in key.split("."):
        if not isinstance(inner, Mapping) or name not in inner:
            return default_settings()[key]
        inner = inner[name]
    return inner


def _remove(values: dict[str, Any], key: str) -> None:
    *sections, name = key.split(".")
    inner: Any = values
    for section in sections:
        inner = inner.get(section, {}) if isinstance(inner, dict) else {}
    if isinstance(inner, dict):
        inner.pop(name, None)


def _refuse_old_keys(values: Mapping[str, Any], source: str) -> None:
    """Say the new names of all settings that earlier versions had under other names."""
    known, renames = default_settings(), []
    parts = [str(_value_of(values, key)) for key in ("encoder.base", "encoder.embedder")]
    for key, _ in flatten(values):
        section, _, name = key.rpartition(".")
        moved = [f"{section}.{part}.{name}" for part in (*parts, *BASES, *EMBEDDERS)]
        moved = [RENAMED.get(key, ""), *(moved if section == "encoder" and key not in known else [])]
        if new := next((item for item in moved if item in known), None):
            renames.append(f"{key} is now {new}")
    if renames:
        raise ConfigError(f"{source}: {', '.join(renames)}")
