"""Trained models that come with the package, by name: what `--run golf-lite` means.

A model is a run folder without what only training needs: recipe, weights, the names of its videos, and a card
that says what it was trained on, how good it is and what it may be used for.
"""

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from cycleback.errors import CheckpointError
from cycleback.recipe import RECIPE_FILE

PRETRAINED = "pretrained"
"""The name of the encoder that needs no training: ImageNet features, averaged over parts of the picture."""
CARD_FILE = "README.md"

_PACKAGE = Path(str(files("cycleback")))
FOLDERS = (_PACKAGE / "published", _PACKAGE.parents[1] / "models")
"""Where the models are: in an installed package, and at the root of a checkout."""


def published_models() -> dict[str, Path]:
    """The models that come with the package: name -> folder."""
    recipes = [path for folder in reversed(FOLDERS) for path in sorted(folder.glob(f"*/{RECIPE_FILE}"))]
    return {path.parent.name: path.parent for path in recipes}


def find_run(source: Path | str) -> Path:
    """The run folder at a path; where there is none, that of the model of this name.

    A path that is there but is no run is returned as it is: whoever opens it says what is missing.
    """
    path, models = Path(source), published_models()
    if (path / RECIPE_FILE).is_file():
        return path
    if str(source) in models:
        return models[str(source)]
    if path.exists():
        return path
    if str(source) == PRETRAINED:
        raise CheckpointError(f"{PRETRAINED!r} is no run, it learned from no videos: give a run folder")
    raise CheckpointError(_unknown(str(source), [*models, PRETRAINED]))


def _unknown(source: str, known: list[str]) -> str:
    close = get_close_matches(source, known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    names = f"By name there are: {', '.join(known)}."
    advice = f"Train one: cycleback train VIDEOS -o {source}"
    return f"no run in {source} (looked for {RECIPE_FILE}).{guess} {names} {advice}"
