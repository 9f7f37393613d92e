"""The studio beside a cell: the page that a notebook shows in a frame."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx

import cycleback

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def serve_page(text: str) -> Iterator[str]:
    """Serve one page at another port of this machine, as a notebook does; yield its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_studio_shows_itself_in_a_frame(project_folder: Path, page: "Page") -> None:
    beside = cycleback.studio(project_folder, port=0, height=500)
    try:
        frame = beside._repr_html_()
        assert re.search(r'src="http://127.0.0.1:\d+/"', frame) and 'height="500"' in frame
        with serve_page(frame) as notebook:
            page.goto(notebook)
            page.frame_locator("iframe").get_by_role("link", name="Play").wait_for()
    finally:
        beside.close()


def test_a_closed_studio_answers_no_more(project_folder: Path) -> None:
    beside = cycleback.studio(project_folder, port=0)
    assert httpx.get(f"{beside.address}api/project").json()["name"] == "clips"
    beside.close()
    try:
        httpx.get(f"{beside.address}api/project")
    except httpx.ConnectError:
        return
    raise AssertionError("it still answers")
