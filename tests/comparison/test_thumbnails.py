import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.comparison.thumbnails import Thumbnails
from cycleback.data import FrameCache, read_dataset


@pytest.fixture
def thumbs(tmp_path: Path) -> Thumbnails:
    """One video of two pictures, twice as wide as high; the second is white."""
    folder = tmp_path / "data" / "clip"
    folder.mkdir(parents=True)
    for number, grey in enumerate((0, 255)):
        Image.fromarray(np.full((20, 40, 3), grey, np.uint8)).save(folder / f"{number}.png")
    return Thumbnails(read_dataset(tmp_path / "data"), FrameCache(tmp_path / "cache", size=(24, 24)))


def test_a_thumbnail_has_the_proportions_of_the_video(thumbs: Thumbnails) -> None:
    picture = thumbs.picture("clip", 1, height=30)
    assert picture.shape == (30, 60, 3)
    assert picture.min() == 255


def test_a_data_url_holds_the_frame(thumbs: Thumbnails) -> None:
    kind, content = thumbs.data_url("clip", 0).split(",")
    assert kind == "data:image/jpeg;base64"
    assert np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).max() == 0
