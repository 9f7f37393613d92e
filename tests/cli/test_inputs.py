"""No command replaces its input: whatever the flag, by any path or link, before anything is computed."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import cycleback.comparison
import cycleback.search  # both before a test replaces what they import  # noqa: F401
from cycleback.embeddings import EmbeddingSet

COMMANDS = {
    "align": "align a b --embeddings {out}/set -o {out}/set/index.json",
    "align, picture": "align {ds}/a.mp4 {ds}/b.mp4 -o {out}/t.csv --picture {ds}/frame.png --run {ds}",
    "align, folder": "align {ds} -o {ds}/labels.csv",
    "sync": "sync {ds}/a.mp4 {ds}/b.mp4 -o {ds}/a.mp4",
    "sync, other path": "sync {ds}/a.mp4 {ds}/b.mp4 -o {ds}/../ds/b.mp4",
    "sync, symlink": "sync {ds}/a.mp4 {ds}/b.mp4 -o {out}/symlink.mp4",
    "sync, hard link": "sync {ds}/a.mp4 {ds}/b.mp4 -o {out}/hardlink.mp4",
    "sync, folder": "sync {ds} -o {ds}/a.mp4",
    "sync, folder, symlink": "sync {ds} -o {out}/symlink.mp4",
    "sync, folder, hard link": "sync {ds} -o {out}/hardlink.mp4",
    "sync, edits": "sync {ds} --edits {ds}/labels.csv",
    "sync, sound": "sync {ds}/a.mp4 {ds}/b.mp4 --sound {out}/c.mp4 -o {out}/c.mp4",
    "sync, embeddings": "sync --embeddings {out}/set -o {ds}/a.mp4",
    "transfer labels": "transfer labels {ds}/labels.csv {ds}/a.mp4 {ds}/b.mp4 -o {ds}/labels.csv",
    "transfer labels, folder": "transfer labels {out}/eaf {ds} --format elan -o {out}/eaf",
    "transfer labels, inside": "transfer labels {out}/eaf/a.eaf {ds} --format elan -o {out}/eaf",
    "transfer sound": "transfer sound {ds}/a.mp4 {ds}/b.mp4 -o {ds}/b.mp4",
    "anomalies": "anomalies {ds}/a.mp4 --good {ds} -o {ds}/labels.csv",
    "progress": "progress {ds} --reference {ds}/a.mp4 -o {ds}/labels.csv",
    "plot map": "plot map {ds} -o {ds}/frame.png",
    "plot similarity": "plot similarity a b --embeddings {ds}/set -o {ds}/set/map.png",
    "plot progress": "plot progress {ds} -o {ds}/frame.png",
    "plot evolution": "plot evolution {ds} -o {ds}/frame.png",
    "evaluate": "evaluate {ds}/set --markdown {ds}/set/notes.md",
    "search query": "search query {out}/set {ds}/frame.png --sheet {ds}/frame.png",
    "embed": "embed {ds} -o {ds}",
    "embed, above": "embed {ds} -o {ds}/..",
    "embed, beside": "embed {ds} -o {out}/eaf",
    "synth": "synth {ds}",
    "demo": "demo --out {ds}",
    "compare": "compare --data {ds} -o {ds}",
    "data prepare": "data prepare pouring {out} {ds}",
}
WITHOUT_FLAG = {
    "search add": "search add {ds} {ds}",
    "search add, file": "search add {ds}/a.mp4 {ds}",
    "train": "train {ds} -o {ds}",
    "train, file": "train {ds} -o {ds}/a.mp4",
}


@pytest.fixture
def places(tmp_path: Path, rendered: Path) -> dict[str, Path]:
    """A user's folder with two videos and more, and a folder with links to one of them."""
    folder, out = tmp_path / "ds", tmp_path / "out"
    for place in (folder, folder / "set", out, out / "eaf"):
        place.mkdir()
    for name, number in (("a", 0), ("b", 1)):
        shutil.copy(rendered / f"pouring_00{number}.mp4", folder / f"{name}.mp4")
    (folder / "labels.csv").write_text("video,event,frame\na,start,3\n")
    (folder / "frame.png").write_text("mine")
    (out / "eaf" / "a.eaf").write_text("mine")
    (out / "symlink.mp4").symlink_to(folder / "a.mp4")
    os.link(folder / "a.mp4", out / "hardlink.mp4")
    shutil.copy(folder / "a.mp4", out / "c.mp4")
    arrays = {name: np.eye(3) for name in ("a", "b")}
    paths = {name: folder / f"{name}.mp4" for name in arrays}
    for place in (folder, out):
        EmbeddingSet.from_arrays(arrays, paths=paths).save(place / "set", overwrite=True)
    for name in ("map.png", "notes.md"):
        (folder / "set" / name).write_text("mine")
    return {"ds": folder, "out": out}


def read_all(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*COMMANDS, *WITHOUT_FLAG])
def test_an_input_is_never_replaced(
    command, places: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def compute(*_: object, **__: object) -> None:
        pytest.fail("refuse before anything is computed")

    for function in ("embed_videos", "load_encoder", "learn._prepare"):
        monkeypatch.setattr(f"cycleback.runs.{function}", compute)
    before = read_all(tmp_path)
    flag = ["--overwrite"] if name in COMMANDS else []
    words = [word.format(**places) for word in (COMMANDS | WITHOUT_FLAG)[name].split()]
    result = command(*words, *flag)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1), result.err
    reasons = ("never replaced", "did not make it", "no comparison made", "not a search index")
    assert any(words in result.err for words in (*reasons, "not a run folder", "exists. Resume it"))
    assert read_all(tmp_path) == before


def test_a_result_is_replaced_and_the_input_stays(command, places: dict[str, Path]) -> None:
    """The flag still does what it is for."""
    folder, out = places["ds"], places["out"]
    before = (folder / "a.mp4").read_bytes()
    words = ["align", "a", "b", "--embeddings", out / "set", "-o", out / "t.csv", "--overwrite"]
    assert [command(*words).code for _ in range(2)] == [0, 0]
    assert (folder / "a.mp4").read_bytes() == before


def test_a_missing_folder_is_not_made(command, places: dict[str, Path]) -> None:
    missing = places["out"] / "missing"
    result = command("sync", places["ds"], "-o", missing / "x.mp4")
    expected = (
        f"error: cannot write {missing / 'x.mp4'}: the folder {missing} does not exist. Make it first.\n"
    )
    assert (result.code, result.err, missing.exists()) == (2, expected, False)
