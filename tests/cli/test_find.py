"""`cycleback find`: a table, a picture and clips of what is found; none is an answer, too."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.video import Audio, probe, read_audio, read_frames, write_video
from long_recordings import draw, perform, record, wander


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[tuple[int, int]]]:
    """An example, a recording with sound that shows the action twice, and where."""
    folder = tmp_path_factory.mktemp("day")
    places, spans = record(lengths=(60, 70), between=90)
    rate = 16000
    sound = np.sin(np.arange(round(len(places) / 30 * rate)) * 0.2).astype(np.float32)[None] * 0.5
    example = write_video(folder / "take.mp4", draw(perform(60), scene=4), fps=30)
    return example, write_video(folder / "day.mp4", draw(places), fps=30, audio=Audio(sound, rate)), spans


def test_occurrences_are_told_drawn_and_cut(command, day, tmp_path: Path) -> None:
    example, recording, spans = day
    outputs = ("-o", tmp_path / "f.csv", "--picture", tmp_path / "f.png", "--clips", tmp_path / "clips")
    result = command("find", example, recording, *outputs)
    assert result.code == 0, result.err
    assert "2 occurrences in day.mp4" in result.out
    assert f"next: cycleback sync {tmp_path / 'clips'}" in result.out
    rows = list(csv.DictReader((tmp_path / "f.csv").read_text().splitlines()))
    assert [abs(int(row["start_frame"]) - start) <= 5 for row, (start, _) in zip(rows, spans, strict=True)]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    for row, clip in zip(rows, sorted((tmp_path / "clips").iterdir()), strict=True):
        start, end = int(row["start_frame"]), int(row["end_frame"])
        assert probe(clip).num_frames == end - start + 1
        for at in (0, end - start):
            near = read_frames(recording, range(start + at - 2, start + at + 3)).astype(int)
            apart = np.abs(near - read_frames(clip, [at])[0]).mean(axis=(1, 2, 3))
            assert apart.argmin() == 2
        whole, part = read_audio(recording), read_audio(clip)
        first = round(float(row["start_s"]) * whole.rate)
        same = whole.samples[0, first : first + part.samples.shape[1]]
        assert np.corrcoef(same, part.samples[0, : len(same)])[0, 1] > 0.95
    again = command("sync", tmp_path / "clips", "-o", tmp_path / "s.mp4")
    assert again.code == 0, again.err


def test_the_recording_may_hold_its_own_example(command, day, tmp_path: Path, monkeypatch) -> None:
    _, recording, spans = day
    monkeypatch.chdir(tmp_path)
    part = f"{spans[0][0] / 30:.3f}s:{(spans[0][1] - 1) / 30:.3f}s"
    result = command("find", recording, recording, "--part", part)
    assert result.code == 0, result.err
    assert "2 occurrences" in result.out and f"--part {part} --clips clips" in result.out.splitlines()[-1]


def test_none_is_an_answer(command, day, tmp_path: Path) -> None:
    example, _, _ = day
    places = wander(300, np.random.default_rng(4))
    other = write_video(tmp_path / "other.mp4", draw(places), fps=30)
    table, clips = tmp_path / "f.csv", tmp_path / "clips"
    words = ("find", example, other, "-o", table, "--clips", clips)
    result = command(*words)
    assert result.code == 0, result.err
    assert (
        "nothing reaches a confidence of 0.50" in result.out and "no occurrences in other.mp4" in result.out
    )
    assert table.read_text().count("\n") == 1 and not clips.exists()
    facts = json.loads(command(*words, "--json", "--overwrite").out)
    assert facts["count"] == 0 and facts["occurrences"] == [] and facts["frames"] == 300


def test_a_folder_of_takes_is_a_reference(command, day, tmp_path: Path) -> None:
    _, recording, spans = day
    for number, frames in enumerate((56, 66, 72)):
        write_video(tmp_path / "takes" / f"{number}.mp4", draw(perform(frames), scene=number), fps=30)
    result = command("find", tmp_path / "takes", recording, "-o", tmp_path / "f.json", "--json")
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert len(facts["references"]) == 3
    starts = [each["start_frame"] for each in facts["occurrences"]]
    assert starts == pytest.approx([start for start, _ in spans], abs=5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.mp4", "{day}"], "no.mp4 does not exist"),
        (["{take}", "no.mp4"], "no.mp4"),
        (["{take}", "{day}", "-o", "f.txt"], "expected a name ending in .csv or .json"),
        (["{take}", "{day}", "--picture", "f.jpg"], "expected a name ending in .png"),
        (["{take}", "{day}", "--part", "3"], "expected START:END, such as 12:80 or 1.5s:3s"),
        (["{take}", "{day}", "--part", "9:2"], "the span '9:2' is empty"),
        (["{take}", "{day}", "--part", "9:700"], "lies outside take.mp4, which has frames 0 to 59"),
        (["{take}", "{day}", "--part", "a:b"], "cannot read the moment 'a'"),
        (["{take}", "{day}", "--part", "nans:3s"], "cannot read the moment 'nans'"),
        (["{folder}", "{day}", "--part", "1:20"], "is for one reference, but there are 2"),
        (["{take}", "{day}", "--clips", "{take}"], "it is a file; give a folder"),
    ],
)
def test_errors_are_one_line(
    command, day, tmp_path: Path, monkeypatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"take": day[0], "day": day[1], "folder": day[0].parent}
    result = command("find", *(word.format(**names) for word in words))
    assert result.code == 2
    assert result.err.startswith("error: ") and result.err.count("\n") == 1 and message in result.err
    assert not list(tmp_path.iterdir())
