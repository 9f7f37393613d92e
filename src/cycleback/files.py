"""Files written whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cycleback.errors import OutputExistsError, UserError, one_of


def check_output(path: Path | str, *, overwrite: bool = False, suffixes: Sequence[str] = ()) -> Path:
    """Refuse a place where nothing can be written, before hours of work are spent on what goes there.

    Args:
        overwrite: whether an existing file or folder may be replaced.
        suffixes: how the name must end, such as .csv; any way where none is given.
    """
    path = Path(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"cannot write {path}: expected a name ending in {one_of(suffixes)}")
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or give another name with -o.")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {path}: no permission to write in {folder}")
    return path


@contextmanager
def whole_file(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to, which takes its name when the block ends well.

    An existing file is refused without `overwrite`; whatever goes wrong, nothing half-written stays.
    """
    path = check_output(path, overwrite=overwrite)
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
