import csv
import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cycleback.alignment import cycle_consistency_rate
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.evaluation import (
    PROTOCOLS,
    evaluate,
    event_error,
    mean_tau,
    phase_progression,
    retrieval_precision,
    time_only_embeddings,
)
from cycleback.evaluation.events import Labels
from cycleback.evaluation.report import SCORES
from cycleback.evaluation.scorer import ActionScorer, resample_events, with_phases


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
    held_out = make_set("uvw", seed=1, noise=0.1)
    report = evaluate(make_set("abcdef"), held_out)
    assert report.counts == {
        "actions": 1, "videos": 3, "frames": held_out.num_frames, "pairs": 6, "tau_undefined": 0,
        "pairs_backwards": 0, "three_way_videos": 3, "event_matches": 18, "confidence_matches": 18,
        "retrieval_queries": held_out.num_frames, "labelled_videos": 3, "train_videos": 6,
        "labelled_train_videos": 6, "videos_in_both": 0,
        "persons_in_both": 0,
    }  # fmt: skip
    assert list(report.phase_accuracy_by_fraction) == ["0.1", "0.5", "1.0"]
    assert report.phase_accuracy == report.phase_accuracy_by_fraction["1.0"]
    assert list(report.event_error_by_event) == ["touch", "pour", "back"]
    assert all(getattr(report, name) is not None for name in SCORES) and len(SCORES) == 24


def test_embeddings_that_know_the_progress_beat_time_only(make_set):
    train, held_out = make_set("abcdef"), make_set("uvwxyz", seed=1)
    learned = evaluate(train, held_out)
    blind = evaluate(time_only_embeddings(train), time_only_embeddings(held_out))
    assert learned.event_error_frames < blind.event_error_frames
    assert learned.event_error_frames_dtw < blind.event_error_frames_dtw
    assert learned.pce3 > blind.pce3 and learned.phase_accuracy > blind.phase_accuracy
    assert blind.tau > 0.99


def test_precision_of_retrieval_is_in_the_report(make_set):
    videos = make_set(noise=0.1)
    expected = retrieval_precision([(videos[name], videos.phases(name)) for name in videos])
    report = evaluate(None, videos)
    assert report.precision_at == {str(k): share for k, share in expected.at.items()}
    assert report.precision5 == expected.at[5]


def test_unlabelled_videos_get_the_label_free_half(make_set):
    report = evaluate(None, make_set(events=None))
    assert report.tau > 0.9 and 0 < report.cycle_rate <= 1
    others = set(SCORES) - {"tau", "tau_a", "cycle_rate", "cycle_rate_three"}
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
    report = evaluate(make_set("abc"), make_set("u", seed=1), few_shot=False)
    assert (report.tau, report.cycle_rate, report.event_error_frames) == (None, None, None)
    assert (report.precision5, report.cycle_rate_three, report.confidence_auroc) == (None, None, None)
    assert report.phase_accuracy > 0.5 and report.counts["pairs"] == 0


def test_videos_matched_against_time_are_counted(make_set):
    videos = make_set("uvwx", seed=1, noise=0.01)
    turned = {name: videos[name][::-1].copy() if name in "uv" else videos[name] for name in videos}
    report = evaluate(videos.subset([]), videos.with_embeddings(turned))
    assert report.counts["pairs_backwards"] == 8  # of 12 ordered pairs: u and v with w and x, both ways
    assert evaluate(videos.subset([]), videos).counts["pairs_backwards"] == 0


def test_a_collapsed_encoder_is_scored_zero_and_counted(make_set):
    videos = make_set()
    collapsed = videos.with_embeddings({name: np.ones((len(videos[name]), 2)) for name in videos})
    report = evaluate(videos.subset([]), collapsed)
    assert (report.tau, report.counts["tau_undefined"], report.counts["pairs"]) == (0, 12, 12)
    assert report.cycle_rate < 0.1 and report.intervals["tau"] == (0, 0)
    assert report.calibration[0].confidence == 0
    json.dumps(report.to_json(), allow_nan=False)


def test_constant_embeddings_can_still_be_trained_on(make_set):
    train, held_out = make_set("abcd"), make_set("uvw", seed=1)
    train, held_out = (v.with_embeddings({n: np.ones((len(v[n]), 2)) for n in v}) for v in (train, held_out))
    report = evaluate(train, held_out)
    assert 0 < report.phase_accuracy < 1 and report.progression <= 0.1
    assert report.few_shot["1"]["mean"] <= 1


def test_embeddings_that_are_not_finite_are_refused_where_they_enter(make_set):
    videos = make_set()
    broken = {name: videos[name].copy() for name in videos}
    broken["b"][3] = np.nan
    with pytest.raises(EmbeddingError, match=r"b: 1 of \d+ frames .* \(first: frame 3\)"):
        videos.with_embeddings(broken)


def test_a_label_past_the_end_is_refused_where_it_enters(make_set):
    with pytest.raises(EmbeddingError, match="a: key event 'touch' at frame 99, but the video has"):
        make_set("a", events={"a": {"touch": 99}})


def test_a_phase_that_never_occurs_in_training_counts_as_wrong(make_set):
    train = make_set("abc")
    always = {name: {"touch": 0, "pour": 1, "back": len(train[name]) - 1} for name in train}
    report = evaluate(make_set("abc", events=always), make_set("uvw", seed=1), few_shot=False)
    assert 0 < report.phase_accuracy < 0.9


def test_without_a_frame_rate_there_are_no_milliseconds(make_set):
    report = evaluate(None, make_set(fps=None))
    assert report.event_error_frames is not None
    assert (report.event_error_ms, report.event_error_ms_dtw) == (None, None)


def test_pairs_stay_within_an_action_and_scores_are_means_over_actions(make_set):
    golf, bowl = make_set("abc"), make_set("uvwx", seed=5, noise=0.2)
    actions = dict.fromkeys("abc", "golf") | dict.fromkeys("uvwx", "bowl")
    events = {name: videos.events(name) for videos in (golf, bowl) for name in videos}
    both = EmbeddingSet.from_arrays(arrays(golf) | arrays(bowl), events=events, actions=actions, fps=25)
    report, *parts = (evaluate(part, part, allow_overlap=True) for part in (both, golf, bowl))
    for name in set(SCORES) - {"confidence_auroc"}:
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


def test_the_reference_protocol_strides_and_drops_as_the_authors_program(make_set):
    videos = make_set(noise=0.3)
    blocks = {**arrays(videos), "d": np.ones_like(videos["d"])}
    report = evaluate(None, videos.with_embeddings(blocks), protocol="reference")
    expected = mean_tau([block[::5] for block in blocks.values()], undefined="drop")
    assert (report.tau, report.counts["tau_undefined"]) == (expected.value, expected.undefined)
    assert report.protocol == "reference" and expected.undefined > 0


def test_the_paper_protocol_counts_ties_as_discordant_in_all_frames(make_set):
    videos = make_set(noise=0.3)
    report = evaluate(None, videos, protocol="paper")
    blocks = list(arrays(videos).values())
    assert report.tau == mean_tau(blocks, variant="strict").value < report.tau_a
    assert report.tau_a == mean_tau(blocks, variant="a").value


def test_protocols_differ_in_classifier_and_in_progression(make_set):
    train, held_out = make_set("abcdef", noise=0.1), make_set("uvw", seed=1, noise=0.1)
    scores = {name: evaluate(train, held_out, protocol=name, few_shot=False) for name in PROTOCOLS}
    sides = [[(part[name], part.events(name)) for name in part] for part in (train, held_out)]
    assert scores["reference"].progression == phase_progression(*sides, shift=-1).value
    assert scores["linear"].progression == scores["paper"].progression == phase_progression(*sides).value
    assert scores["paper"].phase_accuracy == scores["reference"].phase_accuracy
    assert scores["paper"].phase_accuracy != scores["linear"].phase_accuracy


def test_the_stride_of_tau_can_be_chosen(make_set):
    videos = make_set(noise=0.3)
    report = evaluate(None, videos, tau_stride=2)
    assert report.tau == mean_tau([block[::2] for block in arrays(videos).values()]).value


def test_training_videos_among_the_held_out_are_refused_or_counted(make_set):
    videos = make_set("abcd")
    with pytest.raises(EmbeddingError, match=r"'a' is also trained on \('a': the same name"):
        evaluate(videos, videos.subset(["a", "b"]))
    report = evaluate(videos, videos.subset(["a", "b"]), allow_overlap=True, few_shot=False)
    assert report.counts["videos_in_both"] == 2


def test_people_on_both_sides_are_refused_or_counted(make_set):
    videos, persons = make_set("abcd"), {"a": "ann", "c": "ann", "d": "dan"}
    train, held_out = videos.subset(["a", "b"]), videos.subset(["c", "d"])
    with pytest.raises(EmbeddingError, match=r"'c' is also trained on \('a': the same person, ann"):
        evaluate(train, held_out, persons=persons)
    report = evaluate(train, held_out, persons=persons, allow_overlap=True, few_shot=False)
    assert (report.counts["videos_in_both"], report.counts["persons_in_both"]) == (0, 1)


def test_the_main_scores_have_intervals_that_hold_them(make_set):
    report = evaluate(make_set("abcdef"), make_set("tuvwxyz", seed=1, noise=0.1), few_shot=False)
    events = ("event_error_frames", "pce1", "pce3", "event_within_span")
    expected = {"tau", "cycle_rate", "phase_accuracy", "progression", *events, *(e + "_dtw" for e in events)}
    assert set(report.intervals) == expected
    for name, (low, high) in report.intervals.items():
        assert low <= getattr(report, name) <= high, name
    assert report.intervals["tau"][0] < report.intervals["tau"][1]


def test_intervals_and_few_shot_can_be_left_out(make_set):
    report = evaluate(make_set("abc"), make_set("uvw", seed=1), intervals=False, few_shot=False)
    assert (report.intervals, report.few_shot, report.few_shot1) == ({}, {}, None)


def test_two_videos_have_no_intervals(make_set):
    assert evaluate(None, make_set("uv")).intervals == {}


def test_the_interval_of_a_mean_over_actions_is_narrower_than_theirs(make_set):
    actions = dict.fromkeys("abcdefg", "x") | dict.fromkeys("uvwst", "y")
    report = evaluate(None, make_set("abcdefguvwst", noise=0.1, actions=actions))
    widths = [np.diff(part.intervals["tau"])[0] for part in (report, *report.by_action.values())]
    assert widths[0] < max(widths[1:])
    assert report.intervals["tau"][0] <= report.tau <= report.intervals["tau"][1]


def test_an_action_of_two_videos_stays_at_its_score_in_the_interval_of_the_mean(make_set):
    actions = dict.fromkeys("abcde", "x") | dict.fromkeys("uv", "y")
    report = evaluate(None, make_set("abcdeuv", noise=0.1, actions=actions))
    low = (report.by_action["x"].intervals["tau"][0] + report.by_action["y"].tau) / 2
    assert report.intervals["tau"][0] == pytest.approx(low)


def test_few_labelled_videos_do_worse_than_many(make_set):
    report = evaluate(make_set("abcdefghij", noise=0.05), make_set("uvw", seed=1, noise=0.05))
    assert list(report.few_shot) == ["1", "2", "3", "5", "10"]
    assert report.few_shot1 == report.few_shot["1"]["mean"] < report.few_shot["10"]["mean"]
    assert report.few_shot["1"]["spread"] > 0.01 > report.few_shot["10"]["spread"]


def test_the_same_seed_gives_the_same_report_and_another_seed_another(make_set):
    train, held_out = make_set("abcde", noise=0.1), make_set("stuvwxyz", seed=1, noise=0.1)
    first, again, other = (evaluate(train, held_out, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.few_shot != other.few_shot and first.intervals != other.intervals


def test_confident_matches_are_checked_against_the_truth(make_set):
    report = evaluate(None, make_set("abcdef", noise=0.2))
    assert sum(part.count for part in report.calibration) == report.counts["confidence_matches"] == 90
    assert 0.5 < report.confidence_auroc <= 1 and 0 <= report.calibration_error <= 1


def test_absolute_errors_are_kept_for_plots(make_set):
    videos = make_set()
    report = evaluate(None, videos)
    assert len(report.event_errors) == 36
    assert np.median(report.event_errors) == report.event_error_frames
    assert np.mean(report.event_errors) == report.event_error_mean_frames


def test_a_report_is_plain_json_and_cannot_be_changed(make_set):
    report = evaluate(make_set("abc"), make_set("uv", seed=1))
    again = json.loads(json.dumps(report.to_json()))
    assert again["tau"] == report.tau and again["counts"]["videos"] == 2
    with pytest.raises(FrozenInstanceError):
        report.tau = 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "two"}, "training videos by one, held-out videos by two"),
        ({"size": 1}, "size 2, held-out ones 1"),
    ],
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


@pytest.fixture
def drawn(rng):
    """Five resamples of four videos: which videos were drawn, and how often each."""
    videos = rng.integers(4, size=(5, 4))
    return videos, np.stack([np.bincount(row, minlength=4) for row in videos]).astype(float)


def test_resampled_key_events_are_those_of_the_drawn_pairs(make_set, drawn):
    videos = make_set("abcd", noise=0.2)
    blocks, events = [videos[name] for name in videos], [videos.events(name) for name in videos]
    error, labels = event_error(blocks, events), Labels.of(events)
    found = resample_events(error, labels, drawn[1], "_dtw")
    owners = labels.videos[error.labels]
    for position, row in enumerate(drawn[0]):
        weights = [(row == a).sum() * (row == b).sum() for a, b in zip(owners, error.videos, strict=True)]
        kept = np.repeat(error.errors, weights)
        assert found["event_error_frames_dtw"][position] == np.median(kept)
        assert found["pce1_dtw"][position] == pytest.approx((kept <= 1).mean())
        assert found["pce3_dtw"][position] == pytest.approx((kept <= 3).mean())
        in_span = np.repeat(error.errors <= error.tolerances, weights)
        assert found["event_within_span_dtw"][position] == pytest.approx(in_span.mean())


def test_the_span_is_measured_between_the_named_events(make_set):
    videos = make_set("abcd", noise=0.2)
    names = videos.event_names
    blocks, events = [videos[name] for name in videos], [videos.events(name) for name in videos]
    report = evaluate(None, videos, span=(names[0], names[1]), intervals=False)
    for method, found in (("nearest", report.event_within_span), ("dtw", report.event_within_span_dtw)):
        assert found == event_error(blocks, events, method=method, span=(names[0], names[1])).within_span
    with pytest.raises(EmbeddingError, match=rf"both events of the span {names[0]},never. Its events: "):
        evaluate(None, videos, span=(names[0], "never"))


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


def test_time_only_is_the_frame_number_over_the_length(make_set):
    videos = make_set("ab")
    baseline = time_only_embeddings(videos)
    assert (baseline.size, baseline.encoder) == (1, "time-only")
    for name in videos:
        length = len(videos[name])
        np.testing.assert_allclose(baseline[name][:, 0], np.arange(length) / length, rtol=1e-6)


def test_time_only_keeps_the_labels(make_set):
    videos = make_set("ab", actions={"a": "pouring", "b": "pouring"})
    baseline = time_only_embeddings(videos)
    for name in videos:
        assert baseline.events(name) == videos.events(name)
        assert baseline.action(name) == "pouring"
        np.testing.assert_array_equal(baseline.phases(name), videos.phases(name))
        np.testing.assert_array_equal(baseline.times(name), videos.times(name))


def test_time_only_on_real_golf_swings_is_twelve_frames_off(shared_data):
    with (shared_data / "golf" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[3:11]
    videos: dict[str, list] = {"train": [], "val": [], "val_slow": []}
    for row in rows:
        length = int(row["num_frames"])
        events = {name: int(row[name]) for name in names}
        videos[row["role"]].append((np.arange(length)[:, None] / length, events))
    error = event_error(*zip(*videos["val"], strict=True))
    assert (error.median_frames, error.count) == (12, 191 * 190 * 8)
    assert phase_progression(videos["train"], videos["val"]).value == pytest.approx(0.878, abs=5e-4)
