"""Videos that went well, for the commands that compare others with them."""

import sys
from typing import TYPE_CHECKING

from cycleback.cli.inputs import PRETRAINED, check_one_action
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def check_comparable(good: "EmbeddingSet", videos: "EmbeddingSet") -> None:
    """Refuse good takes of another encoder or of another action than the videos."""
    from cycleback.embeddings import check_same_encoder

    check_same_encoder({"the good takes": good.encoder, "the videos": videos.encoder})
    check_one_action(good, videos)


def note_if_trained_on(good: "EmbeddingSet", run: str) -> None:
    """Say on stderr when the run learned from these takes: they then look more alike than new ones do."""
    from cycleback.runs import VIDEOS_FILE, find_run, run_split

    if run == PRETRAINED or not (find_run(run) / VIDEOS_FILE).is_file():
        return
    same = len(set(good.names) & set(run_split(run)["train"]))
    if same:
        print(
            f"note: {same} good takes are named like videos {run} was trained on; if so, expect "
            "more false alarms than stated. Takes it has not seen make a truer threshold.",
            file=sys.stderr,
        )


def names_not_among(good: "EmbeddingSet", videos: "EmbeddingSet") -> list[str]:
    """Names of the videos that are not themselves among the good takes, where they would match themselves."""
    known = {path.resolve() for path in map(good.path, good.names) if path is not None}
    paths = {name: videos.path(name) for name in videos}
    names = [name for name, path in paths.items() if path is None or path.resolve() not in known]
    if not names:
        raise UserError(f"all {len(videos)} videos are among the good takes themselves: give other videos")
    return names
