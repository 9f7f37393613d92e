"""Run the networks of an exported model with onnxruntime.

Shapes: N frames of a video, n frames of a chunk, H W pixels, S size of an image, F feature channels, h w
feature map, V size of a vector, D embedding size.
"""

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.data import FrameCache
from cycleback.embeddings.features import FeatureCache
from cycleback.errors import CheckpointError, DataError, MissingDependencyError
from cycleback.exported.model import AGAIN, BASE_FILE, EMBEDDER_FILE, POSE_FILE, ExportedModel
from cycleback.models.joints import IMAGE_SIZES, JOINTS

Floats = NDArray[np.float32]

CHUNK_FRAMES = 64  # features that an embedder sees at a time
MAX_ATTENDED = 8192  # frames of a video that an embedder sees at once: memory grows with their square
PIXELS_PER_BATCH = 16 * 112 * 112  # that a network of images sees at a time: it fits the processor's cache


class Network:
    """One ONNX file with one input and one output, both float32."""

    def __init__(self, model: ExportedModel, name: str) -> None:
        self._place = model.folder / name
        self._session = _open_session(model.read_network(name), str(self._place))
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if len(inputs) != 1 or len(outputs) != 1 or inputs[0].type != "tensor(float)":
            raise CheckpointError(f"{self._place} must take and give one array of float32{AGAIN}")
        self._input = inputs[0].name
        self.shape: tuple[int | str, ...] = tuple(outputs[0].shape)  # of the output; free axes are names

    def run(self, array: NDArray[Any], shape: tuple[int | str, ...]) -> Floats:
        """Return the output of `shape`; anything else is refused."""
        values = np.ascontiguousarray(array, dtype=np.float32)
        try:
            output: Floats = np.asarray(self._session.run(None, {self._input: values})[0])
        except Exception as error:  # onnxruntime has a type for each reason
            reason = str(error).strip().splitlines()[0][:200]
            raise CheckpointError(f"{self._place} cannot compute {values.shape}: {reason}{AGAIN}") from error
        if output.shape != shape or output.dtype != np.float32:
            raise CheckpointError(f"{self._place} gives {output.shape}, expected {shape}{AGAIN}")
        return output


def _open_session(content: bytes, place: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependencyError(
            "an exported model needs onnxruntime: pip install 'cycleback[onnx]', or pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its messages are in the errors
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():
        options.intra_op_num_threads = int(threads)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a type for each reason
        reason = str(error).strip().splitlines()[0][:200]
        raise CheckpointError(
            f"{place} is not an ONNX file that onnxruntime runs: {reason}{AGAIN}"
        ) from error


def to_pixels(images: NDArray[np.uint8]) -> Floats:
    """Lay out images (n, H, W, 3) as networks take them: (n, 3, H, W), from 0 to 255."""
    return np.moveaxis(images, -1, 1).astype(np.float32)


class ExportedMaps(FeatureCache):
    """Features (N, F, h, w) of the base of an exported model, kept like those of torch."""

    def __init__(self, frames: FrameCache, model: ExportedModel) -> None:
        self.frames, self.model = frames, model
        self.precision = "float32"
        self._key = f"onnx-{model.files[BASE_FILE][:16]}"

    @cached_property
    def _network(self) -> Network:
        return Network(self.model, BASE_FILE)

    def compute(self, frames: NDArray[np.uint8]) -> Iterator[Floats]:
        """Yield the maps (n, F, h, w) of frames (N, H, W, 3), some at a time."""
        size = max(PIXELS_PER_BATCH // (frames.shape[1] * frames.shape[2]), 1)
        for start in range(0, len(frames), size):
            images = to_pixels(frames[start : start + size])
            yield self._network.run(images, (len(images), *self._map_shape))

    @cached_property
    def _map_shape(self) -> tuple[int | str, ...]:
        """F, h, w of what the base gives; the maps of a stream are averaged and may have any size."""
        if not self.model.streams:
            return self.model.feature_shape
        return (self.model.streams["appearance"].size, *self._network.shape[2:])

    def _extract_maps(self, frames: NDArray[np.uint8]) -> Iterator[NDArray[np.float16]]:
        for maps in self.compute(frames):
            with np.errstate(over="ignore"):
                yield maps.astype(np.float16)


class ExportedJoints:
    """The network of the stream `pose`: what `JointFinder` asks for."""

    image_size = IMAGE_SIZES["lightning"]

    def __init__(self, model: ExportedModel) -> None:
        self.model = model
        self.key = f"onnx-{model.files[POSE_FILE][:16]}"

    @cached_property
    def _network(self) -> Network:
        return Network(self.model, POSE_FILE)

    def find(self, images: NDArray[np.uint8]) -> Floats:
        """Find key points (n, 17, 3) in images (n, S, S, 3)."""
        size = max(PIXELS_PER_BATCH // self.image_size**2, 1)
        parts = [to_pixels(images[start : start + size]) for start in range(0, len(images), size)]
        return np.concatenate([self._network.run(part, (len(part), len(JOINTS), 3)) for part in parts])


class ExportedEmbedder:
    """The embedder: features of a video, in chunks, to embeddings."""

    def __init__(self, model: ExportedModel) -> None:
        self.model, self._network = model, Network(model, EMBEDDER_FILE)

    def embed(self, features: NDArray[Any], name: str = "the video") -> Floats:
        """Map features (N, F, h, w), which may be on disk, to embeddings (N, D); `name` is for errors."""
        size = CHUNK_FRAMES
        if self.model.mixes_frames:
            size = MAX_ATTENDED
            if len(features) > size:
                got = f"{len(features):,} frames, and this exported model compares at most {size:,} at once"
                raise DataError(f"{name} has {got}. Cut it, or export a run of another embedder.")
        parts = []
        for start in range(0, len(features), size):
            first = max(start - self.model.reach, 0)  # the context of the first frame
            chunk = np.asarray(features[first : start + size], dtype=np.float32)[None]
            shape = (1, chunk.shape[1], self.model.embedding_size)
            parts.append(self._network.run(chunk, shape)[0, start - first :])
        return np.concatenate(parts)
