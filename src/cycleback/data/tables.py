"""Small tables in text files (labels.csv, splits.csv): read strictly, written whole or not at all."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cycleback.errors import DataError
from cycleback.files import write_text

DELIMITERS = ",;\t"  # a spreadsheet saves "csv" with semicolons in half of Europe


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table as (line number, {column: text}), empty lines left out.

    Column names are compared without case and outer spaces, further columns are kept, and a byte-order mark
    or one of `,` `;` tab between the cells does not matter.

    Raises:
        DataError: the file cannot be read, or one of `columns` is missing, or a row has too few cells.
    """
    text = _read_text(path)
    header = text.partition("\n")[0].strip()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(DELIMITERS, key=header.count))
    found = [cell.strip().lower() for cell in next(reader, [])]
    missing = [column for column in columns if column not in found]
    if missing:
        raise DataError(
            f"{path}: no column {missing[0]!r} in its first line {header[:80]!r}. "
            f"Expected columns {','.join(columns)}."
        )
    for cells in reader:
        line = reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) < len(found):
            raise DataError(
                f"{path}, line {line}: {len(cells)} cells, expected {len(found)} ({','.join(found)})."
            )
        yield line, {column: cell.strip() for column, cell in zip(found, cells, strict=False)}


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not a UTF-8 text file (byte {error.start}). Save it as CSV in UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def write_table(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]], *, overwrite: bool = False
) -> Path:
    """Write a table, whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return write_text(path, text.getvalue(), overwrite=overwrite)
