"""The application: the routes of all parts together, the page, and one line of JSON for every error."""

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from cycleback import __version__
from cycleback.errors import UserError
from cycleback.web import explore, jobs, labels, matches, media, project, uploads
from cycleback.web.jobs import Jobs
from cycleback.web.journal import Journal, StaleRevision
from cycleback.web.labels import Labels
from cycleback.web.matches import Matches
from cycleback.web.media import Media
from cycleback.web.project import NotFound, Project
from cycleback.web.proxies import Proxies
from cycleback.web.security import HEADERS, Access, Guard

PAGE = Path(__file__).parent / "page"
DRAFT_AGE_S = 24 * 3600.0
PARTS = (project, uploads, media, matches, labels, explore, jobs)
"""The modules with a function `routes(studio)`; their routes are found under /api."""


class Studio:
    """What all routes share."""

    def __init__(self, project: Project, *, run: str = "pretrained") -> None:
        self.project = project
        self.run = run  # the encoder: a run folder, the name of a model, or "pretrained"
        self.journal = Journal(project.state)  # what the user typed
        self.media = Media(Proxies(project.state / "proxies"))  # what a browser plays
        self.matches = Matches(project, self.journal)  # embeddings, alignments, pins
        self.labels = Labels(project, self.journal, self.matches)  # labels by hand, and what follows
        self.jobs = Jobs(project, encoder=run)  # embedding and training in processes of their own
        self._stop = threading.Event()

    def look_at_videos(self) -> None:
        """Read the properties of all videos, one after the other, until the studio closes."""
        for video in list(self.project.videos.values()):
            if self._stop.is_set():
                return
            video.look()

    def open(self) -> None:
        """Start what runs beside the requests."""
        self._stop.clear()
        remove_drafts(self.project.state)
        threading.Thread(target=self.look_at_videos, name="look", daemon=True).start()

    def close(self) -> None:
        """Stop what runs beside the requests."""
        self._stop.set()
        self.media.proxies.close()
        self.jobs.close()


def remove_drafts(state: Path) -> None:
    """Remove what a killed studio left half-written; what is younger than a day may still be in use."""
    drafts = [*(state / "uploads").glob("*"), *(state / "proxies").glob(".*")]
    for draft in drafts:
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > DRAFT_AGE_S:
                draft.unlink()


def build_app(studio: Studio, access: Access | None = None) -> FastAPI:
    """Put the API and the page together; by default for requests of this machine only."""

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
    for part in PARTS:
        app.include_router(part.routes(studio), prefix="/api")
    app.add_exception_handler(UserError, tell_user_error)
    app.add_exception_handler(HTTPException, tell_http_error)
    app.add_exception_handler(RequestValidationError, tell_bad_request)
    app.add_exception_handler(Exception, tell_failure)
    app.add_middleware(Guard, access=access or Access())
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


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
    return JSONResponse({"error": line}, status_code=500, headers=HEADERS)
