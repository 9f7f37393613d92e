"""Folders as they come: empty, broken, unreadable, changing, large."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from coded_clips import draw_number, read_number, steady_times, write_clip
from cycleback.errors import DataError
from cycleback.video import iter_frames
from cycleback.web.app import Studio, build_app
from cycleback.web.project import Project, video_id


def ask(folder: Path) -> TestClient:
    return TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1")


def listed(client: TestClient) -> dict[str, dict[str, object]]:
    return {video["name"]: video for video in client.get("/api/project").json()["videos"]}


def test_an_empty_folder_is_an_empty_project(tmp_path: Path) -> None:
    told = ask(tmp_path).get("/api/project").json()
    assert told["videos"] == [] and told["problem"] == "" and told["folder"] == str(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        Project.open(tmp_path / "nowhere")


def test_broken_videos_are_listed_with_one_line_and_cannot_be_played(project_folder: Path) -> None:
    (project_folder / "empty.mp4").touch()
    (project_folder / "text.mp4").write_text("no video")
    (project_folder / "gone.mp4").symlink_to(project_folder / "nothing.mp4")
    header = (project_folder / "bframes.mp4").read_bytes()[:200]
    (project_folder / "header.mp4").write_bytes(header)
    with ask(project_folder) as client:
        end = time.monotonic() + 20
        while listed(client)["uneven"]["frames"] is None and time.monotonic() < end:
            time.sleep(0.02)
        videos = listed(client)
        for name in ("empty", "text", "gone", "header"):
            assert str(videos[name]["error"]).count(f"{name}.mp4") == 1 and "\n" not in str(
                videos[name]["error"]
            )
            assert str(project_folder) not in str(videos[name]["error"])  # a list has no room for it
            for route in ("", "/media", "/times", "/frames/0.jpg", "/strip.jpg", "/peaks"):
                answer = client.get(f"/api/videos/{video_id(name)}{route}")
                assert answer.status_code == 422 and answer.json()["error"]
        assert videos["bframes"]["error"] == "" and videos["bframes"]["frames"] == 75


@pytest.mark.filterwarnings("ignore::cycleback.errors.DamagedVideoWarning")
def test_a_video_cut_short_gets_a_proxy_of_the_frames_it_has(project_folder: Path, tmp_path: Path) -> None:
    path = project_folder / "cut.mkv"
    write_clip(path, steady_times(60), gop=10)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with ask(project_folder) as client:
        route = f"/api/videos/{video_id('cut')}"
        detail = client.get(route).json()
        assert detail["media"] == "proxy" and "cut short" in detail["warning"]
        while (answer := client.get(f"{route}/media")).status_code == 202:
            pass
        (tmp_path / "proxy.mp4").write_bytes(answer.content)
        shown = [
            read_number(frame) for chunk in iter_frames(tmp_path / "proxy.mp4") for frame in chunk.frames
        ]
        times = np.frombuffer(client.get(f"{route}/times").content)
    assert shown == list(range(len(shown))) and len(shown) == len(times) == detail["frames"] < 60


def test_a_folder_that_is_no_data_set_still_lists_its_videos(project_folder: Path) -> None:
    (project_folder / "labels.csv").write_text("what,is,this\n1,2,3\n")
    client = ask(project_folder)
    assert set(listed(client)) == {"bframes", "intra", "sound", "uneven"}
    assert "labels.csv" in client.get("/api/project").json()["problem"]
    (project_folder / "labels.csv").unlink()
    (project_folder / "intra.mov").write_bytes((project_folder / "intra.mp4").read_bytes())
    assert {"intra.mov", "intra.mp4"} <= set(listed(client))
    assert "same name" in client.get("/api/project").json()["problem"]


UNREADABLE = """
import json, os, sys
from starlette.testclient import TestClient
from cycleback.web.app import Studio, build_app
from cycleback.web.project import Project

if os.geteuid() == 0:  # root may read everything
    os.setgid(65534)
    os.setuid(65534)
for folder in sys.argv[1:]:
    client = TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1")
    told = client.get("/api/project").json()
    print(json.dumps([told["problem"], {video["name"]: video["error"] for video in told["videos"]}]))
"""


def test_folders_and_files_that_cannot_be_read_say_so(
    coded_clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as name:  # the folder of pytest is closed to other users
        root = Path(name)
        root.chmod(0o755)
        closed, inner, secret = root / "closed", root / "open" / "inner", root / "open" / "secret.mp4"
        for folder in (closed, inner):
            folder.mkdir(parents=True)
        for path in (secret, root / "open" / "fine.mp4"):
            path.write_bytes((coded_clips / "intra.mp4").read_bytes())
        for path in (closed, inner, secret):
            path.chmod(0)
        monkeypatch.setenv("CYCLEBACK_CACHE", str(root / "cache"))
        command = [sys.executable, "-c", UNREADABLE, str(closed), str(root / "open")]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for path in (closed, inner):
            path.chmod(0o755)
    (problem, videos), (other, listed) = map(json.loads, lines)
    assert "cannot list" in problem and videos == {}
    assert "inner" in other and "no permission" in listed["secret"] and listed["fine"] == ""


def test_what_a_killed_studio_left_is_removed_after_a_day(project_folder: Path) -> None:
    state = project_folder / ".cycleback"
    names = ("uploads/old.mp4", "proxies/.old.mp4", "proxies/kept.mp4", "uploads/new.mp4")
    for name in names:
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).touch()
        age = 0 if "new" in name else 100_000
        os.utime(state / name, (time.time() - age, time.time() - age))
    with ask(project_folder):
        pass
    assert [name for name in names if (state / name).exists()] == ["proxies/kept.mp4", "uploads/new.mp4"]


def test_files_that_come_change_and_go_are_noticed(project_folder: Path) -> None:
    client = ask(project_folder)
    route = f"/api/videos/{video_id('intra')}"
    assert client.get(route).json()["frames"] == 50
    first = client.get(f"{route}/frames/9.jpg").headers["etag"]
    assert client.get(f"{route}/frames/9.jpg", headers={"If-None-Match": first}).status_code == 304
    write_clip(project_folder / "intra.mp4", steady_times(20))
    (project_folder / "sound.mp4").unlink()
    write_clip(project_folder / "new.mp4", steady_times(10))
    assert set(listed(client)) == {"bframes", "intra", "new", "uneven"}
    assert client.get(route).json()["frames"] == 20
    assert client.get(f"{route}/frames/9.jpg", headers={"If-None-Match": first}).status_code == 200
    assert client.get(f"/api/videos/{video_id('sound')}").status_code == 404


def test_a_folder_of_images_plays_as_a_proxy(tmp_path: Path) -> None:
    folder = tmp_path / "clips" / "walk"
    folder.mkdir(parents=True)
    for number in range(12):
        Image.fromarray(draw_number(number)).save(folder / f"{number}.png")
    (folder / "fps.txt").write_text("12.5")
    with ask(tmp_path / "clips") as client:
        route = f"/api/videos/{video_id('walk')}"
        assert client.get(route).json()["media"] == "proxy"
        while (answer := client.get(f"{route}/media")).status_code == 202:
            pass
        (tmp_path / "proxy.mp4").write_bytes(answer.content)
        times = np.frombuffer(client.get(f"{route}/times").content)
        picture = client.get(f"{route}/frames/7.jpg").content
    (tmp_path / "seven.jpg").write_bytes(picture)
    assert read_number(np.asarray(Image.open(tmp_path / "seven.jpg"))) == 7
    chunks = list(iter_frames(tmp_path / "proxy.mp4"))
    assert [read_number(frame) for chunk in chunks for frame in chunk.frames] == list(range(12))
    assert np.allclose(np.concatenate([chunk.times for chunk in chunks]), times, atol=1e-6)
    assert np.allclose(times, np.arange(12) / 12.5)


def test_the_list_of_500_videos_reads_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(500):
        (tmp_path / f"{number}.mp4").write_bytes(b"x")
    project = Project.open(tmp_path)
    monkeypatch.setattr("cycleback.web.project.inspect", lambda path: pytest.fail("a video was read"))
    client = TestClient(build_app(Studio(project)), base_url="http://127.0.0.1")
    videos = client.get("/api/project").json()["videos"]
    assert len(videos) == 500 and {video["frames"] for video in videos} == {None}
    assert [video["name"] for video in videos[:3]] == ["0", "1", "2"]


def test_a_read_only_folder_keeps_its_state_in_the_cache(
    project_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("cycleback.web.project.os.access", lambda path, mode: not mode & os.W_OK)
    assert Project.open(project_folder).state.is_relative_to(tmp_path / "cache")
