"""The pictures of a comparison: line charts as SVG; similarity, maps and matched frames of single videos.

Colours are safe for colour-blind readers, every line has a marker, and baselines are dashed.

Shapes: M frames of all videos together, H W pixels.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.applications.plots import draw_similarity, shared_events
from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.applications.plots.maps import draw_phase_dots, draw_time_dots, project, spread_points
from cycleback.comparison.methods import FROZEN, UNTRAINED, UNTRAINED_STREAMS
from cycleback.comparison.plan import Plan
from cycleback.comparison.rows import (
    Workspace,
    load_row_encoder,
    load_snapshots,
    read_json,
    untrained_encoder,
)
from cycleback.data import Dataset, FrameCache, VideoRecord
from cycleback.data.sources import image_paths, read_image
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import TIME_ONLY
from cycleback.models import Encoder
from cycleback.runs import embed_videos, load_encoder
from cycleback.runs.folder import keeps_untrained
from cycleback.video import probe

Rows = Mapping[str, Mapping[str, Any]]
Points = NDArray[np.float64]
MARKERS = "osD^vPX*"
BASELINE_STYLES = {
    TIME_ONLY: ("#000000", ":"),
    FROZEN: ("#777777", "--"),
    UNTRAINED: ("#777777", "-."),
    UNTRAINED_STREAMS: ("#000000", "--"),
}
LINE_COLOURS = [colour for colour in PHASE_COLOURS if colour != "#BBBBBB"]  # too close to the baselines
MAX_ERROR = 30  # frames shown in the distribution of errors
MAX_POINTS = 700  # frames on a map: t-SNE slows with their square
MAP_VIDEOS, MAP_FRAMES = 12, 18  # videos on a map, and how many of their frames are shown as pictures
PANEL = (5.3, 5.0)  # inches
OTHERS, MOMENTS = 3, 6  # videos beside the reference, and moments shown where no key events are labelled


def draw_few_shot(rows: Rows) -> bytes | None:
    """Draw phase accuracy against the number of labelled videos; the band is the spread over draws."""
    shots = {name: row["report"].get("few_shot") or {} for name, row in rows.items()}
    if not any(shots.values()):
        return None
    with new_figure(1, size=(8.4, 4.2)) as (figure, (axis,)):
        for name, by_count in shots.items():
            counts = sorted(by_count, key=int)
            mean = np.array([by_count[count]["mean"] for count in counts])
            spread = np.array([by_count[count]["spread"] for count in counts])
            videos, style = [int(count) for count in counts], line_style(name, rows)
            axis.plot(videos, mean, label=rows[name]["title"], markersize=5, **style)
            axis.fill_between(
                videos, mean - spread, mean + spread, color=style["color"], alpha=0.13, linewidth=0
            )
        axis.set(xlabel="labelled videos", ylabel="phase accuracy")
        axis.set_xticks(sorted({int(count) for by_count in shots.values() for count in by_count}))
        return _finish(figure, axis)


def draw_errors(rows: Rows) -> bytes | None:
    """Draw the share of key events within k frames of the truth, against k."""
    errors = {name: np.asarray(row["report"].get("event_errors") or []) for name, row in rows.items()}
    known = {name: values for name, values in errors.items() if len(values)}
    if not known:
        return None
    last = int(min(MAX_ERROR, max(values.max() for values in known.values())))
    frames = np.arange(last + 1)
    with new_figure(1, size=(8.4, 4.2)) as (figure, (axis,)):
        for name, values in known.items():
            shares = [(values <= k).mean() for k in frames]
            style = {"markevery": max(1, last // 10), "markersize": 4, **line_style(name, rows)}
            axis.plot(frames, shares, label=rows[name]["title"], **style)
        axis.set(xlabel="frames from the truth", ylabel="share of key events", ylim=(0, 1.02), xlim=(0, last))
        return _finish(figure, axis)


def draw_curves(curves: Mapping[str, Sequence[Mapping[str, float]]], rows: Rows) -> bytes | None:
    """Draw the loss of each trained row in its own panel, and the cycle rates of all in the last one."""
    drawn = {name: lines for name, lines in curves.items() if lines}
    if not drawn:
        return None
    columns = min(3, len(drawn) + 1)
    size = (3.1 * columns, 2.3 * -(-(len(drawn) + 1) // columns))
    with new_figure(len(drawn) + 1, size=size, columns=columns) as (figure, (*axes, last)):
        for axis, (name, lines) in zip(axes, drawn.items(), strict=True):
            colour = line_style(name, rows)["color"]
            axis.plot(*_running_mean(lines, "loss"), color=colour, linewidth=1.3)
            last.plot(*_running_mean(lines, "cycle_rate"), color=colour, linewidth=1.3)
            axis.set(title=f"loss: {rows[name]['title']}")
        last.set(title="training frames that cycle back", ylim=(0, 1.02))
        for axis in (*axes, last):
            axis.grid(True)
            axis.set(xlabel="update")
        return image_bytes(figure, "svg")


def _running_mean(lines: Sequence[Mapping[str, float]], key: str) -> tuple[list[float], list[float]]:
    """Return updates, and the mean of a value over the last twentieth of all log lines."""
    values = np.array([line[key] for line in lines])
    width = max(1, len(values) // 20)
    total = np.cumsum(np.insert(values, 0, 0.0))
    starts = np.maximum(np.arange(len(values)) - width + 1, 0)
    means = (total[1:] - total[starts]) / (np.arange(len(values)) - starts + 1)
    return [line["step"] for line in lines], list(means)


def line_style(name: str, rows: Rows) -> dict[str, Any]:
    """Return colour, marker and dashes of a row, the same in every chart."""
    if name in BASELINE_STYLES:
        colour, dashes = BASELINE_STYLES[name]
        return {"color": colour, "linestyle": dashes, "linewidth": 1.5}
    place = [other for other in rows if other not in BASELINE_STYLES].index(name)
    marker = MARKERS[place % len(MARKERS)]
    return {"color": LINE_COLOURS[place % len(LINE_COLOURS)], "marker": marker, "linewidth": 1.8}


def _finish(figure: Any, axis: Any) -> bytes:
    axis.grid(True)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3)
    return image_bytes(figure, "svg")


@dataclass(frozen=True)
class Thumbnails:
    """Small pictures of single frames, in the proportions of their video."""

    videos: Dataset
    frames: FrameCache

    def picture(self, video: str, frame: int, *, height: int = 96) -> NDArray[np.uint8]:
        """Return one frame (height, W, 3)."""
        record = self.videos[video]
        width = max(1, round(height * self._aspect(record)))
        return np.asarray(_image(self.frames.load(record).frames[frame]).resize((width, height)))

    def data_url(self, video: str, frame: int, *, height: int = 96) -> str:
        """Return one frame as a JPEG for the `src` of an `<img>`."""
        buffer = io.BytesIO()
        _image(self.picture(video, frame, height=height)).save(buffer, "JPEG", quality=85)
        return data_url(buffer.getvalue(), "image/jpeg")

    def _aspect(self, record: VideoRecord) -> float:
        """Return width over height; frames that the cache cropped keep the shape they have there."""
        if self.frames.fit == "crop":
            return self.frames.size[1] / self.frames.size[0]
        if record.kind == "frames":
            height, width = read_image(image_paths(record.path)[0]).shape[:2]
            return float(width / height)
        return probe(record.path).aspect


def data_url(content: bytes, kind: str) -> str:
    """Return content as an address that needs no file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _image(pixels: NDArray[np.uint8]) -> Any:
    from PIL import Image

    return Image.fromarray(np.asarray(pixels))


def draw_map(
    sets: Mapping[str, EmbeddingSet],
    names: Sequence[str],
    thumbs: Thumbnails | None,
    *,
    panel: tuple[float, float] = PANEL,
) -> bytes:
    """Draw one t-SNE map per panel: one dot per frame, coloured by phase or, where unknown, by time.

    `sets` maps the title of a panel to its embeddings; `names` are the videos to show. With `thumbs`, some of
    the frames are shown as pictures. `panel` is the width and height of a map in inches.
    """
    first = next(iter(sets.values()))
    stride = -(-sum(len(first[name]) for name in names) // MAX_POINTS)
    owners = [(name, frame) for name in names for frame in range(0, len(first[name]), stride)]
    with new_figure(len(sets), size=(panel[0] * len(sets), panel[1])) as (figure, axes):
        for axis, (title, embeddings) in zip(axes, sets.items(), strict=True):
            points = project(np.concatenate([embeddings[name][::stride] for name in names]))  # (M, 2)
            for name in names:
                mine = np.array([owner == name for owner, _ in owners])
                axis.plot(*points[mine].T, color="#00000018", linewidth=0.6, zorder=1)
            _draw_dots(figure, axis, points, embeddings, owners)
            if thumbs is not None:
                _place_frames(axis, points, owners, thumbs)
            axis.set(title=title, xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        handles, _ = axes[-1].get_legend_handles_labels()
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=3)
        return image_bytes(figure, "png")


def _draw_dots(
    figure: Any, axis: Any, points: Points, embeddings: EmbeddingSet, owners: Sequence[tuple[str, int]]
) -> None:
    known = {name: embeddings.phases(name) for name, _ in owners}
    if any(phases is None for phases in known.values()):
        shares = np.array([frame / len(embeddings[name]) for name, frame in owners])
        draw_time_dots(figure, axis, points, shares)
        return
    labels = np.array([known[name][frame] for name, frame in owners])  # type: ignore[index]
    events = list(embeddings.events(owners[0][0]))
    draw_phase_dots(
        axis, points, labels, [f"before “{events[0]}”", *(f"after “{event}”" for event in events)]
    )


def _place_frames(axis: Any, points: Points, owners: Sequence[tuple[str, int]], thumbs: Thumbnails) -> None:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    for index in spread_points(points, MAP_FRAMES):
        image = OffsetImage(thumbs.picture(*owners[index]), zoom=0.36)
        frame = {"edgecolor": "#888888", "lw": 0.6}
        axis.add_artist(AnnotationBbox(image, tuple(points[index]), pad=0.1, bboxprops=frame, zorder=3))


@dataclass(frozen=True)
class Match:
    """A moment found in another video: its frame, and how many frames late that is (None: unknown)."""

    frame: int
    late: int | None


@dataclass(frozen=True)
class Example:
    """Moments of a reference video, and where rows find them in other videos."""

    reference: str  # name of the video
    moments: Mapping[str, int]  # title -> frame of the reference
    matches: Mapping[str, Mapping[str, list[Match]]]  # row -> other video -> one match per moment


def choose_videos(videos: EmbeddingSet, *, count: int = OTHERS + 1) -> list[str]:
    """Choose videos of one action to show, at least two; those with most key events come first."""
    groups = [videos.of_action(action).names for action in videos.actions]
    group = max(groups, key=lambda names: (min(len(names), 2), max(len(videos.events(n)) for n in names)))
    return sorted(group, key=lambda name: -len(videos.events(name)))[:count]


def find_example(sets: Mapping[str, EmbeddingSet], names: Sequence[str]) -> Example:
    """Find the moments of the first video in the others, by the nearest frames of each row."""
    reference, *others = names
    first = next(iter(sets.values()))
    moments = dict(first.events(reference))
    if not moments:
        last = len(first[reference]) - 1
        frames = np.linspace(0.1 * last, 0.9 * last, MOMENTS).round().astype(int)
        moments = {f"{frame / max(last, 1):.0%} of the video": int(frame) for frame in frames}
    matches: dict[str, dict[str, list[Match]]] = {row: {} for row in sets}
    for row, embeddings in sets.items():
        for other in others:
            nearest = align(embeddings[reference], embeddings[other], method="nearest").indices.tolist()
            truth = embeddings.events(other)
            matches[row][other] = [
                Match(nearest[frame], nearest[frame] - truth[title] if title in truth else None)
                for title, frame in moments.items()
            ]
    return Example(reference, moments, matches)


@dataclass(frozen=True)
class Scenes:
    """Pictures of single held-out videos."""

    pair: tuple[str, str]  # the two videos of the similarity matrices
    snapshots: list[int]  # updates that the matrices show; empty for a row without training
    similarity: bytes  # PNG
    frame_map: bytes  # PNG
    example: Example
    thumbs: Thumbnails | None  # pictures of the matched frames; None where frames are vectors


def draw_scenes(plan: Plan, workspace: Workspace, best: str) -> Scenes:
    """Draw pictures of the best row beside rows without training."""
    titles = {method.name: plan.title(method) for method in plan.methods}
    rows = dict.fromkeys([best, FROZEN, TIME_ONLY])
    sets = {name: EmbeddingSet.load(workspace.embeddings(name)) for name in rows}
    names = choose_videos(sets[best])
    pair = (names[0], names[1])
    stages = _training_stages(plan, workspace, best, pair)
    data = plan.recipes[UNTRAINED].data
    frames = FrameCache(workspace.cache, size=(data.frame_size, data.frame_size), fit=data.fit)
    thumbs = Thumbnails(plan.held_out, frames) if plan.has_pictures else None
    maps = {titles[name]: sets[name] for name in dict.fromkeys([best, FROZEN])}
    same_action = sets[best].of_action(sets[best].action(names[0])).names[:MAP_VIDEOS]
    return Scenes(
        pair=pair,
        snapshots=[step for step in stages if step >= 0],
        similarity=draw_similarity(
            {_stage_title(step): (stage[pair[0]], stage[pair[1]]) for step, stage in stages.items()},
            events=shared_events(*(sets[best].events(name) for name in pair)),
            size=(3.0 * len(stages), 2.8),  # inches
        ),
        frame_map=draw_map(maps, same_action, thumbs),
        example=find_example({name: sets[name] for name in dict.fromkeys([best, TIME_ONLY])}, names),
        thumbs=thumbs,
    )


def _training_stages(
    plan: Plan, workspace: Workspace, best: str, pair: tuple[str, str]
) -> dict[int, EmbeddingSet]:
    """Return update -> embeddings of the pair; the only key is -1 for a row without a trained encoder."""
    method = next(method for method in plan.methods if method.name == best)
    encoder = load_row_encoder(method, plan, workspace)
    if encoder is None or not method.is_trained or keeps_untrained(workspace.run(best)):
        return {-1: EmbeddingSet.load(workspace.embeddings(best)).subset(list(pair))}
    recipe = plan.recipes[best]
    start = recipe.run.start_from
    first = load_encoder(start) if start else untrained_encoder(recipe, plan, workspace)
    encoders: dict[int, Encoder] = {0: first}
    encoders |= load_snapshots(workspace.snapshots(best))
    training = read_json(workspace.training(best)) or {}
    encoders[training.get("updates", recipe.optimizer.num_updates)] = encoder
    videos = plan.held_out.subset(pair)
    return {
        step: embed_videos(stage, videos, device=workspace.device, cache=workspace.cache)
        for step, stage in encoders.items()
    }


def _stage_title(step: int) -> str:
    if step < 0:
        return "not trained"
    return f"after {step} update{'s' * (step > 1)}" if step else "before training"
