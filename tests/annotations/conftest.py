"""Annotations drawn at random, with everything an annotation can hold."""

import random
from collections.abc import Callable

import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment

FPS, FRAMES = 25.0, 200


def moment(frame: int) -> Moment:
    return Moment(frame / FPS, frame)


def draw(seed: int) -> Annotation:
    """One video with up to four key events, and up to four segments that do not overlap."""
    dice = random.Random(seed)
    chance = lambda: dice.choice([None, round(dice.random(), 4)])  # noqa: E731
    moments = sorted(dice.sample(range(FRAMES), dice.randint(1, 4)))
    ends = sorted(dice.sample(range(FRAMES + 1), 2 * dice.randint(1, 4)))
    name = dice.choice(["a", "clip 1", "über,maß", 'say "hi"'])
    return Annotation(
        f"{name}{seed}",
        tuple(Event(f"event {i}", moment(frame), chance()) for i, frame in enumerate(moments)),
        tuple(
            Segment(f"phase {i % 2}", moment(start), moment(end), chance())
            for i, (start, end) in enumerate(zip(ends[::2], ends[1::2], strict=True))
        ),
        file=f"videos/{name}{seed}.mp4",
        fps=FPS,
        num_frames=FRAMES,
        duration=FRAMES / FPS,
    )


@pytest.fixture
def drawn() -> Callable[[int], Annotation]:
    return draw
