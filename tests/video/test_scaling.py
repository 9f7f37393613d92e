import numpy as np
import pytest
from PIL import Image

from cycleback.video import iter_frames, probe, read_frames, write_video
from cycleback.video.scaling import cover_size, crop_centre


@pytest.fixture(scope="module")
def arrow():
    """A picture (60, 100, 3) that looks different from every side: dark left, bright right, red top."""
    image = np.zeros((60, 100, 3), dtype=np.uint8)
    image[..., 1] = np.linspace(20, 230, 100).astype(np.uint8)
    image[:20, :, 0] = 200
    return image


@pytest.mark.parametrize("turn", [90, 180, 270, -90])
def test_rotation_matches_the_ffmpeg_program(tmp_path, ffmpeg, decode, arrow, turn):
    stored, path = write_video(tmp_path / "stored.mp4", [arrow] * 3, fps=30), tmp_path / "turned.mp4"
    ffmpeg("-display_rotation", str(turn), "-i", stored, "-c", "copy", path)
    info = probe(path)
    assert (info.height, info.width) == ((60, 100) if turn == 180 else (100, 60))
    assert info.rotation == turn % 360
    expected = decode(path, info.height, info.width)
    assert np.abs(read_frames(path, [0, 2]).astype(int) - expected[[0, 2]]).mean() < 2
    assert np.abs(next(iter_frames(path)).frames.astype(int) - expected).mean() < 2


def test_rotated_video_is_scaled_upright(tmp_path, ffmpeg, decode, arrow):
    stored, path = write_video(tmp_path / "stored.mp4", [arrow], fps=30), tmp_path / "turned.mp4"
    ffmpeg("-display_rotation", "90", "-i", stored, "-c", "copy", path)
    expected = np.asarray(Image.fromarray(decode(path, 100, 60)[0]).resize((30, 50), Image.Resampling.BOX))
    assert np.abs(read_frames(path, [0], size=(50, 30))[0].astype(int) - expected).mean() < 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["-pix_fmt", "yuv420p"],
        ["-pix_fmt", "yuv444p"],
        ["-pix_fmt", "yuvj420p"],
        ["-pix_fmt", "gray"],
        ["-pix_fmt", "yuv420p10le"],
        ["-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709"],
    ],
)
def test_colours_match_the_ffmpeg_program(clip, decode, arguments):
    path = clip("colour.mkv", "-c:v", "libx264", "-crf", "5", *arguments, count=5)
    difference = read_frames(path, range(5)).astype(int) - decode(path)  # the program's default is 2 too dark
    assert np.abs(difference).mean() < 4
    assert np.abs(difference.mean(axis=(0, 1, 2))).max() < 3


def test_colours_survive_writing_and_reading_without_bias(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    image = np.asarray(Image.fromarray(image).resize((96, 96), Image.Resampling.BICUBIC))
    path = write_video(tmp_path / "a.mp4", [image] * 4, fps=30, crf=1)
    for size in (None, (72, 72)):
        found = read_frames(path, [0], size=size)[0].astype(float)
        expected = np.asarray(Image.fromarray(image).resize(found.shape[1::-1], Image.Resampling.BOX))
        assert np.abs((found - expected).mean(axis=(0, 1))).max() < 0.5


def test_shrinking_averages_instead_of_skipping_pixels(tmp_path):
    stripes = np.zeros((128, 128, 3), dtype=np.uint8)
    stripes[:, ::2] = 255
    path = write_video(tmp_path / "a.mp4", [stripes], fps=30, crf=1)
    assert np.abs(read_frames(path, [0], size=(32, 32)).astype(int) - 127).max() < 12


def test_crop_keeps_proportions_and_the_middle(tmp_path, arrow):
    path = write_video(tmp_path / "a.mp4", [arrow], fps=30, crf=5)
    found = read_frames(path, [0], size=(30, 30), fit="crop")[0].astype(int)
    wide = np.asarray(Image.fromarray(arrow).resize((50, 30), Image.Resampling.BOX))
    assert np.abs(found - wide[:, 10:40]).mean() < 4


def test_crop_of_squeezed_pixels_uses_the_displayed_proportions(clip, ffmpeg, tmp_path):
    path = tmp_path / "wide.mp4"
    ffmpeg("-i", clip("a.mp4"), "-vf", "setsar=2", "-c:v", "libx264", path)
    frames = read_frames(path, [1], size=(32, 64), fit="crop")
    np.testing.assert_array_equal(frames, read_frames(path, [1], size=(32, 64), fit="stretch"))


@pytest.mark.parametrize("pixel_format", ["yuv444p", "yuv420p"])
def test_video_of_odd_size_is_read_as_it_is(tmp_path, ffmpeg, decode, pixel_format):
    path = tmp_path / "odd.mkv"
    source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:d=0.2", "-vf", "scale=63:47"]
    ffmpeg(*source, "-c:v", "ffv1", "-pix_fmt", pixel_format, path)
    frames = read_frames(path, [0, 4])
    assert frames.shape == (2, 47, 63, 3)
    assert np.abs(frames.astype(int) - decode(path, 47, 63)[[0, 4]]).mean() < 6


def test_cover_size_and_crop_centre():
    assert cover_size((60, 100), (30, 30)) == (30, 50)
    assert cover_size((100, 60), (30, 30)) == (50, 30)
    assert cover_size((50, 50), (20, 31)) == (31, 31)
    np.testing.assert_array_equal(
        crop_centre(np.arange(36).reshape(6, 6), (2, 4)), [[13, 14, 15, 16], [19, 20, 21, 22]]
    )


@pytest.mark.parametrize("size", [(0, 4), (4,), (3, -1)])
def test_impossible_size(clip, size):
    with pytest.raises(ValueError, match=r"size must be \(height, width\), both at least 1, got \("):
        read_frames(clip("a.mp4"), [0], size=size)


def test_unknown_fit(clip):
    with pytest.raises(ValueError, match=r"fit must be 'stretch' or 'crop', got 'pad'"):
        iter_frames(clip("a.mp4"), fit="pad")


def test_size_that_changes_midway_is_scaled_to_the_first(tmp_path, ffmpeg):
    for name, size in (("a", "64x64"), ("b", "32x48")):
        ffmpeg("-f", "lavfi", "-i", f"color=red:s={size}:d=0.2", "-c:v", "libx264", tmp_path / f"{name}.h264")
    path = tmp_path / "both.h264"
    path.write_bytes((tmp_path / "a.h264").read_bytes() + (tmp_path / "b.h264").read_bytes())
    frames = np.concatenate([chunk.frames for chunk in iter_frames(path)])
    assert frames.shape == (10, 64, 64, 3)
    assert (frames[..., 0] > 200).all()


def test_large_frames_are_shrunk_at_their_displayed_proportions(tmp_path, ffmpeg, clip):
    path, turned = tmp_path / "wide_pixels.mp4", tmp_path / "turned.mp4"
    ffmpeg("-i", clip("a.mp4"), "-vf", "setsar=2", "-c:v", "libx264", path)  # 64 x 64 stored
    ffmpeg("-display_rotation", "90", "-i", path, "-c", "copy", turned)
    sizes = {
        (path, 32): (16, 32),
        (path, 500): (64, 128),
        (turned, 32): (32, 16),
        (clip("a.mp4"), 50): (50, 50),
    }
    for (file, max_side), size in sizes.items():
        assert next(iter_frames(file, max_side=max_side)).frames.shape[1:3] == size
