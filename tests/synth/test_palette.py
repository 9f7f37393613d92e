from cycleback.synth.palette import contrast, darker, lighter, mix, with_alpha


def test_mixing_goes_from_the_first_colour_to_the_second() -> None:
    assert mix((0, 100, 200), (100, 100, 0), 0.0) == (0, 100, 200)
    assert mix((0, 100, 200), (100, 100, 0), 0.5) == (50, 100, 100)
    assert mix((0, 100, 200), (100, 100, 0), 1.0) == (100, 100, 0)


def test_darker_and_lighter_end_at_black_and_white() -> None:
    assert darker((10, 20, 30), 1.0) == (0, 0, 0)
    assert lighter((10, 20, 30), 1.0) == (255, 255, 255)


def test_opacity_is_kept_within_a_byte() -> None:
    assert with_alpha((1, 2, 3), 0.5) == (1, 2, 3, 128)
    assert with_alpha((1, 2, 3), 1.7)[3] == 255 and with_alpha((1, 2, 3), -1.0)[3] == 0


def test_contrast_is_the_distance_of_two_colours() -> None:
    assert contrast((0, 0, 0), (3, 4, 0)) == 5.0
