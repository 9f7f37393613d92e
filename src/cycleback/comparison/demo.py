"""`cycleback demo`: what streams give without training and what training adds, on rendered videos."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from cycleback.applications import keep_own_pace, locate_videos, match_reference, write_synced
from cycleback.applications.plots import draw_similarity, shared_events
from cycleback.comparison.figures import data_url, draw_map
from cycleback.comparison.methods import FROZEN, KEPT_UNTRAINED, UNTRAINED_STREAMS, Method
from cycleback.comparison.page import figure, reading_list, render_page, scores_section
from cycleback.comparison.plan import Plan
from cycleback.comparison.rows import TrainingStopped, Workspace, score_row
from cycleback.data import Dataset, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError, require
from cycleback.evaluation import TIME_ONLY, Report, evaluate
from cycleback.files import check_folder, write_bytes, write_json, write_text
from cycleback.models import Encoder
from cycleback.models.streams import describe_streams
from cycleback.progress import Progress
from cycleback.recipe import Recipe, load_recipe
from cycleback.runs import embed_videos, load_encoder, train
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset
from cycleback.synth.dataset import check_rendered

TRAINED = "trained"
TITLES = {
    TIME_ONLY: "time-only",
    FROZEN: "appearance, untrained",
    UNTRAINED_STREAMS: "streams, untrained",
    TRAINED: "streams, trained",
}
CONTENTS = (
    *("videos", "run", "cache", "embeddings", "before_after.mp4", "similarity.png", "tsne.png"),
    *("report.html", "report.json"),
)
HELD_OUT_SHARE, MIN_HELD_OUT = 1 / 6, 2
FILM_VIDEOS = 4
FILM = """<p>The same clips twice. Above, as filmed: every clip at its own pace. Below, in sync: all clips
follow the first one. Nothing was trained for this film, and no other video was looked at. The small number
is the second shown, the bar how much of the clip has played.</p>
<video controls autoplay loop muted playsinline src="{film}"></video>"""
ROWS = """<p>{held_out} videos were held out, {trained} were trained on. Labels were used for scoring only.
<b>Time-only</b> embeds frame i of n as i/n and never looks at it. <b>Appearance</b> is what a frame looks
like to a network trained on ImageNet. The <b>streams</b> are appearance and motion, weighted. <b>Trained</b>
is a network on the streams, by the default recipe.</p>"""
SIMILARITY = {
    "alt": "Similarity matrices of two held-out videos: appearance, untrained streams and trained streams",
    "caption": "Bright: similar. White: the alignment. Rings: where the key events truly meet; the line "
    "should pass through them.",
}
MAP = {
    "alt": "t-SNE maps of held-out frames: appearance, untrained streams and trained streams",
    "caption": "t-SNE of held-out frames, coloured by the true phase. The better an embedding, the closer "
    "together are the same moments of different videos.",
}
CHOICE = """<div class="scroll"><table class="words"><caption>What to use for which videos</caption>
<thead><tr><th scope="col">you have</th><th scope="col">use</th><th scope="col">why</th></tr></thead><tbody>
<tr><td>two clips or a few</td><td><code>cycleback sync a.mp4 b.mp4</code></td>
<td>the untrained streams need no other videos</td></tr>
<tr><td>a folder of dozens</td><td><code>cycleback train clips/ -o run</code></td>
<td>it learns what most pairs agree on; if that does not help, the run keeps the untrained streams</td></tr>
<tr><td>a person who moves</td><td>the default: motion, pose and appearance</td>
<td>motion tells the moment exactly, pose tells where the limbs are</td></tr>
<tr><td>hands, tools or machines</td><td>motion and appearance</td><td>pose is silent and costs time</td></tr>
<tr><td>a still scene that changes slowly</td><td>appearance</td><td>hardly anything moves</td></tr>
<tr><td>live video, or images to search for</td><td><code>cycleback train --recipe appearance</code></td>
<td>motion and pose need the whole video</td></tr></tbody></table></div>"""
HOW = """<p>Rendered, decoded, trained ({loss}), scored and drawn in {seconds:.0f} seconds. Do the same with
your own clips: <code>cycleback train VIDEOS -o RUN</code>, then
<code>cycleback sync VIDEOS --run RUN</code>.</p>"""


@dataclass(frozen=True)
class DemoReport:
    """The scores of the demo and how long it took."""

    seconds: float
    loss: str
    rows: Mapping[str, Report]
    pair_error: float  # frames: median over pairs of held-out videos that are seen two by two, untrained
    streams: Mapping[str, float] = field(default_factory=dict)  # the weight of each
    kept_untrained: bool = False  # whether training did not help

    def to_json(self) -> dict[str, Any]:
        """Return the content of report.json: all of this, and the report of every row."""
        rows = {name: report.to_json() for name, report in self.rows.items()}
        facts = {"pair_error": self.pair_error, "streams": dict(self.streams)}
        return {
            "seconds": round(self.seconds, 1),
            "loss": self.loss,
            **facts,
            "kept_untrained": self.kept_untrained,
            "rows": rows,
        }


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
    unnamed = replace(progress, on_training=lambda name, total: progress.on_training("", total))
    state = train(dataset, out / "run", recipe=recipe, cache=out / "cache", progress=unnamed)
    if state.is_interrupted:
        raise TrainingStopped(f"the demo's training stopped at update {state.step}")
    untrained = build_pretrained(recipe.encoder.streams)
    encoders: dict[str, Encoder | None] = {TIME_ONLY: None, FROZEN: build_pretrained(("appearance",))}
    encoders |= {UNTRAINED_STREAMS: untrained, TRAINED: load_encoder(out / "run")}
    plan = _make_plan(dataset, recipe)
    rows: dict[str, Report] = {}
    for method in plan.methods:
        rows[method.name], _ = score_row(
            method, encoders[method.name], plan, Workspace(out, cache=out / "cache")
        )
        progress.on_report(len(rows), len(plan.methods) + 1)
    report = DemoReport(
        time.monotonic() - started,
        _loss_title(recipe),
        rows,
        _measure_pairs(untrained, plan.held_out, out / "cache"),
        EmbeddingSet.load(out / "embeddings" / UNTRAINED_STREAMS).streams,
        state.kept_untrained,
    )
    names = plan.held_out.names[:FILM_VIDEOS]
    few = embed_videos(untrained, plan.held_out.subset(names), cache=out / "cache")
    film = _write_film(out / "before_after.mp4", few, list(names))
    _write_page(out, report, film)
    report = replace(report, seconds=time.monotonic() - started)
    write_json(out / "report.json", report.to_json())
    progress.on_report(len(rows) + 1, len(rows) + 1)
    return report


def _make_plan(dataset: Dataset, recipe: Recipe) -> Plan:
    methods = [Method(name, recipe.loss.weights if name == TRAINED else {}) for name in TITLES]
    return Plan(
        dataset=dataset,
        methods=tuple(methods),
        recipes={method.name: recipe for method in methods},
        recipe_name="demo",
        seed=recipe.run.seed,
        perturb=False,
        few_shot=False,
    )


def _measure_pairs(encoder: Encoder, videos: Dataset, cache: Path) -> float:
    """Return the median error of key events by dynamic time warping, in frames, of videos seen two by two."""
    errors = []
    for names in zip(videos.names[::2], videos.names[1::2], strict=False):
        pair = embed_videos(encoder, videos.subset(names), cache=cache)
        errors.append(evaluate(None, pair, intervals=False, few_shot=False).event_error_frames_dtw or 0.0)
    return median(errors)


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
    names = os.listdir(out) if out.is_dir() else []
    if any(not name.startswith(".") for name in names):  # hidden drafts are left by an interrupted demo
        check_folder(out, marker="videos", is_own=_is_ours, overwrite=overwrite)
        check_rendered(out / "videos", overwrite=True)
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {out}: {error.strerror}. Choose another folder with -o.") from None
    return out


def _is_ours(name: str) -> bool:
    """Return whether a demo writes a file of this name; an interrupted one may leave a hidden draft of it."""
    return name in CONTENTS or (name.startswith(".") and any(known in name for known in CONTENTS))


def _write_page(out: Path, report: DemoReport, film: Path) -> None:
    """Write `report.html` and its pictures."""
    looks = {name: EmbeddingSet.load(out / "embeddings" / name) for name in TITLES if name != TIME_ONLY}
    first = looks[TRAINED]
    names = list(first.names)
    a, b = names[:2]
    similarity = draw_similarity(
        {TITLES[name]: (videos[a], videos[b]) for name, videos in looks.items()},
        events=shared_events(first.events(a), first.events(b)),
        size=(3.6 * len(looks), 3.2),  # inches
    )
    maps = {TITLES[name]: videos for name, videos in looks.items()}
    frame_map = draw_map(maps, names, None, panel=(3.6, 3.6))  # inches
    write_bytes(out / "similarity.png", similarity)
    write_bytes(out / "tsne.png", frame_map)
    scores = {name: row.to_json() for name, row in report.rows.items()}
    titles = TITLES | ({TRAINED: f"{TITLES[TRAINED]} ({KEPT_UNTRAINED})"} if report.kept_untrained else {})
    counts = report.rows[TRAINED].counts
    told = ROWS.format(held_out=counts["videos"], trained=counts["train_videos"])
    sections = [
        ("film", "A few clips, without training", FILM.format(film=data_url(film.read_bytes(), "video/mp4"))),
        ("scores", "Scores on held-out videos", told + scores_section(scores, titles)),
        ("choice", "What to use when", CHOICE),
        ("similarity", "One pair of videos", figure(similarity, "image/png", **SIMILARITY)),
        ("map", "Held-out frames on a map", figure(frame_map, "image/png", **MAP)),
        ("how", "How it was made", HOW.format(loss=report.loss, seconds=report.seconds)),
    ]
    page = render_page(
        "Cycleback demo",
        lead="Videos of the same action, aligned without labels.",
        intro=reading_list(write_demo_reading(report)),
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


def write_demo_reading(report: DemoReport) -> list[str]:
    """Say what the untrained streams give, what training adds, and which streams were used."""
    errors = {name: row.event_error_frames or 0.0 for name, row in report.rows.items()}
    untrained, trained = report.rows[UNTRAINED_STREAMS], report.rows[TRAINED]
    chosen = describe_streams(report.streams).removeprefix("streams: ")
    return [
        f"Without training, the streams carry key events of held-out videos to "
        f"{errors[UNTRAINED_STREAMS]:.1f} frames from the truth (median), and {untrained.pce3 or 0:.0%} of "
        f"them to within 3 frames. Appearance alone is {errors[FROZEN]:.1f} frames off, {TIME_ONLY} "
        f"{errors[TIME_ONLY]:.1f}.",
        f"Two clips are enough: seen two by two, without any other video, they are {report.pair_error:.1f} "
        "frames off by dynamic time warping (median over pairs).",
        _tell_training(untrained, trained, report),
        f"Weights chosen without labels: {chosen}. The clips show a hand and no person, so pose would be "
        "silent; the demo leaves it out to save time.",
    ]


def _tell_training(untrained: Report, trained: Report, report: DemoReport) -> str:
    """Say how the scores change by training, for better or worse."""
    videos = f"{trained.counts['train_videos']} videos"
    if report.kept_untrained:
        return f"Training on {videos} did not help: the run {KEPT_UNTRAINED}."
    error, exact, order, phase = (
        (getattr(untrained, score) or 0.0, getattr(trained, score) or 0.0)
        for score in ("event_error_frames", "pce3", "tau", "precision5")
    )
    better = "better" if order[1] > order[0] else "no better"
    return (
        f"After training on {videos} they are {error[1]:.1f} frames off ({error[0]:.1f} before), and "
        f"{exact[1]:.0%} are within 3 frames ({exact[0]:.0%} before). Nearest frames follow the order of "
        f"time {better} (tau {order[1]:.2f}, {order[0]:.2f} before), and {phase[1]:.0%} of them show the "
        f"right phase ({phase[0]:.0%} before)."
    )
