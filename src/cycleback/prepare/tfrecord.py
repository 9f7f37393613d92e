"""Read TFRecord files of `tf.train.SequenceExample`s without TensorFlow.

A file is a series of records, numbers little-endian: length (8 bytes), masked CRC-32C of the length (4
bytes), data, masked CRC-32C of the data (4 bytes). The data of a record is one SequenceExample, in protobuf:

SequenceExample {1: Features context, 2: FeatureLists feature_lists}
Features {1: map<string, Feature>}    FeatureLists {1: map<string, FeatureList>}    FeatureList {1: Feature*}
Feature {1: BytesList | 2: FloatList | 3: Int64List}, each {1: value*}, numbers packed or one by one
map<K, V> is a repeated message {1: K, 2: V}
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DataError

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
POLYNOMIAL = 0x82F63B78  # Castagnoli, lowest bit first
MASK_DELTA = 0xA282EAD8
BLOCK_BYTES = 512
VARINT, LENGTH_DELIMITED = 0, 2  # wire types of protobuf
FIXED_LENGTHS = {1: 8, 5: 4}  # bytes of the wire types of fixed length
BYTES_LIST, INT64_LIST = 1, 3
EMPTY = memoryview(b"")

Feature = list[bytes] | list[int]
Value = int | memoryview


def iter_records(path: Path, *, check_data: bool = True) -> Iterator[bytes]:
    """Yield the data of each record, with one record in memory at a time.

    `check_data` verifies the checksum of the data (about 0.05 s per 10 MB). The checksum of the length is
    always verified, because nothing can be read without it.
    """
    for stream, length in _iter_lengths(path):
        start, data, footer = stream.tell(), stream.read(length), stream.read(FOOTER.size)
        if check_data and FOOTER.unpack(footer)[0] != masked_crc32c(data):
            raise DataError(
                f"{path}: wrong checksum of the {length} bytes from byte {start}: the file is damaged. "
                "Download it again."
            )
        yield data


def count_records(path: Path) -> int:
    """Count the records of a file by reading only their lengths."""
    count = 0
    for stream, length in _iter_lengths(path):
        stream.seek(length + FOOTER.size, 1)
        count += 1
    return count


def _iter_lengths(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Yield the file at the data of each record, with its length; the caller moves past the record."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    with stream:
        size = path.stat().st_size
        while (start := stream.tell()) < size:
            header = stream.read(HEADER.size)
            end = start + HEADER.size
            if len(header) == HEADER.size:
                length, checksum = HEADER.unpack(header)
                end += length + FOOTER.size
                if checksum != masked_crc32c(header[:8]):
                    raise DataError(
                        f"{path}: no record at byte {start}: wrong checksum. "
                        "The file is damaged or not a TFRecord file; download it again."
                    )
            if end > size:
                raise DataError(
                    f"{path}: cut off: the record at byte {start} needs {end} bytes, the file has {size}. "
                    "Download it again."
                )
            yield stream, length


def masked_crc32c(data: bytes | memoryview) -> int:
    """Return the checksum as TFRecord files store it: rotated, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes | memoryview) -> int:
    """Return the CRC-32C of `data`, computed with numpy for all blocks of the data at once.

    A CRC is linear: the state after two blocks is the state of the first, moved past as many zero bytes as
    the second is long, xor the state of the second started from zero.
    """
    view = memoryview(data).cast("B")
    count = len(view) // BLOCK_BYTES
    state = 0xFFFFFFFF
    if count:
        words = np.frombuffer(view[: count * BLOCK_BYTES], dtype="<u2").reshape(count, -1)
        first, second, third, fourth = _skip_tables()
        for block in _advance(np.zeros(count, np.uint32), words).tolist():
            skipped = first[state & 255] ^ second[state >> 8 & 255] ^ third[state >> 16 & 255]
            state = skipped ^ fourth[state >> 24] ^ block
    table = _crc_table(8).tolist()
    for byte in view[count * BLOCK_BYTES :]:
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def _advance(states: NDArray[np.uint32], words: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """Advance states (n,) by the 16-bit words (n, m) of their blocks."""
    table = _crc_table(16)
    for column in np.ascontiguousarray(words.T):  # (n,)
        states = table[(states ^ column) & 0xFFFF] ^ (states >> 16)
    return states


@cache
def _crc_table(bits: int) -> NDArray[np.uint32]:
    """Return the effect of 8 or 16 bits on an empty state, (2 ** bits,)."""
    table = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        table = np.where(table & 1, table >> 1 ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


@cache
def _skip_tables() -> list[list[int]]:
    """Return the effect of a block of zero bytes on each byte of a state, (4, 256)."""
    states = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], dtype=np.uint32)  # (4, 256)
    zeros = np.zeros((states.size, BLOCK_BYTES // 2), np.uint16)
    tables: list[list[int]] = _advance(states.reshape(-1), zeros).reshape(4, 256).tolist()
    return tables


class MalformedMessageError(ValueError):
    """The bytes are not a SequenceExample."""


@dataclass(frozen=True)
class SequenceExample:
    """Named values of the whole sequence, and named lists with one feature per step."""

    context: dict[str, Feature]
    feature_lists: dict[str, list[Feature]]


def parse_sequence_example(data: bytes) -> SequenceExample:
    """Parse one serialised SequenceExample; lists of floats, which Pouring does not use, are skipped."""
    example = SequenceExample({}, {})
    for number, value in _iter_fields(memoryview(data)):
        for key, item in _iter_map(value) if number in (1, 2) else ():
            if number == 1:
                example.context[key] = _parse_feature(item)
            else:
                steps = [_parse_feature(step) for at, step in _iter_fields(item) if at == 1]
                example.feature_lists.setdefault(key, []).extend(steps)
    return example


def _iter_map(value: Value) -> Iterator[tuple[str, Value]]:
    """Yield key and value of each entry of the map in field 1."""
    for number, entry in _iter_fields(value):
        if number == 1:
            parts = dict(_iter_fields(entry))
            try:
                yield _as_bytes(parts.get(1, EMPTY)).decode(), parts.get(2, EMPTY)
            except UnicodeDecodeError as error:
                raise MalformedMessageError(f"a name is not UTF-8: {error.object[:20]!r}") from error


def _parse_feature(value: Value) -> Feature:
    """Return the strings or integers of a Feature."""
    for kind, body in _iter_fields(value):
        items = [item for number, item in _iter_fields(body) if number == 1]
        if kind == BYTES_LIST:
            return [_as_bytes(item) for item in items]
        if kind == INT64_LIST:
            return [number for item in items for number in _iter_integers(item)]
    return []


def _iter_integers(value: Value) -> Iterator[int]:
    """Yield signed 64-bit integers: one, or a packed series."""
    position = 0
    while isinstance(value, memoryview) and position < len(value):
        number, position = _read_varint(value, position)
        yield number - (1 << 64) if number >> 63 else number
    if isinstance(value, int):
        yield value - (1 << 64) if value >> 63 else value


def _as_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedMessageError(f"a number ({value}) instead of a string")
    return bytes(value)


def _iter_fields(message: Value) -> Iterator[tuple[int, Value]]:
    """Yield number and value of each field: an integer for a varint, else bytes."""
    if isinstance(message, int):
        raise MalformedMessageError(f"a number ({message}) instead of a message")
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position)
        wire = tag & 7
        if wire == VARINT:
            number, position = _read_varint(message, position)
            yield tag >> 3, number
            continue
        if wire == LENGTH_DELIMITED:
            length, position = _read_varint(message, position)
        elif wire in FIXED_LENGTHS:
            length = FIXED_LENGTHS[wire]
        else:
            raise MalformedMessageError(f"wire type {wire} before byte {position} of {len(message)}")
        if position + length > len(message):
            raise MalformedMessageError(
                f"{length} bytes from byte {position}, but there are only {len(message)}"
            )
        yield tag >> 3, message[position : position + length]
        position += length


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """Return the number at `position`, seven bits per byte, and the position after it."""
    number = 0
    for place, byte in enumerate(view[position : position + 10]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, position + place + 1
    raise MalformedMessageError(f"a number without an end at byte {position} of {len(view)}")
