"""The view Align in a browser: drag the path, and see path, frames and player follow; nothing is lost."""

import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coded_clips import READ_NUMBER_JS
from cycleback.data.pins import Pin, read_pins
from cycleback.embeddings import EmbeddingSet
from cycleback.web.app import Studio
from cycleback.web.project import Project, video_id
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

FRAMES = {"bframes": 75, "intra": 50, "sound": 66, "uneven": 60}
PACE = {"bframes": 1.0, "intra": 1.6, "sound": 0.7, "uneven": 1.3}  # exponent of time: no two run alike
A, B = video_id("bframes"), video_id("intra")
SIZE = FRAMES["bframes"], FRAMES["intra"]
AT, TO = 37, 24  # a cell far from the path


def walk(name: str) -> NDArray[np.float64]:
    """Embeddings (N, 6) of one action at the pace of this video."""
    progress = 2 * np.linspace(0, 1, FRAMES[name]) ** PACE[name]
    return np.column_stack([f(progress * k) for k in (1, 3, 5) for f in (np.sin, np.cos)])


@pytest.fixture
def address(server: StudioServer) -> str:
    store_embeddings(server.studio)
    return server.address


def store_embeddings(studio: Studio) -> None:
    studio.matches.store.store(EmbeddingSet.from_arrays({name: walk(name) for name in FRAMES}, fps=30))


def open_align(page: "Page", address: str) -> None:
    """Open the view and wait until the path is there and both previews show an exact frame."""
    page.goto(address + "#align")
    page.locator(".align .note", has_text="Mean confidence").wait_for()
    while page.evaluate("studio.isSettling"):
        page.wait_for_timeout(30)
    page.locator(".align .previews canvas[data-frame]").nth(1).wait_for()


def point(page: "Page", i: int, j: int) -> tuple[float, float]:
    """Where the middle of a cell lies on the screen, while the whole matrix is shown."""
    box = page.locator("canvas.matrix").bounding_box()
    assert box is not None
    return box["x"] + (i + 0.5) / SIZE[0] * box["width"], box["y"] + (j + 0.5) / SIZE[1] * box["height"]


def drag(page: "Page", start: tuple[int, int], end: tuple[int, int]) -> None:
    page.mouse.move(*point(page, *start))
    page.mouse.down()
    page.mouse.move(*point(page, *end), steps=4)
    page.mouse.up()


def ask(page: "Page", path: str) -> Any:
    """The server's JSON answer, asked for beside the page's own code."""
    return page.request.get(page.url.split("#")[0] + "api/" + path).json()


def path_frame(page: "Page", i: int) -> int:
    return int(ask(page, f"pairs/{A}/{B}")["frames"][i])


def drag_the_path(page: "Page") -> None:
    """Pin cell (AT, TO) by dragging the path there, and wait until it is in the list."""
    drag(page, (AT, path_frame(page, AT)), (AT, TO))
    page.get_by_role("button", name=f"frame {AT} ↔ frame {TO}").wait_for()


def is_path_painted(page: "Page", i: int, j: int) -> bool:
    """Whether a cell has the colour of a path or a pin; the similarity has pale ones only."""
    red, green, blue = page.evaluate(
        """([i, j, width, height]) => {
          const canvas = document.querySelector("canvas.matrix");
          const [x, y] = [(i + 0.5) / width * canvas.width, (j + 0.5) / height * canvas.height];
          return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data.slice(0, 3)];
        }""",
        [i, j, *SIZE],
    )
    return max(red, green, blue) - min(red, green, blue) > 90


def read_previews(page: "Page") -> list[int]:
    """The frame numbers that the pixels of both previews tell, once they are exact."""
    page.locator(".align .previews canvas[data-frame]").nth(1).wait_for()
    return page.evaluate(
        f"""() => [...document.querySelectorAll(".align .previews canvas")].map({READ_NUMBER_JS})"""
    )


def test_a_dragged_path_is_followed_by_everything(page: "Page", address: str, project_folder: Path) -> None:
    open_align(page, address)
    before = path_frame(page, AT)
    assert abs(before - TO) > 5 and is_path_painted(page, AT, before) and not is_path_painted(page, AT, TO)
    drag_the_path(page)
    assert ask(page, "pins")["pins"] == [[A, AT, B, TO]]
    assert read_pins(project_folder) == [Pin("bframes", AT, "intra", TO)]
    page.mouse.move(0, 0)
    page.wait_for_function(
        f"studio.alignment.get({B!r}).frames[{AT}] === {TO} && studio.clock.frame === {AT}"
    )
    page.locator(".align .here", has_text="On the path; confidence 1.00").wait_for()
    assert read_previews(page) == [AT, TO] and is_path_painted(page, AT, TO)
    after = ask(page, f"pairs/{A}/{B}")["path"]
    assert [AT, TO] in after and all(is_path_painted(page, i, j) for i, j in after[10:-10:9])
    page.get_by_role("link", name="Play").click()
    tile = page.locator(f".tile[data-id='{B}'] canvas[data-frame='{TO}']").first
    tile.wait_for()
    assert tile.evaluate(READ_NUMBER_JS) == TO


def test_pins_survive_reload_and_undo(page: "Page", address: str) -> None:
    open_align(page, address)
    drag_the_path(page)
    page.reload()
    page.get_by_role("button", name=f"frame {AT} ↔ frame {TO}").wait_for()
    drag(page, (AT, TO), (AT, TO + 6))  # the pin itself is moved
    page.get_by_role("button", name=f"frame {AT} ↔ frame {TO + 6}").wait_for()
    assert ask(page, "pins")["pins"] == [[A, AT, B, TO + 6]]
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name=f"frame {AT} ↔ frame {TO}").wait_for()
    page.get_by_role("button", name=f"Delete pin {AT} to {TO}").click()
    page.get_by_text("None yet.").wait_for()
    assert ask(page, "pins")["pins"] == []


def test_crossing_pins_are_refused_with_a_sentence(page: "Page", address: str) -> None:
    open_align(page, address)
    drag_the_path(page)
    drag(page, (60, path_frame(page, 60)), (60, TO - 9))
    page.locator("#message", has_text="cross").wait_for()
    assert ask(page, "pins")["pins"] == [[A, AT, B, TO]]
    assert page.locator(".align .pins li").count() == 1


def test_keys_move_the_cell_and_pin_it(page: "Page", address: str) -> None:
    open_align(page, address)
    page.locator("canvas.matrix").focus()
    for key in ("Shift+ArrowRight", "ArrowRight", "Shift+ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    chosen = page.get_by_role("button", name=re.compile("^Pin "))
    first = ask(page, f"pairs/{A}/{B}")["frames"][0]
    assert chosen.text_content() == f"Pin 11 ↔ {first + 11}"
    page.keyboard.press("p")
    page.get_by_role("button", name=f"frame 11 ↔ frame {first + 11}").wait_for()
    assert path_frame(page, 11) == first + 11
    assert ask(page, "pins")["pins"] == [[A, 11, B, first + 11]] and read_previews(page) == [11, first + 11]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("p")  # another match of the same frame replaces the first
    page.get_by_role("button", name=f"frame 11 ↔ frame {first + 12}").wait_for()
    assert ask(page, "pins")["pins"] == [[A, 11, B, first + 12]]
    page.keyboard.press("Delete")
    page.get_by_text("None yet.").wait_for()


def test_the_similarity_is_there_before_the_path(page: "Page", address: str, server: StudioServer) -> None:
    is_free, matches = threading.Event(), server.studio.matches
    align = matches.align
    matches.align = lambda *args, **options: is_free.wait(30) and align(*args, **options)  # type: ignore
    page.goto(address + "#align")
    page.locator(".align .note", has_text="Aligning…").wait_for()
    page.wait_for_function(
        """() => {
          const canvas = document.querySelector("canvas.matrix");
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Set(data).size > 50;
        }"""
    )
    page.mouse.move(*point(page, 70, 3))
    page.locator(".align figcaption", has_text="frame 70").wait_for()
    is_free.set()
    page.locator(".align .note", has_text="Mean confidence").wait_for()


def test_two_fingers_zoom(page: "Page", address: str) -> None:
    open_align(page, address)
    x, y = point(page, 40, 25)
    touch = page.context.new_cdp_session(page)

    def put_fingers(apart: float, kind: str) -> None:
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    put_fingers(30, "touchStart")
    for apart in (60, 120, 180):
        put_fingers(apart, "touchMove")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    left = point(page, 0, 0)[0]  # of the canvas, and no longer of frame 0
    page.mouse.move(left, y)
    caption = page.locator(".align figcaption").first
    found = re.search(r"frame (\d+)", caption.text_content() or "")
    assert found is not None and int(found[1]) == pytest.approx(40 * 5 / 6, abs=2)  # six times as large
    assert not ask(page, "pins")["pins"]


def test_zoom_keeps_the_cell_under_the_pointer_and_cells_stay_crisp(page: "Page", address: str) -> None:
    open_align(page, address)
    x, y = point(page, 50, 11)
    page.mouse.move(x, y)
    caption = page.locator(".align figcaption")
    for _ in range(12):
        page.mouse.wheel(0, -300)
    page.wait_for_timeout(200)
    assert "frame 50" in (caption.nth(0).text_content() or "")
    assert "frame 11" in (caption.nth(1).text_content() or "")
    row = page.evaluate(
        """([x, y]) => {
          const canvas = document.querySelector("canvas.matrix");
          const box = canvas.getBoundingClientRect();
          return [...canvas.getContext("2d").getImageData(0, y - box.top, canvas.width, 1).data];
        }""",
        [x, y],
    )
    pixels = np.array(row).reshape(-1, 4)
    changes = np.flatnonzero((np.diff(pixels[:, :3], axis=0) != 0).any(axis=1))
    assert len(changes) < 25  # about twelve cells of 48 pixels, each of one colour; and the cell's frame
    page.mouse.down()
    page.mouse.move(x + 96, y, steps=3)  # two cells
    page.mouse.up()
    page.wait_for_timeout(100)
    assert "frame 50" in (caption.nth(0).text_content() or "")  # the picture moved along
    page.get_by_role("button", name="Fit").click()
    page.mouse.move(*point(page, 70, 3))
    page.wait_for_timeout(100)
    assert "frame 70" in (caption.nth(0).text_content() or "") and read_previews(page) == [70, 3]


def test_the_method_is_that_of_the_player(page: "Page", address: str) -> None:
    open_align(page, address)
    page.get_by_label("Method").select_option("nearest")
    expected = ask(page, f"alignment?reference={A}&videos={B}&method=nearest")["videos"][0]["frames"]
    page.wait_for_function(f"String(studio.alignment.get({B!r}).frames) === '{','.join(map(str, expected))}'")
    page.get_by_label("Compare with").select_option(label="sound")
    page.locator(".align figcaption", has_text="sound").wait_for()
    page.get_by_label("Reference").select_option(label="sound")
    page.locator(".align figcaption", has_text="sound").first.wait_for()
    assert page.evaluate("studio.reference") == video_id("sound")


def test_a_second_tab_does_not_overwrite_the_first(page: "Page", address: str) -> None:
    open_align(page, address)
    second = page.context.new_page()
    open_align(second, address)
    drag_the_path(page)
    drag(second, (60, path_frame(second, 60)), (60, 44))
    second.locator("#message", has_text="changed elsewhere").wait_for()
    second.get_by_role("button", name=f"frame {AT} ↔ frame {TO}").wait_for()
    assert ask(page, "pins")["pins"] == [[A, AT, B, TO]]
    drag(second, (60, path_frame(second, 60)), (60, 44))  # now it knows
    second.get_by_role("button", name="frame 60 ↔ frame 44").wait_for()
    assert ask(page, "pins")["pins"] == [[A, AT, B, TO], [A, 60, B, 44]]


def test_it_fits_on_a_phone(page: "Page", address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_align(page, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator("canvas.matrix").bounding_box()
    assert box is not None and box["width"] > 280 and box["height"] > 300
    page.locator("canvas.matrix").scroll_into_view_if_needed()
    drag_the_path(page)


SERVE = """
import sys
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer

StudioServer(Studio(Project.open(sys.argv[1])), port=int(sys.argv[2])).run(lambda: print("ready", flush=True))
"""


def test_pins_survive_a_killed_server(page: "Page", project_folder: Path) -> None:
    store_embeddings(Studio(Project.open(project_folder)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(project_folder), str(port)]
    for turn in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout is not None and child.stdout.readline() == "ready\n"
                open_align(page, f"http://127.0.0.1:{port}/")
                if turn == 0:
                    drag_the_path(page)
                page.get_by_role("button", name=f"frame {AT} ↔ frame {TO}").wait_for()
                assert path_frame(page, AT) == TO
            finally:
                child.send_signal(signal.SIGKILL)
    assert read_pins(project_folder) == [Pin("bframes", AT, "intra", TO)]
