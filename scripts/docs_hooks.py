"""Hooks of mkdocs: pages of docs/ may link to any file of the repository, and the site has it.

A link that leaves docs/ leads to a file such as RESULTS.md or a model's card. Each such file becomes part of
the site, at `repository/PATH`, with the files that it links to itself. So a link works in the repository and
on the site, no address of the repository is needed, and `mkdocs build --strict` finds every broken link.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PREFIX = "repository"
MORE_PAGES = ("RESULTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # those of the navigation
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")  # [text](PATH#anchor); no web address
CODE = re.compile(r"(?ms)^ *```.*?^ *```|^(?:    |\t).*?$|`[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to outside docs/."""
    root, docs = _root(config), Path(config.docs_dir)
    waiting = [docs / file.src_uri for file in files.documentation_pages()]
    for page in (root / name for name in MORE_PAGES):
        if page.is_file():
            waiting.append(page)
            _add(files, page, config)
    while waiting:
        page = waiting.pop()
        text = CODE.sub("", page.read_text("utf-8"))
        for target in ((page.parent / match[2]).resolve() for match in LINK.finditer(text)):
            is_known = not target.is_relative_to(root) or files.get_file_from_path(_uri(target, root))
            if target.is_file() and not is_known:
                _add(files, target, config)
                waiting += [target] if target.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links that leave docs/, and those of pages from outside it, to their place on the site."""
    root, uri = _root(config), page.file.src_uri
    is_inside = not uri.startswith(f"{PREFIX}/")
    source = Path(config.docs_dir) / uri if is_inside else root / uri.removeprefix(f"{PREFIX}/")

    def move(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if not target.is_file() or not target.is_relative_to(root):
            return match[0]  # mkdocs says that it is broken
        return match[1] + posixpath.relpath(_uri(target, root), posixpath.dirname(uri) or ".") + match[3]

    parts, last = [], 0
    for code in CODE.finditer(markdown):  # what looks like a link in code is none
        parts += [LINK.sub(move, markdown[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, LINK.sub(move, markdown[last:])])


def _root(config: MkDocsConfig) -> Path:
    """Return the folder of the repository, which has mkdocs.yml in it."""
    return Path(config.config_file_path).resolve().parent


def _uri(path: Path, root: Path) -> str:
    """Return where a file of the repository is among the sources of the site."""
    inside = path.relative_to(root)
    if inside.parts[0] == "docs":
        return inside.relative_to("docs").as_posix()
    suffix = "" if path.suffix else ".txt"  # a browser shows LICENSE as text only under such a name
    return f"{PREFIX}/{inside.as_posix()}{suffix}"


def _add(files: Files, path: Path, config: MkDocsConfig) -> None:
    files.append(File.generated(config, _uri(path, _root(config)), abs_src_path=str(path)))
