"""The programs that make the results, and the page made of them."""

import importlib
import json
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet

ROOT = Path(__file__).resolve().parents[1]
Benchmark = Callable[[str], ModuleType]
SCORES: dict[str, Any] = {
    "tau": 0.5,
    "event_error_ms": 100.0,
    "phase_accuracy_by_fraction": {"0.1": 0.4},
    "precision5": None,
}


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """A function from the name of a file in benchmarks/ to its module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def run(recipe: list[str], **scores: Any) -> dict[str, Any]:
    where = {"device": "a GPU", "torch": "2.0", "commit": "abc"}
    return {"minutes": 1.5, "recipe": recipe, **where, "val": {**SCORES, **scores}}


def golf(benchmark: Benchmark) -> dict[str, Any]:
    runs = {f"vggm/tcc/{seed}": run(["golf-scratch"], tau=0.5 + seed / 10) for seed in (0, 1)}
    runs["vggm/sal/0"] = run(["golf-scratch", "loss.weights={ sal = 2.0 }"])
    return {"runs": runs, "rows": benchmark("result_file").summarize(runs)}


def test_the_scores_of_several_seeds_become_mean_and_spread(benchmark: Benchmark) -> None:
    row = golf(benchmark)["rows"]["vggm/tcc"]
    assert row["seeds"] == 2 and row["val"]["tau"] == [0.55, 0.0707]
    assert row["val"]["phase_accuracy_by_fraction"] == {"0.1": [0.4, 0.0]}
    assert row["val"]["precision5"] is None and row["minutes"] == [1.5, 0.0]


def test_a_table_shows_the_spread_and_a_dash_for_what_is_missing(benchmark: Benchmark) -> None:
    lines = "\n".join(benchmark("results_page").golf_section(golf(benchmark))).splitlines()
    first, folded = [line for line in lines if line.startswith("| tcc |")]
    assert first.startswith("| tcc | 100 ± 0 |") and "| 0.550 ± 0.071 |" in first
    assert folded.endswith("| 1.5 ± 0.0 | 2 |")
    assert "Made on a GPU with torch 2.0 at commit abc." in lines


def test_the_page_has_one_command_for_rows_of_the_same_settings_and_seeds(benchmark: Benchmark) -> None:
    page, result = benchmark("results_page"), golf(benchmark)
    first, second = page.commands(page.of_base(result["runs"], "vggm"), "vggm")
    assert "--base vggm=golf-scratch --rows tcc --seeds 0,1 --out" in first
    assert "--base vggm=golf-scratch 'loss.weights={ sal = 2.0 }' --rows sal --seeds 0 --out" in second


def test_the_search_shows_each_change_after_the_recipe_itself(benchmark: Benchmark) -> None:
    runs = {
        "b8/tcc+tcn/0": run(["fast-gpu", "optimizer.batch_size=8"], tau=0.7),
        "x/tcc+tcn/0": run(["fast-gpu"]),
    }
    lines = "\n".join(benchmark("results_page").search_section({"runs": runs})).splitlines()
    plain, changed, _, folded = [line for line in lines if line.startswith("| `fast-gpu`")]
    assert plain.startswith("| `fast-gpu` | 100 | 0.400 |")
    assert changed.startswith("| `fast-gpu`, `optimizer.batch_size=8` |") and "| 0.700 |" in folded


def test_the_figure_has_a_line_for_each_row_it_shows(benchmark: Benchmark) -> None:
    few = {"counts": {"labelled_train_videos": 40}, "few_shot": {"1": {"mean": 0.3}, "10": {"mean": 0.4}}}
    shares = {"0.1": 0.35, "0.5": 0.45, "1.0": 0.5}
    made = run(["golf"], phase_accuracy_by_fraction=shares, **few)
    page = benchmark("results_figures")
    assert page.few_shot_curve([made]) == ([1, 10, 20, 40], [[0.3], [0.4], [0.45], [0.5]])
    picture = page.draw_few_shot({"vggm/tcc/0": made, "vggm/sal/0": made}).decode()
    assert ">tcc<" in picture and ">sal<" in picture and "VGG-M, from scratch" in picture


def test_pairs_with_negative_tau_are_shown_seed_by_seed(benchmark: Benchmark) -> None:
    made = {"device": "a CPU", "torch": "2.0", "commit": "abc"}
    runs = {
        f"8 videos/{loss}/{seed}": {"tau": tau + seed / 10, "backwards": share, **made}
        for loss, tau, share in (("tcc", 0.1, 0.5), ("tcc+order", 0.8, 0.0))
        for seed in (0, 1)
    }
    asked = {"recipe": "golf", "updates": 9, "videos": 5}
    lines = benchmark("results_page").backwards_section({"runs": runs, **asked})
    assert "Made on a CPU with torch 2.0 at commit abc." in lines
    assert "| 8 videos | tcc | 0.10, 0.20 | 0.50, 0.50 |" in lines
    assert "| 8 videos | tcc+order | 0.80, 0.90 | 0.00, 0.00 |" in lines
    assert any("--seeds 0,1 --out results/backwards.json" in line for line in lines)
    assert ">tcc+order<" in benchmark("results_figures").draw_backwards(runs).decode()


def test_label_transfer_stands_beside_supervision_in_order_of_labels(benchmark: Benchmark) -> None:
    figures = {"median_ms": 99.6, "pce1": 0.25, "pce3": 0.5}
    labelled = {"379": {"supervised": figures}, "5": {"transfer": figures, "supervised": figures}}
    where = {"device": "a GPU", "torch": "2.0", "commit": "abc"}
    lines = "\n".join(
        benchmark("results_page").transfer_section({"labelled": labelled, **where})
    ).splitlines()
    assert "| median error in ms, by labelled videos | 5 | 379 |" in lines
    assert "| transfer | 100 | – |" in lines and "| supervised | 0.250 | 0.250 |" in lines


def test_label_transfer_shows_other_data_sets_and_its_command(benchmark: Benchmark) -> None:
    figures = {"median_ms": 99.6, "pce1": 0.25, "pce3": 0.5}
    result = {
        "run": "lite",
        "span": "start,end",
        "updates": 7,
        "labelled": {"1": {"transfer": figures}},
        "sets": {"robot": {"10": {"untrained": figures}, "1": {"untrained": figures, "time-only": figures}}},
        **{"device": "a GPU", "torch": "2.0", "commit": "abc"},
    }
    text = "\n".join(benchmark("results_page").transfer_section(result))
    command = " ".join(text.replace("\\\n", " ").split())
    assert "--run lite --span start,end --updates 7 --set robot=runs/robot --out" in command
    shares = ("within 1 frame", "within 3 frames")
    heads = " | ".join(f"{count}: {share}" for share in shares for count in (1, 10))
    assert f"| robot | {heads} |" in text
    assert "| untrained | 0.250 | 0.250 | 0.500 | 0.500 |" in text
    assert "| time-only | 0.250 | – | 0.500 | – |" in text


def test_no_table_has_more_than_eight_columns_and_folds_keep_the_rows() -> None:
    text = (ROOT / "RESULTS.md").read_text("utf-8")
    tables = re.findall(r"(?m)(?:^\|.*\n)+", text)
    assert not [table for table in tables if table.splitlines()[0].count("|") > 9]
    folds = re.findall(r"(?s)((?:\|[^\n]*\n)+)\n<details [^>]*>.*?\n\n((?:\|[^\n]*\n)+)\n</details>", text)
    assert len(folds) > 10
    for fold in folds:
        first, second = ([line.split("|")[1] for line in found.splitlines()] for found in fold)
        assert first == second


def test_every_picture_of_the_results_page_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "RESULTS.md").read_text("utf-8"))
    assert not [link for link in links if not (ROOT / link).exists()]


def test_joined_files_hold_the_runs_of_all(benchmark: Benchmark, tmp_path: Path) -> None:
    file = benchmark("result_file")
    for seed in (0, 1):
        part = {"recipe": {"vggm": ["golf"]}, "runs": {f"vggm/tcc/{seed}": run(["golf"])}}
        (tmp_path / f"{seed}.json").write_text(json.dumps(part), "utf-8")
    joined = file.read_results(tmp_path / "0.json", [tmp_path / "1.json"])
    joined["rows"] = file.summarize(joined["runs"])
    file.write_results(tmp_path / "all.json", joined)
    assert json.loads((tmp_path / "all.json").read_text("utf-8"))["rows"]["vggm/tcc"]["seeds"] == 2


def asked(**options: Any) -> Namespace:
    defaults = {"base": [], "bases": "vggm,lite0", "rows": "frozen,tcc", "seeds": "0,1", "overrides": []}
    return Namespace(**{**defaults, **options})


def test_frozen_rows_have_one_seed_and_a_pretrained_base(benchmark: Benchmark) -> None:
    keys = [job.key for job in benchmark("reproduce").jobs(asked())]
    assert keys == ["vggm/tcc/0", "lite0/frozen/0", "lite0/tcc/0", "vggm/tcc/1", "lite0/tcc/1"]


def test_a_base_takes_its_recipe_and_settings_from_the_command_line(benchmark: Benchmark) -> None:
    words = ["mine=fast", "data.frame_size=64"]
    (job,) = benchmark("reproduce").jobs(asked(base=[words], bases="mine", rows="tcc-mse", seeds="3"))
    recipe = job.recipe
    assert (recipe.data.frame_size, recipe.loss.tcc.kind, recipe.run.seed) == (64, "mse", 3)
    assert recipe.loss.weights == {"tcc": 1.0}


def test_an_unknown_row_is_named(benchmark: Benchmark) -> None:
    with pytest.raises(Exception, match=r"no method 'tccc'\. Did you mean 'tcc'"):
        benchmark("reproduce").jobs(asked(rows="tccc"))


def embeddings(seed: int, videos: int = 3, size: int = 4) -> EmbeddingSet:
    rng = np.random.default_rng(seed)
    arrays = {f"{seed}-{i}": rng.normal(size=(8, size)).cumsum(axis=0) for i in range(videos)}
    return EmbeddingSet.from_arrays(arrays, events={name: {"top": 4} for name in arrays}, fps=30)


def test_a_row_that_was_not_scored_waits_for_the_next_call(benchmark: Benchmark, tmp_path: Path) -> None:
    scoring = benchmark("scoring")
    scoring.Scorer(tmp_path / "w", 0).add(
        "b/tcc/0", {"minutes": 1.0}, {"train": embeddings(0), "val": embeddings(1)}
    )
    with scoring.Scorer(tmp_path / "w", 0) as later:
        ((key, found),) = later.finished()
        later.forget(key)
    assert (key, found["minutes"]) == ("b/tcc/0", 1.0) and 0 <= found["val"]["phase_accuracy"] <= 1
    assert not (tmp_path / "w").exists()


def test_narrowed_embeddings_keep_their_distances(benchmark: Benchmark) -> None:
    sets = {"train": embeddings(0), "val": embeddings(1)}
    narrow, kept = benchmark("rows").narrow(sets, size=4)
    for name in sets["val"]:
        wide = np.linalg.norm(sets["val"][name] - sets["val"][name][:1], axis=1)
        assert np.linalg.norm(narrow["val"][name] - narrow["val"][name][:1], axis=1) == pytest.approx(
            wide, 1e-4
        )
    assert kept == pytest.approx(1.0)
