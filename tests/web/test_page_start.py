"""Start in a browser: videos come in, are aligned at once, and an encoder is fitted and cancelled."""

from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer
from moving_clips import make_clips

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_from_an_empty_folder_to_a_fit(page: "Page", tmp_path: Path) -> None:
    clips = make_clips(tmp_path / "camera")
    (tmp_path / "camera" / "notes.mp4").write_text("no video")
    (tmp_path / "project").mkdir()
    server = StudioServer(Studio(Project.open(tmp_path / "project")), port=0).start()
    try:
        page.goto(server.address)
        page.wait_for_function("document.querySelector('#view').dataset.view === 'start'")  # nothing to play
        page.set_input_files("#videos-in", sorted(clips.glob("*.mp4")))
        page.get_by_text("3 of 4 videos added.").wait_for()
        assert "notes.mp4" in page.locator(".drop [role=status]").inner_text()
        assert sorted(path.name for path in (tmp_path / "project").glob("*.mp4")) == [
            f"clip-{n}.mp4" for n in range(3)
        ]
        page.get_by_role("button", name="Align now").click()
        page.wait_for_function("document.querySelector('#view').dataset.view === 'play'", timeout=120_000)
        page.wait_for_function("studio.alignment.size >= 2")

        page.goto(f"{server.address}#start")
        page.locator("#fit-name").fill("mine")
        page.get_by_label("Updates").fill("5000")
        page.get_by_role("button", name="Start fitting").click()
        card = page.locator(".job").first
        card.locator(".u-over").wait_for(timeout=120_000)  # the curves grow while it learns
        assert card.get_by_role("heading").inner_text() == "mine"
        bright = "[...document.querySelector('.similarity').getContext('2d').getImageData(0, 0, 9, 9).data]"
        page.wait_for_function(f"new Set({bright}).size > 5")
        card.get_by_role("button", name="Cancel").click()
        card.get_by_role("button", name="Resume").wait_for(timeout=60_000)
        assert "cancelled" in card.get_by_role("status").inner_text()
    finally:
        server.close()


def test_a_finished_fit_opens(page: "Page", tmp_path: Path) -> None:
    server = StudioServer(Studio(Project.open(make_clips(tmp_path / "clips"))), port=0).start()
    try:
        page.goto(f"{server.address}#start")
        page.get_by_label("Updates").fill("10")
        page.get_by_role("button", name="Start fitting").click()
        page.wait_for_function("document.querySelector('#view').dataset.view === 'play'", timeout=120_000)
        page.wait_for_function("studio.alignment.size >= 2")
        assert page.request.get(f"{server.address}api/embeddings").json()["run"].endswith("runs/fit-1")
    finally:
        server.close()
