"""`log.jsonl`: one JSON object a line, one line every few updates."""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from cycleback.training.failures import saving
from cycleback.training.report import StepReport
from cycleback.training.tensorboard import TensorBoardLog

LOG_FILE = "log.jsonl"


class JsonlLog:
    """Appends records; on resume, forgets those after the step the run goes on from."""

    def __init__(self, folder: Path, *, resume_step: int = 0) -> None:
        self.path = folder / LOG_FILE
        kept = [record for record in read_log(folder) if record["step"] <= resume_step]
        temporary = folder / f".{LOG_FILE}.{os.getpid()}"
        with saving(folder):
            try:
                temporary.write_text("".join(json.dumps(record) + "\n" for record in kept), "utf-8")
                os.replace(temporary, self.path)
            finally:
                temporary.unlink(missing_ok=True)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        with saving(self.path.parent), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


class RunLog(ExitStack):
    """Where the lines of the log go: `log.jsonl`, and TensorBoard if asked for.

    Args:
        folder: the run folder; None: nowhere.
        resume_step: updates after which the run goes on.
        tensorboard: whether to write for TensorBoard, too.
    """

    def __init__(self, folder: Path | None, *, resume_step: int = 0, tensorboard: bool = False) -> None:
        super().__init__()
        self._folder, self._resume_step, self._wants_board = folder, resume_step, tensorboard
        self._lines: JsonlLog | None = None
        self._board: TensorBoardLog | None = None

    def __enter__(self) -> Self:
        if self._folder is not None:
            if self._wants_board:
                self._board = self.enter_context(TensorBoardLog(self._folder, resume_step=self._resume_step))
            self._lines = JsonlLog(self._folder, resume_step=self._resume_step)
        return super().__enter__()

    def write(self, record: Mapping[str, Any], report: StepReport | None = None) -> None:
        """Write one line; `report` adds pictures where they can be shown."""
        if self._lines is not None:
            self._lines.write(record)
        if self._board is not None:
            self._board.write(record, report)


def read_log(folder: Path) -> list[dict[str, Any]]:
    """All whole records of a run; a last line cut off by a kill is dropped.

    A record has "step" and either "loss", its parts and the rest, or "held_out_cycle_rate".
    """
    path = folder / LOG_FILE
    if not path.exists():
        return []
    records = []
    for line in path.read_text("utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records
