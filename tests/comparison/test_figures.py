import xml.etree.ElementTree as ElementTree

from cycleback.applications.plots import PHASE_COLOURS
from cycleback.comparison.figures import curves_figure, error_figure, few_shot_figure, line_style


def row(title: str, **report: object):
    return {"title": title, "report": report}


ROWS = {
    "tcc": row(
        "TCC",
        event_errors=[0, 2, 40],
        few_shot={"1": {"mean": 0.5, "spread": 0.1}, "10": {"mean": 0.8, "spread": 0}},
    ),
    "time": row("time only", event_errors=[5, 6], few_shot={"1": {"mean": 0.4, "spread": 0.1}}),
}


def test_charts_are_svg_that_can_be_read() -> None:
    curves = {"tcc": [{"step": step, "loss": 1 / step, "cycle_rate": 0.5} for step in range(1, 50)]}
    for picture in (few_shot_figure(ROWS), error_figure(ROWS), curves_figure(curves, ROWS)):
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_there_is_no_chart_of_nothing() -> None:
    rows = {"tcc": row("TCC", event_errors=[], few_shot={})}
    assert few_shot_figure(rows) is None
    assert error_figure(rows) is None
    assert curves_figure({"tcc": []}, rows) is None


def test_a_row_keeps_its_style_and_baselines_are_dashed() -> None:
    rows = {"tcc": {}, "tcn": {}, "time": {}}
    assert line_style("tcn", rows)["color"] == PHASE_COLOURS[1]
    assert line_style("tcn", rows)["marker"] != line_style("tcc", rows)["marker"]
    assert line_style("time", rows)["linestyle"] == ":"
