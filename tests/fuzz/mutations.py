"""Damage a file as disks, transfers and other programs do: byte by byte, or value by value.

A mutation is a list of plain numbers, so that hypothesis can draw it and make it smaller.
"""

import csv
import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cycleback.reading import CHECKSUM, seal

DEEP = "[" * 100_000
NESTED = '"deep"'  # stands for a deep list until the JSON is written
FOREIGN = (
    b"",
    b"\n",
    b"\x00" * 64,
    b"\x89PNG\r\n\x1a\n" + bytes(32),
    b"PK\x05\x06" + bytes(18),
    pickle.dumps({"a": [1, 2]}),
    b"\xff\xfe" + "video,event".encode("utf-16-le"),
    b"\xef\xbb\xbf{}",
    b"[]",
    b"3",
    b"null",
    DEEP.encode(),
    b"{" + b'"a":{' * 2000 + b"}" * 2001,
    b"1" * 5000,
)
WORDS = (
    "",
    " ",
    "x",
    "-1",
    "0",
    "1e308",
    "1e400",
    "nan",
    "inf",
    "9" * 400,
    "1_0",
    "\x00",
    "\x1b[31m",
    "../../x",
)
WORDS += ("/etc/passwd", "é\u2028", "[/red]", '"', ",,,", "-", "१", "2020-01-01", "true", "x" * 3000)
VALUES: tuple[Any, ...] = (None, True, False, -1, 0, 1, 0.5, 1e308, float("nan"), float("inf"), 2**53 + 1)
VALUES += ("deep", 10**400, [], {}, [[]], {"a": 1}, [1, 2], [None], "\ud800", *WORDS)
ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.full((4, 2), np.nan),
    lambda: np.full((4, 2), 1e300),
    lambda: np.zeros((0, 2)),
    lambda: np.zeros((4, 0), np.float32),
    lambda: np.zeros((4, 2, 2)),
    lambda: np.zeros(4),
    lambda: np.float64(25),
    lambda: np.array(["x", "y"]),
    lambda: np.array([["x", "y"]]),
    lambda: np.array([{}], dtype=object),
    lambda: np.array([[None, 1]], dtype=object),
    lambda: np.ones((4, 2), complex),
    lambda: np.ones((4, 2), np.float16),
    lambda: np.ones((4, 2), bool),
    lambda: np.zeros(4, [("a", "f4")]),
    lambda: np.zeros(4, "datetime64[s]"),
    lambda: np.array([0.0, 2, 1, 3]),
    lambda: np.array([0.0, np.nan, 1, 3]),
    lambda: np.arange(4)[::-1],
    lambda: np.int64(-3),
    lambda: np.full((4, 2), 2**63, np.uint64),
)
CLAIMS = ((2**40,), (2**31, 2**31), (-1, 2), (10**9, 8), (4, 2, 0), (4,) * 40)

part = st.floats(0, 1, exclude_max=True)
byte_changes = st.lists(
    st.tuples(st.integers(0, 5), part, part, st.binary(max_size=6)), min_size=1, max_size=3
)
value_changes = st.lists(st.tuples(part, part), min_size=1, max_size=3)


def change_bytes(content: bytes, changes: list[tuple[int, float, float, bytes]]) -> bytes:
    """Flip, cut off, insert, move, remove, or put another file in place."""
    for kind, first, second, extra in changes:
        at, other = int(first * len(content)), int(second * len(content))
        low, high = min(at, other), max(at, other)
        if kind == 0 and content:
            content = content[:at] + bytes([content[at] ^ (1 << int(second * 8))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + extra + content[at:]
        elif kind == 3:
            content = content[:at] + content[low:high][:64] + content[at + len(extra) :]
        elif kind == 4:
            content = content[:low] + content[min(high, low + 40) :]
        else:
            content = FOREIGN[int(first * len(FOREIGN))]
    return content


def change_values(name: str, content: bytes, changes: list[tuple[float, float]]) -> bytes:
    """Put other values into a valid file, in the way of its format."""
    suffix = name.rpartition(".")[2]
    change = {"npz": _change_npz, "npy": _change_npy, "csv": _change_csv, "toml": _change_toml}.get(suffix)
    if suffix in ("json", "boris"):
        return _change_json(content, changes)
    if suffix == "jsonl":
        lines = content.splitlines()
        at = int(changes[0][0] * len(lines))
        lines[at] = _change_json(lines[at], changes, indent=None)
        return b"\n".join(lines) + b"\n"
    if suffix == "eaf":
        return _change_xml(content, changes)
    return change(content, changes) if change is not None else _change_csv(content, changes)


def _pick(items: Any, share: float) -> Any:
    return items[min(int(share * len(items)), len(items) - 1)]  # a share is rounded up to 1 at times


def _change_json(content: bytes, changes: list[tuple[float, float]], indent: int | None = 1) -> bytes:
    """Replace values, keys and whole parts; what was sealed is sealed again, so that types are looked at."""
    root: Any = json.loads(content)
    is_sealed = isinstance(root, dict) and CHECKSUM in root
    for where, what in changes:
        places = [(holder, key) for holder, key in _places(root)]
        if not places:
            continue
        holder, key = _pick(places, where)
        kind = int(what * 10)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[_pick(WORDS, (what * 100) % 1)] = holder.pop(key)
        elif kind == 2 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        else:
            holder[key] = deepcopy(_pick(VALUES, (what * 10) % 1))
    if isinstance(root, dict) and is_sealed:
        if changes[0][1] < 0.5:
            root = {key: value for key, value in root.items() if "checksum" not in key}
        else:
            root = seal(root)
    return json.dumps(root, indent=indent).encode().replace(NESTED.encode(), DEEP.encode())


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inside):
        yield value, key
        yield from _places(each)


def _change_csv(content: bytes, changes: list[tuple[float, float]]) -> bytes:
    rows = [row for row in csv.reader(io.StringIO(content.decode(), newline="")) if row]
    for where, what in changes:
        row = _pick(rows, where)
        if not row:
            continue
        at = int((where * len(rows)) % 1 * len(row))
        if what < 0.1:
            del row[at]
        elif what < 0.2:
            rows.append(list(row))
        else:
            row[at] = _pick(WORDS, (what - 0.2) / 0.8)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _change_toml(content: bytes, changes: list[tuple[float, float]]) -> bytes:
    lines = content.decode().splitlines()
    words = (
        *WORDS,
        '"x"',
        "[]",
        "[1]",
        "{}",
        "{ a = 1 }",
        "-1.5",
        "[" * 3000,
        '["appearance", 3]',
        "2",
        "1e-9",
    )
    for where, what in changes:
        at = int(where * len(lines))
        key, equals, _ = lines[at].partition("=")
        lines[at] = f"{key}= {_pick(words, what)}" if equals else ""
    return "\n".join(lines).encode()


def _change_xml(content: bytes, changes: list[tuple[float, float]]) -> bytes:
    text = content.decode()
    for where, what in changes:
        found = list(re.finditer(r'"[^"]*"|>[^<]+<', text))
        if found:
            match = _pick(found, where)
            word = _pick(WORDS, what).replace('"', "&quot;")
            text = text[: match.start() + 1] + word + text[match.end() - 1 :]
    return text.encode()


def _change_npy(content: bytes, changes: list[tuple[float, float]]) -> bytes:
    """Another array, the same with other numbers in it, or a header that claims another shape."""
    try:
        array = np.load(io.BytesIO(content))
    except Exception:  # an earlier change has made it unreadable
        return content
    for where, what in changes:
        if what < 0.4:
            return _npy(_pick(ARRAYS, where)())
        if what < 0.6:
            return _claim(_pick(CLAIMS, where), array.dtype.str) + array.tobytes()
        if array.size and array.dtype.kind == "f":
            flat = array.reshape(-1)
            flat[int(where * len(flat))] = _pick((np.nan, np.inf, -1.0, 1e30, 0.0), (what - 0.6) / 0.4)
    return _npy(array)


def _change_npz(content: bytes, changes: list[tuple[float, float]]) -> bytes:
    with np.load(io.BytesIO(content)) as archive:
        members = {name: _npy(archive[name]) for name in archive.files}
    for where, what in changes:
        name = _pick([*members, "other"], where)
        if what < 0.15:
            members.pop(name, None)
        elif what < 0.3 and name in members:
            members[name] = change_bytes(members[name], [(int(where * 5), where, what * 3, b"\x00")])
        elif name in members:
            members[name] = _change_npy(members[name], [((where * 7) % 1, (what - 0.3) / 0.7)])
        else:
            members[name] = _npy(_pick(ARRAYS, (what - 0.15) / 0.85)())
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED if changes[0][0] < 0.5 else 0) as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    return stream.getvalue()


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def _claim(shape: tuple[int, ...], dtype: str) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()
