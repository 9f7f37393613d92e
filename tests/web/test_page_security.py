"""What a real browser lets a foreign page do with the studio: show it in a frame on this machine, no more."""

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cycleback.web.project import video_id
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

ATTACK_JS = """
async (studio) => {
  const attempts = {};
  const attempt = async (name, action) => {
    try { attempts[name] = await action(); } catch (error) { attempts[name] = error.name; }
  };
  await attempt("read", async () => (await fetch(`${studio}api/project`)).status);
  await attempt("json", () => fetch(`${studio}api/pins`, {
    method: "PUT", headers: {"Content-Type": "application/json"}, body: '{"revision": 0, "pins": []}',
  }).then((answer) => answer.status));
  const clip = await (await fetch("clip.mp4")).blob();
  for (const type of ["text/plain", "video/mp4"]) {
    const options = {method: "POST", mode: "no-cors", body: new Blob([clip], {type})};
    await attempt(type, async () => (await fetch(`${studio}api/videos?name=evil.mp4`, options)).type);
  }
  await attempt("picture", () => new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve("shown");
    image.onerror = () => resolve("refused");
    image.src = `${studio}api/videos/VIDEO/frames/0.jpg`;
  }));
  return attempts;
}
"""
SHOW_JS = """
(address) => {
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
}
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def foreign(tmp_path: Path, coded_clips: Path) -> Iterator[str]:
    """Another site on this machine, at another port, with a clip of its own."""
    (tmp_path / "site").mkdir()
    shutil.copy(coded_clips / "intra.mp4", tmp_path / "site" / "clip.mp4")
    (tmp_path / "site" / "index.html").write_text(
        "<!doctype html><title>Other</title><link rel=icon href=data:,>"
    )
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "site"))
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{site.server_port}/"
    site.shutdown()
    thread.join()
    site.server_close()


def test_a_foreign_page_reads_and_changes_nothing(
    server: StudioServer, page: "Page", foreign: str, project_folder: Path
) -> None:
    before = sorted(path.name for path in project_folder.iterdir())
    route = f"{server.address}api/videos/{video_id('intra')}/frames/0.jpg"
    assert page.request.get(route).status == 200  # what the foreign page asks for is there
    page.goto(foreign)
    attempts = page.evaluate(ATTACK_JS.replace("VIDEO", video_id("intra")), server.address)
    refused = dict.fromkeys(("read", "json", "text/plain", "video/mp4"), "TypeError")
    assert attempts == {**refused, "picture": "refused"}
    assert sorted({path.name for path in project_folder.iterdir()} - {".cycleback"}) == before
    assert server.studio.journal.revision("pins") == 0


def test_a_notebook_on_this_machine_may_show_the_studio(
    server: StudioServer, page: "Page", foreign: str
) -> None:
    page.goto(foreign)
    page.evaluate(SHOW_JS, server.address)
    frame = page.frame_locator("iframe")
    frame.locator("#project-name").get_by_text("clips").wait_for()


def test_the_page_is_isolated_from_other_origins(server: StudioServer, page: "Page") -> None:
    page.goto(server.address)
    assert page.evaluate("crossOriginIsolated") is True
