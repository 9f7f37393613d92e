import io
import itertools
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from alignment import loops
from cycleback.alignment import squared_distances
from cycleback.applications import live
from cycleback.applications.live import Follower
from cycleback.errors import CheckpointError, VideoError
from cycleback.models import Encoder
from cycleback.recipe import Recipe, build_encoder
from cycleback.recipe.sections import EncoderSettings


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(0)
    section = EncoderSettings(streams=("appearance",), base="small", embedder="conv", train_base="all")
    return build_encoder(Recipe(encoder=section)).eval()


@pytest.fixture(scope="module")
def stream_file(ramps: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frames of a video in a container that can be read while it grows."""
    import av

    path = tmp_path_factory.mktemp("live") / "stream.ts"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for level in range(30):
            frame = av.VideoFrame.from_ndarray(np.full((32, 48, 3), 6 * level, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def embeddings(encoder: Encoder, frames: list[np.ndarray]) -> np.ndarray:
    return np.array(list(live.embed_live(encoder, frames)))


def test_later_frames_never_change_earlier_embeddings(encoder: Encoder, ramps: list[Path]) -> None:
    frames = list(live.read_source(str(ramps[0]), encoder))
    whole = embeddings(encoder, frames)
    assert np.array_equal(embeddings(encoder, frames[:9]), whole[:9])
    assert np.array_equal(embeddings(encoder, frames[:9] + frames[:3])[:9], whole[:9])


def test_an_embedding_comes_before_the_next_frame_is_asked_for(encoder: Encoder) -> None:
    asked = []

    def source():
        for number in range(5):
            asked.append(number)
            yield np.zeros((*encoder.frame_size, 3), np.uint8)

    for number, _ in enumerate(live.embed_live(encoder, source())):
        assert asked == list(range(number + 1))


def test_it_equals_the_embedding_of_the_whole_video(encoder: Encoder, ramps: list[Path]) -> None:
    frames = list(live.read_source(str(ramps[0]), encoder))
    images = torch.from_numpy(np.array(frames)).movedim(-1, 1)
    with torch.inference_mode():
        expected = torch.cat(list(encoder.embed_stream([encoder.features(images)]))).numpy()
    assert embeddings(encoder, frames) == pytest.approx(expected, abs=1e-4)


def test_a_growing_file_is_followed_to_its_end(encoder: Encoder, stream_file: Path, tmp_path: Path) -> None:
    content, growing = stream_file.read_bytes(), tmp_path / "growing.ts"
    growing.write_bytes(content[: len(content) // 3])

    def finish() -> None:
        time.sleep(0.3)
        with growing.open("ab") as file:
            file.write(content[len(content) // 3 :])

    writer = threading.Thread(target=finish)
    writer.start()
    found = list(live.read_source(str(growing), encoder, patience=1.0))
    writer.join()
    assert len(found) == len(list(live.read_source(str(stream_file), encoder)))


def test_a_video_on_standard_input_is_read(encoder: Encoder, stream_file: Path, monkeypatch) -> None:
    class Pipe:
        buffer = io.BytesIO(stream_file.read_bytes())

    monkeypatch.setattr(live.sys, "stdin", Pipe())
    found = list(live.read_source("-", encoder))
    assert len(found) == 30
    assert found[20].mean() == pytest.approx(120, abs=8)


def test_real_time_takes_as_long_as_the_video(encoder: Encoder, ramps: list[Path]) -> None:
    started = time.monotonic()
    list(itertools.islice(live.read_source(str(ramps[0]), encoder, real_time=True), 6))
    assert time.monotonic() - started > 0.48  # the sixth frame comes half a second after the first


def test_a_file_that_is_no_stream_is_one_line(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "x.ts").write_text("no video")
    with pytest.raises(VideoError, match=r"cannot follow .*x\.ts.*read from its start"):
        list(live.read_source(str(tmp_path / "x.ts"), encoder, patience=0.05))
    with pytest.raises(VideoError, match=r"none\.ts does not exist"):
        list(live.read_source(str(tmp_path / "none.ts"), encoder, patience=0.05))


@pytest.mark.parametrize("section", [{"streams": ("appearance",), "embedder": "pooled"}, {}])
def test_an_encoder_that_needs_the_whole_video_is_refused(section: dict[str, Any]) -> None:
    whole = build_encoder(Recipe(encoder=EncoderSettings(base="small", **section)))
    with pytest.raises(CheckpointError, match=r"cannot follow a stream\. Train .* --recipe appearance"):
        next(live.embed_live(whole, [np.zeros((112, 112, 3), np.uint8)]))


@pytest.fixture
def reference() -> np.ndarray:
    clock = np.linspace(0, 1, 80)
    return np.stack([np.sin(3 * clock), np.cos(3 * clock), 2 * clock], axis=1)


@pytest.fixture
def stream(reference: np.ndarray) -> np.ndarray:
    """The same at half the pace, with noise."""
    rng = np.random.default_rng(0)
    return np.repeat(reference, 2, axis=0) + 0.03 * rng.normal(size=(160, 3))


def frames(follower: Follower, rows: np.ndarray) -> list[int]:
    return [follower.push(row).frame for row in rows]


def test_it_is_the_open_end_of_offline_time_warping(reference: np.ndarray, stream: np.ndarray) -> None:
    ends = loops.accumulated_cost(squared_distances(stream, reference)).argmin(axis=1)
    assert frames(Follower(reference), stream) == np.maximum.accumulate(ends).tolist()


def test_it_finds_the_true_place(reference: np.ndarray, stream: np.ndarray) -> None:
    errors = np.abs(np.array(frames(Follower(reference), stream)) - np.arange(160) // 2)
    assert np.median(errors) <= 1
    assert errors.max() <= 4


def test_the_future_never_changes_what_was_said(reference: np.ndarray, stream: np.ndarray) -> None:
    other = np.concatenate([stream[:70], stream[::-1][:50]])
    first, second = Follower(reference), Follower(reference)
    assert [first.push(row) for row in stream[:70]] == [second.push(row) for row in other][:70]


def test_it_never_goes_back(reference: np.ndarray) -> None:
    rows = np.concatenate([reference[:50], reference[:30], reference[30:]])
    assert (np.diff(frames(Follower(reference), rows)) >= 0).all()


def test_deviation_is_small_on_the_way_and_large_off_it(reference: np.ndarray) -> None:
    follower = Follower(reference)
    assert max(follower.push(row).deviation for row in reference[:40]) == pytest.approx(0, abs=1e-9)
    assert follower.push(reference[40] + 5).deviation > 5


def test_progress_and_phase_go_with_the_frame(reference: np.ndarray) -> None:
    follower = Follower(reference, events={"b": 60, "a": 20})
    found = [follower.push(row) for row in reference]
    assert [found[frame].phase for frame in (0, 19, 20, 59, 60, 79)] == [0, 0, 1, 1, 2, 2]
    assert (found[0].progress, found[-1].progress) == (0, 1)


def test_a_reference_without_labels_has_no_phase(reference: np.ndarray) -> None:
    assert Follower(reference).push(reference[0]).phase is None
    assert Follower(reference, events={}).push(reference[0]).phase is None


def test_memory_and_numbers_stay_bounded_on_a_long_stream(reference: np.ndarray) -> None:
    follower = Follower(reference)
    tracemalloc.start()
    for _ in range(500):
        follower.push(reference[0] + 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
    assert np.isfinite(follower._cost).all()


def test_bad_shapes_are_refused(reference: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"\(S >= 2, D\), got \(1, 3\)"):
        Follower(reference[:1])
    with pytest.raises(ValueError, match="different embedding sizes, 2 and 3"):
        Follower(reference).push([0.0, 1.0])


def test_a_camera_is_read_through_ffmpeg(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    device = "testsrc=size=64x48:rate=10:duration=1,setparams=color_primaries=bt709[out{}]"
    monkeypatch.setattr(live, "CAMERAS", {"linux": ("lavfi", device)})  # ffmpeg's test pattern as a device
    monkeypatch.setattr("sys.platform", "linux")
    frames = list(live.read_source("0", encoder))
    assert len(frames) == 10
    assert frames[0].shape == (*encoder.frame_size, 3)
    assert np.ptp(frames[0]) > 200  # the pattern has black and white parts


def test_a_missing_camera_is_one_line(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CAMERAS", {"linux": ("v4l2", "/dev/no-camera{}")})
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(
        VideoError, match=r"cannot read camera 7: .*No such file.* Connect it, or pass a video file"
    ):
        next(live.read_source("7", encoder))
    monkeypatch.setattr("sys.platform", "plan9")
    with pytest.raises(VideoError, match=r"cannot open camera 7 on plan9\. Pipe its video to standard input"):
        live.read_source("7", encoder)
