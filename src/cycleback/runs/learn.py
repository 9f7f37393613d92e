"""`train`: from a folder of videos to a run folder."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from cycleback.data import Dataset, FrameCache, read_dataset
from cycleback.errors import UserError
from cycleback.losses import CombinedLoss
from cycleback.models import Encoder, VectorBase, load_weights, save_encoder
from cycleback.progress import Counter
from cycleback.recipe import Recipe, build_batches, build_encoder, build_loss, build_optimizer
from cycleback.runs.encode import choose_device
from cycleback.runs.folder import abandon_run, open_run, run_records
from cycleback.runs.published import find_run
from cycleback.training import (
    Arithmetic,
    BatchMaker,
    Processes,
    Selector,
    StepReport,
    Trainer,
    TrainState,
    joined_processes,
    mixed_seed,
)
from cycleback.training.held_out import held_out_cycle_rate, held_out_records
from cycleback.training.phases import label_phases
from cycleback.training.videos import load_videos, presentation_times, vectors


@dataclass(frozen=True)
class Watcher:
    """What a caller wants to hear of while a run is made; each is optional."""

    on_frames: Counter | None = None
    on_features: Counter | None = None
    on_step: Callable[[StepReport], None] | None = None


def train(
    dataset: Dataset | Path | str,
    output: Path | str,
    *,
    recipe: Recipe | None = None,
    resume: bool = False,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    watcher: Watcher | None = None,
) -> TrainState:
    """Learn an encoder from a folder of videos, into a run folder; under torchrun, with several processes.

    Args:
        dataset: a folder, or what `read_dataset` made of one. Only the supervised loss sees labels.
        output: the run folder; must not exist unless `resume`.
        recipe: all settings; with `resume`, the run folder's own recipe is used.
        cache: where decoded frames and feature maps are kept (default: the user's cache folder).
    """
    watcher, output = watcher or Watcher(), Path(output)
    with joined_processes(choose_device(device)) as processes:
        watcher = watcher if processes.is_first else Watcher()
        with processes.first_alone():  # it makes the folder and decodes; the others then find all there
            dataset = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
            is_there = resume or not processes.is_first
            recipe = open_run(output, recipe or Recipe(), dataset=dataset, resume=is_there)
            try:
                job = _prepare(output, recipe, dataset, cache=cache, watcher=watcher, device=processes.device)
            except UserError:
                if not is_there:
                    abandon_run(output)
                raise
        state = _learn(output, recipe, job, processes=processes, on_step=watcher.on_step)
        del job
    return state


@dataclass(frozen=True)
class _Job:
    """What there is to learn from, and what learns."""

    encoder: Encoder
    loss: CombinedLoss
    batches: BatchMaker
    names: list[str]
    selector: Selector | None


def _prepare(
    output: Path,
    recipe: Recipe,
    dataset: Dataset,
    *,
    cache: Path | None,
    watcher: Watcher,
    device: torch.device,
) -> _Job:
    """Build the encoder and the loss, and bring the videos into the form it trains on."""
    records = run_records(output, dataset, "train")
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe)
    if recipe.run.start_from:
        load_weights(find_run(recipe.run.start_from), encoder)
    encoder = encoder.to(device)
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    if isinstance(encoder.base, VectorBase):
        encoder.base.fit(vectors(record).to(device) for record in records)
    videos = load_videos(
        encoder,
        records,
        frames=frames,
        device=device,
        on_frames=watcher.on_frames,
        on_features=watcher.on_features,
    )
    labels = None
    if recipe.loss.weights.get("supervised", 0) > 0:
        times = {record.name: presentation_times(record, frames) for record in records}
        labels = label_phases(records, times, batch_size=recipe.optimizer.batch_size)
    torch.manual_seed(mixed_seed(recipe.run.seed, 1))  # first weights of the loss: whatever came before
    loss = build_loss(
        recipe, embedding_size=encoder.embedding_size, num_phases=labels.num_phases if labels else 0
    )
    batches = build_batches(recipe, videos, [record.action for record in records], encoder=encoder)
    batches = dataclasses.replace(batches, phases=labels.videos if labels else None)
    selector = _selector(output, recipe, dataset, encoder=encoder, frames=frames)
    return _Job(encoder, loss.to(device), batches, [record.name for record in records], selector)


def _selector(
    output: Path, recipe: Recipe, dataset: Dataset, *, encoder: Encoder, frames: FrameCache
) -> Selector | None:
    """Looks at the held-out videos while training, if the recipe says so."""
    if not recipe.run.select_every:
        return None
    records = held_out_records(run_records(output, dataset, "held_out"))
    videos = load_videos(encoder, records, frames=frames, device=encoder.device)
    actions = [record.action for record in records]
    return Selector(
        lambda: held_out_cycle_rate(encoder, videos, actions), recipe.run.select_every, recipe.run.patience
    )


def _learn(
    output: Path,
    recipe: Recipe,
    job: _Job,
    *,
    processes: Processes,
    on_step: Callable[[StepReport], None] | None,
) -> TrainState:
    settings, rhythm, encoder = recipe.optimizer, recipe.run, job.encoder
    trainer = Trainer(
        encoder,
        job.loss,
        build_optimizer(recipe, encoder, job.loss),
        dataclasses.replace(job.batches, rank=processes.rank, world_size=processes.world_size),
        names=job.names,
        num_updates=settings.num_updates,
        seed=rhythm.seed,
        accumulate=settings.accumulate,
        augmentation=recipe.augment,
        clip_norm=settings.clip_norm,
        schedule=settings.schedule,
        warmup_updates=settings.warmup_updates,
        step_updates=settings.step_updates,
        step_factor=settings.step_factor,
        ema_decay=rhythm.ema_decay,
        arithmetic=Arithmetic(
            rhythm.precision, rhythm.channels_last, rhythm.compile, rhythm.deterministic, rhythm.record
        ),
        device=processes.device,
        processes=processes,
    )
    return trainer.run(
        output,
        save_every=rhythm.save_every,
        log_every=rhythm.log_every,
        selector=job.selector,
        tensorboard=rhythm.tensorboard,
        on_step=on_step,
        on_save=lambda step: save_encoder(output, encoder, vars(recipe.encoder)),
    )
