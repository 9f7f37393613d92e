"""The application: the routes of all parts together, the page, and one line of JSON for every error."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from cycleback import __version__
from cycleback.errors import UserError
from cycleback.web import explore, jobs, labels, matches, media
from cycleback.web.jobs import Jobs
from cycleback.web.journal import Journal, StaleRevision
from cycleback.web.labels import Labels
from cycleback.web.matches import Matches
from cycleback.web.media import Media
from cycleback.web.project import NotFound, Project, ProjectVideo
from cycleback.web.proxies import Proxies

PAGE = Path(__file__).parent / "page"
PARTS = (media, matches, labels, explore, jobs)
"""The modules with a function `routes(studio)`; their routes are found under /api."""


class Studio:
    """What all routes share."""

    def __init__(self, project: Project, *, run: str = "pretrained") -> None:
        self.project = project
        self.run = run  # the encoder: a run folder, the name of a model, or "pretrained"
        self._stop = threading.Event()

    @cached_property
    def journal(self) -> Journal:
        """What the user typed."""
        return Journal(self.project.state)

    @cached_property
    def media(self) -> Media:
        """What a browser plays."""
        return Media(Proxies(self.project.state / "proxies"))

    @cached_property
    def matches(self) -> Matches:
        """Embeddings and alignments."""
        return Matches(self.project)

    @cached_property
    def labels(self) -> Labels:
        """Labels by hand, and what follows from them."""
        return Labels(self.project, self.journal, self.matches)

    @cached_property
    def jobs(self) -> Jobs:
        """Embedding and training in the background."""
        return Jobs(self.project, encoder=self.run)

    def look_at_videos(self) -> None:
        """Read the properties of all videos, one after the other, until the studio closes."""
        for video in list(self.project.videos.values()):
            if self._stop.is_set():
                return
            video.look()

    def open(self) -> None:
        """Start what runs beside the requests."""
        self._stop.clear()
        threading.Thread(target=self.look_at_videos, name="look", daemon=True).start()

    def close(self) -> None:
        """Stop what runs beside the requests."""
        self._stop.set()
        self.media.proxies.close()
        self.jobs.close()


class VideoItem(BaseModel):
    """One video in the list; details come from its own route, because probing 500 videos takes a while."""

    id: str
    name: str
    action: str
    error: str  # why it cannot be played; "" if it can, or if that is not known yet
    frames: int | None  # None: not known yet
    duration_s: float | None


class ProjectItem(BaseModel):
    """What the page needs for its first paint."""

    name: str
    folder: str
    run: str
    problem: str  # what is wrong with the folder as a whole; "" if nothing is
    videos: list[VideoItem]


def build_app(studio: Studio) -> FastAPI:
    """Put the API and the page together."""

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        studio.open()
        yield
        studio.close()

    app = FastAPI(
        title="Cycleback studio",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=live,
    )
    app.include_router(routes(studio), prefix="/api")
    for part in PARTS:
        app.include_router(part.routes(studio), prefix="/api")
    app.add_exception_handler(UserError, tell_user_error)
    app.add_exception_handler(HTTPException, tell_http_error)
    app.add_exception_handler(RequestValidationError, tell_bad_request)
    app.add_exception_handler(Exception, tell_failure)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def routes(studio: Studio) -> APIRouter:
    """Describe the project."""
    router = APIRouter()

    @router.get("/project")
    def show_project() -> ProjectItem:
        project = studio.project
        project.refresh()
        return ProjectItem(
            name=project.folder.name,
            folder=str(project.folder),
            run=studio.run,
            problem=project.problem,
            videos=[describe_video(video) for video in project.videos.values()],
        )

    return router


def describe_video(video: ProjectVideo) -> VideoItem:
    """Tell what is known of a video without reading it."""
    known = video.info if video.is_known else None
    return VideoItem(
        id=video.id,
        name=video.name,
        action=video.record.action,
        error=video.error,
        frames=known and known.num_frames,
        duration_s=known and known.duration_s,
    )


async def tell_user_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an error the user can fix with its one line."""
    if isinstance(error, StaleRevision):
        return JSONResponse({"error": str(error), "revision": error.revision}, status_code=409)
    return JSONResponse({"error": str(error)}, status_code=404 if isinstance(error, NotFound) else 422)


async def tell_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an unknown address or method with one line."""
    assert isinstance(error, HTTPException)
    line = f"{request.method} {request.url.path}: {error.detail}"
    return JSONResponse({"error": line}, status_code=error.status_code, headers=error.headers)


async def tell_bad_request(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that does not fit its route with one line: the first value that is wrong."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse({"error": f"{where}: {first['msg']}"}, status_code=422)


async def tell_failure(request: Request, error: Exception) -> JSONResponse:
    """Answer a fault of the program; the traceback is in the terminal."""
    line = f"the studio failed ({type(error).__name__}: {error}); the terminal shows more"
    return JSONResponse({"error": line}, status_code=500)
