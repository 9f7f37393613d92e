"""How alike two videos run: the evidence that they show the same action, in the same direction of time.

    gain      1 - mean distance along the cheapest path / mean distance of any two frames: how much nearer
              warped frames are than any two, as a share
    chance    the mean gain after b is cut at one, two and three quarters and its parts change places, each
              forwards and in reverse order: what warping gains from two videos by smoothness alone
    backward  the gain with b played backwards

Videos show the same action with the probability

    same = sigmoid(GAIN_WEIGHT gain + ORDER_WEIGHT (gain - chance) - OFFSET)

whose constants `benchmarks/verdicts.py` fits to pairs of equal and of different actions.

Scaling all distances changes nothing. Long videos are thinned to 128 frames, so the cost is bounded.

Shapes: T frames of video a, S frames of video b, D embedding size.
"""

import math
from dataclasses import dataclass

import numpy as np

from cycleback.alignment.bounds import price_ends
from cycleback.alignment.distances import Floats, pairwise_squared, thin
from cycleback.alignment.dtw import warp_cost

MAX_FRAMES = 128  # compared per video
QUARTERS = (1, 2, 3)  # of b, where it is cut to see what chance gains
GAIN_WEIGHT, ORDER_WEIGHT, OFFSET = 23.5, 12.4, 8.9
GAINS = (0.08, 0.28)  # up to the first a gain says nothing, from the second it is trusted in full
MIN_SAME = 0.5  # less is told as another action


@dataclass(frozen=True)
class Likeness:
    """The signs that two videos show the same action; each is at most 1, and about 0 where nothing agrees."""

    gain: float
    chance: float
    backward: float

    @property
    def same(self) -> float:
        """The probability that the videos show the same action in the same direction."""
        return self._judge(self.gain)

    @property
    def is_backward(self) -> bool:
        """Whether one of the videos runs backwards: reversed, it shows the same action, and better."""
        return self.backward > self.gain and self._judge(self.backward) >= MIN_SAME

    @property
    def is_different(self) -> bool:
        """Whether the videos show different actions."""
        return self.same < MIN_SAME and not self.is_backward

    def _judge(self, gain: float) -> float:
        evidence = GAIN_WEIGHT * gain + ORDER_WEIGHT * (gain - self.chance) - OFFSET
        return 1 / (1 + math.exp(-evidence))


def measure_likeness(a: Floats, b: Floats, *, backwards: Floats | None = None) -> Likeness:
    """Measure how alike `a` (T, D) and `b` (S, D) run.

    `backwards` (S, D) are the embeddings of b played backwards; by default those of b in reverse order.
    """
    a, b, turned = (thin(video, MAX_FRAMES) for video in (a, b, b[::-1] if backwards is None else backwards))
    distances = pairwise_squared(a, b)
    if not distances.any():
        return Likeness(0.0, 0.0, 0.0)
    length = len(b)
    ways = [distances, distances[:, ::-1]]
    chance = [
        measure_gain(np.roll(way, length * quarter // 4, axis=1)) for way in ways for quarter in QUARTERS
    ]
    return Likeness(
        gain=measure_gain(distances),
        chance=float(np.mean(chance)),
        backward=measure_gain(pairwise_squared(a, turned)),
    )


def measure_gain(distances: Floats) -> float:
    """Return how much nearer warped frames are than any two of `distances` (T, S), as a share."""
    mean = float(distances.mean())
    return 1 - path_distance(distances) / mean if mean > 0 else 0.0


def trust_gain(gain: float) -> float:
    """Return how far matches with such a gain can be trusted, in [0, 1]."""
    low, high = GAINS
    return float(np.clip((gain - low) / (high - low), 0, 1))


def path_distance(distances: Floats) -> float:
    """Return the mean distance along the cheapest path through `distances` (T, S)."""
    path, _ = warp_cost(np.ascontiguousarray(distances), ends=price_ends(*distances.shape))
    return float(distances[path[:, 0], path[:, 1]].mean())
