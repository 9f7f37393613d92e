"""Frame n in the browser's own decoder is frame n of `iter_frames`, whatever the file."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from coded_clips import READ_NUMBER_JS, read_number, steady_times, uneven_times, write_clip
from cycleback.video import frame_times, iter_frames
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

DECODE_JS = f"""
async ([url, times, wanted]) => {{
  const read = {READ_NUMBER_JS};
  const {{ALL_FORMATS, Input, UrlSource, VideoSampleSink}} = await import("/vendor/mediabunny.min.mjs");
  while ((await fetch(url, {{method: "HEAD"}})).status === 202) {{}}
  const input = new Input({{formats: ALL_FORMATS, source: new UrlSource(url)}});
  const track = await input.getPrimaryVideoTrack();
  const origin = await track.getFirstTimestamp();
  const canvas = new OffscreenCanvas(160, 120);
  const sink = new VideoSampleSink(track);
  const show = (sample) => {{
    sample.draw(canvas.getContext("2d"), 0, 0, canvas.width, canvas.height);
    const seen = [read(canvas), sample.timestamp - origin];
    sample.close();
    return seen;
  }};
  const all = [], sought = [];
  for await (const sample of sink.samples()) all.push(show(sample));
  for (const frame of wanted) {{
    const end = frame + 1 < times.length ? times[frame + 1] : times[frame] + 0.02;
    sought.push(show(await sink.getSample(origin + (times[frame] + end) / 2))[0]);
  }}
  input.dispose();
  return {{all, sought}};
}}
"""


def run_ffmpeg(*arguments: str | Path) -> None:
    program = pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg").get_ffmpeg_exe()
    subprocess.run([program, "-y", "-v", "error", *map(str, arguments)], check=True)


def remux(source: Path, target: Path, *options: str, before: tuple[str, ...] = ()) -> None:
    run_ffmpeg(*before, "-i", source, "-c", "copy", *options, target)


def write_kinds(folder: Path) -> None:
    """Write one clip of each kind that has ever been trouble."""
    times, uneven = steady_times(40), uneven_times(40)
    plain = write_clip(folder / "plain.mp4", times, b_frames=3, gop=12)
    write_clip(folder / "late.mp4", [time + 15360 for time in uneven], b_frames=2)
    write_clip(folder / "vp8.webm", times, codec="libvpx")
    write_clip(folder / "vp9.webm", uneven, codec="libvpx-vp9")
    write_clip(folder / "mkv.mkv", uneven, b_frames=2)
    run_ffmpeg("-i", plain, "-c:v", "mpeg4", "-bf", "2", folder / "old.avi")
    write_clip(folder / "deep.mp4", times, pixel_format="yuv444p")
    remux(plain, folder / "quick.mov")
    remux(plain, folder / "stream.ts")
    remux(plain, folder / "parts.mp4", "-movflags", "frag_keyframe+empty_moov")
    remux(plain, folder / "cut.mp4", before=("-ss", "0.6"))  # an edit list hides the frames before
    remux(plain, folder / "turned.mp4", before=("-display_rotation", "180"))
    tall = write_clip(folder / "tall.mp4", times, size=(120, 160))
    remux(tall, folder / "side.mp4", before=("-display_rotation", "90"))  # shows the number on its side


def expect(path: Path) -> list[int]:
    """The number that each frame shows, 160x120, as the package decodes it."""
    chunks = iter_frames(path, size=(120, 160))
    return [read_number(frame) for chunk in chunks for frame in chunk.frames]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioServer]:
    folder = tmp_path_factory.mktemp("kinds")
    write_kinds(folder)
    server = StudioServer(Studio(Project.open(folder)), port=0).start()
    yield server
    server.close()


def test_the_browser_sees_the_same_frames(kinds: StudioServer, page: "Page") -> None:
    page.goto(kinds.address)
    media: dict[str, str] = {}
    for video in kinds.studio.project.videos.values():
        expected, times = expect(video.path), frame_times(video.path)
        wanted = [0, 7, 3, len(times) - 1, 12, 11]
        seen = page.evaluate(DECODE_JS, [f"/api/videos/{video.id}/media", times.tolist(), wanted])
        assert [number for number, _ in seen["all"]] == expected, video.name
        assert np.allclose([time for _, time in seen["all"]], times, atol=1e-3), video.name
        assert seen["sought"] == [expected[frame] for frame in wanted], video.name
        media[video.name] = kinds.studio.media.detail(video).media
    proxies = {name for name, kind in media.items() if kind == "proxy"}
    assert len(media) == 14 and proxies == {"old", "deep", "stream", "cut"}
