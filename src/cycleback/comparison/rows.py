"""One row: learned, or found finished; embedded; measured."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cycleback.comparison.folder import Folder, read_json, write_json
from cycleback.comparison.methods import Method
from cycleback.comparison.perturbed import Library, perturbed_set
from cycleback.comparison.plan import Plan
from cycleback.comparison.snapshots import WEIGHTS_FILE, keep_snapshot, snapshot_steps, with_saves
from cycleback.data import Dataset, FrameCache, event_frames
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import Report, evaluate, time_only_embeddings
from cycleback.evaluation.perturbations import PERTURBATIONS
from cycleback.models import Encoder, VectorBase
from cycleback.progress import Counter, Progress, ignore
from cycleback.recipe import EncoderSettings, PooledSettings, Recipe, VectorSettings, build_encoder
from cycleback.runs import choose_device, embed_videos, load_encoder, train
from cycleback.training import StepReport
from cycleback.training.videos import presentation_times, vectors

ROBUST_SCORES = ("event_error_frames", "event_error_frames_dtw", "tau")


@dataclass(frozen=True)
class Stages:
    """Who is told how a comparison goes; each is optional.

    Attributes:
        on_method: called with (rows done, rows, name of the next) before each row and after the last.
        learning: (method, updates in all) -> what is called after each update.
    """

    on_method: Callable[[int, int, str], None] | None = None
    on_frames: Counter | None = None
    on_features: Counter | None = None
    learning: Callable[[str, int], Callable[[StepReport], None]] | None = None


@dataclass(frozen=True)
class Place:
    """Where the work is done.

    Attributes:
        folder: of the comparison.
        device: to compute on; None: a GPU where there is one.
        cache: of decoded frames; None: the user's.
    """

    folder: Folder
    device: torch.device | str | None = None
    cache: Path | None = None


@dataclass(frozen=True)
class Row:
    """A finished row.

    Attributes:
        method: what it is of.
        report: scores on the held-out videos, with `robust` where they were perturbed.
        parts: the same for every other split.
        updates: of its training; 0 for a baseline.
        seconds: of its training.
        is_reused: whether it was found finished.
    """

    method: Method
    report: Report
    parts: Mapping[str, Report] = field(default_factory=dict)
    updates: int = 0
    seconds: float = 0.0
    is_reused: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values; `row_from_json` reads them back."""
        return {
            "method": self.method.name,
            "title": self.method.title,
            "updates": self.updates,
            "seconds": round(self.seconds, 1),
            "report": self.report.to_json(),
            "parts": {part: report.to_json() for part, report in self.parts.items()},
        }


def make_row(method: Method, plan: Plan, place: Place, *, stages: Stages) -> Row:
    """The row, from the folder where it is there and was made with the same settings."""
    folder, settings = place.folder, plan.row_settings(method)
    kept = read_json(folder.row(method.name))
    is_there = not method.is_trained or _is_learned(method, folder)
    if kept and kept.get("settings") == settings and is_there and folder.embeddings(method.name).is_dir():
        return row_from_json(method, kept)
    updates, seconds = _learned(method, plan, place, stages) if method.is_trained else (0, 0.0)
    encoder = load_row_encoder(method, plan, place)
    row = dataclasses.replace(_measured(method, encoder, plan, place), updates=updates, seconds=seconds)
    write_json(folder.row(method.name), {**row.to_json(), "settings": settings})
    return row


def row_from_json(method: Method, kept: Mapping[str, Any]) -> Row:
    """What `Row.to_json` wrote."""
    parts = {part: report_from_json(report) for part, report in kept["parts"].items()}
    report = report_from_json(kept["report"])
    return Row(method, report, parts, kept["updates"], kept["seconds"], is_reused=True)


def report_from_json(values: Mapping[str, Any]) -> Report:
    """What `Report.to_json` gave, as far as this version knows its fields."""
    known = {f.name for f in dataclasses.fields(Report)}
    by_action = {action: report_from_json(part) for action, part in values.get("by_action", {}).items()}
    return Report(
        **{name: value for name, value in values.items() if name in known} | {"by_action": by_action}
    )


def _is_learned(method: Method, folder: Folder) -> bool:
    """Whether its run came to its end and is still there."""
    is_finished = (read_json(folder.training(method.name)) or {}).get("finished", False)
    return bool(is_finished) and (folder.run(method.name) / WEIGHTS_FILE).is_file()


def _learned(method: Method, plan: Plan, place: Place, stages: Stages) -> tuple[int, float]:
    """Updates and seconds of the run, made or gone on with unless it is finished."""
    folder, name = place.folder, method.name
    if _is_learned(method, folder):
        facts = read_json(folder.training(name)) or {}
        return int(facts["updates"]), float(facts["seconds"])
    begun = {"settings": plan.training_settings(method)}
    write_json(folder.training(name), begun)
    recipe, run = with_saves(plan.recipes[name]), folder.run(name)
    is_begun = (run / "recipe.toml").is_file()
    total = recipe.optimizer.num_updates
    steps = snapshot_steps(total, recipe.run.save_every)
    tell = stages.learning(name, total) if stages.learning else None

    def on_step(report: StepReport) -> None:
        keep_snapshot(report, run, output=folder.snapshots(name), steps=steps)
        if tell is not None:
            tell(report)

    state = train(
        plan.dataset,
        run,
        recipe=None if is_begun else recipe,
        resume=is_begun,
        device=place.device,
        cache=place.cache,
        progress=Progress(
            on_frames=stages.on_frames or ignore,
            on_features=stages.on_features or ignore,
            on_training=lambda name, total: on_step,
        ),
    )
    if state.is_interrupted:
        raise KeyboardInterrupt
    facts = {"finished": True, "updates": state.step, "seconds": round(state.seconds, 1)}
    write_json(folder.training(name), begun | facts)
    return state.step, state.seconds


def load_row_encoder(method: Method, plan: Plan, place: Place) -> Encoder | None:
    """The encoder of a row, learned or not; None for the row that only counts frames."""
    if method.role == "time":
        return None
    if method.is_trained:
        return load_encoder(place.folder.run(method.name))
    if method.role == "random":
        return untrained_encoder(plan.recipes[method.name], plan)
    if plan.is_pictures:
        return load_encoder()
    raw = EncoderSettings(
        base="vector",
        embedder="pooled",
        vector=VectorSettings(velocity=False),
        pooled=PooledSettings(grid=1, standardize=False),
    )
    return untrained_encoder(Recipe(encoder=raw), plan)


def untrained_encoder(recipe: Recipe, plan: Plan) -> Encoder:
    """The encoder a run of this recipe begins with."""
    if recipe.encoder.base == "vector" and not recipe.encoder.vector.in_features:
        width = vectors(plan.train.records[0]).shape[1]
        vector = dataclasses.replace(recipe.encoder.vector, in_features=width)
        recipe = dataclasses.replace(recipe, encoder=dataclasses.replace(recipe.encoder, vector=vector))
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe)
    if isinstance(encoder.base, VectorBase):
        encoder.base.fit(vectors(record) for record in plan.train)
    return encoder.eval()


def _measured(method: Method, encoder: Encoder | None, plan: Plan, place: Place) -> Row:
    """Embed every part, keep the held-out embeddings, score them."""
    library = _library(encoder, plan, place)
    seen = _embedded(library, plan.train, place) if plan.is_labelled else None
    held_out = _embedded(library, plan.held_out, place)
    held_out.save(place.folder.embeddings(method.name), overwrite=True)
    report = _scored(seen, held_out, plan)
    if plan.perturb:
        report = dataclasses.replace(report, robust=_robust(library, plan))
    parts = {
        part: _scored(seen, _embedded(library, plan.dataset.split(part), place), plan)
        for part in plan.other_parts
    }
    return Row(method, report, parts)


def _scored(seen: EmbeddingSet | None, videos: EmbeddingSet, plan: Plan) -> Report:
    return evaluate(
        seen,
        videos,
        protocol=plan.protocol,
        seed=plan.seed,
        allow_overlap=plan.allow_overlap,
        persons=plan.dataset.persons,
    )


def _library(encoder: Encoder | None, plan: Plan, place: Place) -> Library:
    if encoder is None:
        side = plan.recipes["time"].data.frame_size
        return Library(None, FrameCache(place.cache, size=(side, side), fit=plan.recipes["time"].data.fit))
    return Library.of(encoder.to(choose_device(place.device)), place.cache)


def _embedded(library: Library, videos: Dataset, place: Place) -> EmbeddingSet:
    """Embeddings of the videos as they are."""
    if library.encoder is not None:
        return embed_videos(library.encoder, videos, device=place.device, cache=place.cache)
    return time_only_set(library.frames, videos)


def time_only_set(frames: FrameCache, videos: Dataset) -> EmbeddingSet:
    """Each frame i of N as i / N; no frame is looked at."""
    times = {record.name: presentation_times(record, frames) for record in videos}
    blank = EmbeddingSet.from_arrays(
        {name: [[0.0]] * len(clock) for name, clock in times.items()},
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in videos},
        actions={record.name: record.action for record in videos},
        paths={record.name: str(record.path) for record in videos},
        event_names=list(videos.event_names) or None,
    )
    return time_only_embeddings(blank)


def _robust(library: Library, plan: Plan) -> dict[str, dict[str, float | None]]:
    """Perturbation -> scores of the held-out videos after it."""
    scores = {}
    for kind in PERTURBATIONS:
        videos = perturbed_set(library, plan.held_out, kind=kind, seed=plan.seed)
        report = evaluate(None, videos, protocol=plan.protocol, intervals=False, few_shot=False)
        scores[kind] = {name: getattr(report, name) for name in ROBUST_SCORES}
    return scores
