"""Read text, JSON and XML that anybody may have written; whatever does not fit is a `UserError` of one line.

A file is read only if it is a file, of a size that fits into memory, in UTF-8. A `Cursor` goes through JSON,
or through the rows of a table, and hands out values of the type that is asked for; its errors name the place
in the file. Checksums tell that a file is as it was written: `seal` and `check_seal` for JSON, `checksum` for
bytes.
"""

import errno
import json
import math
import os
import stat
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from xml.etree.ElementTree import Element, ParseError, fromstring

from cycleback.errors import DataError, UserError

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_TEXT_BYTES = 256 << 20
MAX_INTEGER = 2**53  # beyond, a number in JSON or a table may be another one when it is read
MAX_SHOWN = 60  # letters of a wrong value in a message
CHECKSUM = "checksum"  # the key of a sealed object


def read_text(path: Path | str, *, problem: type[UserError] = DataError) -> str:
    """Read a UTF-8 text file, with or without a byte-order mark.

    Args:
        problem: the error to raise.
    """
    try:
        if reason := not_a_file(path, max_bytes=MAX_TEXT_BYTES):
            raise problem(f"cannot read {path}: {reason}.")
        return Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise problem(f"{path}: not a UTF-8 text file (byte {error.start}). Save it as UTF-8.") from error
    except OSError as error:
        raise problem(f"cannot read {path}: {error.strerror or error}.") from error


def not_a_file(path: Path | str, *, max_bytes: int | None = None) -> str:
    """Say why something is not a file to read, "" if it is one; reading a pipe or a device may never end.

    What is not there is a FileNotFoundError.
    """
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        return os.strerror(errno.EISDIR)
    if not stat.S_ISREG(status.st_mode):
        return "it is a pipe or a device, not a file"
    if max_bytes is not None and status.st_size > max_bytes:
        return f"it has {status.st_size >> 20} MB, expected at most {max_bytes >> 20}"
    return ""


@dataclass(frozen=True)
class Cursor:
    """A value in a file, and its place for error messages."""

    value: Any
    place: str
    problem: type[UserError] = DataError  # the error to raise
    advice: str = ""  # ends each message: what to do with the file

    def at(self, key: str) -> "Cursor":
        """Return the value of `key` in an object; it must exist."""
        found = self.find(key)
        if found is None:
            raise self.wrong(f"no {key!r} here")
        return found

    def find(self, key: str) -> "Cursor | None":
        """Return the value of `key` in an object; None if it is missing or null."""
        inside = self._expect(dict, "an object").get(key)
        return None if inside is None else self._inside(inside, f", {key}")

    def items(self) -> "Iterator[tuple[str, Cursor]]":
        """Yield the keys and values of an object."""
        for key, inside in self._expect(dict, "an object").items():
            yield self._inside(key, ", a key").any_text(), self._inside(inside, f", {key}")

    def find_items(self, key: str) -> "Iterator[tuple[str, Cursor]]":
        """Yield the keys and values of the object at `key`, if there is one."""
        found = self.find(key)
        return iter(()) if found is None else found.items()

    def each(self, key: str | None = None) -> "Iterator[Cursor]":
        """Yield the values of this list, or of the list at `key` if there is one."""
        here = self if key is None else self.find(key)
        if here is not None:
            for number, inside in enumerate(here._expect(list, "a list")):
                yield here._inside(inside, f"[{number}]")

    def number(self) -> float:
        """Return a finite number, which may be written as text."""
        value = math.nan
        if isinstance(self.value, str | int | float) and not isinstance(self.value, bool):
            try:
                value = math.nan if "_" in str(self.value) else float(self.value)  # Python reads 1_0 as 10
            except (ValueError, OverflowError):
                value = math.nan
        if not math.isfinite(value):
            raise self.expected("a number")
        return value

    def integer(self, *, low: int = -MAX_INTEGER) -> int:
        """Return a whole number of at least `low`."""
        value = self.number()
        if value != int(value) or not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise self.expected("a whole number")
        if value < low:
            raise self.expected(f"a whole number of at least {low}")
        return int(value)

    def positive(self) -> float:
        """Return a finite number above 0."""
        value = self.number()
        if value <= 0:
            raise self.expected("a number above 0")
        return value

    def optional_number(self, key: str) -> float | None:
        """Return the number at `key`; None if it is missing or empty."""
        found = self._find_filled(key)
        return None if found is None else found.number()

    def optional_positive(self, key: str) -> float | None:
        """Return the number above 0 at `key`; None if it is missing or empty."""
        found = self._find_filled(key)
        return None if found is None else found.positive()

    def optional_integer(self, key: str, *, low: int = -MAX_INTEGER) -> int | None:
        """Return the whole number of at least `low` at `key`; None if it is missing or empty."""
        found = self._find_filled(key)
        return None if found is None else found.integer(low=low)

    def text(self) -> str:
        """Return a text that is not empty, and that every file and terminal can hold."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.expected("a text")
        return self._check_letters(self.value)

    def word(self) -> str:
        """Return a text or a whole number as text: the name of something in the file."""
        is_number = isinstance(self.value, int) and not isinstance(self.value, bool)
        return str(self.integer()) if is_number else self.any_text()

    def any_text(self) -> str:
        """Return a text, which may be empty."""
        return self._check_letters(self._expect(str, "a text"))

    def optional_text(self, key: str) -> str | None:
        """Return the text at `key`; None if it is missing."""
        found = self.find(key)
        return None if found is None else found.any_text()

    def flag(self) -> bool:
        """Return true or false."""
        return bool(self._expect(bool, "true or false"))

    def wrong(self, message: str) -> UserError:
        """Return an error at this place, to raise."""
        return self.problem(f"{self.place}: {message}{self.advice}")

    def expected(self, words: str) -> UserError:
        """Return the error that something else was expected here, to raise."""
        return self.wrong(f"expected {words}, got {_show(self.value)}")

    def _inside(self, value: Any, way: str) -> Self:
        return replace(self, value=value, place=self.place + way)

    def _find_filled(self, key: str) -> "Cursor | None":
        found = self.find(key)
        return None if found is None or found.value == "" else found

    def _expect(self, kind: type, words: str) -> Any:
        if not isinstance(self.value, kind):
            raise self.expected(words)
        return self.value

    def _check_letters(self, text: str) -> str:
        """Refuse control characters, which XML and terminals cannot hold, and half characters."""
        if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n\r" for c in text):
            raise self.expected("a text without control characters")
        return text


def _show(value: Any) -> str:
    """Show a wrong value in a few letters, however large or deep it is."""
    try:
        text = json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__} that is too large to show"
    return text[:MAX_SHOWN]


def parse_json(text: str, place: str, *, problem: type[UserError] = DataError, advice: str = "") -> Cursor:
    """Parse a JSON text; `place` is the file, for error messages."""
    try:
        return Cursor(json.loads(text), place, problem, advice)
    except json.JSONDecodeError as error:
        raise problem(f"{place}, line {error.lineno}: not JSON ({error.msg}){advice}") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise problem(f"{place}: not JSON ({str(error).partition(';')[0]}){advice}") from error
    except RecursionError:
        raise problem(f"{place}: its lists and objects are nested too deeply{advice}") from None


def parse_xml(text: str, place: str) -> Element:
    """Parse an XML text in UTF-8; `place` is the file, for error messages."""
    try:
        return fromstring(text.lstrip("\ufeff").encode("utf-8"))
    except ParseError as error:
        raise DataError(f"{place}, line {error.position[0]}: not XML ({error})") from error
    except (ValueError, LookupError) as error:  # it declares another encoding
        raise DataError(f"{place}: not XML in UTF-8 ({error}). Save it as UTF-8.") from error


def read_json(path: Path | str, *, problem: type[UserError] = DataError, advice: str = "") -> Cursor:
    """Read a JSON file."""
    return parse_json(read_text(path, problem=problem), str(path), problem=problem, advice=advice)


def checksum(*parts: "Buffer") -> str:
    """Return eight hex digits that change when a byte does, at more than a gigabyte per second."""
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return f"{crc:08x}"


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the checksum of all its other keys, to write as JSON."""
    others = {key: value for key, value in content.items() if key != CHECKSUM}
    return {**others, CHECKSUM: checksum(json.dumps(others, sort_keys=True).encode())}


def check_seal(root: Cursor) -> None:
    """Refuse an object whose content is not as it was sealed; one without a checksum is accepted."""
    try:
        is_whole = root.find(CHECKSUM) is None or seal(root.value)[CHECKSUM] == root.value[CHECKSUM]
    except RecursionError:
        is_whole = False
    if not is_whole:
        raise root.wrong("it was changed or damaged since it was written (wrong checksum)")
