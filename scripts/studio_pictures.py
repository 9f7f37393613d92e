"""Make the pictures of the studio for the docs: each view, the player on a phone, and a recording of it.

If the folder of videos does not exist, videos are rendered there: pictures of them may be published.

Usage: python scripts/studio_pictures.py --work /tmp/pouring        # writes docs/images/studio-*.webp
"""

import argparse
import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from cycleback.cli.main import main as cycleback_main
from cycleback.files import write_bytes, write_text
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
MAX_BYTES = 150_000
MAX_RECORDING_BYTES = 900_000
RENDER = "--videos 12 --seed 4 --size 256 --anomalies 3"
VIEWS = ("play", "align", "label", "search", "anomalies", "map", "progress", "sound", "strips", "start")
SHOWN = 6
MOMENT = 0.6  # of the reference, where something happens
LOOK_MS = 3000  # until a view has drawn everything
SHOWN_FRAMES = 'document.querySelectorAll(".tile .picture > canvas[data-frame]").length'
RECORDED_WIDTH, RECORDED_MS = 720, 125  # of the recording, and between two of its pictures


def wait_until(page: "Page", expression: str, *, timeout_s: float = 600) -> None:
    """Wait until an expression is true in the page, whose policy refuses `eval`."""
    for _ in range(round(timeout_s / 0.1)):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise TimeoutError(f"still not true after {timeout_s:g} s: {expression}")


def keep_labels_of_first(path: Path) -> None:
    """Leave only the labels of the first video, so that the page shows how the others fill in."""
    head, *rows = path.read_text("utf-8").splitlines()
    first = rows[0].split(",")[0]
    write_text(
        path, "\n".join([head, *(row for row in rows if row.startswith(f"{first},"))]) + "\n", overwrite=True
    )


def align_videos(page: "Page", address: str) -> None:
    """Open the page, let it align the videos as a user would, and show the first ones in the middle."""
    page.goto(address)
    wait_until(page, f"globalThis.studio && {SHOWN_FRAMES} > 1 && !studio.isSettling")
    if page.get_by_role("button", name="Align now").is_visible():
        page.get_by_role("button", name="Align now").click()
        wait_until(page, "studio.alignment.size > 0")
    page.evaluate(f"studio.choose(studio.project.videos.slice(0, {SHOWN}).map((video) => video.id))")
    wait_until(page, f"{SHOWN_FRAMES} === {SHOWN} && studio.alignment.size === {SHOWN - 1}")
    page.evaluate(f"studio.clock.seek({MOMENT} * studio.clock.last)")


def write_picture(png: bytes, path: Path) -> None:
    """Write a screenshot as WebP, as fine as fits."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for quality in range(90, 20, -5):
        content = io.BytesIO()
        picture.save(content, "WEBP", quality=quality, method=6)
        if content.tell() <= MAX_BYTES:
            break
    write_bytes(path, content.getvalue(), overwrite=True)
    print(f"{path} ({content.tell() // 1000} kB)")


def photograph(page: "Page", folder: Path) -> None:
    """Write one picture per view that the page lists, and one of the player on a phone."""
    listed = page.evaluate('[...document.querySelectorAll("#tabs a")].map((tab) => tab.hash.slice(1))')
    for name in (name for name in VIEWS if name in listed):
        page.evaluate(f'location.hash = "{name}"')
        page.wait_for_timeout(LOOK_MS)
        write_picture(page.screenshot(), folder / f"studio-{name}.webp")
    page.evaluate('location.hash = "play"')
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(LOOK_MS)
    write_picture(page.screenshot(), folder / "studio-phone.webp")
    page.set_viewport_size({"width": 1280, "height": 800})


def record(page: "Page", act: Callable[["Page"], None]) -> list[tuple[float, Image.Image]]:
    """Return what the page shows while something is done, as (seconds, picture)."""
    session = page.context.new_cdp_session(page)
    pictures: list[tuple[float, Image.Image]] = []

    def keep(event: dict[str, Any]) -> None:
        picture = Image.open(io.BytesIO(base64.b64decode(event["data"]))).convert("RGB")
        pictures.append((event["metadata"]["timestamp"], picture))
        session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    session.on("Page.screencastFrame", keep)
    session.send("Page.startScreencast", {"format": "jpeg", "quality": 85})
    act(page)
    session.send("Page.stopScreencast")
    session.detach()
    return pictures


def use_player(page: "Page") -> None:
    """What the recording shows: as filmed, aligned, slowly, another reference."""
    page.evaluate("studio.clock.seek(0)")
    page.get_by_role("button", name="As filmed").click()
    page.keyboard.press("l")
    page.wait_for_timeout(2500)
    page.get_by_role("button", name="Aligned").click()
    page.wait_for_timeout(2500)
    page.locator(".tile .picture").nth(4).click()
    page.wait_for_timeout(2000)
    page.keyboard.press("k")


def write_recording(pictures: list[tuple[float, Image.Image]], path: Path) -> None:
    """Write an animated WebP at a steady rate, as fine as fits."""
    start, end = pictures[0][0], pictures[-1][0]
    chosen = []
    for number in range(int((end - start) * 1000 / RECORDED_MS)):
        moment = start + number * RECORDED_MS / 1000
        chosen.append(next(picture for time, picture in reversed(pictures) if time <= moment))
    height = round(chosen[0].height * RECORDED_WIDTH / chosen[0].width)
    small = [picture.resize((RECORDED_WIDTH, height), Image.Resampling.LANCZOS) for picture in chosen]
    for quality in range(60, 5, -10):
        content = io.BytesIO()
        small[0].save(content, "WEBP", save_all=True, append_images=small[1:], duration=RECORDED_MS, loop=0,
                      quality=quality, method=4)  # fmt: skip
        if content.tell() <= MAX_RECORDING_BYTES:
            break
    write_bytes(path, content.getvalue(), overwrite=True)
    print(f"{path} ({len(small)} pictures, {content.tell() // 1000} kB)")


def main() -> None:
    """Render videos if there are none, serve them, and take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of videos; rendered if it is not there"
    )
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    args = parser.parse_args()
    if not args.work.exists():
        if cycleback_main(["synth", str(args.work), *RENDER.split()]) != 0:
            raise SystemExit("the videos were not rendered")
        keep_labels_of_first(args.work / "labels.csv")
    args.out.mkdir(parents=True, exist_ok=True)
    server = StudioServer(Studio(Project.open(args.work)), port=0).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            align_videos(page, server.address)
            photograph(page, args.out)
            write_recording(record(page, use_player), args.out / "studio.webp")
            browser.close()
    finally:
        server.close()


if __name__ == "__main__":
    main()
