import pytest

from cycleback.errors import MissingDependencyError, one_of, require


@pytest.mark.parametrize(
    ("choices", "words"), [(["a"], "a"), (["a", "b"], "a or b"), (("a", "b", "c"), "a, b or c")]
)
def test_choices_are_read_aloud(choices: list[str], words: str) -> None:
    assert one_of(choices) == words


def test_a_missing_package_says_how_to_get_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"a map needs no_such: pip install 'cycleback\[plot\]'"):
        require("no_such.thing", extra="plot", purpose="a map")
