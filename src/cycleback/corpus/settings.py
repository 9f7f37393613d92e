"""What all workers of a corpus have in common, chosen once and written down before the first video.

The weights of streams, and the side from which the action is seen, depend on other videos. For a corpus they
are chosen by a sample of its videos that depends on their names and a seed alone. So the result for a video
depends neither on the order nor on the number of workers, nor on where a run was interrupted.
"""

import hashlib
import heapq
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from cycleback.alignment.distances import spread_frames
from cycleback.corpus.sources import Item, fetch
from cycleback.data import VideoRecord
from cycleback.embeddings.embed import check_kinds
from cycleback.embeddings.features import MAX_WEIGHED, FusedFeatures
from cycleback.embeddings.shards import MANIFEST, video_id
from cycleback.embeddings.stream_choice import MAX_FRAMES, MAX_REFERENCES
from cycleback.errors import CheckpointError, DataError, EmbeddingError, OutputExistsError, UserError
from cycleback.files import atomic_file, write_json
from cycleback.models import Encoder, FusedBase, Precision, default_precision, fingerprint
from cycleback.models.inference.cpu import one_thread
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.progress import Counter, ignore
from cycleback.reading import Cursor, check_seal, read_json, seal
from cycleback.runs import find_run, load_encoder, published_models
from cycleback.runs.folder import PRETRAINED, choose_device, open_caches

SETTINGS, REFERENCES = "recipe.json", "references.safetensors"
WORKING = "working"
BEFORE_SETTINGS = {REFERENCES, WORKING, MANIFEST}  # what a run that was ended early may leave
FORMAT, VERSION = "cycleback-corpus", 1
MAX_TRIED = 3 * MAX_WEIGHED  # videos, until enough of them can be read to choose by
ADVICE = ". Choose another folder with -o, and embed the corpus again."


@dataclass(frozen=True)
class Settings:
    """The content of `recipe.json`."""

    run: str  # name of a model, or absolute path of a run folder
    encoder: str  # fingerprint, with the chosen weights
    precision: Precision
    device: str  # kind of device: "cpu" or "cuda"
    seed: int
    can_count_frames: bool = False
    streams: dict[str, float] = field(default_factory=dict)
    sample: tuple[str, ...] = ()  # ids of the videos by which streams were weighed


def check_corpus_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than a corpus."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    if folder.is_file() or (SETTINGS not in names and names - BEFORE_SETTINGS):
        raise OutputExistsError(
            f"{folder} has no {SETTINGS}, so it is no corpus, and is left as it is. "
            "Choose another folder with -o."
        )


def prepare_settings(
    folder: Path,
    items: Sequence[Item],
    *,
    run: str,
    device: str | None,
    precision: Precision | None,
    seed: int,
    cache: Path | None = None,
    progress: Counter = ignore,
) -> Settings:
    """Return the settings of a corpus; they are chosen at its first run.

    Args:
        folder: of the corpus.
        run: as in `load_encoder`.
        device, precision: of the workers; None: those of this machine. A corpus keeps its own.
        seed: of the sample by which streams are weighed.
        progress: called with (videos of the sample that are measured, videos of the sample).
    """
    run = name_run(run)
    if (folder / SETTINGS).is_file():
        known = read_settings(folder)
        _check_same(folder, known, run=run, precision=precision)
        return known
    chosen_device = choose_device(device)
    encoder = load_encoder(run)
    chosen = precision or default_precision(chosen_device)
    with one_thread():
        sample, references = _measure_sample(
            encoder.to(chosen_device), items, precision=chosen, seed=seed, cache=cache, progress=progress
        )
    settings = Settings(
        run,
        fingerprint(encoder),
        chosen,
        chosen_device.type,
        seed,
        encoder.embedder.can_count_frames,
        encoder.base.stream_weights if isinstance(encoder.base, FusedBase) else {},
        sample,
    )
    _write_references(folder, references)
    content = {"format": FORMAT, "version": VERSION, **asdict(settings)}
    write_json(folder / SETTINGS, seal({**content, "sample": list(sample)}))
    return settings


def name_run(run: str) -> str:
    """Return a name by which every machine finds a run: its own, or an absolute path."""
    if run == PRETRAINED or (run in published_models() and not Path(run).exists()):
        return run
    return str(find_run(run).absolute())


def _check_same(folder: Path, known: Settings, *, run: str, precision: Precision | None) -> None:
    for what, old, new in (("run", known.run, run), ("precision", known.precision, precision)):
        if new is not None and old != new:
            raise EmbeddingError(
                f"{folder} was begun with the {what} {old}, not {new}. Choose another folder with -o."
            )


def read_settings(folder: Path) -> Settings:
    """Read the settings of a corpus."""
    root = read_json(folder / SETTINGS, problem=EmbeddingError, advice=ADVICE)
    if root.at("format").text() != FORMAT or root.at("version").integer() != VERSION:
        raise root.wrong(f"expected {FORMAT} version {VERSION}")
    check_seal(root)
    precision = root.at("precision").text()
    if precision not in get_args(Precision):
        raise root.at("precision").expected("float32 or bfloat16")
    return Settings(
        root.at("run").text(),
        root.at("encoder").text(),
        cast(Precision, precision),
        root.at("device").text(),
        root.at("seed").integer(low=0),
        root.at("can_count_frames").flag(),
        {stream: _read_weight(weight) for stream, weight in root.find_items("streams")},
        tuple(id.text() for id in root.each("sample")),
    )


def _read_weight(weight: Cursor) -> float:
    value = weight.number()
    if value < 0:
        raise weight.expected("a weight of 0 or more")
    return value


def load_corpus_encoder(settings: Settings, device: torch.device) -> Encoder:
    """Load the encoder of a corpus with its weights of streams; it must be the one of the first run."""
    encoder = load_encoder(settings.run)
    if isinstance(encoder.base, FusedBase) and isinstance(encoder.embedder, PooledEmbedder):
        encoder.base.set_weights(settings.streams)
    if (found := fingerprint(encoder)) != settings.encoder:
        raise CheckpointError(
            f"the encoder {settings.run} is another one ({found}) than that of this corpus "
            f"({settings.encoder}). Install the same version everywhere, or choose another folder with -o."
        )
    return encoder.to(device)


def choose_sample(items: Sequence[Item], *, seed: int, count: int = MAX_TRIED) -> list[Item]:
    """Draw videos by the hashes of their names: neither their order nor other videos change a draw."""

    def draw(item: Item) -> str:
        return hashlib.sha256(f"{seed}/{item.name}".encode("utf-8", "surrogatepass")).hexdigest()

    return heapq.nsmallest(count, items, key=draw)


def _measure_sample(
    encoder: Encoder,
    items: Sequence[Item],
    *,
    precision: Precision,
    seed: int,
    cache: Path | None,
    progress: Counter,
) -> tuple[tuple[str, ...], list[NDArray[np.float32]]]:
    """Set the weights of streams by a sample; return its ids, and vectors (n, V) that tell the side."""
    _, streams = open_caches(encoder, cache, precision=precision)
    if not isinstance(streams, FusedFeatures):
        return (), []
    wanted = min(MAX_WEIGHED, len(items))
    with ExitStack() as opened:
        records: list[VideoRecord] = []
        problems: list[UserError] = []
        for item in choose_sample(items, seed=seed):
            if len(records) == wanted:
                break
            try:
                record = opened.enter_context(fetch(item, size=encoder.frame_size, fit=encoder.fit))
                check_kinds(encoder, [record])
                streams.fill([record])
                records.append(record)
            except UserError as error:
                problems.append(error)
            progress(len(records), wanted)
        if not records:
            raise DataError(f"none of {len(problems)} videos of the sample can be used: {problems[0]}")
        if isinstance(encoder.embedder, PooledEmbedder):
            streams.base.set_weights(streams.weigh(records))
        streams.orient(records)
        vectors = [_thin(streams.load_side(record)) for record in records[:MAX_REFERENCES]]
        return tuple(video_id(record.name) for record in records), vectors


def _thin(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return at most MAX_FRAMES frames of a video (N, V): more are not compared."""
    count = len(vectors)
    chosen: NDArray[np.float32] = (
        vectors if count <= MAX_FRAMES else vectors[spread_frames(count, MAX_FRAMES)]
    )
    return chosen


def _write_references(folder: Path, references: Sequence[NDArray[np.float32]]) -> None:
    from safetensors.numpy import save_file

    with atomic_file(folder / REFERENCES, overwrite=True) as draft:
        tensors = {f"{number:02d}": np.ascontiguousarray(rows) for number, rows in enumerate(references)}
        save_file(tensors, draft)


def read_references(folder: Path) -> list[NDArray[np.float32]]:
    """Read the vectors (n, V) of the videos that tell from which side the action is seen."""
    from safetensors.numpy import load_file

    path = folder / REFERENCES
    try:
        known = [rows for _, rows in sorted(load_file(path).items())]
    except Exception as error:  # safetensors raises its own types
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EmbeddingError(f"cannot read {path}: {reason[:200]}{ADVICE}") from error
    for rows in known:
        if rows.dtype != np.float32 or rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise EmbeddingError(f"cannot use {path}: it is damaged{ADVICE}")
    return known
