"""Takes that go wrong: what can happen, and when it does."""

from dataclasses import dataclass, replace

import numpy as np

from cycleback.synth.timeline import Detour, Timeline

ANOMALIES = ("spill", "missed glass", "hand withdraws")
LEAST_POUR_SECONDS = 0.9  # a spill or a miss needs time to be seen


@dataclass(frozen=True)
class Mishap:
    """One thing going wrong, from frame `start` to before frame `end`.

    The range is the act itself: a puddle that it leaves stays in the picture.
    `side` is -1 where liquid falls on the bottle's side of the glass, 1 where it falls on the far side.
    """

    kind: str
    start: int
    end: int
    side: float


def plan_mishap(kind: str, timeline: Timeline, rng: np.random.Generator) -> tuple[Mishap, Timeline]:
    """Decide when `kind` happens; the timeline that comes back has room for it."""
    if kind == "hand withdraws":
        return _plan_withdrawal(timeline, rng)
    longer = replace(timeline, pour=max(timeline.pour, round(LEAST_POUR_SECONDS * timeline.fps)))
    first, last = (0.0, rng.uniform(0.6, 1.0)) if rng.random() < 0.5 else (rng.uniform(0.15, 0.4), 1.0)
    start = longer.start + round(first * longer.pour)
    end = longer.start + max(round(last * longer.pour), 6)
    side = -1.0 if kind == "missed glass" and rng.random() < 0.5 else 1.0
    return Mishap(kind=kind, start=start, end=min(end, longer.complete), side=side), longer


def _plan_withdrawal(timeline: Timeline, rng: np.random.Generator) -> tuple[Mishap, Timeline]:
    hold, leave, away, come_back = (
        max(3, round(seconds * timeline.fps))
        for seconds in rng.uniform((0.15, 0.3, 0.3, 0.3), (0.5, 0.7, 1.2, 0.7))
    )
    returns = bool(rng.random() < 0.5)
    if not returns:
        away, come_back = away + round(0.5 * timeline.fps), 0
    detour = Detour(hold=hold, leave=leave, away=away, come_back=come_back, returns=returns)
    changed = replace(timeline, detour=detour)
    start = changed.touch + hold
    end = changed.grip if returns else changed.num_frames
    return Mishap(kind="hand withdraws", start=start, end=end, side=-1.0), changed
