"""Read JSON written by other programs; errors name the place in the file."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cycleback.errors import DataError


@dataclass(frozen=True)
class Cursor:
    """A value in a file, and its place for error messages."""

    value: Any
    place: str

    def at(self, key: str) -> "Cursor":
        """Return the value of `key` in an object; it must exist."""
        found = self.find(key)
        if found is None:
            raise DataError(f"{self.place}: no {key!r} here")
        return found

    def find(self, key: str) -> "Cursor | None":
        """Return the value of `key` in an object; None if it is missing or null."""
        inside = self._expect(dict, "an object").get(key)
        return None if inside is None else Cursor(inside, f"{self.place}, {key}")

    def items(self) -> "Iterator[tuple[str, Cursor]]":
        """Yield the keys and values of an object."""
        for key, inside in self._expect(dict, "an object").items():
            yield str(key), Cursor(inside, f"{self.place}, {key}")

    def each(self, key: str | None = None) -> "Iterator[Cursor]":
        """Yield the values of this list, or of the list at `key` if there is one."""
        here = self if key is None else self.find(key)
        if here is not None:
            for number, inside in enumerate(here._expect(list, "a list")):
                yield Cursor(inside, f"{here.place}[{number}]")

    def number(self) -> float:
        """Return a finite number, which may be written as text."""
        try:
            value = math.nan if isinstance(self.value, bool) else float(self.value)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise self._unexpected("a number")
        return value

    def integer(self) -> int:
        """Return a whole number."""
        value = self.number()
        if value != int(value):
            raise self._unexpected("a whole number")
        return int(value)

    def optional_number(self, key: str) -> float | None:
        """Return the number at `key`; None if it is missing or empty."""
        found = self.find(key)
        return None if found is None or found.value == "" else found.number()

    def optional_integer(self, key: str) -> int | None:
        """Return the whole number at `key`; None if it is missing or empty."""
        return None if self.optional_number(key) is None else self.at(key).integer()

    def text(self) -> str:
        """Return a text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self._unexpected("a text")
        return self.value

    def _expect(self, kind: type, words: str) -> Any:
        if not isinstance(self.value, kind):
            raise self._unexpected(words)
        return self.value

    def _unexpected(self, words: str) -> DataError:
        return DataError(f"{self.place}: expected {words}, got {json.dumps(self.value)[:60]}")


def parse_json(text: str, place: str) -> Cursor:
    """Parse a JSON text; `place` is the file, for error messages."""
    try:
        return Cursor(json.loads(text), place)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}, line {error.lineno}: not JSON ({error.msg})") from error


def dump_json(value: Any, *, indent: int | None = 1) -> str:
    """Format a value as JSON; keys whose value is None are left out."""
    return json.dumps(_drop_unknown(value), indent=indent, ensure_ascii=False) + "\n" * bool(indent)


def _drop_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_unknown(inside) for key, inside in value.items() if inside is not None}
    return [_drop_unknown(inside) for inside in value] if isinstance(value, list | tuple) else value
