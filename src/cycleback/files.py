"""Write files and folders atomically: the result is there whole, or what was there before stays.

Everything the package writes goes through here. A draft is written beside the target, flushed to disk, and
renamed over it, so a crash or a full disk never leaves half a file under the final name. Drafts are locked
while they are written: those of killed processes are recognised by that, and removed by the next writer.

Overwriting replaces results, never sources. A file is replaced if it is no input: neither an input file, by
any path or link, nor a file in an input folder. The command line replaces a file only if it is as this
program wrote it, which an extended attribute of the file tells. A folder is replaced if it is known by its
marker, and holds nothing but what this program writes into such a folder.
"""

import ctypes
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from cycleback.errors import OutputExistsError, UserError, one_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")  # file managers put them into any folder
DRAFT_NAME = re.compile(r"\.(?P<kind>draft|old)-[0-9a-f]{8}\.(?P<target>.+)", re.DOTALL)
ABANDONED_S = 24 * 3600.0  # where files cannot be locked, an older draft is that of a killed process
OWN_MARK = "user.cycleback"  # extended attribute of a file that this program wrote
_SWEPT: set[Path] = set()  # folders in which this process has removed old drafts


def check_output(
    path: Path | str,
    *,
    overwrite: bool = False,
    suffixes: Sequence[str] = (),
    inputs: Iterable[Path | str] = (),
    only_own: bool = False,
) -> Path:
    """Refuse a path that cannot be written, before hours of work are spent on its content.

    Args:
        overwrite: whether an existing file or folder may be replaced.
        suffixes: allowed file name endings, such as .csv; empty allows any.
        inputs: files and folders that are read; they are never replaced.
        only_own: replace a file only if it is as this program wrote it.
    """
    path = Path(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"cannot write {path}: expected a name ending in {one_of(suffixes)}")
    _refuse_inputs(path, inputs)
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or choose another name with -o.")
    if only_own and path.is_file() and not is_as_written(path):
        raise OutputExistsError(
            f"{path} is not as this program wrote it, and --overwrite replaces only that. "
            "Choose another name with -o, or remove that file yourself."
        )
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {path}: no permission to write in {folder}")
    return path


def is_as_written(path: Path) -> bool:
    """Tell whether this program wrote a file and nobody changed it since; an empty file is nobody's.

    It is taken for ours where the system keeps no extended attributes.
    """
    status = path.stat()
    try:
        return status.st_size == 0 or os.getxattr(path, OWN_MARK) == _own_mark(status)
    except AttributeError:  # not Linux
        return True
    except OSError as error:
        return error.errno != errno.ENODATA


def _mark_as_own(path: Path) -> None:
    with suppress(AttributeError, OSError):
        os.setxattr(path, OWN_MARK, _own_mark(path.stat()))


def _own_mark(status: os.stat_result) -> bytes:
    return f"{status.st_size} {status.st_mtime_ns}".encode()


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
def atomic_file(path: Path | str, *, overwrite: bool = False, flush: bool = True) -> Iterator[Path]:
    """Yield a draft path beside `path` to write to; it replaces `path` when the block succeeds.

    Args:
        flush: False for a file with a checksum that can be made again, where flushing takes longer than that.
    """
    path = check_output(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _claim_draft(path, _create_file) as draft:
            with _name_targets({draft: path}):
                yield draft
            _mark_as_own(draft)
            if flush:
                _flush(draft)
            check_output(path, overwrite=overwrite)  # another process may have been faster
            os.replace(draft, path)
        if flush:
            _flush(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


@contextmanager
def atomic_files(
    folder: Path | str, names: Sequence[str], *, overwrite: bool = False
) -> Iterator[list[Path]]:
    """Yield a draft path for each of the files `names` in `folder`: all of them appear, or none.

    A kill while the finished drafts are being renamed may leave some of them, each whole.
    """
    folder = Path(folder)
    paths = [check_output(join_inside(folder, name), overwrite=overwrite) for name in names]
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _claim_draft(folder / "files", Path.mkdir) as place:
            drafts = [place / f"{number}-{path.name}" for number, path in enumerate(paths)]
            with _name_targets(dict(zip(drafts, paths, strict=True))):
                yield drafts
            for draft in drafts:
                _mark_as_own(draft)
                _flush(draft)
            _rename_all(drafts, paths)
        for parent in {path.parent for path in paths}:
            _flush(parent)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty after success
                folder.rmdir()


@contextmanager
def _name_targets(targets: Mapping[Path, Path]) -> Iterator[None]:
    """Let errors of the block name the targets of drafts (draft -> target)."""
    try:
        yield
    except UserError as error:
        for draft, target in targets.items():
            if str(draft) in str(error):
                raise type(error)(str(error).replace(str(draft), str(target))) from error.__cause__
        raise


def _rename_all(drafts: Sequence[Path], paths: Sequence[Path]) -> None:
    """Rename every draft to its path; if one fails, take back the others."""
    done: list[tuple[Path, Path]] = []
    try:
        for draft, path in zip(drafts, paths, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not (path.exists() and _exchange(draft, path)):
                os.replace(draft, path)
            done.append((draft, path))
    except OSError:
        for draft, path in reversed(done):
            if not (draft.exists() and _exchange(draft, path)):
                os.replace(path, draft)
        raise


@contextmanager
def atomic_folder(path: Path | str, *, overwrite: bool = False, flush: bool = True) -> Iterator[Path]:
    """Yield an empty draft folder beside `path`; it replaces `path` when the block succeeds.

    An empty folder counts as free.

    Args:
        flush: False for many files that can be made again, where flushing each would take minutes.
    """
    path = Path(path).absolute()

    def check() -> None:
        is_empty = path.is_dir() and not any(path.iterdir())
        check_output(path, overwrite=overwrite or is_empty)

    check()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _claim_draft(path, Path.mkdir) as draft:
            with _name_targets({draft: path}):
                yield draft
            for file in draft.rglob("*") if flush else ():
                _flush(file)
            check()  # another process may have been faster
            replace_folder(draft, path)
        _flush(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


def replace_folder(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`; an existing `target` is removed after the swap, or restored on failure."""
    if not target.exists():
        os.rename(draft, target)
        return
    if _exchange(draft, target):
        _remove(draft)
        return
    old = target.with_name(f".old-{uuid4().hex[:8]}.{target.name}")
    with hold_lock(target):  # which is `old` after the first rename: nobody puts it back meanwhile
        os.rename(target, old)
        try:
            os.rename(draft, target)
        except OSError:
            os.rename(old, target)
            raise
    _remove(old)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files or folders in one step, where the system can: Linux."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path}: {error.strerror or error}")


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


@contextmanager
def _claim_draft(target: Path, create: Callable[[Path], object]) -> Iterator[Path]:
    """Create a draft beside `target` and hold its lock; it is removed if the block did not rename it.

    Its name is hidden, and ends like that of the target because encoders choose a format by it. Drafts of
    killed processes are removed first.
    """
    if target.parent not in _SWEPT:
        _SWEPT.add(target.parent)
        remove_drafts(target.parent)
    while True:
        draft = target.with_name(f".draft-{uuid4().hex[:8]}.{target.name}")
        try:
            create(draft)
            with hold_lock(draft) as is_held:
                if is_held:  # else another process has just removed it as abandoned
                    yield draft
                    return
        finally:
            _remove(draft)


def _create_file(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))


@contextmanager
def hold_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file or folder until the block ends, or this process does, even by a kill.

    Yields whether the lock is held and the path still is what was locked. Where the system cannot lock, it
    counts as held.
    """
    if fcntl is None:
        yield True
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        is_held = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_held = os.path.samestat(os.fstat(handle), path.stat())
        except (BlockingIOError, FileNotFoundError):
            is_held = False
        except OSError:  # some network file systems cannot lock
            pass
        yield is_held
    finally:
        os.close(handle)


def is_abandoned(path: Path) -> bool:
    """Tell whether no living process holds the lock of a file or folder; without locks, its age tells."""
    try:
        age = time.time() - path.stat().st_mtime
        if fcntl is None:
            return age > ABANDONED_S
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False  # just renamed or removed
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > ABANDONED_S
    finally:
        os.close(handle)
    return True


def remove_drafts(folder: Path) -> None:
    """Remove the drafts of killed processes in a folder; what they were replacing is put back."""
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            found = DRAFT_NAME.fullmatch(path.name)
            if found is None or not is_abandoned(path):
                continue
            target = folder / found["target"]
            if found["kind"] == "old" and not target.exists():
                os.rename(path, target)
            else:
                _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or folder if it is there."""
    with suppress(OSError):  # the folder that holds it may be what failed
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink()


def _flush(path: Path) -> None:
    """Force a file or folder to disk; some file systems cannot flush folders."""
    with suppress(OSError) if path.is_dir() else nullcontext():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
