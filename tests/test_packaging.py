"""What an install brings: the package, and the models beside it."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import cycleback

ROOT = Path(__file__).resolve().parents[1]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built from, with a model and with what is none."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in (
        "tiny/recipe.toml",
        "tiny/encoder.safetensors",
        "tiny/README.md",
        "tiny/LICENSE",
        "tiny/.draft",
        "notes.md",
    ):
        (folder / "models" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "models" / name).write_text(name)
    return folder


def built(source: Path, kind: str, folder: Path) -> Path:
    pytest.importorskip("setuptools", minversion="77", reason="building needs setuptools")
    command = [sys.executable, "-c", BUILD.format(kind=kind), str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return next(folder.iterdir())


def test_a_wheel_has_the_models_inside_the_package(source: Path, tmp_path: Path) -> None:
    names = set(zipfile.ZipFile(built(source, "wheel", tmp_path)).namelist())
    package = {name for name in names if name.startswith("cycleback/")}
    models = {name for name in package if "published/" in name or ("models/" in name and "tiny" in name)}
    files = ("recipe.toml", "encoder.safetensors", "README.md", "LICENSE")
    assert models == {f"cycleback/published/tiny/{file}" for file in files}
    assert {"cycleback/recipes/fast.toml", "cycleback/py.typed", "cycleback/comparison/page.html"} <= names
    weights = ("movenet-lightning.safetensors", "NOTICE", "LICENSE")
    assert {name for name in names if name.startswith("cycleback/weights/")} == {
        f"cycleback/weights/{file}" for file in weights
    }
    assert {name.split("/")[0].split("-")[0] for name in names} == {"cycleback"}
    page = source / "src/cycleback/web/page"
    files = {path.relative_to(source / "src").as_posix() for path in page.rglob("*") if path.is_file()}
    assert files <= names and {"index.html", "NOTICE", "mediabunny.LICENSE", "uPlot.LICENSE"} <= {
        Path(file).name for file in files
    }


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert cycleback.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    newest = re.search(r"(?m)^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert newest is not None and newest[1] == version


def test_a_source_distribution_has_what_a_wheel_is_built_from(source: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(built(source, "sdist", tmp_path), tmp_path / "unpacked")
    unpacked = next((tmp_path / "unpacked").iterdir())
    assert (unpacked / "models/tiny/encoder.safetensors").read_text() == "tiny/encoder.safetensors"
    names = zipfile.ZipFile(built(unpacked, "wheel", tmp_path / "again")).namelist()
    assert "cycleback/published/tiny/recipe.toml" in names


def test_an_installed_model_is_found_from_anywhere(source: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(built(source, "wheel", tmp_path / "wheel")).extractall(tmp_path / "site")
    code = "import cycleback.runs as runs; print(runs.find_run('tiny'))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()) == tmp_path / "site/cycleback/published/tiny"
