"""The similarity of two videos as an image of tiles, computed from their embeddings when they are asked for.

Level 0 has one pixel per pair of frames, the frame of a to the right and the frame of b downwards. A pixel of
level k stands for 2^k x 2^k pairs and shows the pair in their middle. No more than one tile is ever computed
at once, so two videos of an hour need no more memory than two of a second.

Shapes: T frames of video a, S frames of video b, D embedding size, w h pixels of a tile.
"""

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import squared_distances
from cycleback.alignment.distances import spread_frames
from cycleback.errors import UserError

TILE = 256  # pixels
SCALE_FRAMES = 512  # of each video, from which the typical distance is taken
Embeddings = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Similarity:
    """How near each frame of a is to each frame of b, from 0 (far) to 1 (equal)."""

    a: Embeddings  # (T, D)
    b: Embeddings  # (S, D)
    scale: float  # the median of the squared distances: there the similarity is 1 / e

    @classmethod
    def measure(cls, a: Embeddings, b: Embeddings) -> "Similarity":
        """Find the typical distance of two videos from evenly spread frames."""
        few_a, few_b = (video[spread_frames(len(video), SCALE_FRAMES)] for video in (a, b))
        return cls(a, b, float(np.median(squared_distances(few_a, few_b))))

    @property
    def levels(self) -> int:
        """The number of levels; the last one is a single tile."""
        longest = max(len(self.a), len(self.b))
        return 1 + max(0, int(np.ceil(np.log2(longest / TILE))))

    def tile(self, level: int, x: int, y: int) -> NDArray[np.uint8]:
        """Return the pixels (h, w) of one tile; those at the right and lower border are smaller."""
        if not 0 <= level < self.levels:
            raise UserError(f"no level {level} of tiles; expected 0 to {self.levels - 1}")
        columns, rows = (shown_frames(len(v), level, n) for v, n in ((self.a, x), (self.b, y)))
        if not len(columns) or not len(rows):
            raise UserError(f"no tile {x}, {y} in level {level} of {len(self.a)} x {len(self.b)} frames")
        distances = squared_distances(self.b[rows], self.a[columns])  # (h, w)
        if self.scale <= 0:
            return np.full(distances.shape, 255, dtype=np.uint8)
        pixels: NDArray[np.uint8] = np.rint(255 * np.exp(-distances / self.scale)).astype(np.uint8)
        return pixels


def shown_frames(num_frames: int, level: int, tile: int) -> NDArray[np.int64]:
    """Return the frames that the pixels of one tile show along one axis, at most `TILE` of them."""
    step = 1 << level
    pixels = np.arange(tile * TILE, min((tile + 1) * TILE, -(-num_frames // step)))
    return np.minimum(pixels * step + step // 2, num_frames - 1)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode grey pixels (h, w)."""
    from PIL import Image

    with io.BytesIO() as file:
        Image.fromarray(pixels).save(file, "png", compress_level=1)  # loopback: speed counts, not size
        return file.getvalue()
