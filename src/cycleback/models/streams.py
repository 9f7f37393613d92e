"""Streams: what a frame looks like, how it moves, and the pose of the person in it, as vectors side by side.

Each stream turns raw measurements of a whole video into vectors that are normalised over that video: they
are centred, and their mean squared length is 1. So videos of different scenes, cameras and persons are
comparable, and one weight per stream decides how much it counts. Nothing here needs torch; `fused` joins the
streams to a base.

Shapes: N frames of a video, F feature channels, h w feature map, V size of a vector.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Stream = Literal["appearance", "motion", "pose"]
Floats = NDArray[np.float32]

STREAMS: tuple[Stream, ...] = ("appearance", "motion", "pose")
SCALES: Mapping[str, float] = {"appearance": 0.35, "motion": 1.0, "pose": 0.5}
"""How much each stream counts where nothing is known about the videos."""
FORMULAS = 2  # part of the fingerprint: raise it when the vectors of a stream change

FPS = 30.0  # the constants below count frames at this rate; faster videos use as many seconds
LAG = 4  # frames between a frame and the earlier and later ones seen with it
SOFTNESS = 0.5  # of `soften`
MIN_DEVIATION = 1e-6  # a video whose vectors vary less is constant

MOTION_GRIDS = (1, 2, 4, 8)  # cells per side
MOTION_BANDS = (2, 4, 8)  # rows of cells; they look alike from all sides, unlike cells
MOTION_BAND_WEIGHT = 0.5
MOTION_DIRECTIONS, MOTION_CELLS = 4, 8
MOTION_GAIN = 20.0  # log(1 + gain * motion): fast motion must not hide slow motion
MOTION_SIGMA = 1.0  # frames, of the Gaussian over time
MOTION_LAG_WEIGHT = 0.7
MOTION_SIZE = 3 * (MOTION_DIRECTIONS * sum(side**2 for side in MOTION_GRIDS) + 3 * sum(MOTION_BANDS))

JOINTS = slice(5, 17)  # shoulders, elbows, wrists, hips, knees, ankles; the face before them tells little
MIRRORED_JOINTS = [0, *(joint + step for joint in range(1, 17, 2) for step in (1, 0))]  # left for right
POSE_SIGMA = 1.5  # frames, of the Gaussian over time
POSE_VELOCITY_WEIGHT = 1.5
MIN_JOINT_SCORE = 0.1  # mean over the video: a joint below it is never seen
TORSO, TORSO_SCORE, TORSO_SHARE = [5, 6, 11, 12], 0.3, 0.3  # a person: clear torso in a share of the frames
POSE_SIZE = 2 * 2 * (JOINTS.stop - JOINTS.start)


def appearance_vectors(maps: NDArray[np.floating[Any]], times: NDArray[np.float64]) -> Floats:
    """Return the means of the feature maps (N, F, h, w) of a video: (N, F)."""
    return normalize_video(soften(np.asarray(maps, dtype=np.float32).mean(axis=(2, 3))))


def motion_vectors(motion: NDArray[np.floating[Any]], times: NDArray[np.float64]) -> Floats:
    """Return the motion (N, 4, 8, 8) of a video at several resolutions: (N, V).

    What moves everywhere is left out: it is the camera, or noise. Each frame is seen with an earlier and a
    later one. `times` (N,) are in seconds.
    """
    sigma, lag = MOTION_SIGMA * _rate_factor(times), round(LAG * _rate_factor(times))
    cells = np.asarray(motion, dtype=np.float32)
    cells = np.maximum(cells - np.median(cells, axis=(2, 3), keepdims=True), 0)
    right, down, left, up = np.moveaxis(cells.mean(axis=3), 1, 0)  # (N, 8) each: rows of cells
    bands = np.stack([right + left, down, up], axis=1)  # (N, 3, 8)
    parts = [(1.0, _average(cells, side)) for side in MOTION_GRIDS]
    parts += [(MOTION_BAND_WEIGHT, _average(bands, rows)) for rows in MOTION_BANDS]
    now = np.concatenate([weight * _standardize(values, sigma) for weight, values in parts], axis=1)
    now = soften(now)
    around = [MOTION_LAG_WEIGHT * _shift(now, offset) for offset in (-lag, lag)]
    return normalize_video(np.concatenate([now, *around], axis=1))


def pose_vectors(poses: Floats, times: NDArray[np.float64]) -> Floats:
    """Return positions and velocities of the body's joints: (N, V); all zeros if there is no person.

    `poses` (N, 17, 3) are y, x and score. Where the person stands and how large the person is do not matter,
    because the vectors are normalised over the video. `times` (N,) are in seconds.
    """
    if not has_person(poses):
        return np.zeros((len(poses), POSE_SIZE), dtype=np.float32)
    factor = _rate_factor(times)
    places, scores = poses[:, JOINTS, :2], poses[:, JOINTS, 2:]  # (N, J, 2), (N, J, 1)
    is_seen = scores.mean(axis=0) >= MIN_JOINT_SCORE  # (J, 1)
    smooth = _smooth_places(places, scores, POSE_SIGMA * factor)
    smooth = np.where(is_seen, smooth, 0.0).reshape(len(poses), -1)
    lag = round(LAG * factor)
    velocity = POSE_VELOCITY_WEIGHT * (_shift(smooth, lag) - _shift(smooth, -lag))
    return normalize_video(soften(np.concatenate([smooth, velocity], axis=1)))


def has_person(poses: Floats) -> bool:
    """Whether a video shows a person: the torso is clear in a share of the frames of `poses` (N, 17, 3)."""
    return bool((poses[:, TORSO, 2].mean(axis=1) >= TORSO_SCORE).mean() >= TORSO_SHARE)


def mirror(raw: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the raw measurements of the mirrored video; appearance is the same, as it has no places."""
    mirrored = dict(raw)
    if "motion" in raw:
        mirrored["motion"] = np.asarray(raw["motion"])[:, [2, 1, 0, 3], :, ::-1]
    if "pose" in raw:
        mirrored["pose"] = raw["pose"][:, MIRRORED_JOINTS] * np.array([1, -1, 1], dtype=np.float32)
    return mirrored


def find_parts(size: int, streams: Iterable[str]) -> dict[str, slice]:
    """Return where each stream lies in embeddings (N, size) that are the streams themselves.

    Embeddings of a trained encoder have another size: they have no such parts.
    """
    used = [stream for stream in STREAMS if stream in set(streams)]
    known = {"motion": MOTION_SIZE, "pose": POSE_SIZE}
    rest = size - sum(known.get(stream, 0) for stream in used)
    if not used or rest < 0 or (rest > 0) != ("appearance" in used):
        return {}
    parts, start = dict[str, slice](), 0
    for stream in used:
        parts[stream] = slice(start, start + known.get(stream, rest))
        start = parts[stream].stop
    return parts


def reverse_time(embeddings: NDArray[Any], streams: Iterable[str]) -> NDArray[Any]:
    """Return the embeddings (N, D) of the video played backwards.

    Of the streams themselves, motions also turn round, and what came earlier comes later. Other embeddings
    are only put in reverse order.
    """
    turned = np.array(embeddings[::-1])
    parts = find_parts(turned.shape[1], streams)
    if "motion" in parts:
        now, earlier, later = np.split(turned[:, parts["motion"]], 3, axis=1)
        order = _turned_motion()
        turned[:, parts["motion"]] = np.concatenate([part[:, order] for part in (now, later, earlier)], 1)
    if "pose" in parts:
        turned[:, slice(parts["pose"].start + POSE_SIZE // 2, parts["pose"].stop)] *= -1  # velocities
    return turned


def _turned_motion() -> NDArray[np.int64]:
    """Return which number of the motion of a frame takes each place when the motion turns round."""
    order, start = list[NDArray[np.int64]](), 0
    groups: list[tuple[tuple[int, ...], int]] = []
    groups += [((2, 3, 0, 1), side**2) for side in MOTION_GRIDS]  # right, down, left, up
    groups += [((0, 2, 1), rows) for rows in MOTION_BANDS]  # across, down, up
    for directions, cells in groups:
        places = start + np.arange(len(directions) * cells).reshape(len(directions), cells)
        order.append(places[list(directions)].ravel())
        start += places.size
    return np.concatenate(order)


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


def _average(values: Floats, side: int) -> Floats:
    """Average values (N, k, 8) or (N, k, 8, 8) over `side` parts of each axis of 8, and flatten: (N, ...)."""
    shape = list(values.shape[:2])
    for _ in values.shape[2:]:
        shape += [side, MOTION_CELLS // side]
    means = values.reshape(shape).mean(axis=tuple(range(3, len(shape), 2)))
    return means.reshape(len(values), -1)  # type: ignore[no-any-return]


def _standardize(motion: Floats, sigma: float) -> Floats:
    """Compress and smooth motion (N, k); scale each of the k to deviation 1, and all of them to length 1."""
    smooth = smooth_over_time(np.log1p(MOTION_GAIN * motion), sigma)
    scale = (smooth.std(axis=0) + 1e-6) * np.sqrt(smooth.shape[1])
    return (smooth - smooth.mean(axis=0)) / scale  # type: ignore[no-any-return]


def soften(vectors: Floats) -> Floats:
    """Bring the lengths of centred vectors (N, V) closer together: x / (|x| + half the mean length).

    A few frames far from all others, such as those of the fastest motion, would decide every distance.
    """
    centred = vectors - vectors.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return centred / (lengths + SOFTNESS * lengths.mean() + 1e-9)  # type: ignore[no-any-return]


@dataclass
class StreamFusion:
    """Join the streams of videos without a network: what a model runs that was exported.

    It has the parts of a frozen `FusedBase` that joining streams needs.
    """

    sizes: Mapping[str, int]  # V of each stream, in the order of STREAMS
    stream_weights: dict[str, float]
    is_frozen = True
    appearance = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams in order."""
        return tuple(self.sizes)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Replace the weights of all streams; one that is not named gets the weight 0."""
        self.stream_weights = {stream: weights.get(stream, 0.0) for stream in self.sizes}

    def fuse(self, raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]) -> Floats:
        """Join the weighted vectors of the streams of a video: (N, V); see `fuse_streams`."""
        return fuse_streams(raw, times, sizes=self.sizes, weights=self.stream_weights)


def fuse_streams(
    raw: Mapping[str, NDArray[Any]],
    times: NDArray[np.float64],
    *,
    sizes: Mapping[str, int],
    weights: Mapping[str, float],
) -> Floats:
    """Join the weighted vectors of the streams named in `sizes` side by side: (N, V).

    Takes the raw measurements of streams with a positive weight, as their functions in VECTORS do, and the
    seconds (N,) of the frames. The other streams are zeros.
    """
    parts = []
    for stream, size in sizes.items():
        part = np.zeros((len(times), size), dtype=np.float32)
        if weights[stream] > 0:
            part = np.asarray(weights[stream] * VECTORS[stream](raw[stream], times), dtype=np.float32)
        parts.append(part)
    return np.concatenate(parts, axis=1, dtype=np.float32)


def stream_vectors(raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]) -> dict[str, Floats]:
    """Return the normalised vectors (N, V) of each stream from its raw measurements."""
    return {stream: VECTORS[stream](values, times) for stream, values in raw.items()}


def describe_streams(weights: Mapping[str, float]) -> str:
    """Say how much each stream counts, such as "streams: motion 1; not used: pose (no person in common)"."""
    used = sorted((stream for stream in weights if weights[stream] > 0), key=lambda name: -weights[name])
    reasons = {
        "pose": "no person in common",
        "motion": "nothing moves alike",
        "appearance": "nothing in common",
    }
    counts = ", ".join(f"{stream} {weights[stream]:.2g}" for stream in used) or "none"
    unused = ", ".join(f"{stream} ({reasons[stream]})" for stream in weights if weights[stream] <= 0)
    return f"streams: {counts}" + (f"; not used: {unused}" if unused else "")
