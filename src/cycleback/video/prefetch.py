"""Produce items in a thread while earlier ones are used."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class _End:
    """Comes after the last item; `error` is what stopped the producer, if anything did."""

    error: BaseException | None = None


def prefetch(items: Iterator[Item], *, ahead: int) -> Iterator[Item]:
    """The same items, made by a thread that keeps up to `ahead` of them waiting.

    An error in the thread is raised here, in its place. When the caller stops early, the thread has ended
    before this generator is closed, so what `items` works on can be closed after it.
    """
    waiting: queue.Queue[Item | _End] = queue.Queue(ahead)
    stop = threading.Event()
    thread = threading.Thread(target=_produce, args=(items, waiting, stop), daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stop.set()
        while thread.is_alive():
            with suppress(queue.Empty):
                waiting.get(timeout=0.01)


def _produce(items: Iterator[Item], waiting: "queue.Queue[Item | _End]", stop: threading.Event) -> None:
    end = _End()
    try:
        for item in items:
            waiting.put(item)
            if stop.is_set():
                break
    except BaseException as error:
        end = _End(error)
    waiting.put(end)
