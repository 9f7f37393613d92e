"""TFRecord files without TensorFlow.

A file is records one behind the other, numbers little-endian: length (8 bytes), masked CRC-32C of the length
(4 bytes), data, masked CRC-32C of the data (4 bytes).
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cycleback.errors import DataError
from cycleback.prepare.crc32c import masked_crc32c

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")


def iter_records(path: Path, *, check_data: bool = True) -> Iterator[bytes]:
    """The data of each record; one record is in memory at a time.

    Args:
        path: The file.
        check_data: Whether the checksum of the data is checked too (about 0.1 s for 10 MB); that of the
            length, without which nothing can be read, always is.

    Raises:
        DataError: the file cannot be opened, is cut off, or a checksum does not fit.
    """
    with _open(path) as stream:
        for length in _lengths(path, stream):
            data, footer = stream.read(length), stream.read(FOOTER.size)
            if check_data and FOOTER.unpack(footer)[0] != masked_crc32c(data):
                start = stream.tell() - length - FOOTER.size
                raise DataError(
                    f"{path}: the checksum of the {length} bytes from byte {start} does not fit: "
                    "the file is damaged. Download it again."
                )
            yield data


def count_records(path: Path) -> int:
    """How many records a file holds; only their lengths are read."""
    count = 0
    with _open(path) as stream:
        for length in _lengths(path, stream):
            stream.seek(length + FOOTER.size, 1)
            count += 1
    return count


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def _lengths(path: Path, stream: BinaryIO) -> Iterator[int]:
    """Length of each record, with the stream at its data and all of it there; the caller moves past it."""
    size = path.stat().st_size
    while (start := stream.tell()) < size:
        header = stream.read(HEADER.size)
        if len(header) < HEADER.size:
            raise DataError(_cut_off(path, start, size, start + HEADER.size))
        length, checksum = HEADER.unpack(header)
        if checksum != masked_crc32c(header[:8]):
            raise DataError(
                f"{path}: no record begins at byte {start}: its checksum does not fit. "
                "The file is damaged or is no TFRecord file; download it again."
            )
        end = start + HEADER.size + length + FOOTER.size
        if end > size:
            raise DataError(_cut_off(path, start, size, end))
        yield length


def _cut_off(path: Path, start: int, size: int, end: int) -> str:
    return (
        f"{path}: cut off: the record at byte {start} goes on to byte {end}, the file has {size}. "
        "Download it again."
    )
