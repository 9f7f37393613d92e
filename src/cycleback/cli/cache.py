"""`cycleback cache`: see, limit and clear what is kept of videos that were decoded."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.inputs import check_choice
from cycleback.cli.options import Json
from cycleback.cli.output import print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.data.cache_room import CacheReport, Removed

cache = typer.Typer(name="cache", help="See, limit and clear the cache of decoded videos.")
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SPANS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
NEVER, DEFAULT = "none", "default"
Top = Annotated[int, typer.Option(help="List so many of the largest entries, and of the oldest.", min=0)]


@cache.callback(invoke_without_command=True)
def show_by_default(context: typer.Context) -> None:
    """See, limit and clear the cache of decoded videos.

    Example: cycleback cache

    Example: cycleback cache limit 5GB
    """
    if context.invoked_subcommand is None:
        show()


@cache.command()
def show(top: Top = 3, as_json: Json = False) -> None:
    """Show where the cache is, how large, and which videos take most of it.

    Example: cycleback cache show --top 10
    """
    from cycleback.data.cache_room import describe_cache

    report = describe_cache(_find_root())
    largest = sorted(report.entries, key=lambda entry: -entry.size)[:top]
    oldest = sorted(report.entries, key=lambda entry: entry.used)[:top]
    facts = {"cache": str(report.root), "bytes": report.size, "limit": report.limit}
    facts |= {"entries": len(report.entries), "kinds": report.kinds}
    for name, entries in (("largest", largest), ("oldest", oldest)):
        facts[name] = [{"video": e.source, "bytes": e.size, "used": e.used} for e in entries]
    print_result(facts, _describe(report, facts), ["cache", "clear", "--older", "30d"], as_json=as_json)


@cache.command()
def limit(
    size: Annotated[
        str | None, typer.Argument(help="Set this size, such as 5GB; none for no limit, or default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show or set how large the cache may grow; what was not used for longest is removed beyond it.

    Example: cycleback cache limit 5GB
    """
    from cycleback.data.cache_room import describe_cache, reset_limit, set_limit

    root, removed = _find_root(), None
    if size == DEFAULT:
        removed = reset_limit(root)
    elif size is not None:
        removed = set_limit(root, None if size == NEVER else parse_size(size))
    report = describe_cache(root)
    facts: dict[str, Any] = {"cache": str(root), "bytes": report.size, "limit": report.limit}
    text = f"limit: {_format_limit(report)}; the cache holds {format_size(report.size)}: {root}"
    if removed is not None:
        facts |= {"removed_bytes": removed.size, "in_use_bytes": removed.kept_in_use}
        text = f"{_describe_removed(removed)}{text}"
    print_result(facts, text, as_json=as_json)


@cache.command()
def clear(
    older: Annotated[
        str | None, typer.Option(help="Remove only what was not used for this long, such as 12h or 30d.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Remove only frames, motion, features, poses or embeddings; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove what the cache holds; it is made again when it is needed. What is in use stays.

    Example: cycleback cache clear --older 30d
    """
    from cycleback.data.cache_room import KINDS, clear_cache

    for name in kind or ():
        check_choice("kind of file", name, tuple(dict.fromkeys(KINDS.values())))
    root = _find_root()
    removed = clear_cache(root, older_s=0.0 if older is None else parse_span(older), kinds=kind or ())
    facts = {"cache": str(root), "removed_files": removed.files, "removed_bytes": removed.size}
    text = _describe_removed(removed) or "nothing to remove; "
    print_result(facts | {"in_use_bytes": removed.kept_in_use}, f"{text}cache: {root}", as_json=as_json)


def _find_root() -> Path:
    from cycleback.data import default_cache_root

    root = default_cache_root()
    if root.exists() and not root.is_dir():
        raise UserError(f"the cache {root} is a file, expected a folder. Move it, or set CYCLEBACK_CACHE.")
    return root


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 5GB, 500 MB or 2.5G."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", text.strip().upper())
    if found is None:
        raise UserError(f"cannot read the size {text!r}; expected a number and a unit, such as 5GB or 500MB")
    return int(float(found[1]) * UNITS[found[2]])


def format_size(size: float) -> str:
    """Write bytes in the unit in which they are easy to read."""
    unit = next((name for name in ("T", "G", "M", "K") if size >= UNITS[name]), "")
    return f"{size / UNITS[unit]:.1f} {unit.lower() if unit == 'K' else unit}B" if unit else f"{size:.0f} B"


def parse_span(text: str) -> float:
    """Return the seconds of a time such as 90m, 12h, 30d or 2w."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mhdw])", text.strip().lower())
    if found is None:
        raise UserError(f"cannot read the time {text!r}; expected a number and m, h, d or w, such as 30d")
    return float(found[1]) * SPANS[found[2]]


def _format_limit(report: "CacheReport") -> str:
    size = "none" if report.limit is None else format_size(report.limit)
    return f"{size} (default)" if report.is_default else size


def _describe(report: "CacheReport", facts: dict[str, Any]) -> str:
    lines = [f"{'cache':<12}{report.root}", f"{'size':<12}{format_size(report.size)}"]
    lines += [f"{'limit':<12}{_format_limit(report)}", f"{'videos':<12}{len(report.entries)}"]
    lines += [f"  {kind:<10}{format_size(size):>10}" for kind, size in report.kinds.items()]
    for name in ("largest", "oldest"):
        lines += [f"{name}:"] if facts[name] else []
        lines += [
            f"  {format_size(each['bytes']):>10}  used {_format_age(each['used'])} ago  {each['video']}"
            for each in facts[name]
        ]
    return "\n".join(lines)


def _format_age(used: float) -> str:
    age = max(0.0, time.time() - used)
    unit = next((name for name in ("w", "d", "h", "m") if age >= 2 * SPANS[name]), "m")
    return f"{age / SPANS[unit]:.0f}{unit}"


def _describe_removed(removed: "Removed") -> str:
    kept = f" ({format_size(removed.kept_in_use)} are in use and stay)" if removed.kept_in_use else ""
    return f"removed {format_size(removed.size)}{kept}; " if removed.files or kept else ""
