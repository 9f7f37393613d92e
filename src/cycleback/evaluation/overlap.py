"""Find videos or persons that are both trained on and tested on.

Videos overlap by name, by file content under two names, or by the person they show. Only files of equal size
are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError


@dataclass(frozen=True)
class Overlap:
    """A training video and a held-out video that overlap, and why."""

    train: str
    held_out: str
    reason: str
    is_person: bool = False  # two videos of one person, not one video twice


def refuse_overlap(overlaps: Sequence[Overlap]) -> None:
    """Refuse videos or persons on both sides; the message names the first pair and the number of others."""
    if overlaps:
        first = overlaps[0]
        rest = f", and {len(overlaps) - 1} more held-out videos too" if len(overlaps) > 1 else ""
        raise EmbeddingError(
            f"held-out video {first.held_out!r} is also trained on ({first.train!r}: {first.reason}{rest}). "
            "Take them out of one side, or add --allow-overlap and do not call the result held-out."
        )


def find_overlap(
    train: EmbeddingSet, held_out: EmbeddingSet, *, persons: Mapping[str, str] | None = None
) -> list[Overlap]:
    """Return the held-out videos that are on both sides, each with the first reason found."""
    people = persons or {}
    seen: dict[str, str] = {}
    for name in train:
        if name in people:
            seen.setdefault(people[name], name)
    copies = _same_files(train, held_out)
    overlaps = []
    for name in held_out:
        if name in train:
            overlaps.append(Overlap(name, name, "the same name"))
        elif name in copies:
            overlaps.append(Overlap(copies[name], name, "the same file content"))
        elif people.get(name) in seen:
            reason = f"the same person, {people[name]}"
            overlaps.append(Overlap(seen[people[name]], name, reason, is_person=True))
    return overlaps


def _same_files(train: EmbeddingSet, held_out: EmbeddingSet) -> dict[str, str]:
    """Return held-out name -> training name of videos whose files have the same content."""
    known, others = _files(train), _files(held_out)
    shared = {size for _, size in known.values()} & {size for _, size in others.values()}
    digests: dict[str, str] = {}  # digest -> the first training video that has it
    for name, (path, size) in known.items():
        if size in shared:
            digests.setdefault(_digest(path), name)
    copies = {name: digests.get(_digest(path)) for name, (path, size) in others.items() if size in shared}
    return {name: twin for name, twin in copies.items() if twin is not None}


def _digest(path: Path) -> str:
    """Return the digest of a file; a file that cannot be read equals no other."""
    from cycleback.data.sources import file_digest

    try:
        return file_digest(path)
    except OSError:
        return f"cannot be read: {path}"


def _files(videos: EmbeddingSet) -> dict[str, tuple[Path, int]]:
    """Return the files that exist, with their sizes in bytes."""
    known = {name: path for name in videos if (path := videos.path(name)) is not None and path.is_file()}
    return {name: (path, path.stat().st_size) for name, path in known.items()}
