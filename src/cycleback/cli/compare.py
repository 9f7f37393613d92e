"""`cycleback compare`: the paper's tables and figures for your own videos."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.bars import Display, progress_bars, progress_callbacks
from cycleback.cli.options import Device, Json, Protocol, Seed
from cycleback.cli.output import print_json, print_next, print_reports

if TYPE_CHECKING:
    from cycleback.comparison import Stages

METHODS = "tcc,tcn,sal,tcc+tcn,supervised"
Methods = Annotated[
    str,
    typer.Option(
        help="Rows, separated by commas: losses (tcc, tcn, order, sal, supervised, stochastic_tcc) joined "
        "by +, tcc-classification, tcc-mse. The rows imagenet, random and time are always there.",
        show_default=METHODS.replace(",", ", "),
    ),
]


def compare(
    data: Annotated[Path, typer.Option(help="Folder of videos or sequences.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of every row, as section.key=value.")
    ] = None,
    methods: Methods = METHODS,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to make or go on with.")] = Path(
        "comparison"
    ),
    recipe: Annotated[
        str | None, typer.Option(help="Recipe all rows share (default: fast; poses for sequences).")
    ] = None,
    seed: Seed = 0,
    protocol: Protocol = "linear",
    no_perturb: Annotated[
        bool, typer.Option("--no-perturb", help="Leave out cropped, sped-up and delayed videos.")
    ] = False,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Go on although videos or people are on both sides.")
    ] = False,
    device: Device = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Train rows again that were trained with other settings.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train several methods on your videos, measure all on held-out ones, and show them in one page.

    Stop it at any time; the same command goes on where it was.

    Example: cycleback compare --data golf/ --methods tcc,tcn,tcc+tcn -o comparison
    """
    from cycleback.comparison import compare as compare_methods

    try:
        with progress_bars() as bars:
            made = compare_methods(
                data,
                output,
                methods=methods.split(","),
                recipe=recipe,
                overrides=overrides or [],
                seed=seed,
                protocol=protocol,
                perturb=not no_perturb,
                allow_overlap=allow_overlap,
                overwrite=overwrite,
                device=device,
                command=shlex.join(["cycleback", *sys.argv[1:]]),
                stages=_stages(bars),
            )
    except KeyboardInterrupt:
        print(f"stopped; what is done is kept in {output}. The same command goes on.", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print_json(made.content)
        return
    print_reports({name: row.report for name, row in made.rows.items()})
    for sentence in made.content["reading"]:
        print(sentence)
    best = made.rows[made.content["best"]].method
    run = f" --run {output / 'runs' / best.name}" if best.is_trained else ""
    next_step = f"sync {data}{run} -o synced.mp4" if made.content["is_pictures"] else f"embed {data}{run}"
    print_next(f"open {output / 'report.html'} in a browser", f"cycleback {next_step}")


def _stages(display: Display) -> "Stages":
    from cycleback.comparison import Stages

    callbacks = progress_callbacks(display)
    return Stages(
        on_method=callbacks.on_stage,
        on_frames=callbacks.on_frames,
        on_features=callbacks.on_features,
        learning=callbacks.on_training,
    )
