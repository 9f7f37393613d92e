"""The README's code runs, its commands exist, its table has the columns of the script that prints it."""

import importlib.util
import re
from pathlib import Path

import pytest

from cycleback.comparison.demo import TITLES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cycleback.synth import write_dataset

    write_dataset(tmp_path / "clips", videos=2, size=64, jobs=1)
    for name, number in (("a", 0), ("b", 1)):
        (tmp_path / "clips" / f"pouring_{number:03d}.mp4").rename(tmp_path / f"{name}.mp4")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "synced.mp4").stat().st_size > 1000


def test_every_command_of_the_readme_is_a_command() -> None:
    from cycleback.cli.main import app

    known = {command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    used = set(re.findall(r"cycleback ([a-z]+)", re.sub(r"cd cycleback", "", README)))
    assert used - {"implements"} <= known


def test_the_columns_of_the_results_are_those_of_the_script_and_the_rows_those_of_the_demo() -> None:
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "scripts" / "readme_tables.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    lines = README.splitlines()
    place = lines.index(script.headings())
    assert [line.split(" | ")[0] for line in lines[place + 2 : place + 6]] == [f"| {row}" for row in TITLES]
