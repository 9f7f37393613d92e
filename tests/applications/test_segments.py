"""Segments of constant speed, against the time maps they stand for."""

import numpy as np
import pytest

from cycleback.applications.segments import Segment, fit_segments


def followed(segments: list[Segment], fps: float) -> np.ndarray:
    """The source second at every output frame, by the segments."""
    return np.concatenate(
        [
            segment.source_start_s + segment.speed(fps) * np.arange(segment.end - segment.start) / fps
            for segment in segments
        ]
    )


def test_two_speeds_make_two_segments() -> None:
    source = np.concatenate([np.arange(30) / 30, 1 + 2 * np.arange(30) / 30])
    first, second = fit_segments(source, video=3, fps=30)
    assert (first.video, first.start, first.end, second.end) == (3, 0, second.start, 60)
    assert (first.speed(30), second.speed(30)) == pytest.approx((1, 2), abs=0.07)


@pytest.mark.parametrize("seed", range(5))
def test_segments_cover_the_map_and_stay_within_a_frame(seed: int) -> None:
    source = np.cumsum(np.random.default_rng(seed).uniform(0, 0.1, 200))
    segments = fit_segments(source, video=0, fps=25, first=100)
    assert [segment.start for segment in segments[1:]] == [segment.end for segment in segments[:-1]]
    assert (segments[0].start, segments[-1].end) == (100, 300)
    assert np.abs(followed(segments, 25) - source).max() <= 1 / 25 + 1e-9


def test_a_smaller_tolerance_gives_more_segments() -> None:
    source = np.linspace(0, 2, 100) ** 2
    coarse, fine = (fit_segments(source, video=0, fps=30, tolerance_frames=n) for n in (2, 0.2))
    assert len(coarse) < len(fine)


def test_one_frame_is_one_segment() -> None:
    (segment,) = fit_segments(np.array([1.5]), video=0, fps=10)
    assert (segment.start, segment.end, segment.speed(10)) == (0, 1, pytest.approx(1))
