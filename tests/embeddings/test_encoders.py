import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.errors import DataError, EmbeddingError


def test_what_each_encoder_made_is_named() -> None:
    with pytest.raises(EmbeddingError, match=r"compared: golf\.emb by a1, the videos by b2\. Embed all with"):
        check_same_encoder({"golf.emb": "a1", "the videos": "b2"})


def test_one_encoder_and_unknown_ones_are_fine() -> None:
    check_same_encoder({"golf.emb": "a1", "the videos": "a1", "old": None})
    check_same_encoder({"old": None})


def test_videos_of_two_actions_are_refused_where_their_actions_are_known() -> None:
    arrays = {name: np.ones((2, 1)) for name in "ab"}
    one, other = (EmbeddingSet.from_arrays(arrays, actions=dict.fromkeys("ab", x)) for x in ("pour", "golf"))
    check_one_action(one, one, EmbeddingSet.from_arrays(arrays))
    with pytest.raises(DataError, match="b shows 'pour' and b shows 'golf': give videos of the same action"):
        check_one_action(one, other)
