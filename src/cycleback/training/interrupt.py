"""Ctrl-C, and the signal with which clusters end a job, as requests to stop after the update at hand."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SAME_PRESS_SECONDS = 1.0  # a launcher passes on the signal that the terminal has sent already


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Whether a stop was asked for; a second Ctrl-C, a second or more after the first, stops at once."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    first = 0.0

    def request(number: int, frame: object) -> None:
        nonlocal first
        if not requested.is_set():
            first = time.monotonic()
            requested.set()
        elif time.monotonic() - first > SAME_PRESS_SECONDS:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, request)
    try:
        yield requested.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
