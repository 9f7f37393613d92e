"""A search index: a folder with the embeddings of many videos, to which videos are added and removed.

INDEX/manifest.json   which videos there are, and in which shard; replaced in one step, last
INDEX/shard-00001/    an embedding set, one per add; never changed
INDEX/lance-1/        the table of the LanceDB backend; made at its first use and safe to delete

An add writes a shard and then the manifest. If it is interrupted, the index stays as it was, and the next
change deletes the leftovers.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from cycleback.corpus.settings import read_settings
from cycleback.data import VideoRecord
from cycleback.data.sources import record_digest
from cycleback.embeddings import EmbeddingSet, check_same_encoder
from cycleback.embeddings.folder import read_folder
from cycleback.embeddings.shards import pack_shards, read_manifest
from cycleback.errors import DataError, EmbeddingError, OutputExistsError, UserError, did_you_mean
from cycleback.files import DRAFT_NAME, hold_lock, remove_drafts, write_json
from cycleback.models.streams import SCALES
from cycleback.progress import Counter, ignore
from cycleback.reading import Cursor, check_seal, read_json, seal
from cycleback.search.corpus import Corpus, Shard, Tags

MANIFEST, LOCK = "manifest.json", ".lock"
FORMAT, VERSION = "cycleback-search", 1
SHARD = "shard-"
LANCE = "lance-1"  # the number changes with the columns of the table
OWN_FILES = re.compile(  # the names above, drafts of them, and the copies of a backend that was removed
    rf"(\.((draft|old)-)?[0-9a-f]+\.)?((shard-\d+|(lance|faiss)-[0-9a-f]+)(\.\w+)?|{re.escape(MANIFEST)})|{re.escape(LOCK)}"
)


@dataclass(frozen=True)
class IndexedVideo:
    """A video of an index."""

    name: str  # unique in the index
    shard: str  # the folder with its embeddings
    content: str  # fingerprint of the video file, to recognise it
    path: str | None = None  # the file, absolute; None for embeddings that came without one
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The state of an index."""

    encoder: str | None  # fingerprint of the encoder that made all embeddings, if known
    run: str | None  # the run folder of that encoder, or "pretrained", to embed queries with
    size: int  # length D of an embedding
    videos: Mapping[str, IndexedVideo] = field(default_factory=dict)  # by name
    next_shard: int = 1  # number of the next shard; no number is used twice
    # weights of the streams that were chosen for the first videos; none if they are the fixed ones
    streams: Mapping[str, float] = field(default_factory=dict)

    @property
    def shards(self) -> tuple[str, ...]:
        """The shards with at least one video, in order."""
        return tuple(sorted({video.shard for video in self.videos.values()}))

    @property
    def key(self) -> str:
        """Twelve hex digits that change with the rows of the index; a backend names its files by them."""
        rows = [(video.name, video.shard) for video in self.videos.values()]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]

    def write(self, folder: Path) -> None:
        """Make this the state of the index in `folder`, in one step."""
        videos = [asdict(video) for video in self.videos.values()]
        content = {"format": FORMAT, "version": VERSION, **asdict(self), "videos": videos}
        write_json(folder / MANIFEST, seal(content), overwrite=True)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the state of the index in `folder`."""
        path = folder / MANIFEST
        if not path.exists():
            missing = f"no search index in {folder} (cannot read {MANIFEST}: {os.strerror(errno.ENOENT)})"
            raise EmbeddingError(f"{missing}. Make one with: cycleback search add")
        root = read_json(path, problem=EmbeddingError, advice=". Make the index again.")
        if not isinstance(root.value, dict) or root.value.get("format") != FORMAT:
            raise root.wrong("it is not the manifest of a search index")
        if root.value.get("version") != VERSION:
            version = str(root.value.get("version"))[:40]
            raise root.wrong(f"it has format version {version}, this program reads {VERSION}")
        check_seal(root)
        return cls._parse(root)

    @classmethod
    def _parse(cls, root: Cursor) -> Self:
        videos = {}
        for each in root.at("videos").each():
            video = _read_video(each)
            if video.name in videos:
                raise each.wrong(f"a second video named {video.name!r}")
            videos[video.name] = video
        number = root.at("next_shard").integer(low=1)
        if any(shard_number(video.shard) >= number for video in videos.values()):
            raise root.wrong(f"the next shard is {number}, but there is one of that number or beyond")
        return cls(
            encoder=root.optional_text("encoder"),
            run=root.optional_text("run"),
            size=root.at("size").integer(low=1),
            videos=videos,
            next_shard=number,
            streams={name: _read_weight(weight) for name, weight in root.find_items("streams")},
        )


def _read_weight(weight: Cursor) -> float:
    value = weight.number()
    if not 0 <= value < 1e6:
        raise weight.expected("a weight of 0 or more")
    return value


def shard_number(name: str) -> int:
    """Return the number of a shard by its name."""
    return int(name.removeprefix(SHARD))


def _read_video(each: Cursor) -> IndexedVideo:
    name, shard = each.at("name").text(), each.at("shard").text()
    if not re.fullmatch(SHARD + r"[0-9]{1,9}", shard):
        raise each.wrong(f"{name!r} is in {shard!r}, which is no part of the index")
    tags = {key: value.text() for key, value in each.find_items("tags")}
    return IndexedVideo(name, shard, each.at("content").text(), each.optional_text("path"), tags)


@dataclass(frozen=True)
class SearchIndex:
    """An index as it was when it was loaded; later adds do not change it."""

    folder: Path
    manifest: Manifest

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Open an index; embeddings are memory-mapped when they are first used."""
        return cls(Path(folder), Manifest.read(Path(folder)))

    @cached_property
    def corpus(self) -> Corpus:
        """The frames to search."""
        if not self.manifest.videos:
            raise EmbeddingError(f"{self.folder} holds no videos. Add some with: cycleback search add")
        shards = tuple(self._shard(name) for name in self.manifest.shards)
        return Corpus(
            shards,
            self.manifest.encoder,
            run=self.manifest.run,
            source=self.folder,
            streams=self.manifest.streams or SCALES,
            tags={video.name: video.tags for video in self.manifest.videos.values() if video.tags},
            source_numbers=tuple(map(shard_number, self.manifest.shards)),
            as_filmed=not self.manifest.streams,
        )

    def _shard(self, shard: str) -> Shard:
        embeddings, times, index, unchecked = read_folder(self.folder / shard)
        videos = [video for video in self.manifest.videos.values() if video.shard == shard]
        entries = [replace(index.entry(video.name), path=video.path) for video in videos]
        in_order = tuple(sorted(entries, key=lambda entry: entry.start))
        return Shard(np.asarray(embeddings), np.asarray(times), in_order, unchecked)


@dataclass(frozen=True)
class Changes:
    """The names of the videos that an add has added, replaced or left unchanged."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


def is_index(folder: Path | str) -> bool:
    """Return whether there is a search index in `folder`."""
    return (Path(folder) / MANIFEST).is_file()


def select_new(
    folder: Path | str, records: Sequence[VideoRecord], *, replace_others: bool = False
) -> list[VideoRecord]:
    """Select the records that the index does not hold yet, so that no video is embedded twice.

    A different video of the same name is refused, as in `add_videos`.
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
    folder: Path | str,
    embeddings: EmbeddingSet,
    *,
    run: str | None = None,
    tags: Mapping[str, Tags] | None = None,
    replace_others: bool = False,
) -> Changes:
    """Add the videos of an embedding set to the index in `folder`; the index is created if needed.

    A video that the index holds with the same name and content is left unchanged. If its file has changed, it
    is replaced. A different video of the same name is refused.

    Args:
        embeddings: made by the encoder of the index.
        run: the run folder of that encoder, or "pretrained"; stored, so that queries need not name it.
        tags: video → its tags; `retag_videos` changes those of videos that are there.
        replace_others: replace a different video of the same name.
    """
    streams = {} if embeddings.streams == SCALES else embeddings.streams
    first = Manifest(embeddings.encoder, None, embeddings.size, streams=streams)
    videos = [_describe(embeddings, name, tags=(tags or {}).get(name)) for name in embeddings]

    def write(shard: Path, names: list[str]) -> None:
        embeddings.subset(names).save(shard)

    return _add(Path(folder), first, videos, write, run=run, replace_others=replace_others)


def add_corpus(
    folder: Path | str,
    corpus: Path | str,
    *,
    replace_others: bool = False,
    progress: Counter = ignore,
) -> Changes:
    """Add the videos of an embedded corpus to the index in `folder`, as one shard.

    Memory does not grow with the corpus. Videos that failed to embed are left out.

    Args:
        corpus: the folder that `embed --on` wrote.
        progress: called with (videos copied, videos in total).
    """
    corpus = Path(corpus)
    settings = read_settings(corpus)
    rows = [row for row in read_manifest(corpus) if not row.error]
    if not rows:
        raise EmbeddingError(f"{corpus} holds no embeddings: every video failed, or none is embedded yet.")
    videos = [IndexedVideo(row.name, "", row.digest, row.path or None) for row in rows]

    def write(shard: Path, names: list[str]) -> None:
        pack_shards(
            Path(corpus),
            shard,
            keep={*names},
            can_count_frames=settings.can_count_frames,
            streams=settings.streams,
            progress=progress,
        )

    first = Manifest(settings.encoder, None, rows[0].size, streams=settings.streams)
    return _add(Path(folder), first, videos, write, run=settings.run, replace_others=replace_others)


def _add(
    folder: Path,
    first: Manifest,
    videos: Sequence[IndexedVideo],
    write: Callable[[Path, list[str]], None],
    *,
    run: str | None,
    replace_others: bool,
) -> Changes:
    """Add videos to the index; `write` makes an embedding set of some of them. `first` is a new index."""
    if run is not None and Path(run).is_dir():
        run = str(Path(run).absolute())
    with _locked(folder):
        before = Manifest.read(folder) if is_index(folder) else first
        encoders = {str(folder): before, "the new videos": first}
        check_same_encoder({what: f"{made.encoder} (D={made.size})" for what, made in encoders.items()})
        changes = _compare(folder, before, videos, replace_others=replace_others)
        changed, shard = {*changes.added, *changes.replaced}, f"{SHARD}{before.next_shard:05d}"
        new = {video.name: replace(video, shard=shard) for video in videos if video.name in changed}
        after = replace(before, run=run or before.run)
        if new:
            write(folder / shard, list(new))
            after = replace(after, videos={**before.videos, **new}, next_shard=before.next_shard + 1)
        if after != before:
            after.write(folder)
        _delete_leftovers(folder, after)
    return changes


def retag_videos(folder: Path | str, tags: Mapping[str, Tags]) -> list[str]:
    """Change the tags of videos of an index; returns the names of those whose tags were others."""
    folder = Path(folder)
    with _locked(folder):
        before = Manifest.read(folder)
        known = {name: before.videos[name] for name in tags if name in before.videos}
        changed = {name: replace(video, tags=tags[name]) for name, video in known.items()}
        changed = {name: video for name, video in changed.items() if video != known[name]}
        if changed:
            shutil.rmtree(folder / LANCE, ignore_errors=True)  # the table has the tags, too
            replace(before, videos={**before.videos, **changed}).write(folder)
    return list(changed)


def remove_videos(folder: Path | str, names: Sequence[str]) -> int:
    """Remove videos from the index; returns how many are left."""
    folder = Path(folder)
    Manifest.read(folder)  # fail here if there is no index, before the folder is created
    with _locked(folder):
        before = Manifest.read(folder)
        for name in names:
            if name not in before.videos:
                hint = did_you_mean(name, before.videos, otherwise=f"It has {len(before.videos)} videos.")
                raise EmbeddingError(f"{folder} holds no video {name!r}. {hint}")
        left = {name: video for name, video in before.videos.items() if name not in set(names)}
        after = replace(before, videos=left)
        after.write(folder)
        _delete_leftovers(folder, after)
    return len(left)


def _describe(embeddings: EmbeddingSet, name: str, *, tags: Tags | None) -> IndexedVideo:
    """Make the entry of a video; without its file, the embeddings are its content."""
    path = embeddings.path(name)
    if path is None or not path.exists():
        content = hashlib.sha256(embeddings[name].tobytes()).hexdigest()
    else:
        kind: Any = "frames" if path.is_dir() else "video"
        content = record_digest(VideoRecord(name=path.stem, path=path, kind=kind))
    return IndexedVideo(name, "", content, None if path is None else str(path.absolute()), dict(tags or {}))


def _compare(
    folder: Path, before: Manifest, videos: Sequence[IndexedVideo], *, replace_others: bool
) -> Changes:
    """Sort videos into new, changed and unchanged; refuse two different videos of one name."""
    changes = Changes()
    for video in videos:
        known = before.videos.get(video.name)
        if known is None:
            changes.added.append(video.name)
        elif (known.content, known.path) == (video.content, video.path):
            changes.unchanged.append(video.name)
        elif replace_others or video.content == known.content or video.path == known.path:
            changes.replaced.append(video.name)  # the file was moved or has changed, or the caller asked
        else:
            raise DataError(
                f"{folder} holds another video named {video.name!r} ({known.path}). Add {video.path} under "
                "another name (--prefix), or replace the other one (--replace)."
            )
    return changes


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create the folder if needed and lock it against changes by other processes."""
    check_index_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
        with hold_lock(folder / LOCK, wait=False) as is_held:
            if not is_held:
                raise UserError(f"another program is changing {folder}. Try again when it has finished.")
            try:
                _delete_leftovers(folder, Manifest.read(folder) if is_index(folder) else None)
                yield
            finally:
                if not is_index(folder):  # nothing was added to a new index
                    _delete_leftovers(folder, None)
                    (folder / LOCK).unlink()
                    with suppress(OSError):
                        folder.rmdir()
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot write {folder}: {reason}. The index is unchanged.") from error


def check_index_folder(folder: Path) -> None:
    """Refuse a folder with files that are not those of an index."""
    if is_index(folder):
        Manifest.read(folder)  # another program may have made a file of this name
    elif folder.is_dir():
        others = [path.name for path in folder.iterdir() if not OWN_FILES.fullmatch(path.name)]
        if others:
            raise OutputExistsError(
                f"{folder} exists and is not a search index (it holds {others[0]!r}). Choose another folder."
            )
    elif folder.exists():
        raise OutputExistsError(f"{folder} is a file, not a search index. Choose another name.")


def _delete_leftovers(folder: Path, manifest: Manifest | None) -> None:
    """Delete files of an interrupted add, or of an earlier state of the index."""
    remove_drafts(folder)
    wanted = {MANIFEST, LOCK}
    if manifest is not None:
        wanted |= {*manifest.shards, LANCE}
    for path in folder.iterdir():
        is_draft = DRAFT_NAME.fullmatch(path.name)  # of a living process: a query may build its table
        if path.name not in wanted and not is_draft and OWN_FILES.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
