"""The contact sheet and the clips, on grey videos whose brightness is the frame number."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, OutputExistsError, UserError
from cycleback.search import Corpus, Hit, find, make_frame_query, make_vector_query, write_clips, write_sheet
from cycleback.search.outputs import BORDER_COLOUR, HEIGHT, draw_sheet
from cycleback.video import probe, read_frames, write_video

FRAMES = 40


@pytest.fixture(scope="module")
def ramps(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("ramps")
    arrays, paths = {}, {}
    for name in ("one", "two", "three"):
        frames = (np.full((32, 48, 3), 20 + 4 * i, np.uint8) for i in range(FRAMES))
        paths[name] = write_video(folder / f"{name}.mp4", frames, fps=10, crf=1)
        arrays[name] = np.arange(FRAMES, dtype=np.float32)[:, None]
    return Corpus.of_set(EmbeddingSet.from_arrays(arrays, paths=paths, fps=10))


def test_the_query_stands_left_in_a_border_and_hits_beside_it(ramps: Corpus) -> None:
    query = make_frame_query(ramps, "one", frame=25)
    picture = draw_sheet(query, find(ramps, query))
    width = HEIGHT * 48 // 32
    assert picture.shape[1] == 3 * (width + 4) + 4
    assert tuple(picture[5, 20]) == BORDER_COLOUR
    middles = [picture[4 + HEIGHT // 2, 4 + (width + 4) * n + width // 2, 0] for n in range(3)]
    np.testing.assert_allclose(middles, 20 + 4 * 25, atol=4)


def test_a_sheet_is_written_once(ramps: Corpus, tmp_path: Path) -> None:
    query = make_frame_query(ramps, "one", frame=5)
    hits = find(ramps, query)
    path = write_sheet(tmp_path / "sheet.png", query, hits)
    with pytest.raises(OutputExistsError, match=r"sheet.png exists"):
        write_sheet(path, query, hits)
    write_sheet(path, query, hits, overwrite=True)
    with pytest.raises(UserError, match=r"sheet.gif: expected a name ending in .png, .jpg or .jpeg"):
        write_sheet(tmp_path / "sheet.gif", query, hits)


def test_a_vector_has_no_picture_and_the_hits_stand_alone(ramps: Corpus) -> None:
    picture = draw_sheet(make_vector_query([3.0]), find(ramps, make_vector_query([3.0])))
    assert picture.shape[1] == 3 * (HEIGHT * 48 // 32 + 4) + 4


def test_a_video_that_is_gone_is_one_line(tmp_path: Path) -> None:
    hit = Hit("gone", 3, 0.3, 0.0, 1.0, path=tmp_path / "gone.mp4")
    with pytest.raises(DataError, match=r"gone.mp4 no longer exists"):
        draw_sheet(make_vector_query([1.0]), [hit])
    with pytest.raises(DataError, match=r"gone: cannot cut a clip, there is no video file at .*gone\.mp4"):
        write_clips(tmp_path / "clips", [hit])
    assert not (tmp_path / "clips").exists()


def test_clips_have_the_hit_in_the_middle(ramps: Corpus, tmp_path: Path) -> None:
    hits = find(ramps, make_frame_query(ramps, "one", frame=20))
    paths = write_clips(tmp_path / "clips", hits, seconds=1.0)
    assert [path.name for path in paths] == ["01-two-2.00s.mp4", "02-three-2.00s.mp4"]
    info = probe(paths[0])
    assert (info.num_frames, round(info.fps)) == (11, 10)
    levels = read_frames(paths[0], [0, 5, 10])[:, 16, 24, 0]
    np.testing.assert_allclose(levels, 20 + 4 * np.array([15, 20, 25]), atol=4)


def test_a_clip_at_the_start_is_shorter(ramps: Corpus, tmp_path: Path) -> None:
    hits = find(ramps, make_frame_query(ramps, "one", frame=0), k=1)
    assert probe(write_clips(tmp_path, hits, seconds=1.0)[0]).num_frames == 6


def test_existing_clips_stop_the_work_before_it_starts(ramps: Corpus, tmp_path: Path) -> None:
    hits = find(ramps, make_frame_query(ramps, "one", frame=20))
    (tmp_path / "02-three-2.00s.mp4").write_text("mine")
    with pytest.raises(OutputExistsError, match=r"02-three-2.00s.mp4 exists"):
        write_clips(tmp_path, hits)
    assert [path.name for path in tmp_path.iterdir()] == ["02-three-2.00s.mp4"]
    assert len(write_clips(tmp_path, hits, overwrite=True)) == 2


def test_impossible_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seconds must be above 0, got 0"):
        write_clips(tmp_path, [], seconds=0)


def write_wide(path: Path) -> Path:
    """A video of 64 x 48 pixels, each twice as wide as high."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(2)
        for level in range(5):
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 40 * level, np.uint8))
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def test_pixels_that_are_not_square_are_drawn_in_their_proportions(tmp_path: Path) -> None:
    path = write_wide(tmp_path / "wide.mp4")
    corpus = Corpus.of_set(
        EmbeddingSet.from_arrays({"a": np.eye(5), "b": np.eye(5)}, paths={"a": path, "b": path})
    )
    query = make_frame_query(corpus, "a", frame=2)
    sheet = draw_sheet(query, find(corpus, query, k=1))
    assert sheet.shape[1] == pytest.approx(2 * HEIGHT * 128 / 48, abs=20)
