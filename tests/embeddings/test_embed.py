from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cycleback.data import FrameCache, VideoRecord, read_dataset
from cycleback.embeddings.embed import embed_maps, embed_records, standardize
from cycleback.embeddings.features import FeatureCache
from cycleback.errors import DataError, UserError
from cycleback.models import Encoder, build_base, build_embedder, fingerprint, freeze
from cycleback.runs import embed_videos
from cycleback.video import write_video

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def record(tmp_path: Path) -> VideoRecord:
    generator = np.random.default_rng(0)
    frames = generator.integers(0, 256, (70, 32, 32, 3), dtype=np.uint8)
    write_video(tmp_path / "noise.mp4", iter(frames), fps=25, crf=1)
    return VideoRecord(name="noise", path=tmp_path / "noise.mp4", events={"clap": 1.0}, unit="seconds")


@pytest.fixture
def encoder() -> Encoder:
    torch.manual_seed(0)
    base = build_base("small")
    embedder = build_embedder("conv", base.channels, conv_channels=(8,), fc_channels=(8,), embedding_size=4)
    return Encoder(base, embedder, frame_size=(32, 32)).eval()


def test_a_whole_video_equals_its_clips_one_by_one(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    found = embed_records(encoder, [record], frames=cache)["noise"]
    frames = torch.from_numpy(np.array(cache.load(record).frames)).movedim(-1, 1)
    for index in (0, 3, 15, 69):
        clip = frames[[max(0, index - encoder.context_stride), index]][None, None]
        with torch.no_grad():
            expected = encoder(clip)[0, 0].numpy()
        np.testing.assert_allclose(found[index], expected, atol=1e-5)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_gpu_embeds_many_videos_as_a_cpu_does(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    cv2 = pytest.importorskip("cv2")
    records = []
    lengths = (70, 3, 300, 120, 1)  # batches end within videos, and videos within batches
    for number, length in enumerate(lengths):
        folder = tmp_path / f"video{number}"
        folder.mkdir()
        pixels = np.random.default_rng(number).integers(0, 256, (length, 32, 32, 3), dtype=np.uint8)
        for index, image in enumerate(pixels):
            cv2.imwrite(str(folder / f"{index}.png"), image)
        records.append(VideoRecord(name=folder.name, path=folder, kind="frames"))
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    expected = embed_records(encoder, records, frames=cache)
    encoder = encoder.cuda()
    features = None
    if is_kept:
        features = FeatureCache(cache, encoder.base, device=encoder.device, precision="float32")
    found = embed_records(encoder, records, frames=cache, features=features, precision="float32")
    assert list(found) == [record.name for record in records]
    tolerance = 1e-4 if is_kept else 1e-5  # kept maps are rounded to 16 bits
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance)


def test_cached_features_give_the_same_embeddings(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    features = FeatureCache(cache, encoder.base)
    plain = embed_records(encoder, [record], frames=cache)["noise"]
    first = embed_records(encoder, [record], frames=cache, features=features)["noise"]
    again = embed_records(encoder, [record], frames=cache, features=features)["noise"]
    np.testing.assert_allclose(first, plain, atol=1e-4)  # the maps are kept in half precision
    np.testing.assert_array_equal(first, again)


def test_cached_features_have_the_precision_that_is_asked_for(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    maps = {
        precision: FeatureCache(cache, encoder.base, precision=precision).load(record)
        for precision in (None, "float32", "bfloat16")
    }
    np.testing.assert_array_equal(maps["float32"], maps[None])
    assert not np.array_equal(maps["bfloat16"], maps["float32"])
    np.testing.assert_allclose(maps["bfloat16"], maps["float32"], atol=0.1)


def test_features_of_another_precision_are_refused(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    features = FeatureCache(cache, encoder.base, precision="bfloat16")
    with pytest.raises(ValueError, match="features are bfloat16, but precision float32 is asked for"):
        embed_records(encoder, [record], frames=cache, features=features, precision="float32")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
def test_a_frozen_base_is_embedded_in_the_precision_that_is_asked_for(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    freeze(encoder, "frozen")
    videos = tmp_path / "videos"  # images, because a machine with a GPU may have no video library
    (videos / "noise").mkdir(parents=True)
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), np.uint8)):
        Image.fromarray(pixels).save(videos / "noise" / f"{number}.png")
    records = read_dataset(videos).records
    exact = embed_records(encoder, records, frames=FrameCache(tmp_path / "own", size=(32, 32)))["noise"]
    found = {
        precision: embed_videos(
            encoder, videos, device=device, cache=tmp_path / "cache", precision=precision
        )["noise"]
        for precision in ("bfloat16", "float32")
    }
    np.testing.assert_allclose(found["float32"], exact, atol=1e-4)  # kept maps are rounded to 16 bits
    assert np.abs(found["bfloat16"] - exact).max() > 2e-4


def test_features_are_computed_once(record: VideoRecord, encoder: Encoder, tmp_path: Path) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    FeatureCache(cache, encoder.base).load(record)
    second = FeatureCache(cache, encoder.base)
    second.extract = None  # type: ignore[assignment]
    counted: list[tuple[int, int]] = []
    second.fill([record], progress=lambda done, total: counted.append((done, total)))
    assert counted == [(70, 70)] and second.load(record).shape[0] == 70


def test_another_base_has_other_features(record: VideoRecord, encoder: Encoder, tmp_path: Path) -> None:
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    torch.manual_seed(1)
    one, other = (FeatureCache(cache, base).load(record) for base in (encoder.base, build_base("small")))
    assert not np.array_equal(one, other)


def test_names_times_events_and_the_encoder_go_along(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    progress: list[tuple[int, int]] = []
    found = embed_records(
        encoder,
        [record],
        frames=FrameCache(tmp_path / "cache", size=(32, 32)),
        event_names=["clap"],
        progress=lambda done, total: progress.append((done, total)),
    )
    assert found.events("noise") == {"clap": 25}
    assert found.times("noise")[25] == pytest.approx(1.0)
    assert found.encoder == fingerprint(encoder)
    assert found.path("noise") == record.path
    assert progress == [(70, 70)]


def test_videos_keep_their_order_whichever_is_decoded_first(
    record: VideoRecord, encoder: Encoder, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (500, 32, 32, 3), dtype=np.uint8)
    write_video(tmp_path / "long.mp4", iter(pixels), fps=25, crf=1)
    records = [VideoRecord(name="long", path=tmp_path / "long.mp4"), record]
    cache, progress = FrameCache(tmp_path / "cache", size=(32, 32)), []
    found = embed_records(
        encoder, records, frames=cache, progress=lambda done, total: progress.append((done, total))
    )
    assert found.names == ("long", "noise") and len(found["long"]) == 500
    assert progress[-1] == (570, 570)
    np.testing.assert_array_equal(found["noise"], embed_records(encoder, [record], frames=cache)["noise"])


def test_standardised_embeddings_have_mean_0_and_spread_1() -> None:
    values = np.random.default_rng(0).normal(3, 5, (40, 6)).astype(np.float32)
    moved = standardize(values)
    np.testing.assert_allclose(moved.mean(axis=0), 0, atol=1e-5)
    assert np.sqrt(np.mean(moved**2)) == pytest.approx(1, abs=1e-5)
    assert not standardize(np.full((5, 2), 7, np.float32)).any()


def test_no_videos_is_an_error(encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no videos to embed"):
        embed_records(encoder, [], frames=FrameCache(tmp_path, size=(32, 32)))


def test_a_full_disk_leaves_no_feature_maps(
    record: VideoRecord, encoder: Encoder, tmp_path: Path, monkeypatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    cache.load(record)
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(UserError, match=r"cannot write the frame cache in .*: No space left on device"):
        FeatureCache(cache, encoder.base).load(record)
    assert not [path for path in cache.folder(record).iterdir() if "features" in path.name]


def test_kept_maps_in_16_bits_are_pooled_in_float32() -> None:
    pooled = build_embedder("pooled", 5, grid=3, standardize=False)
    maps = torch.rand(6, 5, 12, 12).half()
    found = embed_maps(pooled, iter([maps]), device=torch.device("cpu"))
    expected = embed_maps(pooled, iter([maps.float()]), device=torch.device("cpu"))
    np.testing.assert_array_equal(found, expected)
