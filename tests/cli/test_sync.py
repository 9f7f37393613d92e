"""`cycleback sync`, and all that can be wrong with what it is given."""

import csv
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from cycleback.cli.sync import _tell_cuts
from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, frame_times, probe, read_audio, write_video


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short videos, the first with a tone, the second silent."""
    folder = tmp_path_factory.mktemp("videos")
    tone = Audio(np.sin(np.arange(16000) * 0.3).astype(np.float32)[None] * 0.5, 16000)
    frames = [np.full((48, 64, 3), 40 + 9 * i, np.uint8) for i in range(12)]
    loud = write_video(folder / "loud.mp4", frames, fps=12, audio=tone)
    return [loud, write_video(folder / "mute.mp4", frames, fps=12)]


@pytest.fixture(scope="module")
def saved(videos: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedding set of both, which knows the frame number and nothing else."""
    arrays = {path.stem: np.arange(12.0)[:, None] for path in videos}
    paths = {path.stem: path for path in videos}
    times = {path.stem: frame_times(path) for path in videos}
    found = EmbeddingSet.from_arrays(arrays, paths=paths, times=times)
    return found.save(tmp_path_factory.mktemp("sets") / "set")


@pytest.mark.parametrize("layout", ["grid", "row", "overlay", "tinted", "switch"])
def test_every_layout_is_written(command, saved: Path, tmp_path: Path, layout: str) -> None:
    out = tmp_path / "out.mp4"
    result = command("sync", "--embeddings", saved, "--layout", layout, "-o", out, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["video"] == str(out)
    assert (probe(out).num_frames, probe(out).fps, probe(out).has_audio) == (12, pytest.approx(12), True)


def test_what_is_cut_is_told(command, videos: list[Path], tmp_path: Path) -> None:
    film = np.random.default_rng(0).normal(size=(12, 8))
    arrays = {"loud": film[4:], "mute": film}
    times = {"loud": np.arange(8) / 12, "mute": np.arange(12) / 12}
    found = EmbeddingSet.from_arrays(arrays, paths={path.stem: path for path in videos}, times=times)
    words = ("--embeddings", found.save(tmp_path / "set"), "-o", tmp_path / "x.mp4", "--smoothing-s", "0")
    told = json.loads(command("sync", *words, "--json").out)
    assert told["cuts"] == [{"video": str(videos[1]), "before_s": 0.33, "after_s": 0.0}]
    result = command("sync", *words, "--overwrite")
    assert f"; mute.mp4 without its first 0.33 s: {tmp_path}" in result.out


def test_only_the_ends_that_are_cut_are_named() -> None:
    files = [Path("a.mp4"), Path("b.mp4"), Path("c.mp4"), Path("d.mp4")]
    told, words = _tell_cuts(files, [(0.0, 0.0), (1.2, 0.04), (0.0, 0.5), (0.25, 2.0)])
    parts = ["first 1.2 s", "last 0.5 s", "first 0.25 s and last 2 s"]
    named = zip(files[1:], parts, strict=True)
    assert words == "".join(f"; {file} without its {part}" for file, part in named)
    assert [cut["video"] for cut in told] == ["b.mp4", "c.mp4", "d.mp4"]


def test_the_frame_rate_can_be_another(command, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mp4"
    assert command("sync", "--embeddings", saved, "--fps", 24, "--blend", "-o", out).code == 0
    assert (probe(out).num_frames, probe(out).fps) == (23, pytest.approx(24))


@pytest.mark.parametrize("suffix", ["csv", "edl", "sh"])
def test_only_the_edits_are_written(command, saved: Path, tmp_path: Path, suffix: str) -> None:
    result = command("sync", "--embeddings", saved, "--edits", tmp_path / f"edits.{suffix}", "--json")
    written = json.loads(result.out)["edits"]
    assert sorted(written) == sorted(str(path) for path in tmp_path.iterdir())
    assert len(written) == (2 if suffix == "edl" else 1)


def test_a_video_with_itself_plays_as_filmed(command, rendered: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.mp4"
    copy.write_bytes((rendered / "pouring_000.mp4").read_bytes())
    assert command("sync", rendered / "pouring_000.mp4", copy, "--edits", tmp_path / "e.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "e.csv").read_text().splitlines()))
    own, other = ([float(row[name]) for row in rows] for name in ("pouring_000", "copy"))
    assert own == pytest.approx(other, abs=0.02)


def test_no_more_videos_are_shown_than_asked_for(command, rendered: Path, tmp_path: Path) -> None:
    result = command("sync", rendered, "--most", 3, "--edits", tmp_path / "e.csv", "--json")
    assert len(json.loads(result.out)["videos"]) == 3


def test_a_reference_in_a_set_comes_first(command, saved: Path, tmp_path: Path) -> None:
    words = ["sync", "--embeddings", saved, "--reference", "mute", "-o", tmp_path / "out.mp4", "--json"]
    assert json.loads(command(*words).out)["reference"].endswith("mute.mp4")
    assert not probe(tmp_path / "out.mp4").has_audio


def test_a_silent_reference_is_said_in_one_line(command, saved: Path, tmp_path: Path) -> None:
    words = ["sync", "--embeddings", saved, "--reference", "mute", "-o", tmp_path / "out.mp4"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = command(*words, "--sound", "reference")
    (line,) = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert result.code == 0
    assert line.endswith("mute.mp4 has no sound track: the result is silent")


def test_the_sound_of_another_file_is_laid_under(command, saved: Path, videos, tmp_path: Path) -> None:
    words = ["sync", "--embeddings", saved, "--reference", "mute", "-o", tmp_path / "out.mp4"]
    assert command(*words, "--sound", videos[0]).code == 0
    assert probe(tmp_path / "out.mp4").has_audio


def test_a_silent_reference_gets_the_sound_of_another_at_its_pace(
    command, videos, saved: Path, tmp_path: Path
) -> None:
    slow = write_video(tmp_path / "slow.mp4", [np.full((48, 64, 3), 9, np.uint8)] * 24, fps=12)
    found = EmbeddingSet.load(saved)
    arrays = {"loud": found["loud"], "slow": np.linspace(0, 11, 24)[:, None]}
    times = {"loud": found.times("loud"), "slow": frame_times(slow)}
    twice = EmbeddingSet.from_arrays(arrays, paths={"loud": videos[0], "slow": slow}, times=times)
    words = ["--embeddings", twice.save(tmp_path / "set"), "--reference", "slow", "--transfer-sound", "loud"]
    assert command("sync", *words, "-o", tmp_path / "out.mp4").code == 0
    loudness = np.abs(read_audio(tmp_path / "out.mp4", mono=True).samples[0]).reshape(-1)
    parts = [part.mean() for part in np.array_split(loudness, 8)]
    assert probe(tmp_path / "out.mp4").duration_s == pytest.approx(2, abs=0.1)
    assert min(parts[:-1]) > 0.1  # the tone of one second lasts as long as the two seconds of pictures


def test_transferred_sound_works_on_files(command, rendered: Path, videos, tmp_path: Path) -> None:
    words = ["sync", videos[1], rendered / "pouring_000.mp4", "-o", tmp_path / "out.mp4"]
    assert command(*words, "--transfer-sound", videos[0]).code == 0
    assert probe(tmp_path / "out.mp4").has_audio


def test_sound_can_be_left_out(command, saved: Path, tmp_path: Path) -> None:
    assert command("sync", "--embeddings", saved, "-o", tmp_path / "out.mp4", "--sound", "none").code == 0
    assert not probe(tmp_path / "out.mp4").has_audio


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no videos given; pass video files, a folder"),
        (["{loud}"], "need at least two videos to play in sync, got 1"),
        (["{empty}"], "{empty}"),
        (["{loud}", "{tmp}/gone.mp4"], "{tmp}/gone.mp4"),
        (["--embeddings", "{tmp}/no_set"], "{tmp}/no_set"),
        (["--embeddings", "{saved}", "loud"], "need at least two videos to play in sync, got 1"),
        (["--embeddings", "{saved}", "--reference", "loudd"], "Did you mean 'loud'?"),
        (
            ["{loud}", "{mute}", "--layout", "pile"],
            "unknown layout 'pile'; expected grid, row, overlay, tinted or switch",
        ),
        (
            ["{loud}", "{mute}", "--method", "magic"],
            "unknown alignment method 'magic'; expected auto, dtw, nearest, overlap",
        ),
        (["{loud}", "{mute}", "--fps", "0"], "cannot play 0 frames per second"),
        (["{loud}", "{mute}", "-o", "{loud}"], "loud.mp4 is an input, and inputs are never replaced"),
        (["{loud}", "{mute}", "-o", "{tmp}/x.gif"], "x.gif: expected a name ending in .mp4, .mkv or .mov"),
        (["{loud}", "{mute}", "-o", "{loud}/x.mp4"], "loud.mp4 is a file, not a folder"),
        (
            ["{loud}", "{mute}", "--edits", "{tmp}/x.txt"],
            "x.txt: expected a name ending in .csv, .edl, .otio, .fcpxml or .sh",
        ),
        (["{loud}", "{mute}", "--sound", "{mute}"], "mute.mp4 has no sound track"),
        (["{loud}", "{mute}", "--sound", "{tmp}/gone.wav"], "{tmp}/gone.wav"),
        (["{loud}", "{mute}", "--transfer-sound", "{tmp}/gone.mp4"], "{tmp}/gone.mp4 does not exist"),
        (["{loud}", "{mute}", "--transfer-sound", "{mute}"], "mute.mp4 has no sound track"),
        (["{loud}", "{mute}", "--transfer-sound", "{loud}"], "source and target are the same video"),
        (["{loud}", "{mute}", "--transfer-sound", "{loud}", "--sound", "none"], "two sounds, none and"),
        (["{loud}", "{mute}", "--transfer-sound", "{mute}", "--edits", "{tmp}/e.csv"], "edit decisions have"),
    ],
)
def test_bad_input_is_one_line(
    command, videos, saved: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    filled = {"loud": videos[0], "mute": videos[1], "tmp": tmp_path, "saved": saved, "empty": empty}
    result = command("sync", *(word.format(**filled) for word in words))
    assert (result.code, result.out) == (2, "")
    assert message.format(**filled) in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("error: ")]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_folder_that_cannot_be_written_to_is_refused_first(
    command, videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    result = command("sync", *videos, "-o", tmp_path / "x.mp4")
    assert f"no permission to write in {tmp_path}" in result.err


def test_one_frame_plays_beside_many(command, videos, tmp_path: Path) -> None:
    one = write_video(tmp_path / "one.mp4", [np.full((48, 64, 3), 99, np.uint8)], fps=12)
    assert command("sync", one, videos[0], "-o", tmp_path / "a.mp4").code == 0
    assert command("sync", videos[0], one, "-o", tmp_path / "b.mp4").code == 0
    assert [probe(tmp_path / f"{name}.mp4").num_frames for name in "ab"] == [1, 12]


def test_one_video_twice_is_one_video(command, videos, tmp_path: Path) -> None:
    result = command("sync", videos[0], videos[0], "-o", tmp_path / "x.mp4")
    assert result.err == (
        "error: need at least two videos to play in sync, got 1: add one, or name a folder\n"
    )
