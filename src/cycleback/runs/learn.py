"""Train an encoder on a folder of videos into a run folder."""

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import torch

from cycleback.alignment.cycles import warped_cycle_rate
from cycleback.data import Dataset, FrameCache, VideoRecord, read_dataset
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
    choose_device,
    create_run,
    find_run,
    keeps_untrained,
    lock_run,
    open_run,
    remove_unsaved,
    run_records,
)
from cycleback.training import Processes, Trainer, TrainState, join_processes, mix_seed
from cycleback.training.failures import explain_save_failures
from cycleback.training.held_out import MAX_VIDEOS, choose_held_out, embed_video, held_out_cycle_rate
from cycleback.training.videos import (
    fit_base,
    label_phases,
    load_mirrored,
    load_sides,
    load_times,
    load_videos,
)


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
        with processes.first_alone():  # it makes the folder and fills the cache, which the others then read
            dataset = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
            _check_loss(recipe or Recipe())
            if resume and keeps_untrained(output):
                raise ConfigError(
                    f"{output} keeps the untrained encoder: there is nothing to resume. Train anew."
                )
            recipe = create_run(output, recipe or Recipe(), dataset) if is_new else open_run(output, dataset)
            with remove_unsaved(output, is_new=is_new):
                trainer, evaluate_held_out = _prepare(
                    output, recipe, dataset, cache=cache, progress=progress, processes=processes
                )
        settings = tomllib.loads(recipe_toml(recipe))["encoder"]
        with remove_unsaved(output, is_new=is_new):
            state = trainer.run(
                output,
                evaluate_held_out=evaluate_held_out,
                on_step=progress.on_training(output.name, recipe.optimizer.num_updates),
                on_save=lambda step, encoder=trainer.encoder: save_encoder(output, encoder, settings),  # type: ignore[misc]
            )
        if processes.is_first and not state.is_interrupted:
            frames = FrameCache(cache, size=trainer.encoder.frame_size, fit=trainer.encoder.fit)
            state = _keep_better(output, recipe, dataset, state, encoder=trainer.encoder, frames=frames)
        del trainer, evaluate_held_out  # before the processes part, see `join_processes`
    return state


def _check_loss(recipe: Recipe) -> None:
    """Refuse the match loss for maps of appearance, which are too large to be warped as they are."""
    sees_vectors = recipe.encoder.base == "vector" or recipe.encoder.streams != ("appearance",)
    if recipe.loss.is_used("match") and not sees_vectors:
        raise ConfigError(
            "loss match needs motion or pose in encoder.streams, or encoder.base='vector'. "
            "Add them, or set loss.weights={ tcc = 1.0, tcn = 1.0 }."
        )


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
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe)
    if recipe.run.start_from:
        load_weights(find_run(recipe.run.start_from), encoder)
    encoder = encoder.to(device)
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    counters = {"on_frames": progress.on_frames, "on_features": progress.on_features}
    streams = None
    if not recipe.run.start_from or encoder.input_kind == "vectors":
        streams = fit_base(encoder, records, frames=frames, **counters)
    counters = {} if streams is not None else counters  # they have counted everything
    videos = load_videos(encoder, records, frames=frames, device=device, streams=streams, **counters)
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
    )
    return trainer, _held_out_evaluation(output, recipe, dataset, encoder=encoder, frames=frames)


def _keep_better(
    output: Path, recipe: Recipe, dataset: Dataset, state: TrainState, *, encoder: Encoder, frames: FrameCache
) -> TrainState:
    """Replace the trained encoder of streams by the untrained one unless its warps agree better.

    They are compared without labels, on the held-out videos or, if these are fewer than three, on the
    training videos. Two videos tell nothing: warping them is all that training could learn from.
    """
    base = encoder.base
    if not isinstance(base, FusedBase) or not base.is_frozen or isinstance(encoder.embedder, PooledEmbedder):
        return state
    untrained = Encoder(base, PooledEmbedder(base.channels), frame_size=encoder.frame_size, fit=encoder.fit)
    records = _choose_judges(output, dataset)
    rates = None
    was_judged = load_settings(output)["embedder"] == "pooled"  # by a process that was killed right after
    if records and not was_judged:
        load_weights(output, encoder)  # the best of the run need not be the last
        videos = load_videos(encoder, records, frames=frames, device=encoder.device)
        trained, before = (
            warped_cycle_rate([embed_video(each.eval(), video) for video in videos])
            for each in (encoder, untrained)
        )
        rates = (trained, before)
    is_better = rates is not None and rates[0] > rates[1]
    if not is_better:
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
