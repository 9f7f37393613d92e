"""Progress bars on stderr, so that stdout stays clean for results and `--json`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from cycleback.training import StepReport


SHOWN_BACKWARDS = 0.05  # of the pairs of videos, before it is shown
EVERY = 5  # updates between looks at the numbers beside the bar


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A stack of bars with time left; nothing is printed until the first one moves."""
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    bars = Progress(*columns, console=Console(stderr=True))
    try:
        yield bars
    finally:
        if bars.live.is_started:
            bars.stop()


def counter(bars: Progress, description: str) -> Callable[[int, int], None]:
    """A callback (done, total) that moves a bar of its own, made when it is first called."""
    tasks: list[int] = []

    def move(done: int, total: int) -> None:
        if not tasks:
            bars.start()
            tasks.append(bars.add_task(description, total=total, note=""))
        bars.update(tasks[0], completed=done, total=total)  # type: ignore[arg-type]

    return move


def training_bar(bars: Progress, num_updates: int) -> Callable[["StepReport"], None]:
    """A callback for every update: loss, cycle rate and pairs matched backwards, smoothed, beside the bar."""
    tasks: list[int] = []
    smooth: dict[str, float] = {}

    def move(report: "StepReport") -> None:
        if not tasks:
            bars.start()
            tasks.append(bars.add_task("learning", total=num_updates, note=""))
        if report.step % EVERY == 0 or not smooth:
            found = {"loss": report.loss, "cycles": report.cycle_rate, "backwards": report.backwards}
            for name, value in found.items():
                smooth[name] = value if name not in smooth else 0.8 * smooth[name] + 0.2 * value
        turned = f", {smooth['backwards']:.0%} backwards" if smooth["backwards"] > SHOWN_BACKWARDS else ""
        note = f"loss {smooth['loss']:.3f}, {smooth['cycles']:.0%} cycle back{turned}"
        bars.update(tasks[0], completed=report.step, note=note)  # type: ignore[arg-type]

    return move
