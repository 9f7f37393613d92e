"""Find shot changes while frames are decoded: the first frame of each new shot.

A cut is not a large change but a change that lasts. Fast motion changes pictures from frame to frame, and a
flash goes back. So the frames just before a place and those just after it are compared all with all:

    across    the least difference between a frame before and a frame after
    within    the greatest difference between neighbours on the same side

At a cut, `across` is large by itself and a few times larger than `within`. The difference of two frames is
1 - the correlation of their small grey pictures, so that brightness and contrast do not count. A fade from
one shot into another is no cut.

Letters: n frames of a chunk, H W pixels.
"""

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cycleback.video.motion import PIXELS, fastest_kernels
from cycleback.video.reader import iter_frames

SIDE = 3  # frames on either side of a place that are compared
BLUR = 2  # pixels averaged on each side: a shift by one pixel is no change
MIN_CHANGE = 0.15  # across a cut
MIN_RATIO = 2.5  # of the change across a cut to the changes beside it
FLAT = 0.02  # deviation of grey below which a picture shows nothing
MAX_SIDE = 160  # pixels of decoded frames

Floats = NDArray[np.float32]


class ShotDetector:
    """Finds the cuts of one video, chunk by chunk. The result does not depend on the chunks."""

    def __init__(self) -> None:
        self._pictures: Floats = np.empty((0, (PIXELS // BLUR) ** 2), dtype=np.float32)
        self._first = 0  # number of the first of these frames

    def push(self, frames: NDArray[np.uint8]) -> list[int]:
        """Take the next frames (n, H, W, 3); return the numbers of frames that begin a shot.

        A cut is told when SIDE frames of the new shot are known, so the last ones of a chunk come with the
        next chunk.
        """
        to_grey, _ = fastest_kernels()
        self._pictures = np.concatenate([self._pictures, _standardize(to_grey(np.ascontiguousarray(frames)))])
        cuts = [self._first + place for place in find_cuts(self._pictures)]
        # keep what the next places need: SIDE frames before the first place that is not decided
        decided = max(0, len(self._pictures) - 2 * SIDE + 1)
        self._pictures, self._first = self._pictures[decided:].copy(), self._first + decided
        return cuts


def find_cuts(pictures: Floats) -> list[int]:
    """Return the places in standardised pictures (N, P) where a shot begins, SIDE from either end or more."""
    changes = 1 - np.einsum("np,np->n", pictures[1:], pictures[:-1])
    likely = np.flatnonzero(changes >= MIN_CHANGE) + 1
    return [
        place
        for place in likely.tolist()
        if SIDE <= place <= len(pictures) - SIDE and _is_cut(pictures[place - SIDE : place + SIDE])
    ]


def _is_cut(pictures: Floats) -> bool:
    """Whether a shot begins in the middle of 2 x SIDE pictures."""
    change = 1 - pictures @ pictures.T
    across = float(change[:SIDE, SIDE:].min())
    if across < MIN_CHANGE:
        return False
    beside = np.diagonal(change, offset=1)
    within = float(np.delete(beside, SIDE - 1).max())
    return across > MIN_RATIO * within


def _standardize(images: Floats) -> Floats:
    """Blur images (n, 40, 40), and give each mean 0 and length 1; an empty one gets length 0: (n, P)."""
    side = PIXELS // BLUR
    small = images.reshape(len(images), side, BLUR, side, BLUR).mean(axis=(2, 4)).reshape(len(images), -1)
    small -= small.mean(axis=1, keepdims=True)
    deviation = np.maximum(small.std(axis=1, keepdims=True), FLAT)
    standard: Floats = small / (deviation * side)
    return standard


def find_shots(video: str | os.PathLike[str]) -> list[int]:
    """Return the frames of a video at which a new shot begins; none if it has no cut."""
    return collect_cuts(chunk.frames for chunk in iter_frames(video, max_side=MAX_SIDE))


def collect_cuts(chunks: Iterable[NDArray[np.uint8]]) -> list[int]:
    """Return the frames at which a shot begins in a video that comes in chunks (n, H, W, 3)."""
    detector = ShotDetector()
    return [cut for frames in chunks for cut in detector.push(frames)]
