"""Make the pictures of docs/guides/gallery.md: render videos, learn from them, use every application.

The rendered videos and the run stay in the work folder, so a second time takes a minute.

Usage: python scripts/gallery.py --work /tmp/gallery
"""

import argparse
import contextlib
import csv
import io
import json
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.applications.sync import tint_images
from cycleback.cli.main import main as cycleback_main
from cycleback.video import frame_times, read_audio, read_frames

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
MAX_BYTES = 300_000
SHOWN = [f"takes/pouring_{number:03d}.mp4" for number in range(4)]
LAID_OVER = (SHOWN[0], SHOWN[3])
PAIR = ("takes/pouring_008.mp4", "takes/pouring_003.mp4")
MIDDLE = "half poured"  # a moment between the second and the third key event
Frame = NDArray[np.uint8]
Events = dict[str, dict[str, int]]  # video -> {event: frame}


def cycleback(words: str) -> None:
    """Type one command."""
    print(f"$ cycleback {words}")
    if cycleback_main(words.split()) != 0:
        raise SystemExit(f"failed: cycleback {words}")


def prepare() -> None:
    """Render videos to learn from, takes to show, good takes and takes that go wrong; learn; once."""
    for folder, options in {
        "learn": "--videos 48 --seed 1",
        "takes": "--videos 9 --seed 2 --size 192",
        "good": "--videos 12 --seed 3 --size 192",
        "new": "--videos 6 --seed 4 --size 192 --anomalies 3",
    }.items():
        if not Path(folder).exists():
            cycleback(f"synth {folder} {options}")
    if not Path("run", "encoder.safetensors").exists():
        cycleback("train learn -o run --recipe demo optimizer.num_updates=1000")


def read_table(path: str) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def true_events(folder: str) -> Events:
    """Key events of the videos of a folder."""
    found: Events = {}
    for row in read_table(f"{folder}/labels.csv"):
        found.setdefault(row["video"], {})[row["event"]] = int(row["frame"])
    return found


def moments(video: str) -> dict[str, float]:
    """Seconds of the key events of a video, and of the middle of the pour."""
    frames = true_events("takes")[Path(video).stem]
    names, times = list(frames), frame_times(video)
    found = {name: float(times[frame]) for name, frame in frames.items()}
    found[MIDDLE] = (found[names[1]] + found[names[2]]) / 2
    return dict(sorted(found.items(), key=lambda each: each[1]))


def frames_at(video: str, seconds: Sequence[float]) -> list[Frame]:
    """The frames of a video that are shown at `seconds`; the last one stays."""
    times = frame_times(video)
    return list(read_frames(video, [int(np.abs(times - second).argmin()) for second in seconds]))


def synced_seconds(videos: Sequence[str], seconds: Sequence[float]) -> list[list[float]]:
    """For each video, the seconds that `cycleback sync` shows when the first video is at `seconds`."""
    cycleback(f"sync {' '.join(videos)} --run run --edits pace.csv --overwrite")
    table = read_table("pace.csv")
    clock = [float(row["output_seconds"]) for row in table]
    tracks = [[float(row[Path(video).stem]) for row in table] for video in videos]
    return [np.interp(seconds, clock, track).tolist() for track in tracks]


def draw_sync() -> None:
    """Four videos at five moments of the first: as filmed, and in sync."""
    when = moments(SHOWN[0])
    seconds = list(when.values())
    before = [frames_at(video, seconds) for video in SHOWN]
    after = [
        frames_at(video, track) for video, track in zip(SHOWN, synced_seconds(SHOWN, seconds), strict=True)
    ]
    titles = [name.replace(" ", "\n", 1) for name in when]
    save_frames("gallery-sync", {"as filmed": before, "in sync": after}, titles=titles)


def draw_overlay() -> None:
    """Two videos on top of each other, each in a colour: as filmed, and in sync."""
    when = moments(LAID_OVER[0])
    seconds = list(when.values())
    first = frames_at(LAID_OVER[0], seconds)
    tracks = {"as filmed": seconds, "in sync": synced_seconds(LAID_OVER, seconds)[1]}
    rows = {
        name: [[tint_images(pair) for pair in zip(first, frames_at(LAID_OVER[1], track), strict=True)]]
        for name, track in tracks.items()
    }
    save_frames("gallery-overlay", rows, titles=list(when))


def draw_labels() -> None:
    """Phases of all takes as bars, from the labels of the first; the true key events as ticks."""
    rows = Path("takes", "labels.csv").read_text("utf-8").splitlines()
    first = [row for row in rows if row.startswith(("video,", "pouring_000,"))]
    Path("first.csv").write_text("\n".join(first) + "\n", "utf-8")
    cycleback("transfer labels first.csv takes --run run -o all.csv --overwrite")
    found: dict[str, list[dict[str, str]]] = {}
    for row in read_table("all.csv"):
        found.setdefault(row["video"], []).append(row)
    truth = true_events("takes")
    with new_figure(1, size=(9.0, 4.4)) as (figure, (axis,)):
        for place, (video, labels) in enumerate(found.items()):
            times = frame_times(f"takes/{video}.mp4")
            ends = [0.0, *(float(label["seconds"]) for label in labels), float(times[-1])]
            for phase, (start, end) in enumerate(pairwise(ends)):
                axis.barh(place, end - start, left=start, height=0.62, color=PHASE_COLOURS[phase])
            marks = times[list(truth[video].values())]
            axis.scatter(
                marks, np.full(len(marks), place - 0.42), marker="v", s=26, color="#222222", zorder=3
            )
            sure = [float(label["confidence"]) for label in labels if label["confidence"]]
            note = f"{np.mean(sure):.2f} sure" if sure else "labelled by hand"
            axis.annotate(note, (times[-1] + 0.06, place), va="center", fontsize=9, color="#555555")
        names = ["before", *(label["event"] for label in next(iter(found.values())))]
        patches = [
            axis.barh(0, 0, color=PHASE_COLOURS[phase], label=name) for phase, name in enumerate(names)
        ]
        ticks = axis.scatter([], [], marker="v", s=26, color="#222222", label="true key event")
        axis.set(yticks=range(len(found)), yticklabels=list(found), xlabel="seconds")
        axis.set_xlim(0, 1.18 * max(float(frame_times(f"takes/{video}.mp4")[-1]) for video in found))
        axis.invert_yaxis()
        axis.tick_params(left=False)
        axis.spines["left"].set_visible(False)
        figure.legend(handles=[*patches, ticks], loc="outside lower center", ncols=3)
        save("gallery-labels.png", image_bytes(figure, "png"))


def draw_sound() -> None:
    """Spectrograms: the sound that was given, what it became, and what the silent video sounded like."""
    cycleback(f"transfer sound {PAIR[0]} {PAIR[1]} --run run -o heard.wav --overwrite")
    stems = [Path(video).stem for video in PAIR]
    truth = json.loads(Path("takes", "truth.json").read_text("utf-8"))["videos"]
    panels = {
        f"the sound of {stems[0]}": (PAIR[0], stems[0]),
        f"given to {stems[1]}": ("heard.wav", stems[1]),
        f"how {stems[1]} really sounds": (PAIR[1], stems[1]),
    }
    with new_figure(3, size=(9.0, 6.4), columns=1) as (figure, axes):
        for axis, (title, (path, seen)) in zip(axes, panels.items(), strict=True):
            audio = read_audio(path, mono=True)
            draw_spectrogram(axis, audio.samples[0], audio.rate)
            pitch = np.array([hertz or np.nan for hertz in truth[seen]["pitch"]], dtype=np.float64)
            axis.plot(
                np.arange(len(pitch)) / 30, pitch / 1000, color="white", linewidth=1.2, linestyle=(0, (3, 2))
            )
            axis.set(
                title=title, ylabel="kHz", xlim=(0, max(len(truth[stem]["fill"]) for stem in stems) / 30)
            )
        axes[-1].set(xlabel="seconds; dashed: the pitch that the fill of the glass in the picture calls for")
        save_figure("gallery-sound", figure)


def draw_spectrogram(axis: Any, samples: NDArray[np.float32], rate: int) -> None:
    """Loudness by frequency and time, in decibels below the loudest."""
    size, step = 2048, 512
    windows = np.lib.stride_tricks.sliding_window_view(samples, size)[::step] * np.hanning(size)
    power = np.abs(np.fft.rfft(windows, axis=1)) ** 2
    decibels = 10 * np.log10(power / power.max() + 1e-9)
    extent = (size / 2 / rate, len(samples) / rate, 0, rate / 2000)
    axis.imshow(decibels.T, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=-75, vmax=-5)
    axis.set(ylim=(0, 4))


def draw_search() -> None:
    """What looks like the touch, and like a glass that is half full, in all other takes."""
    if not Path("takes.index").exists():
        cycleback("search add takes.index takes --run run")
    when = moments(SHOWN[0])
    sheets = []
    for name in (MIDDLE, "bottle back on table"):
        path = f"sheet-{len(sheets)}.png"
        query = f"takes.index pouring_000@{when[name]:.2f} -k 7"
        cycleback(f"search query {query} --sheet {path} --overwrite")
        sheets.append(np.asarray(Image.open(path)))
    save_picture("gallery-search", np.concatenate(sheets), width=1400)


def draw_plots() -> None:
    """Save the pictures that commands draw."""
    a, b = PAIR
    known = "takes --run run --overwrite"
    cycleback(f"plot map {known} -o map.png --size 8x6")
    cycleback(f"plot evolution pretrained run --pair {a} {b} -o similarity.png --size 9x4.2 --overwrite")
    cycleback(f"plot progress {known} --reference pouring_000 -o curves.png --size 8x4")
    cycleback(f"progress {known} --reference pouring_000 --goal good -o progress.csv --picture reward.png")
    cycleback("anomalies new --good good --run run --appearance --picture odd.png --overwrite")
    for name, path in {"similarity": "similarity", "progress": "curves", "reward": "reward"}.items():
        save(f"gallery-{name}.png", Path(f"{path}.png").read_bytes())
    for name, path in {"map": "map", "anomaly": "odd"}.items():
        save_picture(f"gallery-{name}", np.asarray(Image.open(f"{path}.png").convert("RGB")), width=1200)


def save_frames(name: str, blocks: dict[str, list[list[Frame]]], *, titles: Sequence[str]) -> None:
    """Blocks of rows of frames with named columns; beside each other where a block has several rows."""
    down, across = len(next(iter(blocks.values()))), len(titles)
    shape = (1, len(blocks)) if down > 1 else (len(blocks), 1)
    inches = (1.35 * across * shape[1], (1.32 * down + 0.7) * shape[0])
    with new_figure(1, size=inches) as (figure, (whole,)):
        whole.remove()
        parts = figure.subfigures(*shape, wspace=0.03, squeeze=False).flat
        for part, (title, rows) in zip(parts, blocks.items(), strict=True):
            part.suptitle(title, fontsize=13)
            for row, axes in zip(rows, part.subplots(down, across, squeeze=False), strict=True):
                for axis, frame in zip(axes, row, strict=True):
                    axis.imshow(frame)
                    axis.set(xticks=[], yticks=[])
                    axis.spines[:].set_visible(False)
            for axis, words in zip(part.axes[:across], titles, strict=True):
                axis.set_title(words, fontsize=9, color="#555555")
        save_figure(name, figure)


def save_figure(name: str, figure: Any) -> None:
    """A figure with frames or spectrograms in it."""
    picture = Image.open(io.BytesIO(image_bytes(figure, "png"))).convert("RGB")
    save_picture(name, np.asarray(picture), width=1400)


def save_picture(name: str, picture: Frame, *, width: int) -> None:
    """A picture with frames in it, as WebP."""
    image = Image.fromarray(picture)
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=82, method=6)
    save(f"{name}.webp", stream.getvalue())


def save(name: str, content: bytes) -> None:
    """Write one picture of the gallery."""
    if len(content) > MAX_BYTES:
        raise SystemExit(f"{name} has {len(content)} bytes, more than {MAX_BYTES}")
    (IMAGES / name).write_bytes(content)
    print(f"{name}: {len(content) // 1000} kB")


PICTURES = {
    "sync": draw_sync,
    "overlay": draw_overlay,
    "labels": draw_labels,
    "sound": draw_sound,
    "search": draw_search,
    "plots": draw_plots,
}


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of docs/guides/gallery.md.")
    default = Path(tempfile.gettempdir()) / "cycleback-gallery"
    parser.add_argument("--work", type=Path, default=default, help="where videos and run are kept")
    parser.add_argument("--only", default=",".join(PICTURES), help="pictures, separated by commas")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(args.work):
        prepare()
        for name in args.only.split(","):
            PICTURES[name]()


if __name__ == "__main__":
    main()
