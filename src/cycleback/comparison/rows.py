"""One row of a comparison: train it, embed the videos, score them, and keep the result for the next call.

FOLDER/comparison.json         marks the folder as a comparison
FOLDER/runs/METHOD/            run folder; METHOD.json beside it holds the settings it was trained with
FOLDER/snapshots/METHOD/STEP/  the encoder early in its training
FOLDER/embeddings/METHOD/      embeddings of the held-out videos
FOLDER/rows/METHOD.json        a finished row with the settings it was made with
FOLDER/report.html, report.json, report.md
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from cycleback import reading
from cycleback.comparison.methods import FROZEN, UNTRAINED, UNTRAINED_STREAMS, Method
from cycleback.comparison.perturbed import Library, perturbed_set
from cycleback.comparison.plan import Plan
from cycleback.data import Dataset, FrameCache, event_frames
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.features import FusedFeatures
from cycleback.errors import OutputExistsError, TrainingError, UserError
from cycleback.evaluation import PERTURBATIONS, TIME_ONLY, Report, evaluate, time_only_embeddings
from cycleback.evaluation.scores import ROBUST
from cycleback.files import atomic_folder, write_json
from cycleback.models import Encoder
from cycleback.models.checkpoint import FILE_NAME as WEIGHTS_FILE
from cycleback.progress import Progress
from cycleback.reading import check_seal, seal
from cycleback.recipe import RECIPE_FILE, Recipe, build_encoder
from cycleback.recipe.files import parse_toml
from cycleback.recipe.sections import EncoderSettings, PooledSettings, VectorSettings
from cycleback.runs import choose_device, embed_videos, load_encoder, train
from cycleback.runs.folder import build_pretrained, complete_recipe, keeps_untrained, open_caches
from cycleback.training import StepReport
from cycleback.training.videos import fit_base, load_times

MARKER, FORMAT = "comparison.json", 3  # 2 did not turn mirrored videos round
SNAPSHOTS = (0.1, 0.3)  # shares of the updates after which a copy of the encoder is kept


class TrainingStopped(TrainingError):
    """A signal stopped a training; its state is saved."""


@dataclass(frozen=True)
class Workspace:
    """The folder of a comparison, and where to compute."""

    root: Path
    device: torch.device | str | None = None  # None: a GPU if there is one
    cache: Path | None = None  # of decoded frames; None: the user's cache folder

    def run(self, method: str) -> Path:
        """Return the run folder of a method."""
        return self.root / "runs" / method

    def training(self, method: str) -> Path:
        """Return the file with the settings and the length of its training."""
        return self.root / "runs" / f"{method}.json"

    def snapshots(self, method: str) -> Path:
        """Return the folder of its encoder at several updates."""
        return self.root / "snapshots" / method

    def embeddings(self, method: str) -> Path:
        """Return its embeddings of the held-out videos."""
        return self.root / "embeddings" / method

    def row(self, method: str) -> Path:
        """Return its finished row."""
        return self.root / "rows" / f"{method}.json"

    def delete(self, method: str) -> None:
        """Delete everything that was made for a method."""
        for folder in (self.run(method), self.snapshots(method), self.embeddings(method)):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.row(method), self.training(method)):
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Row:
    """A finished row."""

    method: Method
    report: Report  # scores on the held-out videos
    splits: Mapping[str, Report] = field(default_factory=dict)  # scores on every other split
    updates: int = 0  # length of its training; 0 for a baseline
    seconds: float = 0.0  # duration of its training
    kept_untrained: bool = False  # whether training did not help, so that the run keeps the untrained streams
    is_reused: bool = False  # whether an earlier call had finished it

    def to_json(self) -> dict[str, Any]:
        """Return plain values; `from_json` reads them back."""
        return {
            "updates": self.updates,
            "seconds": round(self.seconds, 1),
            "kept_untrained": self.kept_untrained,
            "report": self.report.to_json(),
            "splits": {split: report.to_json() for split, report in self.splits.items()},
        }

    @classmethod
    def from_json(cls, method: Method, values: Mapping[str, Any]) -> "Row":
        """Read the values of `to_json`."""
        splits = {split: Report.from_json(report) for split, report in values["splits"].items()}
        report = Report.from_json(values["report"])
        return cls(
            method,
            report,
            splits,
            values["updates"],
            values["seconds"],
            kept_untrained=values["kept_untrained"],
            is_reused=True,
        )


def check_comparison_folder(root: Path) -> None:
    """Refuse a folder that holds something else than an earlier comparison."""
    marker = read_json(root / MARKER)
    if root.is_dir() and marker is None:
        foreign = sorted(path.name for path in root.iterdir() if not path.name.startswith("."))
        if foreign:
            raise OutputExistsError(
                f"{root} holds {foreign[0]!r}, which no comparison made. Choose another folder with -o."
            )
    if marker is not None and marker.get("format") != FORMAT:
        raise OutputExistsError(
            f"{root} was made by another version of cycleback. Choose another folder with -o."
        )


def open_folder(root: Path) -> None:
    """Make the folder, or open one of an earlier comparison."""
    check_comparison_folder(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {root}: {error.strerror}. Choose another folder with -o.") from None
    write_json(root / MARKER, {"made_by": "cycleback compare", "format": FORMAT}, overwrite=True)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file, or None if there is no readable one, or a damaged one."""
    try:
        root = reading.read_json(path)
        content = dict(root.items())
        check_seal(root)
    except UserError:
        return None
    return {key: inside.value for key, inside in content.items()}


def check_settings(workspace: Workspace, method: str, wanted: dict[str, Any], *, overwrite: bool) -> None:
    """Refuse a run that was trained with other settings, or delete it with `overwrite`."""
    earlier = _settings_of(workspace.training(method))
    if earlier == wanted or (earlier is None and not workspace.run(method).exists()):
        return
    if not overwrite:
        raise OutputExistsError(
            f"{workspace.run(method)} was trained {_difference(earlier or {}, wanted)}. "
            "Add --overwrite to train it again, or choose another folder with -o."
        )
    workspace.delete(method)


def _settings_of(path: Path) -> dict[str, Any] | None:
    settings = (read_json(path) or {}).get("settings")
    return settings if isinstance(settings, dict) and isinstance(settings.get("recipe"), str) else None


def _difference(earlier: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Say in words which setting differs first."""
    if earlier.get("videos") != wanted["videos"]:
        return "on other videos, labels or splits"
    try:
        before, now = parse_toml(earlier.get("recipe", "")), parse_toml(wanted["recipe"])
    except (ValueError, RecursionError):
        return "with other settings"
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            return f"with {key}={before.get(key)!r}, not {now.get(key)!r}"
    return "with other settings"


def make_row(method: Method, plan: Plan, workspace: Workspace, *, progress: Progress) -> Row:
    """Train and score one method, or read the row if an earlier call finished it with the same settings."""
    settings, made = plan.row_settings(method), read_json(workspace.row(method.name))
    is_there = not method.is_trained or _is_trained(method, workspace)
    if made and made.get("settings") == settings and is_there and workspace.embeddings(method.name).is_dir():
        with suppress(KeyError, TypeError, ValueError, AttributeError):  # not one of ours: make it again
            return Row.from_json(method, made)
    updates, seconds = train_row(method, plan, workspace, progress) if method.is_trained else (0, 0.0)
    encoder = load_row_encoder(method, plan, workspace)
    report, splits = score_row(method, encoder, plan, workspace)
    kept = method.is_trained and keeps_untrained(workspace.run(method.name))
    row = Row(method, report, splits, updates, seconds, kept_untrained=kept)
    write_json(workspace.row(method.name), seal({**row.to_json(), "settings": settings}), overwrite=True)
    return row


def _is_trained(method: Method, workspace: Workspace) -> bool:
    facts = read_json(workspace.training(method.name)) or {}
    is_known = all(isinstance(facts.get(key), int | float) for key in ("updates", "seconds"))
    return (
        bool(facts.get("finished", False))
        and is_known
        and (workspace.run(method.name) / WEIGHTS_FILE).is_file()
    )


def train_row(method: Method, plan: Plan, workspace: Workspace, progress: Progress) -> tuple[int, float]:
    """Train or resume the run of a method, unless it is finished; return its updates and seconds."""
    name = method.name
    if _is_trained(method, workspace):
        facts = read_json(workspace.training(name)) or {}
        return int(facts["updates"]), float(facts["seconds"])
    started = {"settings": plan.training_settings(method)}
    write_json(workspace.training(name), started, overwrite=True)
    recipe, run = save_often(plan.recipes[name]), workspace.run(name)
    total = recipe.optimizer.num_updates
    steps = snapshot_steps(total, recipe.run.save_every)
    is_started = (run / RECIPE_FILE).is_file()
    report_step = progress.on_training(name, total)

    def on_step(report: StepReport) -> None:
        _keep_snapshot(report.step - 1, run, output=workspace.snapshots(name), steps=steps)
        report_step(report)

    state = train(
        plan.dataset,
        run,
        recipe=None if is_started else recipe,
        resume=is_started,
        device=workspace.device,
        cache=workspace.cache,
        progress=replace(progress, on_training=lambda name, total: on_step),
    )
    if state.is_interrupted:
        raise TrainingStopped(f"training of {name} stopped at update {state.step} of {total}")
    facts = {"finished": True, "updates": state.step, "seconds": round(state.seconds, 1)}
    write_json(workspace.training(name), seal(started | facts), overwrite=True)
    return state.step, state.seconds


def save_often(recipe: Recipe) -> Recipe:
    """Return the recipe with at least ten saves; the training itself does not change."""
    interval = max(1, recipe.optimizer.num_updates // 10)
    return replace(recipe, run=replace(recipe.run, save_every=min(recipe.run.save_every, interval)))


def snapshot_steps(num_updates: int, save_every: int) -> tuple[int, ...]:
    """Return the first saved updates at or after a tenth and three tenths, before the last."""
    steps = (-(-round(share * num_updates) // save_every) * save_every for share in SNAPSHOTS)
    return tuple(step for step in dict.fromkeys(steps) if 0 < step < num_updates)


def _keep_snapshot(saved: int, run: Path, *, output: Path, steps: tuple[int, ...]) -> None:
    """Copy the encoder that a run saved after update `saved`, if that is one of `steps`.

    A run saves after the callback of an update, so the callback of update s finds the weights of s - 1.
    """
    target = output / str(saved)
    if saved not in steps or target.exists() or not (run / WEIGHTS_FILE).is_file():
        return
    with atomic_folder(target) as draft:
        for name in (RECIPE_FILE, WEIGHTS_FILE):
            shutil.copyfile(run / name, draft / name)


def load_snapshots(folder: Path) -> dict[int, Encoder]:
    """Return update -> encoder for the snapshots in a folder."""
    kept = sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.is_dir() else []
    return {step: load_encoder(folder / str(step)) for step in kept}


def load_row_encoder(method: Method, plan: Plan, workspace: Workspace) -> Encoder | None:
    """Return the encoder of a row; None for the time-only row, which has none."""
    if method.name == TIME_ONLY:
        return None
    if method.name == UNTRAINED:
        return untrained_encoder(plan.recipes[method.name], plan, workspace)
    if method.name == UNTRAINED_STREAMS:
        return _fit(build_pretrained(), plan, workspace)
    if method.name != FROZEN:
        return load_encoder(workspace.run(method.name))
    if plan.has_pictures:
        return build_pretrained(("appearance",))
    raw = EncoderSettings(
        base="vector",
        embedder="pooled",
        vector=VectorSettings(velocity=False),
        pooled=PooledSettings(grid=1, standardize=False),
    )
    return untrained_encoder(Recipe(encoder=raw), plan, workspace)


def untrained_encoder(recipe: Recipe, plan: Plan, workspace: Workspace) -> Encoder:
    """Return the encoder that a run of this recipe starts with."""
    torch.manual_seed(recipe.run.seed)
    return _fit(build_encoder(complete_recipe(recipe, plan.train)), plan, workspace)


def _fit(encoder: Encoder, plan: Plan, workspace: Workspace) -> Encoder:
    """Set what the base takes from the training videos, as a training does."""
    encoder = encoder.to(choose_device(workspace.device)).eval()
    fit_base(encoder, plan.train.records, frames=open_caches(encoder, workspace.cache)[0])
    return encoder


def score_row(
    method: Method, encoder: Encoder | None, plan: Plan, workspace: Workspace
) -> tuple[Report, dict[str, Report]]:
    """Embed all videos, keep the held-out embeddings, and score them and every other split.

    Untrained streams are weighed for the training videos, and all videos are turned to the side these show.
    """
    if encoder is None:
        data = plan.recipes[method.name].data
        frames = FrameCache(workspace.cache, size=(data.frame_size,) * 2, fit=data.fit)
        library = Library(None, frames)
    else:
        encoder = encoder.to(choose_device(workspace.device))
        library = Library(encoder, *open_caches(encoder, workspace.cache))

    def embed(videos: Dataset, alike: EmbeddingSet | None = None) -> EmbeddingSet:
        if library.encoder is None:
            return time_only_set(library.frames, videos)
        return embed_videos(
            library.encoder, videos, alike=alike, device=workspace.device, cache=workspace.cache
        )

    def score(videos: EmbeddingSet) -> Report:
        return evaluate(
            seen if plan.is_labelled else None,
            videos,
            protocol=plan.protocol,
            seed=plan.seed,
            few_shot=plan.few_shot,
            allow_overlap=plan.allow_overlap,
            persons=plan.dataset.persons,
        )

    seen = embed(plan.train)
    held_out = embed(plan.held_out, seen)
    held_out.save(workspace.embeddings(method.name), overwrite=True)
    report = score(held_out)
    if plan.perturb:
        if isinstance(library.features, FusedFeatures):
            library.features.mirrored = set(held_out.mirrored)
        report = replace(report, robust=_score_perturbed(library, plan))
    return report, {split: score(embed(plan.dataset.split(split), seen)) for split in plan.other_splits}


def time_only_set(frames: FrameCache, videos: Dataset) -> EmbeddingSet:
    """Embed each frame i of N as i / N, without looking at it."""
    times = {record.name: load_times(record, frames) for record in videos}
    blank = EmbeddingSet.from_arrays(
        {name: [[0.0]] * len(clock) for name, clock in times.items()},
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in videos},
        actions={record.name: record.action for record in videos},
        paths={record.name: str(record.path) for record in videos},
        event_names=list(videos.event_names) or None,
    )
    return time_only_embeddings(blank)


def _score_perturbed(library: Library, plan: Plan) -> dict[str, dict[str, float | None]]:
    """Return perturbation -> scores of the perturbed held-out videos."""
    scores = {}
    for kind in PERTURBATIONS:
        videos = perturbed_set(library, plan.held_out, kind=kind, seed=plan.seed)
        report = evaluate(None, videos, protocol=plan.protocol, intervals=False, few_shot=False)
        scores[kind] = {name: getattr(report, name) for name in ROBUST}
    return scores
