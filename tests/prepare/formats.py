"""Small files in the formats in which data sets are distributed, written from their specifications."""

import io
import struct
from collections.abc import Sequence


def slow_crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its definition."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def slow_masked(data: bytes) -> bytes:
    crc = slow_crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def record_bytes(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + slow_masked(length) + data + slow_masked(data)


def varint(number: int) -> bytes:
    number %= 2**64
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values: Sequence[bytes] | Sequence[int], *, packed: bool = True) -> bytes:
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    numbers = [varint(value) for value in values]
    return field(3, field(1, b"".join(numbers)) if packed else b"".join(b"\x08" + n for n in numbers))


def entry(key: str, value: bytes) -> bytes:
    return field(1, field(1, key.encode()) + field(2, value))


def example_bytes(name: str, images: Sequence[bytes], labels: Sequence[int] | None) -> bytes:
    """A SequenceExample as the reference program writes its clips."""
    context = {"name": feature([name.encode()]), "len": feature([len(images)]), "label": feature([-1])}
    lists = {"video": [feature([image]) for image in images]}
    if labels is not None:
        lists["frame_labels"] = [feature([label]) for label in labels]
    steps = {key: b"".join(field(1, step) for step in value) for key, value in lists.items()}
    features = b"".join(entry(key, value) for key, value in context.items())
    return field(1, features) + field(2, b"".join(entry(key, value) for key, value in steps.items()))


def jpeg(shade: int) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (16, 12), (shade % 256, 40, 200)).save(stream, "jpeg", quality=95)
    return stream.getvalue()
