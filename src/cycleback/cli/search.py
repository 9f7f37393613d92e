"""`cycleback search`: find a moment in many videos."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_file, embed_inputs, list_inputs, one_line_errors, parse_videos
from cycleback.cli.options import Embeddings, Json, Overwrite, Videos
from cycleback.cli.output import print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.search import Hit, Query

search = typer.Typer(name="search", help="Find a moment in all videos.", no_args_is_help=True)
Index = Annotated[Path, typer.Argument(help="Search index: a folder, created by the first add.")]


@search.command()
def add(
    index: Index,
    videos: Videos = None,
    run: Annotated[
        str | None,
        typer.Option(help="Embed with this run folder or model (default: that of the index)."),
    ] = None,
    embeddings: Embeddings = None,
    prefix: Annotated[str, typer.Option(help="Put this before each name, to tell folders apart.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace other videos of the same name.")
    ] = False,
    from_corpus: Annotated[
        Path | None, typer.Option(help="Add the videos of a corpus that `embed --on` wrote.")
    ] = None,
    tags: Annotated[
        Path | None, typer.Option(help="Take tags from this table (default: tags.csv in the folder).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add videos to a search index; videos that it already holds are not embedded again.

    Example: cycleback search add golf.index golf/ --run runs/golf

    Example: cycleback search add golf.index --from-corpus golf.corpus --tags golfers.csv
    """
    from cycleback.files import check_output
    from cycleback.search import SearchIndex, add_corpus, add_videos, index_videos, read_tags, retag_videos
    from cycleback.search.index import check_index_folder
    from cycleback.tables import read_table

    check_index_folder(index)
    inputs = [*list_inputs(videos, embeddings=embeddings), *filter(None, (from_corpus, tags))]
    check_output(index, overwrite=True, inputs=inputs)
    if tags is not None:
        read_table(tags, ("video",))  # refuse it before anything is embedded
    if from_corpus is not None:
        if videos or embeddings is not None or run is not None or prefix:
            raise UserError("--from-corpus takes its videos, names and run from the corpus: give it alone")
        with progress_bars() as bars:
            progress = counter(bars, "adding videos")
            changes = add_corpus(index, from_corpus, replace_others=replace, progress=progress)
    elif embeddings is not None:
        saved = embed_inputs(videos, embeddings=embeddings)
        changes = add_videos(index, saved, run=run, replace_others=replace)
    else:
        paths = parse_videos(videos)
        with progress_bars() as bars:
            changes = index_videos(
                index,
                paths,
                run=run,
                prefix=prefix,
                replace_others=replace,
                progress=counter(bars, "embedding"),
            )
    if tags is not None:
        retag_videos(index, read_tags(tags, SearchIndex.load(index).manifest.videos))
    corpus, changed = SearchIndex.load(index).corpus, dataclasses.asdict(changes)
    counts = {"videos": len(corpus.videos), "frames": corpus.num_frames}
    summary = ", ".join(f"{len(names)} {word}" for word, names in changed.items() if names)
    print_result(
        {"index": str(index), **counts, **changed},
        f"{summary}; {len(corpus.videos)} videos, {corpus.num_frames} frames: {index}",
        ["search", "query", index, f"{corpus.videos[0].name}@{corpus.times(0)[-1] / 2:.1f}"],
        as_json=as_json,
    )


@search.command()
def query(
    context: typer.Context,
    where: Annotated[Path, typer.Argument(help="Search index, embedding set, or folder of videos.")],
    moment: Annotated[str, typer.Argument(help="VIDEO@SECONDS, VIDEO#FRAME, or an image file.")],
    k: Annotated[int, typer.Option("-k", help="List at most this many hits.", min=1)] = 8,
    per_video: Annotated[int, typer.Option(help="List at most this many hits per video.", min=1)] = 1,
    apart: Annotated[float, typer.Option(help="Keep hits of one video so many seconds apart.", min=0)] = 1.0,
    action: Annotated[str | None, typer.Option(help="Search only videos of this action.")] = None,
    names: Annotated[str, typer.Option(help="Search only videos with such names: 'monday/*'.")] = "*",
    between: Annotated[
        tuple[float, float], typer.Option(help="Search only this part of each video, from 0 to 1.")
    ] = (0.0, 1.0),
    time: Annotated[
        tuple[float, float] | None, typer.Option(help="Search only these seconds of each video: 1.5 3.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Search only videos with this tag: golfer=kim. May be repeated.")
    ] = None,
    own_video: Annotated[bool, typer.Option("--own-video", help="Search the query's own video too.")] = False,
    backend: Annotated[str, typer.Option(help="Use exact, or lancedb for very many frames.")] = "exact",
    run: Annotated[str | None, typer.Option(help="Embed with this run (default: that of the index).")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Write a contact sheet: .png or .jpg.")] = None,
    clips: Annotated[Path | None, typer.Option(help="Write a clip around each hit to this folder.")] = None,
    seconds: Annotated[float, typer.Option(help="Set the length of a clip in seconds.", min=0.05)] = 2.0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the frames nearest to a moment, one per video, nearest first.

    Example: cycleback search query golf.index swing.mp4@1.9 --sheet top.png --clips top/
    """
    from cycleback.files import check_output
    from cycleback.search import (
        Filter,
        SearchIndex,
        find,
        is_index,
        make_query,
        open_backend,
        open_corpus,
        parse_tags,
    )
    from cycleback.search.backend import check_backend
    from cycleback.search.outputs import SHEET_SUFFIXES

    check_backend(backend)
    tags = parse_tags(tag or [])
    with one_line_errors():
        chosen = Filter(action=action, names=names, between=between, seconds=time, tags=tags)
    if sheet is not None:
        inputs = list_inputs([moment, moment.rpartition("@")[0]], where, run)
        check_file(sheet, overwrite=overwrite, suffixes=SHEET_SUFFIXES, inputs=inputs)
    if clips is not None:
        check_output(clips, overwrite=True)
    if backend != "exact" and not is_index(where):
        raise UserError(f"the {backend} backend needs a search index. Make one: cycleback search add")
    with progress_bars() as bars:
        progress = counter(bars, "embedding")
        corpus = open_corpus(where, run=run, progress=progress)
        asked = make_query(corpus, moment, run=run, progress=progress)
    with one_line_errors():
        hits = find(
            corpus,
            asked,
            k=k,
            per_video=per_video,
            apart=apart,
            where=chosen,
            own_video=own_video,
            backend=None if backend == "exact" else open_backend(backend, SearchIndex.load(where)),
        )
        files = _write_pictures(asked, hits, sheet=sheet, clips=clips, seconds=seconds, overwrite=overwrite)
    notes = [asked.note] if asked.note else []
    if len(hits) < k:
        notes.append(f"asked for {k} hits, there are {len(hits)} (--per-video and --own-video give more)")
    if not as_json:
        _print_hits(hits, notes)
    places = ", ".join(f"{kind} in {place}" for kind, place in (("sheet", sheet), ("clips", clips)) if place)
    print_result(
        {"query": {"text": moment, **_describe(asked)}, "hits": list(map(_describe, hits)), "notes": notes}
        | files,
        f"{len(hits)} hits in {where}" + (f": {places}" if places else ""),
        None if files else ["search", "query", where, moment, *_typed(context), "--sheet", "hits.png"],
        as_json=as_json,
    )


@search.command()
def remove(
    index: Index,
    names: Annotated[list[str], typer.Argument(help="Names of videos, as `search info` lists them.")],
    as_json: Json = False,
) -> None:
    """Remove videos from a search index; the video files stay.

    Example: cycleback search remove golf.index swing_07
    """
    from cycleback.search import remove_videos

    left = remove_videos(index, names)
    print_result(
        {"index": str(index), "removed": names, "videos": left},
        f"{len(set(names))} removed, {left} left: {index}",
        ["search", "info", index],
        as_json=as_json,
    )


@search.command()
def info(index: Index, as_json: Json = False) -> None:
    """List the videos of a search index, and the run that embedded them.

    Example: cycleback search info golf.index
    """
    from cycleback.search import SearchIndex

    opened = SearchIndex.load(index)
    manifest = opened.manifest
    corpus = opened.corpus if manifest.videos else None
    facts = {
        "index": str(index),
        "videos": len(manifest.videos),
        "frames": corpus.num_frames if corpus else 0,
        "embedding_size": manifest.size,
        "encoder": manifest.encoder,
        "run": manifest.run,
        "shards": len(manifest.shards),
    }
    lines = [f"{key:<15} {value}" for key, value in facts.items()]
    lines += [f"  {video.name}  {video.length} frames" for video in (corpus.videos if corpus else ())]
    print_result({**facts, "names": list(manifest.videos)}, "\n".join(lines), as_json=as_json)


def _write_pictures(
    asked: "Query",
    hits: "list[Hit]",
    *,
    sheet: Path | None,
    clips: Path | None,
    seconds: float,
    overwrite: bool,
) -> dict[str, Any]:
    """Write the contact sheet and the clips that are wanted; returns where they are."""
    from cycleback.search import write_clips, write_sheet

    files: dict[str, Any] = {}
    if sheet is not None:
        files["sheet"] = str(write_sheet(sheet, asked, hits, overwrite=overwrite))
    if clips is not None:
        written = write_clips(clips, hits, seconds=seconds, overwrite=overwrite, only_own=True)
        files["clips"] = [str(path) for path in written]
    return files


def _typed(context: typer.Context) -> list[object]:
    """Return the options that the user typed, but for those of the output."""
    words: list[object] = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.param_type_name != "option" or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        if option.name in ("as_json", "overwrite", "seconds") or value is False:
            continue
        for each in value if option.multiple else [value]:
            words += [option.opts[0], *(each if isinstance(each, tuple) else [] if each is True else [each])]
    return words


def _describe(place: "Query | Hit") -> dict[str, Any]:
    """Return the facts of a query or hit, without the vector of a query."""
    facts = {key: value for key, value in vars(place).items() if key not in ("vector", "encoder", "note")}
    return facts | {"path": None if place.path is None else str(place.path)}


def _print_hits(hits: "list[Hit]", notes: list[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "video", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("seconds", "frame", "distance", "similarity"):
        table.add_column(column, justify="right")
    for place, hit in enumerate(hits, start=1):
        values = (f"{hit.seconds:.2f}", str(hit.frame), f"{hit.distance:.3f}", f"{hit.similarity:.2f}")
        table.add_row(str(place), escape(hit.video), *values)
    Console().print(table)
    for note in notes:
        print(f"note: {note}")
