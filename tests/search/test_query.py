"""Moments as users write them, the frames they mean, and images as queries."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError
from cycleback.models import ConvEmbedder, Encoder, SmallBase, VectorBase
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.search import Corpus, make_frame_query, make_image_query, make_vector_query
from cycleback.search.query import find_video, parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("a.mp4@2.5", ("a.mp4", None, 2.5)),
        ("a.mp4@2s", ("a.mp4", None, 2.0)),
        ("a.mp4@.5", ("a.mp4", None, 0.5)),
        ("a.mp4@-1", ("a.mp4", None, -1.0)),
        ("dir/a#75", ("dir/a", 75, None)),
        ("me@home.mp4#0", ("me@home.mp4", 0, None)),
        ("take#2.mp4", ("take#2.mp4", None, None)),
        ("picture.png", ("picture.png", None, None)),
    ],
)
def test_moments_are_read(text: str, moment: tuple[str, int | None, float | None]) -> None:
    assert parse_moment(text) == moment


def test_seconds_mean_the_nearest_frame(corpus: Corpus, videos: EmbeddingSet) -> None:
    times = videos.times("a3")
    query = make_frame_query(corpus, "a3", seconds=times[6] + 0.3 * (times[7] - times[6]))
    assert (query.frame, query.seconds) == (6, times[6])
    assert query.vector.tolist() == videos["a3"][6].tolist()


def test_a_frame_past_the_end_is_an_error(corpus: Corpus, videos: EmbeddingSet) -> None:
    count = len(videos["a3"])
    message = rf"a3 has no frame {count}: it has {count} frames \(0 to {count - 1}\)"
    with pytest.raises(DataError, match=message):
        make_frame_query(corpus, "a3", frame=count)
    with pytest.raises(DataError, match="a3 has no frame -1"):
        make_frame_query(corpus, "a3", frame=-1)


def test_a_time_past_the_end_is_an_error(corpus: Corpus, videos: EmbeddingSet) -> None:
    with pytest.raises(DataError, match=rf"a3 has no frame at 99 s: .* to {videos.times('a3')[-1]:.2f} s"):
        make_frame_query(corpus, "a3", seconds=99)


def test_an_unknown_video_is_an_error_with_a_guess(corpus: Corpus) -> None:
    with pytest.raises(EmbeddingError, match=r"no video 'a33'. Did you mean 'a3'\?"):
        make_frame_query(corpus, "a33", frame=0)


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
        make_vector_query(np.ones((2, 2)))
    with pytest.raises(ValueError, match="finite"):
        make_vector_query([1.0, np.nan])


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def small_encoder(embedder: str = "conv") -> Encoder:
    torch.manual_seed(0)
    base = SmallBase(width=4)
    if embedder == "pooled":
        return Encoder(base, PooledEmbedder(base.channels, standardize=True), frame_size=(32, 32)).eval()
    conv = ConvEmbedder(
        base.channels, conv_channels=(6,), fc_channels=(6,), embedding_size=5, context_stride=3
    )
    return Encoder(base, conv, frame_size=(32, 32)).eval()


def test_an_image_is_a_video_that_stands_still(picture: Path) -> None:
    encoder = small_encoder()
    pixels = np.asarray(Image.open(picture).resize((32, 32), Image.Resampling.BILINEAR))
    still = torch.from_numpy(pixels.copy()).movedim(-1, 0).expand(1, 1, 2, 3, 32, 32)
    with torch.no_grad():
        expected = encoder(still)[0, 0].numpy()
    query = make_image_query(encoder, picture)
    np.testing.assert_allclose(query.vector, expected, rtol=1e-4, atol=1e-6)
    assert (query.video, query.path) == (None, picture)


def test_an_encoder_that_looks_at_differences_takes_no_image(picture: Path) -> None:
    with pytest.raises(DataError, match=r"picture.png with this encoder: .* use a run trained with --recipe"):
        make_image_query(small_encoder("pooled"), picture)


def test_an_encoder_of_vectors_takes_no_image(picture: Path) -> None:
    base = VectorBase(in_features=6)
    encoder = Encoder(base, PooledEmbedder(base.channels))
    with pytest.raises(DataError, match=r"takes sequences \(.npz\), not images"):
        make_image_query(encoder, picture)


def test_an_unreadable_image_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    with pytest.raises(DataError, match=r"cannot read the image .*broken.png"):
        make_image_query(small_encoder(), tmp_path / "broken.png")
