"""Clips hold the frames and the sound of their part; shots are the parts between cuts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cycleback.applications.clips import cut_clips, list_shots
from cycleback.video import Audio, probe, read_audio, read_frames, write_video
from long_recordings import draw, wander


@dataclass(frozen=True)
class Span:
    start: int
    stop: int
    start_s: float
    end_s: float


@pytest.fixture
def ramp(tmp_path: Path) -> Path:
    """A video whose frame i is 3 i bright, with a tone that rises each half second."""
    frames = (np.full((32, 48, 3), 3 * k, np.uint8) for k in range(80))
    rate, at = 16000, np.arange(4 * 16000) / 16000
    tone = 0.5 * np.sin(2 * np.pi * (400 + 200 * (at // 0.5)) * at)
    return write_video(tmp_path / "ramp.mp4", frames, fps=20, audio=Audio(tone[None], rate), crf=1)


def test_clips_hold_their_frames_and_their_sound(ramp: Path, tmp_path: Path) -> None:
    parts = [Span(3, 10, 0.15, 0.5), Span(10, 30, 0.5, 1.5), Span(70, 80, 3.5, 4.0)]
    done: list[tuple[int, int]] = []
    clips = cut_clips(ramp, parts, tmp_path / "clips", progress=lambda *each: done.append(each))
    assert [clip.name for clip in clips] == ["ramp-01.mp4", "ramp-02.mp4", "ramp-03.mp4"]
    assert done == [(1, 3), (2, 3), (3, 3)]
    whole = read_audio(ramp)
    for clip, part in zip(clips, parts, strict=True):
        count = part.stop - part.start
        assert probe(clip).num_frames == count and probe(clip).fps == pytest.approx(20)
        grey = read_frames(clip, range(count)).mean(axis=(1, 2, 3))
        assert np.abs(grey - 3 * np.arange(part.start, part.stop)).max() < 1.5
        first, sound = round(part.start_s * whole.rate), read_audio(clip)
        same = whole.samples[0, first : first + sound.samples.shape[1]]
        assert np.corrcoef(same, sound.samples[0, : len(same)])[0, 1] > 0.9


def test_no_parts_make_no_clips(ramp: Path, tmp_path: Path) -> None:
    assert cut_clips(ramp, [], tmp_path / "none") == [] and not (tmp_path / "none").exists()


def test_shots_cover_the_video(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = [draw(wander(4 * count, rng)[:count], scene=k) for k, count in ((0, 30), (1, 41), (6, 25))]
    video = write_video(tmp_path / "edited.mp4", np.concatenate(frames), fps=25)
    shots = list_shots(video)
    assert [(shot.start, shot.stop) for shot in shots] == [(0, 30), (30, 71), (71, 96)]
    assert [shot.start_s for shot in shots] == pytest.approx([0, 1.2, 2.84], abs=1e-3)
    assert shots[-1].end_s == pytest.approx(3.84, abs=1e-3)
    one = write_video(tmp_path / "one.mp4", frames[0], fps=25)
    assert [(shot.start, shot.stop) for shot in list_shots(one)] == [(0, 30)]
