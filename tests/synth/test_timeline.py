import numpy as np

from cycleback.synth import EVENTS, Take
from cycleback.synth.timeline import Pace, ramp, smooth


def test_key_events_come_in_the_order_of_the_action(takes: list[Take]) -> None:
    for take in takes:
        assert tuple(take.events) == EVENTS
        frames = [0, *take.events.values(), take.num_frames]
        assert frames == sorted(set(frames))


def test_videos_last_from_80_to_160_frames(takes: list[Take]) -> None:
    lengths = [take.num_frames for take in takes]
    assert min(lengths) >= 78 and max(lengths) <= 162
    assert np.std(lengths) > 10


def test_events_fall_at_very_different_shares_of_the_video(takes: list[Take]) -> None:
    shares = np.array([[frame / take.num_frames for frame in take.events.values()] for take in takes])
    assert shares.std(axis=0).min() > 0.07


def test_aligning_by_time_alone_misses_the_events(takes: list[Take]) -> None:
    errors = [
        abs(a.events[event] / a.num_frames * b.num_frames - b.events[event])
        for a in takes
        for b in takes
        if a is not b
        for event in EVENTS
    ]
    assert np.median(errors) >= 12


def test_durations_of_phases_are_independent(takes: list[Take]) -> None:
    phases = np.array([[t.timeline.prepare, t.timeline.pour, t.timeline.put_back] for t in takes])
    correlations = np.corrcoef(phases.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 0.6  # only the bound on the whole length ties them


def test_a_pace_keeps_both_ends_and_never_goes_back() -> None:
    progress = np.linspace(0, 1, 101)
    warped = Pace(skew=1.7, pause_at=0.4, pause_share=0.3).warp(progress)
    assert warped[0] == 0 and warped[-1] == 1
    assert (np.diff(warped) >= 0).all()


def test_a_pause_stands_still_for_its_share() -> None:
    warped = Pace(pause_at=0.5, pause_share=0.2).warp(np.linspace(0, 1, 101))
    assert np.isclose(np.diff(warped), 0).sum() == 20
    assert warped[50] == 0.5


def test_easing_has_no_speed_at_its_ends() -> None:
    eased = smooth(ramp(np.linspace(0, 1, 1001), 0.0, 1.0))
    assert eased[1] < 1e-5 and 1 - eased[-2] < 1e-5
    assert eased[500] == 0.5
