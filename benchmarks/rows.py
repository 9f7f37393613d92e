"""One row of a results table: train it, embed a data set with it, score it."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from cycleback.comparison.methods import FROZEN, TIME_ONLY, UNTRAINED, parse_method
from cycleback.comparison.rows import time_only_set
from cycleback.data import Dataset, FrameCache
from cycleback.embeddings import EmbeddingSet
from cycleback.models import Encoder
from cycleback.recipe import Recipe, build_encoder, load_recipe
from cycleback.runs import choose_device, embed_videos, load_encoder, train
from cycleback.runs.folder import build_pretrained
from cycleback.training import read_log
from scoring import TRAIN, score

ROWS = (  # in the order of the tables; any other sum of losses is a row, too
    *(TIME_ONLY, UNTRAINED, FROZEN, "supervised", "sal", "tcn", "tcc", "tcc-classification", "tcc-mse"),
    *("tcc-stochastic", "tcc+sal", "tcc+tcn", "tcc+order", "tcc+tcn+order"),
)
SEEDLESS = (TIME_ONLY, FROZEN)
WIDE, NARROW = 1024, 512  # wider frozen embeddings are projected on their main directions


def row_recipe(row: str, name: str, overrides: list[str], seed: int) -> Recipe:
    """Return the named recipe with the losses of a row; baselines keep those of TCC."""
    losses = parse_method(row).overrides or parse_method("tcc").overrides
    return load_recipe(name, [*losses, f"run.seed={seed}", "run.restart=false"], shared=overrides)


def is_pretrained(recipe: Recipe) -> bool:
    """Return whether the base of a recipe starts with pretrained weights."""
    name = recipe.encoder.base
    weights = recipe.encoder.options(name).get("weights")
    return name in ("efficientnet_lite0", "transformers") or weights is not None


@dataclass(frozen=True)
class Trained:
    """An encoder, the minutes of its training, and points (update, loss, cycle rate) of its curve."""

    encoder: Encoder
    minutes: float = 0.0
    curve: tuple[tuple[float, ...], ...] = ()


def train_row(
    row: str, dataset: Dataset, recipe: Recipe, cache: Path | None, *, run: Path | None = None
) -> Trained:
    """Train the encoder of a row, or build that of a baseline; the run folder stays if `run` names one."""
    torch.manual_seed(recipe.run.seed)
    if row == FROZEN:
        return Trained(frozen_encoder(recipe))
    if row == UNTRAINED:
        return Trained(build_encoder(recipe))
    with tempfile.TemporaryDirectory() as folder:
        run = run or Path(folder) / "run"
        state = train(dataset, run, recipe=recipe, cache=cache)
        if state.is_interrupted:
            raise SystemExit(f"stopped at update {state.step} of {row}: nothing of it is kept")
        return Trained(load_encoder(run), state.seconds / 60, read_curve(run))


def frozen_encoder(recipe: Recipe) -> Encoder:
    """Return the pretrained base of a recipe, its features averaged over parts of the picture."""
    if not is_pretrained(recipe):
        return build_pretrained(("appearance",))
    return build_encoder(replace(recipe, encoder=replace(recipe.encoder, embedder="pooled"))).eval()


def read_curve(run: Path, points: int = 40) -> tuple[tuple[float, ...], ...]:
    """Read the log of a run as about `points` points, each the mean of the records since the one before."""
    records = [record for record in read_log(run) if "loss" in record]
    size = max(1, len(records) // points)
    groups = [records[start : start + size] for start in range(0, len(records) - size + 1, size)]
    return tuple(
        (group[-1]["step"], *(round(fmean(r[key] for r in group), 4) for key in ("loss", "cycle_rate")))
        for group in groups
    )


def embed_row(
    row: str,
    dataset: Dataset,
    recipe: Recipe,
    *,
    parts: list[str],
    cache: Path | None,
    run_folder: Path | None = None,
) -> tuple[dict[str, Any], dict[str, EmbeddingSet]]:
    """Return the facts of the training of a row, and its embeddings of the train split and of `parts`."""
    videos = {part: dataset.split(part) for part in (TRAIN, *parts)}
    if row == TIME_ONLY:
        frames = frame_cache(recipe, cache)
        return {"minutes": 0.0, "curve": ()}, {part: time_only_set(frames, v) for part, v in videos.items()}
    made = train_row(row, dataset, recipe, cache, run=run_folder)
    run: dict[str, Any] = {"minutes": round(made.minutes, 3), "curve": made.curve}
    sets = {part: embed_videos(made.encoder, found, cache=cache) for part, found in videos.items()}
    if row == FROZEN and sets[TRAIN].size > WIDE:
        sets, kept = narrow(sets)
        run["variance_kept"] = round(kept, 4)
    return run, sets


def frame_cache(recipe: Recipe, cache: Path | None) -> FrameCache:
    """Return the cache of the frames that a recipe trains on."""
    return FrameCache(cache, size=(recipe.data.frame_size,) * 2, fit=recipe.data.fit)


def narrow(sets: dict[str, EmbeddingSet], size: int = NARROW) -> tuple[dict[str, EmbeddingSet], float]:
    """Project embeddings on the `size` main directions of the training ones; return the variance kept."""
    seen = sets[TRAIN]
    rows = torch.from_numpy(np.concatenate([seen[name] for name in seen])).to(choose_device())  # (sum N, D)
    rows -= rows.mean(dim=0)
    _, strengths, directions = torch.svd_lowrank(rows, q=min(size, *rows.shape), niter=3)  # (q,), (D, q)
    kept, basis = float(strengths.square().sum() / rows.square().sum()), directions.cpu().numpy()
    projected = {
        part: found.with_embeddings({name: found[name] @ basis for name in found}, encoder=found.encoder)
        for part, found in sets.items()
    }
    return projected, kept


def measure(
    row: str, dataset: Dataset, recipe: Recipe, *, parts: list[str], cache: Path | None
) -> dict[str, Any]:
    """Train a row and score it on each held-out part."""
    run, sets = embed_row(row, dataset, recipe, parts=parts, cache=cache)
    return {**run, **{part: score(sets[TRAIN], sets[part]) for part in parts}}
