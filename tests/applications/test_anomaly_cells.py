import numpy as np
import pytest

from cycleback.applications.anomalies import fit_anomaly_model
from cycleback.applications.anomaly_cells import (
    WAYS,
    CellView,
    Way,
    combine_streams,
    compare_cells,
    running_mean,
)
from cycleback.embeddings import EmbeddingSet

SIDE = 4


def helix(seed: int, length: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.5, 1.5, size=length)
    clock = np.cumsum(steps) / steps.sum()
    return np.stack([np.sin(4 * clock), np.cos(4 * clock), 3 * clock], axis=1)


def cells_of(take: np.ndarray, seed: int) -> np.ndarray:
    """Cells (N, 16, 32) that follow the action, with noise: the last rows of the grid are quieter."""
    rng = np.random.default_rng(1000 + seed)
    pattern = np.random.default_rng(0).normal(size=(3, 16, 32))
    return np.einsum("nd,dgv->ngv", take, pattern) + 0.3 * rng.normal(size=(len(take), 16, 32))


@pytest.mark.parametrize("way", [Way(reach=1), Way(reach=0), Way(reach=1, is_reversed=True)])
def test_distances_equal_a_loop_over_cells(way: Way) -> None:
    rng = np.random.default_rng(0)
    take, others = rng.normal(size=(6, 9, 4)), [rng.normal(size=(n, 9, 4)) for n in (5, 7, 8, 9)]
    matches = np.array([np.linspace(0, len(other) - 1, 6).astype(int) for other in others])
    expected = np.empty((4, 6, 9))
    for k, other in enumerate(others):
        for n in range(6):
            frames = [min(max(matches[k, n] + step, 0), len(other) - 1) for step in (-2, 0, 2)]
            for g in range(9):
                near = [h for h in range(9) if max(abs(h // 3 - g // 3), abs(h % 3 - g % 3)) <= way.reach]
                if way.is_reversed:
                    pairs = [((take[n, h] - other[f, g]) ** 2).sum() for f in frames for h in near]
                else:
                    pairs = [((take[n, g] - other[f, h]) ** 2).sum() for f in frames for h in near]
                expected[k, n, g] = min(pairs)
    arrays = [other.astype(np.float32) for other in others]
    found = compare_cells(take.astype(np.float32), arrays, matches, way=way)
    np.testing.assert_allclose(found, np.sort(expected, axis=0)[:3].mean(axis=0), rtol=1e-4)


def test_what_changes_in_one_cell_is_found_though_the_embedding_is_the_same() -> None:
    takes = {f"good_{k}": helix(k) for k in range(8)}
    good = EmbeddingSet.from_arrays(takes, fps=30)
    rows = {name: cells_of(take, k).reshape(60, -1) for k, (name, take) in enumerate(takes.items())}
    model = fit_anomaly_model(good, cells={"appearance": EmbeddingSet.from_arrays(rows)})
    new = helix(20)
    fine = cells_of(new, 20)
    spilt = fine.copy()
    spilt[30:45, 13] += 1.5
    before = model.score(new, cells={"appearance": fine.reshape(60, -1)})
    after = model.score(new, cells={"appearance": spilt.reshape(60, -1)})
    assert before.verdict == "typical" and after.verdict == "something differs"
    np.testing.assert_allclose(before.streams["embedding"], after.streams["embedding"])
    (oddity,) = after.oddities
    assert (oddity.kind, oddity.stream) == ("different look", "appearance")
    assert 26 <= oddity.first <= 31 and 43 <= oddity.last <= 48
    assert after.kinds[35] == "different look" and after.kinds[10] == ""


def test_a_good_take_is_judged_by_what_is_usual_in_the_others() -> None:
    takes = [helix(k) for k in range(6)]
    cells = [cells_of(take, k).astype(np.float32) for k, take in enumerate(takes)]
    cells[2][30:45, 13] += 5  # one good take is not that good
    matches = [np.tile(np.arange(60), (5, 1))] * 6
    view = CellView.fit("appearance", tuple(cells), matches=matches, progress=[np.arange(60) / 59] * 6)
    others = tuple(cells[:2] + cells[3:])
    alone = [np.tile(np.arange(60), (4, 1))] * 5
    clean = CellView.fit("appearance", others, matches=alone, progress=[np.arange(60) / 59] * 5)
    assert view.own_scores[2][30:45].min() > 2 * max(own.max() for own in view.own_scores[:2])
    assert max(own.max() for own in clean.own_scores) < view.own_scores[2].max()


def test_every_stream_of_cells_has_a_way_to_be_compared() -> None:
    from cycleback.embeddings.cells import VECTOR_SIZES

    assert WAYS.keys() == VECTOR_SIZES.keys()


def test_streams_are_pooled_by_the_logarithm_of_their_scores() -> None:
    rng = np.random.default_rng(0)
    streams = rng.normal(1, 3, (3, 30))
    pooled = []
    for scores in streams.T:
        squares = [np.log1p(max(score, 0)) ** 2 for score in scores]
        pooled.append(np.expm1(np.sqrt(sum(squares) / 3)) if max(scores) > 0 else max(scores))
    assert min(pooled) < 0
    np.testing.assert_allclose(
        combine_streams(list(streams))[2:-2], np.convolve(pooled, np.ones(5) / 5, "valid")
    )
    alone = combine_streams([streams[0]])
    np.testing.assert_allclose(alone, running_mean(streams[0], window=5))
