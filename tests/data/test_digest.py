import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cycleback.data import VideoRecord
from cycleback.data.digest import file_digest, record_digest
from cycleback.errors import DataError


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycleback.data.digest.WHOLE_FILE_BYTES", 100)
    monkeypatch.setattr("cycleback.data.digest.PIECE_BYTES", 10)


def test_a_small_file_is_hashed_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert file_digest(tmp_path / "a") == hashlib.sha256(b"content").hexdigest()


def test_a_large_file_is_hashed_by_size_time_and_pieces(tmp_path: Path, small_limits: None) -> None:
    path, content = tmp_path / "a", bytes(range(200)) * 2
    path.write_bytes(content)
    text = f"400/{path.stat().st_mtime_ns}/".encode()
    pieces = content[:10] + content[195:205] + content[-10:]
    assert file_digest(path) == hashlib.sha256(text + pieces).hexdigest()


def test_touching_a_large_file_changes_its_fingerprint_but_not_that_of_a_small_one(
    tmp_path: Path, small_limits: None
) -> None:
    for size, is_same in ((99, True), (100, False)):
        (tmp_path / "a").write_bytes(b"x" * size)
        before = file_digest(tmp_path / "a")
        os.utime(tmp_path / "a", ns=(1, 1))
        assert (file_digest(tmp_path / "a") == before) is is_same


def test_a_folder_of_images_is_its_images_their_names_and_the_rate(
    tmp_path: Path, write_images: Callable[..., Path]
) -> None:
    folder = write_images(tmp_path / "clip", ["1.png", "2.png"])
    record = VideoRecord("clip", folder, kind="frames")
    seen = [record_digest(record)]
    (folder / "notes.txt").write_text("ignored")
    assert record_digest(record) == seen[0]
    (folder / "fps.txt").write_text("10")
    seen.append(record_digest(record))
    (folder / "1.png").rename(folder / "3.png")
    seen.append(record_digest(record))
    write_images(folder, ["3.png"], size=(5, 5))
    seen.append(record_digest(record))
    assert len(set(seen)) == 4


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*gone\.mp4: No such file"):
        record_digest(VideoRecord("gone", tmp_path / "gone.mp4"))
