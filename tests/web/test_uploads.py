"""Videos that the page adds: checked, complete or not at all, never over another file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cycleback.web import uploads
from cycleback.web.project import video_id

BYTES = {"Content-Type": "application/octet-stream"}


def add(client: TestClient, name: str, content: bytes) -> dict[str, object]:
    answer = client.post("/api/videos", params={"name": name}, content=content, headers=BYTES)
    return {**answer.json(), "status": answer.status_code}


def test_an_added_video_is_in_the_project_at_once(client: TestClient, project_folder: Path) -> None:
    content = (project_folder / "intra.mp4").read_bytes()
    assert add(client, "My swing.mp4", content)["name"] == "My swing"
    assert (project_folder / "My swing.mp4").read_bytes() == content
    assert client.get(f"/api/videos/{video_id('My swing')}").json()["frames"] == 50


def test_another_file_is_never_replaced(client: TestClient, project_folder: Path) -> None:
    before = (project_folder / "uneven.mp4").read_bytes()
    content = (project_folder / "intra.mp4").read_bytes()
    names = [add(client, name, content)["name"] for name in ("uneven.mp4", "UNEVEN.mov", "uneven.mp4")]
    assert names == ["uneven-2", "UNEVEN-3", "uneven-4"]
    assert (project_folder / "uneven.mp4").read_bytes() == before


def test_files_added_at_the_same_moment_all_stay(client: TestClient, project_folder: Path) -> None:
    content = (project_folder / "intra.mp4").read_bytes()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: add(client, "same.mp4", content), range(6)))
    assert len({answer["name"] for answer in answers}) == 6
    assert len(list(project_folder.glob("same*.mp4"))) == 6


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no video",
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
        b"ffconcat version 1.0\nfile intra.mp4\n",
    ],
)
def test_what_is_no_video_is_refused_and_leaves_nothing(
    client: TestClient, project_folder: Path, content: bytes
) -> None:
    before = sorted(path.name for path in project_folder.iterdir())
    answer = add(client, "trick.mp4", content)
    assert answer["status"] == 422 and "is not a video" in str(answer["error"])
    assert sorted(set(path.name for path in project_folder.iterdir()) - {".cycleback"}) == before
    assert not list((project_folder / ".cycleback" / "uploads").iterdir())


def test_files_that_are_too_large_or_too_many_are_refused(
    client: TestClient, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (project_folder / "intra.mp4").read_bytes()
    monkeypatch.setattr(uploads, "MAX_BYTES", 1000)
    assert "at most" in str(add(client, "big.mp4", content)["error"])
    monkeypatch.setattr(uploads, "MAX_BYTES", 10**9)
    monkeypatch.setattr(uploads, "MAX_VIDEOS", 4)
    assert "has 4 videos already" in str(add(client, "fifth.mp4", content)["error"])
    monkeypatch.setattr(uploads, "MIN_FREE_BYTES", 10**18)
    assert "no room" in str(add(client, "sixth.mp4", content)["error"])
    assert not list((project_folder).glob("big*")) + list(project_folder.glob("*th.mp4"))
