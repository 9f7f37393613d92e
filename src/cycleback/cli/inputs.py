"""What most commands begin with: embeddings of the videos the user names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.bars import counter, progress_bars
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.models import Encoder

PRETRAINED = "pretrained"


def embedded(
    videos: Sequence[str] | None, *, run: str = PRETRAINED, embeddings: Path | None = None
) -> "EmbeddingSet":
    """Embeddings of video files or of one folder; or those of a saved set, all or the named ones.

    Args:
        videos: paths of videos, one folder, or names in the saved set.
        run: run folder, or the name of a model, or "pretrained".
        embeddings: a saved embedding set, used instead of `run`; where both are named, they must fit.
    """
    from cycleback.embeddings import EmbeddingSet
    from cycleback.runs import embed_videos

    if embeddings is not None:
        found = EmbeddingSet.load(embeddings)
        if run != PRETRAINED:
            encoder_of(run, made={str(embeddings): found.encoder})
        return found.subset(list(dict.fromkeys(videos))) if videos else found
    given = given_videos(videos)
    with progress_bars() as bars:
        return embed_videos(run, given, progress=counter(bars, "embedding"))


def embedded_or_saved(source: Path, *, run: str) -> "EmbeddingSet":
    """A saved set as it is; videos embedded now."""
    if not source.exists():
        raise UserError(f"{source} does not exist: give a folder of videos or an embedding set")
    if (source / "index.json").is_file():
        return embedded(None, embeddings=source)
    return embedded([str(source)], run=run)


def given_videos(videos: Sequence[str] | None) -> Path | list[Path]:
    """One folder or file as it is, several files as a list."""
    if not videos:
        raise UserError(
            "no videos given: name video files or a folder, or an embedding set with --embeddings"
        )
    return Path(videos[0]) if len(videos) == 1 else [Path(video) for video in videos]


def encoder_of(run: str, *, made: "dict[str, str | None]") -> "Encoder":
    """The encoder of a run, which must be the one of what it `made`: name -> fingerprint."""
    from cycleback.embeddings import check_same_encoder
    from cycleback.models import fingerprint
    from cycleback.runs import load_encoder

    encoder = load_encoder(run)
    check_same_encoder({**made, run: fingerprint(encoder)})
    return encoder
