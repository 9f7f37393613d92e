"""What `prepare` did."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PrepareReport:
    """A data set folder that was written, and what is not as it should be.

    Attributes:
        name: which data set, such as "pouring".
        directory: where it lies; `cycleback.data.read_dataset` reads it.
        videos: action → split → number of videos; the action is "" when there is only one.
        labelled: number of videos with at least one key event.
        missing: what is not there of the paper's videos or of the files that the source lists.
        warnings: what was noticed, one line a kind.
    """

    name: str
    directory: Path
    videos: Mapping[str, Mapping[str, int]]
    labelled: int
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of videos."""
        return sum(count for splits in self.videos.values() for count in splits.values())
