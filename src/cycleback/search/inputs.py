"""Open what a user names: a place to search, a moment to search for, videos to add to an index.

Streams of the pretrained encoder have fixed weights in an index, and its videos are seen as they were filmed,
because videos are added and searched for later. For a folder or a saved set the weights are chosen, and
mirrored videos are turned round. A query has the weights and the side of what it is searched in.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cycleback.data import Dataset
from cycleback.data.folder import Videos, names_folder, select_records
from cycleback.embeddings import EmbeddingSet, check_same_encoder
from cycleback.embeddings.folder import INDEX
from cycleback.embeddings.stream_choice import MAX_REFERENCES
from cycleback.errors import EmbeddingError, UserError
from cycleback.models import Encoder, FusedBase, fingerprint
from cycleback.models.streams import SCALES
from cycleback.progress import Counter, ignore
from cycleback.runs import PRETRAINED, embed_videos, load_encoder
from cycleback.search.corpus import Corpus
from cycleback.search.index import (
    Changes,
    Manifest,
    SearchIndex,
    add_videos,
    check_index_folder,
    is_index,
    retag_videos,
    select_new,
)
from cycleback.search.query import Query, find_video, make_frame_query, make_image_query, parse_moment
from cycleback.search.tags import collect_tags
from cycleback.video import VIDEO_SUFFIXES


def open_corpus(where: Path | str, *, run: str | None = None, progress: Counter = ignore) -> Corpus:
    """Open a search index, a saved embedding set, or a folder of videos.

    Args:
        run: run folder or model name; a folder of videos is embedded with it now (default: pretrained).
        progress: called with (frames done, frames in total) while videos are embedded.
    """
    where = Path(where)
    if is_index(where):
        return SearchIndex.load(where).corpus
    if (where / INDEX).is_file():
        return Corpus.of_folder(where)
    if not where.is_dir():
        raise EmbeddingError(
            f"no search index at {where}. Make one with: cycleback search add {where} VIDEOS"
        )
    run = run or PRETRAINED
    embeddings = embed_videos(run, where, progress=progress)
    tags = collect_tags(where, select_records(where)[0])
    return replace(Corpus.of_set(embeddings), run=run, source=where, tags=tags)


def make_query(corpus: Corpus, moment: str, *, run: str | None = None, progress: Counter = ignore) -> Query:
    """Make a query from `VIDEO@SECONDS`, `VIDEO#FRAME` or an image file.

    A video of the corpus is not embedded again; any other video or image is embedded now.

    Args:
        run: run folder or model name to embed with (default: that of the corpus, or pretrained).
        progress: called with (frames done, frames in total) while a video is embedded.
    """
    source, frame, seconds = parse_moment(moment)
    path, name = Path(source), find_video(corpus, source)
    has_time = frame is not None or seconds is not None
    if not has_time and (name is not None or path.suffix.lower() in VIDEO_SUFFIXES):
        raise UserError(f"which moment of {moment}? Write {moment}@2.5 (seconds) or {moment}#75 (frame).")
    if has_time and name is not None:
        return make_frame_query(corpus, name, frame=frame, seconds=seconds)
    where = str(corpus.source or "the corpus")
    if not path.exists():
        raise UserError(f"{source!r} is neither a video in {where} nor a file")
    encoder = _load_encoder(run or corpus.run or PRETRAINED, {where: corpus.encoder}, corpus.streams)
    if not has_time:
        return make_image_query(encoder, path)
    if corpus.as_filmed:
        embedded = embed_videos(encoder, path, streams=corpus.streams, progress=progress)
    else:
        embedded = embed_videos(encoder, path, alike=_choose_references(corpus), progress=progress)
    own = Corpus.of_set(embedded)
    query = make_frame_query(own, own.videos[0].name, frame=frame, seconds=seconds)
    return replace(query, video=None)


def _choose_references(corpus: Corpus) -> EmbeddingSet:
    """Return a few videos of a corpus, by which a query is turned to the side that they show."""
    arrays = {video.name: corpus.embeddings(i) for i, video in enumerate(corpus.videos[:MAX_REFERENCES])}
    return EmbeddingSet.from_arrays(arrays, encoder=corpus.encoder, streams=corpus.streams)


def index_videos(
    folder: Path | str,
    videos: Videos,
    *,
    run: str | None = None,
    prefix: str = "",
    replace_others: bool = False,
    progress: Counter = ignore,
) -> Changes:
    """Embed the videos that an index does not hold yet and add them; the index is created if needed.

    Args:
        videos: a dataset, its folder, or paths of videos.
        run: run folder or model name to embed with (default: that of the index, or pretrained).
        prefix: put before each name, to tell folders apart.
        replace_others: replace different videos of the same name.
        progress: called with (frames done, frames in total).
    """
    folder = Path(folder)
    check_index_folder(folder)
    known = Manifest.read(folder) if is_index(folder) else None
    run = run or (known.run if known else None) or PRETRAINED
    records, event_names = select_records(videos)
    tags = {prefix + name: own for name, own in collect_tags(videos, records).items()}
    records = [replace(record, name=prefix + record.name) for record in records]
    new = select_new(folder, records, replace_others=replace_others)
    changes = Changes()
    if new:
        encoder = _load_encoder(run, {str(folder): known.encoder} if known else {})
        dataset = Dataset(Path(), tuple(new), tuple(event_names))
        is_folder = names_folder(videos)
        embeddings = embed_videos(encoder, dataset, streams=SCALES, leave_out=is_folder, progress=progress)
        changes = add_videos(folder, embeddings, run=run, tags=tags, replace_others=replace_others)
    if tags:
        retag_videos(folder, tags)
    unchanged = {record.name for record in records} - {record.name for record in new}
    return replace(changes, unchanged=[*sorted(unchanged), *changes.unchanged])


def _load_encoder(
    run: str, expected: dict[str, str | None], streams: Mapping[str, float] = SCALES
) -> Encoder:
    """Load the encoder of a run; it must be the one of `expected` (name -> fingerprint).

    The pretrained encoder gets the weights `streams`.
    """
    if Path(run).is_absolute() and not Path(run).is_dir():  # an index stores an absolute path
        raise UserError(f"the run folder {run} does not exist. Give its new path with --run.")
    encoder = load_encoder(run)
    if run == PRETRAINED and isinstance(encoder.base, FusedBase):
        encoder.base.set_weights(streams)
    check_same_encoder({**expected, run: fingerprint(encoder)})
    return encoder
