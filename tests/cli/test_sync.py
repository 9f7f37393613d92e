"""`cycleback sync`, and all that can be wrong with what it is given."""

import csv
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from cycleback.cli.sync import _tell_cuts
from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, frame_times, probe, read_audio, read_frames, write_video


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
        (
            ["{loud}", "{mute}", "-o", "{tmp}/x.gif"],
            "x.gif: expected a name ending in .mp4, .mkv, .mov or .rrd",
        ),
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


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """Embeddings of two videos, dark on the left and bright on the right; the second is mirrored."""
    ramp = np.linspace(20, 235, 64).astype(np.uint8)
    frames = [np.repeat(np.repeat(ramp[None, :, None], 48, axis=0), 3, axis=2) for _ in range(20)]
    paths = [write_video(tmp_path / "clips" / "right.mp4", frames, fps=10, crf=1)]
    paths.append(
        write_video(tmp_path / "clips" / "left.mp4", [each[:, ::-1] for each in frames], fps=10, crf=1)
    )
    (tmp_path / "clips" / "labels.csv").write_text("video,event,frame\nright,top,5\nright,impact,15\n")
    arrays = {path.stem: np.arange(20.0)[:, None] for path in paths}
    files, times = {path.stem: path for path in paths}, {path.stem: np.arange(20) / 10 for path in paths}
    found = EmbeddingSet.from_arrays(arrays, paths=files, times=times, mirrored=["left"])
    return found.save(tmp_path / "set")


def sides(picture: Path) -> list[float]:
    """Return how much brighter the right half of each of two pictures beside each other is."""
    from PIL import Image

    pixels = np.asarray(Image.open(picture).convert("L")).astype(float)[20:200]
    half = pixels.shape[1] // 2
    cells = pixels[:, :half], pixels[:, half:]
    return [float(cell[:, half * 3 // 5 : -20].mean() - cell[:, 20 : half * 2 // 5].mean()) for cell in cells]


def test_a_still_shows_all_videos_at_a_moment(command, halves: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = command("sync", "--embeddings", halves, "--still", "impact", "--no-captions")
    assert result.code == 0, result.err
    assert result.out.endswith("2 videos at 1.50 s of right.mp4: still.png\n")
    assert "note: shown as filmed, but mirrored: left. --mirror yes flips what is" in result.err
    right, left = sides(Path("still.png"))
    assert right > 50 and left < -50
    words = ("--embeddings", halves, "--still", "1.5s", "--mirror", "yes", "--json", "-o", "b.png")
    result = command("sync", *words)
    assert json.loads(result.out)["frames"] == [15, 15] and "note:" not in result.err
    assert min(sides(Path("b.png"))) > 50


def test_mirrored_videos_are_flipped_where_they_are_laid_over(command, halves: Path, tmp_path: Path) -> None:
    for layout, mirror, flipped in (
        ("overlay", "auto", ["left"]),
        ("overlay", "no", []),
        ("grid", "auto", []),
        ("grid", "yes", ["left"]),
    ):
        out = tmp_path / f"{layout}-{mirror}.mp4"
        words = ("--layout", layout, "--mirror", mirror, "--no-captions", "-o", out, "--json")
        result = command("sync", "--embeddings", halves, *words)
        assert result.code == 0, result.err
        assert json.loads(result.out)["flipped"] == flipped
    over = [read_frames(tmp_path / f"overlay-{word}.mp4", [3])[0].astype(float) for word in ("auto", "no")]
    widths = [frame[:, -40:].mean() - frame[:, :40].mean() for frame in over]
    assert widths[0] > 100 and abs(widths[1]) < 20


def test_only_a_part_is_played_and_slowly(command, halves: Path, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mp4"
    words = ("--trim", "top:impact", "--slow", "0.5", "-o", out, "--json")
    result = command("sync", "--embeddings", halves, *words)
    assert result.code == 0, result.err
    assert probe(out).num_frames == 21 and probe(out).duration_s == pytest.approx(2.1)
    loud = tmp_path / "loud.mp4"
    result = command("sync", "--embeddings", saved, "--slow", "0.5", "-o", loud)
    assert result.code == 0 and "at 0.5 times the speed" in result.out
    assert read_audio(loud).duration_s == pytest.approx(probe(loud).duration_s, abs=0.1)
    result = command(
        "sync", "--embeddings", saved, "--slow", "0.25", "--slow-around", "6", "-o", loud, "--overwrite"
    )
    assert result.code == 0 and "around 0.50 s" in result.out
    assert not probe(loud).has_audio and "note: 0.25 times the speed is too slow for sound" in result.err
    edits = tmp_path / "edits.csv"
    result = command("sync", "--embeddings", halves, "--trim", "5:15", "--edits", edits)
    assert result.code == 0, result.err
    rows = list(csv.DictReader(edits.read_text().splitlines()))
    assert len(rows) == 11 and float(rows[0]["output_seconds"]) == 0
    assert [float(rows[k]["right"]) for k in (0, -1)] == pytest.approx([0.5, 1.5])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trim", "9"], "expected START:END"),
        (["--trim", "impact:top"], "is empty: it goes from frame 15 to frame 5"),
        (["--trim", "0:99"], "lies outside right.mp4, which has frames 0 to 19"),
        (["--still", "x"], "expected a frame such as 12, seconds such as 1.5s, or an event"),
        (["--still", "3", "--slow", "0.5"], "leave out --trim, --slow and --edits"),
        (["--still", "3", "-o", "a.mp4"], "expected a name ending in .png"),
        (["--slow-around", "3"], "add --slow 0.25"),
        (["--mirror", "maybe"], "unknown --mirror 'maybe'; expected auto, yes or no"),
        (["--mirror", "yes", "--edits", "a.csv"], "leave out --mirror yes, or --edits"),
    ],
)
def test_playing_what_cannot_be_played_is_one_line(
    command, halves: Path, tmp_path: Path, monkeypatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = command("sync", "--embeddings", halves, *words)
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith("error: ") and message in result.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_recording_without_its_package_is_refused_before_any_work(
    command, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    result = command("sync", "--embeddings", saved, "-o", tmp_path / "x.rrd")
    assert result.code == 2 and "pip install 'cycleback[rerun]'" in result.err
    assert not (tmp_path / "x.rrd").exists()
