import numpy as np
import pytest

from cycleback.video import fit_cell, tile
from cycleback.video.canvas import BACKGROUND, BAR_FILL, BAR_TRACK, LETTERBOX

RED, GREEN, BLUE = (220, 30, 30), (30, 200, 40), (40, 60, 230)


def plain(colour, height=60, width=80):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def test_frames_stand_in_reading_order_with_gaps():
    canvas = tile([plain(RED), plain(GREEN), plain(BLUE)], columns=2, gap=6)
    assert canvas.shape == (2 * 60 + 3 * 6, 2 * 80 + 3 * 6, 3)
    assert (canvas[6:66, 6:86] == RED).all()
    assert (canvas[6:66, 92:172] == GREEN).all()
    assert (canvas[72:132, 6:86] == BLUE).all()
    assert (canvas[72:132, 92:172] == BACKGROUND).all()
    assert (canvas[:6] == BACKGROUND).all() and (canvas[:, 86:92] == BACKGROUND).all()


@pytest.mark.parametrize(
    "count, columns, rows", [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 2, 2), (5, 3, 2), (9, 3, 3)]
)
def test_columns_chosen_by_default(count, columns, rows):
    assert tile([plain(RED)] * count, gap=0).shape == (rows * 60, columns * 80, 3)


def test_smaller_frame_is_centred_with_its_proportions():
    cell = fit_cell(plain(RED, 20, 20), (60, 100))
    assert (cell[:, 20:80] == RED).all()
    assert (cell[:, :20] == LETTERBOX).all() and (cell[:, 80:] == LETTERBOX).all()


def test_wide_and_tall_frames_share_one_cell_size():
    canvas = tile([plain(RED, 40, 80), plain(GREEN, 80, 40)], gap=0)
    assert canvas.shape == (80, 160, 3)
    assert (canvas[20:60, :80] == RED).all() and (canvas[:20, :80] == LETTERBOX).all()
    assert (canvas[:, 100:140] == GREEN).all() and (canvas[:, 80:100] == LETTERBOX).all()


@pytest.mark.parametrize("share, filled", [(0.0, 0), (0.25, 20), (1.0, 80), (3.0, 80), (-1.0, 0)])
def test_progress_bar_shows_the_share(share, filled):
    canvas = tile([plain(RED)], progress=[share], gap=0)
    bar = canvas[60:]
    assert 2 <= len(bar) <= 6
    assert (bar[:, :filled] == BAR_FILL).all() and (bar[:, filled:] == BAR_TRACK).all()


def test_caption_is_written_below_and_leaves_the_picture_alone():
    canvas = tile([plain(RED), plain(GREEN)], captions=["take 1", ""], gap=0)
    assert (canvas[:60, :80] == RED).all()
    assert canvas[60:, :80].max() > 180  # bright letters
    assert (canvas[60:, 80:] == BACKGROUND).all()


def test_size_does_not_depend_on_the_texts():
    short = tile([plain(RED)], captions=["a"], progress=[0.1])
    long = tile([plain(RED)], captions=["a very long text " * 20], progress=[0.9])
    assert short.shape == long.shape
    assert (
        long[:, -8:] == tile([plain(RED)], captions=[""], progress=[0.9])[:, -8:]
    ).all()  # cut before the edge


@pytest.mark.parametrize(
    "text, same", [("Übung – fünf", "Ubung - funf"), ("two\nlines", "two lines"), ("日本", "??")]
)
def test_letters_the_font_lacks_become_plain_ones(text, same):
    image = plain(RED, 200, 300)
    np.testing.assert_array_equal(tile([image], captions=[text]), tile([image], captions=[same]))


def test_inputs_stay_as_they_are():
    frame = plain(RED)
    tile([frame], captions=["x"], progress=[0.5])[:] = 0
    tile([frame], captions=["x"])
    assert (frame == RED).all()


def test_nothing_to_show():
    with pytest.raises(ValueError, match=r"frames must hold at least one image, got none"):
        tile([])


@pytest.mark.parametrize("option, value", [("captions", ["a"]), ("progress", [0.1, 0.2, 0.3])])
def test_one_entry_a_frame(option, value):
    with pytest.raises(ValueError, match=rf"{option} must have one entry per frame, got {len(value)} for 2$"):
        tile([plain(RED)] * 2, **{option: value})


@pytest.mark.parametrize("option, value", [("columns", 0), ("gap", -1)])
def test_impossible_numbers(option, value):
    with pytest.raises(ValueError, match=rf"{option} must be at least [01], got {value}"):
        tile([plain(RED)], **{option: value})


def test_frames_must_be_rgb_bytes():
    with pytest.raises(ValueError, match=r"frame 1 must be uint8 \(H, W, 3\), got float64 \(4, 4, 3\)"):
        tile([plain(RED), np.zeros((4, 4, 3))])


def test_a_note_stands_at_the_right_and_is_never_cut():
    canvas = tile([plain(RED, 100, 240)], captions=["a very long name " * 9], notes=["1.25 s"], gap=0)
    alone = tile([plain(RED, 100, 240)], notes=["1.25 s"], gap=0)
    right = slice(240 - 24, None)
    assert (canvas[100:, right] == alone[100:, right]).all()
    assert canvas[100:, right].max() > 100
    assert alone[100:, :120].max() == max(BACKGROUND)


def test_a_caption_may_have_colours():
    canvas = tile(
        [plain(RED, 100, 240)], captions=[(("left", (255, 128, 0)), ("right", (0, 128, 255)))], gap=0
    )
    strip = canvas[100:].astype(int)
    orange, blue = (strip[..., 0] - strip[..., 2] > 90), (strip[..., 2] - strip[..., 0] > 90)
    assert orange.any() and blue.any()
    assert np.flatnonzero(orange.any(0)).max() < np.flatnonzero(blue.any(0)).min()
