"""Make the next things ready in another thread while the last one is used."""

from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
PATIENCE_S = 0.05  # between looks whether anyone still waits


def ahead(items: Iterable[Item], *, depth: int) -> Generator[Item, None, None]:
    """The same items in the same order, up to `depth` of them made before they are asked for.

    An error in the making is raised where its item would have come. Whoever stops early stops the thread.
    """
    ready: Queue[tuple[Item] | BaseException | None] = Queue(maxsize=depth)
    stopped = Event()

    def put(found: tuple[Item] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(Full):
                return ready.put(found, timeout=PATIENCE_S)

    def make() -> None:
        try:
            for item in items:
                put((item,))
                if stopped.is_set():
                    break
            put(None)
        except BaseException as error:  # told where it is waited for
            put(error)
        finally:
            if isinstance(items, Generator):
                items.close()

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        stopped.set()
        thread.join()
