"""How commands print: the result, where it is, and the next useful command."""

import json
from typing import Any

from rich.console import Console


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(value))


def print_next(result: str, command: str | None = None) -> None:
    """Last lines of a command: where the result is, and what to type next."""
    print(result)
    if command is not None:
        print(f"next: {command}")


def console() -> Console:
    """Tables and colours on stdout."""
    return Console()
