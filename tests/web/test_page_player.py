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
    from playwright.sync_api import Page

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


def expected_frames(page: "Page", frame: int) -> dict[str, int]:
    """What each video should show at a frame of the reference, by the server's alignment."""
    videos = {video["id"]: video["name"] for video in ask(page, "project")["videos"]}
    reference = page.evaluate("studio.reference")
    aligned = ask(page, f"alignment?reference={reference}&videos={','.join(videos)}")["videos"]
    return {videos[video["id"]]: video["frames"][frame] for video in aligned} | {videos[reference]: frame}


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
