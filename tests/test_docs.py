"""What docs/ shows is what the committed results say."""

import ast
import importlib
import importlib.util
import itertools
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import typer

from cycleback.cli.main import app
from cycleback.recipe import recipe_names
from cycleback.recipe.sections import default_settings

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STUDIO_KINDS = ("b_frames", "variable_rate", "all_intra", "proxy_of_mpeg4")


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


PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
CARDS = sorted(ROOT.glob("models/**/*.md"))
MAX_LINE, MAX_COLUMNS = 100, 8


def prose_lines(page: Path) -> list[tuple[int, str]]:
    """Return the numbered lines of a page outside code blocks."""
    lines, is_code = [], False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            lines.append((number, line))
    return lines


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and mkdocs make them."""
    headings = (line.lstrip("#").strip() for _, line in prose_lines(page) if re.match(r"#+ ", line))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def place(page: Path, number: int) -> str:
    return f"{page.relative_to(ROOT)}:{number}"


def test_every_link_and_picture_leads_somewhere() -> None:
    broken = []
    for page in (*PAGES, *CARDS):
        for number, line in prose_lines(page):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                path, _, anchor = target.partition("#")
                file = page.parent / path if path else page
                is_web = re.match(r"[a-z]+:", target) is not None
                is_found = is_web or (file.exists() and (not anchor or anchor in anchors(file)))
                broken += [] if is_found else [f"{place(page, number)} {target}"]
    assert not broken, "\n" + "\n".join(broken)


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"(?m)^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"))
    hooks = script("docs_hooks")
    inside = [name for name in listed if not name.startswith(f"{hooks.PREFIX}/")]
    assert sorted(inside) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    others = {name.removeprefix(f"{hooks.PREFIX}/") for name in {*listed} - {*inside}}
    assert {*hooks.MORE_PAGES} <= others and all((ROOT / name).is_file() for name in others)


def public_packages() -> set[str]:
    """The parts of the package that name public names."""
    inits = (ROOT / "src" / "cycleback").glob("*/__init__.py")
    return {init.parent.name for init in inits if "__all__" in init.read_text("utf-8")}


def test_every_package_with_public_names_has_a_page_made_from_its_docstrings() -> None:
    pages = {page.stem: page.read_text("utf-8") for page in (DOCS / "reference/api").glob("*.md")}
    overview = pages.pop("index")
    assert {*pages} == {*public_packages(), "errors"}
    for name, text in pages.items():
        assert f"\n::: cycleback.{name}\n" in text and f"]({name}.md)" in overview


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as `make docs` builds it, without the slow pages made from docstrings."""
    mkdocs = pytest.importorskip("mkdocs.commands.build", reason="mkdocs is not installed")
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    settings = {"strict": True, "plugins": ["search"], "site_dir": str(folder)}
    mkdocs.build(load_config(str(ROOT / "mkdocs.yml"), **settings))
    return folder


def test_the_site_has_every_file_of_the_repository_that_a_page_links_to(site: Path) -> None:
    guide = (site / "guides/streams/index.html").read_text("utf-8")
    notice = "repository/src/cycleback/weights/NOTICE.txt"
    assert f'href="../../{notice}"' in guide
    assert (site / notice).read_bytes() == (ROOT / "src/cycleback/weights/NOTICE").read_bytes()
    results = (site / "repository/RESULTS/index.html").read_text("utf-8")
    assert 'href="../../results/results/"' in results and 'src="../../images/golf-few-shot.svg"' in results
    assert "repository/RESULTS/#penn-action-poses" in (site / "results/small_folders/index.html").read_text()


def test_the_site_asks_no_other_host(site: Path) -> None:
    asks = re.compile(r"""(?:<script[^>]*src|<link[^>]*href|<img[^>]*src)=["'](https?:[^"']+)""")
    asked = {url for page in site.rglob("*.html") for url in asks.findall(page.read_text("utf-8"))}
    assert not asked


def test_a_broken_link_stops_the_site(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("[gone](../GONE.md), [here](../HERE.md), `[code](../CODE.md)`")
    (tmp_path / "HERE.md").write_text("# Here\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: Test\nplugins: []\n")
    hooks = str(ROOT / "scripts/docs_hooks.py")
    with pytest.raises(Abort, match="1 warnings"):
        build(load_config(str(tmp_path / "mkdocs.yml"), strict=True, hooks=[hooks]))
    assert "'../GONE.md', but the target is not found" in caplog.text


def test_lines_are_short() -> None:
    long = []
    for page in PAGES:
        for number, line in prose_lines(page):
            is_link = line.startswith(("![", "[", "<")) or "](" in line
            if len(line) > MAX_LINE and not is_link and not line.startswith("|"):
                long.append(f"{place(page, number)} has {len(line)} characters")
    assert not long, "\n" + "\n".join(long)


def test_tables_are_narrow() -> None:
    wide = []
    for page in PAGES:
        for number, line in prose_lines(page):
            columns = len(re.sub(r"`[^`]*`|\\\|", "", line).strip().strip("|").split("|"))
            if re.match(r"\|[\s:|-]+\|$", line) and columns > MAX_COLUMNS:
                wide.append(f"{place(page, number)} has {columns} columns")
    assert not wide, "\n" + "\n".join(wide)


def written_commands(page: Path) -> list[str]:
    """Return the `cycleback` commands in code blocks and inline code of a page."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text) + re.findall(r"(?m)^    (\S.*)$", text)
    found = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", text)
    return [line.removeprefix("$ ") for line in found if line.removeprefix("$ ").startswith("cycleback ")]


def unknown_words(command: str) -> list[str]:
    """Return what is wrong in a written command: words that do not exist, and options that are missing.

    The name of a command alone may stand for it without options.
    """
    here, unknown, is_name = typer.main.get_command(app), [], True
    words = re.split(r"\s#\s|[;&|>]", command)[0].split()[1:]
    for word in words:
        if hasattr(here, "commands") and not word.startswith("-"):
            if word not in here.commands:
                return [word]
            here = here.commands[word]
            continue
        is_name = False
        if re.match(r"--?[a-zA-Z]", word):
            known = {name for option in here.params for name in option.opts} | {"--help", "-h"}
            unknown += [] if word.partition("=")[0] in known else [word]
    needed = [] if is_name else [o.opts for o in here.params if o.required and o.param_type_name == "option"]
    return unknown + [f"no {names[0]}" for names in needed if not set(names) & set(words)]


def test_every_command_and_option_exists() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {' '.join(unknown)} in {command}"
        for page in (*PAGES, *CARDS)
        if page.name != "CHANGELOG.md"
        for command in written_commands(page)
        if (unknown := unknown_words(command))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_name_that_an_example_imports_exists() -> None:
    missing = []
    for page in PAGES:
        for code in re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text("utf-8")):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module:
                    module = importlib.import_module(node.module)
                    names = [name.name for name in node.names if not hasattr(module, name.name)]
                    missing += [f"{page.relative_to(ROOT)}: {node.module}.{name}" for name in names]
    assert not missing, "\n" + "\n".join(missing)


RECIPES = DOCS / "reference" / "recipes.md"


def test_every_setting_is_documented_with_its_default() -> None:
    rows = re.findall(r"(?m)^\| `([\w.]+)` \| `(.+?)` \| [^|]+ \|$", RECIPES.read_text("utf-8"))
    documented = {key: tomllib.loads(f"value = {value}")["value"] for key, value in rows}
    defaults = {k: list(v) if isinstance(v, tuple) else v for k, v in default_settings().items()}
    defaults["augment.brightness"] = round(defaults["augment.brightness"], 4)
    assert documented == defaults


def test_every_recipe_is_documented() -> None:
    patterns = re.findall(r"`([a-z][a-z0-9{},-]+)`", RECIPES.read_text("utf-8"))
    choices = ([part.split(",") for part in re.split(r"[{}]", pattern)] for pattern in patterns)
    named = {"".join(parts) for options in choices for parts in itertools.product(*options)}
    assert not set(recipe_names()) - named


def test_the_python_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cycleback.synth import write_dataset

    write_dataset(tmp_path / "clips", videos=12, size=64, jobs=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    examples = re.findall(
        r"```python\n(.*?)```", (DOCS / "reference" / "python.md").read_text("utf-8"), re.DOTALL
    )
    assert len(examples) > 10
    names: dict[str, object] = {}
    for number, code in enumerate(examples):
        exec(compile(code, f"python.md, example {number}", "exec"), names)
    written = ("together.mp4", "with_sound.mp4", "similarity.png", "runs/pouring/encoder.safetensors")
    assert all((tmp_path / name).stat().st_size > 1000 for name in written)


def test_the_python_page_lists_the_public_names() -> None:
    import cycleback

    rows = re.findall(r"(?m)^\| `(\w+)[(`]", (DOCS / "reference" / "python.md").read_text("utf-8"))
    assert {*rows, "__version__"} == set(cycleback.__all__)


def test_the_figures_of_the_studio_are_those_of_the_results() -> None:
    page, server, matrix = (
        json.loads((ROOT / "results" / f"studio_{name}.json").read_text())
        for name in ("page", "server", "matrix")
    )
    exact, drift, paint = page["exact"], page["drift"], page["paint"]
    seeks = [
        ", ".join(str(exact[way][kind]) for kind in STUDIO_KINDS) for way in ("webcodecs", "video_element")
    ]
    figures = [
        *seeks,
        f"{drift['share_on_time']:.1%}".replace("%", " %"),
        f"{drift['pictures_wrong']} of {drift['pictures_read']}",
        f"{paint['first_paint_s']:.2f} s; {paint['list_s']:.2f} s",
        f"{page['memory']['end_over_start']:.2f} times",
        f"{matrix['hour_tile_ms']['median']:.1f} ms",
        f"{server['frame']['times longer']['PyAV from the start']:.0f} times as fast",
    ]
    text = (DOCS / "studio.md").read_text("utf-8")
    table = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ")][-8:]
    assert table == figures
