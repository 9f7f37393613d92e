"""Approximate search in very many frames with LanceDB, an optional package.

LanceDB keeps a copy of all rows in a table beside the shards of an index. The table is built at its first use
and again when the index has changed; it is searched on disk and need not fit into memory. `find` ranks its
candidates exactly, so distances are always exact and only a hit may be missed. Up to 50,000 frames every row
is compared and none is missed.

Shapes: D embedding size.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.errors import UserError, one_of, require
from cycleback.files import atomic_folder
from cycleback.search.corpus import Corpus, Floats, Rows
from cycleback.search.hits import Backend
from cycleback.search.index import SearchIndex

BACKENDS = ("exact", "lancedb")
ALL_ROWS = 50_000  # up to here every row is compared; beyond, only the rows of the nearest cells
CELLS_PROBED = 32
TABLE = "frames"


def check_backend(name: str) -> None:
    """Refuse a name that is not a backend."""
    if name == "faiss":
        raise UserError("the faiss backend was removed. Use lancedb: it builds its table at the first query.")
    if name not in BACKENDS:
        raise UserError(f"unknown search backend {name!r}; expected {one_of(BACKENDS)}")


def open_backend(name: str, index: SearchIndex) -> Backend | None:
    """Open a backend by name for an index; None for "exact", the search without a backend."""
    check_backend(name)
    return None if name == "exact" else LanceBackend(index)


class LanceBackend:
    """The LanceDB table of an index."""

    def __init__(self, index: SearchIndex) -> None:
        os.environ.setdefault("LANCE_LOG", "error")  # it logs harmless warnings to stderr while it builds
        lancedb: Any = require("lancedb", extra="search", purpose="the lancedb backend")
        folder = index.folder / f"lance-{index.manifest.key}"
        if not folder.exists():
            _build_table(lancedb, index.corpus, folder)
        self._table: Any = lancedb.connect(str(folder)).open_table(TABLE)

    def nearest_rows(self, query: Floats, count: int) -> Rows:
        """Return the rows nearest to `query` (D,), nearest first."""
        found = self._table.search(query).nprobes(CELLS_PROBED).limit(count).select(["row", "_distance"])
        return np.asarray(found.to_arrow()["row"].to_numpy(), dtype=np.int64)


def _build_table(lancedb: Any, corpus: Corpus, folder: Path) -> None:
    ivf: Any = require("lancedb.index", extra="search", purpose="the lancedb backend")
    arrow: Any = require("pyarrow", extra="search", purpose="the lancedb backend")
    vectors = arrow.list_(arrow.float32(), corpus.size)
    schema = arrow.schema([("row", arrow.int64()), ("vector", vectors)])

    def batches() -> Iterator[Any]:
        for start, rows in corpus.blocks():
            numbers = arrow.array(np.arange(start, start + len(rows)))
            flat = arrow.array(np.ascontiguousarray(rows).ravel())
            columns = [numbers, arrow.FixedSizeListArray.from_arrays(flat, corpus.size)]
            yield arrow.record_batch(columns, schema=schema)

    with atomic_folder(folder, overwrite=True) as draft:
        table = lancedb.connect(str(draft)).create_table(TABLE, data=batches(), schema=schema)
        total = int(corpus.offsets[-1])
        if total > ALL_ROWS:
            cells = int(total**0.5)  # then choosing cells costs about as much as searching one
            table.create_index("vector", config=ivf.IvfFlat(distance_type="l2", num_partitions=cells))
