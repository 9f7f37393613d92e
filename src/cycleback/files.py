"""Write files and folders atomically: the result is there whole, or what was there before stays.

Everything the package writes goes through here. A draft is written beside the target, flushed to disk, and
renamed over it, so a crash or a full disk never leaves half a file under the final name.

Overwriting replaces results, never sources. A file is replaced if it is no input: neither an input file, by
any path or link, nor a file in an input folder. A folder is replaced if it is known by its marker, and holds
nothing but what this program writes into such a folder.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from cycleback.errors import OutputExistsError, UserError, one_of

SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")  # file managers put them into any folder


def check_output(
    path: Path | str,
    *,
    overwrite: bool = False,
    suffixes: Sequence[str] = (),
    inputs: Iterable[Path | str] = (),
) -> Path:
    """Refuse a path that cannot be written, before hours of work are spent on its content.

    Args:
        overwrite: whether an existing file or folder may be replaced.
        suffixes: allowed file name endings, such as .csv; empty allows any.
        inputs: files and folders that are read; they are never replaced.
    """
    path = Path(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"cannot write {path}: expected a name ending in {one_of(suffixes)}")
    _refuse_inputs(path, inputs)
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or choose another name with -o.")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {path}: no permission to write in {folder}")
    return path


def join_inside(folder: Path, name: str) -> Path:
    """Return the path of the file `name` below `folder`; refuse a name that leads out of it."""
    path = Path(os.path.normpath(folder / name))
    if Path(name).is_absolute() or not path.is_relative_to(os.path.normpath(folder)):
        raise UserError(f"cannot write {name!r} into {folder}: the name leads out of that folder. Rename it.")
    return folder / name


def check_folder(
    path: Path | str,
    *,
    marker: str,
    is_own: Callable[[str], bool],
    overwrite: bool = False,
    inputs: Iterable[Path | str] = (),
) -> Path:
    """Refuse a folder that cannot be made, or that may not be replaced; an empty folder counts as free.

    Args:
        marker: the file that tells what kind of folder it is.
        is_own: tells whether this program writes a file of this name into such a folder.
        overwrite: whether an existing folder of this kind may be replaced.
        inputs: files and folders that are read; they are never replaced.
    """
    path = Path(path)
    names = sorted(os.listdir(path)) if path.is_dir() else []
    check_output(path, overwrite=overwrite or (path.is_dir() and not names), inputs=inputs)
    if path.exists() and not path.is_dir():
        raise OutputExistsError(f"{path} is a file, not a folder. Choose another name with -o.")
    if names and marker not in names:
        raise OutputExistsError(
            f"{path} has no {marker}, so this program did not make it and does not replace it. "
            "Choose another name with -o."
        )
    foreign = [name for name in names if name not in SYSTEM_FILES and not is_own(name)]
    if foreign:
        raise OutputExistsError(
            f"{path} holds {foreign[0]!r}, which this program did not write, and is not replaced. "
            "Move that file, or choose another name with -o."
        )
    return path


def _refuse_inputs(path: Path, inputs: Iterable[Path | str]) -> None:
    """Refuse an output that exists and is an input, contains one, or is a file in an input folder."""
    if not path.exists():
        return
    target = path.resolve()
    for source in map(Path, inputs):
        if not source.exists():
            continue
        if path.samefile(source):
            raise OutputExistsError(
                f"{path} is an input, and inputs are never replaced. Choose another name with -o."
            )
        if source.resolve().is_relative_to(target):
            raise OutputExistsError(
                f"{path} contains the input {source}, and inputs are never replaced. "
                "Choose another name with -o."
            )
        if path.is_file() and source.is_dir() and _is_inside(path, source):
            raise OutputExistsError(
                f"{path} is a file of the input folder {source}, whose files are never replaced. "
                "Choose another name with -o, or remove that file yourself."
            )


def _is_inside(file: Path, folder: Path) -> bool:
    """Return whether `file`, or another hard link of it, lies below `folder`."""
    if file.resolve().is_relative_to(folder.resolve()):
        return True
    return file.stat().st_nlink > 1 and any(
        other.is_file() and file.samefile(other) for other in folder.rglob("*")
    )


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
