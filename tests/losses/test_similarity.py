import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from cycleback.losses import ordered_pairs, scaled_similarity, squared_distances


def test_squared_distances_equal_scipy(embeddings):
    expected = cdist(embeddings[0], embeddings[1, :4], "sqeuclidean")
    np.testing.assert_allclose(squared_distances(embeddings[0], embeddings[1, :4]), expected, rtol=1e-12)


def test_squared_distances_batch_over_any_leading_axes(embeddings):
    batched = squared_distances(embeddings[None], embeddings.roll(1, 0)[None])
    assert batched.shape == (1, 3, 7, 7)
    torch.testing.assert_close(batched[0, 2], squared_distances(embeddings[2], embeddings[1]))


def test_distances_far_from_zero_keep_their_digits():
    rows = 1e4 + torch.randn(20, 128, generator=torch.Generator().manual_seed(0))
    expected = torch.from_numpy(cdist(rows.double(), rows.double(), "sqeuclidean")).float()
    torch.testing.assert_close(squared_distances(rows, rows), expected, rtol=1e-5, atol=1e-3)


def test_distances_are_never_negative_and_zero_for_equal_rows():
    rows = torch.full((6, 32), 1234.567)
    assert squared_distances(rows, rows).eq(0).all()
    spread = torch.randn(
        200, 32, generator=torch.Generator().manual_seed(0)
    )  # rounds below zero on the diagonal
    assert squared_distances(spread, spread).ge(0).all()


def test_similarity_is_divided_by_temperature_and_by_dimension(embeddings):
    plain = scaled_similarity(embeddings, embeddings, temperature=1.0, scaling="none")
    torch.testing.assert_close(plain, -squared_distances(embeddings, embeddings))
    torch.testing.assert_close(scaled_similarity(embeddings, embeddings, temperature=0.1), plain / 0.5)


def test_cosine_ignores_length(embeddings):
    logits = scaled_similarity(
        embeddings, 7 * embeddings, temperature=0.5, scaling="none", similarity="cosine"
    )
    torch.testing.assert_close(logits.diagonal(dim1=1, dim2=2), torch.full((3, 7), 2.0, dtype=torch.float64))


def test_every_ordered_pair_comes_once():
    start, other = ordered_pairs(4)
    pairs = list(zip(start.tolist(), other.tolist(), strict=True))
    assert sorted(pairs) == [(a, b) for a in range(4) for b in range(4) if a != b]


@pytest.mark.parametrize("num_videos", [0, 1])
def test_fewer_than_two_videos_have_no_pairs(num_videos):
    start, other = ordered_pairs(num_videos)
    assert start.shape == other.shape == (0,)


@pytest.mark.parametrize(("option", "value"), [("similarity", "dot"), ("scaling", "sqrt")])
def test_unknown_names_are_refused(embeddings, option, value):
    with pytest.raises(ValueError, match=rf"{option} must be one of .*, got '{value}'"):
        scaled_similarity(embeddings, embeddings, **{option: value})
