import threading

import pytest

from cycleback.video.prefetch import prefetch


def test_items_come_in_order():
    assert list(prefetch(iter(range(100)), ahead=3)) == list(range(100))
    assert list(prefetch(iter([]), ahead=3)) == []


def test_error_comes_after_the_items_before_it():
    def items():
        yield 1
        yield 2
        raise KeyError("broken")

    found = []
    with pytest.raises(KeyError, match="broken"):
        for item in prefetch(items(), ahead=8):
            found.append(item)
    assert found == [1, 2]


def test_only_a_few_items_wait():
    made = []

    def items():
        for number in range(100):
            made.append(number)
            yield number

    ahead = prefetch(items(), ahead=4)
    next(ahead)
    ahead.close()
    assert len(made) <= 8


def test_thread_ends_when_the_caller_stops_early():
    before = threading.active_count()
    ahead = prefetch(iter(range(1000)), ahead=2)
    next(ahead)
    ahead.close()
    assert threading.active_count() == before
