"""A training that is killed at any moment resumes to the very run that was never killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl")
PROGRAM = Path(__file__).with_name("killed_trainings.py")


def test_a_training_killed_before_any_rename_resumes_to_the_same_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    whole = [kill for kill in kills if kill["killed"] == 0]  # there was no rename left to be killed at
    assert len(whole) == 2 and len(kills) >= 20
    assert any(name.startswith(".draft-") for kill in kills for name in kill["left"])
    for kill in kills:
        assert kill["killed"] in (0, -9) and (kill["resumed"], kill["others"]) == (0, []), (kill, done.stderr)
