"""`cycleback follow`: a line a frame, from the past alone."""

import json
from pathlib import Path

import pytest

from cycleback.synth import EVENTS
from cycleback.video import read_frames, write_video


@pytest.fixture(scope="module")
def clip(rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty frames of a video, without labels."""
    frames = read_frames(rendered / "pouring_001.mp4", range(20, 60))
    return write_video(tmp_path_factory.mktemp("clip") / "clip.mp4", frames, fps=30)


def test_each_frame_has_place_deviation_phase_and_latency(
    command, rendered: Path, run_folder: Path, clip: Path
) -> None:
    result = command(
        "follow", clip, "--reference", rendered / "pouring_001.mp4", "--run", run_folder, "--json"
    )
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert len(rows) == 40
    places = [row["reference_frame"] for row in rows]
    assert places == sorted(places)
    assert all(row["latency_ms"] > 0 and row["deviation"] >= 0 for row in rows)
    assert {row["phase"] for row in rows} <= set(range(5))
    assert all(row["after"] in ("start", *EVENTS) for row in rows)


def test_the_reference_itself_is_followed_exactly_and_has_no_phase_without_labels(
    command, run_folder: Path, clip: Path
) -> None:
    words = ("follow", clip, "--reference", clip, "--run", run_folder)
    rows = [json.loads(line) for line in command(*words, "--json").out.splitlines()]
    assert max(abs(row["frame"] - row["reference_frame"]) for row in rows) <= 3
    assert "phase" not in rows[0]
    spoken = command(*words, "--every", "20").out.splitlines()
    assert (len(spoken), "after" in spoken[0]) == (3, False)
    assert spoken[-1].startswith("40 frames followed, latency")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{video}", "--run", "{run}"], "Missing option '--reference'"),
        (["{video}", "--reference", "{tmp}/no.mp4", "--run", "{run}"], "no.mp4 does not exist"),
        (["{tmp}/no.mp4", "--reference", "{video}", "--run", "{run}"], "no.mp4 does not exist"),
        (
            ["{tmp}/stream.mp4", "--reference", "{tmp}/good.mp4", "--run", "{run}"],
            "stream.mp4 does not exist",
        ),
        (["{video}", "--reference", "{video}", "--run", "pretrained"], "cannot follow a stream. Train one"),
        (["{video}", "--reference", "{video}", "--run", "{tmp}"], "looked for recipe.toml"),
    ],
)
def test_bad_input_is_one_line(
    command, rendered: Path, run_folder: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    filled = {"video": rendered / "pouring_000.mp4", "run": run_folder, "tmp": tmp_path}
    result = command("follow", *(word.format(**filled) for word in words))
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
