"""A changed pace: only a part, slower, or slower around one moment; its sound and one picture of it."""

import numpy as np
import pytest

from cycleback.applications.pace import Pace
from cycleback.applications.playback import find_positions, slow_pace, slow_sound, trim_pace
from cycleback.errors import UserError
from cycleback.video import Audio


@pytest.fixture
def pace() -> Pace:
    """Three seconds at 20 frames per second; the second video runs at twice the pace."""
    seconds = np.arange(61) / 20
    sources = np.array([seconds, 2 * seconds])
    return Pace(("a", "b"), 20.0, seconds, sources, sources * 20)


def test_a_trimmed_pace_begins_at_its_part(pace: Pace) -> None:
    part = trim_pace(pace, 0.5, 1.5)
    assert part.seconds[0] == 0 and part.seconds[-1] == pytest.approx(1.0)
    assert part.sources[:, [0, -1]] == pytest.approx(np.array([[0.5, 1.5], [1.0, 3.0]]))
    assert part.positions[1] == pytest.approx(np.arange(20, 61, 2))
    with pytest.raises(UserError, match=r"nothing of a plays from 4.00 s to 5.00 s: it plays from 0.00 s"):
        trim_pace(pace, 4, 5)


@pytest.mark.parametrize("speed", [1.0, 0.5, 0.25])
def test_slow_motion_of_all_lasts_longer(pace: Pace, speed: float) -> None:
    slow = slow_pace(pace, speed)
    assert slow.seconds[-1] == pytest.approx(3 / speed)
    assert np.diff(slow.seconds) == pytest.approx(1 / 20)
    assert slow.sources[0] == pytest.approx(slow.seconds * speed)
    assert slow.positions[1] == pytest.approx(slow.seconds * speed * 40)


def test_slow_motion_around_a_moment_leaves_the_rest(pace: Pace) -> None:
    slow = slow_pace(pace, 0.25, around_s=1.5, reach_s=0.5)
    speeds = np.diff(slow.sources[0]) / np.diff(slow.seconds)
    middles = (slow.sources[0, 1:] + slow.sources[0, :-1]) / 2
    inside = np.abs(middles - 1.5) < 0.45
    assert speeds[inside] == pytest.approx(0.25)
    assert speeds[np.abs(middles - 1.5) > 0.55] == pytest.approx(1.0)
    assert slow.seconds[-1] == pytest.approx(2 + 1 / 0.25, abs=0.05)
    assert (np.diff(slow.positions) >= 0).all()


@pytest.mark.parametrize("speed", [0.0, -1.0, 1.5, float("nan")])
def test_other_speeds_are_refused(pace: Pace, speed: float) -> None:
    with pytest.raises(UserError, match=r"expected 0.02 to 1"):
        slow_pace(pace, speed)


def test_slowed_sound_keeps_its_pitch_and_very_slow_sound_is_none(pace: Pace) -> None:
    rate = 8000
    tone = Audio(np.sin(2 * np.pi * 440 * np.arange(3 * rate) / rate)[None].astype(np.float32), rate)
    slowed = slow_sound(tone, slow_pace(pace, 0.5))
    assert slowed is not None and slowed.duration_s == pytest.approx(6.05, abs=0.01)
    middle = slowed.samples[0, rate : 5 * rate]
    spectrum = np.abs(np.fft.rfft(middle))
    assert spectrum.argmax() * rate / len(middle) == pytest.approx(440, abs=5)
    assert slow_sound(tone, slow_pace(pace, 0.25)) is None
    assert slow_sound(tone, slow_pace(pace, 0.25, around_s=1.0)) is None
    part = slow_sound(tone, trim_pace(pace, 1.0, 2.0))
    assert part is not None and part.duration_s == pytest.approx(1.05, abs=0.01)
    assert np.allclose(part.samples[0, :rate], tone.samples[0, rate : 2 * rate], atol=1e-3)


def test_a_moment_has_one_frame_per_video(pace: Pace) -> None:
    assert find_positions(pace, 1.0) == pytest.approx([20, 40])
    with pytest.raises(UserError, match=r"5.00 s of a is not played: it plays from 0.00 s to 3.00 s"):
        find_positions(pace, 5.0)
