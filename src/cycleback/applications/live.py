"""Follow an action while it happens: read and embed frames as they come, and place each in a reference.

Placing is dynamic time warping that sees only the past. It keeps one row of the accumulated cost, one value
per frame of the reference, so memory and time per frame do not grow with the stream. The position is the end
of the cheapest path so far: the alignment is open at its end, and later frames never change earlier answers.

Shapes: S frames of the reference, D embedding size, H W pixels.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import squared_distances
from cycleback.alignment.dtw import extend_row
from cycleback.data import event_frames, read_dataset
from cycleback.errors import CheckpointError, UserError, VideoError
from cycleback.video import frame_times, iter_frames
from cycleback.video.scaling import FrameScaler
from cycleback.video.source import check_file, load_av, open_video, reading_options

if TYPE_CHECKING:
    import torch

    from cycleback.models import Encoder

Frame = NDArray[np.uint8]
Features = Callable[["torch.Tensor"], "torch.Tensor"]
POLL_S = 0.05
CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}")}  # format and device name
MAX_COMPARED = 500  # frames of the reference whose distances are compared


@dataclass(frozen=True)
class Position:
    """Where the stream is."""

    frame: int  # of the reference
    progress: float  # in [0, 1]
    # squared distance to that frame, over the median distance between frames of the reference. About 1
    # means that the picture is no more like this moment than any two moments are alike.
    deviation: float
    phase: int | None  # number of key events passed; None where the reference is not labelled


class Follower:
    """Places one embedding after another in a reference; never goes back.

    Examples:
        >>> follower = Follower([[0.0], [1.0], [2.0]])
        >>> [follower.push([value]).frame for value in (0.1, 0.2, 0.9, 2.0)]
        [0, 0, 1, 2]
    """

    def __init__(self, reference: ArrayLike, *, events: Mapping[str, int] | None = None) -> None:
        """Follow `reference` (S, D); `events` are its key events, by frame."""
        self.reference = np.asarray(reference, dtype=np.float64)
        if self.reference.ndim != 2 or len(self.reference) < 2:
            raise ValueError(f"the reference must be (S >= 2, D), got {self.reference.shape}")
        self.event_names = tuple(sorted(events, key=lambda name: events[name])) if events else ()
        self._events = None if not events else np.sort(list(events.values()))
        self._median_distance = _median_distance(self.reference)
        self._cost: NDArray[np.float64] | None = None
        self._frame = 0

    def push(self, embedding: ArrayLike) -> Position:
        """Return the position after one more frame, `embedding` (D,)."""
        row = np.asarray(embedding, dtype=np.float64)
        distances = squared_distances(row[None], self.reference)[0]  # (S,)
        self._cost = extend_row(self._cost, distances)
        self._frame = max(self._frame, int(self._cost.argmin()))
        phase = None if self._events is None else np.searchsorted(self._events, self._frame, side="right")
        return Position(
            frame=self._frame,
            progress=self._frame / (len(self.reference) - 1),
            deviation=float(distances[self._frame]) / self._median_distance,
            phase=None if phase is None else int(phase),
        )


def _median_distance(reference: NDArray[np.float64]) -> float:
    """Median squared distance between different frames of the reference."""
    some = reference[:: -(-len(reference) // MAX_COMPARED)]
    distances = squared_distances(some, some)[np.triu_indices(len(some), k=1)]
    return float(np.median(distances)) or 1.0


def build_follower(encoder: "Encoder", reference: Path, *, features: Features | None = None) -> Follower:
    """Build a follower of a video file, with its key events from a `labels.csv` beside it, if any."""
    events = read_events(reference)
    rows = list(embed_live(encoder, read_source(str(reference), encoder), features=features))
    if len(rows) < 2:
        raise UserError(f"the reference {reference} has {len(rows)} frame: give one that shows the action")
    return Follower(rows, events=events)


def follow_stream(
    encoder: "Encoder", frames: Iterable[Frame], follower: Follower, *, features: Features | None = None
) -> Iterator[tuple[Position, float]]:
    """Yield the position of each frame as soon as it is known, and its latency in milliseconds."""
    arrived = 0.0

    def stamp() -> Iterator[Frame]:
        nonlocal arrived
        for frame in frames:
            arrived = time.perf_counter()
            yield frame

    for embedding in embed_live(encoder, stamp(), features=features):
        position = follower.push(embedding)
        yield position, 1000 * (time.perf_counter() - arrived)


def embed_live(
    encoder: "Encoder", frames: Iterable[Frame], *, features: Features | None = None
) -> Iterator[NDArray[np.float32]]:
    """Yield one embedding (D,) per frame uint8 (H, W, 3) as soon as the frame arrives, from the past alone.

    Args:
        encoder: a trained one, which need not see the whole video.
        frames: at the encoder's size.
        features: a faster way to compute feature maps, from `cycleback.models.fast_inference`.
    """
    import torch

    from cycleback.models.inference.cpu import one_thread

    if encoder.needs_whole_videos:  # measured: without its whole-video mean it places frames at random
        raise CheckpointError(
            "this encoder needs whole videos and cannot follow a stream. "
            "Train one that does not: cycleback train VIDEOS --recipe appearance -o RUN"
        )
    extract = features or encoder.features
    with torch.inference_mode(), one_thread():  # threads that wait for a busy core delay single frames
        images = (torch.from_numpy(np.array(frame)).movedim(-1, 0)[None] for frame in frames)  # (1, 3, H, W)
        maps = (extract(image.to(encoder.device)).float() for image in images)
        for chunk in encoder.embed_stream(maps):
            yield chunk[0].float().cpu().numpy()


def read_source(
    source: str, encoder: "Encoder", *, real_time: bool = False, patience: float = 0.0
) -> Iterator[Frame]:
    """Yield the frames uint8 (H, W, 3) of a source, at the size the encoder wants.

    A file or a camera that cannot be opened is refused at once, before the first frame is asked for.

    Args:
        source: a video file, "-" for a video on standard input, or the number of a camera.
        real_time: play a video file at its own speed instead of as fast as possible.
        patience: seconds to wait for a file to grow; 0 for a complete file. A growing file must be readable
            from its start (.ts, .mkv, fragmented .mp4).
    """
    if source == "-":
        return _read_pipe(sys.stdin.buffer, encoder, "standard input")
    if source.isdigit() and not Path(source).exists():
        address, format = _find_camera(source)
        with _open_stream(address, f"camera {source}", format=format):
            pass
        return _read_pipe(address, encoder, f"camera {source}", format=format)
    if patience > 0:
        if not Path(source).is_file():
            raise VideoError(f"{source} does not exist; start the recording first, or check the spelling")
        return _read_growing(Path(source), encoder, patience)
    with open_video(check_file(source), threaded=False):
        pass
    return _read_file(source, encoder, real_time=real_time)


def read_events(reference: Path) -> dict[str, int]:
    """Read the key events of a video by frame; none without labels beside it."""
    if not (reference.parent / "labels.csv").is_file():
        return {}
    same = [each for each in read_dataset(reference.parent) if each.path.resolve() == reference.resolve()]
    return dict(event_frames(same[0], frame_times(reference))) if same else {}


def _read_file(source: str, encoder: "Encoder", *, real_time: bool) -> Iterator[Frame]:
    started = time.monotonic()
    for chunk in iter_frames(source, size=encoder.frame_size, fit=encoder.fit, chunk_frames=1):
        if real_time:
            time.sleep(max(0.0, started + float(chunk.times[0]) - time.monotonic()))
        yield chunk.frames[0]


def _read_growing(path: Path, encoder: "Encoder", patience: float) -> Iterator[Frame]:
    with path.open("rb") as file:
        yield from _read_pipe(PatientFile(file, patience), encoder, str(path))


class PatientFile:
    """A file that may still be written: at its end, it waits for more."""

    def __init__(self, file: BinaryIO, patience: float) -> None:
        """Give up when nothing came for `patience` seconds."""
        self._file, self._patience = file, patience

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes; none when the file stopped growing."""
        deadline = time.monotonic() + self._patience
        while not (found := self._file.read(size)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if not found:
            self._patience = 0.0  # readers ask several times at the end
        return found


def _find_camera(number: str) -> tuple[str, str]:
    """Return the address and the format of a camera on this system."""
    if sys.platform not in CAMERAS:
        raise VideoError(f"cannot open camera {number} on {sys.platform}. Pipe its video to standard input.")
    format, device = CAMERAS[sys.platform]
    return device.format(number), format


def _read_pipe(file: Any, encoder: "Encoder", name: str, *, format: str | None = None) -> Iterator[Frame]:
    """Yield the frames of a video that is read from start to end, each as soon as its bytes arrive."""
    with _open_stream(file, name, format=format) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"  # threads hold frames back
        scaler = FrameScaler(encoder.frame_size, encoder.fit, aspect=float(stream.sample_aspect_ratio or 1))
        for frame in container.decode(stream):
            picture = scaler.buffer(1, frame)
            scaler.write(frame, picture[0])
            yield picture[0]


@contextmanager
def _open_stream(file: Any, name: str, *, format: str | None = None) -> Iterator[Any]:
    """Open a video that is read from start to end; errors in the block name it, too."""
    av = load_av("reading video")
    options = {"probesize": "100000"} | ({} if format else reading_options(av))
    try:
        with av.open(file, format=format, options=options) as container:
            yield container
    except (av.error.FFmpegError, IndexError) as error:
        if format:
            raise VideoError(f"cannot read {name}: {error}. Connect it, or pass a video file.") from error
        message = f"cannot follow {name}: {error}. It must be a video that can be read from its start"
        raise VideoError(f"{message} (.ts, .mkv, fragmented .mp4).") from error
