"""The baselines of the label transfer benchmark are read as well as they can be."""

from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.data import Dataset, VideoRecord
from cycleback.embeddings import EmbeddingSet

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import label_transfer
    import segmentation

    return SimpleNamespace(main=label_transfer, split=segmentation)


@pytest.fixture
def ramps() -> EmbeddingSet:
    """Videos that pass through the same three phases, at different speeds."""
    rng, arrays, events = np.random.default_rng(0), {}, {}
    for number in range(8):
        lengths = np.array([6, 8, 9]) + rng.integers(0, 3, 3)
        phases = np.repeat(np.eye(3), lengths, axis=0)
        arrays[f"v{number}"] = phases + 0.05 * rng.normal(size=phases.shape)
        events[f"v{number}"] = {"a": int(lengths[0]), "b": int(lengths[:2].sum())}
    return EmbeddingSet.from_arrays(arrays, events=events, fps=30.0, event_names=("a", "b"))


Floats = NDArray[np.float64]


def score(split: NDArray[np.int64], log_probabilities: Floats, lengths: Floats, module: ModuleType) -> float:
    """From the formula, frame by frame."""
    phases = [sum(event <= t for event in split) for t in range(len(log_probabilities))]
    total = module.EVIDENCE * sum(log_probabilities[t, k] for t, k in enumerate(phases))
    gaps = np.diff(split) / lengths
    return float(total - (np.log(gaps) ** 2).sum() / (2 * module.SPREAD**2))


@pytest.mark.parametrize("seed", range(5))
def test_the_split_is_the_best_of_all(benchmark: SimpleNamespace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    log_probabilities = np.log(rng.dirichlet(np.full(4, 0.1), size=10) + 1e-6)
    lengths = rng.uniform(1, 5, size=2)
    splits = [np.array(split) for split in combinations(range(10), 3)]
    best = max(splits, key=lambda split: score(split, log_probabilities, lengths, benchmark.split))
    found, _ = benchmark.split.best_split(log_probabilities, lengths)
    assert found.tolist() == best.tolist()


def test_scores_of_splits_compare_across_tempos(benchmark: SimpleNamespace) -> None:
    log_probabilities = np.log(np.random.default_rng(1).dirichlet(np.ones(4), size=12))
    zero = benchmark.split.EVIDENCE * log_probabilities[:, 0].sum()  # of a video all in its first phase
    for lengths in (np.array([2.0, 3.0]), np.array([5.0, 1.0])):
        found, value = benchmark.split.best_split(log_probabilities, lengths)
        assert value + zero == pytest.approx(score(found, log_probabilities, lengths, benchmark.split))


def test_a_video_in_slow_motion_is_split_by_its_tempo(benchmark: SimpleNamespace) -> None:
    phases = np.repeat([0, 1, 2, 3], [5, 16, 24, 5])
    log_probabilities = np.log(np.full((50, 4), 0.2) + 0.2 * np.eye(4)[phases])
    found = benchmark.split.find_events(log_probabilities, np.array([4.0, 6.0]), tempos=(1.0, 2.0, 4.0))
    assert found.tolist() == [5, 21, 45]


@pytest.mark.parametrize("row", ["transfer", "probe"])
def test_both_ways_find_the_events_of_easy_videos(
    benchmark: SimpleNamespace, ramps: EmbeddingSet, row: str
) -> None:
    labelled, main = ["v0", "v1"], benchmark.main
    read = (
        main.transfer_reader(ramps, labelled, ramps.names[2:])
        if row == "transfer"
        else main.probe_reader(ramps, labelled, seen=ramps.names, tempos=(1.0,))
    )
    errors = np.stack([main.errors_of(ramps, name, read(name)) for name in ramps.names[2:]])
    figures = main.summary([errors], ramps.event_names)
    assert figures["pce1"] == 1.0
    assert figures["median_ms"] <= 33.4


def test_errors_are_in_frames_and_milliseconds(benchmark: SimpleNamespace, ramps: EmbeddingSet) -> None:
    truth = ramps.events("v3")
    errors = benchmark.main.errors_of(ramps, "v3", [truth["a"] - 3, truth["b"] + 1])
    assert errors[:, 0].tolist() == [3, 1]
    assert errors[:, 1] == pytest.approx([100, 33.3], abs=0.1)
    assert errors[:, 2].tolist() == [3, 1]  # the span is below 45 frames, so the tolerance is one
    figures = benchmark.main.summary([errors[None], 0 * errors[None]], ramps.event_names)
    assert (figures["pce1"], figures["pce3"], figures["within_span"]) == (0.75, 1.0, 0.75)
    assert (figures["by_event"]["a"]["pce1"], figures["pce1_range"], figures["draws"]) == (0.5, [0.5, 1.0], 2)


def test_one_video_fills_a_batch(benchmark: SimpleNamespace) -> None:
    videos = Dataset(Path(), (VideoRecord("x", Path("x.mp4")), VideoRecord("y", Path("y.mp4"))))
    names = benchmark.main.fill_batch(videos, 5).names
    assert names == ("x", "y", "x-1", "y-1", "x-2", "y-2")
    assert benchmark.main.fill_batch(videos, 2).names == ("x", "y")


def test_draws_are_seeded_and_there_is_one_of_all(benchmark: SimpleNamespace) -> None:
    names = [f"v{number}" for number in range(9)]
    few = benchmark.main.draw_names(names, 5, 4)
    assert few == benchmark.main.draw_names(names, 5, 4)
    assert few[:2] == benchmark.main.draw_names(names, 5, 2)
    assert all(len(set(draw)) == 5 for draw in few)
    assert benchmark.main.draw_names(names, 9, 1) == [names]
