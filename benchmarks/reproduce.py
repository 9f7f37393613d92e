"""Train and score the rows of a results table on a labelled data set, and write them as JSON.

A row is a base network, a method and a seed: `resnet50/tcc+tcn/0`. Rows that are already in the result file
are not trained again, so an interrupted call can be repeated; --limit-s stops it after a while. Several calls
may share the rows, each with its own result file; --join combines the files.

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

from cycleback.comparison.methods import FROZEN, parse_method
from cycleback.data import Dataset, read_dataset
from cycleback.errors import UserError, did_you_mean
from cycleback.provenance import provenance
from cycleback.recipe import Recipe
from result_file import read_results, summarize, write_results
from rows import ROWS, SEEDLESS, embed_row, frame_cache, is_pretrained, row_recipe
from scoring import TRAIN, Scorer

DEFAULT_ROWS = tuple(row for row in ROWS if row not in ("tcc-stochastic", "tcc+order"))
BASES = {
    "resnet50": ("fast-gpu",),
    "resnet50-long": ("best-gpu",),
    "vggm": ("fast-gpu-scratch",),
    "lite0": ("golf-lite",),
}


@dataclass(frozen=True)
class Job:
    """One run: a row of a base, with a seed and the settings it trains with (recipe, overrides)."""

    base: str
    row: str
    seed: int
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its key in the result file."""
        return f"{self.base}/{self.row}/{self.seed}"

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        name, *overrides = self.settings
        return row_recipe(self.row, name, overrides, self.seed)


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """Return all runs, seed by seed; rows without a seed come once, frozen only with pretrained weights."""
    named = {name: (recipe, *overrides) for name, recipe, *overrides in map(_base, arguments.base)}
    known = BASES | named
    rows, bases = arguments.rows.split(","), arguments.bases.split(",")
    if unknown := sorted(set(bases) - set(known)):
        raise UserError(f"no base {unknown[0]!r}. {did_you_mean(unknown[0], known)}")
    for row in rows:
        parse_method(row)  # raises if there is no such row
    found = [
        Job(base, row, seed, (*known[base], *arguments.overrides))
        for seed in map(int, arguments.seeds.split(","))
        for base in bases
        for row in rows
    ]
    once = [job for job in found if job.seed == 0 or job.row not in SEEDLESS]
    return [job for job in once if job.row != FROZEN or is_pretrained(job.recipe)]


def _base(words: list[str]) -> list[str]:
    """Return name, recipe and overrides of --base."""
    name, equals, recipe = words[0].partition("=")
    if not (name and equals and recipe):
        raise UserError(f"--base {words[0]}: expected NAME=RECIPE, such as resnet50=fast-gpu")
    return [name, recipe, *words[1:]]


@dataclass
class Sweep:
    """Trains jobs one after the other and writes their scores to a result file.

    Attributes:
        result: content of the file.
        out: the file.
        parts: held-out splits.
        cache: cache of decoded frames.
        runs: folder that keeps the run folders; None deletes them.
        end: no job starts after this time.
        wait_s: how long to wait for scores after that.
        failed: keys of failed jobs.
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
        """Run the jobs that are not in the file; return the keys that are still missing."""
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
        """Train a row and pass it to the scorer; a failure is printed and the row left out."""
        try:
            videos = [record for part in (TRAIN, *self.parts) for record in dataset.split(part)]
            frame_cache(job.recipe, self.cache).fill(videos, workers=os.cpu_count() or 1)
            run, sets = embed_row(
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
        facts = {"seed": job.seed, "recipe": list(job.settings), **provenance()}
        scorer.add(job.key, {**run, **facts}, sets)
        print(f"{job.key} is trained: {run['minutes']:.2f} minutes", flush=True)

    def write(self) -> None:
        """Write the file with its summary."""
        self.result["rows"] = summarize(self.result["runs"])
        write_results(self.out, self.result)

    def _keep(self, scorer: Scorer, *, wait_s: float) -> None:
        """Write the scores that are done."""
        for key, run in scorer.finished(wait_s=wait_s):
            self.result["runs"][key] = run
            self.write()
            scorer.forget(key)
            first = run[self.parts[0]]
            errors = (first["event_error_frames"], first["event_error_frames_dtw"])
            print(f"{key} is scored: event error {errors[0]} frames, {errors[1]} by DTW", flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("data", type=Path, nargs="?", help="data set folder with labels and a split")
    made.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    made.add_argument("--bases", default="resnet50,vggm", help=f"of {', '.join(BASES)} and those of --base")
    made.add_argument(
        "--base", nargs="+", action="append", default=[], help="NAME=RECIPE section.key=value ..."
    )
    made.add_argument("--rows", default=",".join(DEFAULT_ROWS), help="any rows of `cycleback compare`")
    made.add_argument("--parts", default="val,val_slow", help="held-out splits (default: val,val_slow)")
    made.add_argument("--seeds", default="0", help="separated by commas (default: 0)")
    made.add_argument("--cache", type=Path, default=None, help="where decoded frames are kept")
    made.add_argument("--runs", type=Path, default=None, help="keep the run folders here")
    made.add_argument("--workers", type=int, default=0, help="processes that score while the next row trains")
    made.add_argument("--limit-s", type=float, default=math.inf, help="start no row after so many seconds")
    made.add_argument("--wait-s", type=float, default=60.0, help="then wait so long for scores (default: 60)")
    made.add_argument("--join", type=Path, nargs="*", default=[], help="result files to add to --out")
    made.add_argument("--out", type=Path, required=True, help="result file; its rows are not trained again")
    made.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    return made


def main() -> int:
    """Train and score the rows that are not in the result file; return 1 if a row failed."""
    begun, arguments = time.monotonic(), parser().parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # end the other processes
    result = read_results(arguments.out, arguments.join)
    result.setdefault("recipe", {})
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
    sweep.write()
    if arguments.json:
        print(json.dumps(result["rows"]))
    if missing:
        print(
            f"{len(missing)} rows are missing; rerun the same command to add them: {' '.join(missing)}",
            flush=True,
        )
    return 1 if sweep.failed else 0


if __name__ == "__main__":
    sys.exit(main())
