"""Embed a corpus: list it, skip what is there, hand out the rest, and write the manifest."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cycleback.corpus import local
from cycleback.corpus.settings import Settings, check_corpus_folder, prepare_settings, read_settings
from cycleback.corpus.sources import Item, list_corpus
from cycleback.corpus.worker import clear_notes
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.shards import (
    MANIFEST,
    ManifestRow,
    find_shard,
    pack_shards,
    read_manifest,
    write_manifest,
)
from cycleback.errors import UserError
from cycleback.files import check_output, hold_lock
from cycleback.models import Precision
from cycleback.progress import Counter, ignore
from cycleback.runs.folder import PRETRAINED

LOCAL, RAY = "local", "ray"
PASS_VIDEOS = 16  # embedded together by one worker
MIN_PASSES = 4  # per worker, so that all end at about the same time
MAX_PASSES = 20_000  # of a corpus: a scheduler keeps each in memory

OnVideos = Callable[[int, int, str], None]
"""Called with (videos done, videos, note about speed and failures)."""


@dataclass(frozen=True)
class CorpusReport:
    """What became of a corpus."""

    folder: Path
    rows: tuple[ManifestRow, ...]  # in the order of the corpus
    new: int  # videos that this run embedded
    seconds: float  # of this run

    @property
    def failed(self) -> list[ManifestRow]:
        """The videos that have no shard."""
        return [row for row in self.rows if row.error]

    @property
    def frames(self) -> int:
        """Frames of all videos."""
        return sum(row.frames for row in self.rows)


def embed_corpus(
    corpus: str | Path,
    output: Path | str,
    *,
    run: str | Path = PRETRAINED,
    on: str = LOCAL,
    workers: int | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    seed: int = 0,
    cache: Path | None = None,
    progress: OnVideos = lambda done, total, note: None,
) -> CorpusReport:
    """Embed every video of a corpus into a folder of shards; a second call continues a first one.

    Videos that have a shard are skipped, and videos that failed are tried again. A video that cannot be used
    is a line of the report with its error.

    Args:
        corpus: a folder, LeRobot data set, .tar archive, .txt list of paths or URLs, or URL.
        output: folder of the corpus; with several machines, on a disk that all of them see.
        run: as in `load_encoder`.
        on: "local" for worker processes here, "ray" for a Ray cluster (that of RAY_ADDRESS, or one that is
            started for it), or the address of a cluster, such as "10.0.0.1:6379".
        workers: default: one per GPU, or per core.
        device: as in `prepare_settings`.
        precision: as in `prepare_settings`.
        seed: as in `prepare_settings`.
        cache: folder of decoded frames on each machine; default: the user's.
    """
    folder, started = Path(output).absolute(), time.monotonic()
    check_corpus_folder(folder)
    items = list_corpus(corpus)
    with _lock(folder):
        clear_notes(folder)
        settings = prepare_settings(
            folder,
            items,
            run=str(run),
            device=device,
            precision=precision,
            seed=seed,
            cache=cache,
            progress=lambda done, total: progress(0, len(items), f"choosing streams by {total} videos"),
        )
        rows = _find_done(folder, items)
        kept = len(rows)
        show = _Reporter(progress, len(items), rows)
        try:
            run_on = _choose_runner(on, folder, settings, workers=workers, cache=cache)
            for done in run_on([item for item in items if item.id not in rows]):
                for row in done:
                    rows[row.id] = row
                show(done)
        finally:
            write_manifest(folder, (rows[item.id] for item in items if item.id in rows))
            clear_notes(folder)
    ordered = tuple(rows[item.id] for item in items)
    new = sum(not row.error for row in ordered) - kept
    return CorpusReport(folder, ordered, new, time.monotonic() - started)


def pack_corpus(
    folder: Path | str, output: Path | str, *, overwrite: bool = False, progress: Counter = ignore
) -> EmbeddingSet:
    """Copy the embeddings of a corpus into one embedding set, and open it; memory stays constant."""
    settings = read_settings(Path(folder))
    return pack_shards(
        Path(folder),
        Path(output),
        can_count_frames=settings.can_count_frames,
        streams=settings.streams,
        overwrite=overwrite,
        progress=progress,
    )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keep a second run out of a corpus."""
    check_output(folder, overwrite=True)
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder, wait=False) as is_held:
        if not is_held:
            raise UserError(
                f"another run embeds into {folder}. Wait for it, or choose another folder with -o."
            )
        yield


def _find_done(folder: Path, items: Sequence[Item]) -> dict[str, ManifestRow]:
    """Return the lines of the videos that have a shard; the seconds are those of the last manifest."""
    known: dict[str, ManifestRow] = {}
    if (folder / MANIFEST).is_file():
        try:
            known = {row.id: row for row in read_manifest(folder)}
        except UserError:
            known = {}  # the shards are the truth
    rows = {}
    for item in items:
        if (shard := find_shard(folder, item.name, stamp=item.stamp)) is not None:
            before = known.get(item.id)
            is_same = before is not None and before.digest == shard.digest
            rows[item.id] = shard.row(seconds=before.seconds if before is not None and is_same else None)
    return rows


class _Reporter:
    """Calls back with the speed and the failures of this run."""

    def __init__(self, progress: OnVideos, total: int, rows: dict[str, ManifestRow]) -> None:
        self.progress, self.total, self.rows = progress, total, rows
        self.started, self.videos, self.frames, self.failed = time.monotonic(), 0, 0, 0
        progress(len(rows), total, "")

    def __call__(self, rows: Sequence[ManifestRow]) -> None:
        self.videos += len(rows)
        self.frames += sum(row.frames for row in rows)
        self.failed += sum(bool(row.error) for row in rows)
        seconds = max(time.monotonic() - self.started, 1e-9)
        note = f"{self.videos / seconds:.1f} videos/s, {self.frames / seconds:.0f} frames/s"
        self.progress(len(self.rows), self.total, note + f", {self.failed} failed" * bool(self.failed))


Runner = Callable[[Sequence[Item]], Iterator[list[ManifestRow]]]


def _choose_runner(
    on: str, folder: Path, settings: Settings, *, workers: int | None, cache: Path | None
) -> Runner:
    """Return the function that embeds videos where `on` says."""
    if on == LOCAL:
        count = workers or _count_local(settings.device)
        return lambda items: local.run_passes(
            folder,
            cut_passes(items, workers=count),
            workers=max(1, min(count, len(items))),
            device=settings.device,
            cache_root=cache,
        )
    from cycleback.corpus import on_ray

    return lambda items: on_ray.run_items(
        folder,
        items,
        address=None if on == RAY else on,
        settings=settings,
        pass_videos=choose_pass(len(items), workers=workers or 2 * MIN_PASSES),
        workers=workers,
        cache=cache,
    )


def _count_local(device: str) -> int:
    """Return how many workers this machine takes: one per GPU, or per core."""
    if device == "cuda":
        import torch

        return torch.cuda.device_count()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_pass(videos: int, *, workers: int) -> int:
    """Return how many videos one worker embeds at once."""
    size = max(1, min(PASS_VIDEOS, videos // (MIN_PASSES * workers)))
    return max(size, -(-videos // MAX_PASSES))


def cut_passes(items: Sequence[Item], *, workers: int) -> list[list[Item]]:
    """Cut a list of videos into passes."""
    size = choose_pass(len(items), workers=workers)
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
