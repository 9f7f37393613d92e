"""Progress without a terminal: a line every ten seconds on stderr, and a last one."""

import io
from types import SimpleNamespace

from rich.console import Console

from cycleback.cli.bars import Display, counter, progress_callbacks


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def display() -> tuple[Display, Clock, io.StringIO]:
    stream, clock = io.StringIO(), Clock()
    return Display(Console(file=stream, width=40), now=clock), clock, stream


def test_a_line_every_ten_seconds_says_rate_and_time_left() -> None:
    shown, clock, stream = display()
    move = counter(shown, "decoding videos")
    for second in range(0, 26):
        clock.seconds = second
        move(2 * second, 200)
    assert stream.getvalue().splitlines() == [
        "decoding videos: 20 of 200, 2.0/s, 1 min 30 s left",
        "decoding videos: 40 of 200, 2.0/s, 1 min 20 s left",
    ]


def test_slow_items_are_told_in_seconds_each_and_the_end_is_told_once() -> None:
    shown, clock, stream = display()
    move = counter(shown, "embedding")
    for second, done in ((0, 0), (20, 1), (40, 2), (41, 2)):
        clock.seconds = second
        move(done, 2)
    assert stream.getvalue().splitlines() == [
        "embedding: 1 of 2, 20.0 s each, 20 s left",
        "embedding: 2 of 2, 20.0 s each, 0 s left",
    ]


def test_short_work_prints_nothing() -> None:
    shown, clock, stream = display()
    move = counter(shown, "embedding")
    for done in range(5):
        clock.seconds = done
        move(done, 4)
    assert stream.getvalue() == ""


def test_training_lines_carry_loss_and_cycles_and_count_from_where_it_resumed() -> None:
    shown, clock, stream = display()
    move = progress_callbacks(shown).on_training("tcc", 1000)
    for step, second in ((501, 0), (550, 5), (600, 10)):
        clock.seconds = second
        move(SimpleNamespace(step=step, loss=0.5, cycle_rate=0.25, backwards=0.5))  # type: ignore[arg-type]
    assert stream.getvalue().splitlines() == [
        "learning tcc: 600 of 1000, 9.9/s, 40 s left, loss 0.500, 25% cycle back, 50% backwards"
    ]


def test_stages_are_named() -> None:
    shown, clock, stream = display()
    callbacks = progress_callbacks(shown)
    callbacks.on_stage(0, 3, "tcc")
    clock.seconds = 60.0
    callbacks.on_stage(1, 3, "tcn")
    assert stream.getvalue() == "methods: 1 of 3, 60.0 s each, 2 min 0 s left, 2 of 3: tcn\n"
