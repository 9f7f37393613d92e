from cycleback.comparison.reading import best_method, list_warnings, write_reading
from cycleback.evaluation import Report


def row(title: str, losses: tuple[str, ...] = (), **scores: object):
    report = Report(counts={"videos": 12}, **scores).to_json()
    return {"title": title, "losses": losses, "report": report}


def labelled(best: float, limits: tuple[float, float] = (1.0, 2.5)):
    return {
        "tcc": row("TCC", event_error_frames=best, pce3=0.7, intervals={"event_error_frames": limits}),
        "sal": row("SaL", event_error_frames=6.0, pce3=0.2, intervals={"event_error_frames": (2.0, 9.0)}),
        "frozen": row("frozen", event_error_frames=4.0, pce3=0.5),
        "time-only": row("time-only", event_error_frames=5.0, pce3=0.3),
    }


def test_the_least_key_event_error_is_best() -> None:
    assert best_method(labelled(2.0)) == "tcc"
    assert best_method(labelled(7.0)) == "sal"


def test_a_row_taught_with_labels_is_told_apart() -> None:
    rows = labelled(2.0) | {"supervised": row("supervised", losses=("supervised",), event_error_frames=1.0)}
    assert best_method(rows) == "tcc"
    assert "Trained with the labels of the training videos: supervised 1.0 frames." in write_reading(rows)
    assert best_method({name: rows[name] for name in ("supervised", "time-only")}) == "supervised"


def test_equal_medians_are_told_apart_by_events_within_three_frames() -> None:
    assert best_method(labelled(6.0)) == "tcc"


def test_the_words_hold_the_best_row_against_those_that_learned_nothing() -> None:
    words = write_reading(labelled(2.0))
    assert words[0].startswith("TCC maps key events best: 2.0 frames from the truth (median); 70%")
    assert words[1] == "It beats time-only (5.0) and beats frozen (4.0)."
    assert "SaL does not beat time-only in key-event error." in words


def test_a_baseline_that_is_more_exact_is_not_hidden() -> None:
    words = write_reading(labelled(4.5))
    assert words[0].startswith("TCC maps key events best of the trained rows: 4.5 frames")
    assert words[1] == "It beats time-only (5.0) and does not beat frozen (4.0)."


def test_overlapping_intervals_are_said() -> None:
    assert any("overlaps with that of SaL" in words for words in write_reading(labelled(2.0)))
    assert not any("overlaps" in words for words in write_reading(labelled(2.0, limits=(1.0, 1.5))))


def test_without_labels_the_words_promise_nothing() -> None:
    rows = {
        "tcc": row("TCC", cycle_rate=0.4),
        "tcn": row("TCN", cycle_rate=0.6),
        "time-only": row("time-only", cycle_rate=1.0),
    }
    assert best_method(rows) == "tcn"
    words = " ".join(write_reading(rows))
    assert "no key events" in words
    assert "TCN has the highest rate: 60% of frames." in words


def test_warnings_come_from_the_evaluation_and_from_what_was_left_out() -> None:
    rows = labelled(2.0)
    rows["time-only"]["report"]["counts"]["videos"] = 3
    report = Report(counts={"pairs": 6, "tau_undefined": 2})
    said = list_warnings(rows, {"tcc": report}, ["supervised: left out."])
    assert said[0] == "supervised: left out."
    assert "TCC: tau is undefined for 2 of 6 pairs (counted as 0)." in said
    assert said[-1].startswith("Only 3 videos were held out")
