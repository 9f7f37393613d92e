"""Check what the user typed before anything is written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cycleback.errors import UserError, one_of

METHODS = ("dtw", "nearest")
LEVELS = ("easy", "hard")


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of `choices`."""
    if value not in choices:
        raise UserError(f"unknown {what} {value!r}; expected {one_of(choices)}")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError into a UserError, around calls whose arguments all come from the user."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from error
