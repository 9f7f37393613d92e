"""CRC-32C (Castagnoli), the checksum of TFRecord files, with numpy: no compiled package is needed.

A CRC is linear over GF(2): the data is cut into lanes of equal length, all lanes advance together two bytes a
step by table look-up, and the lanes are joined by the operator that says what a lane's worth of zero bytes
does to a checksum.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78  # Castagnoli, lowest bit first
LANES = 4096
MASK_DELTA = 0xA282EAD8

Table = NDArray[np.uint32]


def masked_crc32c(data: bytes | memoryview) -> int:
    """The checksum as TFRecord files store it: rotated and shifted, so that it is not a CRC of itself."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes | memoryview) -> int:
    """CRC-32C of `data`."""
    view = memoryview(data).cast("B")
    state = 0xFFFFFFFF
    length = len(view) // (2 * LANES) * 2  # bytes of a lane
    if length:
        words = np.frombuffer(view[: length * LANES], dtype="<u2").reshape(LANES, -1)
        state = _join_lanes(_lane_states(words), state, length)
    return _short(view[length * LANES :], state) ^ 0xFFFFFFFF


def _lane_states(words: NDArray[np.uint16]) -> Table:
    """State of each lane (L,) after its words (L, M), started from zero."""
    table = _word_table()
    states = np.zeros(len(words), dtype=np.uint32)
    for column in np.ascontiguousarray(words.T):  # (L,)
        states = table[(states ^ column) & 0xFFFF] ^ (states >> 16)
    return states


def _join_lanes(lanes: Table, state: int, length: int) -> int:
    """The state after all lanes of `length` bytes one behind the other, started from `state`."""
    first, second, third, fourth = (table.tolist() for table in _zeros_operator(length))
    for lane in lanes.tolist():
        moved = first[state & 255] ^ second[state >> 8 & 255] ^ third[state >> 16 & 255] ^ fourth[state >> 24]
        state = moved ^ lane
    return state


def _short(view: memoryview, state: int) -> int:
    """The state after the bytes of `view`, one at a time."""
    table = _byte_list()
    for byte in view:
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state


@cache
def _byte_table() -> Table:
    """What one byte does to an empty state, (256,)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


@cache
def _byte_list() -> list[int]:
    table: list[int] = _byte_table().tolist()
    return table


@cache
def _word_table() -> Table:
    """What two bytes do to an empty state, (65536,)."""
    return _zero_byte(_zero_byte(np.arange(1 << 16, dtype=np.uint32)))


@cache
def _zeros_operator(length: int) -> tuple[Table, Table, Table, Table]:
    """The effect of `length` zero bytes on a state, as one table (256,) for each byte of the state."""
    columns = np.uint32(1) << np.arange(32, dtype=np.uint32)  # image of each bit
    power = _zero_byte(columns)
    while length:
        if length & 1:
            columns = _apply(power, columns)
        power, length = _apply(power, power), length >> 1
    values = np.arange(256, dtype=np.uint32)
    first, second, third, fourth = (_apply(columns, values << np.uint32(8 * place)) for place in range(4))
    return first, second, third, fourth


def _zero_byte(states: Table) -> Table:
    """The states (S,) after one more byte, 0."""
    moved: Table = _byte_table()[states & 255] ^ states >> 8
    return moved


def _apply(columns: Table, states: Table) -> Table:
    """A linear operator, given by the image (32,) of each bit, applied to `states` (S,)."""
    bits = states[:, None] >> np.arange(32, dtype=np.uint32) & 1  # (S, 32)
    images: Table = np.bitwise_xor.reduce(np.where(bits, columns, np.uint32(0)), axis=1)
    return images
