"""Turn the videos a user names into embeddings: the first step of most commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.bars import counter, progress_bars
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.models import Encoder

PRETRAINED = "pretrained"


def embed_inputs(
    videos: Sequence[str] | None, *, run: str = PRETRAINED, embeddings: Path | None = None
) -> "EmbeddingSet":
    """Embed video files or a folder, or load a saved embedding set.

    Args:
        videos: paths of videos, one folder, or names in the saved set (default: all of them).
        run: run folder, name of a model, or "pretrained".
        embeddings: a saved set to load; a `run` given with it must have made it.
    """
    from cycleback.embeddings import EmbeddingSet
    from cycleback.runs import embed_videos

    if embeddings is not None:
        saved = EmbeddingSet.load(embeddings)
        if run != PRETRAINED:
            load_matching_encoder(run, {str(embeddings): saved.encoder})
        return saved.subset(list(dict.fromkeys(videos))) if videos else saved
    paths = parse_videos(videos)
    with progress_bars() as display:
        return embed_videos(run, paths, progress=counter(display, "embedding"))


def load_or_embed(source: Path, *, run: str) -> "EmbeddingSet":
    """Load `source` if it is an embedding set; otherwise embed its videos with `run`."""
    if not source.exists():
        raise UserError(f"{source} does not exist; pass a folder of videos or an embedding set")
    if (source / "index.json").is_file():
        return embed_inputs(None, embeddings=source)
    return embed_inputs([str(source)], run=run)


def parse_videos(videos: Sequence[str] | None) -> Path | list[Path]:
    """Return one folder or file as a path, several files as a list of paths."""
    if not videos:
        raise UserError("no videos given; pass video files, a folder, or an embedding set with --embeddings")
    return Path(videos[0]) if len(videos) == 1 else [Path(video) for video in videos]


def load_matching_encoder(run: str, fingerprints: "dict[str, str | None]") -> "Encoder":
    """Load the encoder of a run, which must have made the given sets (name -> encoder fingerprint)."""
    from cycleback.embeddings import check_same_encoder
    from cycleback.models import fingerprint
    from cycleback.runs import load_encoder

    encoder = load_encoder(run)
    check_same_encoder({**fingerprints, run: fingerprint(encoder)})
    return encoder
