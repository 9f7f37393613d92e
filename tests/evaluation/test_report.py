import json

import pytest

from cycleback.evaluation import Report
from cycleback.evaluation.events import CalibrationBin
from cycleback.evaluation.report import draw_errors, mean_report


def test_json_is_plain_and_comes_back_as_it_was():
    report = Report(
        tau=0.5,
        calibration=(CalibrationBin(0.5, 0.25, 4),),
        intervals={"tau": (0.4, 0.6)},
        robust={"speed": {"tau": None}},
    )
    plain = report.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["calibration"] == [{"confidence": 0.5, "right": 0.25, "count": 4}]
    assert plain["intervals"] == {"tau": [0.4, 0.6]}
    assert Report.from_json({**plain, "unknown": 1}).to_json() == plain


def test_a_number_that_is_no_number_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Report(tau=float("nan")).to_json()


def test_the_mean_of_actions_goes_over_those_that_have_the_score():
    few = {"1": {"mean": 0.5, "spread": 0.1}}
    one = Report(tau=0.2, pce1=0.4, precision_at={"5": 0.2, "10": 0.4}, few_shot=few, counts={"pairs": 2})
    two = Report(tau=0.4, precision_at={"5": 0.6}, counts={"pairs": 6})
    mean = mean_report({"x": one, "y": two}, intervals={"tau": (0.1, 0.5)})
    assert (mean.tau, mean.pce1, mean.counts) == (pytest.approx(0.3), 0.4, {"pairs": 8})
    assert mean.precision_at == {"5": pytest.approx(0.4), "10": 0.4} and mean.few_shot == few
    assert mean.intervals == {"tau": (0.1, 0.5)} and mean.by_action == {"x": one, "y": two}


def test_the_report_of_one_action_is_the_report():
    one = Report(tau=0.2, intervals={"tau": (0.1, 0.3)})
    assert mean_report({"": one}) is one


def test_errors_of_all_actions_are_kept_and_pooled():
    one = Report(
        event_errors=(1, 2), progression_by_event={"a": 0.5}, calibration=(CalibrationBin(0.9, 1, 1),)
    )
    mean = mean_report({"x": one, "y": one})
    assert mean.event_errors == [1, 2, 1, 2]
    assert mean.progression_by_event == {"x: a": 0.5, "y: a": 0.5}
    assert mean.calibration == (CalibrationBin(0.9, 1, 2),)


def test_of_many_errors_some_are_drawn_with_a_seed():
    draws = [draw_errors(range(100), count=10, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) == 10 and draws[0] == sorted(draws[0])
    assert draw_errors([3, 1, 2]) == [3, 1, 2]


def test_a_report_prints_as_one_short_line() -> None:
    report = Report(tau=0.91234567, event_error_frames=2.0, event_errors=range(5000), counts={"videos": 12})
    assert repr(report) == str(report) == "Report(tau=0.9123, event_error_frames=2, 12 videos)"
