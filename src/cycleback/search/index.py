"""A search index: a folder of embeddings of any number of videos, which grows by adding videos.

INDEX/manifest.json   which videos there are, and in which shard; replaced in one step, last
INDEX/shard-00001/    an embedding set, one an add; never changed
INDEX/faiss-*, lance-*   made when such a backend is first asked for, and safe to delete
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from cycleback.data import VideoRecord
from cycleback.data.sources import record_digest
from cycleback.embeddings.folder import read_folder
from cycleback.errors import EmbeddingError
from cycleback.search.corpus import Corpus, Shard
from cycleback.search.manifest import FILE, Manifest


@dataclass(frozen=True)
class SearchIndex:
    """An index as it is now; later adds do not change it."""

    folder: Path
    manifest: Manifest

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Open an index; embeddings are memory-mapped when first used."""
        return cls(Path(folder), Manifest.read(Path(folder)))

    @cached_property
    def corpus(self) -> Corpus:
        """The frames to search."""
        if not self.manifest.videos:
            raise EmbeddingError(f"{self.folder} holds no videos. Add some with: cycleback search add")
        shards = tuple(self._shard(name) for name in self.manifest.shards)
        return Corpus(shards, self.manifest.encoder)

    def _shard(self, shard: str) -> Shard:
        embeddings, times, index = read_folder(self.folder / shard)
        videos = [video for video in self.manifest.videos.values() if video.shard == shard]
        entries = [replace(index.entry(video.name), path=video.path) for video in videos]
        return Shard(
            np.asarray(embeddings), np.asarray(times), tuple(sorted(entries, key=lambda entry: entry.start))
        )


def is_index(folder: Path | str) -> bool:
    """Whether there is a search index in `folder`."""
    return (Path(folder) / FILE).is_file()


def content_of(path: Path) -> str:
    """Fingerprint of a video file or a folder of images."""
    kind = "frames" if path.is_dir() else "video"
    return record_digest(VideoRecord(name=path.stem, path=path, kind=kind))  # type: ignore[arg-type]
