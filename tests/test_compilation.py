"""Functions are compiled, run as they are, or refused, depending on what is installed."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from cycleback import compilation
from cycleback.compilation import compile_loops, load_kernels
from cycleback.errors import SlowPathWarning, warn_slow_path


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


def test_kernels_that_cannot_be_compiled_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(kernels: object) -> None:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(compilation, "find_spec", lambda name: object())
    warn_slow_path.cache_clear()
    with pytest.warns(SlowPathWarning, match=r"the quick kernels .* \(Failed to find C compiler\)"):
        assert load_kernels("json", fail, purpose="the quick kernels") is None
    assert load_kernels("json", fail, purpose="the quick kernels") is None


def test_kernels_that_run_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "find_spec", lambda name: object())
    tried: list[str] = []
    found = load_kernels("json", lambda kernels: tried.append(kernels.__name__), purpose="the quick kernels")
    assert (found.__name__, tried) == ("json", ["json"])


def test_no_triton_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "find_spec", lambda name: None)
    assert load_kernels("json", print, purpose="the quick kernels") is None
