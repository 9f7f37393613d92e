"""Train and measure the rows of a results table on a labelled data set, and keep them as JSON.

A row is a base network, a method and a seed: `resnet50/tcc+tcn/0`. Rows that are already in the result file
are not trained again, so a stopped run goes on where it was; with --limit-s it stops by itself. Rows may be
shared out among several calls, each with its own result file, which --join puts together.

Example:
    cycleback data prepare golfdb downloads/golfdb golf
    python benchmarks/reproduce.py golf --workers 6 --out results/golf.json
    python benchmarks/reproduce.py --join part1.json part2.json --out results/golf.json
"""

import argparse
import json
import math
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cycleback.data import Dataset, read_dataset
from cycleback.errors import UserError
from cycleback.recipe import Recipe
from result_file import opened, write
from rows import (
    BASELINES,
    KINDS,
    LOSSES,
    circumstances,
    curve_of,
    embedded,
    frame_cache,
    is_pretrained,
    measure,
    recipe_of,
)
from scoring import TRAIN, Scorer

__all__ = ["BASELINES", "KINDS", "LOSSES", "circumstances", "curve_of", "measure", "recipe_of"]

ROWS = (
    *("time-only", "random", "frozen", "supervised", "sal", "tcn", "tcc", "tcc-classification", "tcc-mse"),
    *("tcc+sal", "tcc+tcn", "tcc+tcn+order"),
)
BASES = {
    "resnet50": ("fast-gpu",),
    "resnet50-long": ("best-gpu",),
    "vggm": ("fast-gpu-scratch",),
    "lite0": ("golf-lite",),
}
SEEDLESS = ("time-only", "frozen")


@dataclass(frozen=True)
class Job:
    """One run: a row of a base, with a seed and the settings it trains with (recipe, overrides)."""

    base: str
    row: str
    seed: int
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        """Where it is in the result file."""
        return f"{self.base}/{self.row}/{self.seed}"

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        name, *overrides = self.settings
        return recipe_of(self.row, name, overrides, self.seed)


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """All runs asked for, seed by seed; what has no seed comes once, frozen only with pretrained weights."""
    named = {name: (recipe, *overrides) for name, recipe, *overrides in map(_base, arguments.base)}
    known = BASES | named
    rows, bases = arguments.rows.split(","), arguments.bases.split(",")
    for kind, asked, expected in (("base", bases, known), ("row", rows, dict.fromkeys((*ROWS, *LOSSES)))):
        if unknown := sorted(set(asked) - set(expected)):
            raise UserError(f"no {kind} {unknown[0]!r}: expected one of {', '.join(expected)}")
    found = [
        Job(base, row, seed, (*known[base], *arguments.overrides))
        for seed in map(int, arguments.seeds.split(","))
        for base in bases
        for row in rows
    ]
    once = [job for job in found if job.seed == 0 or job.row not in SEEDLESS]
    return [job for job in once if job.row != "frozen" or is_pretrained(job.recipe)]


def _base(words: list[str]) -> list[str]:
    """Name, recipe and overrides of --base."""
    name, equals, recipe = words[0].partition("=")
    if not (name and equals and recipe):
        raise UserError(f"--base {words[0]}: expected NAME=RECIPE, such as resnet50=fast-gpu")
    return [name, recipe, *words[1:]]


@dataclass
class Sweep:
    """Runs jobs one after the other into a result file, and has them scored meanwhile.

    Attributes:
        result: what is in the file.
        out: the file.
        parts: held-out splits.
        cache: where decoded frames are kept.
        runs: where run folders are kept; None: nowhere.
        end: no job begins after this time.
        wait_s: how long scores are waited for beyond it.
        failed: keys of what went wrong.
    """

    result: dict[str, Any]
    out: Path
    parts: list[str]
    cache: Path | None
    runs: Path | None = None
    end: float = math.inf
    wait_s: float = 60.0
    failed: list[str] = field(default_factory=list)

    def run(self, data: Path, todo: list[Job], workers: int) -> list[str]:
        """Do what is not done; returns the keys of what is still missing."""
        dataset = read_dataset(data)
        self.result["recipe"] |= {job.base: list(job.settings) for job in todo}
        with Scorer(self.out.with_suffix(".waiting"), workers) as scorer:
            for job in todo:
                if job.key in self.result["runs"] or job.key in scorer.keys:
                    continue
                if time.monotonic() > self.end:
                    break
                self._train(job, dataset, scorer)
                self._keep(scorer, wait_s=0.0)
            self._keep(scorer, wait_s=self.end + self.wait_s - time.monotonic())
            self.failed += scorer.failed
        return [job.key for job in todo if job.key not in self.result["runs"]]

    def _train(self, job: Job, dataset: Dataset, scorer: Scorer) -> None:
        """Train a row and hand it over; one that fails is told and left out."""
        try:
            videos = [record for part in (TRAIN, *self.parts) for record in dataset.split(part)]
            frame_cache(job.recipe, self.cache).fill(videos, workers=os.cpu_count() or 1)
            run, sets = embedded(
                job.row,
                dataset,
                job.recipe,
                parts=self.parts,
                cache=self.cache,
                run_folder=None if self.runs is None else self.runs / job.key.replace("/", "~"),
            )
        except (UserError, RuntimeError) as error:
            print(f"{job.key} failed: {error}", file=sys.stderr, flush=True)
            self.failed.append(job.key)
            return
        facts = {"seed": job.seed, "recipe": list(job.settings), **circumstances()}
        scorer.add(job.key, {**run, **facts}, sets)
        print(f"{job.key} is trained: {run['minutes']:.2f} minutes", flush=True)

    def _keep(self, scorer: Scorer, *, wait_s: float) -> None:
        """Write what is scored."""
        for key, run in scorer.finished(wait_s=wait_s):
            self.result["runs"][key] = run
            write(self.out, self.result)
            scorer.forget(key)
            first = run[self.parts[0]]
            errors = (first["event_error_frames"], first["event_error_frames_dtw"])
            print(f"{key} is scored: event error {errors[0]} frames, {errors[1]} by DTW", flush=True)


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("data", type=Path, nargs="?", help="data set folder with labels and a split")
    made.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    made.add_argument("--bases", default="resnet50,vggm", help=f"of {', '.join(BASES)} and those of --base")
    made.add_argument(
        "--base", nargs="+", action="append", default=[], help="NAME=RECIPE section.key=value ..."
    )
    made.add_argument("--rows", default=",".join(ROWS), help="separated by commas; also tcc-stochastic")
    made.add_argument("--parts", default="val,val_slow", help="held-out splits (default: val,val_slow)")
    made.add_argument("--seeds", default="0", help="separated by commas (default: 0)")
    made.add_argument("--cache", type=Path, default=None, help="where decoded frames are kept")
    made.add_argument("--runs", type=Path, default=None, help="keep the run folders here")
    made.add_argument("--workers", type=int, default=0, help="processes that score meanwhile (default: none)")
    made.add_argument("--limit-s", type=float, default=math.inf, help="begin no row after so many seconds")
    made.add_argument("--wait-s", type=float, default=60.0, help="then wait so long for scores (default: 60)")
    made.add_argument("--join", type=Path, nargs="*", default=[], help="result files to add to --out")
    made.add_argument("--out", type=Path, required=True, help="result file; goes on where it is")
    made.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    return made


def main() -> int:
    """Train and measure what is not yet in the result file; 1 if a row failed."""
    begun, arguments = time.monotonic(), parser().parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # end the other processes
    result = opened(arguments.out, arguments.join)
    parts, end = arguments.parts.split(","), begun + arguments.limit_s
    sweep = Sweep(
        result, arguments.out, parts, arguments.cache, arguments.runs, end=end, wait_s=arguments.wait_s
    )
    missing: list[str] = []
    if arguments.data is not None:
        try:
            missing = sweep.run(arguments.data, jobs(arguments), arguments.workers)
        except UserError as error:
            sys.exit(f"error: {error}")
    write(arguments.out, result)
    if arguments.json:
        print(json.dumps(result["rows"]))
    if missing:
        print(f"{len(missing)} rows are missing; the same command goes on: {' '.join(missing)}", flush=True)
    return 1 if sweep.failed else 0


if __name__ == "__main__":
    sys.exit(main())
