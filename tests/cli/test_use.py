"""embed, evaluate, align and sync on a trained run, and on no run at all."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.runs import run_split
from cycleback.video import probe


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory, rendered: Path, run_folder: Path) -> Path:
    from cycleback.cli.main import main

    folder = tmp_path_factory.mktemp("sets") / "set"
    assert main(["embed", str(rendered), "--run", str(run_folder), "-o", str(folder)]) == 0
    return folder


def test_embed_covers_every_frame_of_every_video(embedded: Path, rendered: Path) -> None:
    found = EmbeddingSet.load(embedded)
    assert len(found.names) == 5
    for name in found.names:
        assert len(found[name]) == probe(rendered / f"{name}.mp4").num_frames
        assert list(found.events(name)) == list(found.event_names)


def test_embed_takes_only_the_held_out_part(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    result = command(
        "embed", rendered, "--run", run_folder, "--part", "held_out", "-o", tmp_path / "set", "--json"
    )
    assert json.loads(result.out)["videos"] == len(run_split(run_folder)["held_out"])


def test_embed_writes_poses_beside_the_embeddings(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    words = ("embed", rendered, "--run", run_folder, "--part", "held_out", "-o", tmp_path / "set")
    assert command(*words, "--poses", tmp_path / "poses").code == 0
    embedded = EmbeddingSet.load(tmp_path / "set")
    for name in embedded.names:
        with np.load(tmp_path / "poses" / f"{name}.npz") as file:
            assert file["key_points"].shape == (len(embedded[name]), 17, 2)
            assert np.allclose(file["times"], embedded.times(name))
    again = command(*words, "--poses", tmp_path / "poses", "-o", tmp_path / "other")
    assert again.code == 2 and f"{embedded.names[0]}.npz exists. Add --overwrite" in again.err


def test_evaluate_prints_a_table_with_the_time_only_row(command, embedded: Path) -> None:
    result = command("evaluate", embedded)
    assert result.code == 0
    assert "time-only" in result.out


def test_evaluate_json_has_every_headline_number(command, embedded: Path) -> None:
    rows = json.loads(command("evaluate", embedded, "--json").out)
    assert {"tau", "event_error_frames", "event_error_ms", "pce1", "pce3", "cycle_rate"} <= set(
        rows["time-only"]
    )


def test_align_files_without_any_training(command, rendered: Path, tmp_path: Path) -> None:
    a, b = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"
    result = command("align", a, b, "-o", tmp_path / "table.csv")
    assert result.code == 0
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert len(rows) == probe(a).num_frames
    matches = np.array([int(row["frame_b"]) for row in rows])
    assert (np.diff(matches) >= 0).all()
    assert matches.max() < probe(b).num_frames
    assert all(0 <= float(row["confidence"]) <= 1 for row in rows)


@pytest.mark.parametrize("method", ["dtw", "nearest"])
def test_align_names_in_a_set_as_json(command, embedded: Path, method: str) -> None:
    result = command(
        "align", "pouring_000", "pouring_002", "--embeddings", embedded, "--method", method, "--json"
    )
    table = json.loads(result.out)
    assert table["method"] == method
    assert set(table["frames"][0]) == {
        *("frame_a", "seconds_a", "frame_b", "seconds_b", "confidence", "matched", "sure")
    }


def test_a_video_aligned_with_itself_maps_to_itself(command, rendered: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.mp4"
    copy.write_bytes((rendered / "pouring_000.mp4").read_bytes())
    table = json.loads(command("align", rendered / "pouring_000.mp4", copy, "--json").out)
    assert all(row["frame_a"] == row["frame_b"] for row in table["frames"])


def test_sync_writes_a_pair_at_the_pace_of_the_reference(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    a, b, out = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4", tmp_path / "pair.mp4"
    assert command("sync", a, b, "--run", run_folder, "-o", out).code == 0
    info = probe(out)
    assert info.num_frames == probe(a).num_frames
    assert info.fps == pytest.approx(probe(a).fps)
    assert info.has_audio
    assert info.width > 2 * probe(a).width


def test_sync_of_a_folder_is_a_grid_that_follows_the_named_reference(
    command, rendered: Path, tmp_path: Path
) -> None:
    out = tmp_path / "grid.mp4"
    assert command("sync", rendered, "--reference", "pouring_002", "-o", out, "--sound", "none").code == 0
    info = probe(out)
    assert info.num_frames == probe(rendered / "pouring_002.mp4").num_frames
    assert not info.has_audio


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["align", "a.mp4", "b.mp4"], "a.mp4"),
        (
            ["align", "{video}", "{video}", "--method", "magic"],
            "unknown alignment method 'magic'; expected auto, dtw, nearest, subsequence",
        ),
        (
            ["align", "{video}", "{video}", "-o", "{tmp}/x.txt"],
            "x.txt: expected a name ending in .csv or .json",
        ),
        (["align", "{video}", "{video}", "--run", "{tmp}/no_run"], "looked for recipe.toml"),
        (["sync", "{video}"], "need at least two videos to play in sync, got 1"),
        (["sync", "{video}", "{video}", "-o", "{video}"], "is an input, and inputs are never replaced"),
        (["evaluate", "{tmp}"], "{tmp}"),
        (["embed", "{tmp}", "-o", "{tmp}/set"], "{tmp}"),
    ],
)
def test_bad_input_is_one_line(
    command, rendered: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    filled = {"video": rendered / "pouring_000.mp4", "tmp": tmp_path}
    result = command(*(word.format(**filled) for word in words))
    assert result.code == 2
    assert message.format(**filled) in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_table_is_kept(command, rendered: Path, tmp_path: Path) -> None:
    table, video = tmp_path / "table.csv", rendered / "pouring_000.mp4"
    table.write_text("precious")
    assert "exists. Add --overwrite" in command("align", video, rendered / "pouring_001.mp4", "-o", table).err
    assert table.read_text() == "precious"
