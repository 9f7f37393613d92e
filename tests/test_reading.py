import json
import os
from pathlib import Path

import pytest

from cycleback.errors import DataError, EmbeddingError
from cycleback.reading import Cursor, check_seal, parse_json, read_text, seal

TEXT = '{"a": [{"b": 1.5}, {"b": "x", "c": null}], "t": " "}'


def test_the_place_of_a_wrong_value_is_its_way_from_the_root() -> None:
    second = list(parse_json(TEXT, "f.json").each("a"))[1]
    with pytest.raises(DataError, match=r'^f\.json, a\[1\], b: expected a number, got "x"$'):
        second.at("b").number()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda root: root.at("no"), r"f\.json: no 'no' here"),
        (lambda root: root.at("t").text(), r'f\.json, t: expected a text, got " "'),
        (lambda root: root.at("t").at("x"), r'f\.json, t: expected an object, got " "'),
        (lambda root: list(root.each()), r"f\.json: expected a list, got \{"),
        (
            lambda root: next(root.each("a")).at("b").integer(),
            r"a\[0\], b: expected a whole number, got 1\.5",
        ),
    ],
)
def test_what_is_not_as_expected_says_what_was_found(wrong, words: str) -> None:
    with pytest.raises(DataError, match=words):
        wrong(parse_json(TEXT, "f.json"))


def test_null_and_empty_are_not_known() -> None:
    second = list(parse_json(TEXT, "f.json").each("a"))[1]
    assert (
        second.find("c") is None
        and second.optional_number("c") is None
        and second.optional_integer("d") is None
    )


def test_text_that_is_no_json_names_the_line() -> None:
    with pytest.raises(DataError, match=r"f\.json, line 2: not JSON \(Expecting value\)"):
        parse_json('{"a":\n}', "f.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "not JSON"),
        ('{"a": 1_0}', "line 1: not JSON"),
    ],
)
def test_hostile_json_is_one_line(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        parse_json(text, "f.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "1_0", True, None, [], 10**400, "1e999", "0x10", ""])
def test_what_is_no_number_is_none(value: object) -> None:
    with pytest.raises(DataError, match=r"f, x: expected a number, got|f: no 'x' here"):
        Cursor({"x": value}, "f").at("x").number()


@pytest.mark.parametrize(("value", "low"), [(1.5, 0), (-1, 0), (2.0**54, 0), ("3.1", 0)])
def test_what_is_no_whole_number_in_range_is_refused(value: object, low: int) -> None:
    with pytest.raises(DataError, match="expected a whole number"):
        Cursor(value, "f").integer(low=low)


@pytest.mark.parametrize("value", ["\x1b[31m", "a\x00b", "\ud800", " ", 3, ["a"]])
def test_a_text_can_be_written_anywhere(value: object) -> None:
    with pytest.raises(DataError, match="expected a text"):
        Cursor(value, "f").text()


def test_the_error_and_the_advice_are_those_of_the_file() -> None:
    with pytest.raises(EmbeddingError, match=r"^f: no 'x' here\. Embed again\.$"):
        parse_json("{}", "f", problem=EmbeddingError, advice=". Embed again.").at("x")


def test_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: it is a pipe or a device, not a file"):
        read_text(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        read_text(tmp_path)


def test_a_sealed_object_tells_any_change() -> None:
    sealed = json.loads(json.dumps(seal({"a": [1, 2.5], "é": None})))
    check_seal(Cursor(sealed, "f"))
    check_seal(Cursor({"a": 1}, "f"))  # of an earlier version
    for change in ({"a": [1, 2.0]}, {"b": 1}, {"checksum": "0"}, {"checksum": 3}):
        with pytest.raises(DataError, match="f: it was changed or damaged since it was written"):
            check_seal(Cursor(sealed | change, "f"))
