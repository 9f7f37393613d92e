import json

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from cycleback.applications import judge
from cycleback.applications.verdict import KINDS
from cycleback.embeddings import EmbeddingSet


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def course(seed, length):
    """Return a smooth course (length, 40) through 20 random places, others for each seed."""
    places = np.random.default_rng(seed).normal(size=(20, 40))
    return CubicSpline(np.linspace(0, 1, 20), places)(np.linspace(0, 1, length))


def perform(rng, seed, length):
    """One take of a course, with noise."""
    return course(seed, length) + 0.05 * rng.normal(size=(length, 40))


def make_set(**videos):
    return EmbeddingSet.from_arrays(videos, fps=30.0)


def test_two_takes_of_one_action_are_sound(rng):
    verdict = judge(make_set(a=perform(rng, 1, 90), b=perform(rng, 1, 120)), "a")
    assert verdict.kind == "sound" and verdict.findings == () and verdict.right > 0.8
    assert str(verdict) == f"verdict: the same action, about {verdict.right:.0%} of the matches are right"


def test_another_action_is_told_with_what_to_do(rng):
    verdict = judge(make_set(a=perform(rng, 1, 90), b=perform(rng, 2, 100)), "a")
    assert verdict.kind == "different" and verdict.right < 0.3
    expected = "verdict: a and b do not seem to show the same action: choose another video, or "
    assert str(verdict) == f"{expected}set what belongs together with --pin"


def test_a_video_that_runs_backwards_is_told(rng):
    verdict = judge(make_set(a=perform(rng, 1, 90), b=perform(rng, 1, 100)[::-1]), "a")
    assert verdict.kind == "backwards" and verdict.findings[0].videos == ("b",)
    assert str(verdict) == "verdict: a or b runs backwards: turn it round with ffmpeg -vf reverse"


def test_the_odd_one_of_several_is_named(rng):
    videos = {name: perform(rng, 1, 90 + 5 * k) for k, name in enumerate("abcd")}
    verdict = judge(make_set(**videos, odd=perform(rng, 2, 90)), "a")
    assert [each.videos for each in verdict.findings] == [("odd",)]
    assert "odd does not seem to show the action of a: leave it out" in str(verdict)
    accused = judge(make_set(**videos, odd=perform(rng, 2, 90)), "odd")
    assert [each.videos for each in accused.findings] == [("odd",)]
    assert "odd does not seem to show the action of most of the others" in str(accused)


def test_several_repetitions_are_told_unless_the_videos_are_takes(rng):
    often = np.concatenate([perform(rng, 1, 40) for _ in range(5)])
    videos = make_set(once=perform(rng, 1, 90), often=often)
    verdict = judge(videos, "once")
    assert verdict.kind == "repetitions"
    told = "often holds about 5 repetitions: add --repetitions to take each as a video of its own"
    assert told in str(verdict)
    assert all(each.kind != "repetitions" for each in judge(videos, "once", are_takes=True).findings)


def test_a_guess_says_to_train(rng):
    verdict = judge(make_set(a=perform(rng, 1, 90), b=perform(rng, 1, 90)), "a", confidence=0.2)
    assert verdict.kind == "guess" and verdict.right == pytest.approx(0.2, abs=0.02)
    assert "of the matches are right: train longer or with more videos" in str(verdict)


def test_videos_of_another_action_are_not_compared(rng):
    arrays = {"a": perform(rng, 1, 90), "b": perform(rng, 1, 100), "c": perform(rng, 2, 90)}
    videos = EmbeddingSet.from_arrays(arrays, actions={"a": "walk", "b": "walk", "c": "run"}, fps=30.0)
    assert judge(videos, "a").kind == "sound"


def test_verdict_is_json(rng):
    verdict = judge(make_set(a=perform(rng, 1, 90), b=perform(rng, 2, 90)), "a")
    read = json.loads(json.dumps(verdict.to_json()))
    assert read["kind"] == "different" and read["text"] == str(verdict)
    assert read["findings"][0]["videos"] == ["b"] and set(KINDS) >= {
        each["kind"] for each in read["findings"]
    }


@pytest.mark.parametrize("length", [1, 2, 5])
def test_very_short_videos_are_judged(rng, length):
    videos = make_set(a=rng.normal(size=(length, 3)), b=rng.normal(size=(length, 3)))
    assert 0 <= judge(videos, "a").right <= 1
