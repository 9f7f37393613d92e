"""A run folder on disk: its recipe, its videos, its encoder. Models of the package are run folders, too.

A published model is a run folder without the files that only training needs. A card tells its training
data, its scores and its permitted use.
"""

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

import torch

from cycleback.data import Dataset, FrameCache, VideoRecord, read_dataset, split_dataset
from cycleback.data.folder import SPLITS_FILE, names_folder, select_records
from cycleback.data.usable import keep_usable
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import check_kinds, embed_records
from cycleback.embeddings.features import FeatureCache, FusedFeatures, open_features, prepare_streams
from cycleback.errors import CheckpointError, DataError, OutputExistsError, UserError, did_you_mean
from cycleback.exported import check_options, embed_exported, is_exported
from cycleback.files import check_output, hold_lock, remove_drafts, write_json, write_text
from cycleback.models import STREAMS, Encoder, FusedBase, Precision, load_weights
from cycleback.models.checkpoint import FILE_NAME as WEIGHTS_FILE
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.models.streams import Stream
from cycleback.progress import Counter, ignore
from cycleback.reading import Cursor, read_json
from cycleback.recipe import RECIPE_FILE, Recipe, build_encoder, recipe_toml
from cycleback.recipe.files import load_saved_recipe
from cycleback.recipe.sections import EncoderSettings
from cycleback.training.held_out import choose_held_out
from cycleback.training.log import LOG_FILE, require_tensorboard
from cycleback.training.state import STATE_FILE
from cycleback.training.videos import load_vectors

VIDEOS_FILE = "videos.json"
CARD_FILE = "README.md"
PRETRAINED = "pretrained"
"""The encoder that needs no training: appearance, motion and pose, weighted for the videos at hand."""

_PACKAGE = Path(str(files("cycleback")))
FOLDERS = (_PACKAGE / "published", _PACKAGE.parents[1] / "models")
"""Folders of the published models: in an installed package, and at the root of a checkout."""


def published_models() -> dict[str, Path]:
    """List the models of the package: name -> folder."""
    recipes = [path for folder in reversed(FOLDERS) for path in sorted(folder.glob(f"*/{RECIPE_FILE}"))]
    return {path.parent.name: path.parent for path in recipes}


def find_run(source: Path | str) -> Path:
    """Return the run folder at a path, or the folder of the published model with this name.

    An existing path that is not a run is returned, too; reading it then says which file is missing.
    """
    path, models = Path(source), published_models()
    if (path / RECIPE_FILE).is_file():
        return path
    if str(source) in models:
        return models[str(source)]
    if is_exported(path):
        raise CheckpointError(
            f"{path} is an exported model, which can only embed videos; expected the run it was made from"
        )
    if path.exists():
        return path
    if str(source) == PRETRAINED:
        raise CheckpointError(f"{PRETRAINED!r} has no training videos; pass a run folder")
    known = [*models, PRETRAINED]
    guess = did_you_mean(str(source), known)
    advice = f"Train one: cycleback train VIDEOS -o {source}"
    raise CheckpointError(f"no run in {source} (looked for {RECIPE_FILE}). {guess} {advice}")


def load_encoder(source: Path | str = PRETRAINED) -> Encoder:
    """Load the encoder of a run.

    Args:
        source: a run folder; the name of a published model, such as `"golf-lite"`; or `"pretrained"`, which
            works without any training.
    """
    if str(source) == PRETRAINED:
        return build_pretrained()
    folder = find_run(source)
    encoder = build_encoder(saved_recipe(folder), saved=folder)
    load_weights(folder, encoder)
    return encoder.eval()


def build_pretrained(streams: tuple[Stream, ...] = STREAMS) -> Encoder:
    """Build the encoder of some streams that needs no training."""
    return build_encoder(Recipe(encoder=EncoderSettings(streams=streams, embedder="pooled"))).eval()


def embed_videos(
    encoder: Encoder | Path | str,
    videos: Dataset | Path | str | Sequence[Path | str],
    *,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    precision: Precision | None = None,
    streams: Mapping[str, float] | None = None,
    alike: EmbeddingSet | None = None,
    one_event: bool = False,
    leave_out: bool | None = None,
    progress: Counter = ignore,
) -> EmbeddingSet:
    """Embed every frame of a folder of videos, or of the named files.

    Args:
        encoder: an Encoder, or the argument of `load_encoder`: a run folder or a name; or the folder of an
            exported model, which runs on the CPU.
        videos: a data set, its folder, or paths of videos.
        cache: folder of decoded frames (default: the user's cache folder).
        precision: "float32", or "bfloat16": about 1 % off, much faster on a GPU, and the default there.
        streams: the weight of each stream of an untrained encoder. Without it and `alike`, weights are
            chosen for these videos, and mirrored videos are turned round. A trained encoder keeps its own.
        alike: a set to compare with: its weights are used, and videos are turned to the side it shows.
        one_event: several cameras film one event, each a part of it: streams keep their usual weights, and
            mirrored videos are turned round.
        leave_out: whether to leave out videos that cannot be used, with a warning for each, unless they are
            more than half; otherwise they are an error. Default: if `videos` is a folder or a data set.
        progress: called with (frames done, frames in total as far as known).
    """
    if not isinstance(encoder, Encoder) and is_exported(encoder):
        check_options(encoder, device=device, precision=precision)
        return embed_exported(
            encoder,
            videos,
            cache=cache,
            streams=streams,
            alike=alike,
            one_event=one_event,
            leave_out=leave_out,
            progress=progress,
        )
    encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    records, event_names = select_records(videos)
    check_kinds(encoder, records)
    encoder = encoder.to(choose_device(device))
    is_weighed = isinstance(encoder.base, FusedBase) and isinstance(encoder.embedder, PooledEmbedder)
    encoder = copy.deepcopy(encoder) if is_weighed else encoder  # the caller's keeps its weights
    frames, features = open_caches(encoder, cache, precision=precision)
    if leave_out or (leave_out is None and names_folder(videos)):
        records = keep_usable(records, cache=frames)
    if isinstance(features, FusedFeatures):
        prepare_streams(
            features,
            records,
            is_weighed=is_weighed,
            streams=streams,
            alike=alike,
            one_event=one_event,
            progress=progress,
        )
    return embed_records(
        encoder,
        records,
        frames=frames,
        features=features,
        event_names=event_names,
        precision=precision,
        progress=progress,
    )


def open_caches(
    encoder: Encoder, cache: Path | None, *, precision: Precision | None = None
) -> tuple[FrameCache, FeatureCache | FusedFeatures | None]:
    """Open the cache of decoded frames, and the features of a frozen base of images, or of streams."""
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    is_trained = encoder.train_base != "frozen" and not encoder.base.needs_whole_videos
    if is_trained or encoder.input_kind != "images":
        return frames, None
    return frames, open_features(frames, encoder.base, device=encoder.device, precision=precision)


def choose_device(device: torch.device | str | None = None) -> torch.device:
    """Return the named device, or by default a GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        is_known = chosen.type == "cuda" or (chosen.type == "cpu" and not chosen.index)
        is_there = is_known and len(torch.empty(1, device=chosen).cpu()) == 1
    except (RuntimeError, AssertionError, ValueError):  # an unknown name, or a GPU that is not there
        is_there = False
    if not is_there:
        raise UserError(f"cannot compute on device {str(device)!r}; expected cpu, or a GPU such as cuda")
    return chosen


def saved_recipe(folder: Path) -> Recipe:
    """Load the recipe of a run."""
    if not (folder / RECIPE_FILE).is_file():
        raise CheckpointError(
            f"no run in {folder} (looked for {RECIPE_FILE}). Train one: cycleback train VIDEOS -o {folder}"
        )
    return load_saved_recipe(folder / RECIPE_FILE)


def keeps_untrained(folder: Path) -> bool:
    """Return whether training did not help this run, so that it keeps the untrained streams."""
    return saved_recipe(folder).encoder.embedder == "pooled"


def run_split(folder: Path | str) -> dict[str, list[str]]:
    """Read the names of a run's videos: `{"train": [...], "held_out": [...]}`."""
    root = _read_videos(find_run(folder))
    split = {part: [name.text() for name in root.at(part).each()] for part in ("train", "held_out")}
    names = [name for part in split.values() for name in part]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise root.wrong(f"it lists {twice[0]!r} twice")
    return split


def run_videos(folder: Path | str) -> Path | None:
    """Return the folder of videos that a run was trained on, if it is still there."""
    run = find_run(folder)
    path = _read_videos(run).optional_text("folder") if (run / VIDEOS_FILE).is_file() else None
    return Path(path) if path is not None and os.path.isdir(path) else None


def _read_videos(run: Path) -> Cursor:
    return read_json(
        run / VIDEOS_FILE, problem=CheckpointError, advice=". Copy the run again, or train again."
    )


def run_records(output: Path, dataset: Dataset, part: str) -> list[VideoRecord]:
    """Return the videos that a run trains on, or holds out."""
    wanted = run_split(output)[part]
    missing = sorted(set(wanted) - set(dataset.names))
    if missing:
        raise DataError(
            f"{dataset.root} lacks {missing[0]!r} ({len(missing)} of the {len(wanted)} videos of {output})"
        )
    return list(dataset.subset(wanted).records)


def select_part(directory: Path | str, run: Path | str, part: str) -> Dataset | Path:
    """Return the whole folder, or the videos in it that a run trained on or held out."""
    if part == "all":
        return Path(directory)
    if part not in ("train", "held_out"):
        raise DataError(f"no part {part!r} of a data set: expected all, train or held_out")
    dataset, names = read_dataset(directory), run_split(run)[part]
    present = set(names) & set(dataset.names)
    if not present:
        raise DataError(f"{directory} has none of the {len(names)} {part} videos of {run}")
    return dataset.subset(present)


def records_of_action(dataset: Dataset, action: str) -> tuple[VideoRecord, ...]:
    """Return the videos of an action; "" returns all videos."""
    records = tuple(record for record in dataset if action in ("", record.action))
    if not records:
        known = ", ".join(name for name in dataset.actions if name) or "none"
        raise DataError(f"{dataset.root} has no video of data.action {action!r} (actions: {known})")
    return records


def create_run(output: Path, recipe: Recipe, dataset: Dataset) -> Recipe:
    """Make a run folder with its recipe and split; return the recipe completed from the data."""
    check_new_run(output, recipe)
    recipe, split = complete_recipe(recipe, dataset), _split(recipe, dataset)
    if recipe.run.select_every:
        choose_held_out(list(dataset.subset(split["held_out"]).records))
    try:
        write_text(output / RECIPE_FILE, recipe_toml(recipe), overwrite=True)
        _write_videos(output, split, dataset, recipe)
    except UserError:
        remove_run(output)
        raise
    return recipe


def check_new_run(output: Path, recipe: Recipe) -> None:
    """Refuse a run folder that exists, and settings that cannot be met here, before any work is done."""
    if output.is_file():
        raise OutputExistsError(f"{output} is a file, not a run folder. Choose another name with -o.")
    remove_drafts(output)
    if output.exists() and any(output.iterdir()):
        raise OutputExistsError(
            f"{output} exists. Resume it with --resume, or choose another folder with -o."
        )
    if recipe.run.tensorboard:
        require_tensorboard()
    if recipe.run.start_from:
        find_run(recipe.run.start_from)


def open_run(output: Path, dataset: Dataset) -> Recipe:
    """Return the recipe of an existing run; write its split if it was killed before that."""
    recipe = saved_recipe(output)
    if not (output / VIDEOS_FILE).exists():
        _write_videos(output, _split(recipe, dataset), dataset, recipe)
    return recipe


def _write_videos(output: Path, split: dict[str, list[str]], dataset: Dataset, recipe: Recipe) -> None:
    """Write which videos a run uses, and where they are, for the studio."""
    facts = {**split, "folder": str(dataset.root.resolve()), "because": _explain_split(dataset, recipe)}
    write_json(output / VIDEOS_FILE, facts, overwrite=True)


def _explain_split(dataset: Dataset, recipe: Recipe) -> str:
    """Say in words who chose the held-out videos."""
    if dataset.given_split:
        is_file = (dataset.root / SPLITS_FILE).is_file()
        return f"{SPLITS_FILE} says so" if is_file else "their folders say so"
    what = "person" if any(record.person for record in dataset) else "video"
    return f"data.held_out={recipe.data.held_out:g} is the chance of each {what}, so the share varies"


def describe_split(output: Path) -> str | None:
    """Say how many videos a run learns from and holds out, and why; None before it has videos."""
    if not (output / VIDEOS_FILE).is_file():
        return None
    split, because = run_split(output), _read_videos(output).optional_text("because")
    words = f"{len(split['train'])} videos to learn from, {len(split['held_out'])} held out"
    return words if because is None else f"{words} ({because})"


@contextmanager
def lock_run(output: Path, *, is_first: bool) -> Iterator[None]:
    """Keep other programs from training into a run folder; of several processes, the first one does.

    A folder that was made for the lock and is still empty at the end is removed.
    """
    if not is_first or output.is_file():
        yield
        return
    check_output(output, overwrite=True)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror or error}") from error
    try:
        with hold_lock(output, wait=False) as is_held:
            if not is_held:
                raise UserError(
                    f"another program is training in {output}. Wait for it, or choose another folder with -o."
                )
            yield
    finally:
        with suppress(OSError):
            output.rmdir()


@contextmanager
def remove_unsaved(output: Path, *, is_new: bool) -> Iterator[None]:
    """Remove a new run if the block ends in an error, or by Ctrl-C, before anything was saved."""
    try:
        yield
    except BaseException:
        if is_new and not any((output / name).exists() for name in (WEIGHTS_FILE, STATE_FILE)):
            remove_run(output)
        raise


def remove_run(output: Path) -> None:
    """Remove a run that ended before its first save: there is nothing in it to use or to resume."""
    for path in output.glob("*"):
        if path.name in (RECIPE_FILE, VIDEOS_FILE, LOG_FILE) or path.name.startswith("events.out.tfevents"):
            path.unlink()
    with suppress(OSError):
        output.rmdir()


def complete_recipe(recipe: Recipe, dataset: Dataset) -> Recipe:
    """Fill in the vector size of sequences from the data."""
    encoder = recipe.encoder
    if encoder.base != "vector" or encoder.vector.in_features:
        return recipe
    width = load_vectors(dataset.records[0]).shape[1]
    vector = dataclasses.replace(encoder.vector, in_features=width)
    return dataclasses.replace(recipe, encoder=dataclasses.replace(encoder, vector=vector))


def _split(recipe: Recipe, dataset: Dataset) -> dict[str, list[str]]:
    """Choose the videos to train on and to hold out; the choice is kept with the run."""
    records = records_of_action(dataset, recipe.data.action)
    if not dataset.given_split:
        records = split_dataset(records, recipe.data.held_out, recipe.run.seed)
    return {
        "train": [record.name for record in records if record.split == "train"],
        "held_out": [record.name for record in records if record.split == "val"],
    }
