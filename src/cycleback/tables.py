"""Read and write small tables: labels.csv, splits.csv, results, and the CSV files of other tools.

When a table is read, column names are compared in lower case, without surrounding spaces. Commas, semicolons
and tabs all separate cells. A byte-order mark, empty lines and lines before the header are skipped.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cycleback.errors import DataError
from cycleback.files import check_output, write_json, write_text
from cycleback.reading import read_text

TABLE_SUFFIXES = (".csv", ".json")
DELIMITERS = ",;\t"  # many European spreadsheets save "csv" with semicolons

Row = dict[str, str]  # column in lower case -> text of the cell


def read_table(path: Path | str, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """Read the rows of a file as (line number, row); see `parse_table`."""
    return parse_table(read_text(path), str(path), columns)


def parse_table(text: str, place: str, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """Parse the rows below the header, which is the first line with all of `columns`.

    Args:
        place: the file, for error messages.
        columns: the columns that the table must have; others are kept too.

    Returns:
        (line number, row) of every row that is not empty.

    Raises:
        DataError: there is no such header, a row has too few cells, or the text is not a table.
    """
    lines = list(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    skipped, delimiter = _find_header(lines, place, columns)
    reader = csv.reader(lines[skipped:], delimiter=delimiter)
    rows: list[tuple[int, Row]] = []
    try:
        header = [cell.strip().lower() for cell in next(reader)]
        for cells in reader:
            line = skipped + reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) < len(header):
                raise DataError(
                    f"{place}, line {line}: {len(cells)} cells, expected {len(header)} ({','.join(header)})."
                )
            rows.append((line, {column: cell.strip() for column, cell in zip(header, cells, strict=False)}))
    except csv.Error as error:
        raise DataError(f"{place}, line {skipped + reader.line_num}: not a table ({error}).") from error
    return rows


def write_table(
    path: Path | str,
    rows: Sequence[Mapping[str, Any]],
    *,
    columns: Sequence[str] = (),
    overwrite: bool = False,
) -> Path:
    """Write rows as .csv or .json, by the suffix of `path`.

    Args:
        columns: the header of the .csv; by default the keys of the first row.
    """
    path = check_output(path, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    if path.suffix.lower() == ".json":
        return write_json(path, list(rows), overwrite=overwrite)
    return write_text(path, format_csv(rows, columns=columns), overwrite=overwrite)


def format_csv(rows: Sequence[Mapping[str, Any]], *, columns: Sequence[str] = ()) -> str:
    """Format rows as CSV with a header; by default the columns are the keys of the first row."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns or list(rows[0] if rows else ()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def replace_commas(text: str, delimiter: str) -> str:
    """Return the text of a CSV table with another delimiter."""
    changed = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(text, newline=""))
    csv.writer(changed, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return changed.getvalue()


def _find_header(lines: Sequence[str], place: str, columns: Sequence[str]) -> tuple[int, str]:
    """Return how many lines come before the header, and its delimiter."""
    for number, line in enumerate(lines):
        for delimiter in DELIMITERS:
            if set(columns) <= set(_header_cells(line, delimiter)):
                return number, delimiter
    first = lines[0].strip() if lines else ""
    found = _header_cells(first, max(DELIMITERS, key=first.count))
    missing = next(column for column in columns if column not in found)
    raise DataError(
        f"{place}: no column {missing!r} in its first line {first[:80]!r}. "
        f"Expected columns {','.join(columns)}."
    )


def _header_cells(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]
