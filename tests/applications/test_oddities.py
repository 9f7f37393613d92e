import numpy as np
import pytest

from cycleback.applications.anomalies import AnomalyModel, fit_anomaly_model
from cycleback.applications.anomaly_timing import PARTS, PaceChange, sum_runs
from cycleback.applications.oddities import Oddity, name_oddities
from cycleback.embeddings import EmbeddingSet

TIMES = np.arange(100) / 10
QUIET, LOUD = np.zeros(100), np.where((np.arange(100) >= 40) & (np.arange(100) < 60), 5.0, 0.0)


def take(seed: int) -> np.ndarray:
    """A take (N, 3) along a helix that never comes back, at a pace of its own."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.6, 1.4, size=rng.integers(80, 100))
    clock = np.cumsum(steps) / steps.sum()
    line = np.stack([np.sin(4 * clock), np.cos(4 * clock), 3 * clock], axis=1)
    return line + 0.02 * rng.normal(size=line.shape)


@pytest.fixture(scope="module")
def model() -> AnomalyModel:
    return fit_anomaly_model(EmbeddingSet.from_arrays({f"good_{k}": take(k) for k in range(10)}, fps=30))


def edit(kind: str, seed: int) -> tuple[np.ndarray, tuple[int, int]]:
    """A take with a known oddity, and where it is."""
    fine = take(seed)
    if kind == "missing":
        return np.concatenate([fine[:30], fine[55:]]), (29, 30)
    if kind == "slow":
        slowed = np.repeat(fine[30:50], 3, axis=0)
        slowed += 0.005 * np.random.default_rng(seed).normal(size=slowed.shape)
        return np.concatenate([fine[:30], slowed, fine[50:]]), (30, 89)
    foreign = np.full((30, 3), -3.0) + 0.1 * np.random.default_rng(seed).normal(size=(30, 3))
    return np.concatenate([fine[:40], foreign, fine[40:]]), (40, 69)


@pytest.mark.parametrize("kind", ["missing", "slow", "extra"])
def test_edits_of_time_get_their_name_where_they_are(model: AnomalyModel, kind: str) -> None:
    for seed in range(100, 105):
        changed, (first, last) = edit(kind, seed)
        found = model.score(changed)
        assert found.verdict == "something differs"
        named = [each for each in found.oddities if each.kind == kind]
        assert any(each.first <= last + 3 and each.last >= first - 3 for each in named), found.oddities


def test_takes_that_go_well_have_no_oddity_of_time(model: AnomalyModel) -> None:
    found = [model.score(take(seed)) for seed in range(200, 220)]
    assert sum(each.verdict != "typical" for each in found) <= 3
    assert sum(any(o.stream == "timing" for o in each.oddities) for each in found) <= 2


def test_durations_of_runs_of_parts_sum_the_seconds_of_their_frames() -> None:
    rng = np.random.default_rng(0)
    progress, seconds = np.sort(rng.uniform(size=200)), np.arange(200) / 25
    runs = [(first, last) for first in range(PARTS) for last in range(first, PARTS)]
    inside = [((progress >= a / PARTS) & (progress < (b + 1) / PARTS)).sum() / 25 for a, b in runs]
    np.testing.assert_allclose(sum_runs(progress, seconds), inside, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "spans", "streams", "expected"),
    [
        (PaceChange(40, 59, 1.5, 3.0, 9), [], {"embedding": QUIET}, ("slow", "timing")),
        (PaceChange(40, 59, 1.5, 3.0, 9), [(40, 59)], {"embedding": LOUD}, ("extra", "timing")),
        (PaceChange(50, 51, -1.5, 0.1, 9), [], {"embedding": QUIET}, ("missing", "timing")),
        (PaceChange(50, 51, -0.5, 0.6, 9), [], {"embedding": QUIET}, ("fast", "timing")),
        (None, [(40, 59)], {"embedding": QUIET, "motion": LOUD}, ("different path", "motion")),
        (None, [(40, 59)], {"motion": QUIET, "appearance": LOUD}, ("different look", "appearance")),
        (None, [(40, 59)], {"motion": QUIET, "change": LOUD}, ("different look", "change")),
    ],
)
def test_the_name_follows_from_the_time_and_the_leading_stream(
    change: PaceChange | None, spans: list, streams: dict, expected: tuple[str, str]
) -> None:
    (found,) = name_oddities(spans, [change] if change else [], streams)
    assert (found.kind, found.stream) == expected


def test_less_change_than_usual_is_something_missing() -> None:
    (found,) = name_oddities([(40, 59)], [], {"change": LOUD}, is_missing=np.ones(100, bool))
    assert found.kind == "missing"


@pytest.mark.parametrize(
    ("oddity", "sentence"),
    [
        (Oddity("different look", "appearance", 12, 18), "1.20-1.80 s: different look (appearance)"),
        (
            Oddity("slow", "timing", 10, 30, 0.8),
            "1.00-3.00 s: slow, 0.80 s longer than good takes, late from then on (timing)",
        ),
        (
            Oddity("missing", "timing", 20, 21, -1.5),
            "2.00-2.10 s: missing, 1.50 s of good takes are left out (timing)",
        ),
    ],
)
def test_an_oddity_is_told_in_a_sentence(oddity: Oddity, sentence: str) -> None:
    assert oddity.describe(TIMES) == sentence
