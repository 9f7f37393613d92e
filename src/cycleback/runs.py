"""The run folder: all a user must keep or send, and the three calls that make and use one.

RUN/recipe.toml           every setting, resolved
RUN/encoder.safetensors   the weights
RUN/videos.json           which videos were trained on and which were held out
RUN/state.pt              what resuming needs
RUN/log.jsonl             loss and cycle-consistency rate, a line every few updates
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cycleback.data import Dataset, FrameCache, FrameStore, VideoRecord, read_dataset, split_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import Progress, embed_records
from cycleback.embeddings.features import FeatureCache
from cycleback.errors import CheckpointError, DataError, OutputExistsError
from cycleback.models import Encoder, load_weights, save_encoder
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
from cycleback.training import StepReport, Trainer, TrainState

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
    """Learn an encoder from a folder of videos, into a run folder.

    Args:
        dataset: a folder, or what `read_dataset` made of one. Labels are never looked at.
        output: the run folder; must not exist unless `resume`.
        recipe: all settings; with `resume`, the run folder's own recipe is used.
        cache: where decoded frames and feature maps are kept (default: the user's cache folder).
    """
    watcher, output = watcher or Watcher(), Path(output)
    dataset = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
    recipe = _open_run(output, recipe or Recipe(), resume=resume)
    records = _training_videos(output, dataset, recipe)
    where = choose_device(device)
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe).to(where)
    loss = build_loss(recipe).to(where)
    videos = _load_videos(recipe, records, encoder=encoder, cache=cache, device=where, watcher=watcher)
    trainer = Trainer(
        encoder,
        loss,
        build_optimizer(recipe, encoder, loss),
        build_batches(recipe, videos, [record.action for record in records], encoder=encoder),
        names=[record.name for record in records],
        num_updates=recipe.optimizer.num_updates,
        seed=recipe.run.seed,
        augmentation=None if recipe.caches_features else recipe.augment,
        clip_norm=recipe.optimizer.clip_norm,
        schedule=recipe.optimizer.schedule,
        warmup_updates=recipe.optimizer.warmup_updates,
        device=where,
    )
    return trainer.run(
        output,
        save_every=recipe.run.save_every,
        log_every=recipe.run.log_every,
        on_step=watcher.on_step,
        on_save=lambda step: save_encoder(output, encoder, vars(recipe.encoder)),
    )


def load_encoder(source: Path | str = PRETRAINED) -> Encoder:
    """The encoder of a run folder, or `"pretrained"`: the one that works before any training."""
    if str(source) == PRETRAINED:
        return build_encoder(Recipe(encoder=EncoderSection(embedder="pooled"))).eval()
    folder = Path(source)
    encoder = build_encoder(saved_recipe(folder))
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


def _open_run(output: Path, recipe: Recipe, *, resume: bool) -> Recipe:
    """Make the folder, or take the recipe of the one that is there."""
    if resume:
        return saved_recipe(output)
    if output.exists() and any(output.iterdir()):
        raise OutputExistsError(
            f"{output} exists. Go on with it by --resume, or give another folder with -o."
        )
    output.mkdir(parents=True, exist_ok=True)
    (output / RECIPE_FILE).write_text(recipe_toml(recipe), "utf-8")
    return recipe


def saved_recipe(folder: Path) -> Recipe:
    """The recipe a run was made with."""
    if not (folder / RECIPE_FILE).is_file():
        raise CheckpointError(
            f"no run in {folder} (looked for {RECIPE_FILE}). Train one: cycleback train VIDEOS -o {folder}"
        )
    return load_recipe(folder / RECIPE_FILE)


def _training_videos(output: Path, dataset: Dataset, recipe: Recipe) -> list[VideoRecord]:
    """The videos to learn from; the split is fixed when the run begins and kept with it."""
    if not (output / VIDEOS_FILE).exists():
        records = dataset.records
        if not dataset.given_split:
            records = split_dataset(records, recipe.data.held_out, recipe.run.seed)
        names = {
            "train": [record.name for record in records if record.split == "train"],
            "held_out": [record.name for record in records if record.split == "val"],
        }
        (output / VIDEOS_FILE).write_text(json.dumps(names, indent=1), "utf-8")
    wanted = run_split(output)["train"]
    missing = sorted(set(wanted) - set(dataset.names))
    if missing:
        raise DataError(
            f"{dataset.root} lacks {missing[0]!r} ({len(missing)} of the {len(wanted)} videos of {output})"
        )
    return list(dataset.subset(wanted).records)


def _load_videos(
    recipe: Recipe,
    records: Sequence[VideoRecord],
    *,
    encoder: Encoder,
    cache: Path | None,
    device: torch.device,
    watcher: Watcher,
) -> list[Tensor]:
    """Each video whole: frames (N, H, W, 3) uint8, or feature maps (N, F, h, w) float16 of a frozen base."""
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    frames.fill(records, progress=watcher.on_frames)
    if not recipe.caches_features:
        store = FrameStore.resident(frames, records, device=device)
        return [store.frames(record.name) for record in records]
    features = FeatureCache(frames, encoder.base, device=device)
    total, done, videos = sum(frames.load(record).num_frames for record in records), 0, []

    def count(frames_done: int) -> None:
        nonlocal done
        done += frames_done
        if watcher.on_features is not None:
            watcher.on_features(done, total)

    for record in records:
        videos.append(torch.from_numpy(np.array(features.load(record, on_frames=count))).to(device))
    return videos


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
