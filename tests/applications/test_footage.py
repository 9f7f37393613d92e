from pathlib import Path

import numpy as np
import pytest

from cycleback.applications.footage import frames_at


def brightness(path: Path, positions: list[float], **options: object) -> np.ndarray:
    frames = frames_at(path, np.array(positions, dtype=float), size=(32, 48), **options)
    return np.array([frame.mean() for frame in frames])


@pytest.mark.parametrize("stay_open", [True, False])
def test_the_nearest_frame_is_shown(ramps: list[Path], stay_open: bool) -> None:
    shown = brightness(ramps[0], [0, 0.4, 0.6, 7, 7, 18.7], stay_open=stay_open)
    assert shown == pytest.approx(20 + 4 * np.array([0, 0, 1, 7, 7, 19]), abs=2)


@pytest.mark.parametrize("stay_open", [True, False])
def test_between_frames_both_are_mixed(ramps: list[Path], stay_open: bool) -> None:
    positions = [0, 0.25, 3.5, 3.75, 9, 18.5, 19]
    shown = brightness(ramps[0], positions, stay_open=stay_open, blend=True)
    assert shown == pytest.approx(20 + 4 * np.array(positions), abs=1.5)


def test_positions_may_run_backwards(ramps: list[Path]) -> None:
    assert brightness(ramps[1], [30, 2, 17]) == pytest.approx(20 + 4 * np.array([30, 2, 17]), abs=2)


def test_chunks_make_no_difference(ramps: list[Path]) -> None:
    positions = list(np.linspace(0, 39, 33))
    whole = brightness(ramps[1], positions, blend=True)
    assert brightness(ramps[1], positions, blend=True, stay_open=False, chunk_frames=1) == pytest.approx(
        whole
    )


def test_a_file_shorter_than_promised_holds_its_last_frame(ramps: list[Path]) -> None:
    assert brightness(ramps[0], [18, 25])[-1] == pytest.approx(20 + 4 * 19, abs=2)
