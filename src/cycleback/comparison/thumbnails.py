"""Small pictures of single frames, in the proportions of the video.

Shapes: H W pixels.
"""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.data import Dataset, FrameCache, VideoRecord
from cycleback.data.sources import image_paths, read_image
from cycleback.video import probe


@dataclass(frozen=True)
class Thumbnails:
    """Frames of a data set's videos, from the cache they were decoded into."""

    videos: Dataset
    frames: FrameCache

    def picture(self, video: str, frame: int, *, height: int = 96) -> NDArray[np.uint8]:
        """One frame (height, W, 3)."""
        record = self.videos[video]
        width = max(1, round(height * self._aspect(record)))
        image = _image(self.frames.load(record).frames[frame]).resize((width, height))
        return np.asarray(image)

    def data_url(self, video: str, frame: int, *, height: int = 96) -> str:
        """The same for the `src` of an `<img>`."""
        buffer = io.BytesIO()
        _image(self.picture(video, frame, height=height)).save(buffer, "JPEG", quality=85)
        return data_url(buffer.getvalue(), "image/jpeg")

    def _aspect(self, record: VideoRecord) -> float:
        """Width over height of what the cache shows; frames cropped to fit are shown as they are."""
        if self.frames.fit == "crop":
            return self.frames.size[1] / self.frames.size[0]
        if record.kind == "frames":
            height, width = read_image(image_paths(record.path)[0]).shape[:2]
            return float(width / height)
        info = probe(record.path)
        return info.width / info.height


def data_url(content: bytes, kind: str) -> str:
    """Content as an address that needs no file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _image(pixels: NDArray[np.uint8]) -> Any:
    from PIL import Image

    return Image.fromarray(np.asarray(pixels))
