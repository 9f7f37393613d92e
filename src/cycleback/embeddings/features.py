"""Feature maps of a frozen base, computed once per frame and kept on disk.

With a frozen base the maps never change, so training touches only the embedder: minutes become seconds.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings.batches import CHUNK_FRAMES
from cycleback.files import atomic_file
from cycleback.models import Base, Precision, base_fingerprint, default_precision, fast_inference
from cycleback.progress import Counter, ignore

KEYS = {("cpu", "float32"): "", ("cuda", "bfloat16"): "-bfloat16"}  # the two usual kinds of maps


class FeatureCache:
    """Feature maps (N, F, h, w) float16 by video, written atomically. The files are safe to delete.

    Args:
        frames: the cache of decoded frames; maps are kept beside them.
        base: copied.
        device: where the base runs; the CPU by default.
        precision: of the base; None: see `default_precision`. The maps are rounded to 16 bits in any case.
    """

    def __init__(
        self,
        frames: FrameCache,
        base: Base,
        *,
        device: torch.device | None = None,
        precision: Precision | None = None,
    ) -> None:
        self.frames = frames
        self.device = device or torch.device("cpu")
        self.precision: Precision = precision or default_precision(self.device)
        kind = (self.device.type, self.precision)
        self._key = base_fingerprint(base) + KEYS.get(kind, f"-{'-'.join(kind)}")
        self._base = fast_inference(copy.deepcopy(base).to(self.device), precision=self.precision)

    def load(self, record: VideoRecord, *, progress: Counter = ignore) -> NDArray[np.float16]:
        """Open the maps of one video, memory-mapped; they are computed on first use.

        Args:
            progress: called with (frames done, frames of the video).
        """
        cached = self.frames.load(record)
        path = self.frames.folder(record) / f"features-{self._key}.npy"
        if path.exists():
            progress(cached.num_frames, cached.num_frames)
        else:
            self._write(path, cached.frames, progress)
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]

    def fill(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> None:
        """Compute the maps of all records that have none. `progress` counts the frames of all records."""
        total, before = sum(self.frames.load(record).num_frames for record in records), 0

        def count(done: int, _: int) -> None:
            progress(before + done, total)

        for record in records:
            before += len(self.load(record, progress=count))

    def extract(self, frames: NDArray[np.uint8]) -> Tensor:
        """Compute the maps (n, F, h, w) of frames (n, H, W, 3)."""
        images = torch.from_numpy(np.array(frames)).to(self.device).movedim(-1, 1)
        features: Tensor = self._base(images)
        return features

    def _write(self, path: Path, frames: NDArray[np.uint8], progress: Counter) -> None:
        maps: NDArray[np.float16] | None = None
        with atomic_file(path, overwrite=True) as draft:  # another process may have been faster
            for start in range(0, len(frames), CHUNK_FRAMES):
                features = self.extract(frames[start : start + CHUNK_FRAMES]).half().cpu().numpy()
                if maps is None:
                    shape = (len(frames), *features.shape[1:])
                    maps = np.lib.format.open_memmap(draft, mode="w+", dtype=np.float16, shape=shape)
                maps[start : start + len(features)] = features
                progress(start + len(features), len(frames))
            del maps
