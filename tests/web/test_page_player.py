"""The player in a browser: clips whose pixels tell their frame number show what it really draws."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coded_clips import READ_NUMBER_JS
from cycleback.embeddings import EmbeddingSet
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

FRAMES = {"bframes": 75, "intra": 50, "sound": 66, "uneven": 60}
PACE = {"bframes": 1.0, "intra": 1.6, "sound": 0.7, "uneven": 1.3}  # exponent of time: no two run alike


def walk(name: str) -> NDArray[np.float64]:
    """Embeddings (N, 6) of one action at the pace of this video."""
    progress = 2 * np.linspace(0, 1, FRAMES[name]) ** PACE[name]
    return np.column_stack([f(progress * k) for k in (1, 3, 5) for f in (np.sin, np.cos)])


@pytest.fixture(scope="module")
def address(coded_clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A studio on the coded clips, embedded; tests that write get one of their own."""
    folder = Path(shutil.copytree(coded_clips, tmp_path_factory.mktemp("player") / "clips"))
    server = serve(folder)
    yield server.address
    server.close()


def serve(folder: Path, *, is_embedded: bool = True) -> StudioServer:
    """Serve a folder of the coded clips."""
    studio = Studio(Project.open(folder))
    if is_embedded:
        studio.matches.store.store(EmbeddingSet.from_arrays({name: walk(name) for name in FRAMES}, fps=30))
    return StudioServer(studio, port=0).start()


def open_player(page: "Page", address: str) -> None:
    """Open the page and wait until all videos show something."""
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('.tile .picture > canvas[data-frame]').length >= 2")
    page.wait_for_function("globalThis.studio && !studio.isSettling && studio.clock.last > 1")
    settle(page)


def settle(page: "Page") -> None:
    """Wait until every video shows the frame that the clock asks for."""
    page.wait_for_function(
        """[...document.querySelectorAll(".tile")].every((tile) =>
             Number(tile.querySelector("canvas").dataset.frame) === studio.frameOf(tile.dataset.id))"""
    )


def read_frames(page: "Page") -> dict[str, int]:
    """The frame number that each video's pixels tell, by name."""
    return page.evaluate(
        f"""() => Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) =>
              [tile.getAttribute("aria-label"), ({READ_NUMBER_JS})(tile.querySelector("canvas"))]))"""
    )


def ask(page: "Page", path: str) -> Any:
    """The server's JSON answer, asked for beside the page's own code."""
    return page.request.get(page.url.split("#")[0] + "api/" + path).json()


def expected_frames(page: "Page", frame: int | None = None) -> Any:
    """What each video should show at a frame of the reference, or at each, by the server's alignment."""
    videos = {video["id"]: video["name"] for video in ask(page, "project")["videos"]}
    reference = page.evaluate("studio.reference")
    aligned = ask(page, f"alignment?reference={reference}&videos={','.join(videos)}")["videos"]
    columns = {videos[video["id"]]: video["frames"] for video in aligned}
    columns[videos[reference]] = list(range(FRAMES[videos[reference]]))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows if frame is None else rows[frame]


def test_scrubbing_and_stepping_show_the_right_frames_of_every_video(page: "Page", address: str) -> None:
    open_player(page, address)
    assert read_frames(page).keys() == FRAMES.keys()
    timeline = page.get_by_label("Frame of the reference")
    for frame in (40, 3, 74, 59, 60):
        timeline.fill(str(frame))
        settle(page)
        assert read_frames(page) == expected_frames(page, frame)
    for key, frame in (("ArrowLeft", 59), ("ArrowLeft", 58), ("ArrowRight", 59), ("Shift+ArrowLeft", 49)):
        page.keyboard.press(key)
        settle(page)
        assert read_frames(page) == expected_frames(page, frame)


def test_playing_shows_one_moment_in_all_videos(page: "Page", address: str) -> None:
    open_player(page, address)
    expected = expected_frames(page)
    page.evaluate("studio.clock.setSpeed(2)")
    page.keyboard.press("Space")
    seen = page.evaluate(
        f"""async () => {{
          const seen = [];
          for (let look = 0; look < 60; look += 1) {{
            await new Promise(requestAnimationFrame);
            seen.push(Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) =>
              [tile.getAttribute("aria-label"), ({READ_NUMBER_JS})(tile.querySelector("canvas"))])));
          }}
          return seen;
        }}"""
    )
    page.keyboard.press("Space")
    assert len({each["bframes"] for each in seen}) > 15  # it moved
    assert all(each == expected[each["bframes"]] for each in seen)


def test_a_browser_without_webcodecs_shows_the_right_frames(page: "Page", address: str) -> None:
    page.add_init_script("delete window.VideoDecoder; delete window.AudioDecoder")
    open_player(page, address)
    for frame in (33, 7, 74):
        page.get_by_label("Frame of the reference").fill(str(frame))
        settle(page)
        assert read_frames(page) == expected_frames(page, frame)


def test_pictures_of_the_server_stand_in_for_a_decoder_that_fails(page: "Page", address: str) -> None:
    page.add_init_script("VideoDecoder.prototype.decode = () => { throw new Error('broken') }")
    open_player(page, address)
    page.get_by_label("Frame of the reference").fill("41")
    settle(page)
    assert read_frames(page) == expected_frames(page, 41)


def test_onion_skin_lays_the_matching_frame_over_the_reference(page: "Page", address: str) -> None:
    open_player(page, address)
    page.get_by_label("Frame of the reference").fill("52")
    settle(page)
    page.keyboard.press("o")
    page.get_by_label("Video on top", exact=True).select_option(label="uneven")
    assert page.locator(".tile:visible").count() == 1
    overlaid = page.evaluate(f'() => ({READ_NUMBER_JS})(document.querySelector(".overlay"))')
    assert overlaid == expected_frames(page, 52)["uneven"]
    page.get_by_label("Opacity of the video on top").fill("0.25")
    assert page.evaluate('getComputedStyle(document.querySelector(".overlay")).opacity') == "0.25"


def test_keys_move_the_clock_and_leave_text_fields_alone(page: "Page", address: str) -> None:
    open_player(page, address)
    for key, is_playing, is_backward in (("l", True, False), ("k", False, False), ("j", True, True)):
        page.keyboard.press(key)
        assert page.evaluate("[studio.clock.playing, studio.clock.isBackward]") == [is_playing, is_backward]
    page.keyboard.press("j")
    assert page.evaluate("studio.clock.speed") == 2
    page.keyboard.press("k")
    page.get_by_label("Search videos by name").press_sequentially("b k j l")
    assert page.evaluate("[studio.clock.playing, studio.isAligned]") == [False, True]
    page.get_by_label("Search videos by name").blur()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").get_by_text("Play or pause").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    settle(page)
    assert read_frames(page)["bframes"] == 74


def test_another_reference_keeps_the_moment(page: "Page", address: str) -> None:
    open_player(page, address)
    page.get_by_label("Frame of the reference").fill("50")
    settle(page)
    before = read_frames(page)
    page.get_by_role("button", name="Follow the pace of uneven").click()
    page.wait_for_function("!studio.isSettling && studio.clock.last === 59")
    settle(page)
    assert read_frames(page) == expected_frames(page, before["uneven"])
    page.keyboard.press("2")  # the second on the screen
    page.wait_for_function("!studio.isSettling && studio.clock.last === 49")
    page.reload()
    open_player(page, address)
    assert page.locator(".tile.is-reference").get_attribute("aria-label") == "intra"


def test_as_filmed_every_video_keeps_its_own_pace(page: "Page", address: str) -> None:
    open_player(page, address)
    page.get_by_label("Frame of the reference").fill("45")
    page.keyboard.press("b")
    settle(page)
    shown = read_frames(page)
    for video in ask(page, "project")["videos"]:
        times = np.frombuffer(page.request.get(f"{address}api/videos/{video['id']}/times").body(), "<f8")
        assert shown[video["name"]] == np.searchsorted(times, 1.5 + 1e-9) - 1
    page.get_by_role("button", name="Aligned").click()
    settle(page)
    assert read_frames(page) == expected_frames(page, 45)


def test_a_loop_plays_only_its_frames(page: "Page", address: str) -> None:
    open_player(page, address)
    for frame, key in ((20, "["), (30, "]")):
        page.get_by_label("Frame of the reference").fill(str(frame))
        page.keyboard.press(key)
    page.keyboard.press("Space")
    seen = page.evaluate(
        """async () => {
          const seen = [];
          const listener = (frame) => seen.push(frame);
          studio.clock.listeners.add(listener);
          await new Promise((resolve) => setTimeout(resolve, 1500));
          studio.clock.listeners.delete(listener);
          return seen;
        }"""
    )
    assert min(seen) == 20 and max(seen) == 30 and seen.count(20) >= 2
    first, last = (expected_frames(page, frame)["intra"] for frame in (20, 30))
    page.keyboard.press("2")  # the loop goes over to the pace of intra
    page.wait_for_function("!studio.isSettling && studio.clock.last === 49")
    assert page.evaluate("studio.clock.loop") == {"first": first, "last": last}


def test_a_phase_between_two_labels_can_be_looped(page: "Page", project_folder: Path) -> None:
    rows = ["video,event,frame", "bframes,lift,12", "bframes,throw,30", "bframes,land,60"]
    (project_folder / "labels.csv").write_text("\n".join(rows))
    server = serve(project_folder)
    try:
        open_player(page, server.address)
        page.get_by_label("Loop a phase").select_option(label="lift → throw")
        assert page.evaluate("[studio.clock.loop, studio.clock.frame]") == [{"first": 12, "last": 30}, 12]
        page.get_by_role("button", name="Clear the loop").click()
        assert page.evaluate("studio.clock.loop") is None
    finally:
        server.close()


def test_sound_follows_the_warp(page: "Page", address: str) -> None:
    page.add_init_script(
        """globalThis.started = [];
        const start = AudioBufferSourceNode.prototype.start;
        AudioBufferSourceNode.prototype.start = function (when, offset, ...rest) {
          started.push([studio.clock.time, when - this.context.currentTime, offset]);
          return start.call(this, when, offset, ...rest);
        };"""
    )
    open_player(page, address)
    page.get_by_role("button", name="Hear sound").click()
    page.keyboard.press("l")
    page.wait_for_function("started.length > 8")
    worst = page.evaluate(
        """() => Math.max(...started.map(([time, ahead, offset]) => Math.abs(offset -
          studio.timeOf(studio.project.videos.find((video) => video.name === "sound").id, time + ahead))))"""
    )
    assert worst < 0.06  # of the codec's lead-in and of two clocks


def test_a_nudge_shifts_one_video_and_can_be_pinned(page: "Page", project_folder: Path) -> None:
    server = serve(project_folder)
    try:
        open_player(page, server.address)
        page.get_by_label("Frame of the reference").fill("40")
        settle(page)
        before = read_frames(page)
        page.get_by_role("button", name="Follow the pace of intra").focus()
        for key in "mmmn":
            page.keyboard.press(key)
        settle(page)
        assert read_frames(page) == before | {"intra": before["intra"] + 2}
        assert page.get_by_label("Shift of intra in frames").inner_text() == "+2"
        page.get_by_role("button", name="Pin this").click()
        page.wait_for_function("studio.offsets.size === 0 && !studio.isSettling")
        settle(page)
        assert read_frames(page) == before | {"intra": before["intra"] + 2}
        assert len(ask(page, "pins")["pins"]) == 1
    finally:
        server.close()


def test_videos_without_embeddings_play_as_filmed_and_can_be_aligned(
    page: "Page", project_folder: Path
) -> None:
    server = serve(project_folder, is_embedded=False)
    job = {"id": "1", "kind": "quick", "state": "running", "stage": "looking at the videos"}
    job |= {"run": "pretrained", "done": 3, "total": 12, "message": ""}
    asked: list[str | None] = []

    def answer(route: "Route") -> None:
        asked.append(route.request.post_data)
        route.fulfill(json=job if route.request.method == "POST" else [job])

    try:
        open_player(page, server.address)
        page.get_by_label("Frame of the reference").fill("30")
        settle(page)
        assert read_frames(page)["intra"] == 30
        assert page.get_by_role("button", name="Aligned", exact=True).is_disabled()
        page.route("**/api/jobs", answer)
        page.get_by_role("button", name="Align now").click()
        page.get_by_text("looking at the videos 25 %").wait_for()  # in the header
        assert asked[0] == '{"kind":"quick"}'
        assert page.get_by_role("button", name="Aligning…").is_disabled()
    finally:
        server.close()


def test_a_studio_that_was_stopped_is_said_in_one_line(page: "Page", project_folder: Path) -> None:
    server = serve(project_folder)
    try:
        open_player(page, server.address)
    finally:
        server.close()
    away = page.locator("#message").get_by_text("the studio does not answer")
    away.wait_for()  # seen while nothing is done
    page.evaluate("studio.say('')")
    page.evaluate("void studio.load()")  # as when a job is over: nobody waits for it
    away.wait_for()
    page.locator("#tabs a[href='#map']").click()
    page.locator("#message").get_by_text('the view "Map" does not open').wait_for()


def test_the_list_of_500_videos_holds_only_rows_in_sight(
    page: "Page", coded_clips: Path, tmp_path: Path
) -> None:
    clip = (coded_clips / "intra.mp4").read_bytes()
    for number in range(500):
        (tmp_path / f"take{number:03}.mp4").write_bytes(clip if number != 2 else b"no video")
    server = StudioServer(Studio(Project.open(tmp_path)), port=0).start()
    try:
        page.goto(server.address)
        page.locator("#sidebar .rows img").first.wait_for()
        assert page.locator("#sidebar .rows li").count() < 40
        assert "take002" in page.locator("#sidebar .is-broken .about").inner_text()
        page.get_by_label("Search videos by name").fill("take49")
        assert page.locator("#sidebar .rows li").count() == 10
        page.get_by_role("checkbox", name="take495").check()
        page.locator(".shown-list li").last.hover()
        page.get_by_role("button", name="Move take495 up").click()
        assert page.locator(".shown-list .name").all_inner_texts()[-2] == "take495"
    finally:
        server.close()


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as in the WCAG."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_is_accessible_and_fits_a_phone(page: "Page", address: str) -> None:
    open_player(page, address)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a[href]")].filter((each) =>
             each.checkVisibility() && !(each.getAttribute("aria-label") || each.innerText?.trim() ||
               each.labels?.[0]?.innerText.trim() || each.title)).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    names = (
        "ground",
        "panel",
        "raised",
        "text",
        "dim",
        "accent",
        "accent-text",
        "bad",
        "warn",
        "good",
        "pin",
    )
    colours = page.evaluate(
        """(names) => Object.fromEntries(names.map((name) =>
             [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))""",
        list(names),
    )
    light = {name: luminance(colour) for name, colour in colours.items()}
    for text in ("text", "dim", "accent", "bad", "warn", "good", "pin"):
        for ground in ("ground", "panel", "raised"):
            assert (light[text] + 0.05) / (light[ground] + 0.05) >= 4.5, (text, ground)
    assert (light["accent"] + 0.05) / (light["accent-text"] + 0.05) >= 4.5
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Videos", exact=True).click()
    page.get_by_role("checkbox", name="sound").uncheck()
    assert page.locator(".tile").count() == 3
