"""The methods and baselines that results are reported for: the names of the rows of every table.

A trained method is a sum of losses joined by "+", such as `tcc+tcn`. Three variants of TCC have names of
their own. The baselines learn nothing; a comparison always has all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cycleback.errors import ConfigError, did_you_mean
from cycleback.evaluation import TIME_ONLY
from cycleback.recipe import Recipe, load_recipe

UNTRAINED, FROZEN, UNTRAINED_STREAMS = "untrained", "frozen", "streams"
BASELINES = (TIME_ONLY, UNTRAINED, FROZEN, UNTRAINED_STREAMS)
TITLES = {UNTRAINED_STREAMS: "untrained streams"}
KEPT_UNTRAINED = "kept the untrained streams"


class Part(NamedTuple):
    """One word of a trained method: the loss it adds, its title, its weight and the kind of TCC loss."""

    loss: str
    title: str
    weight: float = 1.0
    tcc_kind: str = ""


PARTS = {
    "match": Part("match", "match"),
    "tcc": Part("tcc", "TCC"),
    "tcc-classification": Part("tcc", "TCC (classification)", tcc_kind="classification"),
    "tcc-mse": Part("tcc", "TCC (squared error)", tcc_kind="mse"),
    "tcc-stochastic": Part("stochastic_tcc", "TCC (stochastic)"),
    "tcn": Part("tcn", "TCN"),
    "lav": Part("lav", "LAV"),
    "idm": Part("idm", "C-IDM"),
    "gta": Part("gta", "GTA"),
    "vava": Part("vava", "VAVA"),
    "vaot": Part("vaot", "VAOT"),
    "scl": Part("scl", "SCL"),
    "next-frame": Part("next_frame", "next frame"),
    "reversal": Part("reversal", "reversal"),
    "order": Part("order", "order", weight=0.3),
    "sal": Part("sal", "SaL"),
    "supervised": Part("supervised", "supervised"),
}
DEFAULT = ("tcc", "tcn", "sal", "tcc+tcn", "supervised")
RENAMED = {
    "time": TIME_ONLY,
    "random": UNTRAINED,
    "imagenet": FROZEN,
    "stochastic_tcc": "tcc-stochastic",
}


@dataclass(frozen=True)
class Method:
    """One row of a table of results."""

    name: str  # such as "tcc+tcn", "tcc-mse" or "frozen"
    weights: Mapping[str, float] = field(default_factory=dict)  # of each loss; empty for a baseline
    tcc_kind: str = ""  # variant of the TCC loss, where it is not the recipe's own

    @property
    def is_trained(self) -> bool:
        """Whether the row needs training."""
        return bool(self.weights)

    @property
    def needs_labels(self) -> bool:
        """Whether it learns from key events."""
        return "supervised" in self.weights

    @property
    def title(self) -> str:
        """The name for people: losses in their usual spelling."""
        if self.name in TITLES:
            return TITLES[self.name]
        return " + ".join(PARTS[part].title if part in PARTS else part for part in self.name.split("+"))

    @property
    def overrides(self) -> list[str]:
        """The settings of a recipe that train this method; none for a baseline."""
        weights = ", ".join(f"{loss} = {weight}" for loss, weight in self.weights.items())
        settings = [f"loss.weights={{ {weights} }}"] if weights else []
        return [*settings, f"loss.tcc.kind={self.tcc_kind}"] if self.tcc_kind else settings


def parse_method(name: str) -> Method:
    """Return the method or baseline of this name."""
    if name in BASELINES:
        return Method(name)
    words = name.split("+")
    for word in words:
        if word in RENAMED:
            raise ConfigError(f"method {word!r} is called {RENAMED[word]!r}")
        if word not in PARTS:
            raise ConfigError(f"no method {word!r}. {did_you_mean(word, [*PARTS, *BASELINES])}")
    parts = [PARTS[word] for word in words]
    weights = {part.loss: part.weight for part in parts}
    if len(weights) < len(parts):
        raise ConfigError(f"method {name!r} names one loss twice. Name each once, as in tcc+tcn.")
    return Method(name, weights, "".join(part.tcc_kind for part in parts))


def parse_methods(names: Sequence[str]) -> list[Method]:
    """Return the trained methods of these names, each once, followed by all baselines."""
    wanted = dict.fromkeys(name.strip() for name in names if name.strip())
    methods = [parse_method(name) for name in wanted]
    return [*(method for method in methods if method.is_trained), *map(Method, BASELINES)]


def method_recipe(method: Method, *, recipe: str, overrides: Sequence[str], seed: int) -> Recipe:
    """Return the recipe that all rows share, with the losses of this method."""
    for override in overrides:
        if override.startswith(("loss.weights", "run.seed")):
            option = "--methods" if override.startswith("loss") else "--seed"
            raise ConfigError(f"{override.split('=')[0]} is set by {option}: every row has its own losses.")
    own = [f"run.seed={seed}", "run.restart=false", *method.overrides]  # a restart may add another loss
    return load_recipe(recipe, own, shared=overrides)
