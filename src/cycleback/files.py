"""Write files and folders atomically: the result is there whole, or what was there before stays.

Everything the package writes goes through here. A draft is written beside the target, flushed to disk, and
renamed over it, so a crash or a full disk never leaves half a file under the final name.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from cycleback.errors import OutputExistsError, UserError, one_of


def check_output(path: Path | str, *, overwrite: bool = False, suffixes: Sequence[str] = ()) -> Path:
    """Refuse a path that cannot be written, before hours of work are spent on its content.

    Args:
        overwrite: whether an existing file or folder may be replaced.
        suffixes: allowed file name endings, such as .csv; empty allows any.
    """
    path = Path(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"cannot write {path}: expected a name ending in {one_of(suffixes)}")
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or choose another name with -o.")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {path}: no permission to write in {folder}")
    return path


@contextmanager
def atomic_file(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a draft path beside `path` to write to; it replaces `path` when the block succeeds."""
    path = check_output(path, overwrite=overwrite)
    draft = _draft_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        _flush(draft)
        os.replace(draft, path)
        _flush(path.parent)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # the folder itself may be what failed
            draft.unlink()


@contextmanager
def atomic_folder(path: Path | str, *, overwrite: bool = False, flush: bool = True) -> Iterator[Path]:
    """Yield an empty draft folder beside `path`; it replaces `path` when the block succeeds.

    A folder cannot be replaced in one step: the old one is renamed first and restored if the second rename
    fails. An empty folder counts as free.

    Args:
        flush: False for many files that can be made again, where flushing each would take minutes.
    """
    path = Path(path).absolute()
    is_empty = path.is_dir() and not any(path.iterdir())
    check_output(path, overwrite=overwrite or is_empty)
    draft = _draft_beside(path)
    try:
        draft.mkdir(parents=True)
        yield draft
        for file in draft.rglob("*") if flush else ():
            _flush(file)
        replace_folder(draft, path)
        _flush(path.parent)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def replace_folder(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`; an existing `target` is removed after the swap, or restored on failure."""
    if not target.exists():
        os.rename(draft, target)
        return
    old = _draft_beside(target)
    os.rename(target, old)
    try:
        os.rename(draft, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink()


def write_text(path: Path | str, text: str, *, overwrite: bool = False) -> Path:
    """Write a text file in UTF-8."""
    with atomic_file(path, overwrite=overwrite) as draft:
        draft.write_text(text, "utf-8")
    return Path(path)


def write_bytes(path: Path | str, content: bytes, *, overwrite: bool = False) -> Path:
    """Write a binary file."""
    with atomic_file(path, overwrite=overwrite) as draft:
        draft.write_bytes(content)
    return Path(path)


def write_json(path: Path | str, value: Any, *, overwrite: bool = False) -> Path:
    """Write a value as indented JSON."""
    return write_text(path, json.dumps(value, indent=1) + "\n", overwrite=overwrite)


def _draft_beside(path: Path) -> Path:
    """A hidden name in the same folder, with the same suffix because encoders choose a format by it."""
    return path.with_name(f".{uuid4().hex[:8]}.{path.name}")


def _flush(path: Path) -> None:
    """Force a file or folder to disk; some file systems cannot flush folders."""
    with suppress(OSError) if path.is_dir() else nullcontext():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
