import pytest

from cycleback.annotations.cursor import parse_json
from cycleback.errors import DataError

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
