"""The embeddings of one video in one file, and the list of such files: what many machines write at once.

    CORPUS/shards/3f/3f09...c2.safetensors    one video
    CORPUS/manifest.jsonl                     one line per video, also for those that failed

A shard is complete or absent, and tells all about its video. The manifest can be made again from the shards.

Shapes: N frames of a video, D embedding size.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cycleback.arrays import write_rows
from cycleback.embeddings.embedding_set import EmbeddingSet
from cycleback.embeddings.folder import SetIndex, VideoEntry, check_events, new_folder, write_index
from cycleback.errors import EmbeddingError
from cycleback.files import atomic_file
from cycleback.progress import Counter, ignore
from cycleback.reading import Cursor, not_a_file, parse_json

SHARDS, MANIFEST = "shards", "manifest.jsonl"
FORMAT = "cycleback-shard-1"
MAX_HEADER = 16 << 20  # bytes; long enough for thousands of key events
MAX_LINE = 1 << 20  # letters of a line of the manifest
ID_LETTERS = 24
DTYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "embeddings": ("F32", np.dtype("<f4")),
    "times": ("F64", np.dtype("<f8")),
}
ADVICE = ". Remove the file and embed the corpus again: only this video is embedded."


@dataclass(frozen=True)
class ShardFacts:
    """What a shard tells about its video."""

    name: str  # of the video in the corpus
    action: str = ""
    path: str = ""  # or URL
    fps: float | None = None
    events: Mapping[str, int] = field(default_factory=dict)
    encoder: str = ""  # its fingerprint
    mirrored: bool = False  # whether motion and pose were turned round
    stamp: str = ""  # size and age of the video file: another stamp means another video
    warning: str = ""  # what could not be decoded

    @property
    def id(self) -> str:
        """The name of the file."""
        return video_id(self.name)


@dataclass(frozen=True)
class ManifestRow:
    """What became of one video."""

    id: str
    name: str
    action: str = ""
    path: str = ""
    frames: int = 0  # N
    size: int = 0  # D
    bytes: int = 0
    digest: str = ""
    seconds: float | None = None  # of work; None: not known any more
    warning: str = ""
    error: str = ""  # why there is no shard


@dataclass(frozen=True)
class Shard:
    """One video; its arrays are memory-mapped."""

    facts: ShardFacts
    digest: str
    embeddings: NDArray[np.float32]  # (N, D)
    times: NDArray[np.float64]  # (N,)
    path: Path

    def check(self) -> Self:
        """Read everything and refuse a shard that is not as it was written."""
        if _digest(self.facts, self.embeddings, self.times) != self.digest:
            raise _damaged(self.path, "it was changed or damaged since it was written (wrong digest)")
        return self

    def row(self, *, seconds: float | None = None) -> ManifestRow:
        """Return the line of the manifest."""
        facts = self.facts
        return ManifestRow(
            facts.id,
            facts.name,
            facts.action,
            facts.path,
            len(self.embeddings),
            self.embeddings.shape[1],
            self.path.stat().st_size,
            self.digest,
            seconds,
            facts.warning,
        )


def video_id(name: str) -> str:
    """Return the id of a video: a name of any letters becomes one that every file system can hold."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LETTERS]


def shard_path(folder: Path, id: str) -> Path:
    """Return where the shard of a video is, or will be."""
    return folder / SHARDS / id[:2] / f"{id}.safetensors"


def write_shard(
    folder: Path, facts: ShardFacts, embeddings: NDArray[np.float32], times: NDArray[np.float64]
) -> Shard:
    """Write the embeddings (N, D) and seconds (N,) of one video; an older shard of it is replaced."""
    from safetensors.numpy import save_file

    rows = np.ascontiguousarray(embeddings, dtype=np.float32)
    clock = np.ascontiguousarray(times, dtype=np.float64)
    digest = _digest(facts, rows, clock)
    about = json.dumps({"format": FORMAT, "id": facts.id, "digest": digest, **asdict(facts)}, sort_keys=True)
    path = shard_path(folder, facts.id)
    with atomic_file(path, overwrite=True) as draft:
        save_file({"embeddings": rows, "times": clock}, draft, metadata={"facts": about})
    return Shard(facts, digest, rows, clock, path)


def _digest(facts: ShardFacts, embeddings: NDArray[np.float32], times: NDArray[np.float64]) -> str:
    digest = hashlib.sha256(json.dumps([asdict(facts), embeddings.shape], sort_keys=True).encode())
    digest.update(np.ascontiguousarray(embeddings).data)
    digest.update(np.ascontiguousarray(times).data)
    return digest.hexdigest()


def open_shard(path: Path) -> Shard:
    """Open a shard. Only its header is read; `Shard.check` reads and compares everything."""
    try:
        if reason := not_a_file(path):
            raise _damaged(path, reason)
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > MAX_HEADER:
                raise _damaged(path, "its header is too long")
            text = stream.read(length)
        header = parse_json(text.decode("utf-8"), str(path), problem=EmbeddingError, advice=ADVICE)
        arrays = {name: _map_array(path, header.at(name), name, start=8 + length) for name in DTYPES}
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, getattr(error, "strerror", None) or str(error)) from error
    embeddings, times = arrays["embeddings"], arrays["times"]
    expected = 8 + length + embeddings.nbytes + times.nbytes
    if embeddings.ndim != 2 or times.shape != embeddings.shape[:1] or path.stat().st_size != expected:
        raise _damaged(path, "its arrays do not fit each other, or the file")
    place = header.at("__metadata__").at("facts")
    root = parse_json(place.text(), f"{path}, facts", problem=EmbeddingError, advice=ADVICE)
    if root.at("format").text() != FORMAT:
        raise root.wrong(f"expected the format {FORMAT!r}")
    facts = _read_facts(root, len(times))
    return Shard(facts, root.at("digest").text(), embeddings, times, path)


def _map_array(path: Path, about: Cursor, name: str, *, start: int) -> NDArray[Any]:
    code, dtype = DTYPES[name]
    if about.at("dtype").text() != code:
        raise about.wrong(f"expected numbers of type {code}")
    shape = tuple(side.integer(low=1) for side in about.at("shape").each())
    first, last = (end.integer(low=0) for end in about.at("data_offsets").each())
    if last - first != math.prod(shape) * dtype.itemsize or start + last > path.stat().st_size:
        raise about.wrong("the array does not fit into the file")
    return np.memmap(path, dtype, "r", offset=start + first, shape=shape)


def _read_facts(root: Cursor, num_frames: int) -> ShardFacts:
    events = {event: frame.integer(low=0) for event, frame in root.find_items("events")}
    name = root.at("name").text()
    return ShardFacts(
        name,
        root.optional_text("action") or "",
        root.optional_text("path") or "",
        root.optional_positive("fps"),
        check_events(name, events, num_frames),
        root.optional_text("encoder") or "",
        root.at("mirrored").flag(),
        root.optional_text("stamp") or "",
        root.optional_text("warning") or "",
    )


def find_shard(folder: Path, name: str, *, stamp: str) -> Shard | None:
    """Open the shard of a video; None if there is none, or one that is damaged or of another video file."""
    path = shard_path(folder, video_id(name))
    if not path.exists():
        return None
    try:
        shard = open_shard(path)
    except EmbeddingError:
        return None
    return shard if shard.facts.stamp == stamp and shard.facts.name == name else None


def write_manifest(folder: Path, rows: Iterable[ManifestRow]) -> Path:
    """Write the manifest, one line per video."""
    with atomic_file(folder / MANIFEST, overwrite=True) as draft, draft.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(asdict(row)) + "\n")
    return folder / MANIFEST


def read_manifest(folder: Path) -> Iterator[ManifestRow]:
    """Yield the lines of the manifest, in the order of the corpus, without reading all of it at once."""
    path = Path(folder) / MANIFEST
    problem = partial(parse_json, problem=EmbeddingError, advice=". Embed the corpus again.")
    try:
        if reason := not_a_file(path):
            raise EmbeddingError(f"cannot read {path}: {reason}.")
        with path.open(encoding="utf-8") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                yield _read_row(problem(line, f"{path}, line {number}"))
    except FileNotFoundError as error:
        raise EmbeddingError(
            f"no corpus in {folder} (looked for {MANIFEST}). Make one with: cycleback embed"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise EmbeddingError(f"cannot read {path}: {error}.") from error


def _read_row(line: Cursor) -> ManifestRow:
    row = ManifestRow(
        line.at("id").text(),
        line.at("name").text(),
        line.optional_text("action") or "",
        line.optional_text("path") or "",
        line.at("frames").integer(low=0),
        line.at("size").integer(low=0),
        line.at("bytes").integer(low=0),
        line.at("digest").any_text(),
        line.optional_number("seconds"),
        line.optional_text("warning") or "",
        line.at("error").any_text(),
    )
    if row.id != video_id(row.name):
        raise line.wrong("its id does not fit its name")
    return row


def iter_shards(folder: Path) -> Iterator[Shard]:
    """Open the shards of a corpus in the order of its manifest; videos that failed have none."""
    for row in read_manifest(folder):
        if not row.error:
            shard = open_shard(shard_path(Path(folder), row.id))
            if shard.digest != row.digest:
                raise _damaged(shard.path, "it is not the one that the manifest names")
            yield shard


def pack_shards(
    folder: Path,
    output: Path,
    *,
    keep: Collection[str] | None = None,
    can_count_frames: bool = False,
    streams: Mapping[str, float] | None = None,
    event_names: Iterable[str] | None = None,
    overwrite: bool = False,
    progress: Counter = ignore,
) -> EmbeddingSet:
    """Copy the shards of a corpus into one embedding set, in memory that does not grow with the corpus.

    Args:
        keep: names of the videos to copy (default: all).
        can_count_frames, streams, event_names: as in `EmbeddingSet.from_arrays`.
        progress: called with (videos done, videos).
    """
    count = sum(not row.error and (keep is None or row.name in keep) for row in read_manifest(folder))
    shards = (shard for shard in iter_shards(folder) if keep is None or shard.facts.name in keep)
    first = next(shards, None)
    if first is None:
        raise EmbeddingError(f"{folder} holds no embeddings: every video failed. See {folder / MANIFEST}.")
    size, encoder = first.embeddings.shape[1], first.facts.encoder
    entries: list[VideoEntry] = []
    mirrored: set[str] = set()
    start = 0
    with new_folder(output, overwrite=overwrite) as draft:
        with (
            write_rows(draft / "embeddings.npy", np.float32, (size,)) as add_embeddings,
            write_rows(draft / "times.npy", np.float64, ()) as add_times,
        ):
            for shard in chain([first], shards):
                facts = shard.check().facts
                if shard.embeddings.shape[1] != size or facts.encoder != encoder:
                    raise _damaged(shard.path, "it was made by another encoder than the first one")
                add_embeddings(shard.embeddings)
                add_times(shard.times)
                path = facts.path or None
                entries.append(
                    VideoEntry(
                        facts.name, start, len(shard.times), facts.action, path, facts.fps, facts.events
                    )
                )
                mirrored |= {facts.name} if facts.mirrored else set()
                start += len(shard.times)
                progress(len(entries), count)
        index = SetIndex.build(
            entries,
            event_names=None if event_names is None else list(event_names),
            encoder=encoder or None,
            can_count_frames=can_count_frames,
            streams=streams,
            mirrored=mirrored,
        )
        arrays = (np.load(draft / f"{name}.npy", mmap_mode="r") for name in ("embeddings", "times"))
        write_index(draft, index, *arrays)
    return EmbeddingSet.load(output)


def _damaged(path: Path, reason: str) -> EmbeddingError:
    return EmbeddingError(f"cannot use {path}: {reason}{ADVICE}")
