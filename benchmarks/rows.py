"""One row of a results table: train it, embed a data set with it, measure it."""

import os
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from cycleback.data import Dataset, FrameCache, event_frames
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import time_only_embeddings
from cycleback.models import Encoder
from cycleback.recipe import Recipe, build_encoder, load_recipe
from cycleback.runs import choose_device, embed_videos, load_encoder, train
from cycleback.training import read_log
from scoring import TRAIN, score

LOSSES = {
    "tcc": "{ tcc = 1.0 }",
    "tcn": "{ tcn = 1.0 }",
    "sal": "{ sal = 1.0 }",
    "tcc+tcn": "{ tcc = 1.0, tcn = 1.0 }",
    "tcc+sal": "{ tcc = 1.0, sal = 1.0 }",
    "tcc+order": "{ tcc = 1.0, order = 0.3 }",
    "tcc+tcn+order": "{ tcc = 1.0, tcn = 1.0, order = 0.3 }",
    "supervised": "{ supervised = 1.0 }",
    "tcc-stochastic": "{ stochastic_tcc = 1.0 }",
}
KINDS = {"tcc-classification": "classification", "tcc-mse": "mse"}
BASELINES = ("time-only", "untrained", "frozen")
UNTRAINED = ("untrained", "random")  # two names of one row
WIDE, NARROW = 1024, 512  # frozen embeddings of more numbers are projected on their main directions


def recipe_of(row: str, name: str, overrides: list[str], seed: int) -> Recipe:
    """The recipe of a row: the named one with the row's loss."""
    loss = [f"loss.weights={LOSSES['tcc' if row in (*KINDS, *BASELINES, *UNTRAINED) else row]}"]
    kind = [f"loss.tcc.kind={KINDS[row]}"] if row in KINDS else []
    return load_recipe(name, [*loss, *kind, f"run.seed={seed}"], shared=overrides)


def is_pretrained(recipe: Recipe) -> bool:
    """Whether its base has seen pictures before."""
    name = recipe.encoder.base
    weights = recipe.encoder.options(name).get("weights")
    return name in ("efficientnet_lite0", "transformers") or weights is not None


@dataclass(frozen=True)
class Trained:
    """An encoder, the minutes its training took, and how it went: (update, loss, cycle rate) now and then."""

    encoder: Encoder
    minutes: float = 0.0
    curve: tuple[tuple[float, ...], ...] = ()


def trained(
    row: str, dataset: Dataset, recipe: Recipe, cache: Path | None, *, run: Path | None = None
) -> Trained:
    """The encoder of a row that has one; where it is trained, the run folder stays if `run` names one."""
    torch.manual_seed(recipe.run.seed)
    if row == "frozen":
        return Trained(frozen_encoder(recipe))
    if row in UNTRAINED:
        return Trained(build_encoder(recipe))
    with tempfile.TemporaryDirectory() as folder:
        run = run or Path(folder) / "run"
        state = train(dataset, run, recipe=recipe, cache=cache)
        if state.step < recipe.optimizer.num_updates and not state.stopped_early:
            raise SystemExit(f"stopped at update {state.step} of {row}: nothing is kept of it")
        return Trained(load_encoder(run), state.seconds / 60, curve_of(run))


def frozen_encoder(recipe: Recipe) -> Encoder:
    """The recipe's base as it was pretrained, its features averaged over parts of the picture."""
    if not is_pretrained(recipe):
        return load_encoder("pretrained")
    return build_encoder(replace(recipe, encoder=replace(recipe.encoder, embedder="pooled"))).eval()


def curve_of(run: Path, points: int = 40) -> tuple[tuple[float, ...], ...]:
    """The log of a run in about so many points, each the mean of the records since the one before."""
    records = [record for record in read_log(run) if "loss" in record]
    size = max(1, len(records) // points)
    groups = [records[start : start + size] for start in range(0, len(records) - size + 1, size)]
    return tuple(
        (group[-1]["step"], *(round(fmean(r[key] for r in group), 4) for key in ("loss", "cycle_rate")))
        for group in groups
    )


def embedded(
    row: str,
    dataset: Dataset,
    recipe: Recipe,
    *,
    parts: list[str],
    cache: Path | None,
    run_folder: Path | None = None,
) -> tuple[dict[str, Any], dict[str, EmbeddingSet]]:
    """What is to be kept of the training of a row, and its embeddings of the train part and of `parts`."""
    videos = {part: dataset.split(part) for part in (TRAIN, *parts)}
    if row == "time-only":
        frames = frame_cache(recipe, cache)
        return {"minutes": 0.0, "curve": ()}, {part: unseen(v, frames) for part, v in videos.items()}
    made = trained(row, dataset, recipe, cache, run=run_folder)
    run: dict[str, Any] = {"minutes": round(made.minutes, 3), "curve": made.curve}
    sets = {part: embed_videos(made.encoder, found, cache=cache) for part, found in videos.items()}
    if row == "frozen" and sets[TRAIN].size > WIDE:
        sets, kept = narrowed(sets)
        run["variance_kept"] = round(kept, 4)
    return run, sets


def frame_cache(recipe: Recipe, cache: Path | None) -> FrameCache:
    """Where the frames are that the recipe trains on."""
    return FrameCache(cache, size=(recipe.data.frame_size,) * 2, fit=recipe.data.fit)


def unseen(videos: Dataset, frames: FrameCache) -> EmbeddingSet:
    """Time-only embeddings, for which only the lengths are needed."""
    times = {record.name: frames.load(record).times for record in videos}
    found = EmbeddingSet.from_arrays(
        {name: np.zeros((len(clock), 1)) for name, clock in times.items()},
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in videos},
        actions={record.name: record.action for record in videos},
        event_names=list(videos.event_names) or None,
    )
    return time_only_embeddings(found)


def narrowed(sets: dict[str, EmbeddingSet], size: int = NARROW) -> tuple[dict[str, EmbeddingSet], float]:
    """All embeddings on the `size` main directions of the training ones, and the share of variance kept."""
    seen = sets[TRAIN]
    rows = torch.from_numpy(np.concatenate([seen[name] for name in seen])).to(choose_device())  # (sum N, D)
    rows -= rows.mean(dim=0)
    _, strengths, directions = torch.svd_lowrank(rows, q=min(size, *rows.shape), niter=3)  # (q,), (D, q)
    kept, basis = float(strengths.square().sum() / rows.square().sum()), directions.cpu().numpy()
    narrow = {
        part: found.with_embeddings({name: found[name] @ basis for name in found}, encoder=found.encoder)
        for part, found in sets.items()
    }
    return narrow, kept


def measure(
    row: str, dataset: Dataset, recipe: Recipe, *, parts: list[str], cache: Path | None
) -> dict[str, Any]:
    """Scores of a row on each held-out part."""
    run, sets = embedded(row, dataset, recipe, parts=parts, cache=cache)
    return {**run, **{part: score(sets[TRAIN], sets[part]) for part in parts}}


def circumstances() -> dict[str, str]:
    """Where and with what the numbers were made."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores"
    return {
        "commit": os.environ.get("CYCLEBACK_COMMIT") or commit or "unknown",  # a copy may not be its checkout
        "device": device,
        "torch": torch.__version__,
    }
