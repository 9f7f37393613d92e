"""Progress of long work on stderr: bars in a terminal, a line every ten seconds anywhere else.

Stdout stays clean for results and `--json`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cycleback.progress import Counter
from cycleback.progress import Progress as Callbacks

if TYPE_CHECKING:
    from cycleback.training import StepReport

LINE_SECONDS = 10.0  # between two lines of one task where there is no terminal
UPDATES_PER_NOTE = 5  # the cycle rate beside the bar costs time: compute it every few updates


@dataclass
class Task:
    """One kind of work: when and at which item it started, and when it was last printed."""

    started: float
    first: int
    printed: float
    bar: TaskID | None = None
    has_lines: bool = False  # whether lines were printed that a last one must complete


@dataclass
class Display:
    """Shows the progress of several tasks, as bars or as lines; nothing before the first one starts."""

    console: Console
    now: Callable[[], float] = time.monotonic
    bars: Progress | None = None
    tasks: dict[str, Task] = field(default_factory=dict)

    def move(self, description: str, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` items of a task are finished; its first move adds the task."""
        if description not in self.tasks:
            task = self.tasks[description] = Task(self.now(), done, self.now())
            if self.bars is not None:
                self.bars.start()
                task.bar = self.bars.add_task(escape(description), total=total, note="")
        task = self.tasks[description]
        if self.bars is not None and task.bar is not None:
            self.bars.update(task.bar, completed=done, total=total, note=escape(note))
        elif self.now() - task.printed >= LINE_SECONDS or (done >= total and task.has_lines):
            task.printed, task.has_lines = self.now(), done < total
            rate = (done - task.first) / max(self.now() - task.started, 1e-9)
            left = f", {_duration((total - done) / rate)} left" if rate > 0 else ""
            speed = f"{rate:.1f}/s" if rate >= 1 or rate == 0 else f"{1 / rate:.1f} s each"
            line = f"{description}: {done} of {total}, {speed}{left}" + (f", {note}" if note else "")
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def progress_bars() -> Iterator[Display]:
    """Show progress while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Display(console)
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    bars = Progress(*columns, console=console)
    try:
        yield Display(console, bars=bars)
    finally:
        if bars.live.is_started:
            bars.stop()


def counter(display: Display, description: str) -> Counter:
    """Return a callback (done, total) that moves one task."""
    return lambda done, total: display.move(description, done, total)


def training_bar(
    display: Display, num_updates: int, description: str = "learning"
) -> "Callable[[StepReport], None]":
    """Return a callback for every update, which shows loss, cycle rate and backward matches, all smoothed."""
    from cycleback.alignment.cycles import MAX_BACKWARD_SHARE

    smooth: dict[str, float] = {}

    def move(report: "StepReport") -> None:
        if report.step % UPDATES_PER_NOTE == 0 or not smooth:
            values = {"loss": report.loss, "cycles": report.cycle_rate, "backwards": report.backwards}
            for name, value in values.items():
                smooth[name] = value if name not in smooth else 0.8 * smooth[name] + 0.2 * value
        backwards = smooth["backwards"]
        warning = f", {backwards:.0%} backwards" if backwards > MAX_BACKWARD_SHARE else ""
        note = f"loss {smooth['loss']:.3f}, {smooth['cycles']:.0%} cycle back{warning}"
        display.move(description, report.step, num_updates, note)

    return move


def progress_callbacks(display: Display) -> Callbacks:
    """Return callbacks for training, comparing and the demo, each shown as a task of its own."""

    def on_stage(done: int, total: int, name: str) -> None:
        note = f"{done + 1} of {total}: {name}" if done < total else name
        display.move("methods", done, total, note)

    return Callbacks(
        on_stage=on_stage,
        on_render=counter(display, "rendering videos"),
        on_frames=counter(display, "decoding videos"),
        on_features=counter(display, "computing features"),
        on_report=counter(display, "writing report"),
        on_training=lambda name, total: training_bar(display, total, f"learning {name}".strip()),
    )
