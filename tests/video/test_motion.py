"""A square that moves one way, at several frame rates, and the formula written as a loop."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from cycleback.video import iter_frames, motion
from cycleback.video.motion import DIRECTIONS, MotionMeter, measure_cells, reduce_to_grey, to_half

NUMPY = reduce_to_grey, measure_cells
STEPS = {"right": (0, 1), "down": (1, 0), "left": (0, -1), "up": (-1, 0)}
SIZE, SIDE = 112, 14  # pixels; the square is as large as a cell
CELL = (2, 5)  # row and column of the cell where it starts


def move_square(direction: str, times: NDArray[np.float64], speed: float = 40.0) -> NDArray[np.uint8]:
    """Frames (N, 112, 112, 3) of a bright square that moves `speed` pixels a second, with soft edges."""
    down, right = STEPS[direction]
    places = np.arange(SIZE) + 0.5
    frames = np.empty((len(times), SIZE, SIZE, 3), np.uint8)
    for number, seconds in enumerate(times):
        middle = [(CELL[i] + 0.5) * 14 + step * speed * seconds for i, step in enumerate((down, right))]
        row, column = (np.clip((SIDE / 2 - abs(places - centre)) / 4 + 0.5, 0, 1) for centre in middle)
        frames[number] = (40 + 160 * row[:, None] * column)[..., None]
    return frames


def measure(frames: NDArray[np.uint8], times: NDArray[np.float64], chunk: int = 64) -> NDArray[np.float64]:
    meter = MotionMeter()
    starts = range(0, len(frames), chunk)
    return np.concatenate([meter.push(frames[i : i + chunk], times[i : i + chunk]) for i in starts]).astype(
        float
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_moving_square_moves_in_its_direction_and_its_cells(direction: str) -> None:
    times = np.arange(6) / 30
    cells = measure(move_square(direction, times), times)[1:].mean(axis=0)  # (4, 8, 8)
    sums, channel = cells.sum(axis=(1, 2)), DIRECTIONS.index(direction)
    assert sums[channel] > 0.05 and sums[channel - 2] < 0.01 * sums[channel]
    assert max(sums[channel - 1], sums[channel - 3]) < 0.3 * sums[channel]  # the corners of the square
    assert cells[:, 1:4, 4:7].sum() > 0.999 * cells.sum()
    row, column = np.unravel_index(cells[channel].argmax(), (8, 8))
    assert (row - CELL[0], column - CELL[1]) in ((0, 0), STEPS[direction])


def test_the_motion_is_that_of_the_formula() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (5, 40, 40), dtype=np.uint8)
    frames = np.repeat(noise[..., None], 3, axis=3)
    motion = measure(frames, np.arange(5) / 30)
    for number in range(1, 5):
        before, now = noise[number - 1] / 255, noise[number] / 255
        y, x = np.gradient((before + now) / 2)
        along = (before - now) / (np.hypot(x, y) + 0.02)
        for channel, flow in enumerate((along * x, along * y, -along * x, -along * y)):
            expected = np.maximum(flow, 0).reshape(8, 5, 8, 5).mean(axis=(1, 3))
            np.testing.assert_allclose(motion[number, channel], expected, rtol=2e-3, atol=1e-5)


def test_a_still_video_has_no_motion() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (1, 60, 90, 3), dtype=np.uint8)
    assert not measure(np.repeat(frame, 20, axis=0), np.arange(20) / 25).any()


def test_the_motion_of_the_camera_is_removed_and_that_of_an_object_stays() -> None:
    texture = np.random.default_rng(0).integers(60, 120, (12, 20)).astype(np.uint8)
    wide = gaussian_filter(np.kron(texture, np.ones((12, 12))), 3)  # (144, 240)
    panned = np.stack([wide[10:122, 10 + number : 122 + number] for number in range(12)])
    times = np.arange(12) / 30
    square = move_square("right", times)[..., 0] - 40.0
    scenes = {"camera": panned, "both": panned + square, "object": wide[10:122, 10:122] + square}
    motion = {
        name: measure(np.repeat(scene.astype(np.uint8)[..., None], 3, axis=3), times)[2:].mean(axis=0)
        for name, scene in scenes.items()
    }
    assert motion["camera"].sum() < 0.25 * motion["object"].sum()
    near = (0, slice(1, 4), slice(4, 7))  # where the square moves right
    np.testing.assert_allclose(motion["both"][near].sum(), motion["object"][near].sum(), rtol=0.4)


def test_small_motion_is_rounded_like_numpy_does() -> None:
    values = np.random.default_rng(0).uniform(-25, 2, 9999)
    values = np.append(2.0**values, 0).astype(np.float32)
    steps = to_half(values).view(np.uint16).astype(int) - values.astype(np.float16).view(np.uint16)
    assert set(steps) <= {0, 1} and (steps == 1).mean() < 1e-3  # ties are rounded up, not to even


@pytest.mark.parametrize("fps", [15, 25, 60, 120, 240])
def test_the_frame_rate_does_not_matter(fps: int) -> None:
    often, usual = np.arange(fps) / fps, np.arange(30) / 30
    expected = measure(move_square("right", usual, speed=20), usual)[5:]
    found = measure(move_square("right", often, speed=20), often)[fps // 6 :]
    np.testing.assert_allclose(
        found.mean(axis=0).sum((1, 2)), expected.mean(axis=0).sum((1, 2)), rtol=0.1, atol=2e-3
    )


@pytest.mark.parametrize("chunk", [1, 3, 7, 16, 50])
def test_chunks_do_not_matter(chunk: int) -> None:
    generator = np.random.default_rng(0)
    times = np.cumsum(generator.uniform(0, 0.03, 50))
    frames = generator.integers(0, 256, (50, 50, 70, 3), dtype=np.uint8)
    np.testing.assert_array_equal(measure(frames, times, chunk), measure(frames, times))


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (33, 500)])
@pytest.mark.parametrize(
    "times", [np.zeros(90), np.array([0.0]), np.cumsum([0, 1e-9, 5, 1e-3, 0, 0.4, 1e-3]), np.empty(0)]
)
def test_any_times_and_sizes_give_finite_motion(times: NDArray[np.float64], size: tuple[int, int]) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (len(times), *size, 3), dtype=np.uint8)
    motion = MotionMeter().push(frames, times)
    assert motion.shape == (len(times), 4, 8, 8) and motion.dtype == np.float16
    assert np.isfinite(motion).all() and not motion[:1].any() and (motion >= 0).all()


def test_frames_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected frames \(n, H, W, 3\) and times \(n,\), got \(2, 4, 4\)"):
        MotionMeter().push(np.zeros((2, 4, 4), np.uint8), np.zeros(2))


def check_kernels_agree(frames: NDArray[np.uint8], times: NDArray[np.float64]) -> None:
    pytest.importorskip("numba")
    found = measure(frames, times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(motion, "fastest_kernels", lambda: NUMPY)
        expected = measure(frames, times)
    np.testing.assert_allclose(found, expected, rtol=2**-10, atol=1e-6)  # one step of 16 bits


@pytest.mark.parametrize("size", [(112, 112), (224, 224), (57, 130), (31, 3), (1, 1)])
@pytest.mark.parametrize("contrast", [3, 255])
def test_compiled_kernels_agree_with_numpy_on_noise(size: tuple[int, int], contrast: int) -> None:
    frames = np.random.default_rng(0).integers(0, contrast, (20, *size, 3), dtype=np.uint8)
    check_kernels_agree(frames, np.arange(20) / 50)


@pytest.mark.parametrize("side", [112, 224])
def test_compiled_kernels_agree_with_numpy_on_golf_swings(side: int, shared_data: Path) -> None:
    for path in sorted((shared_data / "golf" / "videos").glob("*.mp4"))[::150]:
        (chunk,) = iter_frames(path, size=(side, side), chunk_frames=9999)
        check_kernels_agree(chunk.frames, chunk.times)


def test_the_compiled_kernels_are_used_where_numba_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    assert motion.fastest_kernels() != NUMPY
    monkeypatch.setitem(sys.modules, "numba", None)
    assert motion.fastest_kernels.__wrapped__() == NUMPY
