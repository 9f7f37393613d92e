import threading
import time
from collections.abc import Iterator

import pytest

from cycleback.prefetch import prefetch


def test_items_come_in_order() -> None:
    assert list(prefetch(iter(range(50)), depth=3)) == list(range(50))
    assert list(prefetch([], depth=1)) == []


def test_the_next_items_are_made_while_the_last_is_used() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    found = prefetch(items(), depth=2)
    assert next(found) == 0
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:  # two that are ready, one that waits for a place
        time.sleep(0.01)
    assert made == [0, 1, 2, 3]
    found.close()


def test_an_error_comes_where_its_item_would_have() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    found = prefetch(items(), depth=4)
    assert next(found) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)


def test_stopping_early_ends_the_thread_and_closes_the_items() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    before = threading.active_count()
    found = prefetch(items(), depth=1)
    next(found)
    found.close()
    assert closed.is_set() and threading.active_count() == before
