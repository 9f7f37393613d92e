"""Streams: what a frame looks like, how it moves, and the pose of the person in it, as vectors side by side.

Each stream turns raw measurements of a whole video into vectors that are normalised over that video: they
are centred, and their mean squared length is 1. So videos of different scenes, cameras and persons are
comparable, and one weight per stream decides how much it counts.

Shapes: N frames of a video, F feature channels, h w feature map, V size of a vector.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cycleback.models.base import Base

Stream = Literal["appearance", "motion", "pose"]
Floats = NDArray[np.float32]

STREAMS: tuple[Stream, ...] = ("appearance", "motion", "pose")
SCALES: Mapping[str, float] = {"appearance": 0.25, "motion": 1.0, "pose": 0.5}
"""How much each stream counts where nothing is known about the videos."""
FORMULAS = 1  # part of the fingerprint: raise it when the vectors of a stream change

FPS = 30.0  # the constants below count frames at this rate; faster videos use as many seconds
MIN_DEVIATION = 1e-6  # a video whose vectors vary less is constant
MAX_SILENT = 0.5  # share of silent videos above which a stream is left out

APPEARANCE_GRID = 3  # cells per side

MOTION_GRIDS = (1, 2, 4, 8)  # cells per side
MOTION_DIRECTIONS, MOTION_CELLS = 4, 8
MOTION_GAIN = 20.0  # log(1 + gain * motion): fast motion must not hide slow motion
MOTION_SIGMA = 1.0  # frames, of the Gaussian over time
LAG = 4  # frames between a frame and the earlier and later ones seen with it
MOTION_LAG_WEIGHT = 0.7
MOTION_SIZE = 3 * MOTION_DIRECTIONS * sum(side**2 for side in MOTION_GRIDS)

JOINTS = slice(5, 17)  # shoulders, elbows, wrists, hips, knees, ankles; the face before them tells little
POSE_SIGMA = 1.5  # frames, of the Gaussian over time
POSE_VELOCITY_WEIGHT = 1.5
MIN_JOINT_SCORE = 0.1  # mean over the video: a joint below it is never seen
TORSO = [5, 6, 11, 12]  # shoulders and hips
MIN_TORSO_SCORE, MIN_PERSON_SHARE = 0.3, 0.3  # see `has_person`
POSE_SIZE = 2 * 2 * (JOINTS.stop - JOINTS.start)


def appearance_vectors(maps: NDArray[np.floating[Any]], times: NDArray[np.float64]) -> Floats:
    """Return the feature maps (N, F, h, w) of a video, averaged over a grid of cells: (N, V)."""
    cells = torch.nn.functional.adaptive_avg_pool2d(
        torch.from_numpy(np.asarray(maps, dtype=np.float32)), APPEARANCE_GRID
    )
    return normalize_video(cells.flatten(1).numpy())


def motion_vectors(motion: NDArray[np.floating[Any]], times: NDArray[np.float64]) -> Floats:
    """Return the motion (N, 4, 8, 8) of a video at several resolutions: (N, V).

    Each frame is seen with an earlier and a later one. `times` (N,) are in seconds.
    """
    sigma, lag = MOTION_SIGMA * _rate_factor(times), round(LAG * _rate_factor(times))
    grids = []
    for side in MOTION_GRIDS:
        cells = np.log1p(MOTION_GAIN * _average_cells(np.asarray(motion, dtype=np.float32), side))
        smooth = smooth_over_time(cells, sigma)
        smooth = (smooth - smooth.mean(axis=0)) / (smooth.std(axis=0) + 1e-6)
        grids.append(smooth / np.sqrt(smooth.shape[1]))
    now = np.concatenate(grids, axis=1)
    around = [MOTION_LAG_WEIGHT * _shift(now, offset) for offset in (-lag, lag)]
    return normalize_video(np.concatenate([now, *around], axis=1))


def pose_vectors(poses: Floats, times: NDArray[np.float64]) -> Floats:
    """Return positions and velocities of the body's joints: (N, V); all zeros if there is no person.

    `poses` (N, 17, 3) are y, x and score. Where the person stands and how large the person is do not matter,
    because the vectors are normalised over the video. `times` (N,) are in seconds.
    """
    factor = _rate_factor(times)
    places, scores = poses[:, JOINTS, :2], poses[:, JOINTS, 2:]  # (N, J, 2), (N, J, 1)
    if not has_person(poses):
        return np.zeros((len(poses), POSE_SIZE), dtype=np.float32)
    is_seen = scores.mean(axis=0) >= MIN_JOINT_SCORE  # (J, 1)
    smooth = _smooth_places(places, scores, POSE_SIGMA * factor)
    smooth = np.where(is_seen, smooth, 0.0).reshape(len(poses), -1)
    lag = round(LAG * factor)
    velocity = POSE_VELOCITY_WEIGHT * (_shift(smooth, lag) - _shift(smooth, -lag))
    return normalize_video(np.concatenate([smooth, velocity], axis=1))


def has_person(poses: Floats) -> bool:
    """Whether a video shows a person: the torso is clear in a share of the frames of `poses` (N, 17, 3)."""
    return bool((poses[:, TORSO, 2].mean(axis=1) >= MIN_TORSO_SCORE).mean() >= MIN_PERSON_SHARE)


VECTORS: Mapping[str, Callable[[Any, NDArray[np.float64]], Floats]] = {
    "appearance": appearance_vectors,
    "motion": motion_vectors,
    "pose": pose_vectors,
}


def normalize_video(vectors: NDArray[np.floating[Any]]) -> Floats:
    """Scale the vectors (N, V) of a video to mean 0 and mean squared length 1; all zeros if constant."""
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    deviation = np.sqrt((centred**2).sum() / len(centred))
    if deviation <= MIN_DEVIATION:
        return np.zeros(vectors.shape, dtype=np.float32)
    return np.asarray(centred / deviation, dtype=np.float32)


def smooth_over_time(values: Floats, sigma: float) -> Floats:
    """Filter values (N, ...) over time with a Gaussian of `sigma` frames; the ends are mirrored."""
    radius = int(4 * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    taps = (taps / taps.sum()).astype(np.float32)
    mirrored = np.pad(values, [(radius, radius), *[(0, 0)] * (values.ndim - 1)], mode="symmetric")
    smooth = np.zeros_like(values)
    for offset, weight in enumerate(taps):
        smooth += weight * mirrored[offset : offset + len(values)]
    return smooth


def _smooth_places(places: Floats, scores: Floats, sigma: float) -> Floats:
    """Smooth places (N, J, 2) weighted by scores (N, J, 1); a joint out of sight is at its median place."""
    fallback = 1e-3
    weights = smooth_over_time(scores, sigma) + fallback
    usual = np.median(places, axis=0)
    return (smooth_over_time(places * scores, sigma) + fallback * usual) / weights  # type: ignore[no-any-return]


def _rate_factor(times: NDArray[np.float64]) -> float:
    """Return the frame rate over 30 frames per second, at least 1."""
    span = float(times[-1] - times[0])
    return max(1.0, (len(times) - 1) / span / FPS) if span > 0 else 1.0


def _shift(values: Floats, offset: int) -> Floats:
    """Return for each frame the values `offset` frames later; those of the last frame beyond the end."""
    return values[np.clip(np.arange(len(values)) + offset, 0, len(values) - 1)]


def _average_cells(motion: Floats, side: int) -> Floats:
    """Average the cells of motion (N, 4, 8, 8) over a coarser grid: (N, 4 * side * side)."""
    width = MOTION_CELLS // side
    blocks = motion.reshape(len(motion), MOTION_DIRECTIONS, side, width, side, width)
    means: Floats = blocks.mean(axis=(3, 5)).reshape(len(motion), -1)
    return means


def weigh_streams(videos: Iterable[Mapping[str, Floats]]) -> dict[str, float]:
    """Choose the weight of each stream for some videos, without labels.

    A stream that most videos lack gets the weight 0, such as pose where no person is seen.

    Args:
        videos: for each video its vectors (N, V) by stream.
    """
    silent: dict[str, list[bool]] = {}
    for parts in videos:
        for stream, vectors in parts.items():
            silent.setdefault(stream, []).append(not vectors.any())
    return {
        stream: 0.0 if np.mean(silences) > MAX_SILENT else SCALES[stream]
        for stream, silences in silent.items()
    }


class FusedBase(Base):
    """Streams side by side, as features (n, V, 1, 1). It needs whole videos.

    What a frozen network sees is normalised over the video, like the other streams. A network that is trained
    sees only the frames of a batch, so BatchNorm normalises its features.

    Args:
        streams: any of STREAMS; their order does not matter.
        appearance: the network of the stream "appearance"; None without that stream.
        is_frozen: whether the network is never trained.
    """

    needs_whole_videos = True
    weights: Tensor  # (number of streams,), of each stream in order

    def __init__(
        self, streams: Iterable[str], appearance: Base | None = None, *, is_frozen: bool = True
    ) -> None:
        super().__init__()
        wanted = set(streams)
        self.streams = tuple(stream for stream in STREAMS if stream in wanted)
        if not wanted or wanted - set(STREAMS):
            raise ValueError(f"streams must be some of {', '.join(STREAMS)}, got {sorted(wanted)}")
        if ("appearance" in wanted) != (appearance is not None):
            raise ValueError("the stream 'appearance' needs a network, and only that stream takes one")
        self.appearance = appearance
        self.is_frozen = is_frozen or appearance is None
        sizes = {"motion": MOTION_SIZE, "pose": POSE_SIZE}
        if appearance is not None:
            sizes["appearance"] = appearance.channels * APPEARANCE_GRID**2
        self.sizes: dict[str, int] = {stream: sizes[stream] for stream in self.streams}  # V of each
        self.channels, self.stride = sum(self.sizes.values()), 1
        self.register_buffer("weights", torch.tensor([SCALES[stream] for stream in self.streams]))
        self.norm = None
        if not self.is_frozen:
            self.norm = nn.BatchNorm1d(self.sizes["appearance"], affine=False)

    @property
    def stream_weights(self) -> dict[str, float]:
        """The weight of each stream, by name."""
        return dict(zip(self.streams, self.weights.tolist(), strict=True))

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Replace the weights of all streams; one that is not named gets the weight 0."""
        self.weights.copy_(torch.tensor([weights.get(stream, 0.0) for stream in self.streams]))

    @property
    def video_streams(self) -> tuple[str, ...]:
        """The streams that are normalised over whole videos: all, or all but a trained appearance."""
        return tuple(stream for stream in self.streams if self.is_frozen or stream != "appearance")

    def fuse(self, raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]) -> Floats:
        """Join the weighted vectors of the `video_streams` of a video: (N, V).

        Takes the raw measurements of streams with a positive weight, as their functions in VECTORS do, and
        the seconds (N,) of the frames. The other streams are zeros.
        """
        parts = []
        for stream in self.video_streams:
            weight = self.stream_weights[stream]
            part = np.zeros((len(times), self.sizes[stream]), dtype=np.float32)
            parts.append(weight * VECTORS[stream](raw[stream], times) if weight > 0 else part)
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def join(self, maps: Tensor, side: Tensor) -> Tensor:
        """Join the maps (n, F, h, w) of a trained network and the other streams (n, V'): (n, V, 1, 1)."""
        if self.norm is None:
            raise ValueError("streams need whole videos; read their features with `open_features`")
        cells = torch.nn.functional.adaptive_avg_pool2d(maps.to(side.dtype), APPEARANCE_GRID).flatten(1)
        scale = self.weights[0] / self.sizes["appearance"] ** 0.5  # so that the mean squared length is 1
        return torch.cat([scale * self.norm(cells), side], dim=1)[:, :, None, None]

    def forward(self, images: Tensor, side: Tensor | None = None) -> Tensor:
        """Map images (n, 3, H, W) in [0, 1] and the other streams of these frames (n, V') to (n, V, 1, 1)."""
        if self.appearance is None or side is None:
            raise ValueError("streams need whole videos; read their features with `open_features`")
        return self.join(self.appearance(images), side)

    def feature_map(self, images: Tensor) -> Tensor:
        """Refuse images without the other streams."""
        return self.forward(images)

    @property
    def traits(self) -> dict[str, object]:
        """Everything besides the weights that changes the features."""
        network = self.appearance
        about = None if network is None else [type(network).__name__, network.traits]
        return {"streams": self.streams, "formulas": FORMULAS, "appearance": about}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The blueprint of the network of the stream "appearance"."""
        return {} if self.appearance is None else self.appearance.blueprint

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """Always 1 x 1."""
        return 1, 1


def stream_vectors(raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]) -> dict[str, Floats]:
    """Return the normalised vectors (N, V) of each stream from its raw measurements."""
    return {stream: VECTORS[stream](values, times) for stream, values in raw.items()}


def describe_streams(weights: Mapping[str, float]) -> str:
    """Say how much each stream counts, such as "streams: motion 1; pose: no person found"."""
    used = sorted((stream for stream in weights if weights[stream] > 0), key=lambda name: -weights[name])
    reasons = {"pose": "no person found", "motion": "nothing moves", "appearance": "nothing changes"}
    counts = ", ".join(f"{stream} {weights[stream]:g}" for stream in used) or "none"
    return "; ".join([f"streams: {counts}", *(f"{s}: {reasons[s]}" for s in weights if weights[s] <= 0)])
