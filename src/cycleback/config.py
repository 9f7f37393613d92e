"""Build dataclasses from TOML files and `section.key=value` overrides.

Unknown keys, wrong types and values out of range are refused. This module knows no field of any recipe.
"""

import dataclasses
import tomllib
import types
import unicodedata
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cycleback.errors import ConfigError, did_you_mean
from cycleback.reading import read_text

T = TypeVar("T")
MAX_ITEMS = 64  # of a list
MAX_SHOWN = 60  # letters of a wrong value


def read_toml(path: Path) -> dict[str, Any]:
    """Read the tables of a file as nested dicts."""
    if not path.exists():
        raise ConfigError(f"no recipe file at {path}")
    try:
        return tomllib.loads(read_text(path, problem=ConfigError))
    except (ValueError, RecursionError) as error:  # not TOML, or too large a number
        raise ConfigError(f"{path} is not a TOML file: {error}") from None


def parse_override(text: str) -> tuple[list[str], Any]:
    """Split `a.b=value` into the path ["a", "b"] and the value: TOML, or a bare word as a string."""
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"override {text!r} is not of the form section.key=value")
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, RecursionError):  # not TOML, or too large a number
        value = raw.strip()
    return key.strip().split("."), value


def apply_override(values: dict[str, Any], text: str) -> None:
    """Set one key of nested `values` from `a.b=value`; a whole table replaces a table."""
    (*sections, key), value = parse_override(text)
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"override {text!r}: {section!r} is not a section")
        values = inner
    values[key] = value


def merge(values: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Put `extra` over `values`, table by table."""
    for key, value in extra.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            merge(values[key], value)
        else:
            values[key] = dict(value) if isinstance(value, Mapping) else value


def flatten(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of nested tables with its dotted key."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{section}{key}.")
        else:
            yield section + key, value


def build(cls: type[T], values: Mapping[str, Any], *, source: str, section: str = "") -> T:
    """Build the dataclass `cls`; every value is checked against the type and the range of its field."""
    hints = get_type_hints(cls, include_extras=True)
    for key in values:
        if key not in hints:
            guess = did_you_mean(key, hints, prefix=section)
            raise ConfigError(f"{source}: there is no key {section + key!r}. {guess}")
    arguments = {key: _check(hints[key], value, source, section + key) for key, value in values.items()}
    try:
        return cls(**arguments)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from None


def to_toml(config: object, *, without: Container[str] = ()) -> str:
    """Write the dataclass as TOML text that `build` reads back to an equal instance.

    The dotted keys in `without` are left out, and so are fields that are None.
    """
    return "\n".join(_toml_lines(config, "", without)).strip() + "\n"


def _toml_lines(config: object, section: str, without: Container[str]) -> list[str]:
    plain, tables = [], []
    for field in dataclasses.fields(config):  # type: ignore[arg-type]
        value, key = getattr(config, field.name), section + field.name
        if dataclasses.is_dataclass(value):
            lines = _toml_lines(value, f"{key}.", without)
            is_table_only = not lines or lines[0] == ""
            tables += lines if is_table_only else ["", f"[{key}]", *lines]
        elif value is not None and key not in without:
            plain.append(f"{field.name} = {_toml_value(value)}")
    return plain + tables


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml_value(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(_toml_value(item) for item in value) + "]"


def _check(hint: Any, value: Any, source: str, key: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{source}: {key} is a section, got {value!r}")
        return build(hint, value, source=source, section=key + ".")
    converted = _convert(hint, value)
    if converted is _REFUSED:
        raise ConfigError(f"{source}: {key} must be {_describe(hint)}, got {_shorten(value)}")
    return converted


def _shorten(value: Any) -> str:
    """Show a value of any size in a few words; Python refuses to print very large numbers."""
    is_large = isinstance(value, int) and abs(value) > 10**MAX_SHOWN
    text = f"a number of {value.bit_length()} bits" if is_large else repr(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


_REFUSED = object()


def _convert(hint: Any, value: Any) -> Any:
    """Convert `value` to the type `hint`, or return `_REFUSED`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        converted = _convert(arguments[0], value)
        return converted if converted is not _REFUSED and converted in arguments[1] else _REFUSED
    if origin in (Union, types.UnionType):
        results = (_convert(option, value) for option in arguments)
        return next((result for result in results if result is not _REFUSED), _REFUSED)
    if origin is Literal:
        return value if value in arguments else _REFUSED
    if origin is tuple:
        return _convert_items(arguments, value)
    if origin in (dict, Mapping):
        return _convert_mapping(arguments[1], value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= 2**53 else _REFUSED
    if hint is str and isinstance(value, str) and any(unicodedata.category(c) in ("Cc", "Cs") for c in value):
        return _REFUSED
    return value if type(value) is hint else _REFUSED


def _convert_items(hints: tuple[Any, ...], value: Any) -> Any:
    """Convert a list; `hints` is (T, ...) for any number of values, else it has one type per value."""
    if not isinstance(value, list | tuple) or len(value) > MAX_ITEMS:
        return _REFUSED
    if hints[-1] is Ellipsis:
        hints = hints[:1] * len(value)
    if len(hints) != len(value):
        return _REFUSED
    items = tuple(_convert(hint, item) for hint, item in zip(hints, value, strict=True))
    return _REFUSED if any(item is _REFUSED for item in items) else items


def _convert_mapping(hint: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _REFUSED
    items = {key: _convert(hint, item) for key, item in value.items()}
    return _REFUSED if any(item is _REFUSED for item in items.values()) else items


def _describe(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return f"{_describe(arguments[0])} {arguments[1]}"
    if origin is Literal:
        return "one of " + ", ".join(repr(option) for option in arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"a list of at most {MAX_ITEMS} values, each {_describe(arguments[0])}"
    if origin is tuple:
        return f"a list of {len(arguments)} values, each {_describe(arguments[0])}"
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments if option is not type(None))
    if origin is not None:
        return f"a table, each value {_describe(arguments[1])}"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text on one line"}
    return names[hint]
