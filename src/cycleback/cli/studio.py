"""`cycleback studio`: open the studio, a local web page."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.inputs import PRETRAINED
from cycleback.cli.options import Json, Run
from cycleback.cli.output import print_result
from cycleback.errors import UserError, require

if TYPE_CHECKING:
    from cycleback.web.server import StudioServer


def studio(
    folder: Annotated[
        Path, typer.Argument(help="A folder of videos, which may still be empty, or a run.")
    ] = Path("."),
    run: Run = PRETRAINED,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Show the page in a browser.")
    ] = True,
    port: Annotated[
        int | None, typer.Option(help="Use this port (default: 8765 or any free one).", min=0, max=65535)
    ] = None,
    host: Annotated[
        str, typer.Option(help="Let other machines connect at this address, with a token (0.0.0.0: any).")
    ] = "127.0.0.1",
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Allow links to videos outside the folder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Align, play, label and correct videos on a web page; nothing leaves this machine.

    What you do is kept in the folder .cycleback beside the videos. Ctrl-C ends the studio.

    Example: cycleback studio swings

    Example: cycleback studio runs/golf
    """
    require("fastapi", extra="studio", purpose="the studio")
    require("uvicorn", extra="studio", purpose="the studio")
    folder, run = find_videos(folder, run)
    check_run(run)
    from cycleback.web.app import Studio
    from cycleback.web.project import Project
    from cycleback.web.server import StudioServer

    project = Project.open(folder, follow_links=follow_links)
    server = StudioServer(Studio(project, run=run), host=host, port=port)
    facts = {"address": server.address, "folder": str(project.folder), "videos": len(project.videos)}
    text = f"{len(project.videos)} videos in {project.folder}: {server.address} (Ctrl-C ends)"

    def tell() -> None:
        print_result(facts, text, as_json=as_json)
        sys.stdout.flush()
        if browser:
            open_browser(server)

    server.run(on_start=tell)


def find_videos(folder: Path, run: str) -> tuple[Path, str]:
    """Return the folder of videos and the encoder that the user means; a run knows where its videos are."""
    if (folder / "index.json").is_file() and (folder / "embeddings.npy").is_file():
        raise UserError(f"{folder} is an embedding set; pass the folder of its videos")
    if not (folder / "recipe.toml").is_file():
        return folder, run
    from cycleback.runs import run_videos

    videos = run_videos(folder)
    if videos is None:
        raise UserError(
            f"the videos of {folder} are not where it was trained: cycleback studio VIDEOS --run {folder}"
        )
    return videos, str(folder)


def check_run(run: str) -> None:
    """Refuse an encoder that cannot be loaded, before the page shows it."""
    if run != PRETRAINED:
        from cycleback.runs.folder import find_run, saved_recipe

        saved_recipe(find_run(run))


def open_browser(server: "StudioServer") -> None:
    """Open the page, unless there is no screen to show it on: a browser in the terminal is of no use."""
    import webbrowser

    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform != "linux" or any(os.environ.get(name) for name in screens):
        webbrowser.open(server.address)
