"""What a corpus lists, and that a fetched video is the one that was listed, byte by byte."""

import functools
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coded_clips import read_number
from cycleback.corpus import sources
from cycleback.corpus.sources import Item, fetch, list_corpus
from cycleback.data.sources import iter_images
from cycleback.errors import DataError
from cycleback.video import iter_frames
from lerobot_folders import write_lerobot

SIZE: dict[str, Any] = {"size": (64, 64), "fit": "stretch"}


def write_files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(f"content of {name}".encode())
    return folder


def fetched(item: Item) -> bytes:
    with fetch(item, **SIZE) as record:
        assert record.name == item.name
        return record.path.read_bytes()


def test_a_folder_is_listed_as_a_data_set(tmp_path: Path) -> None:
    write_files(tmp_path, "cup/a.mp4", "cup/b.mov", "mug/c.mp4", "notes.md")
    (tmp_path / "cup" / "labels.csv").write_text("video,event,frame\na,top,3\n")
    items = list_corpus(tmp_path)
    assert [(item.name, item.action) for item in items] == [
        ("cup/a", "cup"),
        ("cup/b", "cup"),
        ("mug/c", "mug"),
    ]
    assert items[0].events == {"top": 3.0}
    assert [fetched(item) for item in items] == [
        f"content of {n}".encode() for n in ("cup/a.mp4", "cup/b.mov", "mug/c.mp4")
    ]
    before = items[0].stamp
    (tmp_path / "cup" / "a.mp4").write_bytes(b"another video")
    assert list_corpus(tmp_path)[0].stamp != before


def test_a_list_names_paths_beside_it_and_urls(tmp_path: Path) -> None:
    write_files(tmp_path, "v/a.mp4", "v/b.mp4")
    other = (tmp_path / "v" / "b.mp4").as_uri()
    (tmp_path / "list.txt").write_text(f"# two videos\nv/a.mp4\n\n{other}\n")
    items = list_corpus(tmp_path / "list.txt")
    assert [item.name for item in items] == ["v/a.mp4", other]
    assert [fetched(item) for item in items] == [b"content of v/a.mp4", b"content of v/b.mp4"]
    (tmp_path / "list.txt").write_text("v/a.mp4\nv/a.mp4\n")
    with pytest.raises(DataError, match="2 videos of the name 'v/a"):
        list_corpus(tmp_path / "list.txt")


def write_tar(path: Path, *members: tuple[str, bytes, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content) if kind == tarfile.REGTYPE else 0
            info.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            archive.addfile(info, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    return path


def test_archives_give_their_videos_and_no_other_file(tmp_path: Path) -> None:
    file = tarfile.REGTYPE
    write_tar(
        tmp_path / "x-0.tar",
        ("k/a.mp4", file, b"A" * 5000),
        ("k/a.json", file, b"{}"),
        ("./b.mp4", file, b"B"),
    )
    write_tar(
        tmp_path / "x-1.tar",
        ("a.mp4", file, b"C"),
        ("../../out.mp4", file, b"D"),
        ("link.mp4", tarfile.SYMTYPE, b""),
    )
    items = list_corpus(tmp_path)
    assert [item.name for item in items] == ["x-0/k/a", "x-0/b", "x-1/a", "x-1/../../out", "x-1/link"]
    assert [fetched(item) for item in items[:3]] == [b"A" * 5000, b"B", b"C"]
    for item, words in zip(items[3:], ("leads out of the archive", "a link or a device"), strict=True):
        with pytest.raises(DataError, match=words):
            fetched(item)
    cut = (tmp_path / "x-0.tar").read_bytes()[:3000]
    (tmp_path / "x-0.tar").write_bytes(cut)
    with pytest.raises(DataError, match="ends within it"):
        fetched(items[0])
    (tmp_path / "x-1.tar").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"cannot read .*x-1\.tar"):
        list_corpus(tmp_path / "x-1.tar")


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_episodes_show_their_own_frames(tmp_path: Path, version: str) -> None:
    pytest.importorskip("pyarrow")
    write_lerobot(tmp_path / "set", (4, 6), version=version)
    items = list_corpus(tmp_path / "set")
    assert [(item.name, item.action) for item in items] == [
        ("episode_000000", "pick up"),
        ("episode_000001", "pick up"),
    ]
    for number, (item, length) in enumerate(zip(items, (4, 6), strict=True)):
        with fetch(item, size=(64, 96), fit="stretch") as record:
            read = iter_images if record.kind == "frames" else iter_frames
            frames = np.concatenate([chunk.frames for chunk in read(record.path)])
        assert [read_number(frame) for frame in frames] == [100 * number + frame for frame in range(length)]


class _Handler(http.server.SimpleHTTPRequestHandler):
    failures = 0  # answers still to come that are errors

    def do_GET(self) -> None:
        if type(self).failures:
            type(self).failures -= 1
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(_Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def test_videos_are_downloaded_and_removed(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(sources, "FIRST_WAIT_S", 0.01)
    write_files(tmp_path, "a.mp4")
    host = server.removeprefix("http://")
    (tmp_path / "list.txt").write_text(f"http://me:secret@{host}/a.mp4?sign=123\n{server}/missing.mp4\n")
    item, missing = list_corpus(f"{server}/list.txt")
    assert item.name == item.path == f"{server}/a.mp4"  # nothing secret
    _Handler.failures = 2
    with fetch(item, **SIZE) as record:
        assert record.path.read_bytes() == b"content of a.mp4" and record.path.suffix == ".mp4"
    assert not record.path.exists()
    _Handler.failures = 3
    with pytest.raises(DataError, match="503"):
        fetched(item)
    with pytest.raises(DataError, match=r"cannot read http://.*missing\.mp4"):
        fetched(missing)
    monkeypatch.setattr(sources, "MAX_DOWNLOAD_BYTES", 8)
    with pytest.raises(DataError, match="too large"):
        fetched(item)


def test_a_store_is_listed_with_the_versions_of_its_files() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name in ("cup/a.mp4", "cup/.b.mp4", "c.mov", "d.txt"):
        store.pipe(f"/bucket/{name}", name.encode())
    items = list_corpus("memory://bucket")
    assert [(item.name, item.action) for item in items] == [("c", ""), ("cup/a", "cup")]
    assert [fetched(item) for item in items] == [b"c.mov", b"cup/a.mp4"]
    before = items[1].stamp
    store.pipe("/bucket/cup/a.mp4", b"longer than before")
    assert list_corpus("memory://bucket")[1].stamp != before


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    for corpus, words in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "no videos in"),
        ("nonsense://x/y", "cannot read nonsense://"),
        (write_files(tmp_path / "l", "e.txt") / "e.txt", None),
    ):
        if words:
            with pytest.raises(DataError, match=words):
                list_corpus(corpus)
    (tmp_path / "l" / "e.txt").write_text("# nothing\n")
    with pytest.raises(DataError, match="no videos in"):
        list_corpus(tmp_path / "l" / "e.txt")
