import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cycleback.alignment import cycle_consistency_rate
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.evaluation import evaluate, event_error, mean_tau, time_only_embeddings
from cycleback.evaluation.report import SCORES


def arrays(videos):
    return {name: videos[name] for name in videos}


def test_a_report_holds_what_the_metrics_say(make_set):
    train, held_out = make_set("abcdef"), make_set("uvw", seed=1)
    report = evaluate(train, held_out)
    blocks, events = list(arrays(held_out).values()), [held_out.events(name) for name in held_out]
    times = [held_out.times(name) for name in held_out]
    warped = event_error(blocks, events, times=times, method="dtw")
    assert report.tau == mean_tau(blocks).value
    assert report.cycle_rate == cycle_consistency_rate(blocks)
    assert report.event_error_frames == event_error(blocks, events).median_frames
    assert (report.event_error_frames_dtw, report.event_error_ms_dtw) == (
        warped.median_frames,
        warped.median_ms,
    )
    assert (report.pce1_dtw, report.pce3_dtw) == (warped.within[1], warped.within[3])


def test_every_number_comes_with_its_counts(make_set):
    held_out = make_set("uvw", seed=1)
    report = evaluate(make_set("abcdef"), held_out)
    assert report.counts == {
        "actions": 1, "videos": 3, "frames": held_out.num_frames, "pairs": 6, "tau_undefined": 0,
        "event_matches": 18, "labelled_videos": 3, "train_videos": 6, "labelled_train_videos": 6,
        "videos_in_both": 0,
    }  # fmt: skip
    assert list(report.phase_accuracy_by_fraction) == ["0.1", "0.5", "1.0"]
    assert report.phase_accuracy == report.phase_accuracy_by_fraction["1.0"]
    assert list(report.event_error_by_event) == ["touch", "pour", "back"]
    assert all(getattr(report, name) is not None for name in SCORES) and len(SCORES) == 12


def test_embeddings_that_know_the_progress_beat_time_only(make_set):
    train, held_out = make_set("abcdef"), make_set("uvwxyz", seed=1)
    learned = evaluate(train, held_out)
    blind = evaluate(time_only_embeddings(train), time_only_embeddings(held_out))
    assert learned.event_error_frames < blind.event_error_frames
    assert learned.event_error_frames_dtw < blind.event_error_frames_dtw
    assert learned.pce3 > blind.pce3 and learned.phase_accuracy > blind.phase_accuracy
    assert blind.tau > 0.99


def test_unlabelled_videos_get_the_label_free_half(make_set):
    report = evaluate(None, make_set(events=None))
    assert report.tau > 0.9 and 0 < report.cycle_rate <= 1
    others = set(SCORES) - {"tau", "cycle_rate"}
    assert {name: getattr(report, name) for name in others} == dict.fromkeys(others)
    assert report.counts["event_matches"] == report.counts["train_videos"] == 0


def test_without_training_videos_events_are_still_scored(make_set):
    report = evaluate(None, make_set())
    assert report.event_error_frames is not None and report.pce3_dtw is not None
    assert (report.phase_accuracy, report.progression) == (None, None)


def test_labels_on_one_side_only_leave_out_the_classifiers(make_set):
    report = evaluate(make_set("abc", events=None), make_set("uvw"))
    assert (report.phase_accuracy, report.progression) == (None, None)
    assert report.counts["labelled_train_videos"] == 0


def test_videos_with_some_labels_missing_are_left_out_and_counted(make_set):
    whole = make_set("abcd")
    events = {name: whole.events(name) for name in "abcd"}
    del events["a"]["pour"], events["b"]
    part = make_set("abcd", events=events, event_names=whole.event_names)
    report = evaluate(part, make_set("uvw", seed=1))
    assert report.counts["labelled_train_videos"] == 2 and report.counts["train_videos"] == 4
    assert report.phase_accuracy is not None and report.progression is not None


def test_one_video_has_no_pairs_but_a_phase_accuracy(make_set):
    report = evaluate(make_set("abc"), make_set("u", seed=1))
    assert (report.tau, report.cycle_rate, report.event_error_frames) == (None, None, None)
    assert report.phase_accuracy > 0.5 and report.counts["pairs"] == 0


def test_a_collapsed_encoder_is_scored_zero_and_counted(make_set):
    videos = make_set()
    collapsed = videos.with_embeddings({name: np.ones((len(videos[name]), 2)) for name in videos})
    report = evaluate(None, collapsed)
    assert (report.tau, report.counts["tau_undefined"], report.counts["pairs"]) == (0, 12, 12)


def test_without_a_frame_rate_there_are_no_milliseconds(make_set):
    report = evaluate(None, make_set(fps=None))
    assert report.event_error_frames is not None
    assert (report.event_error_ms, report.event_error_ms_dtw) == (None, None)


def test_pairs_stay_within_an_action_and_scores_are_means_over_actions(make_set):
    golf, bowl = make_set("abc"), make_set("uvwx", seed=5, noise=0.2)
    actions = dict.fromkeys("abc", "golf") | dict.fromkeys("uvwx", "bowl")
    events = {name: videos.events(name) for videos in (golf, bowl) for name in videos}
    both = EmbeddingSet.from_arrays(arrays(golf) | arrays(bowl), events=events, actions=actions, fps=25)
    report, parts = evaluate(both, both), [evaluate(golf, golf), evaluate(bowl, bowl)]
    for name in SCORES:
        assert getattr(report, name) == pytest.approx(np.mean([getattr(part, name) for part in parts])), name
    assert report.counts["pairs"] == 6 + 12 and report.counts["actions"] == 2
    assert report.by_action["bowl"].tau == parts[1].tau
    assert "golf: touch" in report.event_error_by_event


def test_an_action_without_training_videos_keeps_its_other_scores(make_set):
    held_out = make_set("abcd", actions={"a": "x", "b": "x", "c": "y", "d": "y"})
    report = evaluate(make_set("uv", seed=1, actions={"u": "x", "v": "x"}), held_out)
    assert report.by_action["y"].phase_accuracy is None
    assert report.phase_accuracy == report.by_action["x"].phase_accuracy
    assert report.counts["pairs"] == 4


def test_the_paper_protocol_strides_and_drops_as_the_authors_program(make_set):
    videos = make_set(noise=0.3)
    blocks = {**arrays(videos), "d": np.ones_like(videos["d"])}
    report = evaluate(None, videos.with_embeddings(blocks), protocol="paper")
    expected = mean_tau(list(blocks.values()), stride=5, undefined="drop")
    assert (report.tau, report.counts["tau_undefined"]) == (expected.value, expected.undefined)
    assert report.protocol == "paper" and expected.undefined > 0


def test_the_stride_of_tau_can_be_chosen(make_set):
    videos = make_set(noise=0.3)
    report = evaluate(None, videos, tau_stride=2)
    assert report.tau == mean_tau(list(arrays(videos).values()), stride=2).value


def test_training_videos_among_the_held_out_are_counted(make_set):
    videos = make_set("abcd")
    assert evaluate(videos, videos.subset(["a", "b"])).counts["videos_in_both"] == 2


def test_a_report_is_plain_json_and_cannot_be_changed(make_set):
    report = evaluate(make_set("abc"), make_set("uv", seed=1))
    again = json.loads(json.dumps(report.to_json()))
    assert again["tau"] == report.tau and again["counts"]["videos"] == 2
    with pytest.raises(FrozenInstanceError):
        report.tau = 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"encoder": "two"}, "different encoders, one and two"), ({"size": 1}, "size 2, held-out ones 1")],
)
def test_sets_of_different_encoders_are_an_error(make_set, settings, message):
    train, held_out = make_set(encoder="one"), make_set("uv", encoder=settings.get("encoder", "one"))
    if "size" in settings:
        held_out = held_out.with_embeddings({name: held_out[name][:, :1] for name in held_out}, encoder="one")
    with pytest.raises(EmbeddingError, match=message):
        evaluate(train, held_out)


def test_an_unknown_protocol_is_an_error(make_set):
    with pytest.raises(ValueError, match="'svm'"):
        evaluate(None, make_set(), protocol="svm")


def test_no_held_out_videos_are_an_error(make_set):
    with pytest.raises(EmbeddingError, match="no held-out videos"):
        evaluate(make_set(), make_set().subset([]))


def test_an_empty_training_set_is_as_good_as_none(make_set):
    report = evaluate(make_set().subset([]), make_set("uv"))
    assert report.phase_accuracy is None and report.counts["train_videos"] == 0
