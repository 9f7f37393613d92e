"""Good takes for a command: a folder of videos, or a saved embedding set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.inputs import embedded
from cycleback.errors import EmbeddingError, UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def good_takes(good: Path, takes: "EmbeddingSet", *, run: str) -> "EmbeddingSet":
    """Embeddings of the good takes, by the encoder that made `takes`."""
    found = embedded_or_saved(good, run=run)
    if None not in (found.encoder, takes.encoder) and found.encoder != takes.encoder:
        raise EmbeddingError(
            f"{good} was embedded by another encoder ({found.encoder}, the videos by {takes.encoder}). "
            "Give the --run it was made with, or its folder of videos."
        )
    return found


def embedded_or_saved(takes: Path, *, run: str) -> "EmbeddingSet":
    """A saved set as it is; videos embedded now."""
    if not takes.exists():
        raise UserError(f"{takes} does not exist: give a folder of videos or an embedding set")
    if (takes / "index.json").is_file():
        return embedded([], embeddings=takes)
    return embedded([str(takes)], run=run)


def note_if_trained_on(good: "EmbeddingSet", run: str) -> None:
    """Say on stderr when the run learned from these takes: they then look more alike than new ones do."""
    from cycleback.runs import PRETRAINED, run_split

    if run == PRETRAINED or not (Path(run) / "videos.json").is_file():
        return
    same = len(set(good.names) & set(run_split(run)["train"]))
    if same:
        print(
            f"note: {same} good takes are named like videos {run} was trained on; if so, expect "
            "two to three times the false alarms stated. Takes it has not seen make a truer threshold.",
            file=sys.stderr,
        )


def new_takes(takes: "EmbeddingSet", good: "EmbeddingSet") -> list[str]:
    """Names of the takes that are not themselves among the good ones, which would match themselves."""
    known = {path.resolve() for path in map(good.path, good.names) if path is not None}
    paths = {name: takes.path(name) for name in takes.names}
    names = [name for name, path in paths.items() if path is None or path.resolve() not in known]
    if not names:
        raise UserError(f"all {len(takes)} videos are among the good takes themselves: give other videos")
    return names
