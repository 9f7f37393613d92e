"""docs/results/performance.md shows what results/gpu_speed.json says, and nothing where it says nothing."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MADE = {"device": "some GPU", "torch": "2.0", "commit": "abc"}


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "performance_page", ROOT / "scripts" / "performance_page.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results() -> dict[str, Any]:
    """Results small enough to compute with by hand."""
    rungs = {"fp32": {"ms": 100.0, **MADE}, "bf16": {"ms": 20.0, "peak_gb": 3.0, **MADE}}
    training = {
        **{"rungs": rungs, "step_tflop": 2.0, "step_gbytes": 8.0, "ceiling_tflops": 500.0, **MADE},
        **{"copy_tb_per_s": 4.0, "floor_ms": {"products": 4.0, "bytes": 2.0, "by layer": 5.0}},
        "trained_parameters": 10_000_000,
    }
    losses = {
        "rows": [{"loss": "tcc", "videos": b, "frames": 20, "ms": b / 4, "peak_gb": 1.0} for b in (4, 8)]
    }
    curve = [{"videos": n, "frames": n, "ms": n, "seconds": n, "peak_gb": 1.0} for n in (2, 4)]
    scaling = {key: curve for key in ("by_videos", "by_frames", "by_length", "by_set")}
    parts = {"training": training, "losses": {**losses, **MADE}, "scaling": {**scaling, **MADE}}
    return {"train_step_ms": 20.0, "train_ratio_fp32": 5.0, **parts}


def test_the_page_is_that_of_the_results(page: ModuleType) -> None:
    if not page.RESULTS.exists():
        pytest.skip("results/gpu_speed.json does not exist: run benchmarks/gpu_speed.py on a GPU")
    text = page.PAGE.read_text("utf-8")
    assert page.fill_places(text, page.tables()) == text


def test_figures_kept_are_not_those_of_a_smoke_run(page: ModuleType) -> None:
    if not page.RESULTS.exists():
        pytest.skip("results/gpu_speed.json does not exist: run benchmarks/gpu_speed.py on a GPU")
    assert "is_smoke" not in json.dumps(page.read())


def test_without_results_every_table_says_so(page: ModuleType) -> None:
    assert set(page.tables({}).values()) == {"*Not measured yet.*"}


def test_every_table_has_its_place_in_the_page(page: ModuleType) -> None:
    text = page.PAGE.read_text("utf-8")
    missing = [
        name
        for name in page.tables({})
        if f"<!-- {name} -->\n" not in text or f"<!-- /{name} -->" not in text
    ]
    assert not missing


def test_a_rung_shows_what_it_gave_and_its_share_of_the_ceiling(
    page: ModuleType, results: dict[str, Any]
) -> None:
    row = next(line for line in page.tables(results)["rungs"].splitlines() if "`bf16`" in line)
    assert row.endswith("| 20.0 | 5.00 × | 5.0 × | 20 % | 3.0 |")  # 2 TFLOP in 20 ms are 100 of 500 TFLOP/s


def test_two_gpus_wait_for_gradients_and_for_the_larger_loss(
    page: ModuleType, results: dict[str, Any]
) -> None:
    row = next(line for line in page.tables(results)["several"].splitlines() if "100 Gb/s" in line)
    efficiency = 20 / (20 + 1000 * 0.04 / 12.5 + 1)  # 40 MB once round the ring, and 1 ms of loss
    assert row.split(" | ")[1] == f"{100 * efficiency:.0f} %"


def test_the_curves_are_a_picture(page: ModuleType, results: dict[str, Any]) -> None:
    assert page.draw_scaling(results["scaling"]).startswith(b"<?xml")
    assert "images/performance-scaling.svg" in page.tables(results)["scaling"]
