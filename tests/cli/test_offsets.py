"""`align` and `sync` of one event filmed by two cameras: numbers, tables, pictures, and what can be wrong."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from coded_clips import draw_number, read_number
from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, frame_times, read_frames, write_video

FPS, RATE, LATER = 25, 16_000, 20  # b starts 20 frames later
LENGTHS = {"a": 100, "b": 90}


def knock(rng: np.random.Generator, lasts_s: float) -> np.ndarray:
    sound = 0.002 * rng.normal(size=int(lasts_s * RATE))
    for start in rng.integers(0, len(sound) - 3000, int(5 * lasts_s)):
        sound[start : start + 2000] += 0.3 * rng.normal(size=2000) * np.exp(-np.arange(2000) / 300)
    return sound


@pytest.fixture(scope="module")
def cameras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos of one event, numbered by its moments, and three more that cannot be compared by sound."""
    folder, rng = tmp_path_factory.mktemp("cameras"), np.random.default_rng(0)
    sound = knock(rng, (LENGTHS["b"] + LATER) / FPS)
    for name, first in (("a", 0), ("b", LATER)):
        frames = [draw_number(first + number) for number in range(LENGTHS[name])]
        part = sound[first * RATE // FPS :][: LENGTHS[name] * RATE // FPS]
        write_video(folder / f"{name}.mp4", frames, fps=FPS, audio=Audio(part[None], RATE))
    few = [draw_number(number) for number in range(40)]
    write_video(folder / "mute.mp4", few, fps=FPS)
    write_video(folder / "silent.mp4", few, fps=FPS, audio=Audio(np.zeros((1, 2 * RATE)), RATE))
    write_video(folder / "other.mp4", few, fps=FPS, audio=Audio(knock(rng, 1.6)[None], RATE))
    return folder


@pytest.fixture(scope="module")
def saved(cameras: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings of both, and of a third that shows them 8 frames further on than its sound tells."""
    rng = np.random.default_rng(1)
    moments = np.cumsum(rng.normal(size=(140, 6)), axis=0)
    arrays = {"a": moments[:100], "b": moments[20:110], "wrong": moments[28:118]}
    paths = {"a": cameras / "a.mp4", "b": cameras / "b.mp4", "wrong": cameras / "b.mp4"}
    times = {name: np.arange(len(rows)) / FPS for name, rows in arrays.items()}
    found = EmbeddingSet.from_arrays(arrays, paths=paths, times=times, fps=FPS)
    return found.save(tmp_path_factory.mktemp("sets") / "set")


@pytest.mark.parametrize("method", ["offset", "affine"])
def test_sound_gives_the_numbers_and_the_table(command, cameras: Path, tmp_path: Path, method: str) -> None:
    files, out = (cameras / "a.mp4", cameras / "b.mp4"), tmp_path / "table.csv"
    result = command("align", *files, "--method", method, "--from", "sound", "-o", out)
    assert result.code == 0, result.err
    words = r"offset 0\.800 s \(b starts later\), drift -?[0-5] ppm, confidence [01]\.[09]"
    assert re.match(words, result.out)
    assert f"from sound: {out}" in result.out
    assert f"next: cycleback sync {files[0]} {files[1]} --method {method} --from sound" in result.out
    rows = list(csv.DictReader(out.read_text().splitlines()))
    matched = [row for row in rows if row["matched"] == "True"]
    assert [int(row["frame_a"]) for row in matched] == list(range(20, 100))
    assert all(int(row["frame_b"]) == int(row["frame_a"]) - 20 for row in matched)
    assert float(matched[0]["confidence"]) > 0.9 and rows[0]["confidence"] == "0.0"


def test_pictures_and_sound_agree_and_are_both_told(command, saved: Path) -> None:
    words = ("align", "a", "b", "--embeddings", saved, "--method", "affine")
    found = json.loads(command(*words, "--json").out)["offset"]
    assert found["from"] == "sound" and found["offset_s"] == pytest.approx(0.8, abs=1e-3)
    assert found["pictures"]["offset_s"] == pytest.approx(0.8, abs=0.01)
    assert found["disagreement_s"] < 0.01 and found["notes"] == []
    assert found["common_s"] == pytest.approx([0.8, 3.98], abs=0.03)
    pictures = json.loads(command(*words, "--json", "--from", "pictures").out)["offset"]
    assert (pictures["from"], pictures["sound"], pictures["disagreement_s"]) == ("pictures", None, None)


def test_a_disagreement_is_warned_of(command, saved: Path, tmp_path: Path) -> None:
    words = ("align", "a", "wrong", "--embeddings", saved, "--method", "offset", "-o", tmp_path / "t.csv")
    result = command(*words)
    assert result.code == 0
    assert "warning: pictures and sound disagree by 0.32 s" in result.err
    assert "from sound; pictures differ by 320 ms" in result.out


@pytest.mark.parametrize("source", ["sound", "pictures", "both"])
def test_sync_shows_the_same_moment_of_both_and_trims(command, saved: Path, tmp_path: Path, source) -> None:
    out = tmp_path / "synced.mp4"
    words = ("sync", "--embeddings", saved, "a", "b", "--method", "offset", "--no-captions", "--from", source)
    result = command(*words, "-o", out, "--json")
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert facts["offsets"]["b"]["offset_s"] == pytest.approx(0.8, abs=0.015)
    cuts = {Path(cut["video"]).name: (cut["before_s"], cut["after_s"]) for cut in facts["cuts"]}
    assert cuts["a.mp4"][0] == pytest.approx(0.8, abs=0.03) and cuts["b.mp4"][1] == pytest.approx(
        0.4, abs=0.03
    )
    count = len(frame_times(out))
    frames = read_frames(out, np.arange(count))
    width = frames.shape[2] // 2
    shown = [[read_number(side) for side in (f[:, :width], f[:, width:])] for f in frames]
    left, right = zip(*shown, strict=True)
    assert left == right and list(left) == list(range(left[0], left[0] + count))
    assert left[0] in (20, 21) and left[-1] in (98, 99)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["align", "a", "mute", "--method", "offset", "--from", "sound"],
            "mute has no sound track: no offset",
        ),
        (["align", "silent", "a", "--method", "affine", "--from", "sound"], "silent is silent: no offset"),
        (
            ["align", "a", "b", "--from", "sound"],
            "--from is for --method offset or affine only, got sound with",
        ),
        (["align", "a", "b", "--method", "offset", "--from", "music"], "unknown source of an offset 'music'"),
        (["align", "a", "b", "--method", "offset", "--pin", "1:2"], "--pin does not go with --method offset"),
        (
            ["align", "a", "b", "--method", "affine", "--band", "0.2"],
            "--band does not go with --method affine",
        ),
        (["align", "a", "a", "--method", "offset"], "need at least two videos to find an offset, got 1"),
        (["align", "a", "b", "mute", "--method", "offset"], "an offset is between two videos, got 3"),
        (["sync", "a", "b", "--method", "offset", "--repetitions"], "--repetitions does not go with"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(command, cameras: Path, tmp_path: Path, words, message) -> None:
    files = [cameras / f"{word}.mp4" if (cameras / f"{word}.mp4").exists() else word for word in words[1:]]
    out = tmp_path / ("x.mp4" if words[0] == "sync" else "x.csv")
    result = command(words[0], *files, "-o", out)
    assert result.code == 2 and message in result.err and result.err.count("\n") == 1
    assert not out.exists()


def test_other_events_are_warned_of(command, cameras: Path, tmp_path: Path) -> None:
    files = (cameras / "a.mp4", cameras / "other.mp4")
    words = ("align", *files, "--method", "affine", "--from", "sound", "-o", tmp_path / "t.csv")
    result = command(*words)
    assert result.code == 0 and "a and other may not show the same event" in result.err
