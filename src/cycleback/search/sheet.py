"""A contact sheet, as the paper's retrieval figure: the query at the left, what was found beside it."""

import io
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from cycleback.data.records import SEQUENCE_SUFFIX
from cycleback.data.sources import image_paths, read_image
from cycleback.errors import DataError
from cycleback.files import check_output, write_bytes
from cycleback.search.hits import Hit
from cycleback.search.query import Query
from cycleback.video import fit_cell, read_frames, tile

Picture = NDArray[np.uint8]
SHEET_SUFFIXES = (".png", ".jpg", ".jpeg")
HEIGHT = 240
BORDER = 6
BORDER_COLOUR = (92, 190, 255)
LONGEST_NAME = 14
LONGEST_ROW = 9  # the query and eight hits


def write_sheet(path: Path | str, query: Query, hits: Sequence[Hit], *, overwrite: bool = False) -> Path:
    """Write the sheet as an image file, .png or .jpg."""
    from PIL import Image

    path = check_output(path, overwrite=overwrite, suffixes=SHEET_SUFFIXES)
    stream = io.BytesIO()
    Image.fromarray(contact_sheet(query, hits)).save(
        stream, "PNG" if path.suffix.lower() == ".png" else "JPEG"
    )
    return write_bytes(path, stream.getvalue(), overwrite=overwrite)


def contact_sheet(query: Query, hits: Sequence[Hit]) -> Picture:
    """One picture uint8 (H, W, 3): the query in a border, then each hit with video, time and distance."""
    asked = "query" if query.seconds is None else f"query, {query.seconds:.2f} s"
    pictures = [] if query.path is None else [_bordered(_scaled(picture_of(query.path, query.frame)))]
    captions = [] if query.path is None else [asked]
    for hit in hits:
        if hit.path is None:
            raise DataError(f"{hit.video}: its video file is not known, so it cannot be shown")
        pictures.append(_scaled(picture_of(hit.path, hit.frame)))
        captions.append(f"{_short(hit.video)}, {hit.seconds:.2f} s, d {hit.distance:.2f}")
    return tile(pictures, captions=captions, columns=min(len(pictures), LONGEST_ROW))


def picture_of(path: Path, frame: int | None) -> Picture:
    """A frame (H, W, 3) of a video or of a folder of images, or an image file where `frame` is None."""
    if not path.exists():
        raise DataError(f"{path} is no longer there. Add the videos again where they are now.")
    if path.suffix == SEQUENCE_SUFFIX:
        raise DataError(f"{path} is a sequence of features: it has no pictures")
    if frame is None:
        return read_image(path)
    return read_image(image_paths(path)[frame]) if path.is_dir() else read_frames(path, [frame])[0]


def _scaled(picture: Picture) -> Picture:
    width = max(1, round(picture.shape[1] * HEIGHT / picture.shape[0]))
    return fit_cell(picture, (HEIGHT, width))


def _bordered(picture: Picture) -> Picture:
    framed = picture.copy()
    framed[:BORDER] = framed[-BORDER:] = BORDER_COLOUR
    framed[:, :BORDER] = framed[:, -BORDER:] = BORDER_COLOUR
    return framed


def _short(name: str) -> str:
    """The last part of a video's name, cut so that time and distance stay readable."""
    last = PurePosixPath(name).stem
    return last if len(last) <= LONGEST_NAME else last[: LONGEST_NAME - 1] + "…"
