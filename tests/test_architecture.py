"""The import table of docs/architecture.md, enforced: an import may only point down."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "cycleback"

# module or package -> what it may import from cycleback
ALLOWED = {
    "errors": set(),
    "files": {"errors"},
    "config": {"errors"},
    "video": {"errors"},
    "synth": {"video", "errors"},
    "losses": {"errors"},
    "alignment": {"errors"},
    "models": {"errors"},
    "data": {"video", "errors"},
    "embeddings": {"models", "data", "alignment", "errors"},
    "evaluation": {"embeddings", "data", "alignment", "errors"},
    "training": {"embeddings", "models", "data", "losses", "alignment", "errors"},
    "applications": {"embeddings", "data", "alignment", "video", "errors"},
    "recipe": {
        "applications",
        "evaluation",
        "training",
        "embeddings",
        "models",
        "data",
        "losses",
        "config",
        "errors",
    },
}
for part in ("applications", "data", "embeddings", "evaluation", "models", "recipe", "training"):
    ALLOWED[part] = {*ALLOWED[part], "files"}
ALLOWED["annotations"] = {"files", "errors"}
ALLOWED["applications"] |= {"annotations"}
ALLOWED["prepare"] = {"files", "data", "video", "errors"}
ALLOWED["selection"] = {"data", "errors"}
ALLOWED["search"] = {"embeddings", "models", "alignment", "data", "video", "files", "errors"}
ALLOWED["runs"] = {*ALLOWED["recipe"], "recipe", "selection"}
ALLOWED["comparison"] = set(ALLOWED)
ALLOWED["demo"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)
ARRAYS_ONLY = {"losses": {"torch", "math"}, "alignment": {"numpy", "numba"}}
LAZY = {"av", "cv2", "numba", "matplotlib", "sklearn", "PIL"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Dotted names a file imports: everywhere, or only by running its module body."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = tree.body if top_level else list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    used = {name.split(".")[1] for name in imports(path) if name.startswith("cycleback.")}
    assert used - {part} <= ALLOWED[part]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_optional_packages_are_imported_where_they_are_used(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path, top_level=True)} & LAZY


@pytest.mark.parametrize("part", sorted(ARRAYS_ONLY))
def test_the_core_sees_arrays_only(part: str) -> None:
    for path in (PACKAGE / part).rglob("*.py"):
        outside = (
            {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"cycleback"}
        )
        assert outside <= ARRAYS_ONLY[part], path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            length = node.end_lineno - first.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_the_command_line_starts_without_torch() -> None:
    assert not modules_after("import cycleback.cli.main") & {"torch", "av", "numpy", "sklearn", "matplotlib"}


def test_training_and_evaluation_import_without_a_video_library() -> None:
    loaded = modules_after(
        "import cycleback.training, cycleback.evaluation, cycleback.data, cycleback.recipe"
    )
    assert not loaded & {"av", "cv2", "numba", "matplotlib"}


def test_every_public_name_is_there() -> None:
    import cycleback

    for name in cycleback.__all__:
        assert getattr(cycleback, name) is not None
    assert set(cycleback._HOMES) | {"__version__"} == set(cycleback.__all__)
