"""What docs/ shows is what the committed results say."""

import importlib.util
import itertools
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from cycleback.recipe import recipe_names
from cycleback.recipe.sections import default_settings

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def script(name: str, folder: str = "scripts") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["training_page", "evaluation_page"])
def test_the_tables_of_a_page_are_those_of_the_results(name: str) -> None:
    page = script(name)
    text = page.PAGE.read_text("utf-8")
    assert page.fill_places(text, page.tables()) == text
    assert all(table in text and len(table) > 500 for table in page.tables().values())


def test_the_results_page_is_that_of_the_results() -> None:
    made = script("results_page", "benchmarks")
    assert made.page(made.result_files()) == made.PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT / "docs"))
)
def test_every_picture_and_page_that_is_linked_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text("utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


RECIPES = DOCS / "reference" / "recipes.md"


def test_every_setting_is_documented_with_its_default() -> None:
    rows = re.findall(r"(?m)^\| `([\w.]+)` \| `(.+?)` \| [^|]+ \|$", RECIPES.read_text("utf-8"))
    documented = {key: tomllib.loads(f"value = {value}")["value"] for key, value in rows}
    defaults = {k: list(v) if isinstance(v, tuple) else v for k, v in default_settings().items()}
    assert documented == {key: pytest.approx(value, rel=1e-3) for key, value in defaults.items()}


def test_every_recipe_is_documented() -> None:
    patterns = re.findall(r"`([a-z][a-z0-9{},-]+)`", RECIPES.read_text("utf-8"))
    choices = ([part.split(",") for part in re.split(r"[{}]", pattern)] for pattern in patterns)
    named = {"".join(parts) for options in choices for parts in itertools.product(*options)}
    assert not set(recipe_names()) - named
