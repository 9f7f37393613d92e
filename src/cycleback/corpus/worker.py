"""What each worker does: embed a few videos at a time, write one shard per video, return manifest lines.

A video that cannot be read, fetched or decoded becomes a line with its error. One that ends its worker, by a
fault in a decoder or for lack of memory, is noticed by the notes in `working/`: it is then tried alone, and
given up after MAX_DEATHS tries.
"""

import os
import re
import socket
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch

from cycleback.corpus.settings import (
    SETTINGS,
    WORKING,
    Settings,
    load_corpus_encoder,
    read_references,
    read_settings,
)
from cycleback.corpus.sources import SCRATCH, Item, fetch
from cycleback.data import VideoRecord
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import check_kinds, embed_records
from cycleback.embeddings.features import FusedFeatures
from cycleback.embeddings.shards import SHARDS, ManifestRow, Shard, ShardFacts, find_shard, write_shard
from cycleback.errors import DamagedVideoWarning, DataError, UserError
from cycleback.files import remove_drafts
from cycleback.models.inference.cpu import one_thread
from cycleback.runs.folder import open_caches

MAX_DEATHS = 3  # of workers, until the video in work is given up
MAX_REASON = 500  # letters of an error


class Worker:
    """An encoder that is loaded once and embeds videos of one corpus.

    Args:
        folder: of the corpus, the same for all workers: with several machines, on a shared disk.
        device: default: of the kind that the corpus was begun with.
        cache: folder of decoded frames; default: the user's.
    """

    def __init__(self, folder: Path, *, device: str | None = None, cache: Path | None = None) -> None:
        if not (folder / SETTINGS).is_file():
            raise DataError(
                f"{socket.gethostname()} does not see {folder / SETTINGS}: all machines need the same disk. "
                "Choose a folder on it with -o."
            )
        self.folder = folder
        self.settings: Settings = read_settings(folder)
        self.encoder = load_corpus_encoder(self.settings, torch.device(device or self.settings.device))
        self.frames, self.features = open_caches(self.encoder, cache, precision=self.settings.precision)
        self.references = read_references(folder) if isinstance(self.features, FusedFeatures) else []

    def __call__(self, items: Sequence[Item]) -> list[ManifestRow]:
        """Embed videos that have no shard yet; return a line for each, in their order."""
        rows: dict[str, ManifestRow] = {}
        waiting: list[Item] = []
        suspects: list[Item] = []
        for item in items:
            if (shard := find_shard(self.folder, item.name, stamp=item.stamp)) is not None:
                rows[item.id] = shard.row()
            else:
                (suspects if self._deaths(item) else waiting).append(item)
        with one_thread():
            for together in (waiting, *([item] for item in suspects)):
                for row in self._embed(together) if together else ():
                    rows[row.id] = row
        return [rows[item.id] for item in items]

    def _deaths(self, item: Item) -> int:
        """Return how many workers ended while they had a video in work."""
        try:
            return len((self.folder / WORKING / item.id).read_text("utf-8"))
        except OSError:
            return 0

    @contextmanager
    def _noted(self, items: Sequence[Item]) -> Iterator[None]:
        """Note which videos are in work until the block ends; the notes stay if the process ends."""
        for item in items:
            (self.folder / WORKING / item.id).write_text("x" * (self._deaths(item) + 1), "utf-8")
        try:
            yield
        finally:
            for item in items:
                with suppress(OSError):
                    (self.folder / WORKING / item.id).unlink()

    def _embed(self, items: Sequence[Item]) -> list[ManifestRow]:
        """Embed videos together; if that fails, one by one, to find the one that is broken."""
        if len(items) == 1 and self._deaths(items[0]) >= MAX_DEATHS:
            return [fail(items[0], f"it ended its worker {MAX_DEATHS} times")]
        started = time.perf_counter()
        with self._noted(items):
            try:
                found, notes = self._compute(items)
            except Exception as error:
                if len(items) == 1:
                    reason = _name_source(_explain(error), items[0])
                    return [fail(items[0], reason, seconds=time.perf_counter() - started)]
                found = None
        if found is None:
            return [row for item in items for row in self._embed([item])]
        seconds = time.perf_counter() - started
        frames = sum(len(found[item.name]) for item in items)
        return [
            self._write(item, found, notes.get(item.name, "")).row(
                seconds=round(seconds * len(found[item.name]) / frames, 3)
            )
            for item in items
        ]

    def _compute(self, items: Sequence[Item]) -> tuple[EmbeddingSet, dict[str, str]]:
        """Return the embeddings of videos, and what was said about damaged ones by name."""
        size, fit = self.encoder.frame_size, self.encoder.fit
        with ExitStack() as opened, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamagedVideoWarning)
            records = [opened.enter_context(fetch(item, size=size, fit=fit)) for item in items]
            check_kinds(self.encoder, records)
            if isinstance(self.features, FusedFeatures):
                self.features.mirrored = set()
                self.features.fill(records)
                self.features.orient(records, references=self.references)
            found = embed_records(
                self.encoder,
                records,
                frames=self.frames,
                features=self.features,
                precision=self.settings.precision,
            )
            notes = {
                item.name: _name_source(_pick_notes(record, caught), item)
                for item, record in zip(items, records, strict=True)
            }
        return found, notes

    def _write(self, item: Item, found: EmbeddingSet, warning: str) -> Shard:
        facts = ShardFacts(
            item.name,
            item.action,
            item.path,
            found.fps(item.name),
            found.events(item.name),
            found.encoder or "",
            item.name in found.mirrored,
            item.stamp,
            warning,
        )
        return write_shard(self.folder, facts, found[item.name], found.times(item.name))


def _pick_notes(record: VideoRecord, caught: Sequence[warnings.WarningMessage]) -> str:
    """Join the warnings that name the file of a record."""
    texts = [str(each.message) for each in caught if issubclass(each.category, DamagedVideoWarning)]
    return " ".join(dict.fromkeys(text for text in texts if str(record.path) in text))[:MAX_REASON]


def fail(item: Item, reason: str, *, seconds: float | None = None) -> ManifestRow:
    """Return the line of a video that could not be embedded."""
    taken = None if seconds is None else round(seconds, 3)
    return ManifestRow(item.id, item.name, item.action, item.path, seconds=taken, error=reason[:MAX_REASON])


def _explain(error: Exception) -> str:
    """Return an error in one line; of one that is no user's mistake, its type, too."""
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) and text else f"{type(error).__name__}: {text}"


def _name_source(text: str, item: Item) -> str:
    """Put where a video comes from into a message that names its temporary copy."""
    return re.sub(rf"\S*{re.escape(SCRATCH)}\S*?(?=[:,;]? |[:,;.]?$)", item.path, text)


def clear_notes(folder: Path) -> None:
    """Remove the notes and drafts of an earlier run: its workers are gone, or were ended on purpose."""
    place = folder / WORKING
    place.mkdir(parents=True, exist_ok=True)
    for note in place.iterdir():
        with suppress(OSError):
            os.unlink(note)
    for drafts in (folder, *(folder / SHARDS).glob("*")):
        remove_drafts(drafts)
