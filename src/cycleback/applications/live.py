"""A stream of frames, embedded as they come: a video played, a file that still grows, a pipe, a camera."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cycleback.errors import CheckpointError, MissingDependencyError, VideoError
from cycleback.video import iter_frames
from cycleback.video.scaling import FrameScaler, cover_size, crop_centre
from cycleback.video.source import load_av

Frame = NDArray[np.uint8]
Features = Callable[[torch.Tensor], torch.Tensor]
POLL_S = 0.05


class CausalEncoder(Protocol):
    """What an encoder needs to embed a stream; `cycleback.Encoder` has it."""

    frame_size: tuple[int, int]
    fit: Any
    embedder: Any

    @property
    def device(self) -> torch.device:
        """Where it runs."""

    def features(self, frames: torch.Tensor) -> torch.Tensor:
        """Feature maps of frames."""

    def embed_stream(self, chunks: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Embeddings of features that arrive in pieces."""


def embed_live(
    encoder: CausalEncoder, frames: Iterable[Frame], *, features: Features | None = None
) -> Iterator[NDArray[np.float32]]:
    """Embeddings (D,), one for each frame uint8 (H, W, 3) as soon as it is there, from the past alone.

    Args:
        encoder: a trained one, which needs no look at the whole video.
        frames: at the encoder's size.
        features: a faster way to its feature maps, as `cycleback.models.fast_inference` makes one.
    """
    if encoder.embedder.standardize:  # measured: without its whole-video mean it places frames at random
        raise CheckpointError(
            "an encoder that is not trained compares whole videos only and cannot follow a stream. "
            "Train one: cycleback train VIDEOS -o RUN"
        )
    look = features or encoder.features
    with torch.inference_mode():
        maps = (look(_images(frame).to(encoder.device)).float() for frame in frames)
        for chunk in encoder.embed_stream(maps):
            yield chunk[0].float().cpu().numpy()


def read_source(
    source: str, encoder: CausalEncoder, *, real_time: bool = False, patience: float = 0.0
) -> Iterator[Frame]:
    """Frames uint8 (H, W, 3) of a source, at the size the encoder wants.

    Args:
        source: a video file, "-" for a video on standard input, or the number of a camera.
        real_time: play a video file at its own speed, not as fast as can be.
        patience: seconds to wait for a file to grow; 0 for a file that is complete. A growing file must be of
            a kind that can be read from its start (.ts, .mkv, fragmented .mp4).
    """
    if source == "-":
        return _piped(sys.stdin.buffer, encoder, "standard input")
    if source.isdigit() and not Path(source).exists():
        return _camera(int(source), encoder)
    if patience > 0:
        return _growing(Path(source), encoder, patience)
    return _played(source, encoder, real_time=real_time)


def _played(source: str, encoder: CausalEncoder, *, real_time: bool) -> Iterator[Frame]:
    started = time.monotonic()
    for chunk in iter_frames(source, size=encoder.frame_size, fit=encoder.fit, chunk_frames=1):
        if real_time:
            time.sleep(max(0.0, started + float(chunk.times[0]) - time.monotonic()))
        yield chunk.frames[0]


def _growing(path: Path, encoder: CausalEncoder, patience: float) -> Iterator[Frame]:
    if not path.is_file():
        raise VideoError(f"{path} does not exist; start the recording first, or check the spelling")
    with path.open("rb") as file:
        yield from _piped(PatientFile(file, patience), encoder, str(path))


class PatientFile:
    """A file that may still be written: at its end, waits for more."""

    def __init__(self, file: BinaryIO, patience: float) -> None:
        """Give up when nothing came for `patience` seconds."""
        self._file, self._patience = file, patience

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; none when the file stopped growing."""
        deadline = time.monotonic() + self._patience
        while not (found := self._file.read(size)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if not found:
            self._patience = 0.0  # readers ask again and again at the end
        return found


def _piped(file: Any, encoder: CausalEncoder, name: str) -> Iterator[Frame]:
    """Frames of a video that is read from its start to its end, each as soon as its bytes are there."""
    av = load_av("reading video")
    try:
        with av.open(file, options={"probesize": "100000"}) as container:
            stream = container.streams.video[0]
            stream.thread_type = "NONE"  # threads hold frames back
            scaler = FrameScaler(
                encoder.frame_size, encoder.fit, aspect=float(stream.sample_aspect_ratio or 1)
            )
            for frame in container.decode(stream):
                picture = scaler.buffer(1, frame)
                scaler.write(frame, picture[0])
                yield picture[0]
    except (av.error.FFmpegError, IndexError) as error:
        message = f"cannot follow {name}: {error}. It must be a video that can be read from its start"
        raise VideoError(f"{message} (.ts, .mkv, fragmented .mp4).") from error


def _camera(number: int, encoder: CausalEncoder) -> Iterator[Frame]:
    try:
        cv2: Any = import_module("cv2")
    except ImportError as error:
        raise MissingDependencyError("a camera needs OpenCV: pip install opencv-python-headless") from error
    camera = cv2.VideoCapture(number)
    try:
        if not camera.isOpened():
            raise VideoError(f"no camera {number}: connect one, or give a video file")
        size = encoder.frame_size
        while (answer := camera.read())[0]:
            target = cover_size(answer[1].shape[:2], size) if encoder.fit == "crop" else size
            scaled = cv2.resize(answer[1], target[::-1], interpolation=cv2.INTER_AREA)
            yield crop_centre(cv2.cvtColor(scaled, cv2.COLOR_BGR2RGB), size)
    finally:
        camera.release()


def _images(frame: Frame) -> torch.Tensor:
    """One frame (H, W, 3) as a batch (1, 3, H, W)."""
    return torch.from_numpy(np.array(frame)).movedim(-1, 0)[None]
