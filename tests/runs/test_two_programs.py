"""Two programs at once on one run folder or one index: the second is refused in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from cycleback.cli.main import main
from cycleback.files import hold_lock

pytest.importorskip("fcntl")
HOLD = """
import sys, time
from pathlib import Path
from cycleback.files import hold_lock
with hold_lock(Path(sys.argv[1])) as is_held:
    print(is_held, flush=True)
    sys.stdin.read()
"""


def hold_elsewhere(path: Path) -> "subprocess.Popen[str]":
    """Start a program that holds the lock of `path` until its input ends."""
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None and program.stdout.readline() == "True\n"
    return program


def test_a_second_training_into_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text("[data]\n")
    with hold_elsewhere(run) as other:
        assert main(["train", str(tmp_path), "-o", str(run), "--resume"]) == 2
        assert capsys.readouterr().err == (
            f"error: another program is training in {run}. Wait for it, or choose another folder with -o.\n"
        )
        other.kill()  # a killed program holds nothing
    assert main(["train", str(tmp_path), "-o", str(run), "--resume"]) == 2
    assert "another program" not in capsys.readouterr().err


def test_a_second_change_of_an_index_is_refused(tmp_path: Path) -> None:
    from cycleback.errors import UserError
    from cycleback.search import add_videos
    from search.walks import walks

    add_videos(tmp_path / "index", walks(["a"]))
    with (
        hold_elsewhere(tmp_path / "index" / ".lock"),
        pytest.raises(UserError, match=r"another program is changing .*index\. Try again"),
    ):
        add_videos(tmp_path / "index", walks(["b"]))
    assert add_videos(tmp_path / "index", walks(["b"])).added == ["b"]


def test_a_lock_of_a_file_that_was_replaced_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with hold_elsewhere(path) as other:
        with hold_lock(path, wait=False) as is_held:
            assert not is_held
        path.unlink()
        path.touch()
        with hold_lock(path, wait=False) as is_held:
            assert is_held
        other.kill()
