"""Measure the speed on one GPU, part by part, each beside its baseline from the same run.

    part        measures
    ceilings    bfloat16 matrix products and copies, at most
    training    the paper's step (ResNet-50 to Conv4c, all layers trained, 4 videos of 20 frames with 2
                context frames, 224 px), rung by rung from the peers' way to ours; its lower bound
    loop        the whole training loop beside the bare step, and the peers' loop from files
    embedding   whole videos: frames per second, and memory against length
    frozen      a frozen base with its feature cache: small updates, and 2,000 on a data set (--data)
    losses      forward and backward, from 4 to 64 videos and 20 to 200 frames
    alignment   distances, soft matches and dynamic time warping of many pairs
    evaluation  a set as large as Penn Action
    scaling     time and memory against videos, frames, length

With --out, results are saved after every measurement. An existing file is updated: a part measured now
replaces the old one, except that the rungs of the training step are replaced one by one. A failed measurement
is printed on stderr and left out; the exit code is then 1. The rung `compiled` takes minutes to compile.
It is measured only if --rungs names it.

Example:
    python benchmarks/gpu_speed.py --data golf --out results/gpu_speed.json
    python benchmarks/gpu_speed.py --parts training,loop --rungs compiled --out results/gpu_speed.json
    python scripts/performance_page.py
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import speed_alignment
import speed_embedding
import speed_evaluation
import speed_frozen
import speed_loop
import speed_losses
import speed_scaling
import speed_training
from cycleback.files import write_text
from cycleback.provenance import provenance
from speed_clock import GPU_RUNGS, RUNGS, Found, Setting, attempted, ceilings, forget

PARTS: dict[str, Callable[[Setting], Iterator[Found]]] = {
    "ceilings": lambda setting: iter([ceilings(setting)]),
    "training": speed_training.measure,
    "loop": speed_loop.measure,
    "embedding": speed_embedding.measure,
    "frozen": speed_frozen.measure,
    "losses": speed_losses.measure,
    "alignment": speed_alignment.measure,
    "evaluation": speed_evaluation.measure,
    "scaling": speed_scaling.measure,
}


def joined(old: Found, new: Found) -> Found:
    """Both, of equal keys the new one; tables within are joined alike."""
    both = {**old, **new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            both[key] = joined(old[key], value)
    return both


def headline(parts: Found) -> Found:
    """Return the main figures of the parts that were measured."""
    training, loop, embedding = (parts.get(name, {}) for name in ("training", "loop", "embedding"))
    source = training if "ceiling_tflops" in training else parts.get("ceilings", {})
    found = {key: source[key] for key in ("ceiling_tflops", "copy_tb_per_s") if key in source}
    found |= {key: training[key] for key in ("step_tflop", "step_gbytes") if key in training}
    found |= {key: loop[key] for key in ("loop_ms", "loop_over_step") if key in loop}
    found |= {key: embedding[key] for key in ("embed_fps", "embed_ratio_fp32") if key in embedding}
    steps = {rung: row["ms"] for rung, row in training.get("rungs", {}).items()}
    if steps:
        best = min(steps, key=lambda rung: steps[rung])
        found |= {"best_rung": best, "train_step_ms": steps[best]}
        if "step_tflop" in found:
            found["share_of_ceiling"] = found["step_tflop"] / steps[best] * 1e3 / found["ceiling_tflops"]
        if "fp32" in steps:
            found["train_ratio_fp32"] = steps["fp32"] / steps[best]
    return found


def measure_part(name: str, setting: Setting, keep: Callable[[str, Found], None], *, old: Found) -> None:
    """Measure a part; whatever it has found is kept at once."""
    made = provenance() | ({"is_smoke": True} if setting.is_smoke else {})
    is_continued = name == "training" and old.get("device") == made["device"]
    found = joined(old if is_continued else {}, made)
    start = time.perf_counter()
    for new in PARTS[name](setting):
        found = joined(found, new) | {"took_seconds": round(time.perf_counter() - start, 1)}
        keep(name, found)


def arguments_given() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas (default: all)")
    parser.add_argument(
        "--rungs", default=",".join(RUNGS[:-1]), help="of the step (default: all but compiled)"
    )
    parser.add_argument(
        "--more-videos", default=None, help="other batch sizes for the best rung (default: 8,16,32)"
    )
    parser.add_argument("--data", type=Path, default=None, help="prepared data set folder, such as golf")
    parser.add_argument("--out", type=Path, default=None, help="result file; an existing one is updated")
    parser.add_argument("--json", action="store_true", help="print the results as one line of JSON, last")
    parser.add_argument(
        "--smoke", action="store_true", help="check that everything runs: tiny sizes on the CPU"
    )
    arguments = parser.parse_args()
    for option, known in (("parts", PARTS), ("rungs", RUNGS)):
        unknown = sorted(set(getattr(arguments, option).split(",")) - set(known))
        if unknown:
            parser.error(f"--{option} knows {', '.join(known)}; got {unknown[0]!r}")
    return arguments


def setting_of(arguments: argparse.Namespace) -> Setting:
    """Return the setting, on a GPU if there is one."""
    is_gpu = torch.cuda.is_available() and not arguments.smoke
    asked = arguments.rungs.split(",")
    more = arguments.more_videos
    return Setting(
        device=torch.device("cuda" if is_gpu else "cpu"),
        is_smoke=arguments.smoke,
        rungs=tuple(rung for rung in RUNGS if rung in asked and (is_gpu or rung not in GPU_RUNGS)),
        more_videos=None if more is None else tuple(int(count) for count in more.split(",") if count),
        data=arguments.data,
    )


def main() -> None:
    """Measure, keep, print."""
    arguments = arguments_given()
    setting, out = setting_of(arguments), arguments.out
    kept: dict[str, Any] = json.loads(out.read_text("utf-8")) if out and out.exists() else {}
    parts = {name: kept[name] for name in PARTS if name in kept}

    def keep(name: str, found: Found) -> None:
        parts[name] = found
        if out is not None:
            write_text(out, json.dumps(result(), indent=1) + "\n", overwrite=True)

    def result() -> Found:
        return {
            **provenance(),
            **headline(parts),
            **{name: parts[name] for name in PARTS if name in parts},
        }

    for name in arguments.parts.split(","):
        start = time.perf_counter()
        attempted(
            f"part {name}",
            lambda name=name: measure_part(name, setting, keep, old=parts.get(name, {})),  # type: ignore[misc]
            setting,
        )
        forget(setting.device)
        print(f"== {name}: {time.perf_counter() - start:.1f} s", flush=True)
    print(json.dumps(result()) if arguments.json else json.dumps(headline(parts), indent=1))
    if setting.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
