"""`cycleback evaluate`: score an embedding beside the time-only baseline, which looks at no frame."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_choice, check_file, list_inputs
from cycleback.cli.options import Json, Overlap, Overwrite, Protocol, Seed
from cycleback.cli.output import print_reports, print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet

MARKDOWN_SUFFIXES = (".md", ".markdown", ".txt")


def evaluate(
    source: Annotated[
        Path,
        typer.Argument(
            help="Run folder, name of a model such as golf-lite, or embedding set of held-out videos."
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="Score a run on this folder of videos.")] = None,
    train: Annotated[Path | None, typer.Option(help="Train phase classifiers on this embedding set.")] = None,
    protocol: Protocol = "linear",
    span: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST,LAST",
            help="Use 1/30 of the time between these key events as tolerance (default: first, last).",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write all scores, with intervals, to this Markdown file.")
    ] = None,
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Skip the 95 % intervals.")] = False,
    no_few_shot: Annotated[
        bool, typer.Option("--no-few-shot", help="Skip few-shot classification, which takes longest.")
    ] = False,
    allow_overlap: Overlap = False,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score an embedding: key-event error, tau, cycle rate, phase accuracy, few-shot, retrieval.

    Example: cycleback evaluate runs/golf --data golf/
    """
    from cycleback.data import read_dataset
    from cycleback.evaluation import PROTOCOLS, TIME_ONLY, time_only_embeddings, to_markdown
    from cycleback.evaluation import evaluate as evaluate_set
    from cycleback.files import write_text

    check_choice("protocol", protocol, list(PROTOCOLS))
    ends = None if span is None else _parse_span(span)
    if markdown is not None:
        inputs = list_inputs(None, source, data, train)
        check_file(markdown, overwrite=overwrite, suffixes=MARKDOWN_SUFFIXES, inputs=inputs)
    seen, held_out = _embed(source, data=data, train=train)
    persons = None if data is None else read_dataset(data).persons
    blind = (time_only_embeddings(seen) if seen else None, time_only_embeddings(held_out))
    rows = {
        name: evaluate_set(
            *sets,
            protocol=protocol,
            span=ends,
            seed=seed,
            intervals=not no_intervals,
            few_shot=not no_few_shot,
            allow_overlap=allow_overlap,
            persons=persons,
        )
        for name, sets in ((source.name, (seen, held_out)), (TIME_ONLY, blind))
    }
    if markdown is not None:
        write_text(markdown, to_markdown(rows, intervals=not no_intervals), overwrite=overwrite)
    if not as_json:
        print_reports(rows)
    names = held_out.names
    print_result(
        {name: report.to_json() for name, report in rows.items()},
        f"{len(names)} videos of {source}" + (f": {markdown}" if markdown is not None else ""),
        _next_command(source, data, held_out),
        as_json=as_json,
    )


def _next_command(source: Path, data: Path | None, held_out: "EmbeddingSet") -> list[object] | None:
    """Return the words of what to do next with videos of one action: play them, or align two."""
    from cycleback.data.records import SEQUENCE_SUFFIX

    actions: dict[str | None, list[str]] = {}
    for name in held_out:
        actions.setdefault(held_out.action(name), []).append(name)
    paths = [held_out.path(name) for name in held_out]
    is_played = all(path is None or path.suffix.lower() != SEQUENCE_SUFFIX for path in paths)
    if data is not None and len(actions) == 1 and is_played:
        return ["sync", data, "--run", source]
    if data is not None:
        return ["embed", data, "--run", source]
    pair = max(actions.values(), key=len)
    return ["align", pair[0], pair[-1], "--embeddings", source] if len(pair) > 1 else None


def _parse_span(text: str) -> tuple[str, str]:
    first, _, last = (part.strip() for part in text.partition(","))
    if not first or not last or "," in last:
        raise UserError(f"--span expects two key events such as address,impact, got {text!r}")
    return first, last


def _embed(
    source: Path, *, data: Path | None, train: Path | None
) -> "tuple[EmbeddingSet | None, EmbeddingSet]":
    """Return embeddings of the training videos, if there are any, and of the held-out ones."""
    from cycleback.embeddings import EmbeddingSet
    from cycleback.recipe import RECIPE_FILE
    from cycleback.runs import embed_videos, find_run, published_models, select_part

    if not (source / RECIPE_FILE).is_file() and str(source) not in published_models():
        if data is not None:
            find_run(source)  # raises if there is nothing at all
            raise UserError(f"--data needs a run folder, but {source} has no {RECIPE_FILE}")
        held_out = EmbeddingSet.load(source)
        return (EmbeddingSet.load(train) if train is not None else None), held_out
    if data is None or train is not None:
        raise UserError(
            f"{source} is a run: name the folder of its videos with --data"
            f"{'' if train is None else ' and leave out --train'}"
        )
    with progress_bars() as bars:
        parts = [
            embed_videos(source, select_part(data, source, part), progress=counter(bars, f"embedding {part}"))
            for part in ("train", "held_out")
        ]
    return parts[0], parts[1]
