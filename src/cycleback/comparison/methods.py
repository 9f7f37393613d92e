"""The rows of a comparison: what each word of `--methods` trains, or what it is held against."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cycleback.errors import ConfigError
from cycleback.recipe import LOSSES, Recipe, load_recipe

Role = Literal["trained", "imagenet", "random", "time"]

KINDS = {"tcc-classification": "classification", "tcc-mse": "mse"}
BASELINES: dict[str, Role] = {"imagenet": "imagenet", "random": "random", "time": "time"}
DEFAULT = ("tcc", "tcn", "sal", "tcc+tcn", "supervised")
WORDS = {
    "tcc": "TCC",
    "tcc-classification": "TCC (classification)",
    "tcc-mse": "TCC (squared error)",
    "stochastic_tcc": "stochastic TCC",
    "tcn": "TCN",
    "sal": "SaL",
    "supervised": "supervised",
    "imagenet": "frozen base",
    "random": "random encoder",
    "time": "time only",
}


@dataclass(frozen=True)
class Method:
    """One row.

    Attributes:
        name: as typed: "tcc+tcn", "tcc-mse", "imagenet".
        role: "trained", or which baseline it is.
        losses: names of its losses, each of weight 1; empty for a baseline.
        tcc_kind: the variant of the TCC loss where it is not the recipe's own.
    """

    name: str
    role: Role
    losses: tuple[str, ...] = ()
    tcc_kind: str | None = None

    @property
    def is_trained(self) -> bool:
        """Whether the row has to be learned."""
        return self.role == "trained"

    @property
    def needs_labels(self) -> bool:
        """Whether it learns from key events."""
        return "supervised" in self.losses

    @property
    def title(self) -> str:
        """The name in words."""
        return " + ".join(WORDS[part] for part in self.name.split("+"))


def parse_methods(names: Sequence[str]) -> list[Method]:
    """The methods by these names, each once, and after them the three baselines, asked for or not."""
    wanted = dict.fromkeys(name.strip() for name in names)
    wanted.pop("", None)
    methods = [_parse(name) for name in wanted if name not in BASELINES]
    return [*methods, *(Method(name, role) for name, role in BASELINES.items())]


def _parse(name: str) -> Method:
    parts = name.split("+")
    for part in parts:
        if part not in LOSSES and part not in KINDS:
            raise ConfigError(f"no method {part!r}.{_guess(part)}")
    losses = tuple("tcc" if part in KINDS else part for part in parts)
    if len(set(losses)) < len(losses):
        raise ConfigError(f"method {name!r} names one loss twice. Name each once, as in tcc+tcn.")
    kinds = [KINDS[part] for part in parts if part in KINDS]
    return Method(name, "trained", losses, kinds[0] if kinds else None)


def _guess(name: str) -> str:
    known = [*LOSSES, *KINDS, *BASELINES]
    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(known)}; join losses with '+'."


def method_recipe(method: Method, *, recipe: str, overrides: Sequence[str], seed: int) -> Recipe:
    """The recipe all rows share, with the losses of this one."""
    for override in overrides:
        if override.startswith(("loss.weights", "run.seed")):
            way = "--methods" if override.startswith("loss") else "--seed"
            raise ConfigError(f"{override.split('=')[0]} is set by {way}: every row has its own losses.")
    own = [f"run.seed={seed}"]
    if method.losses:
        own.append(f"loss.weights={{ {', '.join(f'{loss} = 1.0' for loss in method.losses)} }}")
    if method.tcc_kind:
        own.append(f"loss.tcc.kind={method.tcc_kind}")
    return load_recipe(recipe, own, shared=overrides)
