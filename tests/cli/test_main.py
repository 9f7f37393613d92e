import subprocess
import sys

import pytest

COMMANDS = ("demo", "synth", "data", "train", "embed", "evaluate", "align", "sync", "info")


def test_help_lists_every_command(command) -> None:
    result = command("--help")
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_an_example(command, name: str) -> None:
    result = command(*(["data", "check"] if name == "data" else [name]), "--help")
    assert result.code == 0
    assert f"Example: cycleback {name}" in " ".join(result.out.split())


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
