from dataclasses import asdict

import pytest
import torch

from cycleback.models import Preprocessing, SmallBase
from cycleback.models.base import Normalize


def test_pixels_are_scaled_then_moved_then_divided() -> None:
    preprocess = Normalize(Preprocessing(scale=10.0, mean=(1.0, 2.0, 3.0), std=(1.0, 2.0, 4.0)))
    images = torch.tensor([0.1, 0.2, 1.0]).reshape(1, 3, 1, 1)
    assert preprocess(images).flatten().tolist() == pytest.approx([0.0, 0.0, 1.75])


def test_the_scale_is_not_part_of_the_weights() -> None:
    assert not Normalize(Preprocessing(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))).state_dict()


def test_it_survives_a_trip_through_json() -> None:
    preprocessing = Preprocessing(255.0, (0.5, 0.25, 0.125), (1.0, 2.0, 3.0))
    as_read = {**asdict(preprocessing), "mean": [0.5, 0.25, 0.125], "std": [1, 2, 3], "more": None}
    assert Preprocessing.from_dict(as_read) == preprocessing


def test_bytes_become_fractions_and_floats_pass() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(SmallBase(width=1).to_float(images), torch.tensor([0.0, 0.2, 1.0]))
    assert SmallBase(width=1).to_float(torch.tensor([0.5])).item() == 0.5


def test_images_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match=r"images must be uint8, or float in \[0, 1\], got torch.int64"):
        SmallBase(width=1).to_float(torch.tensor([3]))
