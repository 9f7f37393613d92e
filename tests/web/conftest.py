"""A project of small clips with coded frame numbers, and a studio that serves it."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")
pytest.importorskip("uvicorn", reason="needs the extra 'studio'")

from starlette.testclient import TestClient

from coded_clips import write_project
from cycleback.web.app import Studio, build_app
from cycleback.web.project import Project
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def coded_clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bframes.mp4, uneven.mp4, intra.mp4 and sound.mp4; do not write to it."""
    return write_project(tmp_path_factory.mktemp("coded"))


@pytest.fixture
def project_folder(coded_clips: Path, tmp_path: Path) -> Path:
    """A copy of the coded clips for one test."""
    return Path(shutil.copytree(coded_clips, tmp_path / "clips"))


@pytest.fixture
def studio(project_folder: Path) -> Studio:
    """What the routes share, for a project of the coded clips."""
    return Studio(Project.open(project_folder))


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    """Ask the application directly, without a network."""
    with TestClient(build_app(studio), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def server(studio: Studio) -> Iterator[StudioServer]:
    """A studio at `server.address`, in a thread; `server.studio` is what its routes share."""
    running = StudioServer(studio, port=0).start()
    yield running
    running.close()


CHROMIUM = Path("/usr/bin/chromium")
POLICY = "Content Security Policy"  # in what Chromium says when the page breaks it


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """One Chromium for all tests of the page."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page of its own storage; an error in its JavaScript fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.wait_for_function = lambda *args, **options: wait_for_function(page, *args, **options)  # type: ignore
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if POLICY in told.text else None)
    yield page
    context.close()
    assert not errors, errors


def wait_for_function(
    page: "Page", expression: str, *, arg: object = None, timeout: float = 30_000
) -> object:
    """Wait until an expression is true; `timeout` in milliseconds.

    Playwright's own method calls `eval` in the page, which the security policy of the page refuses.
    """
    end = time.monotonic() + timeout / 1000
    while not (value := page.evaluate(expression, arg)):
        if time.monotonic() > end:
            raise TimeoutError(f"still not true after {timeout / 1000:g} s: {expression}")
        page.wait_for_timeout(30)
    return value
