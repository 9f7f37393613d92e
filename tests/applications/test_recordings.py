"""Rerun recordings, read back by the SDK; skipped where it is not installed."""

import sys
from pathlib import Path

import numpy as np
import pytest

from coded_clips import draw_number
from cycleback.applications.pace import Pace
from cycleback.applications.recordings import write_recording
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import MissingDependencyError, VideoError
from cycleback.video import frame_times, write_video


@pytest.fixture
def scene(tmp_path: Path) -> tuple[EmbeddingSet, Pace, list[Path]]:
    """Two videos at 10 and 5 frames per second; the second one starts half a second later."""
    rng = np.random.default_rng(0)
    files = [
        write_video(tmp_path / f"{name}.mp4", [draw_number(n) for n in range(count)], fps=fps)
        for name, count, fps in (("a b", 20, 10), ("c", 10, 5))
    ]
    moments = rng.normal(size=(40, 4))
    arrays = {"a b": moments[:20], "c": moments[5:25:2]}
    times = {path.stem: frame_times(path) for path in files}
    seconds = np.arange(15) / 10
    positions = np.stack([np.arange(5.0, 20.0), np.arange(15) / 2])
    pace = Pace(("a b", "c"), 10.0, seconds, np.stack([seconds + 0.5, seconds]), positions)
    return EmbeddingSet.from_arrays(arrays, times=times), pace, files


def test_corresponding_frames_are_shown_at_each_moment(scene, tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="rerun-sdk (170 MB) is not installed")
    from rerun.chunk import RrdReader

    embeddings, pace, files = scene
    out = write_recording(tmp_path / "x.rrd", embeddings, pace, files)
    shown: dict[str, list[tuple[float, float]]] = {}
    for chunk in RrdReader(out).stream():
        batch = chunk.to_record_batch()
        names = batch.schema.names
        if "aligned" not in names:
            continue
        clock = batch.column("aligned").cast("int64").to_numpy() / 1e9
        values = next(batch.column(name) for name in names if "timestamp" in name or "scalars" in name)
        rows = [row[0] for row in values.to_pylist()]
        shown.setdefault(chunk.entity_path, []).extend(zip(clock.tolist(), rows, strict=True))
    videos = {path: sorted(rows) for path, rows in shown.items() if path.startswith("/videos")}
    assert len(videos) == 2
    for path, positions, fps in (
        (r"/videos/a\ b", pace.positions[0], 10),
        ("/videos/c", pace.positions[1], 5),
    ):
        clock, stamps = (np.array(each) for each in zip(*videos[path], strict=True))
        assert clock == pytest.approx(pace.seconds)
        assert stamps / 1e9 == pytest.approx(np.rint(positions) / fps, abs=1e-3)
    distance = dict(shown["/match/c/distance"])
    wanted = np.square(embeddings["a b"][5] - embeddings["c"][0]).sum()
    assert distance[0.0] == pytest.approx(wanted, abs=1e-9) and wanted == 0
    assert {path for path in shown if path.startswith("/match/c")} == {
        f"/match/c/{what}" for what in ("confidence", "distance", "seconds")
    }


def test_what_cannot_be_recorded_is_told(scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, pace, files = scene
    with pytest.raises(VideoError, match=r"b\.avi: a recording holds \.mp4 only"):
        write_recording(tmp_path / "x.rrd", embeddings, pace, [files[0], tmp_path / "b.avi"])
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(
        MissingDependencyError, match=r"writing a recording needs rerun: pip install 'cycleback"
    ):
        write_recording(tmp_path / "x.rrd", embeddings, pace, files)
    assert not (tmp_path / "x.rrd").exists()
