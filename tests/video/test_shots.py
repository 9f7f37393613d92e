"""Shot changes: every hard cut, told once; no fast motion, flash, fade or noise."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.video import iter_frames, write_video
from cycleback.video.shots import collect_cuts, find_shots
from long_recordings import draw, wander


@pytest.fixture(scope="module")
def edited() -> np.ndarray:
    """Three shots of 40, 25 and 35 frames, with noise."""
    rng = np.random.default_rng(0)
    shots = [
        draw(wander(4 * count, rng)[:count], scene=scene) for scene, count in ((0, 40), (1, 25), (6, 35))
    ]
    frames = np.concatenate(shots).astype(float)
    return np.clip(frames + rng.normal(0, 4, frames.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 200])
def test_cuts_are_found_in_chunks_of_any_size(edited, size: int) -> None:
    assert collect_cuts(edited[start : start + size] for start in range(0, 100, size)) == [40, 65]


def test_a_file_is_read(edited, tmp_path: Path) -> None:
    assert find_shots(write_video(tmp_path / "edited.mp4", edited, fps=25)) == [40, 65]


def test_small_pictures_suffice(edited) -> None:
    small = edited[:, ::2, ::2]
    assert collect_cuts([small]) == [40, 65]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_flash_is_no_cut(edited, length: int) -> None:
    frames = edited[:40].copy()
    frames[20 : 20 + length] = (frames[20 : 20 + length] * 0.2 + 200).astype(np.uint8)
    assert collect_cuts([frames]) == []
    frames[20 : 20 + length] = 255
    assert collect_cuts([frames]) == []


def test_fast_motion_of_everything_is_no_cut() -> None:
    wide = np.random.default_rng(0).uniform(0, 255, (10, 80, 3))
    wide = np.kron(wide, np.ones((8, 8, 1))).astype(np.uint8)  # (80, 640, 3)
    frames = np.stack([wide[:64, 10 * k : 10 * k + 64] for k in range(50)])
    assert collect_cuts([frames]) == []


def test_a_fade_is_no_cut(edited) -> None:
    share = np.linspace(0, 1, 20)[:, None, None, None]
    mixed = edited[20:40] * (1 - share) + edited[40:60] * share
    assert collect_cuts([np.concatenate([edited[:20], mixed.astype(np.uint8), edited[60:65]])]) == []


def test_dark_and_empty_pictures_have_no_cuts() -> None:
    noise = np.random.default_rng(0).integers(0, 4, (60, 40, 40, 3)).astype(np.uint8)
    assert collect_cuts([noise]) == [] and collect_cuts([noise[:2]]) == [] and collect_cuts([]) == []


def test_real_clips_have_no_cut_within_and_one_between(shared_data: Path) -> None:
    paths = [*sorted((shared_data / "gesture_tick").glob("*.mp4"))[:4]]
    paths += sorted((shared_data / "repetitions").glob("*.mp4"))[:4]
    clips = [
        np.concatenate([chunk.frames for chunk in iter_frames(path, size=(120, 160))])[:60] for path in paths
    ]
    assert [collect_cuts([clip]) for clip in clips] == [[]] * len(clips)
    assert collect_cuts(clips) == np.cumsum([len(clip) for clip in clips])[:-1].tolist()
