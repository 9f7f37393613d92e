"""Moments and spans as a user types them."""

import numpy as np
import pytest

from cycleback.cli.moments import parse_moment, parse_span
from cycleback.errors import UserError

TIMES = np.arange(60) / 30
EVENTS = {"top": 20, "impact": 40}


@pytest.mark.parametrize(
    ("text", "frame"), [("0", 0), (" 12 ", 12), ("59", 59), ("1.5s", 45), ("0s", 0), ("top", 20)]
)
def test_a_moment_is_a_frame_a_second_or_an_event(text: str, frame: int) -> None:
    assert parse_moment(text, TIMES, events=EVENTS, video="a.mp4") == frame


@pytest.mark.parametrize(
    ("text", "span"),
    [("3:9", (3, 9)), ("top:impact", (20, 40)), ("0.5s:top", (15, 20)), (":9", (0, 9)), ("1s:", (30, 59))],
)
def test_a_span_has_two_ends(text: str, span: tuple[int, int]) -> None:
    assert parse_span(text, TIMES, events=EVENTS, video="a.mp4") == span


@pytest.mark.parametrize("text", ["", "x", "60", "-1", "2.5s", "1e999s", "nans", "infs", "1/0s", "1.5", "s"])
def test_other_moments_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_moment(text, TIMES, events=EVENTS, video="a.mp4")
