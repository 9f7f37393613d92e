"""An embedding set as a folder: `embeddings.npy`, `times.npy`, `index.json` and, with labels, `phases.npy`.

Shapes: N frames of a whole video, D embedding size.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.embeddings.index import SetIndex
from cycleback.errors import EmbeddingError, OutputExistsError

INDEX = "index.json"


def read_folder(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float64], SetIndex]:
    """Memory-mapped embeddings (sum N, D) and times (sum N,), and their index."""
    index = _read_index(folder / INDEX)
    embeddings = _read_array(folder / "embeddings.npy", np.float32, 2)
    times = _read_array(folder / "times.npy", np.float64, 1)
    frames = sum(entry.length for entry in index.entries.values())
    if not len(embeddings) == len(times) == frames:
        rows = f"{len(embeddings)} embeddings and {len(times)} times for {frames} frames"
        raise EmbeddingError(f"{folder} is damaged: {rows} in {INDEX}. Embed the videos again.")
    return embeddings, times, index


def write_folder(folder: Path, write: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let `write` fill a hidden folder, then give it its name: there is never half a set."""
    folder = folder.absolute()
    _refuse_existing(folder, overwrite=overwrite)
    draft = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}.tmp")
    try:
        draft.mkdir(parents=True)
        write(draft)
        _move(draft, folder)
    except OSError as error:
        raise EmbeddingError(f"cannot write embeddings to {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_index(folder: Path, index: SetIndex) -> None:
    """Write `index.json`."""
    (folder / INDEX).write_text(json.dumps(index.to_json(), indent=1), encoding="utf-8")


def new_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """A .npy file of that shape to be filled in place, so that memory does not grow with it."""
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def _read_index(path: Path) -> SetIndex:
    try:
        return SetIndex.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        missing = f"no embedding set in {path.parent} (cannot read {path.name}: {error.strerror})"
        raise EmbeddingError(f"{missing}. Make one with: cycleback embed") from error
    except ValueError as error:  # JSON and Unicode errors are ValueErrors too
        raise EmbeddingError(f"cannot use {path}: {error}. Embed the videos again.") from error


def _read_array(path: Path, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = "it is missing" if isinstance(error, FileNotFoundError) else f"it is damaged: {error}"
        raise EmbeddingError(f"cannot read {path} ({reason}). Embed the videos again.") from error
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        expected = f"{np.dtype(dtype)} with {ndim} dimension{'s' * (ndim > 1)}"
        raise EmbeddingError(f"cannot use {path}: expected {expected}, got {found}. Embed the videos again.")
    return array


def _refuse_existing(folder: Path, *, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise OutputExistsError(f"{folder} exists already. Give another folder, or overwrite it.")
    if not (folder / INDEX).is_file():
        raise OutputExistsError(f"{folder} is no embedding set and is not overwritten. Give another folder.")


def _move(draft: Path, folder: Path) -> None:
    """Put `draft` where `folder` may be; a folder cannot be replaced in one step, so it steps aside first."""
    aside = draft.with_name(draft.name + ".old")
    if folder.exists():
        os.rename(folder, aside)
    os.rename(draft, folder)
    shutil.rmtree(aside, ignore_errors=True)
