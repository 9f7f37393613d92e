"""Every command that takes a run takes the name of a model that comes with the package."""

import json
import shutil
from pathlib import Path

import pytest

NAME = "tiny-pouring"


@pytest.fixture
def model(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trained run as a model of the package; the working folder is elsewhere."""
    folder = tmp_path / "models" / NAME
    shutil.copytree(run_folder, folder, ignore=shutil.ignore_patterns("state.pt"))
    monkeypatch.setattr("cycleback.runs.folder.FOLDERS", (tmp_path / "models",))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


COMMANDS = [
    "align {a} {b}",
    "sync {a} {b}",
    "plot similarity {a} {b}",
    "progress {a} {b} --reference {a}",
    "transfer labels first.csv {a} {b}",
    "transfer sound {a} {b}",
    "anomalies other.mp4 --good {videos}",
    "embed {videos} --part held_out",
    "follow {a} --reference {b}",
    "search add index {a}",
]


@pytest.fixture
def words(model: Path, rendered: Path, request: pytest.FixtureRequest) -> list[str]:
    shutil.copy(rendered / "pouring_004.mp4", "other.mp4")
    lines = (rendered / "labels.csv").read_text().splitlines()
    Path("first.csv").write_text("\n".join([lines[0], *(each for each in lines if "pouring_000" in each)]))
    places = {"a": rendered / "pouring_000.mp4", "b": rendered / "pouring_001.mp4", "videos": rendered}
    return [word.format(**places) for word in request.param.split()]


@pytest.mark.parametrize("words", COMMANDS, indirect=True)
def test_a_command_takes_the_name_of_a_model(command, words: list[str]) -> None:
    result = command(*words, "--run", NAME)
    assert result.code == 0, result.err


@pytest.mark.parametrize("words", COMMANDS, indirect=True)
def test_an_unknown_name_is_one_line_with_those_that_there_are(command, words: list[str]) -> None:
    result = command(*words, "--run", "tiny-puring")
    assert result.code == 2
    assert f"Did you mean {NAME!r}?" in result.err
    assert result.err.startswith("error: ") and len(result.err.splitlines()) == 1


def test_evaluate_measures_a_model_on_the_videos_it_was_not_trained_on(
    command, model: Path, rendered: Path
) -> None:
    result = command("evaluate", NAME, "--data", rendered, "--no-few-shot", "--no-intervals", "--json")
    assert set(json.loads(result.out)) == {NAME, "time-only"}
    assert (
        command("evaluate", NAME).err
        == f"error: {NAME} is a run: name the folder of its videos with --data\n"
    )
    wrong = command("evaluate", "tiny-pourin", "--data", rendered)
    assert wrong.code == 2 and f"Did you mean {NAME!r}?" in wrong.err


def test_an_index_remembers_the_name_and_not_where_it_was(command, model: Path, rendered: Path) -> None:
    command("search", "add", "index", rendered / "pouring_000.mp4", "--run", NAME)
    assert json.loads(command("search", "info", "index", "--json").out)["run"] == NAME
    moment = f"{rendered / 'pouring_001.mp4'}#5"
    assert len(json.loads(command("search", "query", "index", moment, "--json").out)["hits"]) == 1


def test_info_says_what_a_model_is(command, model: Path) -> None:
    assert NAME in command("info").out
    facts = json.loads(command("info", NAME, "--json").out)
    assert facts["folder"] == str(model) and facts["card"] == "none"
    assert facts["losses"] == {"tcc": 1.0, "tcn": 1.0} and facts["updates"] == 4
    assert sum(facts["videos"].values()) == 5
    (model / "README.md").write_text("# card")
    assert str(model / "README.md") in command("info", NAME).out


def test_info_of_an_unknown_run_is_one_line(command, model: Path) -> None:
    result = command("info", "tiny-puring")
    assert result.code == 2 and f"Did you mean {NAME!r}?" in result.err
    assert len(result.err.splitlines()) == 1


def test_without_models_info_says_none(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycleback.runs.folder.FOLDERS", (tmp_path,))
    assert json.loads(command("info", "--json").out)["models"] == "none"


@pytest.mark.parametrize("name", ["align", "sync", "embed", "follow", "progress", "anomalies"])
def test_help_names_a_model(command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "golf-lite" in command(name, "--help").out
