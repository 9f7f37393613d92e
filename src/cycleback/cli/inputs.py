"""Check what the user typed, and embed the videos the user named: the first steps of most commands."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.bars import counter, progress_bars
from cycleback.errors import OutputExistsError, UserError, one_of
from cycleback.progress import Counter

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet

PRETRAINED = "pretrained"
MAX_NAMED = 10  # mirrored videos


def embed_inputs(
    videos: Sequence[str] | None,
    *,
    run: str = PRETRAINED,
    embeddings: Path | None = None,
    streams: Mapping[str, float] | None = None,
    alike: "EmbeddingSet | None" = None,
    repetitions: bool = False,
) -> "EmbeddingSet":
    """Embed video files or a folder, or load a saved embedding set.

    Args:
        videos: paths of videos, one folder, or names in the saved set (default: all of them).
        run: run folder, name of a model, or "pretrained".
        embeddings: a saved set to load; a `run` given with it must have made it.
        streams: the weights of the streams; None chooses them for these videos.
        alike: a set to compare with, whose weights and side are used.
        repetitions: split each video that holds several repetitions into takes; one must.
    """
    from cycleback.embeddings import EmbeddingSet, check_same_encoder

    if embeddings is not None:
        saved = EmbeddingSet.load(embeddings)
        if run != PRETRAINED:
            check_same_encoder({str(embeddings): saved.encoder, run: find_fingerprint(run)})
        chosen = saved.subset(list(dict.fromkeys(videos))) if videos else saved
        return _split_into_takes(chosen, None) if repetitions else chosen
    paths = parse_videos(videos)
    with progress_bars() as display:
        embedded = embed_with(
            run, paths, streams=streams, alike=alike, progress=counter(display, "embedding")
        )
    print_streams(embedded)
    return _split_into_takes(embedded, paths) if repetitions else embedded


def embed_with(
    run: str,
    videos: Path | Sequence[Path],
    *,
    streams: Mapping[str, float] | None,
    alike: "EmbeddingSet | None",
    progress: Counter,
) -> "EmbeddingSet":
    """Embed videos with a run, or with an exported model, which imports no torch."""
    from cycleback.exported import embed_exported, is_exported

    if is_exported(run):
        return embed_exported(run, videos, streams=streams, alike=alike, progress=progress)
    from cycleback.runs import embed_videos

    return embed_videos(run, videos, streams=streams, alike=alike, progress=progress)


def find_fingerprint(run: str) -> str:
    """Return the fingerprint of the encoder of a run, or of an exported model."""
    from cycleback.exported import is_exported, read_model

    if is_exported(run):
        return read_model(run).fingerprint
    from cycleback.models import fingerprint
    from cycleback.runs import load_encoder

    return fingerprint(load_encoder(run))


def _embed_to_count(embedded: "EmbeddingSet", paths: Path | list[Path] | None) -> "EmbeddingSet":
    """Embed the same videos by the streams that find repetitions best, if they are videos at `paths`."""
    from cycleback.applications.repetitions import EQUAL_STREAMS
    from cycleback.data.records import SEQUENCE_SUFFIX
    from cycleback.runs import embed_videos

    known = [embedded.path(name) for name in embedded]
    if paths is None or any(path is None or path.suffix.lower() == SEQUENCE_SUFFIX for path in known):
        return embedded
    with progress_bars() as display:
        show = counter(display, "looking for repetitions")
        return embed_videos(PRETRAINED, paths, streams=EQUAL_STREAMS, progress=show)


def _split_into_takes(
    embedded: "EmbeddingSet", paths: Path | list[Path] | None, *, is_needed: bool = True
) -> "EmbeddingSet":
    """Split videos into takes by their repetitions, and say on stderr how many there are."""
    from cycleback.applications import find_repetitions, split_takes
    from cycleback.applications.verdict import find_stem

    seen = _embed_to_count(embedded, paths)
    found = {name: find_repetitions(seen[name], seen.times(name)) for name in embedded}
    counts = {name: each.count for name, each in found.items() if each.count > 1}
    if not counts and not is_needed:
        return embedded
    if not counts:
        first = find_stem(embedded, embedded.names[0])
        others = "" if len(embedded) == 1 else f" nor in {len(embedded) - 1} others"
        raise UserError(f"no repetitions found in {first}{others}: leave out --repetitions")
    told = [f"{find_stem(embedded, name)} {count}" for name, count in counts.items()]
    words = f"repetitions: {', '.join(told[:MAX_NAMED])}"
    words += f" and {len(told) - MAX_NAMED} more videos" if len(told) > MAX_NAMED else ""
    whole = len(embedded) - len(counts)
    words += f"; {whole} videos without repetitions are taken whole" if whole else ""
    print(words, file=sys.stderr)
    return split_takes(embedded, found)


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
    """Say on stderr if a video shows an action several times; other commands tell so in their verdict."""
    from cycleback.applications.verdict import tell_repetitions

    for finding in tell_repetitions(embeddings, embeddings.names):
        print(f"note: {finding.words}: {finding.advice}", file=sys.stderr)


def load_or_embed(
    source: Path,
    *,
    run: str,
    streams: Mapping[str, float] | None = None,
    alike: "EmbeddingSet | None" = None,
    repetitions: bool = False,
) -> "EmbeddingSet":
    """Load `source` if it is an embedding set; otherwise embed its videos, as `embed_inputs` does."""
    if not source.exists():
        raise UserError(f"{source} does not exist; pass a folder of videos or an embedding set")
    if (source / "index.json").is_file():
        embedded = embed_inputs(None, embeddings=source)
        return _split_into_takes(embedded, None, is_needed=False) if repetitions else embedded
    embedded = embed_inputs([str(source)], run=run, streams=streams, alike=alike)
    return _split_into_takes(embedded, source, is_needed=False) if repetitions else embedded


def embed_alike(
    videos: Sequence[str] | None,
    other: Path,
    *,
    run: str,
    embeddings: Path | None = None,
    streams: Mapping[str, float] | None = None,
    repetitions: bool = False,
) -> "tuple[EmbeddingSet, EmbeddingSet]":
    """Embed `videos` as `embed_inputs` does and `other` as `load_or_embed` does, to be compared.

    An untrained encoder weighs its streams for `other`, unless weights or embeddings of `videos` are given.
    """
    if embeddings is None:
        second = load_or_embed(other, run=run, streams=streams, repetitions=repetitions)
        return embed_inputs(videos, run=run, streams=streams, alike=second, repetitions=repetitions), second
    first = embed_inputs(videos, run=run, embeddings=embeddings, repetitions=repetitions)
    return first, load_or_embed(other, run=run, streams=streams, alike=first, repetitions=repetitions)


def find_reference(
    reference: str, videos: "EmbeddingSet", *, run: str, embeddings: Path | None
) -> "tuple[EmbeddingSet, str]":
    """Return an embedding set that holds the reference, and its name there.

    Args:
        reference: a name in `videos`, or the path of a video, which is embedded if it is not among them.
        videos: what is compared with it.
    """
    if reference in videos:
        return videos, reference
    path, files = Path(reference), {name: videos.path(name) for name in videos}
    same = [name for name, own in files.items() if own is not None and own.resolve() == path.resolve()]
    if len(same) == 1:
        return videos, same[0]
    if embeddings is None and not path.is_file():
        some = ", ".join(videos.names[:5])
        raise UserError(f"no reference {reference!r}: give the path of a video, or one of {some}")
    source = embed_inputs([reference], run=run, embeddings=embeddings, alike=videos)
    return source, source.names[0]


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

    check_output(path, overwrite=overwrite, suffixes=suffixes, inputs=inputs, only_own=True)
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


def check_clips_folder(folder: Path, *, overwrite: bool, inputs: Sequence[Path]) -> None:
    """Refuse a folder for clips that cannot be made or has files in it."""
    from cycleback.files import check_output

    if folder.is_file():
        raise UserError(f"cannot write clips to {folder}: it is a file; give a folder")
    check_output(folder, overwrite=True, inputs=inputs)
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise OutputExistsError(f"{folder} has files in it. Add --overwrite, or choose another folder.")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError into a UserError, around calls whose arguments all come from the user."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from error
