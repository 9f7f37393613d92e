"""`cycleback cache` shows, limits and clears."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Result
from cycleback.cli.cache import format_size, parse_size, parse_span
from cycleback.data import FrameCache, read_dataset


@pytest.fixture
def filled(
    rendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Result]
) -> Path:
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    FrameCache(size=(32, 32)).fill(read_dataset(rendered).records)
    return tmp_path / "cache"


def test_the_cache_is_shown_limited_and_cleared(command: Callable[..., Result], filled: Path) -> None:
    shown = command("cache")
    assert shown.code == 0 and f"cache       {filled}\n" in shown.out and "pouring_004.mp4" in shown.out
    facts = json.loads(command("cache", "show", "--top", "2", "--json").out)
    assert facts["entries"] == 5 and len(facts["largest"]) == 2 and facts["kinds"]["frames"] > 500_000
    assert "limit: 300.0 MB; " in command("cache", "limit", "300MB").out
    assert "limit: none; " in command("cache", "limit", "none").out
    assert "(default); " in command("cache", "limit", "default").out
    assert "nothing to remove" in command("cache", "clear", "--older", "1h").out
    assert "removed " in command("cache", "clear", "--kind", "frames").out
    assert "frames" not in json.loads(command("cache", "show", "--json").out)["kinds"]
    assert command("cache", "limit", "0").out.startswith("removed ")
    assert json.loads(command("cache", "show", "--json").out)["bytes"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["limit", "5XB"], "cannot read the size '5XB'; expected a number and a unit, such as 5GB or 500MB"),
        (["clear", "--older", "30"], "cannot read the time '30'; expected a number and m, h, d or w"),
        (["clear", "--kind", "fram"], "unknown kind of file 'fram'; expected frames, motion, features"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    command: Callable[..., Result], filled: Path, words: list[str], message: str
) -> None:
    result = command("cache", *words)
    assert result.code == 2 and result.err.startswith(f"error: {message}") and result.err.count("\n") == 1


def test_a_cache_that_is_a_file_is_one_line(
    command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "file"))
    assert "file is a file, expected a folder" in command("cache").err


def test_sizes_and_times_are_read_as_people_write_them() -> None:
    sizes = [parse_size(text) for text in ("5GB", "500 MB", "2.5g", "10", "1TiB")]
    assert sizes == [5 * 10**9, 5 * 10**8, 25 * 10**8, 10, 10**12]
    assert [parse_span(text) for text in ("90m", "12h", "30d", "2w")] == [5400, 43200, 30 * 86400, 14 * 86400]
    assert [format_size(size) for size in (12, 1500, 5e9)] == ["12 B", "1.5 kB", "5.0 GB"]
