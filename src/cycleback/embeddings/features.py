"""Feature maps of a frozen base, computed once a frame and kept on disk.

With a frozen base the maps never change, so training touches only the embedder: minutes become seconds.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings.passes import CHUNK_FRAMES
from cycleback.errors import DataError
from cycleback.models import Base, base_fingerprint, fast_inference

OnFrames = Callable[[int], None]


def _silent(frames_done: int) -> None:
    """The progress of a caller who does not listen."""


class FeatureCache:
    """Feature maps (N, F, h, w) float16 by video; written whole or not at all, and safe to delete."""

    def __init__(self, frames: FrameCache, base: Base, *, device: torch.device | None = None) -> None:
        self.frames = frames
        self.device = device or torch.device("cpu")
        is_on_gpu = self.device.type == "cuda"
        self._key = base_fingerprint(base) + ("-bfloat16" if is_on_gpu else "")
        base = copy.deepcopy(base).to(self.device)
        self._extract = fast_inference(base, precision="bfloat16" if is_on_gpu else "float32")

    def load(self, record: VideoRecord, *, on_frames: OnFrames = _silent) -> NDArray[np.float16]:
        """The maps of one video, memory-mapped; computed on first use and kept beside its frames."""
        cached = self.frames.load(record)
        path = self.frames.folder(record) / f"features-{self._key}.npy"
        if path.exists():
            on_frames(cached.num_frames)
        else:
            self._write(path, cached.frames, on_frames)
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]

    def extract(self, frames: NDArray[np.uint8]) -> Tensor:
        """Maps (n, F, h, w) of frames (n, H, W, 3)."""
        images = torch.from_numpy(np.array(frames)).to(self.device).movedim(-1, 1)
        features: Tensor = self._extract(images)
        return features

    def _write(self, path: Path, frames: NDArray[np.uint8], on_frames: OnFrames) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        maps: NDArray[np.float16] | None = None
        try:
            for start in range(0, len(frames), CHUNK_FRAMES):
                features = self.extract(frames[start : start + CHUNK_FRAMES]).half().cpu().numpy()
                if maps is None:
                    shape = (len(frames), *features.shape[1:])
                    maps = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float16, shape=shape)
                maps[start : start + len(features)] = features
                on_frames(len(features))
            del maps
            os.replace(temporary, path)
        except OSError as error:
            reason = error.strerror or error
            raise DataError(
                f"cannot keep feature maps in {path.parent}: {reason}. Free some space."
            ) from None
        finally:
            temporary.unlink(missing_ok=True)
