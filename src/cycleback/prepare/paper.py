"""What the paper used of Pouring and Penn Action: key events and video counts (table in Sec. 4).

Paper: Dwibedi et al., "Temporal Cycle-Consistency Learning", CVPR 2019, arXiv:1904.07846.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperAction:
    """Key events in order of time, and the number of videos of each split. E events make E + 1 phases."""

    events: tuple[str, ...]
    train: int
    val: int


POURING = PaperAction(
    ("hand touches bottle", "liquid starts exiting", "pouring complete", "bottle back on table"), 70, 14
)

# The names are those of the data set's own annotations; the order is the paper's.
PENN_ACTION = {
    "baseball_pitch": PaperAction(("knee fully up", "arm fully stretched out", "ball release"), 103, 63),
    "baseball_swing": PaperAction(("bat swung back fully", "bat hits ball"), 113, 57),
    "bench_press": PaperAction(("bar fully down",), 69, 71),
    "bowl": PaperAction(("ball swung fully back", "ball release"), 134, 85),
    "clean_and_jerk": PaperAction(
        ("bar at hip", "fully squatting", "standing", "begin thrusting", "beginning balance"), 40, 42
    ),
    "golf_swing": PaperAction(("stick swung fully back", "stick hits ball"), 87, 77),
    "jumping_jacks": PaperAction(
        ("hands at shoulder (going up)", "hands above head", "hands at shoulders (going down)"), 56, 56
    ),
    "pullup": PaperAction(("chin above bar",), 98, 101),
    "pushup": PaperAction(("head at floor",), 102, 105),
    "situp": PaperAction(("abs fully crunched",), 50, 50),
    "squat": PaperAction(
        ("hips at knees (going down)", "hips at floor", "hips at knee (going up)"), 114, 116
    ),
    "tennis_forehand": PaperAction(("racket swung fully back", "racket touches ball"), 79, 74),
    "tennis_serve": PaperAction(
        ("ball released from hand", "racket swung fully back", "ball touches racket"), 115, 69
    ),
}

LEFT_OUT = ("jump_rope", "strum_guitar")  # of Penn Action's fifteen: no unambiguous key events


def fewer_than_the_paper(
    found: Mapping[str, Mapping[str, int]], expected: Mapping[str, PaperAction]
) -> list[str]:
    """One line for each action and split with fewer videos than in the paper.

    `found` is action → split → number.
    """
    return [
        f"{f'{action} ' if action else ''}{split}: {count} of the paper's {wanted} videos"
        for action, split, count, wanted in _counts(found, expected)
        if count < wanted
    ]


def more_than_the_paper(
    found: Mapping[str, Mapping[str, int]], expected: Mapping[str, PaperAction]
) -> list[str]:
    """One text for each action and split with more videos than in the paper."""
    return [
        f"{f'{action} ' if action else ''}{split} {count}, paper {wanted}"
        for action, split, count, wanted in _counts(found, expected)
        if count > wanted
    ]


def _counts(
    found: Mapping[str, Mapping[str, int]], expected: Mapping[str, PaperAction]
) -> Iterable[tuple[str, str, int, int]]:
    for action, paper in expected.items():
        for split, wanted in (("train", paper.train), ("val", paper.val)):
            yield action, split, found.get(action, {}).get(split, 0), wanted
