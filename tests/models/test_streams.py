import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter1d

from cycleback.models import Encoder, FusedBase, SmallBase, fingerprint, freeze
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.models.streams import (
    SCALES,
    STREAMS,
    appearance_vectors,
    describe_streams,
    find_parts,
    mirror,
    motion_vectors,
    pose_vectors,
    reverse_time,
    smooth_over_time,
    soften,
    stream_vectors,
)

THIRTY = np.arange(60) / 30


def waves(seconds: np.ndarray, shape: tuple[int, ...], *, seed: int = 0) -> np.ndarray:
    """Smooth curves of time (N, *shape) in [0, 1], the same function for any times."""
    draw = np.random.default_rng(seed)
    rates, phases = draw.uniform(0.5, 2, shape), draw.uniform(0, 6, shape)
    clock = seconds.reshape(-1, *[1] * len(shape))
    return (0.5 + 0.5 * np.sin(2 * np.pi * rates * clock + phases)).astype(np.float32)


def person(seconds: np.ndarray, *, score: float = 0.8) -> np.ndarray:
    places = waves(seconds, (17, 2))
    return np.concatenate([places, np.full((*places.shape[:2], 1), score, np.float32)], axis=2)


def test_vectors_of_every_stream_are_centred_and_of_mean_squared_length_1() -> None:
    streams = [
        appearance_vectors(waves(THIRTY, (5, 7, 7)), THIRTY),
        motion_vectors(waves(THIRTY, (4, 8, 8)), THIRTY),
        pose_vectors(person(THIRTY), THIRTY),
    ]
    assert [vectors.shape for vectors in streams] == [(60, 5), (60, 1146), (60, 48)]
    for vectors in streams:
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-6)
        assert (vectors**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-5)


def test_a_video_in_which_nothing_changes_is_all_zeros() -> None:
    still = np.ones(60, dtype=np.float32)
    assert not appearance_vectors(still[:, None, None, None] * np.ones((3, 7, 7)), THIRTY).any()
    assert not motion_vectors(still[:, None, None, None] * np.full((4, 8, 8), 0.1), THIRTY).any()
    assert not pose_vectors(np.repeat(person(THIRTY)[:1], 60, axis=0), THIRTY).any()
    assert not motion_vectors(np.zeros((1, 4, 8, 8)), THIRTY[:1]).any()


def test_the_appearance_of_a_frame_is_the_mean_of_its_feature_map() -> None:
    maps = np.random.default_rng(0).normal(size=(60, 2, 6, 6)).astype(np.float32)
    means = maps.reshape(60, 2, 36).sum(axis=2) / 36
    centred = means - means.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    soft = centred / (lengths + lengths.mean() / 2)
    soft -= soft.mean(axis=0)
    expected = soft / np.sqrt(np.mean(np.linalg.norm(soft, axis=1) ** 2))
    np.testing.assert_allclose(appearance_vectors(maps, THIRTY), expected, atol=1e-5)


def test_softened_vectors_keep_their_direction_and_order_of_length() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    vectors[7] *= 50
    vectors -= vectors.mean(axis=0)
    soft, lengths = soften(vectors), np.linalg.norm(vectors, axis=1)
    cosines = (soft * vectors).sum(axis=1) / np.linalg.norm(soft, axis=1) / lengths
    np.testing.assert_allclose(cosines, 1, atol=1e-5)
    assert np.array_equal(np.argsort(np.linalg.norm(soft, axis=1)), np.argsort(lengths))
    assert np.linalg.norm(soft, axis=1)[7] < 1 < lengths[7]


def test_motion_that_is_the_same_everywhere_is_left_out() -> None:
    motion = waves(THIRTY, (4, 8, 8)) * (np.arange(8) < 3)  # most cells stand still
    shaken = motion + waves(THIRTY, (4,), seed=5)[:, :, None, None]
    np.testing.assert_allclose(motion_vectors(shaken, THIRTY), motion_vectors(motion, THIRTY), atol=1e-4)


def test_a_mirrored_video_moves_and_stands_on_the_other_side() -> None:
    motion = np.zeros((60, 4, 8, 8), dtype=np.float16)
    motion[:, 0, 2, 1] = 1  # to the right, near the left edge
    poses = person(THIRTY)
    turned = mirror({"motion": motion, "pose": poses})
    assert turned["motion"][:, 2, 2, 6].all() and turned["motion"].sum() == motion.sum()
    assert np.array_equal(turned["pose"][:, 9], poses[:, 10] * [1, -1, 1])  # the left wrist was the right one
    again = mirror(turned)
    assert np.array_equal(again["motion"], motion) and np.array_equal(again["pose"], poses)


def test_smoothing_is_that_of_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    for sigma in (1.0, 1.5, 7.0):
        expected = gaussian_filter1d(values, sigma, axis=0, mode="reflect")
        np.testing.assert_allclose(smooth_over_time(values, sigma), expected, atol=1e-6)


def test_motion_at_twice_the_frame_rate_gives_the_same_vectors_at_the_same_times() -> None:
    sixty = np.arange(119) / 60
    slow = motion_vectors(waves(THIRTY, (4, 8, 8)), THIRTY)
    fast = motion_vectors(waves(sixty, (4, 8, 8)), sixty)[::2]
    assert ((slow - fast) ** 2).sum(axis=1)[8:-8].mean() < 0.01  # of 1


def test_place_and_size_of_a_person_do_not_matter() -> None:
    here = person(THIRTY)
    there = here.copy()
    there[..., :2] = 0.3 * here[..., :2] + [0.1, 0.9]
    np.testing.assert_allclose(pose_vectors(there, THIRTY), pose_vectors(here, THIRTY), atol=1e-4)


def test_a_joint_that_is_never_seen_does_not_count_and_without_a_person_there_are_only_zeros() -> None:
    poses = person(THIRTY)
    poses[:, 9, 2] = 0.01
    moved = poses.copy()
    moved[:, 9, :2] = np.random.default_rng(1).normal(size=(60, 2))
    assert np.array_equal(pose_vectors(poses, THIRTY), pose_vectors(moved, THIRTY))
    assert pose_vectors(poses, THIRTY).any()
    assert not pose_vectors(person(THIRTY, score=0.05), THIRTY).any()


def test_a_frame_in_which_a_joint_is_lost_hardly_changes_the_others() -> None:
    poses = person(THIRTY)
    lost = poses.copy()
    lost[30, 9] = [5.0, 5.0, 0.0]
    assert np.abs(pose_vectors(lost, THIRTY) - pose_vectors(poses, THIRTY)).max() < 0.02


@pytest.fixture
def base() -> FusedBase:
    return FusedBase(["pose", "motion", "appearance"], SmallBase())


def raw_video(channels: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    return {
        "appearance": waves(THIRTY, (channels, 4, 4), seed=seed),
        "motion": waves(THIRTY, (4, 8, 8), seed=seed),
        "pose": person(THIRTY),
    }


def test_weights_scale_the_distances_within_each_stream(base: FusedBase) -> None:
    assert base.streams == ("appearance", "motion", "pose")
    raw = raw_video(base.sizes["appearance"])

    def distances() -> np.ndarray:
        vectors = base.fuse(raw, THIRTY)
        parts = np.split(vectors, np.cumsum(list(base.sizes.values()))[:-1], axis=1)
        return np.array([((part[10] - part[40]) ** 2).sum() for part in parts])

    before = distances()
    base.set_weights({"appearance": 0.5, "motion": 3.0, "pose": 0.0})
    np.testing.assert_allclose(distances(), before * [(0.5 / SCALES["appearance"]) ** 2, 9, 0], rtol=1e-5)


def test_a_stream_of_weight_0_needs_no_measurements(base: FusedBase) -> None:
    base.set_weights({"motion": 1.0})
    raw = raw_video(1)
    features = base.fuse({"motion": raw["motion"]}, THIRTY)
    assert features.shape == (60, base.channels)
    assert np.count_nonzero(features.any(axis=0)) <= base.sizes["motion"]


def test_a_trained_network_is_normalised_by_the_batch_and_weighs_as_much_as_a_frozen_one() -> None:
    torch.manual_seed(0)
    base = FusedBase(["appearance", "pose"], SmallBase(), is_frozen=False).train()
    side = torch.from_numpy(base.fuse({"pose": person(THIRTY)}, THIRTY))
    features = base(torch.rand(60, 3, 48, 48), side)[:, :, 0, 0]
    cells, others = features.split(list(base.sizes.values()), dim=1)
    assert torch.equal(others, side)
    torch.testing.assert_close(cells.mean(0), torch.zeros(cells.shape[1]), atol=1e-5, rtol=0)
    torch.testing.assert_close(cells.square().sum(1).mean().sqrt(), base.weights[0], rtol=0.02, atol=0)
    cells[:, 0].square().sum().backward()
    assert all(weight.grad is not None for weight in base.parameters())


def test_only_the_network_is_frozen_in_part_or_keeps_its_statistics() -> None:
    base = FusedBase(["appearance", "motion"], SmallBase(), is_frozen=False)
    encoder = Encoder(base, PooledEmbedder(base.channels))
    freeze(encoder, "all", statistics="fixed", train_from="layers.1")
    encoder.train()
    assert base.norm is not None and base.norm.training
    assert base.appearance is not None and not base.appearance.layers[0].norm.training
    trained = {name for name, weight in base.named_parameters() if weight.requires_grad}
    assert trained and not any(name.startswith("appearance.layers.0.") for name in trained)


def test_weights_and_streams_are_part_of_the_fingerprint(base: FusedBase) -> None:
    def fingerprint_of(base: FusedBase) -> str:
        return fingerprint(Encoder(base, PooledEmbedder(base.channels)))

    first = fingerprint_of(base)
    base.set_weights(SCALES)
    assert fingerprint_of(base) == first
    base.set_weights({**SCALES, "pose": 0.0})
    assert len({first, fingerprint_of(base), fingerprint_of(FusedBase(["motion", "pose"]))}) == 3


def test_single_images_are_refused(base: FusedBase) -> None:
    encoder = Encoder(base, PooledEmbedder(base.channels))
    assert encoder.needs_whole_videos
    with pytest.raises(ValueError, match="streams need whole videos"):
        encoder.features(torch.zeros(1, 3, 112, 112))


def test_streams_that_cannot_be_are_refused() -> None:
    wrong = ((["motion"], SmallBase()), (["appearance"], None), ([], None), (["sound"], None))
    for streams, network in wrong:
        with pytest.raises(ValueError, match="stream"):
            FusedBase(streams, network)


def test_the_use_of_streams_is_described() -> None:
    unused = "streams: motion 1; not used: pose (no person in common)"
    assert describe_streams({"motion": 1.0, "pose": 0.0}) == unused
    assert describe_streams({"appearance": 0.25, "motion": 1.0}) == "streams: motion 1, appearance 0.25"


def test_embeddings_reversed_in_time_are_those_of_the_reversed_video():
    rng = np.random.default_rng(0)
    times = np.arange(60) / 30
    motion = np.cumsum(rng.random((60, 4, 8, 8)), axis=0).astype(np.float32) % 1
    poses = rng.random((60, 17, 3)).astype(np.float32) * 0.5 + 0.5
    looks = rng.random((60, 5, 1, 1)).astype(np.float32)
    forwards = {"appearance": looks, "motion": motion, "pose": poses}
    turned = {"appearance": looks[::-1], "motion": motion[::-1, [2, 3, 0, 1]], "pose": poses[::-1]}
    ahead, back = (
        np.concatenate([vectors[name] for name in STREAMS], axis=1)
        for vectors in (stream_vectors(raw, times) for raw in (forwards, turned))
    )
    np.testing.assert_allclose(reverse_time(ahead, STREAMS), back, atol=1e-4)
    assert find_parts(128, STREAMS) == {} and find_parts(ahead.shape[1], STREAMS)["motion"].start == 5
    np.testing.assert_array_equal(reverse_time(ahead[:, :20], ()), ahead[::-1, :20])
