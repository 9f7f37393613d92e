"""All formats by name: which one a file has, and how to read and write it."""

from collections.abc import Sequence
from pathlib import Path

from cycleback.annotations import (
    activitynet,
    boris,
    boris_events,
    elan,
    frame_lines,
    json_file,
    label_studio,
    labelu,
    text_formats,
    via,
)
from cycleback.annotations.annotation import Annotation
from cycleback.annotations.format import Format
from cycleback.errors import DataError, OutputExistsError, one_of
from cycleback.files import check_output, write_text
from cycleback.tables import read_text

MODULES = (
    text_formats,
    json_file,
    elan,
    label_studio,
    via,
    boris,
    boris_events,
    labelu,
    activitynet,
    frame_lines,
)  # a file goes to the first whose marks it bears
FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in MODULES}


def read_annotations(path: Path | str, *, format: str | None = None) -> list[Annotation]:
    """The annotations of a file, or of all files of a folder that holds one file a video.

    Args:
        path: the file or folder.
        format: a name in `FORMATS`; by default what the suffix and the content say.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        known = {suffix for each in FORMATS.values() if each.one_video for suffix in each.suffixes}
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in known)
        if not files:
            raise DataError(f"{path}: no label files in this folder, expected {one_of(sorted(known))}")
    found = [each for file in files for each in _read(file, format)]
    if not any(each.labels for each in found):
        raise DataError(f"{path}: no events and no segments in it")
    return found


def _read(path: Path, format: str | None) -> list[Annotation]:
    text = read_text(path)
    chosen = format_named(format) if format else detect_format(path, text)
    return chosen.read(text, str(path))


def format_named(name: str) -> Format:
    """The format of this name."""
    if name not in FORMATS:
        raise DataError(f"no label format {name!r}: expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def detect_format(path: Path, text: str) -> Format:
    """The format that the suffix of a file and the words in it speak for."""
    fitting = [each for each in FORMATS.values() if path.suffix.lower() in each.suffixes]
    for each in fitting:
        if any(mark in text for mark in each.marks):
            return each
    plain = [each for each in fitting if not each.marks or len(fitting) == 1]
    if not plain:
        names = ", ".join(each.name for each in fitting or FORMATS.values())
        raise DataError(f"{path}: cannot tell its label format. Name it with --from: {names}.")
    return plain[0]


def write_annotations(
    path: Path | str, annotations: Sequence[Annotation], *, format: str = "csv", overwrite: bool = False
) -> Path:
    """Write annotations: one file, or a folder with one file a video where the format is of that kind.

    A path that ends like the format's files is a file, also where the format takes one video.
    """
    path, chosen = Path(path), format_named(format)
    if not chosen.one_video or (len(annotations) == 1 and path.suffix in chosen.suffixes):
        return write_text(path, chosen.write(annotations), overwrite=overwrite)
    if path.is_file():
        raise OutputExistsError(f"{path} is a file, but {format} needs a folder, with one file a video")
    texts = {path / f"{each.video}{chosen.suffixes[0]}": chosen.write([each]) for each in annotations}
    for file in texts:
        check_output(file, overwrite=overwrite)
    for file, text in texts.items():
        write_text(file, text, overwrite=overwrite)
    return path
