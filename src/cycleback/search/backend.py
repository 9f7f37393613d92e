"""Approximate search in very many frames with LanceDB, an optional package.

INDEX/lance-1/ holds a table with a row per frame, beside the shards of the index. It is made when it is first
needed, and searched on disk, so it need not fit into memory. Rows are added in one batch per shard; the table
is compacted once after that, and its index (IVF-PQ: cells of near rows, in each of them compressed copies) is
made anew only when the table has doubled. Rows of removed videos stay until their shard goes.

`find` ranks the candidates exactly, so distances are always exact and only a hit may be missed. Up to 50,000
frames every row is compared and none is missed.

Shapes: R rows of a shard, D embedding size.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import EmbeddingError, UserError, one_of, require
from cycleback.files import atomic_folder, hold_lock, write_text
from cycleback.search.corpus import BLOCK_ROWS, Corpus, Floats, Rows, Shard, Tags
from cycleback.search.hits import Backend, Filter
from cycleback.search.index import LANCE, LOCK, SearchIndex, shard_number

BACKENDS = ("exact", "lancedb")
ALL_ROWS = 50_000  # up to here every row is compared; beyond, only the rows of the nearest cells
CELLS_PROBED = 32
REFINED = 4  # so many times the rows asked for are compared uncompressed
NUMBERS_PER_CODE = 4  # of an embedding, compressed to one byte
TRAINING_ROWS = 64  # per cell, to find the cells
TRAINING_PASSES = 15
TABLE, STATE = "frames", "state.txt"
SLACK = 1e-6  # times are rounded in the table; `find` cuts exactly


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
    """The LanceDB table of an index, brought up to date when it is opened."""

    def __init__(self, index: SearchIndex) -> None:
        os.environ.setdefault("LANCE_LOG", "error")  # it logs harmless warnings to stderr while it builds
        lancedb: Any = require("lancedb", extra="search", purpose="the lancedb backend")
        self.corpus, folder = index.corpus, index.folder / LANCE
        self._firsts = _first_rows(index)
        if _read_state(folder) != index.manifest.key:
            _update(lancedb, index.folder)
        self._table: Any = lancedb.connect(str(folder)).open_table(TABLE)

    def nearest_rows(self, query: Floats, count: int, where: Filter) -> Rows:
        """Return rows near `query` (D,), nearest first; only those that pass the filter, but for names."""
        asked = self._table.search(_pad(query[None])[0]).nprobes(CELLS_PROBED).refine_factor(REFINED)
        if condition := _condition(where):
            asked = asked.where(condition, prefilter=True)
        found = asked.limit(count).select(["shard", "place", "_distance"]).to_arrow()
        shards, places = (found[name].to_numpy() for name in ("shard", "place"))
        known = np.isin(shards, list(self._firsts))
        rows = [
            self._firsts[shard] + place for shard, place in zip(shards[known], places[known], strict=True)
        ]
        return np.array(rows, dtype=np.int64)


def _first_rows(index: SearchIndex) -> dict[int, int]:
    """Return the first row of the corpus of each shard, by the shard's number."""
    numbers = map(shard_number, index.manifest.shards)
    return dict(zip(numbers, index.corpus.offsets.tolist(), strict=False))


def _read_state(folder: Path) -> str:
    """Return the key of the manifest that a table was brought up to; "" if there is no whole table."""
    try:
        return (folder / STATE).read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def _update(lancedb: Any, home: Path) -> None:
    """Make the table have the rows of all shards that an index has now, and make no table twice."""
    folder = home / LANCE
    try:
        (home / LOCK).touch()
    except OSError as error:
        raise UserError(f"cannot make the table of {home}: {error.strerror}. Search without it.") from error
    with hold_lock(home / LOCK):
        index = SearchIndex.load(home)
        if _read_state(folder) != index.manifest.key:
            _add_rows(lancedb, index, folder)


def _add_rows(lancedb: Any, index: SearchIndex, folder: Path) -> None:
    """Build the table, or add and delete the rows by which it differs."""
    if not _read_state(folder):
        with atomic_folder(folder, overwrite=True) as draft:
            table = lancedb.connect(str(draft)).create_table(
                TABLE,
                data=_batches(index.corpus, range(len(index.corpus.shards))),
                schema=_schema(index.corpus),
            )
            _index_rows(table)
            write_text(draft / STATE, index.manifest.key)
        return
    try:
        table = lancedb.connect(str(folder)).open_table(TABLE)
        wanted = {shard_number(name): place for place, name in enumerate(index.manifest.shards)}
        known: set[int] = set()
        for batch in table.search().select(["shard"]).to_batches():
            known |= set(np.unique(batch["shard"].to_numpy()).tolist())
        if gone := known - {*wanted}:
            table.delete(f"shard IN ({', '.join(map(str, sorted(gone)))})")
        if new := [place for number, place in wanted.items() if number not in known]:
            reader: Any = require("pyarrow", extra="search", purpose="the lancedb backend").RecordBatchReader
            table.add(reader.from_batches(_schema(index.corpus), _batches(index.corpus, new)))
            _index_rows(table)
        write_text(folder / STATE, index.manifest.key, overwrite=True)
    except (RuntimeError, ValueError) as error:  # what LanceDB raises for a damaged table
        raise EmbeddingError(
            f"cannot use {folder}: {error}. Delete that folder; it is made again."
        ) from error


def _index_rows(table: Any) -> None:
    """Index and compact: anew if most rows are new, else only what was added."""
    ivf: Any = require("lancedb.index", extra="search", purpose="the lancedb backend")
    total = table.count_rows()
    names = [each.name for each in table.list_indices() if each.columns == ["vector"]]
    old = table.index_stats(names[0]).num_indexed_rows if names else 0
    if total > ALL_ROWS and total >= 2 * old:
        size = table.schema.field("vector").type.list_size
        config = ivf.IvfPq(
            distance_type="l2",
            num_partitions=int(total**0.5),  # then choosing cells costs about as much as searching one
            num_sub_vectors=size // NUMBERS_PER_CODE,
            sample_rate=TRAINING_ROWS,
            max_iterations=TRAINING_PASSES,
        )
        table.create_index("vector", config=config)
        table.create_index("action", config=ivf.Bitmap())
        table.create_index("tags", config=ivf.LabelList())
    table.optimize()


def _schema(corpus: Corpus) -> Any:
    arrow: Any = require("pyarrow", extra="search", purpose="the lancedb backend")
    vectors = arrow.list_(arrow.float32(), _padded(corpus.size))
    return arrow.schema(
        {
            "shard": arrow.int32(),
            "place": arrow.int32(),  # of the row in its shard
            "seconds": arrow.float32(),
            "share": arrow.float32(),  # of its video, by time
            "action": arrow.string(),
            "tags": arrow.list_(arrow.string()),
            "vector": vectors,
        }
    )


def _batches(corpus: Corpus, places: Sequence[int]) -> Iterator[Any]:
    """Yield the rows of the shards at `places` as record batches; rows of removed videos are left out."""
    arrow: Any = require("pyarrow", extra="search", purpose="the lancedb backend")
    schema = _schema(corpus)
    for place in places:
        shard = corpus.shards[place]
        shard.check(*shard.videos)
        number = corpus.source_numbers[place]
        owners, shares = _describe_rows(shard)
        actions = arrow.array([video.action for video in shard.videos], arrow.string())
        tags = arrow.array([_words(corpus.tags.get(video.name, {})) for video in shard.videos])
        for start in range(0, len(owners), BLOCK_ROWS):
            rows = start + np.flatnonzero(owners[start : start + BLOCK_ROWS] >= 0)
            own = arrow.array(owners[rows])
            vectors = arrow.array(_pad(shard.embeddings[rows]).ravel())
            columns = [
                arrow.array(np.full(len(rows), number, np.int32)),
                arrow.array(rows.astype(np.int32)),
                arrow.array(shard.times[rows].astype(np.float32)),
                arrow.array(shares[rows]),
                actions.take(own),
                tags.cast(arrow.list_(arrow.string())).take(own),
                arrow.FixedSizeListArray.from_arrays(vectors, _padded(corpus.size)),
            ]
            yield arrow.record_batch(columns, schema=schema)


def _describe_rows(shard: Shard) -> tuple[NDArray[np.int32], Floats]:
    """Return the position of each row's video in the shard (R,), -1 for none, and the share of its time."""
    owners = np.full(len(shard.embeddings), -1, dtype=np.int32)
    shares = np.zeros(len(shard.embeddings), dtype=np.float32)
    for place, video in enumerate(shard.videos):
        times = shard.times[video.rows]
        owners[video.rows] = place
        shares[video.rows] = (times - times[0]) / max(float(times[-1] - times[0]), 1e-9)
    return owners, shares


def _words(tags: Tags) -> list[str]:
    return [f"{key}={value}" for key, value in tags.items()]


def _condition(where: Filter) -> str:
    """Write a filter as SQL, but for names and videos left out; times are a little wider."""
    parts = [] if where.action is None else [f"action = {_quote(where.action)}"]
    parts += [f"array_has(tags, {_quote(word)})" for word in _words(where.tags)]
    if where.between != (0.0, 1.0):
        parts += _within("share", where.between)
    if where.seconds is not None:
        parts += _within("seconds", where.seconds)
    return " AND ".join(parts)


def _within(column: str, limits: tuple[float, float]) -> list[str]:
    low, high = limits
    slack = SLACK * (1 + max(abs(low), abs(high)))
    return [f"{column} >= {low - slack!r}", f"{column} <= {high + slack!r}"]


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _padded(size: int) -> int:
    return -(-size // (2 * NUMBERS_PER_CODE)) * 2 * NUMBERS_PER_CODE


def _pad(rows: Floats) -> Floats:
    """Append zeros to rows (n, D), which change no distance, so that codes divide them evenly."""
    missing = _padded(rows.shape[1]) - rows.shape[1]
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))) if missing else rows, dtype=np.float32)
