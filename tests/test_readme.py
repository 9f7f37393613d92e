"""The README's code runs, its commands exist, its links lead somewhere."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")


def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from cycleback.synth import write_dataset

    write_dataset(tmp_path / "clips", videos=2, size=64, jobs=1)
    for name, number in (("a", 0), ("b", 1)):
        (tmp_path / "clips" / f"pouring_{number:03d}.mp4").rename(tmp_path / f"{name}.mp4")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "synced.mp4").stat().st_size > 1000
    assert "sure on average" in capsys.readouterr().out


def test_every_command_of_the_readme_is_a_command() -> None:
    from cycleback.cli.main import app

    known = {command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    used = set(re.findall(r"cycleback ([a-z]+)", re.sub(r"cd cycleback", "", README)))
    assert used - {"implements", "lands"} <= known


def test_every_local_link_leads_somewhere() -> None:
    root = Path(__file__).resolve().parents[1]
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert [
        target for target in targets if not target.startswith("http") and not (root / target).exists()
    ] == []
