"""`cycleback train`: train an encoder on a folder of videos."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.bars import progress_bars, progress_callbacks, training_bar
from cycleback.cli.options import Device, Json
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from cycleback.training import StepReport, TrainState

INTERRUPTED = 130  # exit code of a process that Ctrl-C ended


def train(
    directory: Annotated[
        Path, typer.Argument(help="Folder of videos of one action, or with one sub-folder per action.")
    ],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings, as section.key=value.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Make this run folder.")] = Path("runs/run"),
    recipe: Annotated[str | None, typer.Option(help="Use this recipe: its name, or a TOML file.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in the output folder.")] = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Learn to align the videos of a folder, without labels.

    Example: cycleback train golf/ -o runs/golf optimizer.num_updates=2000 loss.weights.tcn=0

    On several GPUs: torchrun --nproc-per-node 8 --no-python cycleback train golf/ -o runs/golf
    """
    from cycleback.errors import ConfigError
    from cycleback.files import check_output
    from cycleback.recipe import RECIPE_FILE, load_recipe
    from cycleback.runs import train as train_run
    from cycleback.runs.folder import describe_split

    check_output(output, overwrite=True)
    if resume and (overrides or recipe):
        setting = overrides[0] if overrides else f"--recipe {recipe}"
        raise ConfigError(
            f"--resume keeps the settings in {output / RECIPE_FILE} and cannot take {setting}. "
            "Remove it, or edit that file (a larger optimizer.num_updates trains longer)."
        )
    settings = None if resume else load_recipe(recipe, overrides or [])
    with progress_bars() as bars:

        def on_training(name: str, total: int) -> "Callable[[StepReport], None]":
            told = describe_split(output) if name == output.name else None
            if told is not None:
                print(told, file=sys.stderr)
            return training_bar(bars, total)

        progress = replace(progress_callbacks(bars), on_training=on_training)
        state = train_run(directory, output, recipe=settings, resume=resume, device=device, progress=progress)
    if os.environ.get("RANK", "0") == "0":  # under torchrun, only the first process prints
        _print_result(state, directory, output, as_json=as_json)
    if state.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _print_result(state: "TrainState", directory: Path, output: Path, *, as_json: bool) -> None:
    from cycleback.runs import run_split, saved_recipe

    total, best = saved_recipe(output).optimizer.num_updates, state.selected
    facts = {"run": str(output), "step": state.step, "kept_step": best.step if best else state.step}
    split = run_split(output)
    facts |= {"train": len(split["train"]), "held_out": len(split["held_out"])}
    facts |= {"num_updates": total, "stopped_early": state.stopped_early, "seconds": round(state.seconds, 3)}
    lines = []
    if best is not None:
        lines.append(f"kept update {best.step}: {best.held_out_cycle_rate:.1%} of held-out frames cycle back")
    facts["kept_untrained"] = state.kept_untrained
    facts |= {"backwards": state.backwards, "restart": state.restart and vars(state.restart)}
    lines += filter(None, [describe_restart(state)])
    if state.cycle_rates is not None:
        trained, before = (f"{rate:.1%}" for rate in state.cycle_rates)
        verdict = "kept the untrained streams" if state.kept_untrained else "training helped"
        lines.append(f"{verdict}: {trained} of the frames return by three warps, {before} before training")
    elif state.kept_untrained:
        lines.append("kept the untrained streams: fewer than three videos hold nothing more to learn")
    if state.is_interrupted:
        lines.append(f"Interrupted at update {state.step} of {total}; the run is saved in {output}")
        next_command = ["train", directory, "-o", output, "--resume"]
    else:
        lines += filter(None, [describe_backwards(state)])
        lines.append(f"trained in {state.seconds:.0f} s: {output}")
        next_command = ["sync", directory, "--run", output]
        if saved_recipe(output).encoder.base == "vector" or len(_find_actions(output)) > 1:
            next_command = ["embed", directory, "--run", output, "-o", f"{output}.emb"]
    print_result(facts, "\n".join(lines), next_command, as_json=as_json)


def _find_actions(output: Path) -> set[str]:
    """Return the actions of the videos of a run, which are the folders in their names."""
    from cycleback.runs import run_split

    return {name.rpartition("/")[0] for names in run_split(output).values() for name in names}


def describe_restart(state: "TrainState") -> str | None:
    """Say why and how it was trained again, and with what result."""
    if state.restart is None:
        return None
    restart = state.restart
    what = f"{restart.before:.0%} of the pairs of videos were matched backwards in time"
    kept = "" if restart.is_kept else "; kept the first training"
    return f"{what}: trained again with {restart.setting}, now {restart.after:.0%}{kept}"


def describe_backwards(state: "TrainState") -> str | None:
    """Return a note if too many pairs of videos are matched backwards in time by what is kept."""
    from cycleback.alignment.cycles import MAX_BACKWARD_SHARE

    if state.backwards is None or state.backwards <= MAX_BACKWARD_SHARE:
        return None
    return (
        f"note: {state.backwards:.0%} of the pairs of videos are matched backwards in time by nearest "
        "neighbours. Align with --method auto or dtw, whose path never runs backwards."
    )
