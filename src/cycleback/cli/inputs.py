"""What most commands begin with: embeddings of the videos the user names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.progress import counter, progress_bars
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def embedded(
    videos: Sequence[str], *, run: str = "pretrained", embeddings: Path | None = None
) -> "EmbeddingSet":
    """Embeddings of video files or of one folder; or those of a saved set, all or the named ones.

    Args:
        videos: paths of videos, one folder, or names in the saved set.
        run: run folder, or "pretrained".
        embeddings: a saved embedding set, which is used instead of `run`.
    """
    from cycleback.embeddings import EmbeddingSet
    from cycleback.runs import embed_videos

    if embeddings is not None:
        found = EmbeddingSet.load(embeddings)
        return found.subset(list(dict.fromkeys(videos))) if videos else found
    if not videos:
        raise UserError(
            "no videos given: name video files or a folder, or an embedding set with --embeddings"
        )
    given = Path(videos[0]) if len(videos) == 1 else [Path(video) for video in videos]
    with progress_bars() as bars:
        return embed_videos(run, given, progress=counter(bars, "embedding"))
