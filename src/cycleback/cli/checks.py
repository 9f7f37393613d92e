"""What the user typed, checked before anything is written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cycleback.errors import UserError, one_of

METHODS = ("dtw", "nearest")
LEVELS = ("easy", "hard")


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of `choices`."""
    if value not in choices:
        raise UserError(f"no {what} {value!r}: expected {one_of(choices)}")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """For calls that are given nothing but what the user typed: a value they refuse is the user's to fix."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from error
