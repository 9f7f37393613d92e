import pytest

from cycleback.embeddings import check_same_encoder
from cycleback.errors import EmbeddingError


def test_what_each_encoder_made_is_named() -> None:
    with pytest.raises(EmbeddingError, match=r"compared: golf\.emb by a1, the videos by b2\. Embed all with"):
        check_same_encoder({"golf.emb": "a1", "the videos": "b2"})


def test_one_encoder_and_unknown_ones_are_fine() -> None:
    check_same_encoder({"golf.emb": "a1", "the videos": "a1", "old": None})
    check_same_encoder({"old": None})
