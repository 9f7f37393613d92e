"""The import table of docs/reference/architecture.md, enforced. Each test reports all offenders at once."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "cycleback"
PAGE = (ROOT / "docs" / "reference" / "architecture.md").read_text("utf-8")
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")

# module or package -> what it may import from cycleback, besides BOTTOM
BOTTOM = {
    "arrays",
    "compilation",
    "display",
    "errors",
    "files",
    "prefetch",
    "progress",
    "provenance",
    "ranges",
    "reading",
    "tables",
}
ALLOWED: dict[str, set[str]] = {
    "arrays": set(),
    "compilation": set(),
    "display": set(),
    "errors": set(),
    "files": set(),
    "prefetch": set(),
    "progress": {"training"},  # for type checkers only
    "provenance": set(),
    "ranges": set(),
    "reading": set(),
    "tables": set(),
    "config": set(),
    "losses": set(),
    "alignment": set(),
    "annotations": set(),
    "video": set(),
    "models": set(),
    "synth": {"video"},
    "data": {"alignment", "annotations", "video"},
    "prepare": {"data", "video"},
    "embeddings": {"models", "data", "alignment"},
    "evaluation": {"embeddings", "data", "alignment"},
    "training": {"embeddings", "models", "data", "losses", "alignment"},
    "applications": {"embeddings", "models", "data", "alignment", "annotations", "video"},
    "recipe": {"training", "models", "data", "losses", "config"},
    "exported": {"embeddings", "models", "data", "video"},
    "runs": {"recipe", "training", "exported", "embeddings", "models", "data", "losses", "alignment"},
    "export": {"runs", "exported", "embeddings", "models", "data", "synth"},
    "search": {"corpus", "runs", "embeddings", "models", "data", "video"},
    "corpus": {"runs", "embeddings", "models", "data", "alignment", "video"},
}
ALLOWED["comparison"] = {"runs", "recipe", "training", "applications", "evaluation", "embeddings", "models"}
ALLOWED["comparison"] |= {"data", "alignment", "synth", "video"}
ALLOWED["web"] = {"runs", "recipe", "training", "search", "applications", "embeddings", "models", "data"}
ALLOWED["web"] |= {"alignment", "annotations", "video"}
ALLOWED["cli"] = set(ALLOWED)
ARRAYS_ONLY = {"losses": {"torch", "triton"}, "alignment": {"numpy", "numba"}}
LAZY = {"av", "cv2", "numba", "matplotlib", "sklearn", "PIL"}
MAX_FILE_LINES = 600  # an alarm, not a target: look whether the file still holds one idea
MAX_FUNCTION_LINES = 60


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Dotted names a file imports: everywhere, or only by running its module body."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = tree.body if top_level else list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def top_packages(path: Path, *, top_level: bool = False) -> set[str]:
    return {name.split(".")[0] for name in imports(path, top_level=top_level)}


def test_imports_point_down() -> None:
    offenders = {}
    for path in FILES:
        used = {name.split(".")[1] for name in imports(path) if name.startswith("cycleback.")}
        allowed = ALLOWED[part_of(path)] | {part_of(path)} | (BOTTOM if part_of(path) != "errors" else set())
        if wrong := used - allowed:
            offenders[str(path.relative_to(PACKAGE))] = wrong
    assert not offenders


def test_optional_packages_are_imported_where_they_are_used() -> None:
    wrong = {str(path): found for path in FILES if (found := top_packages(path, top_level=True) & LAZY)}
    assert not wrong


def test_losses_and_alignment_see_arrays_only() -> None:
    wrong = {}
    for part, allowed in ARRAYS_ONLY.items():
        for path in (PACKAGE / part).rglob("*.py"):
            if outside := top_packages(path) - set(sys.stdlib_module_names) - {"cycleback"} - allowed:
                wrong[str(path)] = outside
    assert not wrong


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_no_file_or_function_grows_unseen() -> None:
    long = []
    for path in FILES:
        text = path.read_text("utf-8")
        if (lines := len(text.splitlines())) > MAX_FILE_LINES:
            long.append(f"{path.name}: {lines} lines")
        functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
        long += [f"{path.name}:{n.name}" for n in functions if body_lines(n) > MAX_FUNCTION_LINES]
    assert not long


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


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


def test_the_page_documents_the_import_table() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE)
    documented = {part: set(re.findall(r"\w+", re.sub(r"\(.*\)|–", "", names))) for part, names in rows}
    documented["cli"] = set(documented) - {"cli"} if documented["cli"] == {"all"} else documented["cli"]
    assert documented == ALLOWED


def test_the_layers_of_the_page_point_down() -> None:
    (layers,) = re.findall(r"```\n(cli\n.*?)```", PAGE, re.DOTALL)
    level = {part: i for i, line in enumerate(layers.splitlines()) for part in line.split(" · ")}
    assert set(level) == set(ALLOWED) and {p for p, i in level.items() if i == max(level.values())} == BOTTOM
    up = {part: {p for p in used if level[p] <= level[part]} for part, used in ALLOWED.items()}
    assert {part: used for part, used in up.items() if used} == {"progress": {"training"}}  # types only


def definitions(path: Path) -> set[str]:
    """Functions, classes and methods of a file; methods as Class.method."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    top = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, kinds)]
    inner = {
        f"{n.name}.{m.name}" for n in top if isinstance(n, ast.ClassDef) for m in n.body if hasattr(m, "name")
    }
    return {node.name for node in top} | inner


def test_every_function_the_page_names_is_there() -> None:
    named = set(re.findall(r"([\w/]+\.py):([\w.]+)", PAGE))
    assert len(named) > 60
    assert not [f"{file}:{name}" for file, name in named if name not in definitions(PACKAGE / file)]


def test_the_walks_of_the_page_never_lead_back_up() -> None:
    walks = re.findall(r"```\n(cli/main\.py:main .*?)```", PAGE, re.DOTALL)
    assert len(walks) == 2
    wrong = []
    for walk in walks:
        callers: list[str] = []
        for indent, file in re.findall(r"(?m)^( *)([\w/]+\.py):", walk):
            part, depth = part_of(PACKAGE / file), len(indent) // 2
            caller = callers[depth - 1] if depth else part
            if part not in ALLOWED[caller] | BOTTOM | {caller}:
                wrong.append(f"{caller} -> {file}")
            callers = [*callers[:depth], part]
    assert not wrong
