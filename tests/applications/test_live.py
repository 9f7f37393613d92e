import io
import itertools
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.applications import live
from cycleback.errors import CheckpointError, VideoError
from cycleback.models import Encoder
from cycleback.recipe import EncoderSettings, Recipe, build_encoder


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(0)
    section = EncoderSettings(base="small", train_base="all")
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
        expected = encoder.embed_sequence(encoder.features(images)).numpy()
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


def test_an_encoder_that_needs_the_whole_video_is_refused() -> None:
    whole = build_encoder(Recipe(encoder=EncoderSettings(base="small", embedder="pooled")))
    with pytest.raises(CheckpointError, match=r"cannot follow a stream\. Train one"):
        next(live.embed_live(whole, [np.zeros((112, 112, 3), np.uint8)]))
