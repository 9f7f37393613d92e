import numpy as np
import pytest

from cycleback.applications.plots import draw_timing
from cycleback.applications.timing import BEGIN, TYPICAL, TimingReport, measure_timing
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError, UserError
from phased_clips import staircase

LENGTHS = {"even": (20, 20, 20), "late": (20, 35, 20), "same": (33, 20, 20), "short": (10, 20, 10)}
EVENTS = ("take_off", "top", "landing")
FPS = 10


def take(lengths: tuple[int, ...], seed: int) -> tuple[np.ndarray, dict[str, int]]:
    """A line through four corners, with so many frames before each corner but the first, and its events."""
    corners = np.array([[0.0, 0, 0], [3.0, 0, 0], [3.0, 3.0, 0], [3.0, 3.0, 3.0]])
    parts = [np.linspace(corners[k], corners[k + 1], n, endpoint=False) for k, n in enumerate(lengths)]
    rows = np.concatenate([*parts, corners[-1:].repeat(8, axis=0)])
    noise = 0.02 * np.random.default_rng(seed).normal(size=rows.shape)
    return rows + noise, dict(zip(EVENTS, np.cumsum(lengths).tolist(), strict=True))


def takes(*names: str, labelled: tuple[str, ...] = tuple(LENGTHS)) -> EmbeddingSet:
    made = {name: take(LENGTHS[name], seed) for seed, name in enumerate(names or LENGTHS)}
    events = {name: events for name, (_, events) in made.items() if name in labelled}
    return EmbeddingSet.from_arrays({n: rows for n, (rows, _) in made.items()}, events=events, fps=FPS)


def deviations(report: TimingReport, name: str) -> dict[str, float]:
    return {each.name: round(each.difference_s, 3) for each in report.deviations(name)}


def test_deviations_of_labelled_takes_are_those_of_the_labels() -> None:
    report = measure_timing(takes(), reference="even")
    assert (report.moments, report.zero, report.is_discovered) == (EVENTS, "take_off", False)
    assert deviations(report, "late") == {
        "top": 1.5,
        "landing": 1.5,
        "take_off to top": 1.5,
        "top to landing": 0.0,
        "whole action": 1.5,
    }
    assert set(deviations(report, "same").values()) == {0.0}  # a longer lead-in is no deviation
    assert report.describe("same") == "same: like even, as far as can be told"
    assert report.describe("short").startswith("short: landing 1.00 s early; top to landing 50% shorter")
    share = {each.name: each.share for each in report.deviations("late")}
    assert share["top"] == pytest.approx(1.5 / 4) and share["take_off to top"] == pytest.approx(0.75)


def test_time_may_count_from_another_moment_or_from_the_first_frame() -> None:
    assert deviations(measure_timing(takes(), reference="even", zero="top"), "late")["take_off"] == -1.5
    from_begin = measure_timing(takes(), reference="even", zero=BEGIN)
    assert deviations(from_begin, "same")["take_off"] == 1.3
    with pytest.raises(UserError, match=r"no moment 'tpo' to count time from\. Did you mean 'top'"):
        measure_timing(takes(), zero="tpo")


def test_the_typical_take_has_the_median_times() -> None:
    report = measure_timing(takes())
    assert report.reference == TYPICAL and set(report.takes) == set(LENGTHS)
    assert report.normal.since.tolist() == pytest.approx([0.0, 2.0, 4.0])  # medians of 2, 3.5, 2, 2 and so on
    assert deviations(report, "even") == dict.fromkeys(deviations(report, "even"), 0.0)


def test_labels_of_one_take_are_carried_over_and_errors_stay_below_the_resolution() -> None:
    truth = measure_timing(takes(), reference="even")
    found = measure_timing(takes(labelled=("even",)), reference="even")
    errors = []
    for name in truth.takes:
        right = deviations(truth, name)
        for each in found.deviations(name):
            errors.append(abs(each.difference_s - right[each.name]) <= each.resolution_s + 1e-9)
            assert abs(each.difference_s - right[each.name]) <= 0.31
    assert np.mean(errors) >= 0.8
    assert {each.name for each in found.deviations("late") if each.is_finding} >= {"top", "landing"}


def test_a_difference_of_less_than_a_frame_or_of_a_few_votes_is_no_finding() -> None:
    report = measure_timing(takes())
    resolutions = [each.resolution_s for name in LENGTHS for each in report.deviations(name)]
    assert min(resolutions) >= 1 / FPS
    findings = [each for name in LENGTHS for each in report.deviations(name) if each.is_finding]
    assert findings and all(abs(each.difference_s) > each.resolution_s for each in findings)


def test_phases_are_found_without_labels() -> None:
    clips, truth = zip(*map(staircase, range(6)), strict=True)
    videos = EmbeddingSet.from_arrays({f"v{k}": clip for k, clip in enumerate(clips)}, fps=FPS)
    report = measure_timing(videos, reference="v0")
    assert report.is_discovered and report.phases == ("phase 2", "phase 3")
    for number in range(1, 6):
        own, usual = np.array(truth[number]), np.array(truth[0])
        expected = ((own - own[0]) - (usual - usual[0])) / FPS
        found = [each.difference_s for each in report.deviations(f"v{number}") if not each.is_phase]
        assert found == pytest.approx(expected[1:], abs=0.31)
    labelled = measure_timing(takes(), phases=3)
    assert labelled.is_discovered and len(labelled.moments) == 2


def test_a_moment_that_a_take_lacks_is_left_out_of_its_report() -> None:
    videos = takes()
    labels = {name: dict(videos.events(name)) for name in videos}
    del labels["late"]["top"]
    report = measure_timing(videos, reference="even", labels=labels)
    assert set(deviations(report, "late")) == {"landing", "whole action"}
    assert draw_timing(report).startswith(b"\x89PNG")


def test_the_reference_may_be_in_another_set() -> None:
    others = takes("late", "same", "short")
    report = measure_timing(others, reference="even", source=takes("even"))
    assert set(report.takes) == {"late", "same", "short"}
    assert deviations(report, "late")["top"] == 1.5
    stranger = EmbeddingSet.from_arrays({"x": np.ones((5, 3))}, encoder="b")
    with pytest.raises(EmbeddingError, match="different encoders"):
        measure_timing(
            EmbeddingSet.from_arrays({"y": np.ones((5, 3))}, encoder="a"), reference="x", source=stranger
        )


def test_takes_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(DataError, match="one take has nothing to be compared with"):
        measure_timing(takes("even"))
    with pytest.raises(DataError, match=r"no reference 'evn'\. Did you mean 'even'"):
        measure_timing(takes(), reference="evn")
    dot = EmbeddingSet.from_arrays({"a": np.ones((1, 2)), "b": np.ones((9, 2))})
    with pytest.raises(DataError, match="a has one frame"):
        measure_timing(dot)
    still = EmbeddingSet.from_arrays({"a": np.ones((9, 2)), "b": np.ones((9, 2))})
    with pytest.raises(DataError, match="no moment stands out in all takes"):
        measure_timing(still)


def test_rows_and_notebook_show_the_same_deviation() -> None:
    report = measure_timing(takes(), reference="even")
    row = next(row for row in report.rows() if row["video"] == "late" and row["name"] == "top")
    assert row == {
        "video": "late",
        "kind": "moment",
        "name": "top",
        "start_s": 5.5,
        "duration_s": None,
        "difference_ms": 1500.0,
        "difference_share": 0.375,
        "resolution_ms": 200.0,
        "finding": 1,
    }
    assert "+1500*" in report._repr_html_()


def test_the_picture_names_takes_phases_and_deviations() -> None:
    text = draw_timing(measure_timing(takes(), reference="even"), format="svg").decode()
    for word in ("even", "late", "short", "take_off to top", "+1500", "seconds from take_off"):
        assert f">{word}<" in text
    pairs = [measure_timing(takes("even", other), reference="even") for other in ("late", "same")]
    pictures = [draw_timing(report, format="svg").decode() for report in pairs]
    assert [picture.count("stroke: #cc3344") for picture in pictures] == [2 + 1, 1]  # one is in the legend
