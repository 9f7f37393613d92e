"""What is in a run folder, and how one begins."""

import dataclasses
import json
import os
from contextlib import suppress
from pathlib import Path

from cycleback.data import Dataset, VideoRecord, read_dataset, split_dataset
from cycleback.errors import CheckpointError, DataError, OutputExistsError
from cycleback.recipe import RECIPE_FILE, Recipe, load_recipe, recipe_toml
from cycleback.runs.published import find_run
from cycleback.training.failures import saving
from cycleback.training.held_out import held_out_records
from cycleback.training.tensorboard import require_tensorboard
from cycleback.training.videos import vectors

VIDEOS_FILE = "videos.json"


def run_split(folder: Path | str) -> dict[str, list[str]]:
    """Names of the videos a run trained on and held out: `{"train": [...], "held_out": [...]}`."""
    path = find_run(folder) / VIDEOS_FILE
    try:
        split: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None
    return split


def open_run(output: Path, recipe: Recipe, *, dataset: Dataset, resume: bool) -> Recipe:
    """Make the folder with its recipe and its split, or take the recipe of the one that is there."""
    if resume:
        recipe = saved_recipe(output)
        if not (output / VIDEOS_FILE).exists():  # killed while it began
            _write(output / VIDEOS_FILE, json.dumps(_split(recipe, dataset), indent=1))
        return recipe
    if output.exists() and any(output.iterdir()):
        raise OutputExistsError(
            f"{output} exists. Go on with it by --resume, or give another folder with -o."
        )
    if recipe.run.tensorboard:
        require_tensorboard()
    if recipe.run.start_from:
        find_run(recipe.run.start_from)  # or nothing is begun
    recipe, split = _complete(recipe, dataset), _split(recipe, dataset)
    if recipe.run.select_every:
        held_out_records(list(dataset.subset(split["held_out"]).records))
    with saving(output):
        output.mkdir(parents=True, exist_ok=True)
        _write(output / RECIPE_FILE, recipe_toml(recipe))
        _write(output / VIDEOS_FILE, json.dumps(split, indent=1))
    return recipe


def abandon_run(output: Path) -> None:
    """Take back what `open_run` made, of a run that cannot begin."""
    for name in (RECIPE_FILE, VIDEOS_FILE):
        (output / name).unlink(missing_ok=True)
    with suppress(OSError):
        output.rmdir()


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, "utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _complete(recipe: Recipe, dataset: Dataset) -> Recipe:
    """The recipe with what it leaves to the data: how many numbers a frame of a sequence has."""
    if recipe.encoder.base != "vector" or recipe.encoder.in_features:
        return recipe
    width = vectors(dataset.records[0]).shape[1]
    return dataclasses.replace(recipe, encoder=dataclasses.replace(recipe.encoder, in_features=width))


def _split(recipe: Recipe, dataset: Dataset) -> dict[str, list[str]]:
    """Names of the videos to learn from and to hold out; fixed when the run begins and kept with it."""
    records = records_of_action(dataset, recipe.data.action)
    if not dataset.given_split:
        records = split_dataset(records, recipe.data.held_out, recipe.run.seed)
    return {
        "train": [record.name for record in records if record.split == "train"],
        "held_out": [record.name for record in records if record.split == "val"],
    }


def records_of_action(dataset: Dataset, action: str) -> tuple[VideoRecord, ...]:
    """The videos of an action; all of them for ""."""
    records = tuple(record for record in dataset if action in ("", record.action))
    if not records:
        known = ", ".join(name for name in dataset.actions if name) or "none"
        raise DataError(f"{dataset.root} has no video of data.action {action!r} (actions: {known})")
    return records


def saved_recipe(folder: Path) -> Recipe:
    """The recipe a run was made with."""
    if not (folder / RECIPE_FILE).is_file():
        raise CheckpointError(
            f"no run in {folder} (looked for {RECIPE_FILE}). Train one: cycleback train VIDEOS -o {folder}"
        )
    return load_recipe(folder / RECIPE_FILE)


def run_records(output: Path, dataset: Dataset, part: str) -> list[VideoRecord]:
    """The videos that a run trains on, or holds out."""
    wanted = run_split(output)[part]
    missing = sorted(set(wanted) - set(dataset.names))
    if missing:
        raise DataError(
            f"{dataset.root} lacks {missing[0]!r} ({len(missing)} of the {len(wanted)} videos of {output})"
        )
    return list(dataset.subset(wanted).records)


def select_part(directory: Path | str, run: Path | str, part: str) -> Dataset | Path:
    """The whole folder, or the part of it that a run trained on or held out."""
    if part == "all":
        return Path(directory)
    if part not in ("train", "held_out"):
        raise DataError(f"no part {part!r} of a data set: expected all, train or held_out")
    dataset, names = read_dataset(directory), run_split(run)[part]
    here = set(names) & set(dataset.names)
    if not here:
        raise DataError(f"{directory} has none of the {len(names)} {part} videos of {run}")
    return dataset.subset(here)
