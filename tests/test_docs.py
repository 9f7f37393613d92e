"""What docs/ shows is what the committed results say."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

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
