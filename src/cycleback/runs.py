"""The run folder: all a user must keep or send, and the three calls that make and use one.

RUN/recipe.toml           every setting, resolved
RUN/encoder.safetensors   the weights
RUN/videos.json           which videos were trained on and which were held out
RUN/state.pt              what resuming needs
RUN/log.jsonl             loss and cycle-consistency rate, a line every few updates
RUN/selected.json         with run.select_every: which update the weights are of, and why
RUN/tensorboard/          with run.tensorboard
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from cycleback.data import Dataset, FrameCache, VideoRecord, read_dataset, split_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import Progress, embed_records
from cycleback.embeddings.features import FeatureCache
from cycleback.errors import CheckpointError, DataError, OutputExistsError
from cycleback.losses import CombinedLoss
from cycleback.models import Encoder, VectorBase, load_weights, save_encoder
from cycleback.recipe import (
    RECIPE_FILE,
    EncoderSection,
    Recipe,
    build_batches,
    build_encoder,
    build_loss,
    build_optimizer,
    load_recipe,
    recipe_toml,
)
from cycleback.selection import named_records
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
from cycleback.training.tensorboard import require_tensorboard
from cycleback.training.videos import load_videos, presentation_times, vectors

VIDEOS_FILE = "videos.json"
PRETRAINED = "pretrained"
"""The name of the encoder that needs no training: ImageNet features, averaged over the picture."""


@dataclass(frozen=True)
class Watcher:
    """What a caller wants to hear of while a run is made; each is optional."""

    on_frames: Progress | None = None
    on_features: Progress | None = None
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
        dataset: a folder, or what `read_dataset` made of one. Labels are looked at by the supervised loss only.
        output: the run folder; must not exist unless `resume`.
        recipe: all settings; with `resume`, the run folder's own recipe is used.
        cache: where decoded frames and feature maps are kept (default: the user's cache folder).
    """
    watcher, output = watcher or Watcher(), Path(output)
    with joined_processes(choose_device(device)) as processes:
        with processes.first_alone():  # it makes the folder and decodes; the others then find all there
            dataset = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
            recipe = _open_run(
                output, recipe or Recipe(), dataset=dataset, resume=resume or not processes.is_first
            )
            job = _prepare(output, recipe, dataset, cache=cache, watcher=watcher, device=processes.device)
        return _learn(output, recipe, job, processes=processes, on_step=watcher.on_step)


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
    records = _run_records(output, dataset, "train")
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe).to(device)
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
    records = held_out_records(_run_records(output, dataset, "held_out"))
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
        arithmetic=Arithmetic(rhythm.precision, rhythm.channels_last, rhythm.compile, rhythm.deterministic),
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


def load_encoder(source: Path | str = PRETRAINED) -> Encoder:
    """The encoder of a run folder, or `"pretrained"`: the one that works before any training."""
    if str(source) == PRETRAINED:
        return build_encoder(Recipe(encoder=EncoderSection(embedder="pooled"))).eval()
    folder = Path(source)
    encoder = build_encoder(saved_recipe(folder), saved=folder)
    load_weights(folder, encoder)
    return encoder.eval()


def embed_videos(
    encoder: Encoder | Path | str,
    videos: Dataset | Path | str | Sequence[Path | str],
    *,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> EmbeddingSet:
    """Embed every frame of a folder of videos, or of the named files.

    Args:
        encoder: an Encoder, a run folder, or `"pretrained"`.
        videos: a data set, its folder, or paths of videos.
        cache: where decoded frames are kept (default: the user's cache folder).
        progress: called with (frames done, frames in all).
    """
    encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    records, event_names = named_records(videos)
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    encoder = encoder.to(choose_device(device))
    features = None
    if encoder.train_base == "frozen":
        frames.fill(records)
        features = FeatureCache(frames, encoder.base, device=encoder.device)
    return embed_records(
        encoder, records, frames=frames, features=features, event_names=event_names, progress=progress
    )


def choose_device(device: torch.device | str | None = None) -> torch.device:
    """The named device, or the GPU where there is one."""
    if device is not None:
        return torch.device(device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def run_split(folder: Path | str) -> dict[str, list[str]]:
    """Names of the videos a run trained on and held out: `{"train": [...], "held_out": [...]}`."""
    path = Path(folder) / VIDEOS_FILE
    try:
        split: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None
    return split


def _open_run(output: Path, recipe: Recipe, *, dataset: Dataset, resume: bool) -> Recipe:
    """Make the folder with its recipe and its split, or take the recipe of the one that is there."""
    if resume:
        return saved_recipe(output)
    if output.exists() and any(output.iterdir()):
        raise OutputExistsError(
            f"{output} exists. Go on with it by --resume, or give another folder with -o."
        )
    if recipe.run.tensorboard:
        require_tensorboard()
    recipe, split = _complete(recipe, dataset), _split(recipe, dataset)
    if recipe.run.select_every:
        held_out_records(list(dataset.subset(split["held_out"]).records))
    output.mkdir(parents=True, exist_ok=True)
    (output / RECIPE_FILE).write_text(recipe_toml(recipe), "utf-8")
    (output / VIDEOS_FILE).write_text(json.dumps(split, indent=1), "utf-8")
    return recipe


def _complete(recipe: Recipe, dataset: Dataset) -> Recipe:
    """The recipe with what it leaves to the data: how many numbers a frame of a sequence has."""
    if recipe.encoder.base != "vector" or recipe.encoder.in_features:
        return recipe
    width = vectors(dataset.records[0]).shape[1]
    return dataclasses.replace(recipe, encoder=dataclasses.replace(recipe.encoder, in_features=width))


def _split(recipe: Recipe, dataset: Dataset) -> dict[str, list[str]]:
    """Names of the videos to learn from and to hold out; fixed when the run begins and kept with it."""
    action = recipe.data.action
    records = [record for record in dataset.records if action in ("", record.action)]
    if not records:
        known = ", ".join(name for name in dataset.actions if name) or "none"
        raise DataError(f"{dataset.root} has no video of data.action {action!r} (actions: {known})")
    if not dataset.given_split:
        records = list(split_dataset(tuple(records), recipe.data.held_out, recipe.run.seed))
    return {
        "train": [record.name for record in records if record.split == "train"],
        "held_out": [record.name for record in records if record.split == "val"],
    }


def saved_recipe(folder: Path) -> Recipe:
    """The recipe a run was made with."""
    if not (folder / RECIPE_FILE).is_file():
        raise CheckpointError(
            f"no run in {folder} (looked for {RECIPE_FILE}). Train one: cycleback train VIDEOS -o {folder}"
        )
    return load_recipe(folder / RECIPE_FILE)


def _run_records(output: Path, dataset: Dataset, part: str) -> list[VideoRecord]:
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
