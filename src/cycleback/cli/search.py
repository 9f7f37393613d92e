"""`cycleback search`: find a moment everywhere."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.checks import check_choice, one_line_errors
from cycleback.cli.options import Embeddings, Json, Overwrite, Videos
from cycleback.cli.output import console, print_json, print_next
from cycleback.cli.search_inputs import make_query, open_corpus, videos_to_add
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.search import Hit, Query

search = typer.Typer(name="search", help="Find a moment in all videos.", no_args_is_help=True)
Index = Annotated[Path, typer.Argument(help="Search index: a folder, made by the first add.")]


@search.command()
def add(
    index: Index,
    videos: Videos = None,
    run: Annotated[
        str | None,
        typer.Option(help="Run folder, a model's name, or 'pretrained' (default: that of the index)."),
    ] = None,
    embeddings: Embeddings = None,
    prefix: Annotated[str, typer.Option(help="Put before each name, to tell folders apart.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace other videos of the same name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add videos to a search index, made where there is none; what it holds is not embedded again.

    Example: cycleback search add golf.index golf/ --run runs/golf
    """
    from cycleback.files import check_output
    from cycleback.search import Changes, SearchIndex, add_videos, is_index

    check_output(index, overwrite=True)
    known = SearchIndex.load(index) if is_index(index) else None
    run = run or (known.manifest.run if known else None) or (None if embeddings else "pretrained")
    found, unchanged = videos_to_add(
        index, known, videos, run=run, embeddings=embeddings, prefix=prefix, replace=replace
    )
    changes = Changes() if found is None else add_videos(index, found, run=run, replace_others=replace)
    changes = dataclasses.replace(changes, unchanged=[*unchanged, *changes.unchanged])
    corpus = SearchIndex.load(index).corpus
    if as_json:
        numbers = {"videos": len(corpus.videos), "frames": corpus.num_frames}
        print_json({"index": str(index), **numbers, **dataclasses.asdict(changes)})
        return
    did = ", ".join(f"{len(names)} {word}" for word, names in dataclasses.asdict(changes).items() if names)
    first = corpus.videos[0].name
    print_next(
        f"{did}; {len(corpus.videos)} videos, {corpus.num_frames} frames: {index}",
        f"cycleback search query {index} {first}@{corpus.times(0)[-1] / 2:.1f}",
    )


@search.command()
def query(
    where: Annotated[Path, typer.Argument(help="Search index, embedding set, or folder of videos.")],
    moment: Annotated[str, typer.Argument(help="VIDEO@SECONDS, VIDEO#FRAME, or an image file.")],
    k: Annotated[int, typer.Option("-k", help="Most hits.", min=1)] = 8,
    per_video: Annotated[int, typer.Option(help="Most hits in one video.", min=1)] = 1,
    apart: Annotated[float, typer.Option(help="Least seconds between hits in one video.", min=0)] = 1.0,
    action: Annotated[str | None, typer.Option(help="Only videos of this action.")] = None,
    names: Annotated[str, typer.Option(help="Only videos whose name fits, such as 'monday/*'.")] = "*",
    between: Annotated[
        tuple[float, float], typer.Option(help="Only this part of each video, from 0 to 1.")
    ] = (0.0, 1.0),
    own_video: Annotated[bool, typer.Option("--own-video", help="Search the query's own video too.")] = False,
    backend: Annotated[str, typer.Option(help="exact, faiss or lancedb.")] = "exact",
    run: Annotated[str | None, typer.Option(help="Run folder or model (default: that of the index).")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Contact sheet to write: .png or .jpg.")] = None,
    clips: Annotated[Path | None, typer.Option(help="Folder for a clip around each hit.")] = None,
    seconds: Annotated[float, typer.Option(help="Length of a clip.", min=0.05)] = 2.0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the frames nearest to a moment, one a video, nearest first.

    Example: cycleback search query golf.index swing.mp4@1.9 --sheet top.png --clips top/
    """
    from cycleback.files import check_output
    from cycleback.search import BACKENDS, Filter, find, open_backend, write_clips, write_sheet
    from cycleback.search.sheet import SHEET_SUFFIXES

    check_choice("search backend", backend, BACKENDS)
    if sheet is not None:
        check_output(sheet, overwrite=overwrite, suffixes=SHEET_SUFFIXES)
    if clips is not None:
        check_output(clips, overwrite=True)
    corpus, index = open_corpus(where, run)
    if backend != "exact" and index is None:
        raise UserError(f"the {backend} backend needs a search index. Make one: cycleback search add")
    asked, notes = make_query(corpus, moment, run=run or (index.manifest.run if index else None), where=where)
    with one_line_errors():
        hits = find(
            corpus,
            asked,
            k=k,
            per_video=per_video,
            apart=apart,
            where=Filter(action=action, names=names, between=between),
            own_video=own_video,
            backend=open_backend(backend, index) if index is not None else None,
        )
        files: dict[str, Any] = {}
        if sheet is not None:
            files["sheet"] = str(write_sheet(sheet, asked, hits, overwrite=overwrite))
        if clips is not None:
            written = write_clips(clips, hits, seconds=seconds, overwrite=overwrite)
            files["clips"] = [str(path) for path in written]
    if len(hits) < k:
        notes.append(f"asked for {k} hits, there are {len(hits)} (--per-video and --own-video give more)")
    if as_json:
        print_json({"query": _described(asked, moment), "hits": _rows(hits), "notes": notes, **files})
        return
    _print_hits(hits, notes)
    places = ", ".join(f"{kind} in {place}" for kind, place in (("sheet", sheet), ("clips", clips)) if place)
    again = None if files else f"cycleback search query {where} {moment} --sheet hits.png"
    print_next(f"{len(hits)} hits in {where}" + (f": {places}" if places else ""), again)


@search.command()
def remove(
    index: Index,
    names: Annotated[list[str], typer.Argument(help="Names of videos, as `search info` lists them.")],
    as_json: Json = False,
) -> None:
    """Take videos out of a search index; the video files stay.

    Example: cycleback search remove golf.index swing_07
    """
    from cycleback.search import remove_videos

    left = remove_videos(index, names)
    if as_json:
        print_json({"index": str(index), "removed": names, "videos": left})
        return
    print_next(f"{len(set(names))} removed, {left} left: {index}", f"cycleback search info {index}")


@search.command()
def info(index: Index, as_json: Json = False) -> None:
    """List what a search index holds, and which run made it.

    Example: cycleback search info golf.index
    """
    from cycleback.search import SearchIndex

    manifest = SearchIndex.load(index).manifest
    corpus = SearchIndex.load(index).corpus if manifest.videos else None
    frames = corpus.num_frames if corpus else 0
    facts = {
        "index": str(index),
        "videos": len(manifest.videos),
        "frames": frames,
        "embedding_size": manifest.size,
        "encoder": manifest.encoder,
        "run": manifest.run,
        "shards": len(manifest.shards),
    }
    if as_json:
        print_json({**facts, "names": list(manifest.videos)})
        return
    for key, value in facts.items():
        print(f"{key:<15} {value}")
    for video in corpus.videos if corpus else ():
        print(f"  {video.name}  {video.length} frames")


def _described(asked: "Query", text: str) -> dict[str, Any]:
    path = None if asked.path is None else str(asked.path)
    return {"text": text, "video": asked.video, "frame": asked.frame, "seconds": asked.seconds, "path": path}


def _rows(hits: "list[Hit]") -> list[dict[str, Any]]:
    return [dataclasses.asdict(hit) | {"path": None if hit.path is None else str(hit.path)} for hit in hits]


def _print_hits(hits: "list[Hit]", notes: list[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("", "video", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("seconds", "frame", "distance", "similarity"):
        table.add_column(column, justify="right")
    for place, hit in enumerate(hits, start=1):
        numbers = (f"{hit.seconds:.2f}", str(hit.frame), f"{hit.distance:.3f}", f"{hit.similarity:.2f}")
        table.add_row(str(place), hit.video, *numbers)
    console().print(table)
    for note in notes:
        print(f"note: {note}")
