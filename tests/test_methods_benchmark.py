"""Tests of the benchmark of methods: its splits and rows, and the page that it fills."""

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cycleback.data import Dataset, VideoRecord
from cycleback.recipe import load_recipe

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("methods")


def test_no_video_is_both_trained_on_and_scored(benchmark: ModuleType) -> None:
    records = tuple(VideoRecord(f"v{i}", Path(f"v{i}.mp4")) for i in range(10))
    seen, tested = benchmark.split_every(Dataset(root=Path(), records=records), 3)
    assert list(tested.names) == ["v0", "v3", "v6", "v9"]
    assert sorted((*seen.names, *tested.names)) == sorted(record.name for record in records)


def test_videos_are_taken_evenly_and_never_twice(benchmark: ModuleType) -> None:
    names = [str(i) for i in range(100)]
    assert benchmark.take(names, 3) == ["0", "50", "99"]
    assert benchmark.take(names[:2], 3) == names[:2]
    assert len(set(benchmark.take(names, 32))) == 32


def test_every_row_of_every_encoder_has_a_recipe(benchmark: ModuleType) -> None:
    rows = [*benchmark.BASELINES, *benchmark.TRAINED]
    options = SimpleNamespace(updates=7, overrides=[], rows=rows, seeds=[0, 3])
    for encoder in benchmark.ENCODERS:
        cells = benchmark.missing_cells("golf", encoder, {}, options)
        assert ("supervised", 3) in cells and ("time-only", 3) not in cells
        for row, seed in cells:
            recipe = benchmark.row_recipe(row, encoder, seed, options, is_penn=False)
            assert (recipe.optimizer.num_updates, recipe.run.seed) == (7, seed)
            assert recipe.encoder.is_fused == (encoder not in ("frozen", "finetuned"))
            sees_matches = encoder not in benchmark.OF_APPEARANCE
            assert sees_matches or not recipe.loss.is_used("match") or row == "untrained"
    assert ("supervised", 0) not in benchmark.missing_cells(benchmark.PENN, "mlp", {}, options)
    poses = benchmark.row_recipe("lav", "mlp", 0, options, is_penn=True)
    assert poses.encoder.streams == ("pose",)
    assert poses.loss.weights == load_recipe("lav").loss.weights


def test_cells_that_are_there_are_not_measured_again(benchmark: ModuleType) -> None:
    options = SimpleNamespace(rows=["time-only", "tcc", "lav"], seeds=[0, 1], overrides=["loss.a=1"])
    known = {"golf/transformer/tcc loss.a=1/0": {}, "golf/transformer/lav/1": {}}
    missing = benchmark.missing_cells("golf", "transformer", known, options)
    assert missing == [("time-only", 0), ("lav", 0), ("tcc", 1), ("lav", 1)]


def test_the_pages_have_the_tables_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    page = importlib.import_module("methods_page")
    text, (cells, runs) = page.PAGE.read_text("utf-8"), page.read_result()
    assert page.fill_places(text, page.tables(cells, runs)) == text
    assert page.DETAILS.read_text("utf-8") == page.details(cells)
    for scores in runs.values():
        assert 0 <= scores.get("pce3_dtw", 0) <= 1


def test_the_spread_of_a_mean_over_sets_is_that_over_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    page = importlib.import_module("methods_page")
    shares = {"a/0": 0.1, "b/0": 0.9, "a/1": 0.3, "b/1": 0.9, "a/2": 0.5}
    runs = {key: {"pce3_dtw": share} for key, share in shares.items()}
    assert page.mean_over_sets(runs, ["a", "b"]) == "0.550 ± 0.071"  # of 0.5 and 0.6; b has no seed 2
    assert page.mean_over_sets(runs, ["a", "c"]) == page.MISSING
