"""Moments as users write them, and the frames they mean."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError
from cycleback.search import Corpus, Moment, find_video, frame_query, parse_moment, vector_query


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("a.mp4@2.5", Moment("a.mp4", seconds=2.5)),
        ("a.mp4@2s", Moment("a.mp4", seconds=2.0)),
        ("a.mp4@.5", Moment("a.mp4", seconds=0.5)),
        ("a.mp4@-1", Moment("a.mp4", seconds=-1.0)),
        ("dir/a#75", Moment("dir/a", frame=75)),
        ("me@home.mp4#0", Moment("me@home.mp4", frame=0)),
        ("take#2.mp4", Moment("take#2.mp4")),
        ("picture.png", Moment("picture.png")),
    ],
)
def test_moments_are_read(text: str, moment: Moment) -> None:
    assert parse_moment(text) == moment


def test_seconds_mean_the_nearest_frame(corpus: Corpus, videos: EmbeddingSet) -> None:
    times = videos.times("a3")
    query = frame_query(corpus, "a3", seconds=times[6] + 0.3 * (times[7] - times[6]))
    assert (query.frame, query.seconds) == (6, times[6])
    assert query.vector.tolist() == videos["a3"][6].tolist()


def test_a_frame_past_the_end_is_an_error(corpus: Corpus, videos: EmbeddingSet) -> None:
    count = len(videos["a3"])
    message = rf"a3 has no frame {count}: it has {count} frames \(0 to {count - 1}\)"
    with pytest.raises(DataError, match=message):
        frame_query(corpus, "a3", frame=count)
    with pytest.raises(DataError, match="a3 has no frame -1"):
        frame_query(corpus, "a3", frame=-1)


def test_a_time_past_the_end_is_an_error(corpus: Corpus, videos: EmbeddingSet) -> None:
    with pytest.raises(DataError, match=rf"a3 has no frame at 99 s: .* to {videos.times('a3')[-1]:.2f} s"):
        frame_query(corpus, "a3", seconds=99)


def test_an_unknown_video_is_an_error_with_a_guess(corpus: Corpus) -> None:
    with pytest.raises(EmbeddingError, match=r"no video 'a33'. Did you mean 'a3'\?"):
        frame_query(corpus, "a33", frame=0)


def test_videos_are_found_by_name_by_tail_and_by_file(tmp_path: Path) -> None:
    file = tmp_path / "x.mp4"
    file.touch()
    arrays = {"day/one": np.ones((2, 1)), "two": np.ones((2, 1))}
    corpus = Corpus.of_set(EmbeddingSet.from_arrays(arrays, paths={"two": file}))
    assert [find_video(corpus, text) for text in ("two", "one.mp4", str(file))] == ["two", "day/one", "two"]
    assert find_video(corpus, "three") is None
    (tmp_path / "two.mp4").touch()  # another file, though its name is known
    assert find_video(corpus, str(tmp_path / "two.mp4")) is None


def test_a_vector_must_be_one_row_of_finite_numbers() -> None:
    with pytest.raises(ValueError, match=r"got float32 \(2, 2\)"):
        vector_query(np.ones((2, 2)))
    with pytest.raises(ValueError, match="finite"):
        vector_query([1.0, np.nan])
