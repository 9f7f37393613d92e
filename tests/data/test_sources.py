import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.data import VideoRecord, load_sequence, sources
from cycleback.data.sources import (
    crop_box,
    file_digest,
    folder_fps,
    image_paths,
    iter_images,
    read_image,
    record_digest,
)
from cycleback.errors import DataError

Write = Callable[..., Path]


def test_images_come_in_the_order_of_their_numbers(tmp_path: Path, write_images: Write) -> None:
    write_images(tmp_path, ["frame_10.png", "frame_2.jpg", "frame_1.jpeg", "cover.png", ".3.png"])
    assert [path.name for path in image_paths(tmp_path)] == ["frame_1.jpeg", "frame_2.jpg", "frame_10.png"]


def test_chunks_hold_the_right_frames_and_times(
    tmp_path: Path, write_images: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "CHUNK_FRAMES", 2)
    write_images(tmp_path, [f"{number}.png" for number in (1, 2, 3, 20, 100)])
    (tmp_path / "fps.txt").write_text("10\n")
    chunks = list(iter_images(tmp_path, size=(2, 2)))
    assert [chunk.start for chunk in chunks] == [0, 2, 4]
    assert np.concatenate([chunk.frames for chunk in chunks])[:, 0, 0, 0].tolist() == [1, 2, 3, 20, 100]
    np.testing.assert_allclose(np.concatenate([chunk.times for chunk in chunks]), np.arange(5) / 10)


def test_without_a_size_frames_take_that_of_the_first_image(tmp_path: Path, write_images: Write) -> None:
    write_images(write_images(tmp_path, ["1.png"], size=(4, 6)), ["2.png"], size=(8, 3))
    assert next(iter_images(tmp_path)).frames.shape == (2, 4, 6, 3)


def test_stretch_keeps_all_and_crop_keeps_the_middle(tmp_path: Path) -> None:
    picture = np.zeros((10, 30, 3), np.uint8)
    picture[:, 10:20] = 200
    Image.fromarray(picture).save(tmp_path / "1.png")
    stretched = read_image(tmp_path / "1.png", size=(6, 6))
    cropped = read_image(tmp_path / "1.png", size=(5, 5), fit="crop")
    assert stretched[:, 0].max() < 60 and stretched[:, 3].min() > 100
    assert cropped.min() > 170  # pixels at the edge mix with their neighbours
    assert crop_box((10, 30), (5, 5)) == (10, 0, 20, 10)


def test_a_picture_lying_on_its_side_is_turned_upright(tmp_path: Path) -> None:
    image = Image.fromarray(np.zeros((4, 8, 3), np.uint8))
    exif = image.getexif()
    exif[0x0112] = 6  # orientation: turn a quarter
    image.save(tmp_path / "1.jpg", exif=exif)
    assert read_image(tmp_path / "1.jpg").shape == (8, 4, 3)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_any_kind_of_picture_becomes_rgb(tmp_path: Path, mode: str) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"
    Image.new(mode, (6, 4)).save(tmp_path / f"1.{suffix}")
    assert read_image(tmp_path / f"1.{suffix}").shape == (4, 6, 3)


def test_problems_name_the_file(tmp_path: Path, write_images: Write) -> None:
    write_images(tmp_path, ["1.png", "1.jpg"])
    with pytest.raises(DataError, match=r"1\.(jpg|png) and 1\.(jpg|png) are the same frame"):
        image_paths(tmp_path)
    (tmp_path / "1.jpg").write_bytes((tmp_path / "1.png").read_bytes()[:40])
    with pytest.raises(DataError, match=r"cannot read the image .*1\.jpg"):
        read_image(tmp_path / "1.jpg")
    (tmp_path / "fps.txt").write_text("thirty")
    with pytest.raises(DataError, match=r"fps\.txt: 'thirty' is not a frame rate"):
        folder_fps(tmp_path)
    with pytest.raises(DataError, match=r"no numbered images in .*empty"):
        image_paths(write_images(tmp_path / "empty", []))


def sequence(tmp_path: Path, **arrays: object) -> VideoRecord:
    np.savez(tmp_path / "s.npz", **arrays)
    return VideoRecord("s", tmp_path / "s.npz", kind="sequence")


def test_features_and_times_are_read(tmp_path: Path) -> None:
    values = np.arange(12).reshape(4, 3)
    loaded = load_sequence(sequence(tmp_path, features=values, other=np.ones((4, 2)), times=[0, 0.5, 0.6, 2]))
    assert loaded.features.dtype == np.float32 and loaded.times.dtype == np.float64
    np.testing.assert_array_equal(loaded.features, values)
    np.testing.assert_array_equal(loaded.times, [0, 0.5, 0.6, 2])


@pytest.mark.parametrize(
    ("rate", "expected"), [({"fps": 10}, [0, 0.1]), ({"fps": [10.0]}, [0, 0.1]), ({}, [0, 1 / 30])]
)
def test_the_only_table_is_taken_and_the_rate_is_known(tmp_path: Path, rate: dict, expected: list) -> None:
    loaded = load_sequence(sequence(tmp_path, pose=np.ones((2, 5)), ids=np.arange(2), **rate))
    assert loaded.features.shape == (2, 5)
    np.testing.assert_allclose(loaded.times, expected)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.ones((4, 2)), "b": np.ones((4, 3))},
            r"no array 'features', and 2 two-dimensional arrays.*\(4, 3\)",
        ),
        ({"a": np.ones(4)}, r"and 0 two-dimensional arrays among a \(4,\)"),
        ({"features": np.ones((4, 2, 2))}, r"'features' must be numbers of shape .* got float64 \(4, 2, 2\)"),
        ({"features": np.ones((0, 2))}, r"got float64 \(0, 2\)"),
        ({"features": np.array([["x"]])}, r"got <U1 \(1, 1\)"),
        (
            {"features": np.ones((3, 2)), "times": [0, 1]},
            r"'times' must be 3 finite, increasing seconds, got shape \(2,\)",
        ),
        ({"features": np.ones((3, 2)), "times": [0, 1, 1]}, r"'times' must be 3 finite, increasing seconds"),
        ({"features": np.ones((3, 2)), "fps": 0}, r"'fps' must be one number from 1e-06 to 1e\+06, got 0"),
    ],
)
def test_what_is_no_sequence_is_an_error(tmp_path: Path, arrays: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_sequence(sequence(tmp_path, **arrays))


def test_a_file_that_is_damaged_or_holds_objects_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s\.npz: .features. must be numbers of shape .*, got object \(1,\)"):
        load_sequence(sequence(tmp_path, features=np.array([{}], dtype=object)))
    (tmp_path / "s.npz").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"cannot read .*s\.npz"):
        load_sequence(VideoRecord("s", tmp_path / "s.npz", kind="sequence"))
    with pytest.raises(ValueError, match="s is of kind 'video', not a sequence"):
        load_sequence(VideoRecord("s", tmp_path / "s.npz"))


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycleback.data.sources.WHOLE_FILE_BYTES", 100)
    monkeypatch.setattr("cycleback.data.sources.PIECE_BYTES", 10)


def test_a_small_file_is_hashed_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert file_digest(tmp_path / "a") == hashlib.sha256(b"content").hexdigest()


def test_a_large_file_is_hashed_by_size_time_and_pieces(tmp_path: Path, small_limits: None) -> None:
    path, content = tmp_path / "a", bytes(range(200)) * 2
    path.write_bytes(content)
    text = f"400/{path.stat().st_mtime_ns}/".encode()
    pieces = content[:10] + content[195:205] + content[-10:]
    assert file_digest(path) == hashlib.sha256(text + pieces).hexdigest()


def test_touching_a_large_file_changes_its_fingerprint_but_not_that_of_a_small_one(
    tmp_path: Path, small_limits: None
) -> None:
    for size, is_same in ((99, True), (100, False)):
        (tmp_path / "a").write_bytes(b"x" * size)
        before = file_digest(tmp_path / "a")
        os.utime(tmp_path / "a", ns=(1, 1))
        assert (file_digest(tmp_path / "a") == before) is is_same


def test_a_folder_of_images_is_its_images_their_names_and_the_rate(
    tmp_path: Path, write_images: Callable[..., Path]
) -> None:
    folder = write_images(tmp_path / "clip", ["1.png", "2.png"])
    record = VideoRecord("clip", folder, kind="frames")
    seen = [record_digest(record)]
    (folder / "notes.txt").write_text("ignored")
    assert record_digest(record) == seen[0]
    (folder / "fps.txt").write_text("10")
    seen.append(record_digest(record))
    (folder / "1.png").rename(folder / "3.png")
    seen.append(record_digest(record))
    write_images(folder, ["3.png"], size=(5, 5))
    seen.append(record_digest(record))
    assert len(set(seen)) == 4


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*gone\.mp4: No such file"):
        record_digest(VideoRecord("gone", tmp_path / "gone.mp4"))
