import numpy as np
import pytest

from cycleback.applications.layouts import LAYOUTS, Shown, arrange, mixed, tinted, tints


def shown(value: int, size: tuple[int, int] = (80, 100), caption: str = "take") -> Shown:
    return Shown(np.full((*size, 3), value, np.uint8), caption, 1.25, 0.5)


def test_an_onion_skin_is_the_mean() -> None:
    picture = mixed([shown(10).image, shown(20).image, shown(60).image])
    assert (picture == 30).all()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_tints_sum_to_white_so_that_agreement_is_grey(count: int) -> None:
    assert tints(count).sum(axis=0) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.abs(tinted([shown(100).image] * count).astype(int) - 100).max() <= 1


def test_two_tints_are_orange_and_blue() -> None:
    orange, blue = tints(2)
    assert orange[0] > orange[2] and blue[2] > blue[0]
    difference = tinted([shown(200).image, shown(0).image])[0, 0]
    assert difference[0] > 150 > difference[2]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_keeps_its_size_from_frame_to_frame(layout: str) -> None:
    first = arrange([shown(10), shown(90, (100, 60))], layout=layout)
    later = arrange([shown(50, caption="a much longer name " * 4), shown(9, (100, 60))], layout=layout)
    assert first.shape == later.shape


def test_a_row_is_one_row_and_a_grid_is_not() -> None:
    row = arrange([shown(10)] * 5, layout="row", words=False)
    grid = arrange([shown(10)] * 5, layout="grid", words=False)
    assert row.shape[1] > 500 > grid.shape[1] > 300
    assert row.shape[0] < 100 < grid.shape[0]


@pytest.mark.parametrize("layout", ["overlay", "tinted", "switch"])
def test_without_words_only_the_picture_is_left(layout: str) -> None:
    assert arrange([shown(10), shown(30)], layout=layout, words=False).shape == (80, 100, 3)


def test_names_too_small_to_read_are_left_out() -> None:
    tiny = arrange([shown(10, (30, 40))] * 2, layout="grid")
    assert tiny.shape[0] < 30 + 18


def test_a_minute_reads_as_one() -> None:
    a, b = (arrange([Shown(shown(1).image, "", second, 0)], layout="switch") for second in (59.99, 61.5))
    assert (a != b).any()
