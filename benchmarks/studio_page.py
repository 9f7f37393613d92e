"""Measure the page of the studio in a browser: exact frames, drift while playing, first paint, memory.

The pixels of all clips carry their frame numbers, so the browser's pictures tell what was really drawn.

    exact     random seeks per kind of file, with WebCodecs and with a <video> element alone
    drift     nine videos of 320x240, warped, played for a minute: shown frames against warp[clock]
    paint     a folder of 500 videos: seconds until the first paint, the list and the first pictures
    memory    thousands of seeks: JavaScript heap and memory of the browser at start, middle and end

    python benchmarks/studio_page.py                       # all parts; writes results/studio_page.json
    python benchmarks/studio_page.py --part drift          # one part; the others keep their figures

Needs playwright and Chromium. Shares and counts are what to read: other work on the machine slows the page.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer
from result_file import write_results

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from coded_clips import READ_NUMBER_JS, steady_times, uneven_times, write_clip  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
SIZE = (320, 240)
FRAMES = 300
NO_WEBCODECS = "delete window.VideoDecoder; delete window.AudioDecoder"
SHOWN_FRAMES = 'document.querySelectorAll(".tile .picture > canvas[data-frame]").length'
Found = dict[str, Any]


@contextmanager
def open_browser() -> "Iterator[Browser]":
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@contextmanager
def serve(folder: Path) -> Iterator[StudioServer]:
    """A studio on a folder."""
    server = StudioServer(Studio(Project.open(folder)), port=0).start()
    try:
        yield server
    finally:
        server.close()


def wait_until(page: "Page", expression: str, *, timeout_s: float = 120) -> None:
    """Wait until an expression is true in the page, whose policy refuses `eval`."""
    for _ in range(round(timeout_s / 0.05)):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(f"still not true after {timeout_s:g} s: {expression}")


def measure_exact(browser: "Browser", folder: Path, *, seeks: int) -> Found:
    """Count the seeks after which the picture shows the frame asked for, per kind of file."""
    write_clip(folder / "b_frames.mp4", steady_times(FRAMES), gop=60, b_frames=3, size=SIZE)
    write_clip(folder / "variable_rate.mp4", uneven_times(FRAMES), gop=60, b_frames=2, size=SIZE)
    write_clip(folder / "all_intra.mp4", steady_times(FRAMES), gop=1, size=SIZE)
    write_clip(folder / "proxy_of_mpeg4.mp4", steady_times(FRAMES), gop=60, size=SIZE, codec="mpeg4")
    found: Found = {"seeks_per_kind": seeks}
    with serve(folder) as server:
        for mode, script in (("webcodecs", "0"), ("video_element", NO_WEBCODECS)):
            page = browser.new_page()
            page.add_init_script(script)
            page.goto(server.address)
            wait_until(page, "globalThis.studio?.project.videos.length === 4")
            found[mode] = page.evaluate(SEEK_JS, seeks)
            page.close()
    return found


SEEK_JS = f"""async (seeks) => {{
  const {{FrameSource}} = await import("/frames.js");
  const read = {READ_NUMBER_JS};
  const counts = {{}};
  for (const {{id, name}} of studio.project.videos) {{
    const source = new FrameSource(studio, id);
    await source.opening;
    const canvas = document.createElement("canvas");
    counts[name] = 0;
    for (let seek = 0; seek < seeks; seek += 1) {{
      const frame = Math.floor(Math.random() * source.frames);
      if (await source.draw(canvas, frame) && read(canvas) === frame) counts[name] += 1;
    }}
    source.close();
  }}
  return counts;
}}"""


def walk(pace: float) -> NDArray[np.float64]:
    """Embeddings (FRAMES, 6) of one action; `pace` is the exponent of time."""
    progress = 2 * np.linspace(0, 1, FRAMES) ** pace
    return np.column_stack([f(progress * k) for k in (1, 3, 5) for f in (np.sin, np.cos)])


def write_warped(folder: Path, count: int) -> None:
    """Write videos of 320x240 that show one action at different paces, with their embeddings."""
    arrays = {}
    for number in range(count):
        name = f"take{number}"
        times = uneven_times(FRAMES) if number == 4 else steady_times(FRAMES)
        write_clip(folder / f"{name}.mp4", times, gop=60, b_frames=number % 4, size=SIZE)
        arrays[name] = walk(0.6 + 0.1 * number)
    Studio(Project.open(folder)).matches.store.store(EmbeddingSet.from_arrays(arrays, fps=30))


def open_all(page: "Page", address: str, count: int) -> None:
    """Show the first `count` videos of a project and wait for their pictures."""
    page.goto(address)
    wait_until(page, f"globalThis.studio?.project.videos.length >= {count}")
    page.evaluate(f"studio.choose(studio.project.videos.slice(0, {count}).map((video) => video.id))")
    wait_until(page, f"{SHOWN_FRAMES} === {count} && studio.alignment.size === {count - 1}")
    page.wait_for_timeout(1500)


def measure_drift(browser: "Browser", folder: Path, *, seconds: float) -> Found:
    """Play nine warped videos and compare what is shown with warp[clock] at every frame of the screen."""
    write_warped(folder, 9)
    with serve(folder) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        open_all(page, server.address, 9)
        found: Found = page.evaluate(PLAY_JS, seconds)
        page.close()
    found["share_on_time"] = round(found["looks_with_all_on_time"] / found["looks"], 4)
    found["share_of_reference_frames_shown"] = round(
        found["reference_frames_shown"] / found["reference_frames_due"], 4
    )
    return {"videos": 9, "size": list(SIZE), "seconds": seconds, **found}


PLAY_JS = f"""async (seconds) => {{
  const read = {READ_NUMBER_JS};
  const tiles = [...document.querySelectorAll(".tile")]
    .map((tile) => [tile.dataset.id, tile.querySelector("canvas")]);
  const found = {{looks: 0, looks_with_all_on_time: 0, largest_difference_frames: 0, pictures_read: 0,
    pictures_wrong: 0, reference_frames_due: 0, reference_frames_shown: 0}};
  let before = studio.clock.frame;
  studio.clock.play();
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {{
    await new Promise(requestAnimationFrame);
    const largest = Math.max(...tiles.map(([id, canvas]) =>
      Math.abs(Number(canvas.dataset.frame) - studio.frameOf(id))));
    found.looks += 1;
    found.looks_with_all_on_time += largest === 0;
    found.largest_difference_frames = Math.max(found.largest_difference_frames, largest);
    const {{frame, times}} = studio.clock;
    const passed = frame >= before ? frame - before : frame + times.length - before;
    found.reference_frames_due += passed;
    found.reference_frames_shown += passed > 0;
    before = frame;
    if (found.looks % 30 === 0) {{
      for (const [, canvas] of tiles) {{
        found.pictures_read += 1;
        found.pictures_wrong += read(canvas) !== Number(canvas.dataset.frame);
      }}
    }}
  }}
  studio.clock.pause();
  return found;
}}"""


def measure_paint(browser: "Browser", folder: Path, *, videos: int, loads: int) -> Found:
    """Open a folder of many videos: seconds until first paint, list and first pictures."""
    clip = write_clip(folder / "take000.mp4", steady_times(90), b_frames=2).read_bytes()
    for number in range(1, videos):
        (folder / f"take{number:03}.mp4").write_bytes(clip)
    rows = []
    with serve(folder) as server:
        for _ in range(loads):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            page = context.new_page()
            page.add_init_script(WATCH_JS)
            page.goto(server.address)
            wait_until(page, f"{SHOWN_FRAMES} === 4 && globalThis.listed")
            rows.append(page.evaluate(PAINT_JS))
            context.close()
    names = ("first_paint_s", "list_s", "first_pictures_s")
    medians = {name: round(median(row[name] for row in rows), 3) for name in names}
    return {"videos": videos, "loads": loads, **medians, "rows_in_page": rows[-1]["rows"]}


WATCH_JS = """
const watch = () => {
  const now = performance.now();
  if (document.querySelector("#sidebar .rows li")) globalThis.listed ??= now;
  if (document.querySelector(".tile .picture > canvas[data-frame]")) globalThis.pictured ??= now;
  if (!globalThis.pictured) requestAnimationFrame(watch);
};
requestAnimationFrame(watch);
"""

PAINT_JS = """() => ({
  first_paint_s: performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000,
  list_s: listed / 1000, first_pictures_s: pictured / 1000,
  rows: document.querySelectorAll("#sidebar .rows li").length,
})"""


def measure_memory(browser: "Browser", folder: Path, *, seeks: int) -> Found:
    """Scrub through four warped videos and read the memory three times."""
    write_warped(folder, 4)
    with serve(folder) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        open_all(page, server.address, 4)
        page.evaluate(SCRUB_JS, 200)  # decoders and rings are filled
        readings = [read_memory(browser, page)]
        for _ in range(2):
            page.evaluate(SCRUB_JS, seeks // 2)
            readings.append(read_memory(browser, page))
        page.close()
    heap, process = ([reading[key] for reading in readings] for key in ("heap", "process"))
    return {"videos": 4, "seeks": seeks, "js_heap_mb": heap, "browser_mb": process,
            "end_over_start": round(process[-1] / process[0], 3)}  # fmt: skip


SCRUB_JS = """async (seeks) => {
  const tiles = [...document.querySelectorAll(".tile")]
    .map((tile) => [tile.dataset.id, tile.querySelector("canvas")]);
  const isShown = () => tiles.every(([id, canvas]) => Number(canvas.dataset.frame) === studio.frameOf(id));
  for (let seek = 0; seek < seeks; seek += 1) {
    const isStep = seek % 4 !== 0; // like a hand: a jump, then steps around it
    const {clock} = studio;
    clock.seek(isStep ? clock.frame + Math.round(8 * Math.random() - 4) : Math.random() * clock.last);
    while (!isShown()) await new Promise((resolve) => setTimeout(resolve, 2));
  }
}"""


def read_memory(browser: "Browser", page: "Page") -> dict[str, float]:
    """Megabytes of the JavaScript heap after a collection, and of all processes of the browser."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    whole = browser.new_browser_cdp_session()
    numbers = [each["id"] for each in whole.send("SystemInfo.getProcessInfo")["processInfo"]]
    whole.detach()
    return {"heap": round(heap / 1e6, 1), "process": round(sum(map(proportional_size, numbers)) / 1e6, 1)}


def proportional_size(process: int) -> int:
    """Bytes of memory of a process; shared pages count in parts."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Measure the parts asked for and keep the figures of the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--part", choices=("exact", "drift", "paint", "memory"), action="append")
    parser.add_argument("--quick", action="store_true", help="small counts that only check that it runs")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studio_page.json")
    args = parser.parse_args()
    small = args.quick
    parts: dict[str, Callable[[Browser, Path], Found]] = {
        "exact": lambda browser, folder: measure_exact(browser, folder, seeks=10 if small else 200),
        "drift": lambda browser, folder: measure_drift(browser, folder, seconds=4 if small else 60),
        "paint": lambda browser, folder: measure_paint(browser, folder, videos=500, loads=1 if small else 5),
        "memory": lambda browser, folder: measure_memory(browser, folder, seeks=100 if small else 6000),
    }
    result: Found = json.loads(args.out.read_text("utf-8")) if args.out.exists() else {}
    with open_browser() as browser:
        result["browser"] = f"Chromium {browser.version}"
        for name in args.part or parts:
            with tempfile.TemporaryDirectory() as folder:
                result[name] = parts[name](browser, Path(folder)) | {"cpus": os.cpu_count(), "load": load()}
            print(json.dumps({name: result[name]}), flush=True)
            write_results(args.out, result)


def load() -> float:
    """How busy the machine is with everything that runs on it."""
    return round(os.getloadavg()[0], 1)


if __name__ == "__main__":
    main()
