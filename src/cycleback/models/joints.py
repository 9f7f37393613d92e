"""The joints of a body, and what finds them in images. It needs no torch.

Shapes: n images, S size of an image.
"""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Variant = Literal["thunder", "lightning"]

JOINTS = (
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
)
IMAGE_SIZES: dict[Variant, int] = {"thunder": 256, "lightning": 192}


class JointFinder(Protocol):
    """A network that finds the joints of the most central person of each image."""

    image_size: int  # S
    key: str  # names what it finds, in the cache

    def find(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Find key points (n, 17, 3) in images (n, S, S, 3): y, x in [0, 1] of the image, score."""
