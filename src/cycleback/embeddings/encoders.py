"""Checks that embeddings may be compared: one encoder, one action."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cycleback.errors import DataError, EmbeddingError

if TYPE_CHECKING:
    from cycleback.embeddings.store import EmbeddingSet


def check_same_encoder(encoders: Mapping[str, str | None]) -> None:
    """Refuse embeddings of different encoders.

    Args:
        encoders: what was embedded, in words -> fingerprint of its encoder; one that is not known is trusted.
    """
    known = {what: encoder for what, encoder in encoders.items() if encoder is not None}
    if len(set(known.values())) > 1:
        made = ", ".join(f"{what} by {encoder}" for what, encoder in known.items())
        raise EmbeddingError(f"different encoders cannot be compared: {made}. Embed all with the same run.")


def check_one_action(*sets: "EmbeddingSet") -> None:
    """Refuse videos of different actions; a video whose action is unknown is accepted."""
    shown = {found.action(name): name for found in sets for name in found if found.action(name)}
    if len(shown) > 1:
        (first, one), (second, other), *_ = shown.items()
        raise DataError(f"{one} shows {first!r} and {other} shows {second!r}: give videos of the same action")
