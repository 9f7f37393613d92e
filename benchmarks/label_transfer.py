r"""Label a few videos and find the key events of all others: how far off are they?

An encoder learns from all training swings without labels. Then seeded draws of 1, 5 and 10 swings are
labelled, and the events of the held-out swings are found by

    transfer             this encoder, events transferred as by `cycleback transfer labels`
    untrained            appearance, motion and pose without training, events transferred
    probe                this encoder, a logistic regression of phases, the best split into phases in order
    supervised           an encoder trained on the phases of just these swings, read like probe
    supervised-transfer  the same encoder, events transferred
    frozen               features of a network trained on ImageNet, events transferred
    frozen-probe         the same features, read like probe
    time-only            no pixels: events transferred at constant speed

and, with all training swings labelled, by the rows that can use them. Like the transfer from several swings,
probes know how long phases last in the labelled ones (`segmentation.py`). Transfer sees all held-out swings
at once, without their labels. Errors are pooled over swings, events and draws; `pce1_range` is the least and
the largest of the draws. `within_span` is the share within max(1, round(span / 30)) frames, which is
SwingNet's PCE with `--span address,impact`. Rows that are already in the result file are not measured again.

Other data sets, each with its own run where there is one, have the rows transfer, untrained, frozen and
time-only under `sets`. Labelled videos are drawn from the training part of a set that comes with a split, and
events are found in its part "val"; of a set without a split, in all videos that are not drawn.

Example:
    python benchmarks/label_transfer.py golf --run golf-lite --span address,impact \
      --set gesture_square --set gesture_tick --set robot=runs/robot --out label_transfer.json
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported: one thread per swing here

import numpy as np
from numpy.typing import NDArray

from cycleback.applications import transfer_labels
from cycleback.comparison.methods import FROZEN, TIME_ONLY, parse_method
from cycleback.data import Dataset, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import time_only_embeddings
from cycleback.evaluation.events import span_tolerances
from cycleback.files import write_json
from cycleback.provenance import provenance
from cycleback.recipe import RECIPE_FILE, Recipe, load_recipe
from cycleback.runs import PRETRAINED, embed_videos, find_run, train
from cycleback.runs.folder import build_pretrained
from segmentation import find_events, mean_lengths, phase_classifier

DRAWS = {1: 20, 5: 10, 10: 10}  # labelled swings -> draws
TRAINED_DRAWS = 3  # of those, where each draw trains an encoder
UNTRAINED = "untrained"
ROWS = (
    "transfer",
    UNTRAINED,
    "probe",
    TIME_ONLY,
    FROZEN,
    "frozen-probe",
    "supervised",
    "supervised-transfer",
)
ROWS_OF_SETS = ("transfer", UNTRAINED, FROZEN, TIME_ONLY)
ROWS_OF_ALL = ("transfer", "probe", "frozen-probe", "supervised")  # with all training swings labelled
CLASSIFIED = ("frozen-probe", "supervised", "probe")
TEMPOS = {"val": (1.0,), "val_slow": (1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)}  # how much slower swings may play
KEYS = {"val": "labelled"}  # of parts in the result file, where another than the part's name

Span = tuple[str, str] | None  # events that begin and end the action; None: the first and the last
Reader = Callable[[str], Sequence[int]]  # video -> frame of each key event
Errors = NDArray[np.float64]  # (swings, events, 3): in frames, in milliseconds, as a share of the tolerance


def transfer_reader(embeddings: EmbeddingSet, labelled: list[str], names: Sequence[str]) -> Reader:
    """Return a reader of `names` that transfers events from the labelled swings as the package does."""
    labels = {name: embeddings.events(name) for name in labelled}
    found = transfer_labels(embeddings.subset([*labelled, *names]), labels).videos

    def read(name: str) -> list[int]:
        frames = {event.name: event.at.frame or 0 for event in found[name].events}
        return [frames[event] for event in embeddings.event_names]

    return read


def probe_reader(
    embeddings: EmbeddingSet, labelled: list[str], *, seen: Sequence[str], tempos: Sequence[float]
) -> Reader:
    """Return a reader that classifies phases; the frames of `seen` set the scale of the embeddings."""
    classify = phase_classifier(embeddings, labelled, seen)
    lengths = mean_lengths(embeddings, labelled)
    return lambda name: find_events(classify(embeddings[name]), lengths, tempos=tempos).tolist()


def errors_of(embeddings: EmbeddingSet, name: str, frames: Sequence[int], *, span: Span = None) -> Errors:
    """Return the distance (events, 3) of found from true frames: in frames, in ms, in tolerances."""
    times, events = embeddings.times(name), embeddings.events(name)
    truth = np.array([events[event] for event in embeddings.event_names])
    late = np.abs(np.asarray(frames) - truth)
    (allowed,) = span_tolerances([events], span)
    return np.stack([late, 1000 * np.abs(times[frames] - times[truth]), late / allowed], axis=1)


def summary(draws: Sequence[Errors], event_names: Sequence[str]) -> dict[str, Any]:
    """Return the scores of one row over all draws, swings and events, and of each event alone."""
    frames, ms, shares = np.moveaxis(np.concatenate(draws), -1, 0)
    near = [float((errors[..., 0] <= 1).mean()) for errors in draws]
    return {
        "median_ms": round(float(np.median(ms)), 1),
        "mean_ms": round(float(ms.mean()), 1),
        "pce1": round(float((frames <= 1).mean()), 4),
        "pce3": round(float((frames <= 3).mean()), 4),
        "within_span": round(float((shares <= 1).mean()), 4),
        "median_frames": round(float(np.median(frames)), 2),
        "pce1_range": [round(min(near), 4), round(max(near), 4)],
        "draws": len(draws),
        "by_event": {
            event: {
                "median_ms": round(float(np.median(ms[:, i])), 1),
                "pce1": round(float((frames[:, i] <= 1).mean()), 4),
            }
            for i, event in enumerate(event_names)
        },
    }


@dataclass
class Encoders:
    """Embeddings of all swings by the encoder of each row."""

    dataset: Dataset
    run: str | None
    recipe: Recipe | None  # of supervised training
    updates: int  # of training on a few swings; on all, as many as the recipe has
    supervised_run: str | None
    cache: Path | None

    def __post_init__(self) -> None:
        has_split = bool(self.dataset.given_split)
        self.seen = list((self.dataset.split("train") if has_split else self.dataset).names)
        self.embedded = cache(self._embedded)
        self.trained = cache(self._trained)

    def of(self, row: str, labelled: list[str]) -> EmbeddingSet:
        """Return the embeddings of a row when these swings are labelled."""
        if row.startswith("supervised"):
            is_made = self.supervised_run is not None and len(labelled) == len(self.seen)
            return self.embedded(self.supervised_run) if is_made else self.trained(tuple(labelled))
        names = {UNTRAINED: PRETRAINED, TIME_ONLY: PRETRAINED, FROZEN: FROZEN, "frozen-probe": FROZEN}
        found = self.embedded(names.get(row, self.run))
        return time_only_embeddings(found) if row == TIME_ONLY else found

    def _embedded(self, encoder: str) -> EmbeddingSet:
        source = build_pretrained(("appearance",)) if encoder == FROZEN else encoder
        return embed_videos(source, self.dataset, cache=self.cache)

    def _trained(self, labelled: tuple[str, ...]) -> EmbeddingSet:
        assert self.recipe is not None  # only sets that have one are trained on labels
        is_few = len(labelled) < len(self.seen)
        updates = self.updates if is_few else self.recipe.optimizer.num_updates
        recipe = replace(self.recipe, optimizer=replace(self.recipe.optimizer, num_updates=updates))
        videos = fill_batch(self.dataset.subset(labelled), recipe.optimizer.batch_size)
        with tempfile.TemporaryDirectory() as folder:
            state = train(videos, Path(folder) / "run", recipe=recipe, cache=self.cache)
            if state.is_interrupted:
                raise SystemExit(f"stopped at update {state.step} of {updates}: nothing of it is kept")
            return self._embedded(str(Path(folder) / "run"))


def fill_batch(videos: Dataset, batch_size: int) -> Dataset:
    """Repeat videos under other names until there is at least one batch of them."""
    records = [
        replace(record, name=record.name if turn == 0 else f"{record.name}-{turn}")
        for turn in range(-(-batch_size // len(videos)))
        for record in videos
    ]
    return replace(videos, records=tuple(records))


def draw_names(names: Sequence[str], count: int, draws: int) -> list[list[str]]:
    """Return seeded draws of `count` names; of all names there is one draw."""
    if count == len(names):
        return [list(names)]
    generator = np.random.default_rng(count)
    return [generator.choice(names, count, replace=False).tolist() for _ in range(draws)]


def measure(
    encoders: Encoders, row: str, labelled: Sequence[list[str]], *, part: str | None, span: Span
) -> dict[str, Any]:
    """Score a row on one part of the swings, or on all that are not labelled, over draws of labelled ones."""
    errors = []
    for draw in labelled:
        found = encoders.of(row, draw)
        videos = encoders.dataset if part is None else encoders.dataset.split(part)
        names = [name for name in videos.names if name not in draw]
        if row in CLASSIFIED:
            read = probe_reader(found, draw, seen=encoders.seen, tempos=TEMPOS.get(part or "", (1.0,)))
        else:
            read = transfer_reader(found, draw, names)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            pairs = zip(names, pool.map(read, names), strict=True)
            errors.append(np.stack([errors_of(found, *pair, span=span) for pair in pairs]))
    return summary(errors, encoders.dataset.event_names)


def measure_sets(
    sets: Mapping[Path, str | None], result: dict[str, Any], *, cache: Path | None, out: Path
) -> None:
    """Measure what the result lacks of other data sets; their runs may be None."""
    for folder, run in sets.items():
        dataset = read_dataset(folder)
        part = "val" if dataset.given_split else None
        encoders = Encoders(dataset, run, None, 0, None, cache)
        for count, draws in DRAWS.items():
            rows = result.setdefault("sets", {}).setdefault(folder.name, {}).setdefault(str(count), {})
            for row in ROWS_OF_SETS if run is not None else ROWS_OF_SETS[1:]:
                if row not in rows:
                    drawn = draw_names(encoders.seen, count, draws)
                    rows[row] = measure(encoders, row, drawn, part=part, span=None)
                    write_json(out, result, overwrite=True)
                    print(folder.name, count, row, *list(rows[row].values())[:5], flush=True)


def measure_all(
    encoders: Encoders, result: dict[str, Any], *, parts: dict[str, str], span: Span, out: Path
) -> None:
    """Measure what the result lacks, each part under its key, and write it after each row."""
    for count in (*DRAWS, len(encoders.seen)):
        for row in ROWS if count in DRAWS else ROWS_OF_ALL:
            is_trained = row.startswith("supervised")
            draws = draw_names(encoders.seen, count, TRAINED_DRAWS if is_trained else DRAWS.get(count, 1))
            for part, key in parts.items():
                rows = result.setdefault(key, {}).setdefault(str(count), {})
                if row not in rows:
                    rows[row] = measure(encoders, row, draws, part=part, span=span)
                    write_json(out, result, overwrite=True)
                    print(part, count, row, *list(rows[row].values())[:5], flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="data set folder with key events and a split")
    parser.add_argument("overrides", nargs="*", help="settings of supervised training, as section.key=value")
    parser.add_argument("--run", required=True, help="run folder of an encoder trained without labels")
    parser.add_argument("--recipe", help="of supervised training (default: that of the run)")
    parser.add_argument("--updates", type=int, default=500, help="of training on few swings (default: 500)")
    parser.add_argument("--supervised-run", help="run trained on all labels (default: train one)")
    parser.add_argument("--span", help="events that begin and end the action, as FIRST,LAST")
    parser.add_argument("--set", action="append", default=[], help="another data set, as DIR or DIR=RUN")
    parser.add_argument("--parts", default="val,val_slow", help="held-out splits, separated by commas")
    parser.add_argument("--cache", type=Path, default=None, help="cache of decoded frames")
    parser.add_argument("--out", type=Path, required=True, help="result file; existing rows stay")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    return parser


def main() -> None:
    """Measure the rows that are not in the result file."""
    arguments = parser().parse_args()
    dataset = read_dataset(arguments.data)
    parts = {name: KEYS.get(name, name) for name in arguments.parts.split(",")}
    loss = [*parse_method("supervised").overrides, "run.select_every=0"]
    recipe = load_recipe(
        arguments.recipe or find_run(arguments.run) / RECIPE_FILE, [*loss, *arguments.overrides]
    )
    encoders = Encoders(
        dataset.subset([record.name for record in dataset if record.split in ("train", *parts)]),
        arguments.run,
        recipe,
        arguments.updates,
        arguments.supervised_run,
        arguments.cache,
    )
    result: dict[str, Any] = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    asked = {"recipe": arguments.recipe, "span": arguments.span}
    named = {key: value for key, value in asked.items() if value is not None}
    result |= {"run": Path(arguments.run).name, **named, "updates": arguments.updates, **provenance()}
    first, _, last = (arguments.span or "").partition(",")
    measure_all(encoders, result, parts=parts, span=(first, last) if last else None, out=arguments.out)
    sets = {Path(folder): run or None for folder, _, run in (text.partition("=") for text in arguments.set)}
    measure_sets(sets, result, cache=arguments.cache, out=arguments.out)
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
