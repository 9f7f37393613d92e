"""Functions are compiled, run as they are, or refused, depending on what is installed."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from cycleback.compilation import compile_loops


def add_up(limit: int) -> int:
    total = 0
    for number in range(limit):
        total += number
    return total


def test_compiled_functions_return_the_same() -> None:
    pytest.importorskip("numba")
    functions = compile_loops(add_up)
    assert functions is not None and functions[0] is not add_up
    assert functions[0](100) == add_up(100) == 4950


def test_without_numba_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compile_loops(add_up) is None


def test_works_where_compiled_code_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    seen = {}

    def njit(cache: bool = False, **options: Any) -> Callable[[Any], Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        seen.update(options)
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert compile_loops(add_up, error_model="numpy") == (add_up,)
    assert seen == {"nogil": True, "error_model": "numpy"}
