import pytest
import torch

from cycleback.models import Preprocessing
from cycleback.models.preprocessing import Preprocess


def test_pixels_are_scaled_then_moved_then_divided() -> None:
    preprocess = Preprocess(Preprocessing(scale=10.0, mean=(1.0, 2.0, 3.0), std=(1.0, 2.0, 4.0)))
    images = torch.tensor([0.1, 0.2, 1.0]).reshape(1, 3, 1, 1)
    assert preprocess(images).flatten().tolist() == pytest.approx([0.0, 0.0, 1.75])


def test_the_scale_is_not_part_of_the_weights() -> None:
    assert not Preprocess(Preprocessing(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))).state_dict()


def test_it_survives_a_trip_through_json() -> None:
    preprocessing = Preprocessing(255.0, (0.5, 0.25, 0.125), (1.0, 2.0, 3.0))
    as_read = {**preprocessing.to_dict(), "mean": [0.5, 0.25, 0.125], "std": [1, 2, 3], "more": None}
    assert Preprocessing.from_dict(as_read) == preprocessing
