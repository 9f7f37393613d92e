"""`cycleback train`: a folder of videos in, a run folder out."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from cycleback.cli.bars import counter, progress_bars, training_bar
from cycleback.cli.options import Device, Json
from cycleback.cli.output import print_json, print_next

LAST_RECORDS = 10  # of the log


def backwards_note(log: Sequence[Mapping[str, float]]) -> str | None:
    """What to say where, at the end of training, too many pairs of videos are matched backwards in time."""
    from cycleback.alignment.cycles import MAX_BACKWARD_SHARE

    shares = [record["backwards"] for record in log if "backwards" in record][-LAST_RECORDS:]
    if not shares or fmean(shares) <= MAX_BACKWARD_SHARE:
        return None
    share = f"{fmean(shares):.0%} of the pairs of videos are matched backwards in time"
    return f"note: {share}, which cycles cannot tell. Try more updates, or loss.weights.order=0.3"


def train(
    directory: Annotated[
        Path, typer.Argument(help="Folder of videos of one action, or one sub-folder an action.")
    ],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings, as section.key=value.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Run folder to make.")] = Path("runs/run"),
    recipe: Annotated[str | None, typer.Option(help="Name of a recipe, or a TOML file of your own.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the output folder.")
    ] = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Learn to align the videos of a folder, without labels.

    Example: cycleback train golf/ -o runs/golf optimizer.num_updates=2000 loss.weights.tcn=0

    On several GPUs: torchrun --nproc-per-node 8 --no-python cycleback train golf/ -o runs/golf
    """
    from cycleback.files import check_output
    from cycleback.recipe import load_recipe
    from cycleback.runs import Watcher, saved_recipe
    from cycleback.runs import train as train_run
    from cycleback.training import read_log

    check_output(output, overwrite=True)
    settings = saved_recipe(output) if resume else load_recipe(recipe, overrides or [])
    total = settings.optimizer.num_updates
    with progress_bars() as bars:
        watcher = Watcher(
            on_frames=counter(bars, "decoding videos"),
            on_features=counter(bars, "computing features"),
            on_step=training_bar(bars, total),
        )
        state = train_run(directory, output, recipe=settings, resume=resume, device=device, watcher=watcher)
    if os.environ.get("RANK", "0") != "0":  # under torchrun, the first process speaks for all
        return
    if as_json:
        kept = state.selected.step if state.selected else state.step
        facts = {"run": str(output), "step": state.step, "kept_step": kept, "num_updates": total}
        print_json(facts | {"stopped_early": state.stopped_early, "seconds": round(state.seconds, 3)})
        return
    if state.selected is not None:
        best = state.selected
        print(f"kept update {best.step}: {best.held_out_cycle_rate:.1%} of held-out frames cycle back")
    if state.step < total and not state.stopped_early:
        print_next(
            f"stopped at update {state.step} of {total}; all is saved in {output}",
            f"cycleback train {directory} -o {output} --resume",
        )
    else:
        if note := backwards_note(read_log(output)):
            print(note)
        print_next(
            f"learned in {state.seconds:.0f} s: {output}", f"cycleback embed {directory} --run {output}"
        )
