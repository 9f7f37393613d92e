from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.data.image_folder import crop_box, folder_fps, image_paths, iter_images, read_image
from cycleback.errors import DataError

Write = Callable[..., Path]


def test_images_come_in_the_order_of_their_numbers(tmp_path: Path, write_images: Write) -> None:
    write_images(tmp_path, ["frame_10.png", "frame_2.jpg", "frame_1.jpeg", "cover.png", ".3.png"])
    assert [path.name for path in image_paths(tmp_path)] == ["frame_1.jpeg", "frame_2.jpg", "frame_10.png"]


def test_chunks_hold_the_right_frames_and_times(tmp_path: Path, write_images: Write) -> None:
    write_images(tmp_path, [f"{number}.png" for number in (1, 2, 3, 20, 100)])
    (tmp_path / "fps.txt").write_text("10\n")
    chunks = list(iter_images(tmp_path, size=(2, 2), chunk_frames=2))
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
