"""A project of small clips with coded frame numbers, and a studio that serves it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")
pytest.importorskip("uvicorn", reason="needs the extra 'studio'")

from starlette.testclient import TestClient

from coded_clips import write_project
from cycleback.web.app import Studio, build_app
from cycleback.web.project import Project
from cycleback.web.server import StudioServer


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
