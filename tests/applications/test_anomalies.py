import numpy as np

from cycleback.applications.anomalies import AnomalyScores, anomaly_rows

QUIET = np.zeros(50)
OWN = [np.linspace(-1, 1 + 0.1 * k, 50) for k in range(10)]


def scored(scores: np.ndarray, *, false_alarms: float = 0.1) -> AnomalyScores:
    places = np.zeros((len(scores), 2), dtype=np.int64)
    return AnomalyScores.calibrated(
        scores, OWN, progress=np.linspace(0, 1, 50), matches=places, false_alarms=false_alarms
    )


def test_a_quiet_take_is_typical_and_has_no_span() -> None:
    found = scored(QUIET)
    assert (found.verdict, found.spans, found.flagged.any()) == ("typical", (), False)


def test_a_take_is_odd_when_its_peak_is_above_those_of_good_takes() -> None:
    take = QUIET.copy()
    take[20:25] = 1.95
    assert scored(take).verdict == "something differs"
    assert scored(take).spans == ((20, 24),)
    assert scored(take, false_alarms=0.01).peak_threshold == OWN[-1].max()


def test_a_take_that_is_far_everywhere_is_another_action() -> None:
    assert scored(QUIET + 5).verdict == "looks like another action"
    gone_wrong = QUIET + 5
    gone_wrong[:10] = -0.5  # it began well
    assert scored(gone_wrong).verdict == "something differs"


def test_rows_say_video_frame_seconds_score_and_flag() -> None:
    take = QUIET.copy()
    take[20:25] = 4.0
    rows = anomaly_rows("a", scored(take), np.arange(50) / 10)
    assert rows[22] == {"video": "a", "frame": 22, "seconds": 2.2, "score": 4.0, "flagged": 1}
    assert sum(row["flagged"] for row in rows) == 5
