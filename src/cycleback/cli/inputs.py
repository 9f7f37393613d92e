"""Check what the user typed, and embed the videos the user named: the first steps of most commands."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.bars import counter, progress_bars
from cycleback.errors import UserError, one_of

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet

PRETRAINED = "pretrained"
MAX_NAMED = 10  # mirrored videos
MAX_CHECKED = 6  # videos that are searched for repetitions
MIN_FRAMES_EACH = 8  # of a repetition; noise repeats by chance in a few frames
MIN_NOTED = (3, 0.62)  # repetitions, and their confidence, that are worth a note


def embed_inputs(
    videos: Sequence[str] | None,
    *,
    run: str = PRETRAINED,
    embeddings: Path | None = None,
    streams: Mapping[str, float] | None = None,
    alike: "EmbeddingSet | None" = None,
) -> "EmbeddingSet":
    """Embed video files or a folder, or load a saved embedding set.

    Args:
        videos: paths of videos, one folder, or names in the saved set (default: all of them).
        run: run folder, name of a model, or "pretrained".
        embeddings: a saved set to load; a `run` given with it must have made it.
        streams: the weights of the streams; None chooses them for these videos.
        alike: a set to compare with, whose weights and side are used.
    """
    from cycleback.embeddings import EmbeddingSet, check_same_encoder
    from cycleback.models import fingerprint
    from cycleback.runs import embed_videos, load_encoder

    if embeddings is not None:
        saved = EmbeddingSet.load(embeddings)
        if run != PRETRAINED:
            check_same_encoder({str(embeddings): saved.encoder, run: fingerprint(load_encoder(run))})
        return saved.subset(list(dict.fromkeys(videos))) if videos else saved
    paths = parse_videos(videos)
    with progress_bars() as display:
        embedded = embed_videos(
            run, paths, streams=streams, alike=alike, progress=counter(display, "embedding")
        )
    print_streams(embedded)
    return embedded


def print_streams(embeddings: "EmbeddingSet") -> None:
    """Say on stderr how much each stream of the encoder counts, and which videos were turned round."""
    from cycleback.models.streams import describe_streams

    if embeddings.streams:
        print(describe_streams(embeddings.streams), file=sys.stderr)
    if embeddings.mirrored:
        named = ", ".join(embeddings.mirrored[:MAX_NAMED])
        others = len(embeddings.mirrored) - MAX_NAMED
        print(
            f"mirrored videos, turned round: {named}" + (f" and {others} more" if others > 0 else ""),
            file=sys.stderr,
        )


def note_repetitions(embeddings: "EmbeddingSet") -> None:
    """Say on stderr if a video shows an action several times, which no alignment of whole videos expects.

    Only a few videos are looked at, which takes less than a second.
    """
    from cycleback.alignment.distances import spread_items
    from cycleback.applications import find_repetitions

    for name in spread_items(embeddings.names, MAX_CHECKED):
        found = find_repetitions(embeddings[name], embeddings.times(name))
        is_sure = found.count >= MIN_NOTED[0] and found.confidence >= MIN_NOTED[1]
        if is_sure and len(embeddings[name]) >= MIN_FRAMES_EACH * found.count:
            path = embeddings.path(name) or Path(name)
            cut = f"cut them first with cycleback repetitions {shlex.quote(str(path))} --clips takes"
            print(f"note: {path.name} holds about {found.count} repetitions: {cut}", file=sys.stderr)
            return


def load_or_embed(
    source: Path,
    *,
    run: str,
    streams: Mapping[str, float] | None = None,
    alike: "EmbeddingSet | None" = None,
) -> "EmbeddingSet":
    """Load `source` if it is an embedding set; otherwise embed its videos, as `embed_inputs` does."""
    if not source.exists():
        raise UserError(f"{source} does not exist; pass a folder of videos or an embedding set")
    if (source / "index.json").is_file():
        return embed_inputs(None, embeddings=source)
    return embed_inputs([str(source)], run=run, streams=streams, alike=alike)


def embed_alike(
    videos: Sequence[str] | None,
    other: Path,
    *,
    run: str,
    embeddings: Path | None = None,
    streams: Mapping[str, float] | None = None,
) -> "tuple[EmbeddingSet, EmbeddingSet]":
    """Embed `videos` as `embed_inputs` does and `other` as `load_or_embed` does, to be compared.

    An untrained encoder weighs its streams for `other`, unless weights or embeddings of `videos` are given.
    """
    if embeddings is None:
        second = load_or_embed(other, run=run, streams=streams)
        return embed_inputs(videos, run=run, streams=streams, alike=second), second
    first = embed_inputs(videos, run=run, embeddings=embeddings)
    return first, load_or_embed(other, run=run, streams=streams, alike=first)


def parse_videos(videos: Sequence[str] | None) -> Path | list[Path]:
    """Return one folder or file as a path, several files as a list of paths."""
    if not videos:
        raise UserError("no videos given; pass video files, a folder, or an embedding set with --embeddings")
    return Path(videos[0]) if len(videos) == 1 else [Path(video) for video in videos]


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of `choices`."""
    if value not in choices:
        raise UserError(f"unknown {what} {value!r}; expected {one_of(choices)}")


def list_inputs(
    videos: Sequence[str] | None, *others: Path | str | None, embeddings: Path | None = None
) -> list[Path]:
    """List what a command reads, which its output must not replace: files, folders, and the videos of sets.

    Args:
        videos: as in `embed_inputs`.
        others: further files, folders and names that may be paths.
    """
    from cycleback.embeddings import EmbeddingSet

    named = [embeddings, *others] if embeddings is not None else [*(videos or ()), *others]
    paths = [Path(name) for name in named if name is not None]
    sets = [EmbeddingSet.load(path) for path in paths if (path / "index.json").is_file()]
    known = [saved.path(name) for saved in sets for name in saved]
    return paths + [path for path in known if path is not None]


def check_file(
    path: Path, *, overwrite: bool, suffixes: Sequence[str] = (), inputs: Sequence[Path] = ()
) -> Path:
    """Refuse an output file that cannot be written, before any work is done; its folder must exist."""
    from cycleback.files import check_output

    check_output(path, overwrite=overwrite, suffixes=suffixes, inputs=inputs)
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder, expected the name of a file")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: the folder {path.parent} does not exist. Make it first.")
    return path


def check_table_and_picture(
    table: Path | None,
    picture: Path | None,
    *,
    overwrite: bool,
    inputs: Sequence[Path],
    formats: Sequence[str] = ("png",),
) -> None:
    """Refuse output files that cannot be written, before any work is done."""
    from cycleback.tables import TABLE_SUFFIXES

    if table is not None:
        check_file(table, overwrite=overwrite, suffixes=TABLE_SUFFIXES, inputs=inputs)
    if picture is not None:
        endings = [f".{format}" for format in formats]
        check_file(picture, overwrite=overwrite, suffixes=endings, inputs=inputs)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError into a UserError, around calls whose arguments all come from the user."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from error
