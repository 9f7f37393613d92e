"""`cycleback align` on embeddings made here: no video needs decoding."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.alignment import align
from cycleback.applications.plots import draw_similarity
from cycleback.embeddings import EmbeddingSet
from cycleback.video import probe, read_frames, write_video


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three takes of 40 moments, and a clip of 20 of them."""
    rng = np.random.default_rng(0)
    moments = rng.normal(size=(40, 8))
    slow = np.repeat(moments, 2, axis=0)
    arrays = {"a": moments, "b": slow, "c": moments + 0.05 * rng.normal(size=(40, 8)), "clip": moments[10:30]}
    return EmbeddingSet.from_arrays(arrays, fps=20).save(tmp_path_factory.mktemp("sets") / "set")


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_table_tells_which_frames_are_sure(command, videos: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    result = command("align", "a", "b", "--embeddings", videos, "-o", out)
    assert result.code == 0 and "40 of 40 frames matched, 40 of them surely" in result.out
    rows = rows_of(out)
    assert [int(row["frame_b"]) // 2 for row in rows] == list(range(40))
    assert {row["matched"] for row in rows} == {row["sure"] for row in rows} == {"True"}
    assert [float(row["seconds_a"]) for row in rows[:3]] == [0.0, 0.05, 0.1]


def test_a_clip_is_found_in_a_longer_video(command, videos: Path) -> None:
    words = ("align", "clip", "a", "--embeddings", videos, "--method", "subsequence", "--json")
    table = json.loads(command(*words).out)
    assert [row["frame_b"] for row in table["frames"]] == list(range(10, 30))
    assert table["method"] == "subsequence" and "summary" not in table
    part = {"start_frame": 10, "end_frame": 29, "start_s": 0.5, "end_s": 1.45, "speed": 1.0}
    assert table["part"] == part


def test_the_part_is_told_and_may_be_stretched_further_on_request(command, videos: Path, tmp_path) -> None:
    words = (
        "align",
        "clip",
        "a",
        "--embeddings",
        videos,
        "--method",
        "subsequence",
        "-o",
        tmp_path / "a.csv",
    )
    assert "found in a from 0.50 s to 1.45 s at 1 times the speed" in command(*words).out
    words = ("align", "clip", "b", "--embeddings", videos, "--method", "subsequence", "--json")
    assert json.loads(command(*words).out)["part"]["speed"] == pytest.approx(0.5, abs=0.03)
    tight = json.loads(command(*words, "--max-stretch", "1.2").out)["part"]
    assert tight["end_frame"] - tight["start_frame"] + 1 <= 1.2 * 20 + 1
    refused = command(
        "align", "a", "b", "--embeddings", videos, "--max-stretch", "3", "-o", tmp_path / "b.csv"
    )
    assert (
        refused.code == 2 and "--max-stretch is for --method subsequence only, got 3 with auto" in refused.err
    )


def test_frames_outside_the_overlap_are_not_matched(command, videos: Path) -> None:
    words = ("align", "a", "clip", "--embeddings", videos, "--method", "overlap", "--json")
    frames = json.loads(command(*words).out)["frames"]
    assert [row["frame_a"] for row in frames if row["matched"]] == list(range(10, 30))
    assert not any(row["sure"] for row in frames[:10])


def test_a_lead_in_is_not_matched_by_default(command, videos: Path) -> None:
    result = json.loads(command("align", "a", "clip", "--embeddings", videos, "--json").out)
    matched = [row["frame_a"] for row in result["frames"] if row["matched"]]
    assert result["method"] == "auto" and matched == list(range(10, 30))


def test_a_time_prior_pulls_matches_to_the_same_share(command, videos: Path) -> None:
    words = (
        "align",
        "a",
        "clip",
        "--embeddings",
        videos,
        "--method",
        "nearest",
        "--time-prior",
        "1e6",
        "--json",
    )
    frames = json.loads(command(*words).out)["frames"]
    assert [row["frame_b"] for row in frames] == np.rint(np.arange(40) * 19 / 39).tolist()


@pytest.mark.parametrize("method", ["open-end", "open_end"])
def test_an_open_end_starts_both_together(command, videos: Path, method: str) -> None:
    words = ("align", "a", "b", "--embeddings", videos, "--method", method, "--json")
    result = json.loads(command(*words).out)
    assert result["frames"][0]["frame_b"] in (0, 1) and result["method"] == "open-end"


def test_a_band_keeps_to_constant_speed(command, videos: Path) -> None:
    frames = json.loads(command("align", "a", "b", "--embeddings", videos, "--band", "0.05", "--json").out)[
        "frames"
    ]
    assert all(abs(row["frame_b"] - row["frame_a"] * 79 / 39) <= 4 for row in frames)


def test_several_videos_get_one_clock(command, videos: Path, tmp_path: Path) -> None:
    out = tmp_path / "clock.csv"
    result = command("align", "a", "b", "c", "--embeddings", videos, "-o", out)
    assert result.code == 0 and "3 videos on one clock of" in result.out
    for row in rows_of(out):
        assert int(row["a frame"]) == int(row["c frame"]) == int(row["b frame"]) // 2
        assert float(row["a seconds"]) == int(row["a frame"]) / 20


def test_a_picture_is_written(command, videos: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "a.png"
    words = ("align", "a", "b", "--embeddings", videos, "--picture", picture, "--json")
    assert command(*words).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "exists. Add --overwrite" in command(*words).err


@pytest.mark.parametrize("method", ["dtw", "nearest", "subsequence", "overlap"])
def test_the_picture_shows_the_path_of_the_method(command, videos: Path, tmp_path: Path, method: str) -> None:
    pytest.importorskip("matplotlib")
    picture, found = tmp_path / "a.svg", EmbeddingSet.load(videos)
    command("align", "clip", "a", "--embeddings", videos, "--method", method, "--picture", picture, "--json")
    clip = found["clip"]
    path = align(clip, found["a"], method=method).path
    if path is None:
        path = np.stack([np.arange(20), np.arange(10, 30)], axis=1)
    expected = draw_similarity({"": (clip, found["a"])}, path=path, names=("clip", "a"), format="svg")
    assert picture.read_bytes() == expected
    assert {len(path), path[0, 1]} == ({40, 0} if method == "dtw" else {20, 10})


def test_the_next_command_is_printed_for_files(command, rendered: Path, tmp_path: Path) -> None:
    paths = [rendered / f"pouring_00{number}.mp4" for number in range(3)]
    result = command("align", *paths, "-o", tmp_path / "clock.csv")
    assert f"next: cycleback sync {paths[0]} {paths[1]} {paths[2]}" in result.out
    assert list(rows_of(tmp_path / "clock.csv")[0])[:2] == ["tick", "pouring_000 frame"]


def test_a_mirrored_video_is_named(command, rendered: Path, tmp_path: Path) -> None:
    videos = [rendered / f"pouring_00{number}.mp4" for number in range(2)]
    info = probe(videos[0])
    flipped = write_video(
        tmp_path / "flipped.mp4", read_frames(videos[0], range(info.num_frames))[:, :, ::-1], fps=info.fps
    )
    told = command("align", videos[0], flipped, *videos[1:], "-o", tmp_path / "clock.csv").err
    assert told.splitlines()[-1] == "mirrored videos, turned round: flipped"
    assert "mirrored" not in command("align", *videos, "-o", tmp_path / "pair.csv").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "need at least two videos to align, got 1"),
        (["a", "nobody"], "nobody"),
        (
            ["a", "b", "--method", "magic"],
            "unknown alignment method 'magic'; expected auto, dtw, nearest, subsequence",
        ),
        (["a", "b", "--method", "nearest", "--band", "0.1"], "got band 0.1 with 'nearest'"),
        (["a", "b", "--band", "0.001"], "band 0.001 leaves no path through 40 x 80 frames"),
        (["a", "b", "--band", "2"], "at most 1, got 2.0"),
        (["a", "b", "--time-prior=-1"], "time_prior must be a finite number, 0 or more, got -1.0"),
        (["a", "b", "--time-prior", "nan"], "time_prior must be a finite number, 0 or more, got nan"),
        (["a", "b", "c", "--time-prior", "1"], "3 videos share a clock, which takes no --method"),
        (["a", "b", "c", "--method", "overlap"], "3 videos share a clock, which takes no --method"),
        (["a", "b", "-o", "table.txt"], "table.txt: expected a name ending in .csv or .json"),
    ],
)
def test_bad_input_is_one_line(
    command, videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = command("align", *words, "--embeddings", videos)
    assert result.code == 2 and message in result.err and "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []
