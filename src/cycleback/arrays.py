"""Open NumPy files that anybody may have written: .npy memory-mapped, .npz array by array.

Shapes, types and sizes are read from the headers first, so neither a claimed size nor a compressed one fills
the memory, and no Python object is ever loaded. What does not fit is a `UserError` of one line.
"""

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.errors import DataError, UserError
from cycleback.reading import checksum, not_a_file

MAX_NUMBERS = 2**29  # of an array of an .npz: 2 GiB as float32
MAX_MEMBERS = 10_000  # arrays of an .npz
MOST_DEFLATED = 1100  # no .zip file packs more bytes into one
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
Explain = Callable[[str], UserError]  # makes an error of a reason


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


def array_checksum(array: NDArray[Any]) -> str:
    """Return eight hex digits that change when a byte of the array does."""
    return checksum(np.ascontiguousarray(array).data)


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
