"""Write arrays row by row to .npy files, and read those of the cache only if no byte has changed.

Rows go through ordinary writes: a full disk is an error there, but kills a process that writes to a mapped
file. An array of the cache ends in a checksum, which other readers of .npy files ignore.

Letters: N rows.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

MARK = b"cbsum 1\n"  # before the checksum, at the end of a file
PAGE = 4096
BLOCK_PAGES = 4096  # added up at a time
_VERIFIED: dict[str, tuple[int, int]] = {}  # files whose checksum was right in this process: inode and size

Rows = Callable[[NDArray[Any]], None]


@contextmanager
def write_rows(
    path: Path, dtype: DTypeLike, shape: tuple[int, ...], *, with_checksum: bool = False
) -> Iterator[Rows]:
    """Create an .npy file (N, *shape) and yield a function that appends rows (n, *shape) to it.

    The header is first written for zero rows and rewritten at the end: numpy leaves room in it for the first
    axis to grow.
    """
    length = 0

    def append(rows: NDArray[Any]) -> None:
        nonlocal length
        stream.write(np.ascontiguousarray(rows, dtype=dtype).data)
        length += len(rows)

    with path.open("wb") as stream:
        _write_header(stream, dtype, (0, *shape))
        start = stream.tell()
        yield append
        stream.seek(0)
        _write_header(stream, dtype, (length, *shape))
        if stream.tell() != start:
            raise RuntimeError(f"the header of {path.name} grew from {start} to {stream.tell()} bytes")
    if with_checksum:
        add_checksum(path)


def write_array(path: Path, array: NDArray[Any], *, with_checksum: bool = False) -> None:
    """Write an array (N, ...) to an .npy file."""
    with write_rows(path, array.dtype, array.shape[1:], with_checksum=with_checksum) as append:
        append(array)


def add_checksum(path: Path) -> None:
    """Append the checksum of a file to it."""
    content = np.memmap(path, dtype=np.uint8, mode="r")
    with path.open("ab") as stream:
        stream.write(MARK + compute_checksum(content).to_bytes(8, "little"))


def compute_checksum(content: NDArray[np.uint8]) -> int:
    """Add up bytes (n,) in words of 64 bits, each page of them times another odd number.

    Any changed byte changes the sum, and so do lost or swapped pages. It is as fast as memory.
    """
    total, whole = 0, len(content) // PAGE * PAGE
    last = np.zeros(PAGE, dtype=np.uint8)
    last[: len(content) - whole] = content[whole:]
    for start in range(0, whole, PAGE * BLOCK_PAGES):
        total += _add_up(content[start : min(whole, start + PAGE * BLOCK_PAGES)], start // PAGE)
    total += _add_up(last, whole // PAGE)
    return total % 2**64


def _add_up(pages: NDArray[np.uint8], first: int) -> int:
    sums = np.asarray(pages).view(np.uint64).reshape(-1, PAGE // 8).sum(axis=1, dtype=np.uint64)
    numbers = 2 * np.arange(first, first + len(sums), dtype=np.uint64) + np.uint64(1)
    return int((sums * numbers).sum(dtype=np.uint64))


def open_array(path: Path, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any] | None:
    """Map an array of the cache from disk, or return None if it is missing or damaged.

    None in `shape` stands for any length. Arrays without a checksum are of earlier versions. The file is
    marked as used now; its checksum is compared when this process opens it first.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.memmap) or array.dtype != dtype or len(array.shape) != len(shape):
            return None
        if any(want not in (None, size) for want, size in zip(shape, array.shape, strict=True)):
            return None
        if not _is_whole(path, array.offset + array.nbytes):
            return None
    except Exception:  # numpy raises half a dozen types for a damaged header
        return None
    with suppress(OSError):  # a cache of somebody else
        os.utime(path)
    return array


def _is_whole(path: Path, end: int) -> bool:
    """Whether a file whose array ends at byte `end` has no checksum, or the right one."""
    status = path.stat()
    if status.st_size == end or _VERIFIED.get(str(path)) == (status.st_ino, status.st_size):
        return True
    content = np.memmap(path, dtype=np.uint8, mode="r")
    given = bytes(content[end:])
    if given != MARK + compute_checksum(content[:end]).to_bytes(8, "little"):
        return False
    _VERIFIED[str(path)] = status.st_ino, status.st_size
    return True


def _write_header(stream: IO[bytes], dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
