"""Write the tables of docs/results/performance.md and draw its curves, from results/gpu_speed.json.

Usage: python scripts/performance_page.py
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "scripts"))

import performance_tables  # noqa: E402
from performance_tables import NOTHING, PICTURE, Found  # noqa: E402
from training_page import fill_places  # noqa: E402

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure  # noqa: E402
from cycleback.files import write_bytes, write_text  # noqa: E402

PAGE = ROOT / "docs" / "results" / "performance.md"
RESULTS = ROOT / "results" / "gpu_speed.json"
# place in the page -> part of the results, a key that it must have, and the function that builds the table
PARTS: dict[str, tuple[str, str, Callable[[Found], str]]] = {
    "floor": ("training", "floor_ms", performance_tables.floor),
    "rungs": ("training", "rungs", performance_tables.rungs),
    "variants": ("training", "by_videos", performance_tables.variants),
    "loop": ("loop", "loop_ms", performance_tables.loop),
    "embedding": ("embedding", "frames_per_second", performance_tables.embedding),
    "frozen": ("frozen", "small_updates_ms", performance_tables.frozen),
    "losses": ("losses", "rows", performance_tables.losses),
    "alignment": ("alignment", "on_device", performance_tables.alignment),
    "evaluation": ("evaluation", "report_seconds", performance_tables.evaluation),
    "scaling": ("scaling", "by_videos", performance_tables.scaling),
}


def read() -> dict[str, Any]:
    """Read the committed results; {} if there are none."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def tables(results: Found | None = None) -> dict[str, str]:
    """Return place in the page -> its table."""
    results = read() if results is None else results
    found = {
        name: fill(results[part]) if key in results.get(part, {}) else NOTHING
        for name, (part, key, fill) in PARTS.items()
    }
    has_step = "train_step_ms" in results and "trained_parameters" in results["training"]
    found["several"] = performance_tables.several(results) if has_step else NOTHING
    return {"headline": performance_tables.headline(results), **found}


def draw_scaling(part: Found) -> bytes:
    """Draw time and memory against videos, frames, length and the size of a set."""
    panels = (
        ("by_videos", "videos", "ms", "training step, 20 frames per video"),
        ("by_frames", "frames", "ms", "training step, 4 videos"),
        ("by_length", "frames", "seconds", "embedding of one video, small base"),
        ("by_set", "videos", "seconds", "evaluation, on the CPU"),
    )
    with new_figure(4, size=(11, 7), columns=2) as (figure, axes):
        for axis, (key, across, up, title) in zip(axes, panels, strict=True):
            rows = part.get(key, [])
            axis.plot(
                [r[across] for r in rows], [r[up] for r in rows], "o-", color=PHASE_COLOURS[0], label=up
            )
            axis.set(title=title, xlabel=across, ylabel=up, ylim=(0, None), xlim=(0, None))
            axis.grid(axis="y")
            peaks = [(r[across], r["peak_gb"]) for r in rows if r.get("peak_gb") is not None]
            if peaks:
                memory = axis.twinx()
                memory.plot(*zip(*peaks, strict=True), "s--", color=PHASE_COLOURS[1])
                memory.set(ylabel="peak GB (dashed)", ylim=(0, None))
        return image_bytes(figure, "svg")


def main() -> None:
    """Draw the curves and write the page."""
    results = read()
    if "scaling" in results:
        write_bytes(PAGE.parent / PICTURE, draw_scaling(results["scaling"]), overwrite=True)
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables(results)), overwrite=True)


if __name__ == "__main__":
    main()
