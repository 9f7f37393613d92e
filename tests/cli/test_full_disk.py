"""A full disk is one line for every command that writes, and nothing half-written is left.

The disk is a real one, half a megabyte in memory, where mounting is permitted; elsewhere the system limits
the size of files.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import QUICK, Result
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError
from cycleback.runs import embed_videos

COMMANDS = {
    "align": "align pouring_000 pouring_001 --embeddings {set} -o {disk}/a.csv --picture {disk}/a.png",
    "sync": "sync --embeddings {set} -o {disk}/s.mp4",
    "edits": "sync --embeddings {set} --edits {disk}/s.edl",
    "labels": "transfer labels {labels} --embeddings {set} -o {disk}/labels.csv",
    "label files": "transfer labels {labels} --embeddings {set} --format elan -o {disk}/labels",
    "sound": "transfer sound pouring_000 pouring_001 --embeddings {set} -o {disk}/h.mp4",
    "wave": "transfer sound pouring_000 pouring_001 --embeddings {set} -o {disk}/h.wav",
    "anomalies": "anomalies --embeddings {odd} --good {set} -o {disk}/o.csv",
    "progress": "progress --embeddings {set} --reference pouring_001 -o {disk}/p.csv",
    "repetitions": "repetitions pouring_000 --embeddings {set} -o {disk}/r.csv",
    "find": "find {videos}/pouring_000.mp4 {videos}/pouring_001.mp4 -o {disk}/f.csv",
    "evaluate": "evaluate {set} --markdown {disk}/scores.md",
    "map": "plot map --embeddings {set} -o {disk}/map.png",
    "similarity": "plot similarity pouring_000 pouring_001 --embeddings {set} -o {disk}/sim.pdf",
    "evolution": "plot evolution {run} -o {disk}/evolution.svg",
    "search add": "search add {disk}/index --embeddings {set}",
    "sheet": "search query {set} pouring_000@0.5 --sheet {disk}/sheet.png",
    "clips": "search query {set} pouring_000@0.5 --clips {disk}/clips",
    "embed": "embed {videos} --run {run} -o {disk}/emb",
    "poses": "embed {videos} --run {run} -o {tmp}/emb --poses {disk}/poses",
    "synth": "synth {disk}/rendered --videos 2 --size 64",
    "train": "train {videos} -o {disk}/run --recipe appearance",
    "compare": "compare --data {videos} -o {disk}/compared",
}
WHOLE = {"align": "a.csv", "compare": "compared"}  # results before the one that does not fit


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory, rendered: Path, run_folder: Path) -> Path:
    return embed_videos(run_folder, rendered).save(tmp_path_factory.mktemp("embedded") / "set")


@pytest.fixture
def fill(
    rendered: Path, run_folder: Path, embedded: Path, tmp_path: Path
) -> Callable[[str, Path], list[str]]:
    saved = EmbeddingSet.load(embedded)
    odd = EmbeddingSet.from_arrays({"odd": saved["pouring_000"][::-1]}, encoder=saved.encoder)
    odd.save(tmp_path / "odd")
    labels = tmp_path / "labels.csv"
    labels.write_text("video,event,frame\npouring_000,start,3\n")
    names = {"videos": rendered, "run": run_folder, "set": embedded, "labels": labels, "tmp": tmp_path}
    names |= {"odd": tmp_path / "odd"}
    return lambda text, disk: [word.format(**names, disk=disk) for word in text.split()]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system that is full but for what a test frees."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None or os.name != "posix":
        pytest.skip("there is no command to mount a small disk")
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"mounting a small disk is not permitted: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_up(disk: Path, *, free: int) -> None:
    """Write a file that leaves `free` bytes."""
    (disk / "others").unlink(missing_ok=True)
    (disk / "others").write_bytes(bytes(shutil.disk_usage(disk).free - free))


def list_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def check_refused(result: Result, reason: str) -> None:
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert result.code == 2 and len(errors) == 1 and result.err.rstrip().endswith(errors[0]), result.err
    assert reason in errors[0] and ".draft-" not in errors[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_leaves_nothing(
    command: Callable[..., Result], fill: Callable[[str, Path], list[str]], disk: Path, name: str
) -> None:
    words = fill(COMMANDS[name], disk) + (QUICK if name in ("train", "compare") else [])
    cheap = name not in ("train", "compare", "synth", "poses", "sync")
    for free in (0, 8192, 40960) if cheap else (8192,):
        fill_up(disk, free=free)
        result = command(*words)
        if result.code == 0:  # it fitted
            assert free > 0
            return
        check_refused(result, "No space left on device")
        left = [path for path in list_files(disk) if not path.startswith(WHOLE.get(name, "others"))]
        assert left in ([], ["others"]) and ".draft-" not in str(list_files(disk))


def test_a_limit_on_the_size_of_files_is_one_line_too(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    videos = EmbeddingSet.from_arrays({"a": np.ones((4000, 64))})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*set: File too large"):
            videos.save(tmp_path / "set")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
