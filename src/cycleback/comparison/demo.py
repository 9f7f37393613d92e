"""`cycleback demo`: a small comparison on rendered videos, shown with a film of the aligned clips."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cycleback.applications import keep_own_pace, locate_videos, match_reference, write_synced
from cycleback.applications.plots import draw_similarity, shared_events
from cycleback.comparison.figures import data_url, draw_map
from cycleback.comparison.methods import FROZEN, UNTRAINED, Method
from cycleback.comparison.page import figure, render_page, scores_section
from cycleback.comparison.plan import Plan
from cycleback.comparison.rows import TrainingStopped, Workspace, score_row
from cycleback.data import Dataset, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import OutputExistsError, UserError, require
from cycleback.evaluation import TIME_ONLY, Report
from cycleback.files import write_bytes, write_json, write_text
from cycleback.models import Encoder
from cycleback.progress import Progress
from cycleback.recipe import Recipe, build_encoder, load_recipe
from cycleback.runs import load_encoder, train
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset

TRAINED = "trained"
BASELINES = (TIME_ONLY, UNTRAINED, FROZEN)
TITLES = {
    TRAINED: "trained: learned without labels",
    TIME_ONLY: f"{TIME_ONLY}: frame i of n is i/n",
    UNTRAINED: f"{UNTRAINED}: the same network with random weights",
    FROZEN: f"{FROZEN}: ImageNet features",
}
CONTENTS = (
    *("videos", "run", "cache", "embeddings", "before_after.mp4", "similarity.png", "tsne.png"),
    *("report.html", "report.json"),
)
HELD_OUT_SHARE, MIN_HELD_OUT = 1 / 6, 2
FILM_VIDEOS = 4
FILM = """<p>The same held-out clips twice. Above, as filmed: every clip at its own pace. Below, aligned: all
clips follow the first one. The small number is the frame shown, the bar how much of the clip has played.</p>
<video controls autoplay loop muted playsinline src="{film}"></video>"""
SIMILARITY = {
    "alt": "Similarity matrices of two held-out videos before and after training",
    "caption": "Bright: similar. White: the alignment. Rings: where the key events truly meet; the line "
    "should pass through them.",
}
MAP = {
    "alt": "t-SNE maps of held-out frames before and after training",
    "caption": "t-SNE of held-out frames, coloured by the true phase. After training, the same moments of "
    "different videos are close together.",
}
HOW = """<p>Rendered, decoded, trained ({loss}), scored and drawn in {seconds:.0f} seconds. Do the same with
your own clips: <code>cycleback train VIDEOS -o RUN</code>, then
<code>cycleback sync VIDEOS --run RUN</code>.</p>"""


@dataclass(frozen=True)
class DemoReport:
    """The scores of the demo and how long it took."""

    seconds: float
    loss: str
    rows: Mapping[str, Report]

    def to_json(self) -> dict[str, Any]:
        """Return the content of report.json: seconds, loss, and the report of every row."""
        rows = {name: report.to_json() for name, report in self.rows.items()}
        return {"seconds": round(self.seconds, 1), "loss": self.loss, "rows": rows}


def run_demo(
    out: Path | str,
    *,
    seed: int = 0,
    videos: int = 72,
    level: str = "easy",
    recipe: Recipe | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> DemoReport:
    """Render a data set, train on most of it, score all rows on the rest, and write the report.

    Args:
        out: folder to make: `videos/`, `run/`, `before_after.mp4`, `report.html`, `report.json`.
        seed: seed of the videos and of the training.
        videos: how many videos to render.
        level: how much the videos differ, "easy" or "hard".
        recipe: settings (default: the recipe `demo`).
        overwrite: overwrite an earlier demo.
    """
    require("matplotlib", extra="plot", purpose="the demo's report")
    started, progress, out = time.monotonic(), progress or Progress(), _make_folder(Path(out), overwrite)
    recipe = recipe or load_recipe("demo")
    recipe = replace(recipe, run=replace(recipe.run, seed=seed))
    write_dataset(out / "videos", videos=videos, seed=seed, level=level, progress=progress.on_render)
    dataset = _split(out / "videos")
    methods = (Method(TRAINED, recipe.loss.weights), *map(Method, BASELINES))
    plan = Plan(
        dataset=dataset,
        methods=methods,
        recipes={method.name: recipe for method in methods},
        recipe_name="demo",
        seed=seed,
        perturb=False,
        few_shot=False,
    )
    workspace = Workspace(out, cache=out / "cache")
    unnamed = replace(progress, on_training=lambda name, total: progress.on_training("", total))
    state = train(dataset, out / "run", recipe=recipe, cache=out / "cache", progress=unnamed)
    if state.is_interrupted:
        raise TrainingStopped(f"the demo's training stopped at update {state.step}")
    torch.manual_seed(seed)
    trained = load_encoder(out / "run")
    encoders: dict[str, Encoder | None] = {
        TRAINED: trained,
        TIME_ONLY: None,
        UNTRAINED: build_encoder(recipe),
    }
    encoders[FROZEN] = build_pretrained(("appearance",))
    rows: dict[str, Report] = {}
    for method in plan.methods:
        rows[method.name], _ = score_row(method, encoders[method.name], plan, workspace)
        progress.on_report(len(rows), len(plan.methods) + 1)
    report = DemoReport(time.monotonic() - started, _loss_title(recipe), rows)
    _write_page(out, report)
    report = replace(report, seconds=time.monotonic() - started)
    write_json(out / "report.json", report.to_json())
    progress.on_report(len(rows) + 1, len(rows) + 1)
    return report


def _loss_title(recipe: Recipe) -> str:
    """Return the loss as a sum, such as `tcc + 0.5 tcn`."""
    weights = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    return " + ".join(name if weight == 1 else f"{weight:g} {name}" for name, weight in weights.items())


def _split(folder: Path) -> Dataset:
    """Hold the last videos out, in a `splits.csv` beside them."""
    names = read_dataset(folder).names
    seen = len(names) - max(MIN_HELD_OUT, round(HELD_OUT_SHARE * len(names)))
    rows = [f"{name},{'train' if position < seen else 'val'}" for position, name in enumerate(names)]
    write_text(folder / "splits.csv", "\n".join(["video,split", *rows, ""]))
    return read_dataset(folder)


def _make_folder(out: Path, overwrite: bool) -> Path:
    if out.exists() and any(out.iterdir()):
        if not overwrite:
            raise OutputExistsError(f"{out} exists. Add --overwrite, or choose another folder with -o.")
        foreign = sorted(path.name for path in out.iterdir() if not _is_ours(path.name))
        if foreign:
            raise OutputExistsError(
                f"{out} holds {foreign[0]!r}, which no demo made. Choose another folder with -o."
            )
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {out}: {error.strerror}. Choose another folder with -o.") from None
    return out


def _is_ours(name: str) -> bool:
    """Return whether a demo writes a file of this name; an interrupted one may leave a hidden draft of it."""
    return name in CONTENTS or (name.startswith(".") and any(known in name for known in CONTENTS))


def _write_page(out: Path, report: DemoReport) -> None:
    """Write `report.html`, its pictures and its film."""
    trained, frozen = (EmbeddingSet.load(out / "embeddings" / name) for name in (TRAINED, FROZEN))
    names = list(trained.names)
    film = _write_film(out / "before_after.mp4", trained, names[:FILM_VIDEOS])
    a, b = names[:2]
    similarity = draw_similarity(
        {"frozen features": (frozen[a], frozen[b]), "after training": (trained[a], trained[b])},
        events=shared_events(trained.events(a), trained.events(b)),
    )
    frame_map = draw_map({"frozen features": frozen, "after training": trained}, names, None)
    write_bytes(out / "similarity.png", similarity)
    write_bytes(out / "tsne.png", frame_map)
    scores = {name: row.to_json() for name, row in report.rows.items()}
    held_out = f"<p>{len(names)} videos were held out. Labels were used for scoring only.</p>"
    sections = [
        ("film", "Before and after", FILM.format(film=data_url(film.read_bytes(), "video/mp4"))),
        ("scores", "Scores on held-out videos", held_out + scores_section(scores, TITLES)),
        ("similarity", "One pair of videos", figure(similarity, "image/png", **SIMILARITY)),
        ("map", "Held-out frames on a map", figure(frame_map, "image/png", **MAP)),
        ("how", "How it was made", HOW.format(loss=report.loss, seconds=report.seconds)),
    ]
    page = render_page(
        "Cycleback demo",
        lead="Videos of the same action, aligned without labels.",
        intro=f'<ul class="reading"><li>{_headline(report)}</li></ul>',
        sections=sections,
    )
    write_text(out / "report.html", page)


def _write_film(path: Path, embeddings: EmbeddingSet, names: list[str]) -> Path:
    """Write a film of two rows of the same clips: as filmed above, at the pace of the first below."""
    videos = locate_videos(embeddings, names)
    aligned = match_reference(embeddings, names, reference=names[0], method="dtw")
    filmed = [indices[: len(aligned[0])] for indices in keep_own_pace(embeddings, names)]
    captions = [f"as filmed: {name}" for name in names] + [f"in sync: {name}" for name in names]
    return write_synced(
        path,
        videos + videos,
        filmed + aligned,
        captions=captions,
        columns=len(names),
        height=160,
        overwrite=True,
    )


def _headline(report: DemoReport) -> str:
    errors = {name: row.event_error_frames or 0.0 for name, row in report.rows.items()}
    best = min(BASELINES, key=lambda name: errors[name])
    return (
        f"On held-out videos, Cycleback maps key events to {errors[TRAINED]:.1f} frames from the truth "
        f"(median). The best baseline, {best}, is {errors[best]:.1f} frames off."
    )
