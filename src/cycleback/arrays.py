"""Write NumPy files, and open those that anybody may have written.

    open_npy, open_npz        .npy memory-mapped, .npz array by array; what does not fit is a `UserError`
    write_rows, write_array   an .npy file, row by row or at once
    open_array                an array of a cache, or None where a byte of it has changed

Shapes, types and sizes are read from the headers first, so neither a claimed size nor a compressed one fills
the memory, and no Python object is ever loaded. Rows go through ordinary writes: a full disk is an error
there, but kills a process that writes to a mapped file. An array of a cache ends in a checksum, which other
readers of .npy files ignore.

Letters: N rows.
"""

import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.errors import DataError, UserError
from cycleback.reading import not_a_file

MAX_NUMBERS = 2**29  # of an array of an .npz: 2 GiB as float32
MAX_MEMBERS = 10_000  # arrays of an .npz
MOST_DEFLATED = 1100  # no .zip file packs more bytes into one
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
MARK = b"cbsum 1\n"  # before the checksum, at the end of a file
PAGE = 4096
BLOCK_PAGES = 4096  # added up at a time
_VERIFIED: dict[str, tuple[int, int]] = {}  # files whose checksum was right in this process: inode and size

Explain = Callable[[str], UserError]  # makes an error of a reason
Rows = Callable[[NDArray[Any]], None]


@dataclass(frozen=True)
class Header:
    """What the header of an array says."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool = False  # whether the first axis varies fastest

    @property
    def numbers(self) -> int:
        """How many numbers it claims."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def open_npy(path: Path, dtype: DTypeLike, ndim: int, *, explain: Explain) -> NDArray[Any]:
    """Memory-map an array of this type and number of axes; the file must hold exactly that.

    Args:
        explain: makes the error, of the reason.
    """
    with _explained(explain):
        _check_is_file(path)
        with path.open("rb") as stream:
            header = _read_header(stream)
            start = stream.tell()
        if header.dtype != dtype or len(header.shape) != ndim:
            expected = f"{np.dtype(dtype)} with {ndim} dimension{'s' * (ndim > 1)}"
            raise DataError(f"expected {expected}, got {header}")
        size, wanted = path.stat().st_size, start + header.numbers * header.dtype.itemsize
        if size != wanted:
            raise DataError(f"it is damaged: {header} needs {wanted} bytes, the file has {size}")
        order: Any = "F" if header.is_fortran else "C"
        if not header.numbers:
            return np.empty(header.shape, header.dtype)
        return np.memmap(path, header.dtype, "r", offset=start, shape=header.shape, order=order)


@dataclass(frozen=True)
class Archive:
    """The arrays of an .npz, which are read one by one."""

    headers: dict[str, Header]  # by name
    _archive: zipfile.ZipFile
    _explain: Explain

    def read(self, name: str, kinds: str = "fiub") -> NDArray[Any]:
        """Read an array of these kinds of numbers.

        Args:
            kinds: as in `numpy.dtype.kind`: f float, i and u whole numbers, b true or false, U text.
        """
        header = self.headers[name]
        with _explained(self._explain):
            if header.dtype.kind not in kinds or header.dtype.itemsize == 0:
                raise DataError(f"{name!r} must hold numbers, got {header}")
            self._check_size(name, header)
            with self._archive.open(f"{name}.npy") as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
                if stream.read(1):  # at its end, zipfile compares checksums
                    raise DataError(f"it is damaged: {name!r} holds more than {header}")
                return array

    def _check_size(self, name: str, header: Header) -> None:
        """Refuse an array that claims more than its file can hold, or than memory can."""
        info = self._archive.getinfo(f"{name}.npy")
        bytes_ = header.numbers * header.dtype.itemsize
        if header.numbers > MAX_NUMBERS:
            raise DataError(f"{name!r} has {header.numbers:,} numbers, expected at most {MAX_NUMBERS:,}")
        if bytes_ > info.file_size or info.file_size > MOST_DEFLATED * info.compress_size + 1024:
            raise DataError(f"it is damaged: {name!r} claims to be {header}, which is not in the file")


@contextmanager
def open_npz(path: Path, *, explain: Explain) -> Iterator[Archive]:
    """Open an .npz and read the headers of its arrays; those of other types are listed, too.

    Args:
        explain: makes the error, of the reason.
    """
    with _explained(explain):
        _check_is_file(path)
        archive = zipfile.ZipFile(path)
    with archive:
        with _explained(explain):
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            if not names or len(names) > MAX_MEMBERS:
                raise DataError(f"expected 1 to {MAX_MEMBERS:,} arrays in it, got {len(names):,}")
            headers = {}
            for name in names:
                with archive.open(name) as stream:
                    headers[name.removesuffix(".npy")] = _read_header(stream)
        yield Archive(headers, archive, explain)


def _check_is_file(path: Path) -> None:
    if reason := not_a_file(path):
        raise DataError(reason)


def _read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    if version not in HEADER_READERS:
        raise DataError(f"it has format version {version}, expected 1.0 or 2.0")
    shape, is_fortran, dtype = HEADER_READERS[version](stream)
    if any(length < 0 for length in shape):
        raise DataError(f"it has the shape {shape}")
    return Header(tuple(map(int, shape)), dtype, is_fortran)


@contextmanager
def _explained(explain: Explain) -> Iterator[None]:
    """Explain what the block cannot read. NumPy and zipfile raise a dozen types for a damaged file."""
    try:
        yield
    except FileNotFoundError as error:
        raise explain("it is missing") from error
    except UserError as error:
        raise explain(str(error)) from error
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise explain(f"it is damaged: {reason[:200]}") from error


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
        stream.write(MARK + checksum_bytes(content).to_bytes(8, "little"))


def checksum_array(array: NDArray[Any]) -> str:
    """Return sixteen hex digits that change when a byte of the array does."""
    return f"{checksum_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8)):016x}"


def checksum_bytes(content: NDArray[np.uint8]) -> int:
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
    if given != MARK + checksum_bytes(content[:end]).to_bytes(8, "little"):
        return False
    _VERIFIED[str(path)] = status.st_ino, status.st_size
    return True


def _write_header(stream: IO[bytes], dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
