import ast
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.alignment import align
from cycleback.applications import tabulate_alignment, tabulate_clock
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import OutputExistsError, UserError
from cycleback.tables import write_table


@pytest.fixture
def rows(embeddings: EmbeddingSet) -> list[dict[str, object]]:
    alignment = align(embeddings["slow"], embeddings["fast"], method="dtw")
    return tabulate_alignment(alignment, times_a=np.arange(20) / 10, times_b=np.arange(40) / 20)


def test_seconds_lie_between_frames_of_uneven_length() -> None:
    alignment = align(np.array([[0.4], [1.5], [2.7]]), np.arange(4.0)[:, None], method="nearest")
    rows = tabulate_alignment(alignment, times_a=np.arange(3.0), times_b=np.array([0.0, 1.0, 5.0, 6.0]))
    assert [row["frame_b"] for row in rows] == [0, 1, 3]
    assert [row["seconds_b"] for row in rows] == [0.0, 3.0, 6.0]  # the ends of B have no neighbour beyond


def test_a_row_says_where_and_when(rows: list[dict[str, object]]) -> None:
    assert [row["frame_a"] for row in rows] == list(range(20))
    assert all(row["seconds_a"] == pytest.approx(row["frame_a"] / 10) for row in rows)
    assert all(row["seconds_b"] == pytest.approx(row["frame_b"] / 20, abs=0.5 / 20 + 1e-6) for row in rows)


def test_a_row_says_whether_its_match_is_sure(rows: list[dict[str, object]]) -> None:
    assert list(rows[0])[4:] == ["confidence", "matched", "sure"]
    assert all(row["matched"] is True and row["sure"] is (row["confidence"] >= 0.5) for row in rows)


def test_a_clock_has_frame_and_second_of_each_video(embeddings: EmbeddingSet) -> None:
    timed = EmbeddingSet.from_arrays({name: embeddings[name] for name in embeddings}, fps=10)
    rows = tabulate_clock(timed, ["slow", "fast"], np.array([[0, 3], [1, 7]]))
    assert rows[1] == {"tick": 1, "slow frame": 3, "slow seconds": 0.3, "fast frame": 7, "fast seconds": 0.7}


def test_csv_and_json_hold_the_same(rows: list[dict[str, object]], tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", rows)
    write_table(tmp_path / "t.json", rows)
    lines = csv.DictReader((tmp_path / "t.csv").read_text().splitlines())
    from_csv = [{key: ast.literal_eval(value) for key, value in row.items()} for row in lines]
    assert from_csv == json.loads((tmp_path / "t.json").read_text())


def test_an_existing_file_is_kept(rows: list[dict[str, object]], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("mine")
    with pytest.raises(OutputExistsError, match=r"t\.csv exists"):
        write_table(tmp_path / "t.csv", rows)
    assert (tmp_path / "t.csv").read_text() == "mine"


def test_a_folder_is_made_and_a_file_in_its_place_is_one_line(
    rows: list[dict[str, object]], tmp_path: Path
) -> None:
    assert write_table(tmp_path / "new" / "t.csv", rows).exists()
    (tmp_path / "no").touch()
    with pytest.raises(UserError, match=r"cannot write .*no/t\.csv: .*no is a file, not a folder"):
        write_table(tmp_path / "no" / "t.csv", rows)
