"""Perturbations of a video as frame numbers; pixels stay unchanged.

    cropped   cut up to 30 % of the frames before the first key event and of those after the last;
              in an unlabelled video, up to 10 % of all frames at each end
    speed     play at one speed between half and double, by repeating or leaving out frames
    lead-in   add 10 to 50 % more frames in front, all of a still picture without the action

An embedding that only encodes the elapsed share of time fails these; one that sees the frames should not.
Draws depend only on the name of the video and a seed, so every encoder gets the same perturbations.

Shapes: N frames of the video, N' frames of the perturbed one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
BACKGROUND = -1  # a still picture without the action
MAX_CROPPED = 0.3  # of the frames outside the key events
MAX_CROPPED_UNLABELLED = 0.1  # of all frames, at each end
SPEEDS = (0.5, 2.0)
LEAD_IN = (0.1, 0.5)


@dataclass(frozen=True)
class Perturbation:
    """A perturbed video."""

    indices: Indices  # (N',) frame of the original, or -1 for background
    events: Mapping[str, int]  # frame of each key event in the perturbed video


def perturb(
    name: str, num_frames: int, events: Mapping[str, int], *, kind: str, seed: int = 0
) -> Perturbation:
    """Perturb the video `name`, with the frames of its key events; `kind` is a key of PERTURBATIONS.

    The draw depends on `name` and `seed`.
    """
    if kind not in PERTURBATIONS:
        raise ValueError(f"kind must be one of {', '.join(PERTURBATIONS)}, got {kind!r}")
    if num_frames < 1:
        raise ValueError(f"{name}: a video needs at least one frame, got {num_frames}")
    for event, frame in events.items():
        if not 0 <= frame < num_frames:
            raise ValueError(f"{name}: {event!r} at frame {frame}, but the video has {num_frames} frames")
    digest = sha256(f"{seed}/{kind}/{name}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return PERTURBATIONS[kind](num_frames, events, rng)


def _crop(num_frames: int, events: Mapping[str, int], rng: np.random.Generator) -> Perturbation:
    before = after = MAX_CROPPED_UNLABELLED * num_frames
    if events:
        before = MAX_CROPPED * min(events.values())
        after = MAX_CROPPED * (num_frames - 1 - max(events.values()))
    start = int(rng.uniform() * before)
    stop = max(start + 1, num_frames - int(rng.uniform() * after))
    return Perturbation(np.arange(start, stop), {event: frame - start for event, frame in events.items()})


def _change_speed(num_frames: int, events: Mapping[str, int], rng: np.random.Generator) -> Perturbation:
    slowest, fastest = np.log(SPEEDS)
    speed = float(np.exp(rng.uniform(slowest, fastest)))
    length = max(1, round(num_frames / speed))
    indices = np.minimum((np.arange(length) * speed).astype(np.int64), num_frames - 1)
    moved = {event: int(np.searchsorted(indices, frame)) for event, frame in events.items()}
    return Perturbation(indices, {event: min(frame, length - 1) for event, frame in moved.items()})


def _add_lead_in(num_frames: int, events: Mapping[str, int], rng: np.random.Generator) -> Perturbation:
    extra = max(1, round(rng.uniform(*LEAD_IN) * num_frames))
    indices = np.concatenate([np.full(extra, BACKGROUND), np.arange(num_frames)])
    return Perturbation(indices, {event: frame + extra for event, frame in events.items()})


PERTURBATIONS: Mapping[str, Callable[[int, Mapping[str, int], np.random.Generator], Perturbation]] = {
    "cropped": _crop,
    "speed": _change_speed,
    "lead-in": _add_lead_in,
}
