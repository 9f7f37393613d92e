"""Approximate search for very many frames: faiss in memory, LanceDB on disk. Both are optional packages.

Each keeps a copy of all rows beside the shards of an index, made when it is first asked for and made anew
when the index has changed. What they find is ranked exactly afterwards, so distances are always exact; only a
hit may be missed. Up to 50,000 frames they look at every row, and miss none.

Shapes: R rows, D embedding size.
"""

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.errors import UserError, one_of, require
from cycleback.files import atomic_file
from cycleback.search.corpus import Corpus, Floats, Rows, blocks
from cycleback.search.hits import Backend
from cycleback.search.index import SearchIndex

BACKENDS = ("exact", "faiss", "lancedb")
ALL_ROWS = 50_000  # up to here every row is compared; beyond, those of the nearest cells
CELLS_PROBED = 32
TRAINING_ROWS = 64  # a cell: what k-means learns the cells from


def open_backend(name: str, index: SearchIndex) -> Backend | None:
    """The backend `name` for an index; None for "exact", which needs none."""
    if name == "exact":
        return None
    if name == "faiss":
        return FaissBackend(index)
    if name == "lancedb":
        return LanceBackend(index)
    raise UserError(f"no search backend {name!r}: expected {one_of(BACKENDS)}")


class FaissBackend:
    """faiss: all rows, or cells of rows beyond 50,000, mapped from one file."""

    def __init__(self, index: SearchIndex) -> None:
        self._faiss: Any = require("faiss", extra="search", purpose="the faiss backend")
        path = index.folder / f"faiss-{index.manifest.key}"
        if not path.exists():
            with atomic_file(path, overwrite=True) as draft:
                built = _built_faiss(self._faiss, index.corpus)
                self._faiss.write_index(built, str(draft))
        self._rows: Any = self._faiss.read_index(str(path), self._faiss.IO_FLAG_MMAP)

    def nearest_rows(self, query: Floats, count: int) -> Rows:
        """The nearest rows, nearest first."""
        options = {}
        if hasattr(self._rows, "nprobe"):
            options["params"] = self._faiss.SearchParametersIVF(nprobe=CELLS_PROBED)
        _, rows = self._rows.search(query[None], count, **options)
        return np.asarray(rows[0][rows[0] >= 0], dtype=np.int64)


class LanceBackend:
    """LanceDB: a table on disk, which need not fit into memory."""

    def __init__(self, index: SearchIndex) -> None:
        lancedb: Any = require("lancedb", extra="scale", purpose="the lancedb backend")
        folder = index.folder / f"lance-{index.manifest.key}"
        if not folder.exists():
            _build_lance(lancedb, index.corpus, folder)
        self._table: Any = lancedb.connect(str(folder)).open_table("frames")

    def nearest_rows(self, query: Floats, count: int) -> Rows:
        """The nearest rows, nearest first."""
        found = self._table.search(query).nprobes(CELLS_PROBED).limit(count).select(["row", "_distance"])
        return np.asarray(found.to_arrow()["row"].to_numpy(), dtype=np.int64)


def _built_faiss(faiss: Any, corpus: Corpus) -> Any:
    total = int(corpus.offsets[-1])
    if total <= ALL_ROWS:
        built = faiss.IndexFlatL2(corpus.size)
    else:
        cells = _cells(total)
        quantizer = faiss.IndexFlatL2(corpus.size)
        built = faiss.IndexIVFFlat(quantizer, corpus.size, cells)
        built.train(_spread_rows(corpus, cells * TRAINING_ROWS))
    for _, rows in blocks(corpus):
        built.add(np.ascontiguousarray(rows))
    return built


def _build_lance(lancedb: Any, corpus: Corpus, folder: Path) -> None:
    """Write the table into a hidden folder, then give it its name."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        batches, schema = _arrow_batches(corpus)
        table = lancedb.connect(str(draft)).create_table("frames", data=batches, schema=schema)
        total = int(corpus.offsets[-1])
        if total > ALL_ROWS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                table.create_index(metric="l2", index_type="IVF_FLAT", num_partitions=_cells(total))
        os.rename(draft, folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _arrow_batches(corpus: Corpus) -> tuple[Iterator[Any], Any]:
    """Batches of (row, vector) and their schema."""
    arrow: Any = require("pyarrow", extra="scale", purpose="the lancedb backend")
    vectors = arrow.list_(arrow.float32(), corpus.size)
    schema = arrow.schema([("row", arrow.int64()), ("vector", vectors)])

    def batches() -> Iterator[Any]:
        for start, rows in blocks(corpus):
            flat = arrow.array(np.ascontiguousarray(rows).ravel())
            columns = [
                arrow.array(np.arange(start, start + len(rows))),
                arrow.FixedSizeListArray.from_arrays(flat, corpus.size),
            ]
            yield arrow.record_batch(columns, schema=schema)

    return batches(), schema


def _cells(total: int) -> int:
    """About the square root of the rows: then choosing cells costs as much as searching one."""
    return max(1, int(np.sqrt(total)))


def _spread_rows(corpus: Corpus, count: int) -> Floats:
    """About `count` rows spread evenly over all."""
    step = max(1, int(corpus.offsets[-1]) // count)
    return np.concatenate([rows[-start % step :: step] for start, rows in blocks(corpus)])
