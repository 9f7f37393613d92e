"""`tf.train.SequenceExample` without TensorFlow: the few protobuf messages that it is made of.

SequenceExample {1: Features context, 2: FeatureLists feature_lists}
Features {1: map<string, Feature>}    FeatureLists {1: map<string, FeatureList>}    FeatureList {1: Feature*}
Feature {1: BytesList | 2: FloatList | 3: Int64List}, each {1: value*}, numbers packed or one by one
map<K, V> is a repeated message {1: K, 2: V}
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3

Feature = list[bytes] | list[float] | list[int]


class MalformedMessageError(ValueError):
    """The bytes are not the message they should be."""


@dataclass(frozen=True)
class SequenceExample:
    """Named values of the whole sequence, and named lists with one feature a step."""

    context: dict[str, Feature]
    feature_lists: dict[str, list[Feature]]


def parse_sequence_example(data: bytes) -> SequenceExample:
    """Read one serialised SequenceExample.

    Raises:
        MalformedMessageError: `data` is not one; the message says at which byte of which part.
    """
    context: dict[str, Feature] = {}
    feature_lists: dict[str, list[Feature]] = {}
    for number, value in _fields(memoryview(data)):
        if number == 1:
            for key, item in _map_entries(_message(value)):
                context[key] = _feature(item)
        elif number == 2:
            for key, item in _map_entries(_message(value)):
                steps = [_feature(_message(step)) for at, step in _fields(item) if at == 1]
                feature_lists.setdefault(key, []).extend(steps)
    return SequenceExample(context, feature_lists)


def _map_entries(view: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Key and value of each entry of the map in field 1."""
    for number, entry in _fields(view):
        if number != 1:
            continue
        key, item = "", memoryview(b"")
        for part, value in _fields(_message(entry)):
            if part == 1:
                key = _text(_message(value))
            elif part == 2:
                item = _message(value)
        yield key, item


def _text(view: memoryview) -> str:
    try:
        return bytes(view).decode()
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"a name is not UTF-8: {bytes(view[:20])!r}") from error


def _feature(view: memoryview) -> Feature:
    """The values of a Feature, of whichever of the three kinds it is."""
    for kind, body in _fields(view):
        values = [value for number, value in _fields(_message(body)) if number == 1]
        if kind == BYTES_LIST:
            return [bytes(_message(value)) for value in values]
        if kind == INT64_LIST:
            return [number for value in values for number in _integers(value)]
        if kind == FLOAT_LIST:
            return [number for value in values for number in _floats(value)]
    return []


def _integers(value: int | memoryview) -> Iterator[int]:
    """Signed 64-bit integers: one, or packed one behind the other."""
    if isinstance(value, int):
        yield _signed(value)
        return
    position = 0
    while position < len(value):
        number, position = _varint(value, position)
        yield _signed(number)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _floats(value: int | memoryview) -> Iterator[float]:
    if isinstance(value, int) or len(value) % 4:
        raise MalformedMessageError("a float is not 4 bytes")
    for (number,) in struct.iter_unpack("<f", value):
        yield number


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise MalformedMessageError(f"a number ({value}) where a message should be")
    return value


def _fields(view: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Field number and value of each field: a whole number, or the bytes of all other kinds."""
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        wire = tag & 7
        if wire == VARINT:
            number, position = _varint(view, position)
            yield tag >> 3, number
            continue
        if wire not in (FIXED64, LENGTH_DELIMITED, FIXED32):
            raise MalformedMessageError(f"wire type {wire} before byte {position} of {len(view)}")
        length = 8 if wire == FIXED64 else 4
        if wire == LENGTH_DELIMITED:
            length, position = _varint(view, position)
        if position + length > len(view):
            raise MalformedMessageError(
                f"{length} bytes from byte {position}, but there are only {len(view)}"
            )
        yield tag >> 3, view[position : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """The number at `position`, seven bits a byte, and the position behind it."""
    number = 0
    for place, byte in enumerate(view[position : position + 10]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, position + place + 1
    raise MalformedMessageError(f"a number without an end at byte {position} of {len(view)}")
