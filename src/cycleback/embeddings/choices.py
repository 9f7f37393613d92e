"""Choices that were made for some videos, such as the weights of streams, kept in the cache.

A choice is found by everything it depends on: what was measured of the videos, and the code that chooses.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cycleback.arrays import checksum_array
from cycleback.data.cache import explain_full_cache
from cycleback.data.cache_room import CHOICES
from cycleback.files import write_json

CODE = (
    "embeddings.stream_choice",
    "alignment.bounds",
    "alignment.distances",
    "alignment.dtw",
    "models.streams",
)


def recall(root: Path, question: object, answer: Callable[[], Any]) -> Any:
    """Return the kept answer to a question, or answer it and keep that in the cache in `root`.

    Question and answer are JSON values.
    """
    key = hashlib.sha256(json.dumps([question, _digest_code()], sort_keys=True).encode()).hexdigest()
    path = root / CHOICES / f"{key}.json"
    try:
        value = json.loads(path.read_text("utf-8"))["answer"]
        with suppress(OSError):  # a cache of somebody else
            os.utime(path)
        return value
    except (OSError, ValueError, KeyError, TypeError):
        value = answer()
    with explain_full_cache(root):
        write_json(path, {"answer": value}, overwrite=True)
    return value


def describe_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[object]]:
    """Return the shape and the checksum of each array."""
    return {name: [list(array.shape), checksum_array(array)] for name, array in arrays.items()}


@cache
def _digest_code() -> str:
    """Return a digest of the code that weighs streams and finds mirrored videos."""
    files = [import_module(f"cycleback.{name}").__file__ for name in CODE]
    return hashlib.sha256(b"".join(Path(str(file)).read_bytes() for file in files)).hexdigest()
