"""Tile frames of any size on one picture, with captions and progress bars."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
Caption = str | tuple[tuple[str, Colour], ...]
"""A text, or several texts, each with its own colour."""

BACKGROUND: Colour = (17, 18, 22)
LETTERBOX: Colour = (9, 10, 12)
TEXT: Colour = (226, 228, 233)
QUIET_TEXT: Colour = (150, 155, 168)
BAR_TRACK: Colour = (46, 49, 58)
BAR_FILL: Colour = (92, 190, 255)
PLAIN_PUNCTUATION = str.maketrans("–—−‘’“”→", "---''\"\">")
MAX_ROW = 3  # up to this many tiles share one row


@dataclass(frozen=True)
class Layout:
    """Sizes in pixels of a tile: a picture, a bar below it, a caption below the bar."""

    height: int
    width: int
    bar: int
    caption: int

    @property
    def tile_height(self) -> int:
        """Height of picture, bar and caption together."""
        return self.height + self.bar + self.caption


def tile(
    frames: Sequence[NDArray[np.uint8]],
    *,
    columns: int | None = None,
    captions: Sequence[Caption] | None = None,
    notes: Sequence[str] | None = None,
    gap: int = 4,
    progress: Sequence[float] | None = None,
) -> NDArray[np.uint8]:
    """Tile all `frames` on one picture uint8 (H, W, 3), in reading order on a dark background.

    Each cell is as large as the largest frame; smaller frames are scaled to fit and keep their proportions.
    The size of the result depends only on the sizes of the frames, not on the texts.

    Args:
        frames: RGB images uint8 (H, W, 3).
        columns: Tiles per row; None puts up to three in one row and more in a square.
        captions: A text under each frame; a text that is too long ends in "…".
        notes: A short text at the right end of each caption, such as a time; it is never shortened.
        gap: Pixels between tiles and around them.
        progress: A share from 0 to 1 per frame, drawn as a thin bar under it.
    """
    _check(frames, captions=captions, notes=notes, progress=progress, columns=columns, gap=gap)
    count = len(frames)
    per_row = columns or (count if count <= MAX_ROW else math.ceil(math.sqrt(count)))
    has_text = captions is not None or notes is not None
    layout = _choose_layout(frames, with_bar=progress is not None, with_caption=has_text)
    rows = math.ceil(count / per_row)
    step_y, step_x = layout.tile_height + gap, layout.width + gap
    canvas = np.empty((rows * step_y + gap, per_row * step_x + gap, 3), dtype=np.uint8)
    canvas[:] = BACKGROUND
    for number, frame in enumerate(frames):
        top, left = gap + number // per_row * step_y, gap + number % per_row * step_x
        area = canvas[top : top + layout.tile_height, left : left + layout.width]
        area[: layout.height] = fit_cell(frame, (layout.height, layout.width))
        if progress is not None:
            _draw_bar(area[layout.height : layout.height + layout.bar], progress[number])
        if has_text:
            caption = "" if captions is None else captions[number]
            _draw_text(area[layout.height + layout.bar :], caption, "" if notes is None else notes[number])
    return canvas


def fit_cell(frame: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Scale `frame` (h, w, 3) to fit into `size` (H, W), centred on black."""
    height, width = size
    if frame.shape[:2] == size:
        return frame
    scale = min(height / frame.shape[0], width / frame.shape[1])
    inner_height = max(1, min(height, round(frame.shape[0] * scale)))
    inner_width = max(1, min(width, round(frame.shape[1] * scale)))
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    cell = np.empty((height, width, 3), dtype=np.uint8)
    cell[:] = LETTERBOX
    cell[top : top + inner_height, left : left + inner_width] = _scale(frame, inner_height, inner_width)
    return cell


def _check(
    frames: Sequence[NDArray[np.uint8]],
    *,
    captions: Sequence[Caption] | None,
    notes: Sequence[str] | None,
    progress: Sequence[float] | None,
    columns: int | None,
    gap: int,
) -> None:
    if len(frames) == 0:
        raise ValueError("frames must hold at least one image, got none")
    for number, frame in enumerate(frames):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or 0 in frame.shape:
            raise ValueError(f"frame {number} must be uint8 (H, W, 3), got {frame.dtype} {frame.shape}")
    for name, values in (("captions", captions), ("notes", notes), ("progress", progress)):
        if values is not None and len(values) != len(frames):
            raise ValueError(f"{name} must have one entry per frame, got {len(values)} for {len(frames)}")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns!r}")
    if gap < 0:
        raise ValueError(f"gap must be at least 0, got {gap!r}")


def _choose_layout(frames: Sequence[NDArray[np.uint8]], *, with_bar: bool, with_caption: bool) -> Layout:
    """Choose sizes that suit the largest frame."""
    height = max(frame.shape[0] for frame in frames)
    width = max(frame.shape[1] for frame in frames)
    short = min(height, width)
    bar = max(2, round(short / 72)) if with_bar else 0
    caption = min(44, max(18, round(short / 11))) if with_caption else 0
    return Layout(height=height, width=width, bar=bar, caption=caption)


def _scale(frame: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    from PIL import Image

    if frame.shape[:2] == (height, width):
        return frame
    image = Image.fromarray(np.ascontiguousarray(frame))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))


def _draw_bar(area: NDArray[np.uint8], share: float) -> None:
    """Fill `share` of the bar `area` (h, W, 3) from the left."""
    done = round(min(1.0, max(0.0, share)) * area.shape[1])
    area[:, :done] = BAR_FILL
    area[:, done:] = BAR_TRACK


def _draw_text(area: NDArray[np.uint8], caption: Caption, note: str) -> None:
    """Fill the strip `area` (h, W, 3) with `caption` at the left and `note` at the right."""
    height, width = area.shape[:2]
    note_width = min(width, _measure_note(note, height))
    area[:, : width - note_width] = _draw_caption(caption, width - note_width, height)
    area[:, width - note_width :] = _draw_note(note, note_width, height)


@lru_cache(maxsize=256)  # the captions of a video are the same in each of its frames
def _draw_caption(caption: Caption, width: int, height: int) -> NDArray[np.uint8]:
    """Draw a strip (height, width, 3) with `caption` at the left, shortened to fit."""
    image, draw, font, margin = _new_strip(width, height)
    left, end = float(margin), width - margin
    for text, colour in ((caption, TEXT),) if isinstance(caption, str) else caption:
        line = _shorten(_replace_missing_letters(text, font), font, end - left)
        draw.text((left, height / 2), line, fill=colour, font=font, anchor="lm")
        left += font.getlength(line + " ")
    return np.asarray(image)


def _draw_note(note: str, width: int, height: int) -> NDArray[np.uint8]:
    """Draw a strip (height, width, 3) with `note` at the right."""
    image, draw, font, margin = _new_strip(width, height)
    text = _replace_missing_letters(note, font)
    draw.text((width - margin, height / 2), text, fill=QUIET_TEXT, font=font, anchor="rm")
    return np.asarray(image)


def _measure_note(note: str, height: int) -> int:
    """Measure `note` in pixels; digits are equally wide, so a running time never moves the caption."""
    return math.ceil(_load_font(height).getlength(note)) + _margin(height) if note else 0


def _new_strip(width: int, height: int) -> tuple[Any, Any, Any, int]:
    """Create an empty strip; returns image, pen, font and margin."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), BACKGROUND)
    return image, ImageDraw.Draw(image), _load_font(height), _margin(height)


def _margin(height: int) -> int:
    return round(height * 0.28)


def _replace_missing_letters(text: str, font: Any) -> str:
    """Put `text` on one line and replace letters the built-in font lacks: "Übung" → "Ubung"."""
    unknown = bytes(font.getmask("\U0010ffff"))
    letters = []
    for letter in " ".join(text.split()).translate(PLAIN_PUNCTUATION):
        if not letter.isascii() and bytes(font.getmask(letter)) == unknown:
            letter = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
        letters.append(letter)
    return "".join(letters)


def _shorten(text: str, font: Any, width: float) -> str:
    """Cut `text` and add an ellipsis if it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    for length in range(len(text) - 1, 0, -1):
        candidate = text[:length].rstrip() + "…"
        if font.getlength(candidate) <= width:
            return candidate
    return ""


@lru_cache(maxsize=8)
def _load_font(height: int) -> Any:
    """Load the built-in font in a size that suits a strip of `height` pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(max(10, round(height * 0.56)))
