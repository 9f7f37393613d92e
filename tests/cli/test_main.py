import subprocess
import sys

import pytest
from typer.main import get_command

from cycleback.cli.main import app

VERBS = (
    "Add Align Allow Choose Compare Compute Cut Draw Embed Evaluate Follow Give Install Keep Leave Let Limit "
    "List Make Measure Mix Overwrite Play Print Project Put Render Replace Require Resume Score Search Set "
    "Remove Show Skip Smooth Take Train Use Wait Warn Write"
)
GROUPS = {
    "data": ("check", "prepare"),
    "plot": ("map", "similarity", "progress", "evolution"),
    "search": ("add", "query", "remove", "info"),
    "transfer": ("labels", "sound"),
}
PANELS = {
    "Learn": ("demo", "train", "embed"),
    "Use": ("studio", "align", "sync", "transfer", "search", "timing", "anomalies", "progress", "follow"),
    "Measure": ("evaluate", "compare", "plot"),
    "Data": ("data", "synth", "info"),
}
COMMANDS = [
    f"{name} {part}".strip()
    for names in PANELS.values()
    for name in names
    for part in GROUPS.get(name, ("",))
]


def test_help_lists_every_command_in_its_panel(command) -> None:
    out = command("--help").out
    marks = [
        mark for panel, names in PANELS.items() for mark in (f"─ {panel} ─", *(f"│ {n} " for n in names))
    ]
    places = [out.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_an_example(command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = command(*name.split(), "--help")
    assert result.code == 0
    assert f"Example: cycleback {name}" in " ".join(result.out.split())
    assert "--json" in result.out and "…" not in result.out.replace("cuda:1 …", "")
    assert max(map(len, result.out.splitlines())) <= 80


def test_every_option_says_in_one_short_sentence_what_it_does() -> None:
    def walk(command, name: str) -> list[str]:
        bad = []
        for option in command.params:
            text = getattr(option, "help", None) or ""
            is_sentence = text.endswith(".") and "\n" not in text and len(text) <= 100
            is_option = option.param_type_name == "option" and option.name != "help"
            if not is_sentence or (is_option and text.split()[0] not in VERBS.split()):
                bad.append(f"{name} {option.name}: {text!r}")
        for part, inner in getattr(command, "commands", {}).items():
            bad += walk(inner, f"{name} {part}")
        return bad

    assert walk(get_command(app), "cycleback") == []


def test_version(command) -> None:
    from cycleback import __version__

    assert command("--version").out == f"cycleback {__version__}\n"


def test_an_unknown_command_is_a_usage_error(command) -> None:
    result = command("trian")
    assert result.code == 2
    assert "trian" in result.err


def test_the_installed_program_prints_one_line_and_exits_2_on_bad_input() -> None:
    code = "import sys; from cycleback.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "data", "check", "/nowhere/at/all"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "/nowhere/at/all" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_info_names_versions_and_devices(command) -> None:
    result = command("info")
    assert result.code == 0
    assert all(word in result.out for word in ("cycleback", "torch", "libx264 writes", "cpu", "cache"))
