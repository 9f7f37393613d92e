import pytest

from cycleback.evaluation import Report, to_markdown
from cycleback.evaluation.report import SCORES as REPORT_SCORES
from cycleback.evaluation.scores import (
    HEADLINE,
    ROBUST,
    SCORES,
    Column,
    column_cells,
    columns,
    html_table,
    markdown_table,
)

BLIND = Report(tau=0.99, event_error_frames=12.0, pce1=0.06)
GOOD = Report(tau=0.9, event_error_frames=4.25, pce1=0.2)


def cells(table: str, row: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_numbers_that_do_not_beat_time_only_carry_a_dagger():
    table = to_markdown({"time-only": BLIND, "tcc": GOOD})
    assert cells(table, "time-only") == ["time-only", "12.0", "0.060", "0.9900"]
    assert cells(table, "tcc") == ["tcc", "4.2", "0.200", "0.9000 †"]
    assert "† not better than time-only" in table


def test_an_equal_number_does_not_beat_time_only():
    table = to_markdown({"time-only": BLIND, "same": BLIND})
    assert cells(table, "same") == ["same", "12.0 †", "0.060 †", "0.9900 †"]


def test_without_daggers_there_is_no_legend():
    assert "†" not in to_markdown({"time-only": BLIND, "best": Report(tau=1.0)})
    assert "†" not in to_markdown({"tcc": GOOD})


def test_another_row_can_be_the_one_to_beat():
    table = to_markdown({"frozen": GOOD, "tcc": BLIND}, baseline="frozen")
    assert cells(table, "tcc") == ["tcc", "12.0 †", "0.060 †", "0.9900"]
    assert "† not better than frozen" in table


def test_a_missing_number_is_a_dash_and_an_empty_column_is_left_out():
    table = to_markdown({"time-only": BLIND, "new": Report(tau=0.5)})
    assert cells(table, "new") == ["new", "–", "–", "0.5000 †"]
    assert "progression" not in table


def test_all_lines_of_the_table_have_the_same_cells():
    lines = to_markdown({"time-only": BLIND, "tcc": GOOD}).split("\n\n")[0].splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1


def test_undefined_pairs_are_said():
    counts = {"tau_undefined": 4, "pairs": 6}
    assert "tau is undefined for 4 of 6 pairs (counted as 0)" in to_markdown({"a": Report(counts=counts)})
    for protocol, words in (("reference", "left out"), ("paper", "counted as -1")):
        table = to_markdown({"a": Report(counts=counts, protocol=protocol)})
        assert f"a: tau is undefined for 4 of 6 pairs ({words})" in table


def test_pairs_matched_backwards_are_said_with_what_to_do():
    table = to_markdown({"a": Report(tau=0.1, counts={"pairs": 12, "pairs_backwards": 8})})
    assert "a: 8 of 12 pairs are matched backwards in time." in table and "loss.weights.order=0.3" in table
    few = to_markdown({"a": Report(tau=0.9, counts={"pairs": 100, "pairs_backwards": 5})})
    assert "backwards" not in few


def test_training_videos_among_the_held_out_are_said():
    table = to_markdown({"a": Report(tau=0.5, counts={"videos_in_both": 2})})
    assert "a: 2 held-out videos are among the training videos" in table


def test_an_embedder_that_can_count_frames_is_flagged() -> None:
    table = to_markdown({"gru": Report(tau=0.9, can_count_frames=True), "time-only": Report(tau=0.99)})
    assert "gru: this embedder can count frames" in table


def test_new_columns_are_marked_too():
    blind, good = Report(precision5=0.5, few_shot1=0.4), Report(precision5=0.4, few_shot1=0.6)
    table = to_markdown({"time-only": blind, "tcc": good})
    assert cells(table, "tcc") == ["tcc", "0.600", "0.400 †"]


def test_intervals_are_shown_when_asked_for():
    rows = {"tcc": Report(event_error_frames=3.0, pce1=0.2, intervals={"event_error_frames": (2.5, 4.0)})}
    assert cells(to_markdown(rows, intervals=True), "tcc") == ["tcc", "3.0 [2.5, 4.0]", "0.200"]
    assert "95 % of 1,000 resamples" in to_markdown(rows, intervals=True)
    assert cells(to_markdown(rows), "tcc") == ["tcc", "3.0", "0.200"]


def test_robust_scores_have_a_column_for_each_perturbation():
    blind = Report(robust={"cropped": {"event_error_frames": 9.0}, "speed": {"event_error_frames": None}})
    good = Report(robust={"cropped": {"event_error_frames": 9.5}, "lead-in": {"event_error_frames": 2.0}})
    table = to_markdown({"time-only": blind, "tcc": good})
    assert "| cropped: event error, frames ↓ | lead-in: event error, frames ↓ |" in table
    assert cells(table, "tcc") == ["tcc", "9.5 †", "2.0"] and cells(table, "time-only")[2] == "–"


ERROR = Column("error", "error", "{:.1f}", "lower")
TAU = Column("tau", "tau", "{:.2f}")
MINUTES = Column("minutes", "minutes", "{:.1f}", "")


def row(error: float | None, tau: float, limits: tuple[float, float] | None = None):
    return {"error": error, "tau": tau, "minutes": 1.0, "intervals": {"error": limits}}


ROWS = {
    "good": row(2.0, 0.5, (1.0, 3.0)),
    "bad": row(5.0, 0.6),
    "none": row(None, 0.7),
    "time-only": row(5.0, 0.99),
}
TITLES = {"good": "good", "bad": "bad & ugly", "none": "none", "time-only": "time-only"}


def test_every_score_is_one_of_a_report():
    assert {key for key in SCORES if "/" not in key} <= set(REPORT_SCORES)
    assert set(HEADLINE) | set(ROBUST) <= set(SCORES)
    assert all(column.title and column.pattern.format(0.5) for column in SCORES.values())


def test_cells_that_do_not_beat_time_only_are_marked():
    errors, taus, minutes = (column_cells(column, ROWS) for column in (ERROR, TAU, MINUTES))
    assert [name for name, cell in errors.items() if cell.is_below] == ["bad"]
    assert [name for name, cell in taus.items() if cell.is_below] == ["good", "bad", "none"]
    assert not any(cell.is_below or cell.is_best for cell in minutes.values())


def test_only_a_cell_that_beats_time_only_can_be_best():
    assert [name for name, cell in column_cells(ERROR, ROWS).items() if cell.is_best] == ["good"]
    assert not any(cell.is_best for cell in column_cells(TAU, ROWS).values())


def test_values_that_read_the_same_are_best_together():
    rows = {"a": row(1.01, 0.1), "b": row(1.04, 0.1), "time-only": row(2.0, 0.1)}
    assert [cell.is_best for cell in column_cells(ERROR, rows).values()] == [True, True, False]


def test_html_has_daggers_intervals_and_escaped_titles():
    table = html_table(
        [ERROR, Column("x", "nothing")], ROWS, caption="c", titles=TITLES, baselines=["time-only"]
    )
    assert '<td class="below">5.0<sup title="not better than time-only">†</sup></td>' in table
    assert '<td class="best">2.0<small>[1.0, 3.0]</small></td>' in table
    assert '<th scope="row">bad &amp; ugly</th>' in table
    assert '<tr class="baseline"><th scope="row">time-only</th>' in table
    assert "nothing" not in table
    assert html_table([Column("x", "nothing")], ROWS, caption="c", titles=TITLES) == ""


def test_markdown_says_the_same():
    lines = markdown_table([ERROR, TAU], ROWS, titles=TITLES, intervals=True, bold=True).splitlines()
    assert lines[0] == "|  | error ↓ | tau ↑ |"
    assert lines[2] == "| good | **2.0** [1.0, 3.0] | 0.50 † |"
    assert lines[3] == "| bad & ugly | 5.0 † | 0.60 † |"
    assert lines[4] == "| none | – | 0.70 † |"
    assert lines[5] == "| time-only | 5.0 | 0.99 |"


def test_scores_of_several_seeds_are_mean_and_spread():
    rows = {
        "tcc": {"seeds": 2, "error": [6.0, 0.5], "tau": [0.5, 0.1]},
        "time-only": {"seeds": 1, "error": [5.0, 0.0]},
    }
    assert markdown_table([ERROR, TAU], rows).splitlines()[2:] == [
        "| tcc | 6.0 ± 0.5 † | 0.50 ± 0.10 |",
        "| time-only | 5.0 | – |",
    ]


@pytest.mark.parametrize(("brief", "text"), [(False, "0.250"), (True, "25%")])
def test_columns_are_found_below_a_path_and_printed_in_brief(brief: bool, text: str):
    (column,) = columns("pce1", brief=brief, under="splits/val_slow", group="slow")
    assert column.text({"splits": {"val_slow": {"pce1": 0.25}}}) == text
    assert (column.group, column.heading) == ("slow", "within 1 frame ↑")
