"""Build the Markdown tables of docs/results/performance.md from the parts of results/gpu_speed.json."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NOTHING = "*Not measured yet.*"
PICTURE = "../images/performance-scaling.svg"  # as the page names it

# variant of the step -> what changes, and its expected effect
CHANGES = {
    "fp32": ("baseline: float32, a loop over pairs, a padded Conv3d", ""),
    "tf32": ("matrix products in TF32, all pairs at once", "products run on the tensor cores"),
    "bf16": ("bfloat16 by autocast, fused Adam", "twice the product rate, half the bytes"),
    "channels_last": ("weights of the base channels-last", "no copies between layouts"),
    "stacked": ("Conv3d as one 2-D convolution", "a third fewer products in the embedder, better kernels"),
    "recorded": ("the step replayed as one CUDA graph", "the GPU never waits for the CPU"),
    "compiled": ("torch.compile, then a CUDA graph", "norms and activations fused: fewer bytes"),
}
HEADLINE = {  # key of the result -> (title, digits)
    "train_step_ms": ("training step, ms", 1),
    "train_ratio_fp32": ("training step, times faster than float32", 1),
    "loop_over_step": ("whole loop / bare step", 2),
    "embed_fps": ("embedding, frames per second", 0),
    "embed_ratio_fp32": ("embedding, times faster than float32", 1),
}
EMBEDDING = {  # key of the rate -> title
    "peers_fp32": "baseline: float32, context frames encoded again",
    "once_a_frame_tf32": "base once per frame, TF32",
    "once_a_frame_bf16": "base once per frame, bfloat16",
    "base": "base alone, fused",
    "embedder": "embedder alone, fused",
    "together": "base and embedder, fused",
}
WAYS = {"replayed": "CUDA graph"}  # how an update runs -> title
LINKS = {"NVLink 4": 450.0, "PCIe 5 x16": 63.0, "100 Gb/s network": 12.5}  # nominal GB/s, one direction
PROCESSES = (2, 4, 8, 16)
PAPER_BATCH = (4, 20)  # videos, frames
Found = Mapping[str, Any]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table whose first `words` columns are text and all others numbers."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * words + "---:|" * (len(header) - words)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def number(value: float | None, digits: int = 1) -> str:
    """Print a number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def made(part: Found) -> str:
    """Say on which machine and at which commit a part was measured."""
    smoke = " (smoke run at tiny sizes)" if part.get("is_smoke") else ""
    return f"\n\n{part['device']}, torch {part['torch']}, commit {part['commit']}{smoke}."


def headline(results: Found) -> str:
    """Return the main figures."""
    rows = [
        (title, number(results[key], digits)) for key, (title, digits) in HEADLINE.items() if key in results
    ]
    return table(("", "measured"), rows) if rows else NOTHING


def floor(training: Found) -> str:
    """Return the lower bound on the time of a step."""
    times = training["floor_ms"]
    rows = [
        (
            "products",
            f"{number(training['step_tflop'], 2)} TFLOP",
            f"{number(training['ceiling_tflops'], 0)} TFLOP/s",
        ),
        ("bytes", f"{number(training['step_gbytes'], 1)} GB", f"{number(training['copy_tb_per_s'], 2)} TB/s"),
        ("the larger of both, layer by layer", "", ""),
    ]
    return table(
        ("lower bound of the step", "amount", "device peak", "ms"),
        [(*row, number(ms)) for row, ms in zip(rows, times.values(), strict=True)],
    ) + made(training)


def rungs(training: Found) -> str:
    """Return the effect of each change."""
    found, before = training["rungs"], None
    rows = []
    for rung, (change, expected) in CHANGES.items():
        if rung not in found:
            continue
        ms = found[rung]["ms"]
        share = training.get("step_tflop", 0) / ms * 1e3 / training["ceiling_tflops"]
        faster = "" if before is None else f"{before / ms:.2f} ×"
        overall = f"{found['fp32']['ms'] / ms:.1f} ×" if "fp32" in found else "–"
        memory = number(found[rung].get("peak_gb"))
        rows.append(
            (f"`{rung}`: {change}", expected, number(ms), faster, overall, f"{100 * share:.0f} %", memory)
        )
        before = ms
    header = ("change", "expected effect", "ms", "speedup", "in total", "share of peak", "peak GB")
    commits = ", ".join(dict.fromkeys(row["commit"] for row in found.values()))
    return table(header, rows, words=2) + made({**training, "commit": commits})


def variants(training: Found) -> str:
    """Return the step with other batch sizes and with fewer trained layers."""
    more = {f"{count} videos": row for count, row in training.get("by_videos", {}).items()}
    more |= {
        f"trained layers of the base: {layers}": row for layers, row in training.get("by_layers", {}).items()
    }
    rows = [(name, row["rung"], number(row["ms"]), number(row.get("peak_gb"))) for name, row in more.items()]
    return table(("step", "variant", "ms", "peak GB"), rows, words=2) + made(training) if rows else NOTHING


def loop(part: Found) -> str:
    """Return the time per update of the whole loop, beside the baseline loop."""
    ours = part["loop_ms"]
    rows = [
        (f"bare step ({part['rung']})", number(part["step_ms"]), ""),
        ("training loop, frames on the GPU", number(ours), "1.0 ×"),
    ]
    if "peers_loop_ms" in part:
        rows.append(
            (
                "baseline loop, decoding in it",
                number(part["peers_loop_ms"]),
                _times(part["peers_loop_ms"], ours),
            )
        )
    if "peers_loader_ms" in part:
        name = f"baseline loop, {part['peers_workers']} worker processes that decode and augment"
        rows.append((name, number(part["peers_loader_ms"]), _times(part["peers_loader_ms"], ours)))
    return table(("one update", "ms", "relative time"), rows) + made(part)


def _times(value: float, ours: float) -> str:
    return f"{value / ours:.1f} ×"


def embedding(part: Found) -> str:
    """Return rates, and memory against the length of a video."""
    rates = part["frames_per_second"]
    slowest = rates["peers_fp32"]
    rows = [(EMBEDDING[name], number(rate, 0), _times(rate, slowest)) for name, rate in rates.items()]
    found = table(("frames on the GPU", "frames/s", "speedup"), rows)
    if "from_host" in part:
        lengths = [
            (number(row["frames"], 0), number(row["frames"] / row["seconds"], 0), number(row["peak_gb"], 2))
            for row in part["from_host"]
        ]
        found += "\n\n" + table(("frames of a video in host memory", "frames/s", "peak GB"), lengths)
    if "from_files" in part:
        found += "\n\n" + _from_files(part["from_files"])
    return found + made(part)


def _from_files(row: Found) -> str:
    """Return the seconds of decoding, of embedding, and of both at once."""
    stages = {
        "decode": "decoding alone",
        "embed": "embedding decoded frames",
        "both": "from files to embeddings",
    }
    measured = {stage: title for stage, title in stages.items() if f"{stage}_seconds" in row}
    rows = [(title, number(row[f"{stage}_seconds"], 2)) for stage, title in measured.items()]
    count, size = number(row["frames"], 0), row["frame_size"]
    return table((f"{row['videos']} files, {count} frames, {size} px", "seconds"), rows)


def frozen(part: Found) -> str:
    """Return the time of small updates, and of a run on a data set."""
    small = part["small_updates_ms"]
    ways = list(next(iter(small.values())))
    rows = [(name, *(number(row[way], 2) for way in ways)) for name, row in small.items()]
    found = table(("update of the recipe `fast`, ms", *(WAYS.get(way, way) for way in ways)), rows)
    if "run" in part:
        run = part["run"]
        stages = [
            (f"decoding {number(run['frames'], 0)} frames of `{run['data']}`", number(run["decode_seconds"])),
            ("feature maps, once", number(run["feature_seconds"])),
            (f"{number(run['updates'], 0)} updates", number(run["update_seconds"])),
        ]
        found += "\n\n" + table(("the whole run", "seconds"), stages)
    return found + made(part)


def losses(part: Found) -> str:
    """Return milliseconds by loss and size, and those of a loop over pairs."""
    rows = part["rows"]
    sizes = sorted({row["frames"] for row in rows})
    cells = {(row["loss"], row["videos"], row["frames"]): row for row in rows}
    lines = []
    for loss, videos in dict.fromkeys((row["loss"], row["videos"]) for row in rows):
        line = [cells.get((loss, videos, frames)) for frames in sizes]
        peak = max((row["peak_gb"] or 0 for row in line if row), default=0)
        times = [number(row["ms"], 2) if row else "–" for row in line]
        lines.append((f"{loss}, {videos} videos", *times, number(peak or None, 2)))
    found = table(("forward and backward, ms", *(f"{size} frames" for size in sizes), "peak GB"), lines)
    if part.get("methods"):
        found += "\n\n" + methods(part["methods"])
    if part.get("by_pairs"):
        plain = [
            (
                f"{row['videos']} videos of {row['frames']} frames",
                number(row["ms"], 2),
                f"{row['ratio']:.1f} ×",
            )
            for row in part["by_pairs"]
        ]
        found += "\n\n" + table(("TCC as a loop over pairs", "ms", "relative to all at once"), plain)
    return found + made(part)


def methods(rows: Sequence[Found]) -> str:
    """Return times of the losses of other papers beside TCC at the paper's batch, and against length."""
    of_batch = [row for row in rows if (row["videos"], row["frames"]) == PAPER_BATCH]
    lines = [
        (
            row["loss"],
            number(row["ms"], 2),
            f"{row['ratio']:.2f} ×",
            number(row.get("replayed_ms"), 2),
            f"{row['replayed_ratio']:.2f} ×" if "replayed_ratio" in row else "–",
            number(1000 * row["peak_gb"] if row["peak_gb"] else None),
        )
        for row in of_batch
    ]
    title = f"{PAPER_BATCH[0]} videos of {PAPER_BATCH[1]} frames"
    found = [table((title, "ms", "relative to TCC", "in a graph, ms", "relative to TCC", "MB"), lines)]
    cells = {(row["loss"], row["frames"]): row for row in rows if row["videos"] == PAPER_BATCH[0]}
    lengths = sorted({frames for _, frames in cells})
    for key, title, factor, digits in (
        ("replayed_ms", "in a graph, ms", 1, 2),
        ("peak_gb", "memory, MB", 1000, 1),
    ):
        lines = []
        for loss in dict.fromkeys(loss for loss, _ in cells):
            values = [cells.get((loss, frames), {}).get(key) for frames in lengths]
            lines.append(
                (loss, *(number(None if value is None else factor * value, digits) for value in values))
            )
        found.append(table((f"4 videos, {title}", *(f"{number(n, 0)} frames" for n in lengths)), lines))
    return "\n\n".join(found)


def alignment(part: Found) -> str:
    """Return the time of aligning many pairs."""
    names = {
        "distances_ms": "squared distances, GPU",
        "soft_matches_ms": "soft nearest neighbours, GPU",
        "dtw_costs_ms": "dynamic time warping, costs only, GPU",
    }
    rows = [(names[key], number(value, 2)) for key, value in part["on_device"].items()]
    if "on_cpu" in part:
        cpu = part["on_cpu"]
        rows.append(
            (f"distances and warping paths, {cpu['threads']} CPU threads", number(cpu["dtw_paths_ms"], 2))
        )
        rows.append(("the same, one pair at a time", number(cpu["one_by_one_ms_a_pair"] * part["pairs"], 2)))
    title = f"{number(part['pairs'], 0)} pairs of {part['frames']} frames, D = {part['embedding_size']}"
    return table((title, "ms"), rows) + made(part)


def evaluation(part: Found) -> str:
    """Return the time of evaluating a set as large as Penn Action."""
    rows = [("the whole report, CPU", number(part["report_seconds"]))]
    if "nearest_cpu_seconds" in part:
        rows.append(("nearest frames of all pairs, CPU", number(part["nearest_cpu_seconds"], 2)))
        rows.append(
            ("nearest frames of all pairs, GPU, single precision", number(part["nearest_device_seconds"], 2))
        )
    title = f"{number(part['videos'], 0)} videos, {number(part['pairs'], 0)} pairs, {part['cores']} cores"
    return table((title, "seconds"), rows) + made(part)


def scaling(part: Found) -> str:
    """Return the link to the picture."""
    return f"![time and memory against videos, frames, length]({PICTURE})" + made(part)


def several(results: Found) -> str:
    """Return the computed efficiency of several GPUs."""
    training, step = results["training"], results["train_step_ms"]
    sent = 4 * training["trained_parameters"] / 1e9
    loss = {
        row["videos"]: row["ms"]
        for row in results.get("losses", {}).get("rows", [])
        if row["loss"] == "tcc" and row["frames"] == 20
    }
    rows = []
    for name, rate in LINKS.items():
        cells = []
        for count in PROCESSES:
            upto = [ms for videos, ms in loss.items() if videos <= 4 * count]
            pairs = max(upto) - loss[4] if upto else 0.0  # the maximum, because a faster larger loss is noise
            total = step + 1000 * 2 * (count - 1) / count * sent / rate + pairs
            cells.append(f"{100 * step / total:.0f} %")
        rows.append((f"{name}, {rate:g} GB/s", *cells))
    head = f"step {step:.1f} ms, gradients {1000 * sent:.0f} MB"
    return table((head, *(f"{count} GPUs" for count in PROCESSES)), rows)
