import warnings

import pytest

from cycleback.errors import MissingDependencyError, SlowPathWarning, one_of, require, warn_slow_path


@pytest.mark.parametrize(
    ("choices", "words"), [(["a"], "a"), (["a", "b"], "a or b"), (("a", "b", "c"), "a, b or c")]
)
def test_choices_are_read_aloud(choices: list[str], words: str) -> None:
    assert one_of(choices) == words


def test_a_missing_package_says_how_to_get_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"a map needs no_such: pip install 'cycleback\[plot\]'"):
        require("no_such.thing", extra="plot", purpose="a map")


def test_a_kernel_that_cannot_be_built_is_named_once() -> None:
    warn_slow_path.cache_clear()
    with pytest.warns(SlowPathWarning, match=r"the test kernel is unavailable \(no compiler\).*slower path"):
        warn_slow_path("the test kernel", "no compiler\nmore lines")
    with warnings.catch_warnings(record=True) as again:
        warn_slow_path("the test kernel", "no compiler\nmore lines")
    assert not again
