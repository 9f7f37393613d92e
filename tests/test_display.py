"""What results show of themselves in a notebook, read back by an HTML parser."""

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np

from cycleback.alignment import align
from cycleback.applications import find_anomalies, measure_progress
from cycleback.display import MAX_ROWS, show_rows
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import Report


class Cells(HTMLParser):
    """The texts of a table, and every tag that was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def make_videos(count: int) -> EmbeddingSet:
    angles = {f"take-{n}": np.linspace(0, 3, 30 + n) for n in range(count)}
    arrays = {name: np.stack([np.cos(angle), np.sin(angle)], axis=1) for name, angle in angles.items()}
    return EmbeddingSet.from_arrays(arrays, fps=10, events={"take-0": {"top": 4}})


def test_a_table_escapes_names_and_counts_what_it_leaves_out() -> None:
    rows = [{"video": "<script>x</script>" if n == 0 else f"v{n}"} for n in range(MAX_ROWS + 3)]
    seen = Cells(show_rows(rows, caption="all & more"))
    assert "script" not in seen.tags and "<script>x</script>" in seen.cells
    assert "all & more" in seen.cells and "… and 3 more" in seen.cells
    assert f"v{MAX_ROWS - 1}" in seen.cells and f"v{MAX_ROWS}" not in seen.cells


def test_an_embedding_set_shows_its_videos() -> None:
    cells = Cells(make_videos(3)._repr_html_()).cells
    assert {"take-0", "take-2", "32", "top"} <= set(cells)
    assert any(cell.startswith("3 videos, 93 frames") for cell in cells)


def test_an_alignment_draws_its_matches() -> None:
    videos = make_videos(2)
    match = align(videos["take-0"], videos["take-1"])
    drawing = match._repr_html_()
    points = drawing.split("points='")[1].split("'")[0].split()
    places = np.array([point.split(",") for point in points], dtype=float)
    rows = places[:, 1] / 220 * (match.indices.max() + 1)
    assert np.abs(rows[:-1] - match.positions[match.matched]).max() < 0.1
    assert f"{match.matched.sum()} of 30 frames matched" in drawing
    ElementTree.fromstring(drawing)  # well formed


def test_reports_show_their_scores_and_verdicts() -> None:
    videos = make_videos(8)
    report = Report(tau=0.9123, intervals={"tau": (0.8, 0.95)}, counts={"videos": 8})
    assert {"tau", "0.9123", "0.8 to 0.95"} <= set(Cells(report._repr_html_()).cells)
    good = videos.subset(videos.names[:6])
    anomalies = find_anomalies(videos.subset(videos.names[6:]), good)
    assert {"take-6", "take-7", "verdict"} <= set(Cells(anomalies._repr_html_()).cells)
    progress = measure_progress(videos, reference="take-0")
    assert {"take-3", "mean confidence"} <= set(Cells(progress._repr_html_()).cells)
