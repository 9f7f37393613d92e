"""Walks through JSON that others wrote and knows where it is, so that an error names the place."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cycleback.errors import DataError


@dataclass(frozen=True)
class Cursor:
    """A value inside a file, and the way to it."""

    value: Any
    place: str

    def at(self, key: str) -> "Cursor":
        """The value of `key` in an object, which must have it."""
        found = self.find(key)
        if found is None:
            raise DataError(f"{self.place}: no {key!r} here")
        return found

    def find(self, key: str) -> "Cursor | None":
        """The value of `key` in an object; None where it is missing or null."""
        inside = self._as(dict, "an object").get(key)
        return None if inside is None else Cursor(inside, f"{self.place}, {key}")

    def items(self) -> "Iterator[tuple[str, Cursor]]":
        """The keys and values of an object."""
        for key, inside in self._as(dict, "an object").items():
            yield str(key), Cursor(inside, f"{self.place}, {key}")

    def each(self, key: str | None = None) -> "Iterator[Cursor]":
        """The values of a list: of this value, or of `key` where it is there."""
        here = self if key is None else self.find(key)
        if here is not None:
            for number, inside in enumerate(here._as(list, "a list")):
                yield Cursor(inside, f"{here.place}[{number}]")

    def number(self) -> float:
        """A finite number, which may be written as text."""
        try:
            value = math.nan if isinstance(self.value, bool) else float(self.value)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise self._unexpected("a number")
        return value

    def whole(self) -> int:
        """A whole number."""
        value = self.number()
        if value != int(value):
            raise self._unexpected("a whole number")
        return int(value)

    def optional(self, key: str) -> float | None:
        """The number at `key`, or None where it is missing or empty."""
        found = self.find(key)
        return None if found is None or found.value == "" else found.number()

    def optional_whole(self, key: str) -> int | None:
        """The whole number at `key`, or None where it is missing or empty."""
        return None if self.optional(key) is None else self.at(key).whole()

    def text(self) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self._unexpected("a text")
        return self.value

    def parsed(self) -> "Cursor":
        """The JSON inside a text; any other value as it is."""
        return parse_json(self.value, self.place) if isinstance(self.value, str) else self

    def _as(self, kind: type, words: str) -> Any:
        if not isinstance(self.value, kind):
            raise self._unexpected(words)
        return self.value

    def _unexpected(self, words: str) -> DataError:
        return DataError(f"{self.place}: expected {words}, got {json.dumps(self.value)[:60]}")


def parse_json(text: str, place: str) -> Cursor:
    """The root of a JSON text; `place` is the file it came from."""
    try:
        return Cursor(json.loads(text), place)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}, line {error.lineno}: not JSON ({error.msg})") from error


def dump_json(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
