"""What `cycleback search` is given: videos to add, a place to search, a moment to look for."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import PRETRAINED, embedded, encoder_of, given_videos
from cycleback.errors import EmbeddingError, UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.models import Encoder
    from cycleback.search import Corpus, Moment, Query, SearchIndex


def videos_to_add(
    index: Path,
    known: "SearchIndex | None",
    videos: list[str] | None,
    *,
    run: str | None,
    embeddings: Path | None,
    prefix: str,
    replace: bool,
) -> "tuple[EmbeddingSet | None, list[str]]":
    """Embeddings of what the index lacks (None when it lacks nothing), and the names it has already."""
    from cycleback.data import Dataset
    from cycleback.data.selection import select_records
    from cycleback.runs import embed_videos
    from cycleback.search import new_records

    if embeddings is not None or run is None:
        return embedded(videos, embeddings=embeddings), []
    records, event_names = select_records(given_videos(videos))
    records = [dataclasses.replace(record, name=prefix + record.name) for record in records]
    new = new_records(index, records, replace_others=replace)
    unchanged = sorted({record.name for record in records} - {record.name for record in new})
    if not new:
        return None, unchanged
    encoder = _encoder(run, expected=known.manifest.encoder if known else None, where=index)
    with progress_bars() as bars:
        dataset = Dataset(Path(), tuple(new), tuple(event_names))
        return embed_videos(encoder, dataset, progress=counter(bars, "embedding")), unchanged


def open_corpus(where: Path, run: str | None) -> "tuple[Corpus, SearchIndex | None]":
    """What to search: an index, a saved embedding set, or a folder of videos that is embedded now."""
    from cycleback.search import Corpus, SearchIndex, is_index

    if is_index(where):
        index = SearchIndex.load(where)
        return index.corpus, index
    if (where / "index.json").is_file():
        return Corpus.of_folder(where), None
    if not where.is_dir():
        raise EmbeddingError(
            f"no search index at {where}. Make one with: cycleback search add {where} VIDEOS"
        )
    return Corpus.of_set(embedded([str(where)], run=run or PRETRAINED)), None


def make_query(corpus: "Corpus", text: str, *, run: str | None, where: Path) -> "tuple[Query, list[str]]":
    """What is looked for, and what the user should know of it."""
    from cycleback.search import find_video, frame_query, parse_moment
    from cycleback.video import VIDEO_SUFFIXES

    moment = parse_moment(text)
    path, timed = Path(moment.source), moment.seconds is not None or moment.frame is not None
    name = find_video(corpus, moment.source)
    if not timed and (name is not None or path.suffix.lower() in VIDEO_SUFFIXES):
        raise UserError(f"which moment of {text}? Say {text}@2.5 (seconds) or {text}#75 (frame).")
    if timed and name is not None:
        return frame_query(corpus, name, frame=moment.frame, seconds=moment.seconds), []
    if not path.exists():
        raise UserError(f"{moment.source!r} is neither a video in {where} nor a file")
    encoder = _encoder(run or PRETRAINED, expected=corpus.encoder, where=where)
    return _embedded_query(encoder, path, moment) if timed else _image_query(encoder, path)


def _embedded_query(encoder: "Encoder", path: Path, moment: "Moment") -> "tuple[Query, list[str]]":
    """A frame of a video that is none of those searched."""
    from cycleback.runs import embed_videos
    from cycleback.search import Corpus, frame_query

    with progress_bars() as bars:
        own = Corpus.of_set(embed_videos(encoder, path, progress=counter(bars, "embedding")))
    asked = frame_query(own, own.videos[0].name, frame=moment.frame, seconds=moment.seconds)
    return dataclasses.replace(asked, video=None), []


def _image_query(encoder: "Encoder", path: Path) -> "tuple[Query, list[str]]":
    from cycleback.search.image import image_query

    past = ["an image has no past: it stands for all context frames"]
    return image_query(encoder, path), past if encoder.context_frames > 1 else []


def _encoder(run: str, *, expected: str | None, where: Path) -> "Encoder":
    """The encoder of a run, which must be the one that made the embeddings."""
    if Path(run).is_absolute() and not Path(run).is_dir():  # as an index keeps it
        raise UserError(f"the run folder {run} is not there. Say where it is now with --run.")
    return encoder_of(run, made={str(where): expected})
