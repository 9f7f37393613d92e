"""Which embeddings may be compared: those of one encoder."""

from collections.abc import Mapping

from cycleback.errors import EmbeddingError


def check_same_encoder(encoders: Mapping[str, str | None]) -> None:
    """Refuse embeddings of different encoders.

    Args:
        encoders: what was embedded, in words -> fingerprint of its encoder; one that is not known is trusted.
    """
    known = {what: encoder for what, encoder in encoders.items() if encoder is not None}
    if len(set(known.values())) > 1:
        made = ", ".join(f"{what} by {encoder}" for what, encoder in known.items())
        raise EmbeddingError(f"different encoders cannot be compared: {made}. Embed all with the same run.")
