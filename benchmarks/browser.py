"""Measure the page that aligns two clips in the browser: its key-event error, and its speed beside Python's.

Pairs of golf swings of one camera view (GolfDB, real time, validation) are aligned by the page in headless
Chromium, and by Python: with the two streams that the page has, and with all three. Everything runs on one
core, in one run; speed is frames per second of decoding and embedding from nothing, and the ratio to Python.

    make browser
    python benchmarks/browser.py --out results/browser.json
"""

import argparse
import csv
import functools
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cycleback.alignment import align
from cycleback.files import write_text
from cycleback.prepare.golfdb import EVENTS
from cycleback.provenance import provenance
from cycleback.runs.folder import build_pretrained, embed_videos
from result_file import format_json

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CYCLEBACK_DATA", ROOT.parent / "shared" / "data"))
PAGE = ROOT / "build" / "browser"
CHROMIUM = "/usr/bin/chromium"
READY = "#result:not([hidden]), #message:not([hidden])"
OUTCOME = """() => ({
  indices: cycleback.result.indices,
  confidence: cycleback.result.confidence,
  weights: cycleback.result.weights,
  is_turned: cycleback.result.isTurned,
  frames: cycleback.videos.map(video => video.times.length),
  seconds: cycleback.videos.map(video => video.seconds.read + video.seconds.embed),
})"""


class Files(SimpleHTTPRequestHandler):
    """Serves the page without writing a log."""

    extensions_map: ClassVar = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def open_page(folder: Path) -> Iterator["Page"]:
    """Open the page in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with serve(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/index.html")
        yield page
        browser.close()


def align_in_page(page: "Page", a: Path, b: Path) -> dict[str, Any]:
    """Give two clips to the page, and return what it computes."""
    page.reload()
    for side, path in enumerate((a, b)):
        page.set_input_files(f'.slot[data-side="{side}"] input', str(path))
    page.wait_for_selector(READY, timeout=240_000)
    if page.is_visible("#message"):
        raise SystemExit(f"error: {page.inner_text('#message')}")
    outcome: dict[str, Any] = page.evaluate(OUTCOME)
    return outcome


def choose_pairs(rows: Sequence[dict[str, str]], count: int) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Return pairs of swings of one view, evenly spread over the validation part."""
    views = sorted({row["view"] for row in rows})
    pairs = []
    for number, view in enumerate(views):
        own = [row for row in rows if row["role"] == "val" and row["view"] == view]
        wanted = count * (number + 1) // len(views) - count * number // len(views)
        chosen = [own[round(k)] for k in np.linspace(0, len(own) - 1, 2 * wanted)]
        pairs += list(zip(chosen[::2], chosen[1::2], strict=True))
    return pairs


def find_errors(indices: Sequence[int], a: dict[str, str], b: dict[str, str]) -> list[int]:
    """Return by how many frames each key event of a, mapped to b, misses that of b."""
    last = len(indices) - 1
    return [abs(int(indices[min(int(a[event]), last)]) - int(b[event])) for event in EVENTS]


def summarize(errors: Sequence[int]) -> dict[str, float]:
    """Return the median error in frames, and the shares within 1 and 3 frames."""
    found = np.array(errors)
    return {
        "median_frames": float(np.median(found)),
        "pce_1": round(float((found <= 1).mean()), 3),
        "pce_3": round(float((found <= 3).mean()), 3),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # Chromium inherits it
    import torch

    torch.set_num_threads(1)
    with (DATA / "golf" / "labels.csv").open() as stream:
        pairs = choose_pairs(list(csv.DictReader(stream)), options.pairs)
    paths = [[DATA / "golf" / "videos" / f"{row['id']}.mp4" for row in pair] for pair in pairs]
    encoders = {
        "python, same streams": build_pretrained(("appearance", "motion")),
        "python": build_pretrained(),
    }
    errors: dict[str, list[int]] = {"page": [], **{name: [] for name in encoders}}
    rates: dict[str, list[float]] = {"page": [], "python, same streams": []}
    apart: list[float] = []
    with open_page(options.page) as page, tempfile.TemporaryDirectory() as scratch:
        align_in_page(page, *paths[0])  # both sides compile at first use
        embed_videos(encoders["python, same streams"], paths[0], cache=Path(scratch) / "first")
        for number, (pair, files) in enumerate(zip(pairs, paths, strict=True)):
            found = align_in_page(page, *files)
            errors["page"] += find_errors(found["indices"], *pair)
            rates["page"].append(sum(found["frames"]) / sum(found["seconds"]))
            for name, encoder in encoders.items():
                begun = time.perf_counter()
                embedded = embed_videos(encoder, files, cache=Path(scratch) / f"{number} {name}")
                if name in rates:
                    rates[name].append(sum(found["frames"]) / (time.perf_counter() - begun))
                a, b = (embedded[each] for each in embedded.names)
                indices = align(a, b).indices
                errors[name] += find_errors(indices.tolist(), *pair)
                if name in rates:
                    apart.append(float(np.abs(indices - np.array(found["indices"])).mean()))
    ratios = [page / python for page, python in zip(*rates.values(), strict=True)]
    result = {
        "pairs": len(pairs),
        "events": len(errors["page"]),
        "error": {name: summarize(values) for name, values in errors.items()},
        "frames_apart_mean": round(statistics.fmean(apart), 2),
        "frames_per_second": {name: round(statistics.median(values), 1) for name, values in rates.items()},
        "speed_ratio": round(statistics.median(ratios), 3),
        "speed_ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
        "provenance": provenance("cpu"),
    }
    print(json.dumps(result, indent=1))
    if options.out:
        write_text(options.out, format_json(result), overwrite=True)


if __name__ == "__main__":
    main()
