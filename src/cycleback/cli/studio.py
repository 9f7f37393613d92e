"""`cycleback studio`: open the studio, a local web page."""

from pathlib import Path
from typing import Annotated

import typer


def studio(
    folder: Annotated[Path, typer.Argument(help="A folder of videos.")] = Path("."),
    port: Annotated[int, typer.Option(help="Listen on this port of the loopback address; 0: any.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open a web page on which videos are aligned, played in sync, labelled and corrected.

    Example: cycleback studio swings
    """
    import uvicorn

    from cycleback.web.app import Studio, build_app
    from cycleback.web.project import Project

    uvicorn.run(build_app(Studio(Project.open(folder))), host="127.0.0.1", port=port or 8765)
