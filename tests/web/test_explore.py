"""Search, odd takes, map, progress and sound of a project, against the library and against known answers."""

import io
import wave
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from cycleback.applications import find_anomalies
from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, probe, write_video
from cycleback.web.app import Studio, build_app
from cycleback.web.explore import score_takes, spread_names
from cycleback.web.project import Project, video_id

FRAMES = 40


def walk(shares: NDArray[np.float64], *, seed: int) -> NDArray[np.float32]:
    """Embeddings (N, 4) of an action seen at the given shares (N,) of it."""
    curve = np.stack([np.cos(3 * shares), np.sin(3 * shares), shares, shares**2], axis=1)
    return (curve + 0.01 * np.random.default_rng(seed).normal(size=curve.shape)).astype(np.float32)


def make_takes(count: int) -> dict[str, NDArray[np.float32]]:
    """Takes of one action at their own pace; the last goes wrong from frame 15 to 25."""
    paces = np.linspace(0.8, 1.25, count)
    takes = {f"take-{n}": walk(np.linspace(0, 1, FRAMES) ** pace, seed=n) for n, pace in enumerate(paces)}
    takes[f"take-{count - 1}"][15:26] += 0.6
    return takes


def make_client(folder: Path, takes: dict[str, NDArray[np.float32]]) -> TestClient:
    studio = Studio(Project.open(folder))
    paths = {name: folder / f"{name}.mp4" for name in takes}
    studio.matches.store.store(EmbeddingSet.from_arrays(takes, fps=10, paths=paths))
    return TestClient(build_app(studio), base_url="http://127.0.0.1")


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    takes = make_takes(8)
    for name in takes:
        (tmp_path / f"{name}.mp4").write_bytes(name.encode())
    return make_client(tmp_path, takes)


def test_search_finds_the_same_moment(client: TestClient) -> None:
    hits = client.get(f"/api/search?video={video_id('take-0')}&frame=20").json()
    shares = np.linspace(0, 1, FRAMES)
    wanted = shares[20] ** 0.8
    assert {hit["id"] for hit in hits} == {video_id(f"take-{n}") for n in range(1, 8)}
    assert [hit["similarity"] for hit in hits] == sorted((hit["similarity"] for hit in hits), reverse=True)
    by_id = {hit["id"]: hit["frame"] for hit in hits}
    paces = np.linspace(0.8, 1.25, 8)
    for n in range(1, 7):  # the last went wrong there
        assert abs(by_id[video_id(f"take-{n}")] - np.abs(shares ** paces[n] - wanted).argmin()) <= 1


def test_the_take_that_goes_wrong_is_the_oddest(client: TestClient) -> None:
    takes = client.get("/api/anomalies").json()
    assert takes[0]["id"] == video_id("take-7") and takes[0]["verdict"] != "typical"
    assert any(first <= 20 <= last for first, last in takes[0]["spans"])
    assert len(takes) == 8 and all(len(take["scores"]) == FRAMES for take in takes)
    told = takes[0]["oddities"]
    assert any(odd["first"] <= 20 <= odd["last"] and odd["kind"] in odd["text"] for odd in told)
    assert all(not take["oddities"] for take in takes if take["verdict"] == "typical")


def test_chosen_good_takes_are_those_of_the_library() -> None:
    videos = EmbeddingSet.from_arrays(make_takes(8), fps=10)
    good = [f"take-{n}" for n in range(5)]
    scores = score_takes(videos, good)
    expected = find_anomalies(videos.subset(["take-5", "take-6", "take-7"]), videos.subset(good)).scores
    assert scores.keys() == set(videos.names)
    for name in expected:
        np.testing.assert_array_equal(scores[name].scores, expected[name].scores)
        assert scores[name].spans == expected[name].spans


def test_few_takes_are_refused_with_a_line(tmp_path: Path) -> None:
    takes = {name: rows for name, rows in make_takes(3).items()}
    for name in takes:
        (tmp_path / f"{name}.mp4").write_bytes(name.encode())
    answer = make_client(tmp_path, takes).get("/api/anomalies")
    assert answer.status_code == 422 and "3 takes cannot say what is typical" in answer.json()["error"]


def test_the_map_keeps_neighbours_together(client: TestClient) -> None:
    for by in ("pca", "tsne"):
        videos = client.get(f"/api/map?by={by}").json()
        assert [video["frames"] for video in videos] == [list(range(FRAMES))] * 8
        points = np.array([video["points"] for video in videos])  # (V, N, 2)
        assert points.min() >= 0 and points.max() <= 1 and np.ptp(points, axis=(0, 1)).max() == 1
        steps = np.linalg.norm(np.diff(points[0], axis=0), axis=1)
        ends = np.linalg.norm(points[0, -1] - points[0, 0])
        assert np.median(steps) < ends / 5
    assert client.get("/api/map?by=magic").status_code == 422


def test_progress_runs_from_start_to_end(client: TestClient) -> None:
    videos = client.get(f"/api/progress?reference={video_id('take-0')}").json()
    assert len(videos) == 8
    for video in videos:
        assert video["progress"][0] < 0.1 and video["progress"][-1] > 0.9


def test_names_are_spread_over_the_list() -> None:
    assert spread_names([str(n) for n in range(9)], 3) == ["0", "4", "8"]
    assert spread_names(["a", "b"], 5) == ["a", "b"]


def test_a_click_moves_to_the_other_video(tmp_path: Path) -> None:
    """The source clicks at half its length; the target reaches that moment after a quarter."""
    rate, shares = 16000, np.linspace(0, 1, FRAMES)
    click = np.zeros((1, rate * 4), dtype=np.float32)
    click[0, rate * 2 : rate * 2 + 200] = 1
    images = [np.full((32, 32, 3), n, dtype=np.uint8) for n in range(FRAMES)]
    write_video(tmp_path / "heard.mp4", images, fps=10, audio=Audio(click, rate))
    write_video(tmp_path / "seen.mp4", images, fps=10)
    client = make_client(tmp_path, {"heard": walk(shares, seed=0), "seen": walk(shares**0.5, seed=1)})
    query = f"source={video_id('heard')}&target={video_id('seen')}"
    answer = client.get(f"/api/sound?{query}")
    with wave.open(io.BytesIO(answer.content)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(float)
        loudest = np.abs(samples).argmax() / sound.getnchannels() / sound.getframerate()
    assert loudest == pytest.approx(1.0, abs=0.15)
    (tmp_path / "got.mp4").write_bytes(client.get(f"/api/sound.mp4?{query}").content)
    info = probe(tmp_path / "got.mp4")
    assert info.has_audio and info.num_frames == FRAMES
    silent = client.get(f"/api/sound?source={video_id('seen')}&target={video_id('heard')}")
    assert silent.status_code == 422 and "seen.mp4" in silent.json()["error"]
