"""How well the videos of a small folder align, by what is seen of them, without and with training.

Folders of 2, 6, 20, 60 and all videos are drawn from each set with fixed seeds, the same for every row. An
encoder is trained, where a row trains one, and scored on the same videos. Key events are carried between the
videos of a folder by nearest neighbours and by dynamic time warping, over all pairs or a fixed sample.

    row         what is seen                                                    trained
    time-only   the position of the frame in the video                          no
    frozen      appearance: features of an ImageNet network, over 3 x 3 cells   no
    motion      how the picture moves                                           no
    pose        the joints of the body                                          no
    fused       appearance, motion and pose, weighed for the folder             no
    trained     the same, by the recipe `neighbours`                            yes
    resnet50    the same, with ResNet-50 trained as well; for a GPU             yes

A cell has the median over folders of the median error of a folder, and the mean over folders of the share of
events that land within 1 and 3 frames. A folder in which a row sees nothing, such as the pose of nobody, is
left out; `seen` counts the others. The poses of Penn Action have neither pixels nor key events: there, a
folder holds videos of one action, and `tau` and `cycle_rate` are means over folders of all 13 actions.

The result is written after every cell, and cells that are there are not measured again.

    python benchmarks/small_folders.py --out results/small_folders.json
    python benchmarks/small_folders.py --rows trained --draws 5,3,1,1,0 --out results/small_folders.json
    python benchmarks/small_folders.py --rows resnet50 --device cuda --out results/small_folders.json
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import numpy as np
from numpy.typing import NDArray

from cycleback.comparison.rows import time_only_set
from cycleback.data import Dataset, FrameCache, VideoRecord, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.stream_choice import find_mirrored
from cycleback.evaluation import TIME_ONLY, evaluate, event_error, time_only_embeddings
from cycleback.evaluation.events import EventMethod
from cycleback.models.streams import STREAMS, Stream, mirror, stream_vectors
from cycleback.prepare.golfdb import EVENTS
from cycleback.prepare.phases import PENN_ACTION
from cycleback.provenance import provenance
from cycleback.recipe import Recipe, load_recipe
from cycleback.runs import embed_videos, load_encoder, train
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset
from cycleback.tables import read_table
from result_file import read_results, write_results

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEED = 0
ALL = "all"
SIZES = ("2", "6", "20", "60", ALL)
DRAWS = (20, 8, 3, 1, 1)  # folders of each size
MAX_PAIRS = 150  # pairs of videos per folder, each scored in both directions
RENDERED = 24  # videos of each level of rendered pouring
FPS = 30.0  # of Penn Action, which does not state its rate

UNTRAINED: Mapping[str, tuple[Stream, ...]] = {
    "frozen": ("appearance",),
    "motion": ("motion",),
    "pose": ("pose",),
    "fused": STREAMS,
}
TRAINED: Mapping[str, tuple[str, ...]] = {  # row -> what differs from the recipe `neighbours`
    "trained": (),
    "resnet50": (
        *('encoder.base="resnet50"', 'encoder.train_base="all"', 'encoder.statistics="fixed"'),
        *('encoder.train_from="network.layer2"', "optimizer.base_factor=0.1", "data.frame_size=160"),
        *('run.precision="bfloat16"', "run.channels_last=true"),
    ),
}
ROWS = (TIME_ONLY, *UNTRAINED, *TRAINED)
PENN = "penn-poses"
PENN_ROWS = (TIME_ONLY, "pose")

Poses = NDArray[np.float32]  # (N, 17, 3)
Scores = Mapping[str, float]


def read_golf(role: str) -> Dataset:
    """Read the golf swings of one role."""
    rows = read_table(DATA / "golf" / "labels.csv", ("id", "role", *EVENTS))
    return as_dataset(
        VideoRecord(
            row["id"],
            DATA / "golf" / "videos" / f"{row['id']}.mp4",
            events={event: int(row[event]) for event in EVENTS},
        )
        for _, row in rows
        if row["role"] == role
    )


def read_pitches() -> Dataset:
    """Read the baseball pitches whose catch or hit is clearly heard."""
    folder = DATA / "pitch_audio"
    rows = read_table(folder / "audio_peaks.csv", ("file", "pop_time_s", "clear_pop"))
    return as_dataset(
        VideoRecord(
            Path(row["file"]).stem,
            folder / "videos" / row["file"],
            events={"pop": float(row["pop_time_s"])},
            unit="seconds",
        )
        for _, row in rows
        if row["clear_pop"] == "1"
    )


def read_labelled(folder: Path, split: str | None = None) -> Dataset:
    """Read the labelled videos of a data set folder."""
    dataset = read_dataset(folder)
    return as_dataset(r for r in (dataset if split is None else dataset.split(split)) if r.events)


def as_dataset(records: Iterator[VideoRecord]) -> Dataset:
    """Return videos as a data set without a split."""
    found = tuple(records)
    names = tuple(dict.fromkeys(event for record in found for event in record.events))
    return Dataset(root=DATA, records=found, event_names=names)


def render(level: str, folder: Path) -> Dataset:
    """Render pouring videos of one level."""
    write_dataset(folder / level, videos=RENDERED, seed=SEED, level=level, jobs=1)
    return read_labelled(folder / level)


SETS: Mapping[str, Callable[[Path], Dataset]] = {  # set -> reader, which may write to a temporary folder
    "golf": lambda _: read_golf("val"),
    "golf-slow": lambda _: read_golf("val_slow"),
    "robot": lambda _: read_labelled(DATA / "robot", "val"),
    "square": lambda _: read_labelled(DATA / "gesture_square"),
    "tick": lambda _: read_labelled(DATA / "gesture_tick"),
    "pouring-easy": lambda folder: render("easy", folder),
    "pouring-hard": lambda folder: render("hard", folder),
    "pitches": lambda _: read_pitches(),
}


def draw_videos(count: int, size: str, draws: int) -> list[list[int]]:
    """Return the numbers of the videos of each folder, of `count` videos; none if there are too few."""
    if size == ALL:
        return [list(range(count))] if draws else []
    wanted = int(size)
    if wanted >= count:
        return []
    generators = (np.random.default_rng([SEED, wanted, draw]) for draw in range(draws))
    return [sorted(g.choice(count, wanted, replace=False).tolist()) for g in generators]


def draw_pairs(count: int, max_pairs: int) -> list[tuple[int, int]]:
    """Return all pairs of `count` videos, or `max_pairs` of them."""
    pairs = list(combinations(range(count), 2))
    if len(pairs) <= max_pairs:
        return pairs
    chosen = np.random.default_rng(SEED).choice(len(pairs), max_pairs, replace=False)
    return [pairs[number] for number in np.sort(chosen)]


def row_recipe(row: str, overrides: Sequence[str]) -> Recipe:
    """Return the recipe of a trained row; it holds no video out."""
    return load_recipe("neighbours", [*TRAINED[row], "data.held_out=0.0", *overrides])


def embed_folder(row: str, folder: Dataset, options: argparse.Namespace) -> EmbeddingSet:
    """Embed the videos of a folder by a row, which is trained on them first if it learns."""
    if row == TIME_ONLY:
        size = Recipe().data.frame_size
        return time_only_set(FrameCache(options.cache, size=(size, size)), folder)
    where = {"device": options.device, "cache": options.cache}
    if row in UNTRAINED:
        return embed_videos(build_pretrained(UNTRAINED[row]), folder, **where)
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        state = train(folder, run, recipe=row_recipe(row, options.overrides), **where)
        if state.is_interrupted:
            raise SystemExit(f"stopped at update {state.step} of row {row}: this cell is not kept")
        return embed_videos(load_encoder(run), folder, **where)


def score_events(videos: EmbeddingSet, max_pairs: int) -> Scores | None:
    """Score the key events of a folder; None if its embeddings are all zero."""
    if not any(videos[name].any() for name in videos):
        return None
    names, scores = videos.names, {}
    frame_ms = [1000 * float(np.mean(np.diff(videos.times(name)))) for name in names]
    pairs = draw_pairs(len(names), max_pairs)
    methods: dict[str, EventMethod] = {"": "nearest", "_dtw": "dtw"}
    for suffix, method in methods.items():
        errors, late = [], []
        for pair in pairs:
            found = event_error(
                [videos[names[i]] for i in pair], [videos.events(names[i]) for i in pair], method=method
            )
            errors.append(found.errors)
            late.append(found.errors * np.array(frame_ms)[list(pair)][found.videos])
        frames = np.concatenate(errors)
        scores[f"event_error_frames{suffix}"] = float(np.median(frames))
        scores[f"event_error_ms{suffix}"] = round(float(np.median(np.concatenate(late))), 1)
        for limit in (1, 3):
            scores[f"pce{limit}{suffix}"] = round(float((frames <= limit).mean()), 4)
    return scores


def read_penn(*, is_train: bool = False) -> dict[str, list[Poses]]:
    """Return the poses of the official test or training videos by action, in the joints of the stream."""
    with np.load(DATA / "penn_action_poses" / "penn_action_poses.npz") as archive:
        stored = {key: archive[key] for key in archive.files}
    stops = np.cumsum(stored["num_frames"])
    found: dict[str, list[Poses]] = {action: [] for action in PENN_ACTION}
    for video, stop in enumerate(stops):
        action = str(stored["action"][video])
        if action in found and (stored["train"][video] == 1) == is_train:
            frames = slice(stop - stored["num_frames"][video], stop)
            height = stored["height_width"][video][0]
            found[action].append(_body(stored["xy"][frames] / height, stored["visibility"][frames]))
    return found


def _body(places: NDArray[np.floating[Any]], is_visible: NDArray[Any]) -> Poses:
    """Return 13 joints (N, 13, 2) as 17: the head stands for the five points of the face."""
    joints = np.concatenate([places[..., ::-1], is_visible[..., None]], axis=2, dtype=np.float32)
    return joints[:, [0] * 5 + list(range(1, 13))]


def embed_poses(row: str, poses: Sequence[Poses]) -> EmbeddingSet:
    """Embed the videos of a folder by their poses; mirrored videos are turned round."""
    clocks = [np.arange(len(video)) / FPS for video in poses]
    sides = [
        tuple(stream_vectors(raw, clock)["pose"] for raw in ({"pose": video}, mirror({"pose": video})))
        for video, clock in zip(poses, clocks, strict=True)
    ]
    turned = find_mirrored([(plain, other) for plain, other in sides])
    arrays = {str(i): sides[i][is_turned] for i, is_turned in enumerate(turned)}
    found = EmbeddingSet.from_arrays(arrays, fps=FPS)
    return time_only_embeddings(found) if row == TIME_ONLY else found


def score_order(videos: EmbeddingSet) -> Scores:
    """Score the order of nearest neighbours, which needs no labels."""
    report = evaluate(None, videos, intervals=False, few_shot=False)
    return {"tau": round(report.tau, 4), "cycle_rate": round(report.cycle_rate, 4)}


def make_cell(
    by_folder: Sequence[Scores | None], videos: int, began: float, device: str | None
) -> dict[str, Any]:
    """Return the summary of a cell, the scores of each folder, and where they come from.

    `seen` counts the folders with scores. Errors have their median over folders, shares their mean.
    """
    seen = [scores for scores in by_folder if scores is not None]
    keys = list(seen[0]) if seen else []
    summaries = {key: np.median if "error" in key else np.mean for key in keys}
    return {
        "videos": videos,
        "folders": len(by_folder),
        "seen": len(seen),
        **{key: round(float(summaries[key]([scores[key] for scores in seen])), 4) for key in keys},
        "seconds": round(time.monotonic() - began, 1),
        "by_folder": {key: [scores and scores[key] for scores in by_folder] for key in keys},
        **provenance(device or ""),
    }


def measure_set(name: str, missing: Sequence[tuple[str, str]], options: argparse.Namespace) -> Iterator[Any]:
    """Yield the size, the row and the cell of the missing cells of a set of videos."""
    with tempfile.TemporaryDirectory() as place:
        dataset = SETS[name](Path(place))
        for size, row in missing:
            folders = draw_videos(len(dataset), size, options.draws[size])
            if not folders:
                continue
            began, found = time.monotonic(), []
            for numbers in folders:
                folder = dataset.subset([dataset.names[i] for i in numbers])
                found.append(score_events(embed_folder(row, folder, options), options.pairs))
            cell = make_cell(found, len(folders[0]), began, options.device)
            settings = {"settings": [*TRAINED[row], *options.overrides]} if row in TRAINED else {}
            yield size, row, cell | settings


def measure_penn(missing: Sequence[tuple[str, str]], options: argparse.Namespace) -> Iterator[Any]:
    """Yield the size, the row and the cell of the missing cells of Penn Action: a folder has one action."""
    by_action = read_penn()
    for size, row in missing:
        began = time.monotonic()
        folders = [
            [videos[i] for i in numbers]
            for videos in by_action.values()
            for numbers in draw_videos(len(videos), size, options.draws[size])
        ]
        if row in PENN_ROWS and folders:
            found = [score_order(embed_poses(row, folder)) for folder in folders]
            yield size, row, make_cell(found, max(map(len, folders)), began, options.device)


def print_cell(key: str, cell: Mapping[str, Any]) -> None:
    """Print one line of the table."""
    shown = {k: v for k, v in cell.items() if k in ("videos", "folders", "seen") or k in cell["by_folder"]}
    print(f"{key:<32}", *(f"{k} {v:g}" for k, v in shown.items()), f"({cell['seconds']} s)", flush=True)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="settings of the trained rows, as section.key=value")
    parser.add_argument("--sets", default=",".join((*SETS, PENN)), help="separated by commas")
    parser.add_argument("--sizes", default=",".join(SIZES), help="videos of a folder, separated by commas")
    parser.add_argument(
        "--rows", default=",".join((TIME_ONLY, *UNTRAINED)), help=f"of {','.join(ROWS)}, separated by commas"
    )
    parser.add_argument(
        "--draws", default=",".join(map(str, DRAWS)), help=f"folders of each size, for {','.join(SIZES)}"
    )
    parser.add_argument("--pairs", type=int, default=MAX_PAIRS, help="most pairs of videos per folder")
    parser.add_argument("--device", help="cpu or cuda (default: a GPU if there is one)")
    parser.add_argument("--cache", type=Path, help="folder of decoded frames (default: the user's)")
    parser.add_argument("--overwrite", action="store_true", help="measure cells again that are there")
    parser.add_argument("--out", type=Path, default=Path("results/small_folders.json"))
    options = parser.parse_args()
    for name, known in (("sets", (*SETS, PENN)), ("sizes", SIZES), ("rows", ROWS)):
        chosen = getattr(options, name).split(",")
        if unknown := [value for value in chosen if value not in known]:
            parser.error(f"--{name}: no {unknown[0]!r}; known: {', '.join(known)}")
        setattr(options, name, chosen)
    counts = [int(count) for count in options.draws.split(",")]
    if len(counts) != len(SIZES):
        parser.error(f"--draws needs {len(SIZES)} numbers, for {', '.join(SIZES)}, got {len(counts)}")
    options.draws = dict(zip(SIZES, counts, strict=True))
    return options


def main() -> None:
    """Measure the cells that are not in the result file."""
    options = parse_options()
    result = read_results(options.out)
    for name in options.sets:
        wanted = [(size, row) for size in options.sizes for row in options.rows]
        known = () if options.overwrite else result["runs"]
        missing = [(size, row) for size, row in wanted if f"{name}/{size}/{row}" not in known]
        cells = measure_penn(missing, options) if name == PENN else measure_set(name, missing, options)
        for size, row, cell in cells:
            result["runs"][f"{name}/{size}/{row}"] = cell
            write_results(options.out, result)
            print_cell(f"{name}/{size}/{row}", cell)


if __name__ == "__main__":
    main()
