"""Produce items in a background thread while earlier ones are used."""

from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
POLL_S = 0.05  # how often a blocked producer checks whether the consumer has stopped


def prefetch(items: Iterable[Item], *, depth: int) -> Generator[Item, None, None]:
    """Yield the same items in order, with up to `depth` of them produced ahead of use.

    Errors are re-raised in order. When the consumer stops early, the thread has ended before this generator
    is closed, so the caller can then close whatever `items` reads from.
    """
    ready: Queue[tuple[Item] | BaseException | None] = Queue(maxsize=depth)
    stopped = Event()

    def put(result: tuple[Item] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(Full):
                return ready.put(result, timeout=POLL_S)

    def produce() -> None:
        try:
            for item in items:
                put((item,))
                if stopped.is_set():
                    break
            put(None)
        except BaseException as error:  # re-raised by the consumer
            put(error)
        finally:
            if isinstance(items, Generator):
                items.close()

    thread = Thread(target=produce, daemon=True)
    thread.start()
    try:
        while (result := ready.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result[0]
    finally:
        stopped.set()
        thread.join()
