"""Add videos to a search index and remove them; the index is never half-changed.

An add writes a shard, then the manifest. Whatever stops it before the manifest leaves the index as it was,
and the next change clears what is left over.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cycleback.data import VideoRecord
from cycleback.data.sources import record_digest
from cycleback.embeddings import EmbeddingSet, check_same_encoder
from cycleback.errors import DataError, EmbeddingError, OutputExistsError, UserError, did_you_mean
from cycleback.search.index import content_of, is_index
from cycleback.search.manifest import FILE, IndexedVideo, Manifest

LOCK = ".lock"
OWN_FILES = re.compile(
    rf"\.?([0-9a-f]{{8}}\.)?(shard|faiss|lance)-.*|\.[0-9a-f]+\.{re.escape(FILE)}|{re.escape(LOCK)}|{re.escape(FILE)}"
)


@dataclass(frozen=True)
class Changes:
    """What an add did, by names of videos."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


def new_records(
    folder: Path | str, records: Sequence[VideoRecord], *, replace_others: bool = False
) -> list[VideoRecord]:
    """Those of `records` that the index does not hold yet, so that no video is embedded twice.

    Another video of the same name is refused here already, as `add_videos` would.
    """
    if not is_index(folder):
        return list(records)
    before = Manifest.read(Path(folder))
    known = {(video.path, video.content) for video in before.videos.values()}
    new = {}
    for record in records:
        video = IndexedVideo(record.name, "", record_digest(record), str(record.path.absolute()))
        if (video.path, video.content) not in known:
            new[record.name] = video
    _compare(Path(folder), before, list(new.values()), replace_others=replace_others)
    return [record for record in records if record.name in new]


def add_videos(
    folder: Path | str, embeddings: EmbeddingSet, *, run: str | None = None, replace_others: bool = False
) -> Changes:
    """Add the videos of an embedding set to the index in `folder`, which is made where there is none.

    A video that is there already, with the same name and content, is left alone; one whose file has changed
    is replaced. Another video of the same name is refused.

    Args:
        embeddings: made by the encoder of the index.
        run: the run folder of that encoder, or "pretrained"; kept, so that queries need not name it.
        replace_others: replace also a different video of the same name.
    """
    folder = Path(folder)
    with _changing(folder):
        first = Manifest(embeddings.encoder, None, embeddings.size)
        before = Manifest.read(folder) if is_index(folder) else first
        _check_encoder(folder, before, embeddings)
        shard = f"shard-{before.next_shard:05d}"
        videos = [_indexed(embeddings, name, shard) for name in embeddings]
        changes = _compare(folder, before, videos, replace_others=replace_others)
        changed = {*changes.added, *changes.replaced}
        after = replace(before, run=_kept_run(run) or before.run)
        if changed:
            embeddings.subset([name for name in embeddings if name in changed]).save(folder / shard)
            new = {video.name: video for video in videos if video.name in changed}
            after = replace(after, videos={**before.videos, **new}, next_shard=before.next_shard + 1)
        if after != before:
            after.write(folder)
        _clear(folder, after)
    return changes


def remove_videos(folder: Path | str, names: Sequence[str]) -> int:
    """Take videos out of the index; the number that are left."""
    folder = Path(folder)
    Manifest.read(folder)  # where there is no index, none is made
    with _changing(folder):
        before = Manifest.read(folder)
        for name in names:
            if name not in before.videos:
                hint = did_you_mean(name, before.videos, otherwise=f"It has {len(before.videos)} videos.")
                raise EmbeddingError(f"{folder} holds no video {name!r}. {hint}")
        left = {name: video for name, video in before.videos.items() if name not in set(names)}
        after = replace(before, videos=left)
        after.write(folder)
        _clear(folder, after)
    return len(left)


def _check_encoder(folder: Path, before: Manifest, embeddings: EmbeddingSet) -> None:
    made = {
        str(folder): (before.encoder, before.size),
        "the new videos": (embeddings.encoder, embeddings.size),
    }
    check_same_encoder({what: f"{encoder} (D={size})" for what, (encoder, size) in made.items()})


def _indexed(embeddings: EmbeddingSet, name: str, shard: str) -> IndexedVideo:
    """A video's entry; where its file is not at hand, its embeddings are its content."""
    path = embeddings.path(name)
    where = None if path is None else str(path.absolute())
    if path is None or not path.exists():
        return IndexedVideo(name, shard, hashlib.sha256(embeddings[name].tobytes()).hexdigest(), where)
    return IndexedVideo(name, shard, content_of(path), where)


def _compare(
    folder: Path, before: Manifest, videos: Sequence[IndexedVideo], *, replace_others: bool
) -> Changes:
    """Which videos are new, changed or the same; two different videos of one name are an error."""
    changes = Changes()
    for video in videos:
        known = before.videos.get(video.name)
        if known is None:
            changes.added.append(video.name)
        elif (known.content, known.path) == (video.content, video.path):
            changes.unchanged.append(video.name)
        elif replace_others or video.content == known.content or video.path == known.path:
            changes.replaced.append(video.name)  # another file was asked for, or it was moved, or it changed
        else:
            raise DataError(
                f"{folder} holds another video named {video.name!r} ({known.path}). Add {video.path} under "
                "another name (--prefix), or replace the other one (--replace)."
            )
    return changes


def _kept_run(run: str | None) -> str | None:
    """The run as it is found from anywhere."""
    return str(Path(run).absolute()) if run is not None and Path(run).is_dir() else run


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """The folder, made where there is none, for this process alone; errors of the disk in one line."""
    _refuse_foreign(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("w") as lock:
            _lock(lock.fileno(), folder)
            _clear(folder, Manifest.read(folder) if is_index(folder) else None)
            yield
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror or error}. The index is as it was."
        ) from error


def _refuse_foreign(folder: Path) -> None:
    """Never write among files that are not an index's."""
    if folder.is_dir():
        others = [path.name for path in folder.iterdir() if not OWN_FILES.fullmatch(path.name)]
        if others and not is_index(folder):
            raise OutputExistsError(
                f"{folder} exists and is no search index (it holds {others[0]!r}). Give another folder."
            )
    elif folder.exists():
        raise OutputExistsError(f"{folder} is a file, not a search index. Give another name.")


def _lock(file: int, folder: Path) -> None:
    """Hold the lock until the file is closed, also by a crash; systems without such locks go unlocked."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(
            f"{folder} is being changed by another program. Try again when it is done."
        ) from error


def _clear(folder: Path, manifest: Manifest | None) -> None:
    """Delete what no manifest names: left by an interrupted add, or made for what the index was before."""
    wanted = {FILE, LOCK}
    if manifest is not None:
        wanted |= {*manifest.shards, f"faiss-{manifest.key}", f"lance-{manifest.key}"}
    for path in folder.iterdir():
        if path.name in wanted or not OWN_FILES.fullmatch(path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
