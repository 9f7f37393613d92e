"""An image as a query: a video that stands still."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cycleback.errors import DataError
from cycleback.models import ConvEmbedder, Encoder, PooledEmbedder, SmallBase, VectorBase
from cycleback.search.image import image_query


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
    query = image_query(encoder, picture)
    np.testing.assert_allclose(query.vector, expected, rtol=1e-4, atol=1e-6)
    assert (query.video, query.path) == (None, picture)


def test_an_encoder_that_looks_at_differences_takes_no_image(picture: Path) -> None:
    with pytest.raises(DataError, match=r"picture.png with this encoder: .* use a trained run"):
        image_query(small_encoder("pooled"), picture)


def test_an_encoder_of_vectors_takes_no_image(picture: Path) -> None:
    base = VectorBase(in_features=6)
    encoder = Encoder(base, PooledEmbedder(base.channels))
    with pytest.raises(DataError, match=r"made for sequences \(.npz\), not for images"):
        image_query(encoder, picture)


def test_an_unreadable_image_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    with pytest.raises(DataError, match=r"cannot read the image .*broken.png"):
        image_query(small_encoder(), tmp_path / "broken.png")
