import numpy as np
import pytest

from cycleback.evaluation import PROTOCOLS, event_error
from cycleback.evaluation.action import ActionScorer, resampled_events, with_phases
from cycleback.evaluation.events import Labels


@pytest.fixture
def drawn(rng):
    """Five resamples of four videos: which videos were drawn, and how often each."""
    videos = rng.integers(4, size=(5, 4))
    return videos, np.stack([np.bincount(row, minlength=4) for row in videos]).astype(float)


def test_resampled_key_events_are_those_of_the_drawn_pairs(make_set, drawn):
    videos = make_set("abcd", noise=0.2)
    blocks, events = [videos[name] for name in videos], [videos.events(name) for name in videos]
    error, labels = event_error(blocks, events), Labels.of(events)
    found = resampled_events(error, labels, drawn[1], "_dtw")
    owners = labels.videos[error.labels]
    for position, row in enumerate(drawn[0]):
        weights = [(row == a).sum() * (row == b).sum() for a, b in zip(owners, error.videos, strict=True)]
        kept = np.repeat(error.errors, weights)
        assert found["event_error_frames_dtw"][position] == np.median(kept)
        assert found["pce1_dtw"][position] == pytest.approx((kept <= 1).mean())
        assert found["pce3_dtw"][position] == pytest.approx((kept <= 3).mean())


def test_only_videos_with_all_key_events_have_phases(make_set):
    whole = make_set("abc")
    events = {name: whole.events(name) for name in "abc"}
    del events["b"]["pour"]
    part = make_set("abc", events=events, event_names=whole.event_names)
    assert [len(phases) for _, phases in with_phases(part)] == [len(part["a"]), len(part["c"])]


def test_resamples_differ_between_actions_and_not_between_calls(make_set):
    scorers = [
        ActionScorer(None, make_set("abcd", actions=dict.fromkeys("abcd", action)), PROTOCOLS["linear"])
        for action in ("x", "y")
    ]
    first, again, other = (scorer._resamples() for scorer in (scorers[0], *scorers))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
