from cycleback.comparison.tables import Column, cells, html_table, markdown_table

ERROR = Column("error", ("report", "error"), "{:.1f}", lower=True)
TAU = Column("tau", ("report", "tau"), "{:.2f}")


def row(title: str, error: float | None, tau: float, limits: tuple[float, float] | None = None):
    report = {"error": error, "tau": tau, "intervals": {"error": limits}}
    return {"title": title, "role": "trained", "report": report}


ROWS = {
    "good": row("good", 2.0, 0.5, (1.0, 3.0)),
    "bad": row("bad & ugly", 5.0, 0.6),
    "none": row("none", None, 0.7),
    "time": row("time only", 5.0, 0.99),
}


def test_cells_that_do_not_beat_time_only_are_marked() -> None:
    errors, taus = cells(ERROR, ROWS), cells(TAU, ROWS)
    assert [name for name, cell in errors.items() if cell.is_below] == ["bad"]
    assert [name for name, cell in taus.items() if cell.is_below] == ["good", "bad", "none"]


def test_only_a_cell_that_beats_time_only_can_be_best() -> None:
    assert [name for name, cell in cells(ERROR, ROWS).items() if cell.is_best] == ["good"]
    assert not any(cell.is_best for cell in cells(TAU, ROWS).values())


def test_numbers_that_read_the_same_are_best_together() -> None:
    rows = {"a": row("a", 1.01, 0.1), "b": row("b", 1.04, 0.1), "time": row("time only", 2.0, 0.1)}
    assert [cell.is_best for cell in cells(ERROR, rows).values()] == [True, True, False]


def test_a_missing_number_is_a_dash_and_an_empty_column_is_left_out() -> None:
    assert cells(ERROR, ROWS)["none"].text == "–"
    assert "nothing" not in html_table([ERROR, Column("nothing", ("report", "x"))], ROWS, caption="c")
    assert html_table([Column("nothing", ("report", "x"))], ROWS, caption="c") == ""


def test_the_html_has_daggers_intervals_and_escaped_titles() -> None:
    table = html_table([ERROR], ROWS, caption="c")
    assert '<td class="below">5.0<sup title="not better than time only">†</sup></td>' in table
    assert '<td class="best">2.0<small>1.0 – 3.0</small></td>' in table
    assert '<th scope="row">bad &amp; ugly</th>' in table


def test_the_markdown_says_the_same() -> None:
    lines = markdown_table([ERROR, TAU], ROWS).splitlines()
    assert lines[0] == "|  | error ↓ | tau ↑ |"
    assert lines[2] == "| good | **2.0** (1.0 – 3.0) | 0.50 † |"
    assert lines[3] == "| bad & ugly | 5.0 † | 0.60 † |"
    assert lines[5] == "| time only | 5.0 | 0.99 |"
