"""`cycleback demo`: see it work, in minutes, on videos it renders itself."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.checks import LEVELS, check_choice
from cycleback.cli.output import print_json, print_next, print_reports
from cycleback.cli.progress import counter, progress_bars, training_bar


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Other videos, another run.", min=0)] = 0,
    videos: Annotated[int, typer.Option(help="How many videos to render.", min=8)] = 72,
    level: Annotated[str, typer.Option(help="How different the videos are: easy or hard.")] = "easy",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Render pouring videos, learn to align them without labels, and show the result in a web page.

    Example: cycleback demo --out demo --seed 1
    """
    from cycleback.demo import Stages, run_demo

    check_choice("level", level, LEVELS)
    with progress_bars() as bars:
        stages = Stages(
            on_render=counter(bars, "rendering"),
            on_frames=counter(bars, "decoding videos"),
            on_features=counter(bars, "computing features"),
            learning=lambda total: training_bar(bars, total),
            on_report=counter(bars, "report"),
        )
        report = run_demo(out, seed=seed, videos=videos, level=level, overwrite=overwrite, stages=stages)
    if as_json:
        print_json(report.to_json())
        return
    print_reports(report.rows)
    print_next(
        f"{report.seconds:.0f} s; open {out / 'report.html'} in a browser",
        f"cycleback sync {out / 'videos'} --run {out / 'run'} -o synced.mp4",
    )
