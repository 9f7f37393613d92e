import colorsys

import pytest
import torch

from cycleback.data.colour import hsv_to_rgb, rgb_to_hsv

GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 6, dtype=torch.float64)] * 3).T.reshape(3, 6, 36)


def test_hue_saturation_and_value_equal_the_standard_library() -> None:
    ours = torch.stack(rgb_to_hsv(GRID)).flatten(1).T
    for pixel, hsv in zip(GRID.flatten(1).T, ours, strict=True):
        assert hsv.tolist() == pytest.approx(colorsys.rgb_to_hsv(*pixel.tolist()), abs=1e-12)


def test_there_and_back_is_the_same_colour() -> None:
    torch.testing.assert_close(hsv_to_rgb(*rgb_to_hsv(GRID)), GRID)
