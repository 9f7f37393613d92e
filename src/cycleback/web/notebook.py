"""The studio beside a cell of a notebook."""

from html import escape
from pathlib import Path

from cycleback.errors import require


class OpenStudio:
    """A studio that runs in the background; a notebook shows its page. `close` ends it."""

    def __init__(self, folder: Path | str, *, run: str, port: int | None, height: int) -> None:
        require("fastapi", extra="studio", purpose="the studio")
        require("uvicorn", extra="studio", purpose="the studio")
        from cycleback.web.app import Studio
        from cycleback.web.project import Project
        from cycleback.web.server import StudioServer

        self.height = height
        self._server = StudioServer(Studio(Project.open(folder), run=run), port=port).start()

    @property
    def address(self) -> str:
        """The address of the page, for a browser."""
        return self._server.address

    def close(self) -> None:
        """End the studio; everything that was typed is kept."""
        self._server.close()

    def __repr__(self) -> str:
        return f"studio at {self.address}"

    def _repr_html_(self) -> str:
        address = escape(self.address, quote=True)
        allowed = "fullscreen; autoplay; cross-origin-isolated"
        return f'<iframe src="{address}" width="100%" height="{self.height}" allow="{allowed}"></iframe>'


def studio(
    folder: Path | str = ".", *, run: str = "pretrained", port: int | None = None, height: int = 720
) -> OpenStudio:
    """Open the studio on a folder of videos; as the last line of a cell it shows itself below.

    Args:
        run: the encoder: a run folder, the name of a model, or "pretrained".
        port: of the loopback address; by default 8765, or any that is free.
        height: of the page beside the cell, in pixels.
    """
    return OpenStudio(folder, run=run, port=port, height=height)
