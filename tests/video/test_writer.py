import tracemalloc
import weakref
from fractions import Fraction

import numpy as np
import pytest

from cycleback.errors import OutputExistsError, UserError, VideoError
from cycleback.video import Audio, probe, read_audio, read_frames, write_video
from cycleback.video.writer import exact_rate


def atoms(path):
    """Names of the top-level parts of an MP4 file, in order."""
    data, position, names = path.read_bytes(), 0, []
    while position < len(data):
        names.append(data[position + 4 : position + 8].decode())
        position += int.from_bytes(data[position : position + 4], "big")
    return names


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov", ".MP4"])
def test_frames_come_back_in_order(tmp_path, numbered, numbers_of, suffix):
    path = write_video(tmp_path / f"a{suffix}", numbered(70), fps=30)
    assert path == tmp_path / f"a{suffix}"
    assert numbers_of(read_frames(path, range(70))) == list(range(70))


def test_independent_program_reads_the_same_frames(tmp_path, numbered, numbers_of, decode):
    path = write_video(tmp_path / "a.mp4", numbered(40), fps=25)
    assert numbers_of(decode(path)) == list(range(40))


def test_file_plays_in_browsers(tmp_path, numbered, tone):
    import av

    path = write_video(tmp_path / "a.mp4", numbered(30), fps=30, audio=tone(seconds=1))
    assert atoms(path).index("moov") < atoms(path).index("mdat")  # playable before it is loaded whole
    with av.open(str(path)) as container:
        video, sound = container.streams.video[0].codec_context, container.streams.audio[0].codec_context
        assert (video.name, video.pix_fmt, sound.name) == ("h264", "yuv420p", "aac")
        assert "High" in video.profile and "4:4:4" not in video.profile
        assert (video.colorspace, video.color_primaries, video.color_trc, video.color_range) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    "fps, exact",
    [
        *[(29.97, "30000/1001"), (23.976, "24000/1001"), (23.98, "24000/1001"), (59.94, "60000/1001")],
        *[(25.0, "25"), (30, "30"), (12.5, "25/2"), (1, "1"), (0.5, "1/2"), (240, "240"), (29.5, "59/2")],
        *[(np.float32(30), "30"), (Fraction(30000, 1001), "30000/1001"), (1000, "1000")],
    ],
)
def test_rate_becomes_the_fraction_meant(fps, exact):
    assert exact_rate(fps) == Fraction(exact)


@pytest.mark.parametrize("fps", [0, -30, float("nan"), float("inf")])
def test_impossible_rate(tmp_path, numbered, fps):
    with pytest.raises(ValueError, match=rf"fps must be a number above 0, got {fps!r}"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=fps)


@pytest.mark.parametrize("fps", [0.5, 12.5, 29.97, 120])
def test_rate_is_kept_exactly(tmp_path, numbered, fps):
    info = probe(write_video(tmp_path / "a.mp4", numbered(20), fps=fps))
    assert info.fps == pytest.approx(float(exact_rate(fps)), rel=1e-12)
    assert info.duration_s == pytest.approx(20 / float(exact_rate(fps)), rel=1e-9)


@pytest.mark.parametrize("height, width", [(1, 1), (33, 64), (64, 35), (47, 31)])
def test_odd_sizes_are_padded_by_repeating_the_edge(tmp_path, height, width):
    image = np.full((height, width, 3), 40, dtype=np.uint8)
    image[-1], image[:, -1] = 200, 200
    path = write_video(tmp_path / "a.mp4", [image] * 2, fps=30, crf=1)
    found = read_frames(path, [0])[0]
    assert found.shape == (height + height % 2, width + width % 2, 3)
    assert np.abs(found[-1].astype(int) - 200).max() < 12
    assert np.abs(found[:, -1].astype(int) - 200).max() < 12


@pytest.mark.parametrize("seconds", [0.3, 5.0])
@pytest.mark.parametrize("suffix", [".mp4", ".mov"])
def test_sound_is_cut_or_padded_to_the_length_of_the_video(tmp_path, numbered, tone, seconds, suffix):
    path = write_video(tmp_path / f"a{suffix}", numbered(30), fps=30, audio=tone(seconds=seconds))
    audio = read_audio(path)
    assert audio.samples.shape == (1, 44100)
    loud = np.abs(audio.samples[0]).reshape(10, -1).max(axis=1) > 0.25
    assert loud[:2].all() and loud[5:].all() == (seconds > 1)


def test_frames_are_taken_one_at_a_time(tmp_path, numbered):
    given, most = [], 0

    def frames():
        nonlocal most
        for frame in numbered(100):
            given.append(weakref.ref(frame))
            most = max(most, sum(reference() is not None for reference in given))
            yield frame

    write_video(tmp_path / "a.mp4", frames(), fps=30)
    assert (len(given), most <= 4) == (100, True)


def test_memory_does_not_grow_with_the_video(tmp_path):
    frames = (np.full((128, 128, 3), number % 256, dtype=np.uint8) for number in range(300))
    tracemalloc.start()
    write_video(tmp_path / "a.mp4", frames, fps=30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 128 * 128 * 3


def test_other_size_midway(tmp_path):
    frames = [np.zeros((32, 48, 3), np.uint8)] * 3 + [np.zeros((32, 50, 3), np.uint8)]
    with pytest.raises(ValueError, match=r"frame 3 is \(32, 50, 3\), the frames before it are \(32, 48, 3\)"):
        write_video(tmp_path / "a.mp4", frames, fps=30)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "bad", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8)]
)
def test_frames_must_be_rgb_bytes(tmp_path, bad):
    with pytest.raises(ValueError, match=r"frame 0 must be uint8 \(H, W, 3\), got (uint8|float64) \(4, 4"):
        write_video(tmp_path / "a.mp4", [bad], fps=30)


def test_no_frames(tmp_path):
    with pytest.raises(VideoError, match=r"a.mp4: no frames to write"):
        write_video(tmp_path / "a.mp4", [], fps=30)
    assert list(tmp_path.iterdir()) == []


def test_existing_file_is_kept(tmp_path, numbered):
    path = tmp_path / "a.mp4"
    path.write_text("precious")
    with pytest.raises(OutputExistsError, match=r"a.mp4 exists. Add --overwrite"):
        write_video(path, numbered(2), fps=30)
    assert path.read_text() == "precious"


def test_existing_file_is_replaced_when_asked(tmp_path, numbered):
    path = tmp_path / "a.mp4"
    path.write_text("old")
    write_video(path, numbered(5), fps=30, overwrite=True)
    assert probe(path).num_frames == 5
    assert list(tmp_path.iterdir()) == [path]


def test_error_of_the_frames_leaves_nothing_behind(tmp_path, numbered):
    def frames():
        yield from numbered(10)
        raise RuntimeError("camera fell off")

    (tmp_path / "a.mp4").write_text("old")
    with pytest.raises(RuntimeError, match="camera fell off"):
        write_video(tmp_path / "a.mp4", frames(), fps=30, overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_missing_folder_is_made_and_a_file_in_its_place_is_one_line(tmp_path, numbered):
    path = write_video(tmp_path / "new" / "a.mp4", numbered(2), fps=30)
    with pytest.raises(UserError, match=r"cannot write .*a.mp4/b.mp4: .*a.mp4 is a file, not a folder"):
        write_video(path / "b.mp4", numbered(2), fps=30)


@pytest.mark.parametrize("name", ["a.txt", "a", "a.webm"])
def test_suffix_that_cannot_be_written(tmp_path, numbered, name):
    with pytest.raises(UserError, match=rf"write .*{name}: expected a name ending in .mp4, .mkv or .mov$"):
        write_video(tmp_path / name, numbered(2), fps=30)


def test_folder_in_the_way(tmp_path, numbered):
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(VideoError, match=r"cannot write .*a.mp4: it is a folder"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=30, overwrite=True)


def test_impossible_quality(tmp_path, numbered):
    with pytest.raises(ValueError, match=r"crf must be in 0..51, got 60"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=30, crf=60)


def test_quality_changes_the_size(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (5, 64, 64, 3)).astype(np.uint8)
    sizes = [
        write_video(tmp_path / f"{crf}.mp4", noise, fps=30, crf=crf).stat().st_size for crf in (5, 20, 40)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_sound_that_is_not_a_number(tmp_path, numbered):
    audio = Audio(np.full((1, 100), np.nan), 44100)
    with pytest.raises(ValueError, match=r"audio samples must be finite, got NaN"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=30, audio=audio)
    assert list(tmp_path.iterdir()) == []


def test_too_many_channels(tmp_path, numbered):
    with pytest.raises(ValueError, match=r"audio must have 1 to 6 channels, got 9"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=30, audio=Audio(np.zeros((9, 100)), 44100))
