"""`cycleback plot`: draw embeddings and training for papers and pages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.inputs import PRETRAINED, check_choice, check_file, embed_inputs, list_inputs
from cycleback.cli.options import METHODS, Embeddings, Json, Method, Overwrite, Run, Videos
from cycleback.cli.output import print_result
from cycleback.errors import UserError

plot = typer.Typer(name="plot", help="Draw embeddings and training: PNG, SVG or PDF.", no_args_is_help=True)
Output = Annotated[Path, typer.Option("-o", "--output", help="Write this picture: .png, .svg or .pdf.")]
Size = Annotated[str | None, typer.Option(help="Set width x height in inches, such as 7x4.")]


@plot.command("map")
def plot_map(
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    by: Annotated[str, typer.Option(help="Project by tsne or pca.")] = "tsne",
    no_frames: Annotated[bool, typer.Option("--no-frames", help="Show no frames around the map.")] = False,
    output: Output = Path("map.png"),
    size: Size = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw every frame as a dot and every video as a line; by phase where labelled, else by time.

    Example: cycleback plot map golf/ --run runs/golf -o map.svg
    """
    from cycleback.applications.plots import draw_map
    from cycleback.applications.plots.maps import PROJECTIONS, open_thumbnails

    check_choice("map by", by, PROJECTIONS)
    inputs = list_inputs(videos, run, embeddings=embeddings)
    format, inches = _check_output(output, size, inputs, overwrite=overwrite)
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings)
    phases = {name: embedding_set.phases(name) for name in embedding_set}
    files = {name: embedding_set.path(name) for name in embedding_set}
    events = embedding_set.event_names
    picture = draw_map(
        {name: embedding_set[name] for name in embedding_set},
        by=by,
        phases={name: known for name, known in phases.items() if known is not None},
        phase_names=[f"before {events[0]}", *(f"after {event}" for event in events)] if events else [],
        thumbnail=None if no_frames else open_thumbnails(files),
        size=inches,
        format=format,
    )
    _write(output, picture, f"map of {len(embedding_set)} videos", overwrite=overwrite, as_json=as_json)


@plot.command()
def similarity(
    a: Annotated[str, typer.Argument(help="Video file, or a name in the embedding set.")],
    b: Annotated[str, typer.Argument(help="Video file, or a name in the embedding set.")],
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    output: Output = Path("similarity.png"),
    size: Size = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw how near each frame of A is to each frame of B, with the path of the alignment.

    Example: cycleback plot similarity a.mp4 b.mp4 --run runs/golf -o similarity.pdf
    """
    from cycleback.applications.plots import draw_similarity, shared_events
    from cycleback.embeddings import check_one_action

    inputs = list_inputs([a, b], run, embeddings=embeddings)
    format, inches = _check_output(output, size, inputs, overwrite=overwrite)
    embedding_set = embed_inputs([a, b], run=run, embeddings=embeddings)
    check_one_action(embedding_set)
    first, second = embedding_set.names[0], embedding_set.names[-1]  # the same, if A is B
    picture = draw_similarity(
        {"": (embedding_set[first], embedding_set[second])},
        events=shared_events(embedding_set.events(first), embedding_set.events(second)),
        names=(first, second),
        size=inches,
        format=format,
    )
    _write(output, picture, f"similarity of {first} and {second}", overwrite=overwrite, as_json=as_json)


@plot.command()
def progress(
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    reference: Annotated[str | None, typer.Option(help="Measure by this video (default: the first).")] = None,
    method: Method = "auto",
    output: Output = Path("progress.png"),
    size: Size = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw how far through the action each video is, against its own time.

    Example: cycleback plot progress golf/ --run runs/golf --reference swing_03
    """
    from cycleback.applications import measure_progress
    from cycleback.applications.plots import draw_progress

    check_choice("alignment method", method, METHODS)
    inputs = list_inputs(videos, reference, run, embeddings=embeddings)
    format, inches = _check_output(output, size, inputs, overwrite=overwrite)
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings)
    report = measure_progress(embedding_set, reference or embedding_set.names[0], method=method)  # type: ignore[arg-type]
    picture = draw_progress(report, size=inches, format=format)
    what = f"progress of {len(embedding_set)} videos by {report.reference}"
    _write(output, picture, what, overwrite=overwrite, as_json=as_json)


@plot.command()
def evolution(
    runs: Annotated[
        list[str], typer.Argument(help="Run folders, in order; with --pair also models by name.")
    ],
    pair: Annotated[
        tuple[str, str] | None, typer.Option(help="Draw the similarity of two videos by every run.")
    ] = None,
    output: Output = Path("evolution.png"),
    size: Size = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw how runs learned: loss and cycle-consistency rate; or two videos' similarity by each run.

    Example: cycleback plot evolution pretrained runs/short runs/long --pair a.mp4 b.mp4
    """
    from cycleback.applications.plots import draw_evolution, draw_similarity
    from cycleback.runs import saved_recipe
    from cycleback.training.log import read_log

    inputs = list_inputs(pair, *runs)
    format, inches = _check_output(output, size, inputs, overwrite=overwrite)
    if pair is None:
        for run in runs:
            saved_recipe(Path(run))  # raises, if this is not a run folder
        logs = {run: read_log(Path(run)) for run in runs}
        picture = draw_evolution(logs, size=inches, format=format)
    else:
        sets = {run: embed_inputs(pair, run=run) for run in runs}
        matrices = {run: (pair[pair.names[0]], pair[pair.names[-1]]) for run, pair in sets.items()}
        names = (Path(pair[0]).stem, Path(pair[1]).stem)
        columns = min(4, len(matrices))
        picture = draw_similarity(matrices, names=names, columns=columns, size=inches, format=format)
    _write(output, picture, f"evolution over {len(runs)} runs", overwrite=overwrite, as_json=as_json)


def _check_output(
    output: Path, size: str | None, inputs: Sequence[Path], *, overwrite: bool
) -> tuple[str, tuple[float, float] | None]:
    """Return the format and the size in inches of the picture, checked before any work is done."""
    from cycleback.applications.plots import FORMATS

    suffixes = [f".{format}" for format in FORMATS]
    check_file(output, overwrite=overwrite, suffixes=suffixes, inputs=inputs)
    format = output.suffix.lower().removeprefix(".")
    if size is None:
        return format, None
    try:
        width, height = (float(side) for side in size.lower().split("x"))
    except ValueError:
        raise UserError(f"no size {size!r}: expected width x height in inches, such as 7x4") from None
    if not (1 <= width <= 100 and 1 <= height <= 100):
        raise UserError(f"a picture of {size} inches: expected sides from 1 to 100")
    return format, (width, height)


def _write(output: Path, picture: bytes, what: str, *, overwrite: bool, as_json: bool) -> None:
    from cycleback.files import write_bytes

    path = write_bytes(output, picture, overwrite=overwrite)
    print_result({"picture": str(path), "what": what}, f"{what}: {path}", as_json=as_json)
