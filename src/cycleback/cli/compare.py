"""`cycleback compare`: the paper's tables and figures for your own videos."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import progress_bars, progress_callbacks
from cycleback.cli.options import Device, Json, Overlap, Protocol, Seed
from cycleback.cli.output import print_reports, print_result
from cycleback.errors import UserError

METHODS = "tcc,tcn,sal,tcc+tcn,supervised"
Methods = Annotated[
    str,
    typer.Option(help="Train these methods, separated by commas.", show_default=METHODS.replace(",", ", ")),
]


def compare(
    data: Annotated[Path, typer.Option(help="Use this folder of videos or sequences.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of every row, as section.key=value.")
    ] = None,
    methods: Methods = METHODS,
    output: Annotated[Path, typer.Option("-o", "--output", help="Make or resume this folder.")] = Path(
        "comparison"
    ),
    recipe: Annotated[
        str | None, typer.Option(help="Use this recipe for all rows (default: fast; poses for sequences).")
    ] = None,
    seed: Seed = 0,
    protocol: Protocol = "linear",
    no_perturb: Annotated[
        bool, typer.Option("--no-perturb", help="Leave out cropped, sped-up and delayed videos.")
    ] = False,
    allow_overlap: Overlap = False,
    device: Device = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Train rows again that were trained with other settings.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train several methods on your videos, score them on held-out ones, and show them on one page.

    Methods: tcc, tcn, sal, lav, gta, vava, vaot, scl, match and supervised, also joined by +, as are idm,
    next-frame, order and reversal; tcc-classification, tcc-mse and tcc-stochastic. The baselines time-only,
    untrained, frozen and streams are always added. You can interrupt it at any time; rerun the same
    command to resume.

    Example: cycleback compare --data golf/ --methods tcc,tcn,tcc+tcn -o comparison
    """
    from cycleback.comparison import TrainingStopped
    from cycleback.comparison import compare as compare_methods
    from cycleback.comparison.methods import KEPT_UNTRAINED
    from cycleback.data import read_dataset

    if not methods.strip(", "):
        raise UserError("--methods is empty: name at least one, such as tcc")
    try:
        with progress_bars() as display:
            comparison = compare_methods(
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
                progress=progress_callbacks(display),
            )
    except (KeyboardInterrupt, TrainingStopped):
        message = f"Interrupted. Finished rows are in {output}; rerun the same command to resume."
        print(message, file=sys.stderr)
        raise typer.Exit(130) from None
    content, rows = comparison.content, comparison.rows
    if not as_json:
        print_reports({f"{name}{'*' * row.kept_untrained}": row.report for name, row in rows.items()})
        if any(row.kept_untrained for row in rows.values()):
            print(f"* {KEPT_UNTRAINED}: training did not bring more frames back by three warps.")
        for sentence in content["reading"]:
            print(sentence)
    best = rows[content["best"]].method
    run = ["--run", output / "runs" / best.name] if best.is_trained else []
    can_play = content["has_pictures"] and len(read_dataset(data).actions) == 1
    next_step = ["sync", data, *run, "-o", "synced.mp4"] if can_play else ["embed", data, *run]
    print_result(content, f"open {output / 'report.html'} in a browser", next_step, as_json=as_json)
