"""CRC-32C against the published vectors (RFC 3720, B.4) and against its definition."""

import numpy as np
import pytest

from cycleback.prepare.crc32c import LANES, crc32c, masked_crc32c
from prepare.formats import slow_crc32c, slow_masked


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_checksums(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [2 * LANES - 1, 2 * LANES, 2 * LANES + 1, 6 * LANES + 77])
def test_lanes_give_the_checksum_of_the_bit_by_bit_definition(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == slow_crc32c(data)
    assert crc32c(memoryview(data)[1:]) == slow_crc32c(data[1:])


def test_masked_checksum_is_the_one_of_tfrecords() -> None:
    assert masked_crc32c(b"123456789").to_bytes(4, "little") == slow_masked(b"123456789")
