"""Names of videos and files: natural order, and which video a written name means."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from cycleback.video import VIDEO_SUFFIXES

SEQUENCE_SUFFIX = ".npz"
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort key in which `clip2` comes before `clip10`; `1` and `01` are told apart by their text."""
    parts = [part for part in re.split(r"([0-9]+)", name) if part]
    return tuple((not part[0].isdigit(), int(part) if part[0].isdigit() else 0, part) for part in parts)


def without_suffix(name: str) -> str:
    """`name` without the suffix of a video or sequence; other dots are part of the name and stay."""
    suffix = Path(name).suffix
    is_known = suffix.lower() in VIDEO_SUFFIXES or suffix.lower() == SEQUENCE_SUFFIX
    return name[: -len(suffix)] if is_known else name


class NameIndex:
    """Finds which video is meant by a name that somebody wrote into a file."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._by_tail: dict[str, str | None] = {}  # None: several videos fit
        for name in self.names:
            parts = name.split("/")
            for start in range(1, len(parts)):
                tail = "/".join(parts[start:])
                self._by_tail[tail] = None if tail in self._by_tail else name
        self._by_tail.update({name: name for name in self.names})

    def match(self, written: str) -> str | None:
        """The video that `written` means, or None.

        A suffix, a leading `./` and backslashes do not matter. Leading folders may be left out (`b` or `a/b`
        for `train/a/b`) where only one video fits.
        """
        asked = written.strip().replace("\\", "/").removeprefix("./")
        return self._by_tail.get(asked) or self._by_tail.get(without_suffix(asked))

    def closest(self, written: str) -> str | None:
        """The most similar name, for "did you mean"; None when nothing comes close."""
        close = difflib.get_close_matches(without_suffix(written), self.names, n=1, cutoff=0.6)
        return close[0] if close else None
