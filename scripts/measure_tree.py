"""Measure the shape of the source tree: `python scripts/measure_tree.py [TREE] [--json]`.

Counts files, lines, file and function sizes, modules with one importer, and public names that nothing outside
their own module uses. Run it on two checkouts to compare them.
"""

import argparse
import ast
import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

PARTICIPLES = ("ed", "shown", "drawn", "taken", "kept", "made", "found", "given", "sent", "cut", "swept")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def read_modules(root: Path) -> dict[str, ast.Module]:
    """Every module below `root` by its dotted name."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        dotted = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        modules[dotted] = ast.parse(path.read_text("utf-8"))
    return modules


def find_importers(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """For each module, the other modules that import it or a name from it."""
    importers: dict[str, set[str]] = defaultdict(set)
    for importer, tree in modules.items():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name in modules and name != importer:
                    importers[name].add(importer)
    return importers


def function_lines(node: FunctionNode) -> int:
    """Lines of a function without its signature and docstring."""
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or first.lineno) - first.lineno + 1


def public_definitions(tree: ast.Module) -> set[str]:
    """Public functions and classes at the top level of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def used_names(tree: ast.Module) -> set[str]:
    """Every identifier a module mentions: names, attributes, imported names and words in strings."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


def names_used_at_home(modules: dict[str, ast.Module]) -> list[str]:
    """Public names that no other module of the package mentions."""
    users = Counter(name for tree in modules.values() for name in used_names(tree))
    return [
        f"{module}.{name}"
        for module, tree in modules.items()
        for name in sorted(public_definitions(tree))
        if users[name] - (name in used_names(tree)) == 0
    ]


def measure(root: Path) -> dict[str, float]:
    """All measures of the package at `root`."""
    modules = read_modules(root)
    lengths = [len(path.read_text("utf-8").splitlines()) for path in sorted(root.rglob("*.py"))]
    functions = [n for tree in modules.values() for n in ast.walk(tree) if isinstance(n, FunctionNode)]
    sizes = sorted(function_lines(node) for node in functions)
    importers = find_importers(modules)
    plain = [name for name in modules if not name.endswith(("__init__", "__main__"))]
    return {
        "files": len(lengths),
        "lines": sum(lengths),
        "file lines, median": median(lengths),
        "file lines, max": max(lengths),
        "functions": len(functions),
        "function lines, median": median(sizes),
        "function lines, 90th percentile": sizes[int(0.9 * len(sizes))],
        "function lines, max": sizes[-1],
        "functions named by a participle": sum(node.name.endswith(PARTICIPLES) for node in functions),
        "modules with one importer": sum(len(importers[name]) == 1 for name in plain),
        "public names used only at home": len(names_used_at_home(modules)),
    }


def main() -> None:
    """Print the measures as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parents[1]
    parser.add_argument("tree", nargs="?", type=Path, default=default, help="root of a checkout")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--names", action="store_true", help="also list public names used only at home")
    arguments = parser.parse_args()
    root = arguments.tree / "src" / "cycleback"
    measures = measure(root)
    if arguments.json:
        print(json.dumps(measures, indent=1))
    else:
        print("\n".join(f"{name:<34}{value:>8g}" for name, value in measures.items()))
    if arguments.names:
        print(*names_used_at_home(read_modules(root)), sep="\n")


if __name__ == "__main__":
    main()
