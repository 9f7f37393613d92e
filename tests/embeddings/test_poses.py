"""People are drawn into frames, so where every joint is, and who must be followed, is known."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings import poses as module
from cycleback.embeddings.poses import (
    STEP_S,
    PoseCache,
    Square,
    Tracker,
    choose_frames,
    cut_square,
    interpolate_poses,
    write_poses,
)
from cycleback.errors import DataError
from cycleback.models.movenet import JOINTS, MoveNet
from cycleback.models.streams import has_person
from cycleback.video import write_video
from figures import draw_person, draw_wall

HIPS = [JOINTS.index("left_hip"), JOINTS.index("right_hip")]
HEIGHT, WIDTH = 120, 240


@pytest.fixture(scope="module")
def track() -> Callable[[list[NDArray[np.uint8]]], NDArray[np.float32]]:
    """Poses (n, 17, 3) of frames, given to a tracker in two chunks."""
    network = MoveNet("lightning")

    def push(frames: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
        tracker, half = Tracker(network), len(frames) // 2
        return np.concatenate([tracker.push(np.stack(part)) for part in (frames[:half], frames[half:])])

    return push


def hip_columns(poses: NDArray[np.float32]) -> NDArray[np.float32]:
    """Column of the middle of the hips in pixels."""
    columns: NDArray[np.float32] = poses[:, HIPS, 1].mean(axis=1) * HEIGHT
    return columns


def room(*people: tuple[float, float]) -> NDArray[np.uint8]:
    """A room with people of some height, standing on the floor at some column."""
    frame = draw_wall(HEIGHT, WIDTH)
    for middle, height in people:
        draw_person(frame, top=0.95 * HEIGHT - height, middle=middle, height=height)
    return frame


def test_the_larger_of_two_people_is_followed_when_the_smaller_stands_in_the_middle(track: Callable) -> None:
    poses = track([room((60 + step, 100), (125, 55)) for step in range(18)])
    assert np.abs(hip_columns(poses) - (60 + np.arange(18))).max() < 4
    assert poses[..., 2].mean() > 0.4


def test_a_person_is_followed_to_the_edge_past_another(track: Callable) -> None:
    steps = np.linspace(70, 220, 24)
    poses = track([room((125, 60), (column, 90)) for column in steps])
    assert np.abs(hip_columns(poses) - steps).max() < 6


def test_a_person_who_leaves_is_gone(track: Callable) -> None:
    frames = [room((120, 100)) if step < 10 else room() for step in range(24)]
    scores = track(frames)[..., 2].mean(axis=1)
    assert scores[:10].min() > 0.4 and scores[12:].max() < 0.2


def test_an_empty_room_has_no_person(track: Callable) -> None:
    assert not has_person(track([room()] * 4))
    assert has_person(track([room((120, 100))] * 4))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> VideoRecord:
    """A person walks to the right by 60 pixels in one second."""
    path = tmp_path_factory.mktemp("video") / "walk.mp4"
    write_video(path, [room((60 + 2 * step, 100)) for step in range(31)], fps=30)
    return VideoRecord("walk", path)


def test_poses_are_in_units_of_the_height_for_every_frame(video: VideoRecord, tmp_path: Path) -> None:
    poses = PoseCache(FrameCache(tmp_path, size=(16, 16))).load(video)
    assert poses.shape == (31, 17, 3) and poses.dtype == np.float32
    assert np.abs(hip_columns(poses) - (60 + 2 * np.arange(31))).max() < 4
    assert np.abs(poses[:, HIPS, 0].mean(axis=1) - (0.95 * 120 - 50) / 120).max() < 0.04


def test_poses_are_found_once_and_again_if_the_file_is_damaged(
    video: VideoRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PoseCache(FrameCache(tmp_path, size=(16, 16)))
    poses = cache.load(video)
    (file,) = tmp_path.rglob("poses-*.npy")
    with monkeypatch.context() as patch:
        patch.setattr(module, "iter_chosen_frames", None)
        assert np.array_equal(PoseCache(cache.frames).load(video), poses)
    file.write_bytes(file.read_bytes()[:-100])
    assert np.array_equal(cache.load(video), poses)


def test_written_poses_are_in_pixels(video: VideoRecord, tmp_path: Path) -> None:
    cache = PoseCache(FrameCache(tmp_path / "cache", size=(16, 16)))
    write_poses(cache, [video], tmp_path / "out")
    with np.load(tmp_path / "out" / "walk.npz") as file:
        assert file["joints"].tolist() == list(JOINTS) and file["times"][-1] == pytest.approx(1.0)
        assert np.abs(file["key_points"][:, HIPS, 0].mean(axis=1) - (60 + 2 * np.arange(31))).max() < 4
        nose = [*file["key_points"][30, 0], file["scores"][30, 0]]
    header, *rows = (tmp_path / "out" / "walk.csv").read_text().splitlines()
    assert header.startswith("frame,seconds,nose_x,nose_y,nose_score,left_eye_x") and len(rows) == 31
    assert np.allclose([float(cell) for cell in rows[30].split(",")[:5]], [30, 1, *nose], atol=1e-3)
    with pytest.raises(DataError, match=r"a\.npz is a sequence of features"):
        write_poses(cache, [VideoRecord("a", Path("a.npz"), kind="sequence")], tmp_path / "other")


def test_frames_of_an_image_folder_are_read_by_number(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "walk").mkdir()
    for number in range(4):
        Image.fromarray(room((60 + 20 * number, 100))).save(tmp_path / "walk" / f"{number}.png")
    (tmp_path / "walk" / "fps.txt").write_text("5")
    record = VideoRecord("walk", tmp_path / "walk", kind="frames")
    poses = PoseCache(FrameCache(tmp_path / "cache", size=(16, 16))).load(record)
    assert np.abs(hip_columns(poses) - (60 + 20 * np.arange(4))).max() < 4


@pytest.mark.parametrize("fps", [30, 240])
def test_frames_are_taken_by_time_whatever_the_rate(fps: int) -> None:
    numbers = choose_frames(np.arange(2 * fps + 1) / fps)
    assert numbers[0] == 0 and numbers[-1] == 2 * fps
    assert np.abs(numbers / fps - np.arange(21) * STEP_S).max() <= 0.5 / fps


def test_all_frames_of_a_slow_video_are_taken() -> None:
    times = np.array([0.0, 0.2, 0.3, 0.7, 0.71])
    assert choose_frames(times).tolist() == [0, 1, 2, 3, 4]
    assert choose_frames(times[:1]).tolist() == [0]


def test_a_joint_with_a_low_score_does_not_pull_its_neighbours() -> None:
    found = np.zeros((2, 17, 3), np.float32)
    found[0, :, :] = (0.0, 0.0, 0.9)
    found[1, :, :] = (1.0, 1.0, 0.1)
    between = interpolate_poses(found, np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0]))
    assert np.allclose(between[[0, 2]], found)
    assert np.allclose(between[1], (0.1, 0.1, 0.5), atol=0.01)


def test_a_square_is_cut_at_its_place_and_black_beyond_the_frame() -> None:
    frame = np.empty((40, 80, 3), np.uint8)
    frame[:] = np.arange(80)[None, :, None] * 2 + 40  # grey grows by 2 per column
    image = cut_square(frame, Square(y=20, x=70, side=60), size=120)  # columns 40 to 100, rows -10 to 50
    assert not image[:20].any() and not image[100:].any() and not image[:, 80:].any()
    expected = 2 * (40 + (np.arange(80) + 0.5) / 2 - 0.5) + 40
    assert np.abs(image[60, 2:78, 0] - expected[2:78]).max() <= 1


def test_any_square_can_be_cut() -> None:
    draw = np.random.default_rng(0)
    for _ in range(500):
        height, width = draw.integers(1, 40, 2)
        square = Square(*draw.uniform((-20, -20, 1), (60, 60, 80)))
        image = cut_square(np.full((height, width, 3), 9, np.uint8), square, size=16)
        assert image.shape == (16, 16, 3) and set(np.unique(image)) <= {0, 9}


def test_real_videos_show_a_person_or_not(shared_data: Path, tmp_path: Path) -> None:
    cache = PoseCache(FrameCache(tmp_path, size=(16, 16)))
    files = {"golf/videos/0002.mp4": True, "pitch_audio/videos/videos12_1.mp4": True}
    files |= {"robot/ep022.mp4": False, "gesture_square/square_11.mp4": False}
    found = {name: has_person(cache.load(VideoRecord("video", shared_data / name))) for name in files}
    assert found == files
