"""Embeddings, alignments and similarity of a project, against the library and against whole matrices."""

import io
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from cycleback.alignment import align, squared_distances
from cycleback.data.pins import Pin, read_pins, write_pins
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, UserError
from cycleback.web import embedded
from cycleback.web.app import Studio, build_app
from cycleback.web.matches import AlignmentCache, follow_reference
from cycleback.web.project import Project, ProjectVideo, video_id
from cycleback.web.tiles import TILE, Similarity

Floats = NDArray[np.float64]


def walk(progress: Floats, *, seed: int = 0) -> Floats:
    """Embeddings (N, 6) of an action seen at the given shares (N,) of it, with a little noise."""
    curve = np.column_stack([f(progress * k) for k in (1, 3, 5) for f in (np.sin, np.cos)])
    return curve + 0.02 * np.random.default_rng(seed).normal(size=curve.shape)


LENGTHS = {"a": 60, "b": 90, "c": 75}
ARRAYS = {
    "a": walk(np.linspace(0, 2, 60)),
    "b": walk(2 * np.linspace(0, 1, 90) ** 1.5, seed=1),
    "c": np.concatenate([np.full((15, 6), 4.0), walk(np.linspace(0, 2, 60), seed=2)]),  # with a lead-in
}
A, B, C = map(video_id, "abc")
PIN = Pin("a", 30, "b", 20)


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    for name in ARRAYS:
        (tmp_path / f"{name}.mp4").write_bytes(name.encode())
    studio = Studio(Project.open(tmp_path))
    studio.matches.store.store(EmbeddingSet.from_arrays(ARRAYS, fps=30))
    return studio


def test_alignment_is_that_of_the_library(client: TestClient) -> None:
    for method in ("auto", "nearest", "dtw", "subsequence", "open_end", "overlap"):
        answer = client.get(f"/api/alignment?reference={A}&videos={A},{B}&method={method}").json()
        expected = align(ARRAYS["a"].astype(np.float32), ARRAYS["b"].astype(np.float32), method=method)
        same, other = answer["videos"]
        assert same["frames"] == list(range(60)) and other["id"] == B
        np.testing.assert_array_equal(
            np.array(other["frames"])[expected.matched], expected.indices[expected.matched]
        )
        np.testing.assert_allclose(other["confidence"], expected.confidence, atol=1e-4)
        assert other["matched"] == expected.matched.tolist()


def test_a_lead_in_plays_at_the_pace_of_the_reference(client: TestClient) -> None:
    (video,) = client.get(f"/api/alignment?reference={C}&videos={A}").json()["videos"]
    assert video["matched"][:15] == [False] * 15 and all(video["matched"][16:])
    assert video["frames"][:15] == [0] * 15  # a begins with the action: it waits
    (video,) = client.get(f"/api/alignment?reference={A}&videos={C}").json()["videos"]
    assert video["frames"][0] == pytest.approx(15, abs=2)


def test_frames_left_out_keep_real_time() -> None:
    """A reference of 10 fps, matched from its frame 4 on, with a video of 20 fps from its frame 10 on."""
    a, b = np.arange(8.0)[:, None], np.arange(30.0)[:, None]
    match = align(a, b, method="dtw")
    matched = np.array([False] * 4 + [True] * 4)
    indices = np.array([10, 10, 10, 10, 10, 12, 14, 16])
    fake = type(match)(indices, match.confidence, match.distances, "auto", matched, indices.astype(float))
    frames = follow_reference(fake, np.arange(8) / 10, np.arange(30) / 20)
    assert frames.tolist() == [2, 4, 6, 8, 10, 12, 14, 16]


def test_pair_shows_the_path(client: TestClient) -> None:
    pair = client.get(f"/api/pairs/{A}/{B}?method=dtw").json()
    expected = align(ARRAYS["a"].astype(np.float32), ARRAYS["b"].astype(np.float32), method="dtw")
    assert expected.path is not None and pair["path"] == expected.path.tolist()
    assert pair["size"] == [60, 90] and pair["levels"] == 1
    assert client.get(f"/api/pairs/{A}/{B}/matrix").json().items() <= pair.items()
    assert pair["cost"] == pytest.approx(expected.distances.mean(), abs=1e-4)
    nearest = client.get(f"/api/pairs/{A}/{B}?method=nearest").json()
    assert nearest["path"] == [[i, j] for i, j in enumerate(nearest["frames"])]


def test_tiles_are_a_pyramid_of_the_similarity() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(600, 5)).astype(np.float32), rng.normal(size=(390, 5)).astype(np.float32)
    similarity = Similarity.measure(a, b)
    whole = np.rint(255 * np.exp(-squared_distances(b, a) / similarity.scale)).astype(np.uint8)  # (S, T)
    exact = np.median(squared_distances(a, b))
    assert similarity.scale == pytest.approx(exact, rel=0.02) and similarity.levels == 3
    for level, (columns, rows) in enumerate([(3, 2), (2, 1), (1, 1)]):
        step = 2**level
        tiles = [
            np.concatenate([similarity.tile(level, x, y) for x in range(columns)], axis=1)
            for y in range(rows)
        ]
        expected = whole[np.minimum(np.arange(0, 390, step) + step // 2, 389)]
        expected = expected[:, np.minimum(np.arange(0, 600, step) + step // 2, 599)]
        np.testing.assert_allclose(np.concatenate(tiles).astype(int), expected, atol=1)  # rounding of halves
        assert max(max(tile.shape) for tile in tiles) <= columns * TILE
    for level, x, y in [(3, 0, 0), (-1, 0, 0), (0, 3, 0), (0, 0, 2)]:
        with pytest.raises(UserError, match=r"no (level|tile)"):
            similarity.tile(level, x, y)


def test_tiles_of_two_hours_need_little_memory() -> None:
    import tracemalloc

    hour = np.zeros((108_000, 4), dtype=np.float32)
    hour[:, 0] = np.linspace(0, 10, len(hour))
    similarity = Similarity.measure(hour, hour)
    tracemalloc.start()
    for level in (0, 5, similarity.levels - 1):
        assert similarity.tile(level, 0, 0).shape <= (TILE, TILE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert similarity.levels == 10 and peak < 20_000_000


def test_tile_comes_as_grey_png(client: TestClient, studio: Studio) -> None:
    from PIL import Image

    answer = client.get(f"/api/pairs/{A}/{B}/tiles/0/0/0.png")
    image = Image.open(io.BytesIO(answer.content))
    assert answer.headers["content-type"] == "image/png" and image.mode == "L" and image.size == (60, 90)
    np.testing.assert_array_equal(np.asarray(image), studio.matches.similarity(A, B).tile(0, 0, 0))


def test_nothing_is_embedded_at_first(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"a")
    studio = Studio(Project.open(tmp_path))
    client = TestClient(build_app(studio), base_url="http://127.0.0.1")
    answer = client.get(f"/api/pairs/{A}/{A}")
    assert answer.status_code == 422 and "not embedded yet" in answer.json()["error"]
    listed = client.get("/api/embeddings").json()
    assert listed == {"run": None, "revision": "", "videos": [], "waiting": [A]}


def test_a_changed_video_waits_to_be_embedded_again(client: TestClient, studio: Studio) -> None:
    (studio.project.folder / "b.mp4").write_bytes(b"another take")
    studio.project.refresh()
    listed = client.get("/api/embeddings").json()
    assert listed["videos"] == [A, C] and listed["waiting"] == [B]
    answer = client.get(f"/api/alignment?reference={A}&videos={B}")
    assert answer.status_code == 422 and answer.json()["error"].startswith("b is not embedded yet")
    assert studio.matches.embeddings.names == ("a", "c")
    answer = client.get(f"/api/alignment?reference={A}&videos={B},{C}").json()
    assert [video["id"] for video in answer["videos"]] == [C] and answer["waiting"] == [B]
    answer = client.get(f"/api/alignment?reference={B}&videos={A}")
    assert answer.json()["error"].startswith("b is not embedded yet")


def test_embed_computes_what_is_new_or_changed(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProjectVideo, "look", lambda video: None)  # these files hold no video
    calls: list[tuple[tuple[str, ...], bool]] = []

    def embed_videos(run, dataset, *, alike, progress):  # type: ignore[no-untyped-def]
        calls.append((dataset.names, alike is not None))
        return EmbeddingSet.from_arrays({name: np.full((5, 6), len(calls)) for name in dataset.names}, fps=30)

    monkeypatch.setattr(embedded, "embed_videos", embed_videos)
    matches, before = studio.matches, studio.matches.revision
    matches.embed()
    assert not calls and matches.revision == before
    (studio.project.folder / "b.mp4").write_bytes(b"another take")
    (studio.project.folder / "d.mp4").write_bytes(b"d")
    videos = matches.embed()
    assert calls == [(("b", "d"), True)] and videos.names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(videos["a"], ARRAYS["a"].astype(np.float32))
    assert (videos["b"] == 1).all() and matches.revision != before and not matches.store.waiting()
    matches.embed("runs/golf")
    assert calls[1] == (("a", "b", "c", "d"), False) and (matches.embeddings["a"] == 2).all()
    matches.embed()
    assert len(calls) == 2 and (matches.embeddings["b"] == 1).all()


def test_a_set_written_by_another_process_is_noticed(studio: Studio) -> None:
    before = studio.matches.align(A, B)
    arrays = {name: array[::-1] for name, array in ARRAYS.items()} | {"b": ARRAYS["b"]}
    Studio(Project.open(studio.project.folder)).matches.store.store(EmbeddingSet.from_arrays(arrays, fps=30))
    after = studio.matches.align(A, B)
    assert after is not before and studio.matches.align(A, B) is after
    assert isinstance(studio.matches.embeddings["a"].base, np.memmap)
    with pytest.raises(EmbeddingError, match="embed the videos again"):
        (studio.project.state / "embeddings" / "pretrained.json").write_text("{")
        _ = studio.matches.embeddings


def test_cache_keeps_the_last_used_and_computes_once() -> None:
    cache, runs = AlignmentCache(max_frames=25), []

    def compute():  # type: ignore[no-untyped-def]
        runs.append(1)
        time.sleep(0.05)
        return align(np.zeros((10, 1)), np.zeros((3, 1)))

    threads = [threading.Thread(target=cache.fetch, args=("x", compute)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 1
    for key in ("y", "x", "z"):  # room for two: y was used longest ago
        cache.fetch(key, compute)
    assert len(runs) == 3
    cache.fetch("x", compute)
    assert len(runs) == 3
    cache.fetch("y", compute)
    assert len(runs) == 4
    with pytest.raises(ZeroDivisionError):
        cache.fetch("bad", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert cache.fetch("bad", compute) is not None


def pin_list(client: TestClient) -> dict[str, Any]:
    return dict(client.get("/api/pins").json())


def put_pins(client: TestClient, revision: int, *pins: Sequence[object]) -> httpx.Response:
    return client.put("/api/pins", json={"revision": revision, "pins": pins})


def test_a_pin_bends_the_path_and_the_player(client: TestClient, studio: Studio) -> None:
    before = client.get(f"/api/alignment?reference={A}&videos={B}&method=dtw").json()
    assert put_pins(client, 0, [A, 30, B, 20]).json()["revision"] == 1
    after = client.get(f"/api/alignment?reference={A}&videos={B}&method=dtw").json()
    assert before["videos"][0]["frames"][30] > 40 and after["videos"][0]["frames"][30] == 20
    assert after["revision"] != before["revision"] and after["videos"][0]["confidence"][30] == 1
    pair = client.get(f"/api/pairs/{B}/{A}?method=dtw").json()  # the other way round
    assert [20, 30] in pair["path"] and pair["pins"] == [[20, 30]]
    expected = align(studio.matches.embeddings["a"], studio.matches.embeddings["b"], pins=[(30, 20)])
    got = client.get(f"/api/pairs/{A}/{B}").json()
    assert expected.path is not None and got["path"] == expected.path.tolist()
    untouched = client.get(f"/api/pairs/{A}/{C}").json()
    assert untouched["path"] == align(*(studio.matches.embeddings[name] for name in "ac")).path.tolist()  # type: ignore[union-attr]


def test_a_pin_between_two_others_holds_at_the_pace_of_a_third(client: TestClient) -> None:
    put_pins(client, 0, [A, 30, B, 20])
    aligned = client.get(f"/api/alignment?reference={C}&videos={A},{B}").json()["videos"]
    assert [30, 20] in list(map(list, zip(*(video["frames"] for video in aligned), strict=True)))


def test_labels_follow_a_pin(studio: Studio) -> None:
    studio.matches.pins.write([PIN], 0)
    (studio.project.folder / "labels.csv").write_text("video,event,frame\na,top,30\n")
    labels, end = Studio(Project.open(studio.project.folder)).labels, time.monotonic() + 30
    while (shown := labels.show()).is_updating and time.monotonic() < end:
        time.sleep(0.05)
    assert {video.id: [event.frame for event in video.events] for video in shown.videos}[B] == [20]


def test_pins_that_cross_are_refused_with_a_sentence(client: TestClient, studio: Studio) -> None:
    put_pins(client, 0, [A, 30, B, 20])
    answer = put_pins(client, 1, [A, 30, B, 20], [B, 10, A, 40])
    assert answer.status_code == 422 and "cross" in answer.json()["error"]
    answer = put_pins(client, 1, [A, 30, B, 20], [A, 60, B, 50])
    assert answer.status_code == 422 and "which has frames 0 to 59" in answer.json()["error"]
    answer = put_pins(client, 1, [A, 30, B, 20], [B, 20, C, 40], [C, 40, A, 31])
    assert answer.status_code == 422 and "through other videos" in answer.json()["error"]
    assert put_pins(client, 1, [A, 3, "0" * 12, 2]).status_code == 404
    assert pin_list(client)["pins"] == [[A, 30, B, 20]] and read_pins(studio.project.folder) == [PIN]


def test_a_stale_revision_is_refused(client: TestClient) -> None:
    put_pins(client, 0, [A, 30, B, 20])
    answer = put_pins(client, 0, [A, 40, B, 30])
    assert answer.status_code == 409 and answer.json()["revision"] == 1
    assert pin_list(client)["pins"] == [[A, 30, B, 20]]


def test_undo_returns_to_older_lists(client: TestClient, studio: Studio) -> None:
    put_pins(client, 0, [A, 30, B, 20])
    put_pins(client, 1, [A, 30, B, 20], [A, 40, B, 50])
    lists = []
    for revision in (2, 3):
        answer = client.post("/api/pins/undo", json={"revision": revision}).json()
        lists.append((answer["revision"], answer["pins"], answer["can_undo"]))
    assert lists == [(3, [[A, 30, B, 20]], True), (4, [], False)]
    assert client.post("/api/pins/undo", json={"revision": 4}).status_code == 422
    assert client.post("/api/pins/undo", json={"revision": 3}).status_code == 409
    assert read_pins(studio.project.folder) == []


def test_pins_edited_by_other_means_are_taken_in(client: TestClient, studio: Studio) -> None:
    folder = studio.project.folder
    (folder / "pins.csv").write_text("video_a,frame_a,video_b,frame_b\na.mp4,30,b.mp4,20\n")
    assert pin_list(client)["pins"] == [[A, 30, B, 20]] and pin_list(client)["revision"] == 1
    put_pins(client, 1, [A, 31, B, 20])
    write_pins(folder, [PIN])  # back to what it was: an edit like any other
    assert pin_list(client)["pins"] == [[A, 30, B, 20]] and pin_list(client)["revision"] == 3
    (folder / "pins.csv").write_text("video_a,frame_a,video_b,frame_b\na,thirty,b,20\n")
    listed = pin_list(client)
    assert listed["pins"] == [[A, 30, B, 20]] and "pins.csv, line 2" in listed["problem"]
    answer = put_pins(client, 3)
    assert answer.status_code == 422 and "line 2" in answer.json()["error"]  # nothing is overwritten
    assert "thirty" in (folder / "pins.csv").read_text()


def test_pins_can_be_downloaded(client: TestClient) -> None:
    put_pins(client, 0, [A, 30, B, 20])
    answer = client.get("/api/pins.csv")
    assert answer.text == "video_a,frame_a,video_b,frame_b\na,30,b,20\n"
    assert "attachment" in answer.headers["content-disposition"]


def test_a_crash_between_journal_and_file_loses_nothing(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = studio.matches.pins
    pins.write([PIN], 0)
    with monkeypatch.context() as patch:
        patch.setattr("cycleback.web.pins.write_pins", lambda folder, pins: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pins.write([PIN, Pin("a", 40, "b", 50)], 1)
    assert read_pins(studio.project.folder) == [PIN]
    again = Studio(Project.open(studio.project.folder)).matches.pins.read()
    assert again.revision == 2 and len(again.pins) == 2
    assert read_pins(studio.project.folder) == list(again.pins)


WRITER = """
import sys
from cycleback.data.pins import Pin
from cycleback.web.app import Studio
from cycleback.web.project import Project

pins, kept = Studio(Project.open(sys.argv[1])).matches.pins, []
for number in range(59):
    kept.append(Pin("a", number, "b", number))
    print(pins.write(kept, number).revision, flush=True)
"""


def test_every_answered_pin_survives_a_kill(studio: Studio) -> None:
    folder = studio.project.folder
    answered = 0
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        while answered < 7:
            answered = int(child.stdout.readline())
        child.kill()
        answered = max([answered, *map(int, child.stdout.read().split())])
    found = Studio(Project.open(folder)).matches.pins.read()
    assert found.revision >= answered and len(found.pins) == found.revision
    assert read_pins(folder) == list(found.pins)
