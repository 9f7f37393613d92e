import numpy as np
import pytest

from cycleback.embeddings.cells import VECTOR_SIZES, describe_cells, projection

TIMES = np.arange(40) / 30


def raw(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    maps = rng.normal(size=(1, 112, 4, 4)) + np.cumsum(0.1 * rng.normal(size=(40, 112, 4, 4)), axis=0)
    pose = np.concatenate([rng.uniform(size=(40, 17, 2)), np.full((40, 17, 1), 0.9)], axis=2)
    motion = rng.uniform(size=(40, 4, 8, 8)) ** 4
    return {"maps": maps, "motion": motion.astype(np.float32), "pose": pose.astype(np.float32)}


def test_each_stream_has_cells_with_vectors_of_its_size() -> None:
    cells = describe_cells(raw(), TIMES)
    shapes = {stream: own.shape for stream, own in cells.items()}
    grids = {"appearance": 16, "change": 16, "motion": 64, "pose": 12}
    assert shapes == {stream: (40, count, VECTOR_SIZES[stream]) for stream, count in grids.items()}


def test_the_scene_does_not_count_but_what_is_new_does() -> None:
    first = raw()
    scene = np.random.default_rng(1).normal(size=(1, 112, 4, 4)) * 5
    other = first | {"maps": first["maps"] + scene}
    for stream in ("appearance", "change"):
        same = describe_cells(other, TIMES)[stream]
        np.testing.assert_allclose(describe_cells(first, TIMES)[stream], same, atol=2e-4)
    spilt = first["maps"].copy()
    spilt[20:, :, 3, 1] += 2
    cells = describe_cells(first | {"maps": spilt}, TIMES)["appearance"]
    differs = np.abs(cells - describe_cells(first, TIMES)["appearance"]).max(axis=2) > 1e-3  # (N, G)
    assert differs[20:, 13].all() and differs.sum() == 20


def test_distances_of_feature_maps_survive_the_projection() -> None:
    pairs = np.random.default_rng(0).normal(size=(200, 112))
    ratios = np.linalg.norm(pairs @ projection(112), axis=1) / np.linalg.norm(pairs, axis=1)
    assert ratios.mean() == pytest.approx(1, abs=0.03) and ratios.std() < 0.15
    assert projection(3).shape == (3, 32)


def test_a_mirrored_take_has_the_cells_of_the_other_side() -> None:
    plain, turned = (describe_cells(raw(), TIMES, is_mirrored=side) for side in (False, True))
    for stream, side in (("appearance", 4), ("change", 4)):
        grid = plain[stream].reshape(40, side, side, -1)[:, :, ::-1]
        np.testing.assert_allclose(turned[stream], grid.reshape(turned[stream].shape), rtol=1e-4, atol=1e-5)
    left, right = plain["motion"].reshape(40, 8, 8, 4), turned["motion"].reshape(40, 8, 8, 4)
    np.testing.assert_allclose(right, left[:, :, ::-1, [2, 1, 0, 3]], rtol=1e-5)  # right, down, left, up
