"""`log.jsonl`: one JSON object a line, one line every few updates."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOG_FILE = "log.jsonl"


class JsonlLog:
    """Appends records; on resume, forgets those after the step the run goes on from."""

    def __init__(self, folder: Path, *, resume_step: int = 0) -> None:
        self.path = folder / LOG_FILE
        kept = [record for record in read_log(folder) if record["step"] <= resume_step]
        temporary = folder / f".{LOG_FILE}.{os.getpid()}"
        temporary.write_text("".join(json.dumps(record) + "\n" for record in kept), "utf-8")
        os.replace(temporary, self.path)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """All whole records of a run; a last line cut off by a kill is dropped."""
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
