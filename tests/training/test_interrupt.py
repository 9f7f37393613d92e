import os
import signal
import threading
from collections.abc import Iterator

import pytest

from cycleback.training import interrupt
from cycleback.training.interrupt import stop_on_interrupt


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """A process started in the background ignores Ctrl-C; these tests are about one that does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_only_asks() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt() as interrupted:
        assert not interrupted()
        press_ctrl_c()
        press_ctrl_c()  # a launcher's echo of the same press
        assert interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_later_ctrl_c_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "SAME_PRESS_SECONDS", -1.0)
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        press_ctrl_c()
        press_ctrl_c()


def test_other_threads_leave_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with stop_on_interrupt() as interrupted:
            seen.extend([interrupted(), signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False, True]
