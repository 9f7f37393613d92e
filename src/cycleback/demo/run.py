"""The demo: render, learn, measure, show."""

import dataclasses
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from cycleback.data import Dataset, read_dataset
from cycleback.demo.page import write_page
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import OutputExistsError, UserError, require
from cycleback.evaluation import Report, evaluate, time_only_embeddings
from cycleback.models import Encoder
from cycleback.progress import Counter, Progress
from cycleback.recipe import Recipe, build_encoder, load_recipe
from cycleback.runs import embed_videos, load_encoder, run_split, train
from cycleback.synth import write_dataset
from cycleback.training import StepReport

CONTENTS = (
    *("videos", "run", "cache", "before_after.mp4", "similarity.png", "tsne.png"),
    *("report.html", "report.json"),
)
KEYS = ("tau", "event_error_frames", "event_error_ms", "pce1", "pce3", "cycle_rate", "phase_accuracy")


def _silent(done: int, total: int) -> None:
    """The progress of a caller who does not listen."""


@dataclass(frozen=True)
class Stages:
    """Who is told how each stage goes."""

    on_render: Counter = _silent
    on_frames: Counter = _silent
    on_features: Counter = _silent
    on_report: Counter = _silent
    learning: Callable[[int], Callable[[StepReport], None]] = lambda total: lambda report: None


@dataclass(frozen=True)
class DemoReport:
    """The demo's table and how long it took to make."""

    seconds: float
    loss: str
    rows: dict[str, Report]

    def to_json(self) -> dict[str, object]:
        """Seconds, loss and, for every row, the headline numbers (null where a row has none) and the rest."""
        rows = {
            name: {key: row.to_json()[key] for key in KEYS} | row.to_json() for name, row in self.rows.items()
        }
        return {"seconds": round(self.seconds, 1), "loss": self.loss, "rows": rows}


def run_demo(
    out: Path | str,
    *,
    seed: int = 0,
    videos: int = 72,
    level: str = "easy",
    recipe: Recipe | None = None,
    overwrite: bool = False,
    stages: Stages | None = None,
) -> DemoReport:
    """Render a data set, train on most of it, evaluate on the rest, write `report.html` and `report.json`.

    Args:
        out: folder to make: `videos/`, `run/`, `before_after.mp4`, `report.html`, `report.json`.
        seed: of the videos and of the training.
        recipe: settings; default: `demo.toml` among the package's recipes.
    """
    require("matplotlib", extra="plot", purpose="the demo's report")
    started, stages, out = time.monotonic(), stages or Stages(), _fresh(Path(out), overwrite=overwrite)
    recipe = recipe or load_recipe("demo")
    recipe = dataclasses.replace(recipe, run=dataclasses.replace(recipe.run, seed=seed))
    write_dataset(out / "videos", videos=videos, seed=seed, level=level, progress=stages.on_render)
    dataset = _with_split(out / "videos", held_out=1 / 6)
    progress = Progress(
        on_frames=stages.on_frames,
        on_features=stages.on_features,
        on_training=lambda name, total: stages.learning(total),
    )
    train(dataset, out / "run", recipe=recipe, cache=out / "cache", progress=progress)
    sets = embed_rows(out, dataset, recipe, progress=stages.on_report)
    rows = {name: evaluate(seen, held_out, few_shot=False) for name, (seen, held_out) in sets.items()}
    report = DemoReport(time.monotonic() - started, loss_name(recipe), rows)
    write_page(out, report.to_json(), sets={name: pair[1] for name, pair in sets.items()})
    report = dataclasses.replace(report, seconds=time.monotonic() - started)
    (out / "report.json").write_text(json.dumps(report.to_json(), indent=1) + "\n", "utf-8")
    stages.on_report(4, 4)
    return report


def embed_rows(
    out: Path, dataset: Dataset, recipe: Recipe, *, progress: Counter = _silent
) -> dict[str, tuple[EmbeddingSet, EmbeddingSet]]:
    """Row name -> embeddings of the training videos and of the held-out ones."""
    torch.manual_seed(recipe.run.seed)
    encoders: dict[str, Encoder] = {
        "trained": load_encoder(out / "run"),
        "untrained": build_encoder(recipe),
        "frozen": load_encoder("pretrained"),
    }
    sets: dict[str, tuple[EmbeddingSet, EmbeddingSet]] = {}
    for done, (name, encoder) in enumerate(encoders.items()):
        whole = embed_videos(encoder, dataset, cache=out / "cache")
        sets[name] = tuple(whole.subset(_names(out, part)) for part in ("train", "held_out"))  # type: ignore[assignment]
        progress(done + 1, 4)
    seen, held_out = sets["trained"]
    sets["time-only"] = (time_only_embeddings(seen), time_only_embeddings(held_out))
    return {name: sets[name] for name in ("trained", "time-only", "untrained", "frozen")}


def loss_name(recipe: Recipe) -> str:
    """The loss in words: `tcc + 0.5 tcn`."""
    weights = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    return " + ".join(name if weight == 1 else f"{weight:g} {name}" for name, weight in weights.items())


def _names(out: Path, part: str) -> list[str]:
    return run_split(out / "run")[part]


def _with_split(folder: Path, *, held_out: float) -> Dataset:
    """The data set with its last videos held out, as a `splits.csv` beside them says."""
    names = read_dataset(folder).names
    seen = len(names) - max(2, round(held_out * len(names)))
    rows = [f"{name},{'train' if position < seen else 'val'}" for position, name in enumerate(names)]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows, ""]), "utf-8")
    return read_dataset(folder)


def _fresh(out: Path, *, overwrite: bool) -> Path:
    if out.exists() and any(out.iterdir()):
        if not overwrite:
            raise OutputExistsError(f"{out} exists. Add --overwrite, or give another folder with -o.")
        foreign = sorted(path.name for path in out.iterdir() if not _is_ours(path.name))
        if foreign:
            raise OutputExistsError(
                f"{out} holds {foreign[0]!r}, which no demo made. Give another folder with -o."
            )
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {out}: {error.strerror}. Give another folder with -o.") from None
    return out


def _is_ours(name: str) -> bool:
    """Whether a demo writes something of this name; `.videos…` is left by one that was killed."""
    return name in CONTENTS or name.startswith(".videos")
