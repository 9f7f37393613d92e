"""The view "Label" in a browser: marked with the keyboard, found in other videos, reviewed, never lost."""

import csv
import io
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest

from coded_clips import READ_NUMBER_JS
from cycleback.web.app import Studio
from cycleback.web.project import Project, video_id
from cycleback.web.server import StudioServer
from takes import PACES, true_events, write_takes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

A, B, C, D, E = map(video_id, PACES)


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five takes with embeddings; do not write to it."""
    return write_takes(tmp_path_factory.mktemp("takes")).folder


@pytest.fixture
def folder(takes: Path, tmp_path: Path) -> Path:
    """A copy of the takes for one test."""
    return Path(shutil.copytree(takes, tmp_path / "takes"))


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    server = StudioServer(Studio(Project.open(folder)), port=0).start()
    yield server.address
    server.close()


def open_view(page: "Page", address: str) -> None:
    page.goto(f"{address}#label")
    page.wait_for_selector(".label-picture[data-frame]")


def go_to(page: "Page", frame: int) -> None:
    """Step to a frame with the arrow keys, and check that the picture is this frame."""
    page.keyboard.press("Home")
    for _ in range(frame // 10):
        page.keyboard.press("Shift+ArrowRight")
    for _ in range(frame % 10):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector(f'.label-picture[data-frame="{frame}"]')
    assert page.eval_on_selector(".label-picture", READ_NUMBER_JS) == frame


def mark_first(page: "Page") -> None:
    """Mark the key events of take a with the keyboard alone."""
    for name, frame in true_events("a").items():
        go_to(page, frame)
        page.keyboard.press("n")
        page.keyboard.type(name)
        page.keyboard.press("Enter")


def wait_saved(page: "Page") -> None:
    page.wait_for_function("() => document.querySelector('.label-status').textContent === 'All saved'")


def ask(address: str) -> dict[str, Any]:
    """Return the labels that the server has, by id of the video, and the queue."""
    answer = httpx.get(f"{address}api/labels").json()
    videos = {each["id"]: each for each in answer["videos"]}
    return {**videos, "queue": answer["queue"], "revision": answer["revision"]}


def frames_of(video: dict[str, Any]) -> dict[str, int]:
    return {event["name"]: event["frame"] for event in video["events"]}


def by_hand(video: dict[str, Any]) -> dict[str, int]:
    return {event["name"]: event["frame"] for event in video["events"] if event["is_by_hand"]}


def review(page: "Page") -> str:
    """Open the review, and return the name of the video under review."""
    page.keyboard.press("v")
    return page.text_content(".review h2") or ""


def read_picture(page: "Page", selector: str) -> int:
    """Read the frame number that a picture tells."""
    return int(
        page.eval_on_selector(
            selector,
            f"""async (image) => {{
              await image.decode();
              const canvas = document.createElement("canvas");
              [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
              canvas.getContext("2d").drawImage(image, 0, 0);
              return ({READ_NUMBER_JS})(canvas);
            }}""",
        )
    )


def test_two_marked_events_are_found_in_all_other_videos(page: "Page", address: str) -> None:
    open_view(page, address)
    mark_first(page)
    page.wait_for_function(
        "() => document.querySelectorAll('li[data-state=suggested] .mini-event').length === 8"
    )
    wait_saved(page)
    labels = ask(address)
    assert frames_of(labels[A]) == true_events("a") and labels[A]["state"] == "labelled"
    for name in "bce":
        found = frames_of(labels[video_id(name)])
        assert all(abs(found[event] - frame) <= 1 for event, frame in true_events(name).items())
    shown = page.eval_on_selector_all(".label-videos li", "(rows) => rows.map((row) => row.dataset.id)")
    assert shown == [*labels["queue"], A] and shown[0] == D
    assert page.text_content(".label-progress-text") == "1 of 5 reviewed"


def test_review_nudges_accepts_skips_and_undoes(page: "Page", address: str) -> None:
    open_view(page, address)
    mark_first(page)
    wait_saved(page)
    before = ask(address)
    assert review(page) == "d"
    page.click('.moment[data-key="event lift"] .moment-choose')
    page.keyboard.press("ArrowRight")
    moved = frames_of(before[D])["lift"] + 1
    picture = f'.moment.is-chosen img[data-role="here"][data-frame="{moved}"]'
    page.wait_for_selector(picture)
    assert read_picture(page, picture) == moved
    assert read_picture(page, '.moment.is-chosen img[data-role="model"]') == true_events("a")["lift"]
    wait_saved(page)
    assert ask(address)[D]["state"] == "suggested"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.review h2').textContent !== 'd'")
    wait_saved(page)
    after = ask(address)
    assert after[D]["state"] == "labelled" and frames_of(after[D])["lift"] == moved
    second = page.text_content(".review h2")
    page.keyboard.press("s")
    page.wait_for_function(f"() => document.querySelector('.review h2').textContent !== '{second}'")
    wait_saved(page)
    assert ask(address)["queue"][-1] == video_id(second or "")
    for _ in range(3):  # the skip, the acceptance, the nudge
        page.keyboard.press("u")
    wait_saved(page)
    assert page.text_content(".review h2") == "d"
    undone = ask(address)
    assert undone["queue"] == before["queue"] and frames_of(undone[D]) == frames_of(before[D])


def test_segments_are_marked_moved_looped_renamed_and_deleted(page: "Page", address: str) -> None:
    open_view(page, address)
    go_to(page, 10)
    page.keyboard.press("i")
    go_to(page, 29)
    page.keyboard.press("o")
    page.keyboard.type("carry")
    page.keyboard.press("Enter")
    wait_saved(page)
    (segment,) = ask(address)[A]["segments"]
    assert (segment["name"], segment["start"], segment["end"]) == ("carry", 10, 30)
    box = page.locator(".marks-canvas").bounding_box()
    assert box is not None
    step, lane = box["width"] / PACES["a"][0], box["y"] + box["height"] - 10
    page.mouse.move(box["x"] + 30 * step, lane)
    page.mouse.down()
    page.mouse.move(box["x"] + 33 * step, lane)
    page.mouse.move(box["x"] + 36 * step, lane)
    page.mouse.up()
    page.wait_for_selector('.label-picture[data-frame="35"]')  # the last frame of the segment
    page.keyboard.press("a")
    wait_saved(page)
    assert ask(address)[A]["segments"][0]["end"] == 35
    page.keyboard.press("l")
    page.wait_for_function("() => Number(document.querySelector('.label-picture').dataset.frame) < 30")
    assert page.get_by_role("button", name="Loop").get_attribute("aria-pressed") == "true"
    page.keyboard.press(" ")
    page.keyboard.press("r")
    page.keyboard.type("lift up")
    page.keyboard.press("Enter")
    wait_saved(page)
    assert ask(address)[A]["segments"][0]["name"] == "lift up"
    page.keyboard.press(",")
    page.keyboard.press("Delete")
    wait_saved(page)
    assert ask(address)[A]["segments"] == []
    page.keyboard.press("Control+z")
    wait_saved(page)
    assert ask(address)[A]["segments"][0]["end"] == 35
    page.keyboard.press("Control+Shift+Z")
    wait_saved(page)
    assert ask(address)[A]["segments"] == []


def test_the_timeline_zooms_at_the_pointer_and_fits_again(page: "Page", address: str) -> None:
    open_view(page, address)
    box = page.locator(".marks-canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 0.75 * box["width"], box["y"] + 50
    page.mouse.click(x, y)
    page.wait_for_selector('.label-picture[data-frame="36"]')  # three quarters of 48 frames
    page.mouse.move(x, y)
    for _ in range(4):
        page.mouse.wheel(0, -100)
    page.mouse.click(x, y)
    page.mouse.click(box["x"] + 1, y)  # the left end is now nearer to frame 36
    page.wait_for_function("() => Number(document.querySelector('.label-picture').dataset.frame) < 30")
    assert int(page.get_attribute(".label-picture", "data-frame") or 0) > 15
    page.keyboard.press("0")
    page.mouse.click(box["x"] + 1, y)
    page.wait_for_selector('.label-picture[data-frame="0"]')


def test_a_corrected_suggestion_waits_for_acceptance(page: "Page", address: str) -> None:
    open_view(page, address)
    mark_first(page)
    wait_saved(page)
    found = frames_of(ask(address)[B])
    page.click(f'.label-videos li[data-id="{B}"] button')
    page.wait_for_selector(f'.label-picture[data-frame="{found["lift"]}"]')
    go_to(page, 9)
    page.keyboard.press("1")
    wait_saved(page)
    draft = ask(address)
    assert draft[B]["state"] == "suggested" and frames_of(draft[B]) == found | {"lift": 9}
    page.keyboard.press("Enter")
    wait_saved(page)
    assert ask(address)[B]["state"] == "labelled" and frames_of(ask(address)[B]) == found | {"lift": 9}


def test_labels_are_exported_and_imported(page: "Page", address: str, tmp_path: Path) -> None:
    open_view(page, address)
    mark_first(page)
    wait_saved(page)
    page.click(".label-files summary")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert {row["event"]: int(row["frame"]) for row in rows} == true_events("a")
    path.write_text("video,event,frame\nb.mp4,lift,7\n")
    page.set_input_files(".label-file", path)
    page.wait_for_selector(f'.label-videos li[data-id="{B}"][data-state="labelled"]')
    assert frames_of(ask(address)[B]) == {"lift": 7}


def test_two_windows_lose_nothing(page: "Page", browser: "Browser", address: str) -> None:
    other = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    for each in (page, other):
        open_view(each, address)
        wait_saved(each)
    mark_first(page)
    wait_saved(page)
    other.select_option(".label-bar select", B)
    go_to(other, 4)
    other.keyboard.press("n")
    other.keyboard.type("tap")
    other.keyboard.press("Enter")
    wait_saved(other)
    assert by_hand(ask(address)[A]) == true_events("a") and by_hand(ask(address)[B])["tap"] == 4
    go_to(page, 20)
    page.keyboard.press("1")
    wait_saved(page)
    other.select_option(".label-bar select", A)
    go_to(other, 21)
    other.keyboard.press("1")
    notice = other.locator(".label-conflicts .notice")
    notice.wait_for()
    assert "Another tab changed a meanwhile. Yours: lift at frame 21." in (notice.text_content() or "")
    assert by_hand(ask(address)[A])["lift"] == 20
    other.get_by_role("button", name="Use mine").click()
    wait_saved(other)
    assert by_hand(ask(address)[A])["lift"] == 21
    other.context.close()


SERVE = """
import sys
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer
StudioServer(Studio(Project.open(sys.argv[1])), port=int(sys.argv[2])).run(lambda: print("ready", flush=True))
"""


def serve(folder: Path, port: int) -> subprocess.Popen[str]:
    """Start a studio in a process of its own."""
    command = [sys.executable, "-c", SERVE, str(folder), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_killed_server_and_a_reload_lose_nothing(page: "Page", folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    address = f"http://127.0.0.1:{port}/"
    process = serve(folder, port)
    try:
        open_view(page, address)
        mark_first(page)
        wait_saved(page)
        kill(process)
        page.keyboard.press("Home")
        page.keyboard.press("1")
        page.wait_for_function(
            """() => document.querySelector(".label-status").textContent ===
               "The server cannot be reached; 1 change is kept here and sent again." """
        )
        page.click("#tabs a[href='#play']")  # what waits is sent from any view
        page.wait_for_selector(".label-view", state="detached")
        process = serve(folder, port)
        end = time.monotonic() + 30
        while frames_of(ask(address)[A]) != true_events("a") | {"lift": 0}:
            assert time.monotonic() < end, ask(address)[A]
            time.sleep(0.1)
        page.click("#tabs a[href='#label']")
        page.wait_for_selector(".label-picture[data-frame]")
        kill(process)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("1")
        page.wait_for_function("() => document.querySelector('.label-status').classList.contains('is-bad')")
        page.close()
        process = serve(folder, port)
        again = page.context.new_page()
        open_view(again, address)
        wait_saved(again)
        assert frames_of(ask(address)[A]) == true_events("a") | {"lift": 1}
    finally:
        kill(process)
