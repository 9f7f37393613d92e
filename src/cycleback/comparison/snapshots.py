"""The encoder on its way: copies of what a run saves anyway, at a tenth and at three tenths of the updates.

A run saves its encoder after the callback of an update, so at the callback of update s the file holds update
s - 1, if that was one to save at. Copying it costs nothing and does not touch the training.
"""

import dataclasses
import os
import shutil
from pathlib import Path

from cycleback.models import Encoder
from cycleback.recipe import RECIPE_FILE, Recipe
from cycleback.runs import load_encoder
from cycleback.training import StepReport

SHARES = (0.1, 0.3)
WEIGHTS_FILE = "encoder.safetensors"


def with_saves(recipe: Recipe) -> Recipe:
    """The recipe, saving at least ten times: all else in the training stays as it is."""
    often = max(1, recipe.optimizer.num_updates // 10)
    rhythm = dataclasses.replace(recipe.run, save_every=min(recipe.run.save_every, often))
    return dataclasses.replace(recipe, run=rhythm)


def snapshot_steps(num_updates: int, save_every: int) -> tuple[int, ...]:
    """The first saved updates at or after a tenth and three tenths, before the last."""
    steps = (-(-round(share * num_updates) // save_every) * save_every for share in SHARES)
    return tuple(step for step in dict.fromkeys(steps) if 0 < step < num_updates)


def keep_snapshot(report: StepReport, run: Path, *, output: Path, steps: tuple[int, ...]) -> None:
    """Copy the encoder a run has just saved, if it is one of `steps`; called after each update."""
    saved = report.step - 1
    target = output / str(saved)
    if saved not in steps or target.exists() or not (run / WEIGHTS_FILE).is_file():
        return
    draft = output / f".{saved}.{os.getpid()}"
    draft.mkdir(parents=True, exist_ok=True)
    for name in (RECIPE_FILE, WEIGHTS_FILE):
        shutil.copyfile(run / name, draft / name)
    os.replace(draft, target)


def load_snapshots(folder: Path) -> dict[int, Encoder]:
    """Update -> encoder, for those that were kept."""
    kept = sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.is_dir() else []
    return {step: load_encoder(folder / str(step)) for step in kept}
