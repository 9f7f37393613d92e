"""Recipes on disk: the ones that come with the package, by name, and the user's own, by path.

A recipe may begin with `extends = "NAME"`: what it does not say is then as in that recipe.
"""

import difflib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from cycleback.config import apply_override, build, merge, read_toml, to_toml
from cycleback.errors import ConfigError
from cycleback.recipe.sections import LossSection, Recipe

RECIPE_FILE = "recipe.toml"
FOLDER = Path(str(files("cycleback"))) / "recipes"


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(source: Path | str | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Defaults < recipe < overrides such as `optimizer.num_updates=2000`.

    Args:
        source: a name of `recipe_names()`, the path of a TOML file, or None for the defaults.
        overrides: `section.key=value`, the value in TOML.
    """
    values = _read(find_recipe(source)) if source is not None else {}
    loss = values.setdefault("loss", {})
    if isinstance(loss, dict):
        loss.setdefault("weights", dict(LossSection().weights))  # so that an override can change one of them
    for override in overrides:
        apply_override(values, override)
    return build(Recipe, values, source=str(source) if source is not None else "overrides")


def find_recipe(source: Path | str) -> Path:
    """The file of a recipe given by name or by path."""
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        return path
    named = FOLDER / f"{source}.toml"
    if named.is_file():
        return named
    close = difflib.get_close_matches(str(source), recipe_names(), n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(recipe_names())}."
    raise ConfigError(f"no recipe {str(source)!r}. {hint} A file of your own must end in .toml.")


def recipe_toml(recipe: Recipe) -> str:
    """The resolved recipe as text for the run folder."""
    return to_toml(recipe)


def _read(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The file over the recipes it extends."""
    if path in seen:
        raise ConfigError(f"{path} extends itself: {' -> '.join(item.name for item in (*seen, path))}")
    values = read_toml(path)
    parent = values.pop("extends", None)
    if parent is None:
        return values
    merged = _read(find_recipe(_beside(path, parent)), (*seen, path))
    weights = values.get("loss", {}).get("weights")
    if isinstance(weights, Mapping) and isinstance(merged.get("loss"), dict):
        merged["loss"].pop("weights", None)  # another loss replaces the parent's, it is not added to it
    merge(merged, values)
    return merged


def _beside(path: Path, parent: str) -> Path | str:
    """A parent named by a path is looked for beside the file that names it."""
    return path.parent / parent if parent.endswith(".toml") else parent
