"""From a run to a model of the package: small enough, with a card whose numbers are those of its results."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cycleback
from cycleback.models import fingerprint
from cycleback.recipe import load_recipe
from cycleback.runs import load_encoder, published_models

ROOT = Path(__file__).resolve().parents[2]
QUICK = [
    "data.frame_size=64",
    "optimizer.num_updates=2",
    "optimizer.batch_size=2",
    "encoder.efficientnet_lite0.block=4",
]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


publishing, cards = script("publish_model"), script("model_card")


@pytest.fixture(scope="module")
def swings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered videos with the splits of the golf data."""
    from cycleback.synth import write_dataset

    folder = tmp_path_factory.mktemp("data") / "swings"
    write_dataset(folder, videos=8, seed=5, size=64, jobs=1)
    parts = ["train"] * 4 + ["val"] * 2 + ["val_slow"] * 2
    rows = [f"pouring_{number:03d},{part}" for number, part in enumerate(parts)]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(swings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    cycleback.train(swings, folder, recipe=load_recipe("fast", QUICK), cache=folder.parent / "cache")
    return folder


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["publish_model.py", *map(str, words)])
    code: int = publishing.main()
    return code


@pytest.fixture(scope="module")
def made(run: Path, swings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CYCLEBACK_CACHE", str(run.parent / "cache"))
        assert call(patch, run, folder, "--data", swings, "--trained-on", "one abacus") == 0
    return folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(made, tmp_path / "models" / "tiny")


def test_the_folder_is_a_model_found_by_its_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"README.md", "LICENSE", "encoder.safetensors", "recipe.toml", "results.json", "videos.json"}
    assert {path.name for path in model.iterdir()} == files and len(list(model.parent.iterdir())) == 1
    monkeypatch.setattr("cycleback.runs.folder.FOLDERS", (model.parent,))
    results = json.loads((model / "results.json").read_text())
    assert fingerprint(cycleback.load_encoder("tiny")) == results["encoder"]


def test_the_weights_are_small_and_embed_as_the_run_does(model: Path, run: Path) -> None:
    before, after = ((folder / "encoder.safetensors").stat().st_size for folder in (run, model))
    assert after < 0.62 * before
    assert 0 < publishing.rounding(load_encoder(run), load_encoder(model)) < publishing.MAX_ROUNDING


def test_the_card_has_the_numbers_of_the_results(model: Path) -> None:
    text, results = (model / "README.md").read_text(), json.loads((model / "results.json").read_text())
    ours = results["rows"]["model"]
    for part in ("val", "val_slow"):
        assert f"| event error DTW, frames ↓ | {ours[part]['event_error_frames_dtw']:.1f}" in text
        assert f"{ours[part]['phase_accuracy']:.3f}" in text and f"{ours[part]['tau']:.4f}" in text
    prose = " ".join(text.split())
    assert "4 training swings at normal speed, 2 held-out swings" in prose and "on one abacus" in prose
    assert all(
        word in text for word in ("CC BY-NC 4.0", "GolfDB", "--run tiny", "Slow motion", results["encoder"])
    )
    assert "{" not in text


def test_a_card_is_written_anew_from_changed_results(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: dict[str, Any] = json.loads((model / "results.json").read_text())
    results["rows"]["model"]["val"]["event_error_frames"] = 123.4
    (model / "results.json").write_text(json.dumps(results))
    assert call(monkeypatch, "--card", model) == 0
    assert "| event error, frames ↓ | 123.4" in (model / "README.md").read_text()


def test_numbers_measured_elsewhere_must_be_of_these_weights(
    model: Path, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = model / "results.json"
    assert call(monkeypatch, run, model.parent / "again", "--results", measured) == 0
    measured.write_text(measured.read_text().replace('"encoder": "', '"encoder": "beef'))
    assert call(monkeypatch, run, model.parent / "other", "--results", measured) == 2
    assert "these scores belong to encoder beef" in capsys.readouterr().err
    assert sorted(path.name for path in model.parent.iterdir()) == ["again", "tiny"]


def test_a_model_that_is_too_large_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publishing.MAX_BYTES == 10_000_000
    monkeypatch.setattr(publishing, "MAX_BYTES", 100_000)
    assert call(monkeypatch, run, tmp_path / "large", "--results", run / "videos.json") == 2
    assert "MB, more than 0 MB: train a smaller one" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_model_is_kept(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "README.md").write_text("a card")
    assert call(monkeypatch, run, tmp_path / "tiny", "--results", run / "videos.json") == 2
    assert f"{tmp_path / 'tiny'} exists" in capsys.readouterr().err


@pytest.mark.parametrize("folder", published_models().values(), ids=lambda path: path.name)
def test_every_model_of_the_repository_is_what_its_card_says(folder: Path) -> None:
    publishing.check_size(folder)
    publishing.check_results(folder, json.loads((folder / "results.json").read_text("utf-8")))
    assert cards.card(folder) == (folder / "README.md").read_text("utf-8")
    assert (folder / "LICENSE").read_text("utf-8") == cards.LICENCE
