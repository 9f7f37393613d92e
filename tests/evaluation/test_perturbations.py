import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import PERTURBATIONS, evaluate, perturb, time_only_embeddings
from cycleback.evaluation.perturbations import BACKGROUND

EVENTS = {"touch": 40, "pour": 60, "back": 80}
NAMES = [f"video {number}" for number in range(60)]


@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_key_events_move_with_their_frames(kind):
    for name in NAMES:
        moved = perturb(name, 120, EVENTS, kind=kind)
        for event, frame in EVENTS.items():
            assert abs(moved.indices[moved.events[event]] - frame) <= (1 if kind == "speed" else 0)


@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_frames_keep_their_order_and_stay_inside(kind):
    for name in NAMES:
        indices = perturb(name, 120, EVENTS, kind=kind).indices
        assert (np.diff(indices) >= 0).all() and indices.dtype == np.int64
        assert indices.min() >= BACKGROUND and indices.max() < 120


@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_the_name_and_the_seed_fix_the_draw(kind):
    first, again = (perturb("a", 120, EVENTS, kind=kind) for _ in range(2))
    np.testing.assert_array_equal(first.indices, again.indices)
    lengths = {len(perturb(name, 120, EVENTS, kind=kind).indices) for name in NAMES}
    seeds = {len(perturb("a", 120, EVENTS, kind=kind, seed=seed).indices) for seed in range(20)}
    assert len(lengths) > 5 and len(seeds) > 2


def test_cropping_takes_at_most_a_third_outside_the_key_events():
    cuts = [perturb(name, 120, EVENTS, kind="cropped").indices for name in NAMES]
    starts, ends = [cut[0] for cut in cuts], [119 - cut[-1] for cut in cuts]
    assert min(starts) >= 0 and 8 <= max(starts) <= 12 and 8 <= max(ends) <= 11
    assert all((np.diff(cut) == 1).all() for cut in cuts)


def test_unlabelled_videos_lose_up_to_a_tenth_at_each_end():
    cuts = [perturb(name, 120, {}, kind="cropped").indices for name in NAMES]
    assert 9 <= max(cut[0] for cut in cuts) <= 12 and 9 <= max(119 - cut[-1] for cut in cuts) <= 12


def test_speeds_lie_between_half_and_double():
    lengths = [len(perturb(name, 120, {}, kind="speed").indices) for name in NAMES]
    assert 60 <= min(lengths) < 75 and 190 < max(lengths) <= 240
    slow = next(p for name in NAMES if len((p := perturb(name, 120, {}, kind="speed")).indices) > 200)
    assert np.bincount(slow.indices).min() >= 1  # every frame is still there


def test_a_lead_in_is_background_in_front_of_the_whole_video():
    for name in NAMES:
        indices = perturb(name, 120, EVENTS, kind="lead-in").indices
        extra = int((indices == BACKGROUND).sum())
        assert 12 <= extra <= 60
        np.testing.assert_array_equal(indices[extra:], np.arange(120))


@pytest.mark.parametrize("kind", PERTURBATIONS)
@pytest.mark.parametrize("events", [{}, {"only": 0}])
def test_a_video_of_one_frame_keeps_it(kind, events):
    moved = perturb("a", 1, events, kind=kind)
    assert 0 in moved.indices and all(moved.indices[frame] == 0 for frame in moved.events.values())


def test_time_only_loses_what_it_had_when_a_lead_in_is_put_in_front():
    videos = EmbeddingSet.from_arrays({name: np.zeros((120, 1)) for name in NAMES[:8]})
    moved = {name: perturb(name, 120, EVENTS, kind="lead-in") for name in videos}
    late = EmbeddingSet.from_arrays(
        {name: np.zeros((len(part.indices), 1)) for name, part in moved.items()},
        events={name: part.events for name, part in moved.items()},
    )
    assert evaluate(None, time_only_embeddings(late)).event_error_frames > 3


@pytest.mark.parametrize(
    ("name", "frames", "events", "kind", "message"),
    [
        ("a", 10, {}, "slow", "cropped, speed, lead-in, got 'slow'"),
        ("a", 0, {}, "speed", "a: a video needs at least one frame, got 0"),
        ("a", 10, {"x": 10}, "speed", "a: 'x' at frame 10, but the video has 10 frames"),
    ],
)
def test_impossible_settings_are_an_error(name, frames, events, kind, message):
    with pytest.raises(ValueError, match=message):
        perturb(name, frames, events, kind=kind)
