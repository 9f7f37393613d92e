"""Label files that the page uploads and downloads: one file, or a .zip of one file per video."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace

from cycleback.annotations import Annotation
from cycleback.annotations.formats import find_format, parse_annotations
from cycleback.errors import DataError

MAX_BYTES = 64 << 20


def write_files(annotations: Sequence[Annotation], format: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a label file; a .zip where a format has one file per video."""
    chosen = find_format(format)
    if not chosen.one_video:
        return chosen.suffixes[0], chosen.write(annotations).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in annotations:
            archive.writestr(f"{each.video}{chosen.suffixes[0]}", chosen.write([each]))
    return ".zip", buffer.getvalue()


def read_files(name: str, content: bytes) -> list[Annotation]:
    """Read the labels by hand in a label file, or in all files of a .zip."""
    if len(content) > MAX_BYTES:
        raise DataError(f"{name} has {len(content) >> 20} MB; label files have at most {MAX_BYTES >> 20}")
    files = {name: content}
    if zipfile.is_zipfile(io.BytesIO(content)):
        files = _unpack(name, content)
    annotations: list[Annotation] = []
    for file, data in files.items():
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{file} is no label file: it is not text") from error
        annotations += parse_annotations(text, file)
    return [_keep_hand_made(each) for each in annotations]


def _unpack(name: str, content: bytes) -> dict[str, bytes]:
    """Return the files of a .zip by name."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if sum(each.file_size for each in members) > MAX_BYTES:
                raise DataError(f"{name} holds more than {MAX_BYTES >> 20} MB of label files")
            return {each.filename: archive.read(each) for each in members}
    except DataError:
        raise
    except Exception as error:  # zipfile raises half a dozen types for a damaged archive
        raise DataError(f"{name} is a damaged .zip of label files ({error}): pack it again") from error


def _keep_hand_made(annotation: Annotation) -> Annotation:
    """Leave out labels that a program found: they carry a confidence."""
    return replace(
        annotation,
        events=tuple(each for each in annotation.events if each.confidence is None),
        segments=tuple(each for each in annotation.segments if each.confidence is None),
    )
