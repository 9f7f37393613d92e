"""The frame-to-frame table of an alignment, as rows and as files other programs read."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment
from cycleback.files import check_output, write_text

TABLE_SUFFIXES = (".csv", ".json")
COLUMNS = ("frame_a", "seconds_a", "frame_b", "seconds_b", "confidence")


def alignment_rows(
    alignment: Alignment, *, times_a: NDArray[np.float64], times_b: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """One row a frame of A: where it is in B, when that is, and how sure we are."""
    return [
        {
            "frame_a": frame,
            "seconds_a": round(float(times_a[frame]), 6),
            "frame_b": int(match),
            "seconds_b": round(float(times_b[match]), 6),
            "confidence": round(float(sure), 4),
        }
        for frame, (match, sure) in enumerate(zip(alignment.indices, alignment.confidence, strict=True))
    ]


def write_table(path: Path | str, rows: list[dict[str, Any]], *, overwrite: bool = False) -> Path:
    """Write rows as .csv or .json, whole or not at all."""
    path = check_output(path, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    text = json.dumps(rows, indent=1) + "\n" if path.suffix.lower() == ".json" else _csv(rows)
    return write_text(path, text, overwrite=overwrite)


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
