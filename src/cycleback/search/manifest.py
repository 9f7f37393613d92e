"""The manifest of a search index: which videos it holds, and where each one's embeddings lie."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cycleback.errors import EmbeddingError
from cycleback.files import write_text

FILE = "manifest.json"
FORMAT = "cycleback-search"
VERSION = 1


@dataclass(frozen=True)
class IndexedVideo:
    """Where one video is.

    Attributes:
        name: unique in the index.
        shard: the folder of embeddings that holds it.
        content: fingerprint of the video's file, to know it again.
        path: the file, absolute; None for embeddings that came without one.
    """

    name: str
    shard: str
    content: str
    path: str | None = None


@dataclass(frozen=True)
class Manifest:
    """What an index is: its encoder, and its videos by name.

    Attributes:
        encoder: fingerprint of the encoder that made all embeddings, where known.
        run: the run folder of that encoder, or "pretrained", to embed queries with.
        size: length D of an embedding.
        videos: by name.
        next_shard: number of the next shard; none is used twice.
    """

    encoder: str | None
    run: str | None
    size: int
    videos: Mapping[str, IndexedVideo] = field(default_factory=dict)
    next_shard: int = 1

    @property
    def shards(self) -> tuple[str, ...]:
        """The shards with at least one video, in order."""
        return tuple(sorted({video.shard for video in self.videos.values()}))

    @property
    def key(self) -> str:
        """Twelve hex digits that change with the rows of the index; backends keep their files under it."""
        rows = [(video.name, video.shard) for video in self.videos.values()]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]

    def write(self, folder: Path) -> None:
        """Make this the state of the index in `folder`, in one step."""
        head = {"format": FORMAT, "version": VERSION}
        content = {**head, **asdict(self), "videos": [asdict(video) for video in self.videos.values()]}
        write_text(folder / FILE, json.dumps(content, indent=1) + "\n", overwrite=True)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The state of the index in `folder`."""
        try:
            return cls._parse(json.loads((folder / FILE).read_text("utf-8")))
        except OSError as error:
            missing = f"no search index in {folder} (cannot read {FILE}: {error.strerror})"
            raise EmbeddingError(f"{missing}. Make one with: cycleback search add") from error
        except (ValueError, KeyError, TypeError) as error:  # JSON and Unicode errors are ValueErrors too
            raise EmbeddingError(f"cannot use {folder / FILE}: {error}. Make the index again.") from error

    @classmethod
    def _parse(cls, content: Any) -> Self:
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ValueError("it is not the manifest of a search index")
        version = content.pop("version", None)
        if version != VERSION:
            raise ValueError(f"it has format version {version!r}, this program reads {VERSION}")
        videos = [IndexedVideo(**video) for video in content.pop("videos")]
        return cls(videos={video.name: video for video in videos}, **content)
