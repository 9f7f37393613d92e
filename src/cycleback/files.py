"""Files written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cycleback.errors import OutputExistsError, UserError


@contextmanager
def whole_file(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to, which takes its name when the block ends well.

    An existing file is refused without `overwrite`; whatever goes wrong, nothing half-written stays.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or give another name with -o.")
    draft = path.with_name(f".{os.getpid()}.{path.name}")  # the same suffix: writers go by it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        os.replace(draft, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # the folder itself may be what failed
            draft.unlink()


def write_text(path: Path | str, text: str, *, overwrite: bool = False) -> Path:
    """Write a text file in UTF-8."""
    with whole_file(path, overwrite=overwrite) as draft:
        draft.write_text(text, "utf-8")
    return Path(path)


def write_bytes(path: Path | str, content: bytes, *, overwrite: bool = False) -> Path:
    """Write a file of bytes, a picture for example."""
    with whole_file(path, overwrite=overwrite) as draft:
        draft.write_bytes(content)
    return Path(path)
