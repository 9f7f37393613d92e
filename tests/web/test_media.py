"""What a browser gets: the same frames at the same times, original or proxy."""

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from coded_clips import read_number, steady_times, uneven_times, write_clip
from cycleback.video import frame_times, iter_frames, read_audio, reader
from cycleback.web import proxies
from cycleback.web.app import Studio
from cycleback.web.project import Project, ProjectVideo, video_id


def picture(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def numbers_in(path: Path) -> list[int]:
    return [read_number(frame) for chunk in iter_frames(path) for frame in chunk.frames]


def fetch_proxy(client: TestClient, name: str) -> bytes:
    for _ in range(100):
        answer = client.get(f"/api/videos/{video_id(name)}/media?proxy=1")
        if answer.status_code != 202:
            break
    assert answer.status_code == 200, answer.text
    return answer.content


def test_details_and_times_are_those_of_the_file(client: TestClient, project_folder: Path) -> None:
    detail = client.get(f"/api/videos/{video_id('uneven')}").json()
    assert (detail["frames"], detail["width"], detail["height"]) == (60, 160, 120)
    assert detail["is_variable_rate"] and not detail["has_audio"] and detail["media"] == "original"
    sent = np.frombuffer(client.get(f"/api/videos/{video_id('uneven')}/times").content, "<f8")
    assert np.allclose(sent, np.array(uneven_times(60)) / 15360)


def test_a_range_of_the_original_is_sent(client: TestClient, project_folder: Path) -> None:
    whole = (project_folder / "bframes.mp4").read_bytes()
    route = f"/api/videos/{video_id('bframes')}/media"
    part = client.get(route, headers={"Range": "bytes=100-199"})
    assert part.status_code == 206 and part.content == whole[100:200]
    assert part.headers["content-range"] == f"bytes 100-199/{len(whole)}"
    assert client.get(route).content == whole
    assert client.get(route, headers={"Range": f"bytes={len(whole) + 5}-"}).status_code == 416


@pytest.mark.parametrize("name", ["bframes", "uneven", "sound"])
def test_a_proxy_has_the_same_frames_at_the_same_times(
    client: TestClient, project_folder: Path, tmp_path: Path, name: str
) -> None:
    copy = tmp_path / "proxy.mp4"
    copy.write_bytes(fetch_proxy(client, name))
    original = project_folder / f"{name}.mp4"
    assert numbers_in(copy) == numbers_in(original) == list(range(len(frame_times(original))))
    assert np.array_equal(frame_times(copy), frame_times(original))
    with av.open(str(copy)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert all(packet.is_keyframe for packet in packets)


def test_the_sound_of_a_proxy_stays_in_place(
    client: TestClient, project_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "proxy.mp4").write_bytes(fetch_proxy(client, "sound"))
    before, after = (
        read_audio(path, rate=8000, mono=True).samples[0]
        for path in (project_folder / "sound.mp4", tmp_path / "proxy.mp4")
    )
    length = min(len(before), len(after))
    assert abs(len(before) - len(after)) < 400
    lags = range(-80, 81)
    scores = [float(np.dot(before[80 : length - 80], after[80 + lag : length - 80 + lag])) for lag in lags]
    assert abs(lags[int(np.argmax(scores))]) <= 2


@pytest.mark.parametrize("name, numbers", [("bframes", [0, 29, 30, 74]), ("uneven", [0, 7, 59])])
def test_a_frame_is_exactly_the_one_asked_for(client: TestClient, name: str, numbers: list[int]) -> None:
    for number in numbers:
        answer = client.get(f"/api/videos/{video_id(name)}/frames/{number}.jpg?height=60")
        assert answer.headers["content-type"] == "image/jpeg"
        image = picture(answer.content)
        assert image.shape == (60, 80, 3) and read_number(image) == number


def test_a_strip_shows_frames_spread_over_the_video(client: TestClient) -> None:
    strip = picture(client.get(f"/api/videos/{video_id('intra')}/strip.jpg?count=5&height=60").content)
    assert strip.shape == (60, 400, 3)
    assert [read_number(strip[:, left : left + 80]) for left in range(0, 400, 80)] == [5, 15, 25, 35, 45]


def test_peaks_show_where_the_beeps_are(client: TestClient) -> None:
    peaks = client.get(f"/api/videos/{video_id('sound')}/peaks?count=22").json()  # 2.2 s: one per 0.1 s
    assert [number for number, peak in enumerate(peaks) if peak > 0.3] == [0, 10, 20]
    assert client.get(f"/api/videos/{video_id('intra')}/peaks").json() == []


def test_files_that_browsers_cannot_play_exactly_get_a_proxy(project_folder: Path, tmp_path: Path) -> None:
    write_clip(project_folder / "tall.mp4", steady_times(20), size=(90, 160))
    write_clip(project_folder / "sparse.mp4", steady_times(120), gop=120)
    write_clip(project_folder / "other.avi", steady_times(20), codec="mpeg4")
    write_clip(project_folder / "deep.mp4", steady_times(20), pixel_format="yuv444p")
    studio = Studio(Project.open(project_folder))
    reasons = {
        name: studio.media.reason(studio.project.find(name))
        for name in ("bframes", "uneven", "intra", "sound", "tall", "sparse", "other", "deep")
    }
    assert [name for name, reason in reasons.items() if reason] == ["sparse", "other", "deep"]
    assert reasons["sparse"] == "a keyframe only every 4.0 s"
    studio.close()


def test_a_proxy_is_made_once_however_often_it_is_asked_for(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, at_once, most = [], [], []

    def write(path: Path, video: ProjectVideo, **options: object) -> None:
        made.append(video.name)
        at_once.append(video.name)
        most.append(len(at_once))
        time.sleep(0.1)
        at_once.remove(video.name)
        path.write_bytes(b"proxy")

    monkeypatch.setattr(proxies, "write_proxy", write)
    videos = list(studio.project.videos.values())
    with ThreadPoolExecutor(16) as pool:
        files = list(pool.map(lambda n: studio.media.proxies.request(videos[n % 4], wait_s=5), range(32)))
    assert sorted(made) == sorted(video.name for video in videos) and max(most) <= proxies.MAX_AT_ONCE
    assert len(set(files)) == 4 and all(isinstance(file, Path) and file.exists() for file in files)
    again = Studio(Project.open(studio.project.folder))
    assert again.media.proxies.find(again.project.find("intra")) in files
    studio.close()


def test_a_proxy_that_failed_leaves_nothing_and_is_tried_again(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, video = studio.media.proxies, studio.project.find("intra")
    with monkeypatch.context() as broken:
        broken.setattr(proxies, "_encode", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.request(video, wait_s=5)
    assert list(store.folder.iterdir()) == []
    assert isinstance(store.request(video, wait_s=5), Path)
    studio.close()


def test_closing_stops_a_proxy_and_leaves_nothing(studio: Studio, project_folder: Path) -> None:
    write_clip(project_folder / "long.mp4", steady_times(1500))
    studio.project.refresh()
    store, video = studio.media.proxies, studio.project.find("long")
    while store.request(video) == 0.0:
        time.sleep(0.01)
    progress = store.request(video)
    studio.close()
    assert isinstance(progress, float) and 0 < progress < 1
    assert list(store.folder.iterdir()) == []


def test_pictures_are_found_by_seeking(
    client: TestClient, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_clip(project_folder / "long.mp4", steady_times(2000), b_frames=2)
    client.get("/api/project")
    route = f"/api/videos/{video_id('long')}"
    assert client.get(route).json()["frames"] == 2000
    decoded = []
    advance = reader._advance
    monkeypatch.setattr(
        reader,
        "_advance",
        lambda decoder, pts: advance((decoded.append(frame.pts) or frame for frame in decoder), pts),
    )
    assert read_number(picture(client.get(f"{route}/frames/1990.jpg").content)) == 1990
    assert 0 < len(decoded) <= 30
    decoded.clear()
    strip = picture(client.get(f"{route}/strip.jpg?count=10&height=60").content)
    numbers = [read_number(strip[:, left : left + 80]) for left in range(0, 800, 80)]
    assert np.abs(np.array(numbers) - np.arange(100, 2000, 200)).max() <= 15 and len(decoded) <= 20
