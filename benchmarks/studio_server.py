"""Measure what the studio's server saves: the list of videos, pictures of a long video, proxies.

Each figure is a ratio to a named baseline, measured in the same run and in turns (medians of seconds):

    list    first answer for a folder of 500 videos, against reading the properties of each
    frame   one exact frame of a long video, against decoding from its start, and against `read_frames`
            without a known index
    strip   twenty pictures spread over it, against reading exactly those evenly spread frames
    proxy   writing an all-intra proxy, against decoding and scaling the same frames alone

    python benchmarks/studio_server.py                 # writes results/studio_server.json
    python benchmarks/studio_server.py --minutes 2 --videos 50 --out /tmp/studio_server.json

Needs the extra 'studio'.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import av
import numpy as np
from starlette.testclient import TestClient

from cycleback.provenance import provenance
from cycleback.video import read_frames
from cycleback.video.reader import inspect
from cycleback.web.app import Studio, build_app
from cycleback.web.media import read_thumbnails, spread_frames
from cycleback.web.project import Project, ProjectVideo
from cycleback.web.proxies import iter_pictures, proxy_size, write_proxy
from result_file import write_results

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from coded_clips import steady_times, write_clip  # noqa: E402

FPS, GOP, SIZE = 30, 250, (320, 240)
HEIGHT, COUNT = 120, 20
Seconds = list[float]


def measure(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each action; they take turns."""
    taken: dict[str, Seconds] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            taken[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in taken.items()}


def compare(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, Any]:
    """Return the seconds of each action, and how many times longer than the first the others take."""
    seconds = measure(actions, repeats)
    ours = next(iter(seconds.values()))
    ratios = {name: round(value / ours, 1) for name, value in list(seconds.items())[1:]}
    return {"seconds": {name: round(value, 4) for name, value in seconds.items()}, "times longer": ratios}


def measure_list(folder: Path, *, videos: int, repeats: int) -> dict[str, Any]:
    """Compare the first answer for a folder with reading each of its videos."""
    first = write_clip(folder / "0.mp4", steady_times(90), b_frames=2, size=SIZE)
    for number in range(1, videos):
        (folder / f"{number}.mp4").write_bytes(first.read_bytes())

    def answer() -> None:
        client = TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1")
        assert len(client.get("/api/project").json()["videos"]) == videos

    def read_each() -> None:
        for path in folder.glob("*.mp4"):
            inspect(path)

    return compare({"list": answer, "read each video": read_each}, repeats)


def decode_from_start(path: Path, number: int) -> object:
    """Decode up to a frame with plain PyAV."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for place, frame in enumerate(container.decode(video=0)):
            if place == number:
                return frame.to_ndarray(width=160, height=HEIGHT, format="rgb24")
    raise AssertionError(f"no frame {number}")


def measure_frame(video: ProjectVideo, repeats: int) -> dict[str, Any]:
    """Compare ways to read one exact frame, in the middle of a long video on average."""
    numbers = np.random.default_rng(0).integers(video.info.num_frames, size=repeats).tolist()
    turns = {name: iter(numbers) for name in ("seek", "read", "decode")}
    size = (HEIGHT, 160)
    actions: dict[str, Callable[[], object]] = {
        "known index": lambda: read_thumbnails(video, [next(turns["seek"])], HEIGHT),
        "read_frames alone": lambda: read_frames(video.path, [next(turns["read"])], size=size),
        "PyAV from the start": lambda: decode_from_start(video.path, next(turns["decode"])),
    }
    return compare(actions, repeats)


def measure_strip(video: ProjectVideo, repeats: int) -> dict[str, Any]:
    """Compare a strip, which may use keyframes, with one of exactly even steps."""
    even = ((np.arange(COUNT) + 0.5) * video.info.num_frames / COUNT).astype(int).tolist()
    actions: dict[str, Callable[[], object]] = {
        "strip": lambda: read_thumbnails(video, spread_frames(video, COUNT), 60),
        "exactly even frames": lambda: read_thumbnails(video, even, 60),
    }
    return compare(actions, repeats)


def measure_proxy(folder: Path, *, seconds: int, repeats: int) -> dict[str, Any]:
    """Compare writing a proxy with decoding and scaling its frames."""
    write_clip(folder / "large.mp4", steady_times(seconds * FPS), b_frames=2, size=(1280, 720))
    video = Project.open(folder).find("large")
    draft = folder / ".proxy.mp4"
    actions: dict[str, Callable[[], object]] = {
        "decode and scale": lambda: sum(1 for _ in iter_pictures(video, proxy_size(video))),
        "proxy": lambda: write_proxy(draft, video),
    }
    found = compare(actions, repeats)
    found["frames per second"] = round(video.info.num_frames / found["seconds"]["proxy"], 1)
    return found


def main() -> None:
    """Measure all parts and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=20, help="Length of the long video.")
    parser.add_argument("--videos", type=int, default=500, help="Videos in the folder that is listed.")
    parser.add_argument("--repeats", type=int, default=5, help="Turns of each part.")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studio_server.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / part for part in ("many", "long", "large")]
        for folder in folders:
            folder.mkdir()
        times = steady_times(options.minutes * 60 * FPS, FPS)
        write_clip(folders[1] / "long.mp4", times, gop=GOP, b_frames=2, size=SIZE)
        video = Project.open(folders[1]).find("long")
        result = {
            "settings": {"minutes": options.minutes, "videos": options.videos, "repeats": options.repeats},
            "provenance": provenance("cpu"),
            "list": measure_list(folders[0], videos=options.videos, repeats=options.repeats),
            "frame": measure_frame(video, options.repeats),
            "strip": measure_strip(video, options.repeats),
            "proxy": measure_proxy(folders[2], seconds=10, repeats=options.repeats),
        }
    write_results(options.out, result)
    print(options.out.read_text("utf-8"))


if __name__ == "__main__":
    main()
