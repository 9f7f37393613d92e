"""Train an encoder on a folder of videos into a run folder."""

import dataclasses
import math
import os
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment.cycles import MAX_BACKWARD_SHARE, backward_share, warped_cycle_rate
from cycleback.data import Dataset, FrameCache, VideoRecord, read_dataset
from cycleback.data.usable import keep_trainable
from cycleback.errors import ConfigError
from cycleback.files import write_text
from cycleback.models import Encoder, FusedBase, load_weights, save_encoder
from cycleback.models.checkpoint import load_settings
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.progress import Progress
from cycleback.recipe import (
    RECIPE_FILE,
    Recipe,
    build_batches,
    build_encoder,
    build_loss,
    build_optimizer,
    recipe_toml,
)
from cycleback.recipe.sections import EncoderSettings
from cycleback.runs.folder import (
    VIDEOS_FILE,
    check_new_run,
    choose_device,
    create_run,
    find_run,
    keeps_untrained,
    lock_run,
    open_run,
    records_of_action,
    remove_unsaved,
    run_records,
)
from cycleback.training import Processes, Trainer, TrainState, join_processes, mix_seed
from cycleback.training.failures import explain_save_failures
from cycleback.training.held_out import MAX_VIDEOS, choose_held_out, embed_video, held_out_cycle_rate
from cycleback.training.state import Restart
from cycleback.training.videos import (
    fill_share,
    fit_base,
    label_phases,
    load_mirrored,
    load_sides,
    load_times,
    load_videos,
)

AGAIN_FOLDER = "again"  # in the run folder, while it is trained again
ORDER_WEIGHT = 0.3  # of the order loss in a second training
WholeVideo = tuple[Tensor, Tensor | None]
"""A video as an encoder trains on it, and its streams that the base does not see."""


def train(
    dataset: Dataset | Path | str,
    output: Path | str,
    *,
    recipe: Recipe | None = None,
    resume: bool = False,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> TrainState:
    """Train an encoder on a folder of videos into a run folder; under torchrun, with several processes.

    Args:
        dataset: a folder, or the result of `read_dataset`. Only the supervised loss uses labels.
        output: the run folder; must not exist unless `resume`.
        recipe: all settings (default: `Recipe()`). A resumed run keeps its own, so `resume` refuses one.
        cache: folder of decoded frames and feature maps (default: the user's cache folder).
        progress: callbacks; only the first process calls them.
    """
    output = Path(output)
    if resume and recipe is not None:
        raise ConfigError(f"a resumed run keeps the settings in {output / RECIPE_FILE}: pass no recipe")
    with (
        join_processes(choose_device(device)) as processes,
        lock_run(output, is_first=processes.is_first),
    ):
        progress = progress if progress is not None and processes.is_first else Progress()
        is_new = processes.is_first and not resume
        with processes.first_alone():  # it makes the folder, which the others then read
            dataset = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
            _check_loss(recipe or Recipe())
            if not resume:  # a resumed run keeps its videos
                if is_new:
                    check_new_run(output, recipe or Recipe())
                dataset = _leave_out(dataset, recipe or Recipe(), cache)
            if resume and keeps_untrained(output):
                raise ConfigError(
                    f"{output} keeps the untrained encoder: there is nothing to resume. Train anew."
                )
            recipe = create_run(output, recipe or Recipe(), dataset) if is_new else open_run(output, dataset)
        with remove_unsaved(output, is_new=is_new):
            _fill_together(output, recipe, dataset, cache=cache, progress=progress, processes=processes)
            with processes.first_alone():  # it finds what all have filled
                trainer, evaluate_held_out = _prepare(
                    output, recipe, dataset, cache=cache, progress=progress, processes=processes
                )
            state = _run(trainer, output, recipe, evaluate_held_out, progress=progress)
        frames = FrameCache(cache, size=trainer.encoder.frame_size, fit=trainer.encoder.fit)
        if not state.is_interrupted:
            state = _measure_backwards(
                output, dataset, state, encoder=trainer.encoder, frames=frames, processes=processes
            )
            if recipe.run.restart and (state.backwards or 0.0) > MAX_BACKWARD_SHARE:
                recipe, state = _train_again(
                    output, recipe, dataset, state, frames=frames, progress=progress, processes=processes
                )
        if processes.is_first and not state.is_interrupted:
            state = _keep_better(output, recipe, dataset, state, encoder=trainer.encoder, frames=frames)
        del trainer, evaluate_held_out  # before the processes part, see `join_processes`
    return state


def _run(
    trainer: Trainer,
    output: Path,
    recipe: Recipe,
    evaluate_held_out: Callable[[], float] | None,
    *,
    progress: Progress,
) -> TrainState:
    """Train to the end of a recipe, into a run folder."""
    settings = tomllib.loads(recipe_toml(recipe))["encoder"]
    return trainer.run(
        output,
        evaluate_held_out=evaluate_held_out,
        on_step=progress.on_training(output.name, recipe.optimizer.num_updates),
        on_save=lambda step: save_encoder(output, trainer.encoder, settings),
    )


def _train_again(
    output: Path,
    recipe: Recipe,
    dataset: Dataset,
    state: TrainState,
    *,
    frames: FrameCache,
    progress: Progress,
    processes: Processes,
) -> tuple[Recipe, TrainState]:
    """Train once more where pairs run backwards, and keep the run whose pairs do so less.

    A cycle to another video and back has no direction, so the first updates decide. The order loss makes
    matches run forwards; if it is used already, another start is tried.
    """
    other, setting = _change_start(recipe)
    draft = output / AGAIN_FOLDER
    with processes.first_alone():
        if processes.is_first:
            shutil.rmtree(draft, ignore_errors=True)
            write_text(draft / RECIPE_FILE, recipe_toml(other), overwrite=True)
            shutil.copy(output / VIDEOS_FILE, draft / VIDEOS_FILE)
        trainer, evaluate_held_out = _prepare(
            draft, other, dataset, cache=frames.root, progress=Progress(), processes=processes
        )
    try:
        second = _run(trainer, draft, other, evaluate_held_out, progress=progress)
        seconds = state.seconds + second.seconds
        if second.is_interrupted:  # the first training is complete
            return recipe, state
        second = _measure_backwards(
            draft, dataset, second, encoder=trainer.encoder, frames=frames, processes=processes
        )
        before, after = state.backwards or 0.0, second.backwards or 0.0
        restart = Restart(setting, before, after, is_kept=after < before)
        if not restart.is_kept:
            return recipe, dataclasses.replace(state, seconds=seconds, restart=restart)
        if processes.is_first:
            with explain_save_failures(output):  # the recipe last, as in `_keep_better`
                for path in sorted(draft.iterdir(), key=lambda path: path.name == RECIPE_FILE):
                    os.replace(path, output / path.name)
        return other, dataclasses.replace(second, seconds=seconds, restart=restart)
    finally:
        if processes.is_first:
            shutil.rmtree(draft, ignore_errors=True)


def _change_start(recipe: Recipe) -> tuple[Recipe, str]:
    """Return the recipe of a second training, and the setting in which it differs."""
    if not recipe.loss.is_used("order"):
        weights = {**recipe.loss.weights, "order": ORDER_WEIGHT}
        changed = dataclasses.replace(recipe, loss=dataclasses.replace(recipe.loss, weights=weights))
        return changed, f"loss.weights.order={ORDER_WEIGHT:g}"
    seed = recipe.run.seed + 1
    return dataclasses.replace(recipe, run=dataclasses.replace(recipe.run, seed=seed)), f"run.seed={seed}"


def _measure_backwards(
    output: Path,
    dataset: Dataset,
    state: TrainState,
    *,
    encoder: Encoder,
    frames: FrameCache,
    processes: Processes,
) -> TrainState:
    """Add to the state which share of the pairs of videos the saved encoder matches backwards in time."""
    share = -1.0
    records = _choose_judges(output, dataset)
    if processes.is_first and records and not _was_judged(output):
        load_weights(output, encoder)  # the best of the run need not be the last
        share = backward_share(_embed_whole(encoder, _load_whole(encoder, records, frames)))
    share = processes.from_first(share)
    return dataclasses.replace(state, backwards=None if share < 0 else share)


def _load_whole(encoder: Encoder, records: Sequence[VideoRecord], frames: FrameCache) -> list[WholeVideo]:
    """Load whole videos in the form they are trained on, each with the streams that the base does not see."""
    device = encoder.device
    videos = load_videos(encoder, records, frames=frames, device=device)
    found = load_sides(encoder, records, frames=frames, device=device)
    sides: Sequence[Tensor | None] = found or [None] * len(records)
    return list(zip(videos, sides, strict=True))


def _embed_whole(encoder: Encoder, videos: Sequence[WholeVideo]) -> list[NDArray[np.float32]]:
    """Embed whole videos: (N, D) each."""
    return [embed_video(encoder.eval(), video, side) for video, side in videos]


def _leave_out(dataset: Dataset, recipe: Recipe, cache: Path | None) -> Dataset:
    """Leave out the videos that cannot be trained on, with a warning for each."""
    records = records_of_action(dataset, recipe.data.action)
    size = recipe.data.frame_size
    frames = FrameCache(cache, size=(size, size), fit=recipe.data.fit)
    usable = keep_trainable(records, cache=frames)
    return dataset.subset(record.name for record in usable) if len(usable) < len(records) else dataset


def _check_loss(recipe: Recipe) -> None:
    """Refuse the match loss for maps of appearance, which are too large to be warped as they are."""
    sees_vectors = recipe.encoder.base == "vector" or recipe.encoder.streams != ("appearance",)
    if recipe.loss.is_used("match") and not sees_vectors:
        raise ConfigError(
            "loss match needs motion or pose in encoder.streams, or encoder.base='vector'. "
            "Add them, or set loss.weights={ tcc = 1.0, tcn = 1.0 }."
        )


def _fill_together(
    output: Path,
    recipe: Recipe,
    dataset: Dataset,
    *,
    cache: Path | None,
    progress: Progress,
    processes: Processes,
) -> None:
    """Let each process decode its share of the videos, and compute what a frozen base sees of them."""
    if processes.world_size == 1:
        return
    records = run_records(output, dataset, "train")
    if recipe.run.select_every:
        records += choose_held_out(run_records(output, dataset, "held_out"))
    encoder = _build_encoder(recipe, processes.device)
    fill_share(
        encoder,
        records,
        frames=FrameCache(cache, size=encoder.frame_size, fit=encoder.fit),
        processes=processes,
        on_frames=progress.on_frames,
        on_features=progress.on_features,
    )


def _build_encoder(recipe: Recipe, device: torch.device) -> Encoder:
    """Build the encoder with which a training starts."""
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe)
    if recipe.run.start_from:
        load_weights(find_run(recipe.run.start_from), encoder)
    return encoder.to(device)


def _prepare(
    output: Path,
    recipe: Recipe,
    dataset: Dataset,
    *,
    cache: Path | None,
    progress: Progress,
    processes: Processes,
) -> tuple[Trainer, Callable[[], float] | None]:
    """Load the videos; return the trainer and, if the recipe selects weights, the held-out evaluation."""
    records, device = run_records(output, dataset, "train"), processes.device
    encoder = _build_encoder(recipe, device)
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    counters = {"on_frames": progress.on_frames, "on_features": progress.on_features}
    streams = None
    if not recipe.run.start_from or encoder.input_kind == "vectors":
        streams = fit_base(encoder, records, frames=frames, **counters)
    counters = {} if streams is not None else counters  # they have counted everything
    videos = load_videos(
        encoder,
        records,
        frames=frames,
        device=device,
        streams=streams,
        storage=recipe.data.storage,
        sharers=processes.local_size,
        **counters,
    )
    labels = None
    if recipe.loss.is_used("supervised"):
        times = {record.name: load_times(record, frames) for record in records}
        labels = label_phases(records, times, batch_size=recipe.optimizer.batch_size)
    torch.manual_seed(mix_seed(recipe.run.seed, 1))  # the loss has the same first weights in any run
    num_phases, phases = (labels.num_phases, labels.videos) if labels else (0, None)
    loss = build_loss(recipe, embedding_size=encoder.embedding_size, num_phases=num_phases).to(device)
    actions = [record.action for record in records]
    sides = load_sides(encoder, records, frames=frames, device=device, streams=streams)
    mirrored = load_mirrored(encoder, records, streams=streams)
    batches = build_batches(
        recipe, videos, actions, encoder=encoder, phases=phases, sides=sides, mirrored=mirrored
    )
    trainer = Trainer(
        encoder,
        loss,
        build_optimizer(recipe, encoder, loss),
        dataclasses.replace(batches, rank=processes.rank, world_size=processes.world_size),
        names=[record.name for record in records],
        settings=recipe.optimizer,
        run_settings=recipe.run,
        augmentation=recipe.augment,
        processes=processes,
        slow_momentum=recipe.loss.next_frame.momentum,
    )
    if not processes.is_first:  # which alone evaluates
        return trainer, (lambda: math.nan) if recipe.run.select_every else None
    return trainer, _held_out_evaluation(output, recipe, dataset, encoder=encoder, frames=frames)


def _keep_better(
    output: Path, recipe: Recipe, dataset: Dataset, state: TrainState, *, encoder: Encoder, frames: FrameCache
) -> TrainState:
    """Replace the trained encoder of streams by the untrained one unless its warps agree better.

    An encoder that still matches pairs backwards, more than the untrained one, is replaced, too. They are
    compared without labels, on the held-out videos or, if these are fewer than three, on the training videos.
    Two videos tell nothing: warping them is all that training could learn from.
    """
    base = encoder.base
    if not isinstance(base, FusedBase) or not base.is_frozen or isinstance(encoder.embedder, PooledEmbedder):
        return state
    untrained = Encoder(base, PooledEmbedder(base.channels), frame_size=encoder.frame_size, fit=encoder.fit)
    records = _choose_judges(output, dataset)
    rates, shares = None, (0.0, 0.0)
    if records and not _was_judged(output):
        load_weights(output, encoder)  # the best of the run need not be the last
        videos = _load_whole(encoder, records, frames)
        embedded = [_embed_whole(each, videos) for each in (encoder, untrained)]
        rates = (warped_cycle_rate(embedded[0]), warped_cycle_rate(embedded[1]))
        shares = (backward_share(embedded[0]), backward_share(embedded[1]))
        state = dataclasses.replace(state, backwards=shares[0])
    runs_backwards = shares[0] > MAX_BACKWARD_SHARE and shares[1] < shares[0]
    is_better = rates is not None and rates[0] > rates[1] and not runs_backwards
    if not is_better:
        state = dataclasses.replace(state, backwards=shares[1] if records else None)
        settings = {
            **vars(recipe.encoder),
            "embedder": "pooled",
            recipe.encoder.embedder: _default_of(recipe),
        }
        kept = dataclasses.replace(recipe, encoder=EncoderSettings(**settings))
        with explain_save_failures(output):  # the recipe last: resuming finds what a kill leaves before it
            save_encoder(output, untrained, tomllib.loads(recipe_toml(kept))["encoder"])
            write_text(output / RECIPE_FILE, recipe_toml(kept), overwrite=True)
    return dataclasses.replace(state, kept_untrained=not is_better, cycle_rates=rates)


def _choose_judges(output: Path, dataset: Dataset) -> list[VideoRecord]:
    """Return up to MAX_VIDEOS videos of the largest action: held-out ones, else training ones, else none."""
    for part in ("held_out", "train"):
        records = run_records(output, dataset, part)
        groups = [[r for r in records if r.action == action] for action in {r.action for r in records}]
        largest = max(groups, key=len, default=[])
        if len(largest) >= 3:
            return largest[:MAX_VIDEOS]
    return []


def _was_judged(output: Path) -> bool:
    """Return whether the run keeps the untrained streams, maybe by a process that was killed right after."""
    return bool(load_settings(output)["embedder"] == "pooled")


def _default_of(recipe: Recipe) -> object:
    """Return the default settings of the recipe's embedder: they have no effect any more."""
    return type(getattr(recipe.encoder, recipe.encoder.embedder))()


def _held_out_evaluation(
    output: Path, recipe: Recipe, dataset: Dataset, *, encoder: Encoder, frames: FrameCache
) -> Callable[[], float] | None:
    """Return a function that evaluates the held-out videos, if the recipe asks for it."""
    if not recipe.run.select_every:
        return None
    records = choose_held_out(run_records(output, dataset, "held_out"))
    videos = load_videos(encoder, records, frames=frames, device=encoder.device)
    sides = load_sides(encoder, records, frames=frames, device=encoder.device)
    actions = [record.action for record in records]
    return lambda: held_out_cycle_rate(encoder, videos, actions, sides=sides)
