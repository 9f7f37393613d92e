"""A rendered folder and a run trained for a few updates, shared by all command tests."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cycleback.cli.main import main

QUICK = [
    "data.frame_size=64",
    "optimizer.num_updates=4",
    "optimizer.batch_size=2",
    "run.save_every=2",
    "run.log_every=1",
]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cycleback.synth import write_dataset

    folder = tmp_path_factory.mktemp("rendered") / "videos"
    write_dataset(folder, videos=5, seed=3, size=64, jobs=1)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache folder, for the time of the tests."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("CYCLEBACK_CACHE")
    os.environ["CYCLEBACK_CACHE"] = str(folder)
    yield folder
    os.environ.pop("CYCLEBACK_CACHE")
    if before is not None:
        os.environ["CYCLEBACK_CACHE"] = before


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, rendered: Path, cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", str(rendered), "-o", str(folder), "--recipe", "appearance", *QUICK]) == 0
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], cache: Path) -> Callable[..., Result]:
    """Run `cycleback ...` in this process."""

    def run(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
