"""Which settings make TCC learn, one at a time: alone, on the hard synthetic set, with a pretrained base.

Each experiment changes the recipe `fast` with TCC alone, trains with every seed, and keeps the held-out
key-event error, the held-out cycle rate and the learning curve. Experiments in the file are not repeated.

Example:
    python benchmarks/what_matters.py --seeds 0,1 --out results/what_matters.json
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from ablation import add_options, hard_set
from cycleback.data import Dataset
from cycleback.errors import TrainingError
from cycleback.evaluation import evaluate
from cycleback.provenance import provenance
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos, load_encoder, train
from result_file import group_seeds, read_results, write_results
from rows import read_curve

ALONE = ("loss.weights={ tcc = 1.0 }", "loss.tcn.positive_window=5")  # the paper's window
PAPER = ("loss.tcc.scaling=none", "loss.tcc.temperature=1.0")
KINDS = ("regression", "classification", "mse")
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    **{f"temperature {t}": (f"loss.tcc.temperature={t}",) for t in ("0.01", "0.03", "0.3", "1.0", "3.0")},
    **{
        f"scaling none, temperature {t}": ("loss.tcc.scaling=none", f"loss.tcc.temperature={t}")
        for t in ("0.1", "1.0", "10.0")
    },
    "unit vectors": ("loss.tcc.normalize=true", "loss.tcc.scaling=none"),
    "cosine": ("loss.tcc.similarity=cosine", "loss.tcc.scaling=none"),
    **{f"learning rate {rate}": (f"optimizer.learning_rate={rate}",) for rate in ("1e-4", "1e-3", "1e-2")},
    **{f"batch {size}": (f"optimizer.batch_size={size}",) for size in (2, 8, 16)},
    **{f"frames {count}": (f"data.frames_per_video={count}",) for count in (10, 40)},
    **{
        f"variance weight {weight}": (f"loss.tcc.variance_weight={weight}",)
        for weight in ("0.0", "0.01", "0.1")
    },
    "no BatchNorm": ("encoder.conv.batch_norm=false",),
    "dropout 0": ("encoder.conv.dropout=0.0",),
    "dropout 0.3": ("encoder.conv.dropout=0.3",),
    "no warm-up": ("optimizer.warmup_updates=0",),
    "3000 updates": ("optimizer.num_updates=3000",),
    **{
        f"{kind}, temperature {t}": (f"loss.tcc.kind={kind}", f"loss.tcc.temperature={t}")
        for kind in KINDS[1:]
        for t in ("0.01", "0.1", "1.0")
    },
    **{f"{kind}, as printed": (f"loss.tcc.kind={kind}", "loss.tcc.index=position", *PAPER) for kind in KINDS},
    **{f"{kind} after TCN": (f"loss.tcc.kind={kind}", "warm") for kind in KINDS},
    "TCN alone": ("loss.weights={ tcn = 1.0 }",),
    "TCN alone, 3000 updates": ("loss.weights={ tcn = 1.0 }", "optimizer.num_updates=3000"),
    "temperature 1.0, 3000 updates": ("loss.tcc.temperature=1.0", "optimizer.num_updates=3000"),
    "with TCN": ("loss.weights={ tcc = 1.0, tcn = 1.0 }",),
    **{
        f"with TCN, temperature {t}": ("loss.weights={ tcc = 1.0, tcn = 1.0 }", f"loss.tcc.temperature={t}")
        for t in ("0.3", "1.0")
    },
    **{
        f"with TCN, window {w}": ("loss.weights={ tcc = 1.0, tcn = 1.0 }", f"loss.tcn.positive_window={w}")
        for w in (1, 2, 3, 10)
    },
    "with TCN, 3000 updates": ("loss.weights={ tcc = 1.0, tcn = 1.0 }", "optimizer.num_updates=3000"),
}
SEGMENTS = ("data.sampler=segments",)  # one frame of each of equal pieces of a video
EXPERIMENTS |= {
    "segments": SEGMENTS,
    "TCN alone, segments": ("loss.weights={ tcn = 1.0 }", *SEGMENTS),
    "with TCN, window 3, segments": (*EXPERIMENTS["with TCN, window 3"], *SEGMENTS),
}
WARM_UPDATES = 300
SCORED = ("event_error_frames", "event_error_frames_dtw", "tau", "cycle_rate")


def run(dataset: Dataset, name: str, seed: int, folder: Path, cache: Path | None) -> dict[str, Any]:
    """Train one experiment and score it on the held-out videos."""
    settings = [setting for setting in EXPERIMENTS[name] if setting != "warm"]
    if "warm" in EXPERIMENTS[name]:
        first = [
            "loss.weights={ tcn = 1.0 }",
            ALONE[1],
            f"optimizer.num_updates={WARM_UPDATES}",
            f"run.seed={seed}",
        ]
        warm = load_recipe("fast", first)
        train(dataset, folder / "warm", recipe=warm, cache=cache)
        settings += [f"run.start_from={folder / 'warm'}"]
    recipe = load_recipe("fast", shared=[*ALONE, *settings, f"run.seed={seed}", "run.restart=false"])
    try:
        state = train(dataset, folder / "run", recipe=recipe, cache=cache)
    except TrainingError as error:
        return {"failed": str(error)}
    if state.is_interrupted:
        raise SystemExit(f"stopped at update {state.step} of {name!r}: nothing of it is kept")
    held_out = embed_videos(load_encoder(folder / "run"), dataset.split("val"), cache=cache)
    report = evaluate(None, held_out).to_json()
    scores = {key: report[key] for key in SCORED}
    return {**scores, "curve": read_curve(folder / "run"), **provenance()}


def summarize(runs: dict[str, Any]) -> dict[str, Any]:
    """Return the means over seeds of each experiment that did not fail."""
    rows: dict[str, Any] = {}
    groups = group_seeds(runs)
    for name in EXPERIMENTS:
        done = groups.get(name, [])
        good = [found for found in done if "failed" not in found]
        rows[name] = {key: round(fmean(found[key] for found in good), 4) for key in SCORED if good}
        rows[name] |= {"seeds": len(done), "failed": len(done) - len(good)}
    return {name: row for name, row in rows.items() if row["seeds"]}


def main() -> None:
    """Train and score the experiments that are not in the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=";".join(EXPERIMENTS), help="experiments, separated by ';'")
    add_options(parser, seeds="0,1", out="results/what_matters.json")
    arguments = parser.parse_args()
    dataset = hard_set(arguments.data)
    result = read_results(arguments.out, arguments.join)
    runs = result["runs"]
    for seed in map(int, arguments.seeds.split(",")) if arguments.seeds else ():
        for name in arguments.only.split(";"):
            if f"{name}/{seed}" not in runs:
                with tempfile.TemporaryDirectory() as folder:
                    runs[f"{name}/{seed}"] = run(dataset, name, seed, Path(folder), arguments.cache)
                result["rows"] = summarize(runs)
                write_results(arguments.out, result)
    result["rows"] = summarize(runs)
    write_results(arguments.out, result)
    if arguments.json:
        print(json.dumps(result["rows"]))
        return
    for name, row in result["rows"].items():
        print(f"{name:34}", *(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
