"""Videos that show the same curve at other speeds, so that the true frame of every label is known."""

import numpy as np
import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.applications.labels import (
    annotate,
    join_takes,
    label_transfer_error,
    match_labels,
    transfer_labels,
)
from cycleback.data import Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, UserError

LENGTHS = {"a": 60, "b": 90, "c": 45, "d": 120}
PLACES = {"touch": 0.2, "pour": 0.5, "back": 0.8}  # share of the video


def curve(num_frames: int, *, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """(N, 3) embeddings along a helix."""
    time = np.linspace(0, 1, num_frames)
    points = np.stack([np.cos(3 * time), np.sin(3 * time), 2 * time], axis=1)
    return points + noise * np.random.default_rng(seed).normal(size=points.shape)


def true_events(name: str) -> dict[str, int]:
    return {event: round(place * (LENGTHS[name] - 1)) for event, place in PLACES.items()}


@pytest.fixture(scope="module")
def videos() -> EmbeddingSet:
    arrays = {name: curve(length) for name, length in LENGTHS.items()}
    return EmbeddingSet.from_arrays(arrays, fps=25, events={name: true_events(name) for name in LENGTHS})


def frames(found, name: str) -> dict[str, int]:
    return {event.name: event.at.frame for event in found.videos[name].events}


@pytest.mark.parametrize("method", ["dtw", "nearest"])
@pytest.mark.parametrize("labelled", [["a"], ["a", "b", "c"]])
def test_events_land_where_they_are(videos: EmbeddingSet, method, labelled: list[str]) -> None:
    found = transfer_labels(videos, {name: true_events(name) for name in labelled}, method=method)
    assert set(found.videos) == set(LENGTHS) and set(found.label_next) == set(LENGTHS) - set(labelled)
    for name in LENGTHS:
        for event, frame in true_events(name).items():
            assert abs(frames(found, name)[event] - frame) <= 1


def test_every_label_has_frames_seconds_and_a_confidence(videos: EmbeddingSet) -> None:
    found = transfer_labels(videos, {"a": true_events("a")})
    for event in found.videos["b"].events:
        assert event.at.seconds == pytest.approx(event.at.frame / 25)
        assert 0.5 < event.confidence <= 1
    assert [event.confidence for event in found.videos["a"].events] == [None] * 3
    assert (found.confidence("a"), found.videos["b"].num_frames) == (1.0, 90)


def test_segments_stay_beside_each_other_and_reach_the_end(videos: EmbeddingSet) -> None:
    spans = [("lift", 0, 12), ("pour", 12, 30), ("lift", 30, 60)]
    found = transfer_labels(videos, {}, segments={"a": spans}).videos["d"].segments
    assert [each.name for each in found] == ["lift", "pour", "lift"]
    assert found[0].end == found[1].start and found[1].end == found[2].start
    assert (found[0].start.frame, found[2].end) == (0, Moment(4.8, 120))
    assert abs(found[1].start.frame - 24) <= 1


def test_an_event_missing_in_a_source_comes_from_the_others(videos: EmbeddingSet) -> None:
    labels = {"a": {"touch": true_events("a")["touch"]}, "b": true_events("b")}
    assert abs(frames(transfer_labels(videos, labels), "d")["pour"] - true_events("d")["pour"]) <= 1


def test_actions_are_not_mixed() -> None:
    arrays = {name: curve(length) for name, length in LENGTHS.items()}
    actions = {"a": "pour", "b": "pour", "c": "golf", "d": "golf"}
    videos = EmbeddingSet.from_arrays(arrays, actions=actions)
    found = transfer_labels(videos, {"a": true_events("a")})
    assert (list(found.videos), found.label_next, found.left_out) == (["a", "b"], ("b",), ("c", "d"))


def test_a_source_that_matches_badly_is_outvoted_by_one_that_matches() -> None:
    arrays = {
        "good": curve(60),
        "bad": curve(60, noise=3.0),
        "worse": curve(60, noise=3.0, seed=1),
        "new": curve(80),
    }
    labels = {"good": {"top": 30}, "bad": {"top": 5}, "worse": {"top": 5}}
    found = transfer_labels(EmbeddingSet.from_arrays(arrays), labels)
    assert abs(frames(found, "new")["top"] - 40) <= 10  # the other two say 7


def test_votes_that_differ_lower_the_confidence(videos: EmbeddingSet) -> None:
    agreed = transfer_labels(videos, {"a": {"top": 30}, "b": {"top": 45}}).videos["d"].events[0]
    apart = transfer_labels(videos, {"a": {"top": 30}, "b": {"top": 65}}).videos["d"].events[0]
    assert apart.confidence == pytest.approx(0.5**0.4 * agreed.confidence, rel=0.01)  # half of the votes


def test_the_least_certain_video_is_to_be_labelled_next() -> None:
    arrays = {"a": curve(60), "near": curve(70), "odd": curve(70, noise=0.5), "far": curve(70, noise=5.0)}
    found = transfer_labels(EmbeddingSet.from_arrays(arrays), {"a": {"top": 30}})
    assert found.label_next == ("far", "odd", "near")
    assert found.confidence("far") < found.confidence("near")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ["dtw", "nearest"])
def test_the_order_of_the_labels_is_kept(method, seed: int) -> None:
    arrays = {name: curve(length, noise=1.0, seed=seed) for name, length in LENGTHS.items()}
    labels = {"a": true_events("a"), "b": {"touch": 10, "back": 70}}
    found = transfer_labels(EmbeddingSet.from_arrays(arrays), labels, method=method)
    for name in "cd":
        places = frames(found, name)
        assert list(places) == list(PLACES) and list(places.values()) == sorted(places.values())


def test_sources_that_disagree_on_the_order_keep_their_labels(videos: EmbeddingSet) -> None:
    found = transfer_labels(videos, {"a": {"x": 10, "y": 50}, "b": {"y": 15, "x": 75}})
    assert set(frames(found, "d")) == {"x", "y"}


def test_one_frame_is_enough_to_be_labelled() -> None:
    videos = EmbeddingSet.from_arrays({"a": curve(60), "still": curve(1)})
    found = transfer_labels(videos, {"a": true_events("a")}, segments={"a": [("all", 0, 60)]})
    assert frames(found, "still") == {"touch": 0, "pour": 0, "back": 0}
    assert all(0 <= label.confidence <= 1 for label in found.videos["still"].labels)


def test_a_label_past_the_end_and_no_labels_are_refused(videos: EmbeddingSet) -> None:
    with pytest.raises(DataError, match=r"c: 'top' is labelled at frame 45, but the video goes from 0 to 44"):
        transfer_labels(videos, {"c": {"top": 45}})
    with pytest.raises(DataError, match=r"c: 'x' starts at frame 9 and ends before it, at frame 4"):
        transfer_labels(videos, {}, segments={"c": [("x", 9, 4)]})
    with pytest.raises(DataError, match="no labels to carry over"):
        transfer_labels(videos, {"c": {}})


def test_the_error_is_in_milliseconds_over_the_videos_without_labels(videos: EmbeddingSet) -> None:
    errors = label_transfer_error(videos, ["a", "b"])
    assert errors.shape == (2 * 3,) and errors.max() < 41
    late = {name: {event: frame + 5 for event, frame in true_events(name).items()} for name in "cd"}
    shifted = EmbeddingSet.from_arrays(
        {name: videos[name] for name in LENGTHS}, fps=25, events={"a": true_events("a"), **late}
    )
    assert np.median(label_transfer_error(shifted, ["a"])) == pytest.approx(200, abs=40)


def test_label_files_become_frames_of_the_videos_they_mean() -> None:
    videos = EmbeddingSet.from_arrays({"golf/a": curve(60), "golf/b": curve(60)}, fps=25)
    segments = (Segment("swing", Moment(0.4), Moment(2.4)),)
    given = Annotation("a", (Event("top", Moment(1.21)),), segments, file=r"C:\golf\a.mp4")
    upload = Annotation("0a1b2c3d-b", (Event("top", Moment(frame=7)),))
    events, spans = match_labels([given, upload], videos)
    assert events == {"golf/a": {"top": 30}, "golf/b": {"top": 7}}
    assert spans == {"golf/a": [("swing", 10, 60)]}


@pytest.mark.parametrize(
    ("name", "seconds", "words"),
    [
        (
            "golf_1",
            1.0,
            r"the labels name a video 'golf_1', which is not among the 2\. Did you mean 'golf1'\?",
        ),
        ("golf1", 9.0, r"golf1: 'top' is labelled at 9 s, but the video has 60 frames, the last at 2\.36 s"),
        ("golf1", -1.0, r"golf1: 'top' is labelled at -1 s"),
    ],
)
def test_a_label_that_fits_no_frame_is_named(name: str, seconds: float, words: str) -> None:
    videos = EmbeddingSet.from_arrays({"golf1": curve(60), "golf2": curve(60)}, fps=25)
    with pytest.raises(DataError, match=words):
        match_labels([Annotation(name, (Event("top", Moment(seconds)),))], videos)


def test_an_event_that_comes_twice_is_told() -> None:
    twice = (Event("top", Moment(frame=3)), Event("top", Moment(frame=9)))
    with pytest.warns(UserWarning, match="a: 'top' is labelled twice, the first counts"):
        events, _ = match_labels([Annotation("a", twice)], EmbeddingSet.from_arrays({"a": curve(60)}))
    assert events == {"a": {"top": 3}}


@pytest.mark.parametrize("method", ["auto", "dtw", "nearest"])
def test_a_label_whose_frame_is_pinned_lies_at_the_pin(videos: EmbeddingSet, method) -> None:
    labels = {name: true_events(name) for name in ("a", "b")}
    pins = [Pin("c", 30, "a", labels["a"]["pour"]), Pin("c", 5, "d", 5)]  # c alone says frame 22
    found = transfer_labels(videos, labels, method=method, pins=pins)
    pour = next(event for event in found.videos["c"].events if event.name == "pour")
    assert (pour.at.frame, pour.confidence) == (30, 1.0)
    assert frames(found, "d") == frames(transfer_labels(videos, labels, method=method), "d")


def test_pins_beside_a_label_move_it(videos: EmbeddingSet) -> None:
    labels = {"a": true_events("a")}  # pour at frame 30
    pins = [Pin("a", 28, "c", 28), Pin("a", 32, "c", 30)]
    found = transfer_labels(videos, labels, pins=pins)
    assert 28 <= frames(found, "c")["pour"] <= 30
    with pytest.raises(UserError, match="pins 28:28 and 32:20 of a and c cross"):
        transfer_labels(videos, labels, pins=[pins[0], Pin("c", 20, "a", 32)])


def test_labels_go_to_the_take_they_lie_in_and_come_back_for_the_video() -> None:
    whole = EmbeddingSet.from_arrays({"x/reps": curve(60)}, fps=10)
    takes = whole.cut({"reps#1": ("x/reps", 5, 30), "reps#2": ("x/reps", 30, 55)})
    given = Annotation(
        "reps",
        events=(
            Event("top", Moment(frame=12)),
            Event("top", Moment(seconds=3.7)),
            Event("top", Moment(frame=2)),
        ),
        segments=(Segment("down", Moment(seconds=3.1), Moment(frame=40)),),
    )
    with pytest.warns(UserWarning, match="'top' at frame 2 lies in no repetition and is left out"):
        events, segments = match_labels([given], takes)
    assert events == {"reps#1": {"top": 7}, "reps#2": {"top": 7}}
    assert segments == {"reps#2": [("down", 1, 10)]}
    found = [
        annotate(takes, name, {("event", "top", 0): (events[name]["top"], None)}) for name in takes.names
    ]
    (joined,) = join_takes(takes, found)
    assert joined.video == "x/reps"
    assert [(event.at.frame, event.at.seconds) for event in joined.events] == [(12, 1.2), (37, 3.7)]
