"""Search, odd takes, map, progress, sound and strips in a browser, on clips that tell their frame numbers."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from coded_clips import READ_NUMBER_JS, read_number, steady_times, write_clip
from cycleback.embeddings import EmbeddingSet
from cycleback.video import probe
from cycleback.web.app import Studio
from cycleback.web.project import Project, video_id
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TAKES = [f"take-{n}" for n in range(7)]
LENGTHS = {name: 40 + 3 * n for n, name in enumerate(TAKES)}
ODD = "take-6"  # goes wrong from frame 20 to 30


def walk(name: str) -> NDArray[np.float64]:
    """Embeddings (N, 4) of one action; all takes run evenly, so that frames match by their share."""
    share = np.linspace(0, 1, LENGTHS[name])
    noise = 0.005 * np.random.default_rng(LENGTHS[name]).normal(size=(LENGTHS[name], 4))
    rows = np.stack([np.cos(3 * share), np.sin(3 * share), share, share**2], axis=1) + noise
    if name == ODD:
        rows[20:31] += 0.7
    return rows


def same_moment(frame: int, name: str) -> float:
    """The frame of another take at the moment of a frame of the first."""
    return frame / (LENGTHS[TAKES[0]] - 1) * (LENGTHS[name] - 1)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("takes")
    for name in TAKES:
        write_clip(folder / f"{name}.mp4", steady_times(LENGTHS[name]), b_frames=2, sound=name == TAKES[1])
    studio = Studio(Project.open(folder))
    paths = {name: folder / f"{name}.mp4" for name in TAKES}
    studio.matches.store.store(
        EmbeddingSet.from_arrays({name: walk(name) for name in TAKES}, fps=30, paths=paths)
    )
    server = StudioServer(studio, port=0).start()
    yield server.address
    server.close()


def open_view(page: "Page", address: str, name: str) -> None:
    page.goto(f"{address}#{name}")
    page.wait_for_function("globalThis.studio?.alignment.size > 0")


def number_on(canvas: "Locator") -> int:
    return int(canvas.evaluate(READ_NUMBER_JS))


def number_in(page: "Page", source: str | None) -> int:
    """The frame number that an image of the server tells."""
    assert source
    picture = Image.open(io.BytesIO(page.request.get(page.url.split("#")[0].rstrip("/") + source).body()))
    return read_number(np.asarray(picture.convert("RGB")))


def test_a_moment_is_found_in_all_videos_and_plays_when_pointed_at(page: "Page", address: str) -> None:
    open_view(page, address, "search")
    page.wait_for_function("document.querySelectorAll('.hit').length === 6")  # of the first frame
    page.get_by_label("Frame", exact=True).fill("12")
    page.get_by_role("button", name="Find it everywhere").click()
    page.wait_for_function("document.querySelector('.hits').dataset.frame === '12'")
    page.wait_for_function("document.querySelector('.query').width === 160")
    hits = page.locator(".hit")
    page.wait_for_function("document.querySelectorAll('.hit').length === 6")
    for place in range(6):
        hit = hits.nth(place)
        name = hit.locator(".hit-name").inner_text()
        assert abs(int(hit.get_attribute("data-frame") or -1) - same_moment(12, name)) <= 1.5
    first = hits.first
    page.wait_for_function("document.querySelector('.hit canvas').width !== 300")
    assert number_on(first.locator("canvas")) == int(first.get_attribute("data-frame") or -1)
    first.hover()
    page.wait_for_function(
        f"({READ_NUMBER_JS})(document.querySelector('.hit canvas')) !== {first.get_attribute('data-frame')}"
    )
    first.click()
    page.wait_for_function("document.querySelector('#view').dataset.view === 'play'")
    assert page.evaluate("studio.clock.frame") == 12


def test_the_odd_take_comes_first_with_its_span(page: "Page", address: str) -> None:
    open_view(page, address, "anomalies")
    first = page.locator(".take").first
    first.locator(".u-over").wait_for()
    assert first.get_by_role("heading").inner_text() == ODD
    assert first.get_attribute("data-verdict") != "typical"
    assert abs(number_in(page, first.locator("img").first.get_attribute("src")) - 25) <= 3
    assert first.locator(".take-oddities li").first.inner_text()
    assert page.locator(".take").count() == 7
    for name in TAKES[:5]:
        page.locator(f".take[data-video='{video_id(name)}'] input").check()
    page.get_by_text("Compared with 5 takes that you call good.").wait_for()
    assert page.locator(".take").first.get_by_role("heading").inner_text() == ODD


def test_the_map_shows_the_frame_that_is_pointed_at(page: "Page", address: str) -> None:
    open_view(page, address, "map")
    page.get_by_text("7 videos").wait_for()
    points = page.request.get(f"{address}api/map").json()
    trail = next(each for each in points if each["id"] == video_id("take-2"))
    box = page.locator(".map").bounding_box()
    assert box is not None
    side = min(box["width"], box["height"]) - 48
    x, y = np.array(trail["points"][0]) * side + [(box["width"] - side) / 2, (box["height"] - side) / 2]
    page.mouse.move(box["x"] + x, box["y"] + y)
    bubble = page.locator(".bubble")
    bubble.wait_for()
    shown = number_in(page, bubble.locator("img").get_attribute("src"))
    assert shown == int(bubble.get_attribute("data-frame") or -1) and shown <= 2
    page.get_by_label("Arrange by").select_option("tsne")
    page.wait_for_function(
        "document.querySelector('.toolbar [role=status]').textContent.startsWith('7 videos')"
    )


def test_progress_has_a_curve_for_every_shown_video(page: "Page", address: str) -> None:
    open_view(page, address, "progress")
    page.locator(".u-over").wait_for()
    names = page.locator(".u-legend .u-label").all_inner_texts()
    shown = page.evaluate("studio.shown.map((id) => studio.byId.get(id).name)")
    assert [name.rstrip(":") for name in names[1:]] == shown
    assert "measured" not in page.locator("#message").inner_text()


def test_a_sound_moves_to_another_video_and_can_be_kept(page: "Page", address: str, tmp_path: Path) -> None:
    open_view(page, address, "sound")
    page.wait_for_function("document.querySelector('#sound-source')?.value")
    assert page.locator("#sound-source option").all_inner_texts() == [TAKES[1]]
    page.get_by_label("on the pictures of").select_option(video_id(TAKES[0]))
    page.get_by_role("button", name="Listen").click()
    page.wait_for_function("document.querySelector('audio').duration > 1")
    duration = page.evaluate("document.querySelector('audio').duration")
    assert duration == pytest.approx(LENGTHS[TAKES[0]] / 30, abs=0.1)
    page.wait_for_function("document.querySelector('audio').played.length > 0")  # it starts by itself
    page.evaluate("document.querySelector('audio').pause()")
    page.evaluate("document.querySelector('audio').currentTime = 0.51")
    page.wait_for_function(f"({READ_NUMBER_JS})(document.querySelector('.borrowed')) === 15")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "kept.mp4")
    kept = probe(tmp_path / "kept.mp4")
    assert kept.has_audio and kept.num_frames == LENGTHS[TAKES[0]]


def test_strips_show_matching_frames_of_all_shown_videos(page: "Page", address: str) -> None:
    open_view(page, address, "strips")
    page.locator(".strips tbody tr").nth(3).wait_for()
    moments = [round(k * (LENGTHS[TAKES[0]] - 1) / 5) for k in range(6)]
    for row in page.locator(".strips tbody tr").all():
        name = row.locator("th").inner_text().split("\n")[0]
        for moment, picture in zip(moments, row.locator("img").all(), strict=True):
            shown = number_in(page, picture.get_attribute("src"))
            assert abs(shown - same_moment(moment, name)) <= 1.5, (name, moment)


def test_the_views_fit_a_phone(page: "Page", address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("search", "anomalies", "map", "progress", "sound", "strips", "start"):
        open_view(page, address, name)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
