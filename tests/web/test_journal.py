"""The journal loses nothing: killed processes, torn lines, two writers."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cycleback.errors import UserError
from cycleback.web.journal import Journal, StaleRevision

APPEND = """
import sys
from pathlib import Path
from cycleback.web.journal import Journal, StaleRevision

journal, name = Journal(Path(sys.argv[1])), sys.argv[2]
number = 0
while True:
    try:
        journal.append("labels", [name, number, "x" * 2000], journal.revision("labels"))
    except StaleRevision:
        continue
    print(number, flush=True)
    number += 1
"""


def start_writer(folder: Path, name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", APPEND, str(folder), name], stdout=subprocess.PIPE, text=True
    )


def test_entries_are_numbered_by_kind_and_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert (journal.revision("pins"), journal.entries("pins"), journal.latest("pins")) == (0, [], None)
    assert [journal.append("pins", {"n": n, "é": "\n"}, n) for n in range(3)] == [1, 2, 3]
    assert journal.append("labels", [], 0) == 1
    again = Journal(tmp_path)
    assert [entry.value["n"] for entry in again.entries("pins")] == [0, 1, 2]
    assert again.revision("pins") == 3 and again.latest("labels") == []


def test_a_stale_revision_is_refused_and_tells_the_latest(tmp_path: Path) -> None:
    first, second = Journal(tmp_path), Journal(tmp_path)
    first.append("pins", 1, 0)
    with pytest.raises(StaleRevision) as caught:
        second.append("pins", 2, 0)
    assert caught.value.revision == 1 and first.latest("pins") == 1
    assert second.append("pins", 2, 1) == 2 and first.latest("pins") == 2


def test_two_killed_writers_lose_no_acknowledged_entry(tmp_path: Path) -> None:
    writers = {name: start_writer(tmp_path, name) for name in ("a", "b")}
    told: dict[str, list[int]] = {name: [] for name in writers}

    def listen(name: str) -> None:
        for line in writers[name].stdout or ():
            told[name].append(int(line))

    listeners = [threading.Thread(target=listen, args=(name,)) for name in writers]
    for listener in listeners:
        listener.start()
    end = time.monotonic() + 20
    while min(map(len, told.values())) < 20 and time.monotonic() < end:
        time.sleep(0.01)
    for writer in writers.values():
        writer.kill()
        writer.wait()
    for listener in listeners:
        listener.join()
    for writer in writers.values():
        assert writer.stdout is not None
        writer.stdout.close()
    journal = Journal(tmp_path)
    entries = journal.entries("labels")
    assert [entry.revision for entry in entries] == list(range(1, len(entries) + 1))
    kept = {name: [entry.value[1] for entry in entries if entry.value[0] == name] for name in writers}
    for name, numbers in told.items():
        assert len(numbers) >= 20 and kept[name][: len(numbers)] == numbers
    assert journal.append("labels", "after", len(entries)) == len(entries) + 1


def test_a_torn_last_line_is_kept_aside(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("pins", "whole", 0)
    with journal.path.open("ab") as file:
        file.write(b'{"revision":2,"kind":"pins","va')
    reader = Journal(tmp_path)
    assert reader.revision("pins") == 1
    assert reader.append("pins", "next", 1) == 2
    assert [json.loads(line)["value"] for line in journal.path.read_text().splitlines()] == ["whole", "next"]
    (torn,) = tmp_path.glob("journal.torn-*")
    assert torn.read_bytes() == b'{"revision":2,"kind":"pins","va'
    assert [entry.value for entry in journal.entries("pins")] == ["whole", "next"]  # the first reader, too


def test_a_damaged_line_in_the_middle_does_not_hide_the_others(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.append("pins", number, number)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(lines[0] + b"\xff\x00garbage\n" + lines[2])
    again = Journal(tmp_path)
    assert [entry.value for entry in again.entries("pins")] == [0, 2] and again.revision("pins") == 3


def test_a_value_that_is_no_json_changes_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for value in (float("nan"), "\ud800"):
        with pytest.raises(UserError, match="cannot keep"):
            journal.append("pins", value, 0)
    assert journal.append("pins", 1, 0) == 1 and len(journal.path.read_bytes().splitlines()) == 1


def test_a_folder_that_cannot_be_written_gives_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        Journal(tmp_path / "file").append("pins", 1, 0)
