"""The application: the routes of all parts together, the page, and one line of JSON for every error."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel

from cycleback import __version__
from cycleback.errors import UserError
from cycleback.web import explore, matches
from cycleback.web.project import Project

PAGE = Path(__file__).parent / "page"


@dataclass
class Studio:
    """What all routes share."""

    project: Project

    @cached_property
    def matches(self) -> matches.Matches:
        """Embeddings and alignments."""
        return matches.Matches(self.project)


class VideoItem(BaseModel):
    """One video in the list; details come from its own route, because probing 500 videos takes a while."""

    id: str
    name: str
    action: str


class ProjectItem(BaseModel):
    """What the page needs for its first paint."""

    name: str
    folder: str
    videos: list[VideoItem]


def build_app(studio: Studio) -> FastAPI:
    """Put the API and the page together."""
    app = FastAPI(title="Cycleback studio", version=__version__, docs_url=None, redoc_url=None)
    app.include_router(routes(studio), prefix="/api")
    app.include_router(matches.routes(studio), prefix="/api")
    app.include_router(explore.routes(studio), prefix="/api")
    app.add_exception_handler(UserError, _tell)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def routes(studio: Studio) -> APIRouter:
    """Describe the project."""
    router = APIRouter()

    @router.get("/project")
    def show_project() -> ProjectItem:
        project = studio.project
        videos = [
            VideoItem(id=each.id, name=each.name, action=each.record.action)
            for each in project.videos.values()
        ]
        return ProjectItem(name=project.folder.name, folder=str(project.folder), videos=videos)

    return router


async def _tell(request: Request, error: Exception) -> JSONResponse:
    """Answer an error the user can fix with its one line."""
    detail: dict[str, Any] = {"error": str(error)}
    return JSONResponse(detail, status_code=422)
