"""The folder of a comparison, and what in it may be used again.

FOLDER/comparison.json        marks the folder as one of ours
FOLDER/runs/METHOD/           a run folder; METHOD.json beside it says what it is learned from
FOLDER/snapshots/METHOD/STEP/ the encoder on its way
FOLDER/embeddings/METHOD/     of the held-out videos
FOLDER/rows/METHOD.json       a finished row with the settings it was made with
FOLDER/report.html, report.json, report.md
"""

import json
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cycleback.errors import OutputExistsError, UserError
from cycleback.files import write_text

MARKER = "comparison.json"


@dataclass(frozen=True)
class Folder:
    """Where the parts of a comparison lie."""

    root: Path

    def run(self, method: str) -> Path:
        """The run folder of a method."""
        return self.root / "runs" / method

    def snapshots(self, method: str) -> Path:
        """Folder of its encoder at several updates."""
        return self.root / "snapshots" / method

    def embeddings(self, method: str) -> Path:
        """Its embeddings of the held-out videos."""
        return self.root / "embeddings" / method

    def row(self, method: str) -> Path:
        """Its finished row."""
        return self.root / "rows" / f"{method}.json"

    def training(self, method: str) -> Path:
        """What its run is, or was, learned from."""
        return self.root / "runs" / f"{method}.json"

    def forget(self, method: str) -> None:
        """Delete all that was made of a method."""
        self.row(method).unlink(missing_ok=True)
        for folder in (self.run(method), self.snapshots(method), self.embeddings(method)):
            shutil.rmtree(folder, ignore_errors=True)
        self.training(method).unlink(missing_ok=True)


def open_folder(root: Path) -> Folder:
    """The folder, new or of an earlier comparison; one that holds something else is refused."""
    if root.is_dir() and not (root / MARKER).exists():
        foreign = sorted(path.name for path in root.iterdir() if not path.name.startswith("."))
        if foreign:
            raise OutputExistsError(
                f"{root} holds {foreign[0]!r}, which no comparison made. Give another folder with -o."
            )
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {root}: {error.strerror}. Give another folder with -o.") from None
    write_json(root / MARKER, {"made_by": "cycleback compare"})
    return Folder(root)


def check_settings(folder: Folder, method: str, wanted: dict[str, Any], *, overwrite: bool) -> None:
    """Refuse, or with `overwrite` forget, a run that was begun with other settings."""
    begun = (read_json(folder.training(method)) or {}).get("settings")
    if begun == wanted or (begun is None and not folder.run(method).exists()):
        return
    if not overwrite:
        raise OutputExistsError(
            f"{folder.run(method)} was trained {_difference(begun or {}, wanted)}. "
            "Add --overwrite to train it again, or give another folder with -o."
        )
    folder.forget(method)


def _difference(begun: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The first setting that is not the same, in words."""
    if begun.get("videos") != wanted["videos"]:
        return "on other videos, labels or splits"
    before, now = (_flat(tomllib.loads(text)) for text in (begun.get("recipe", ""), wanted["recipe"]))
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            return f"with {key}={before.get(key)!r}, not {now.get(key)!r}"
    return "with other settings"


def _flat(values: dict[str, Any], section: str = "") -> dict[str, Any]:
    """Settings by their whole name, `optimizer.num_updates`."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{section}{key}.") if isinstance(value, dict) else {section + key: value}
    return flat


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None where there is none that can be read."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    return content if isinstance(content, dict) else None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object, whole or not at all."""
    write_text(path, json.dumps(content, indent=1) + "\n", overwrite=True)
