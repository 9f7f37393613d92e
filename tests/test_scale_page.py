"""The figures of docs/scale.md are those of the results, and those follow from their inputs."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "scale.md").read_text("utf-8")
RESULTS = ROOT / "results"


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cost_follows_from_the_measured_inputs() -> None:
    kept = json.loads((RESULTS / "corpus_cost.json").read_text())
    cost = benchmark("corpus_cost")
    assert cost.read_inputs(RESULTS) == pytest.approx(kept["measured"])
    found = cost.work_out(kept["measured"], **kept["assumed"])
    for name in found.keys() - {"disk_tb", "dollars_disk_month"}:
        assert found[name] == pytest.approx(kept["result"][name])
    assert found["gpu_hours"] == pytest.approx(1e6 * 30 / 28_125, rel=1e-3)  # by hand
    assert found["disk_tb"]["a trained encoder, D = 128"] == pytest.approx(1.08e11 * 520 / 1e12, rel=0.01)
    for name in ("gpu_hours", "core_hours", "dollars_balanced", "dollars_as_measured"):
        assert f" {kept['result'][name]:,.0f} |" in PAGE
    for disk in kept["result"]["disk_tb"].values():
        assert f" {disk:.0f} |" in PAGE


def test_the_kills_of_the_page_are_those_of_the_result() -> None:
    kept = json.loads((RESULTS / "ray.json").read_text())
    kills = [kill["target"] for attack in kept["attacks"] for kill in attack["kills"]]
    for target, words in (("worker", "a worker"), ("node", "a node"), ("driver", "the driver")):
        assert f"| {words} | {kills.count(target)} |" in PAGE
    assert kept["totals"] == {"kills": len(kills), "lost": 0, "twice": 0, "different": 0}
    for attack in kept["attacks"]:
        for corpus in attack["corpora"]:
            assert (corpus["missing"], corpus["too_many"], corpus["exit_status"]) == (0, 0, 0)
