import pytest
import torch

from cycleback.models import VectorBase


def test_vectors_become_a_grid_of_one_place() -> None:
    base = VectorBase(in_features=6)
    vectors = torch.randn(5, 6)
    assert torch.equal(base(vectors), vectors.reshape(5, 6, 1, 1))
    assert (base.input_kind, base.channels, base.in_channels, base.stride) == ("vectors", 6, 6, 1)


def test_given_statistics_standardise() -> None:
    base = VectorBase(in_features=2)
    base.mean.copy_(torch.tensor([1.0, -1.0]))
    base.std.copy_(torch.tensor([2.0, 0.5]))
    assert base(torch.tensor([[3.0, 0.0]])).flatten().tolist() == [1.0, 2.0]
    assert base.state_dict().keys() == {"mean", "std"} and not list(base.parameters())


def test_velocity_is_the_difference_to_the_previous_frame() -> None:
    base = VectorBase(in_features=2, velocity=True)
    video = torch.tensor([[1.0, 5.0], [4.0, 4.0], [4.0, 6.0]])
    expected = torch.tensor([[1.0, 5.0, 0.0, 0.0], [4.0, 4.0, 3.0, -1.0], [4.0, 6.0, 0.0, 2.0]])
    assert torch.equal(base.prepare(video), expected)
    assert base(base.prepare(video)).shape == (3, 4, 1, 1)


def test_without_velocity_a_video_stays_as_it_is() -> None:
    video = torch.randn(4, 3)
    assert torch.equal(VectorBase(in_features=3).prepare(video), video)


def test_fitted_statistics_are_those_of_all_frames() -> None:
    base = VectorBase(in_features=2, velocity=True)
    videos = [torch.randn(30, 2) * 3 + 5, torch.randn(50, 2) * 3 + 5]
    base.fit(videos)
    features = torch.cat([base(base.prepare(video)) for video in videos]).flatten(1)
    torch.testing.assert_close(features.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(features.std(0, correction=0), torch.ones(4), atol=1e-5, rtol=0)


def test_a_number_that_never_changes_stays_finite() -> None:
    base = VectorBase(in_features=1)
    base.fit([torch.full((4, 1), 7.0)])
    assert base(torch.full((2, 1), 7.0)).flatten().tolist() == [0.0, 0.0]


def test_vectors_of_other_float_types_are_taken() -> None:
    base = VectorBase(in_features=3)
    for dtype in (torch.float16, torch.float64):
        assert base(base.to_float(torch.ones(2, 3, dtype=dtype))).dtype == torch.float32


def test_vectors_have_at_least_one_component() -> None:
    with pytest.raises(ValueError, match="in_features must be at least 1, got 0"):
        VectorBase(in_features=0)


def test_a_video_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be \(N >= 1, 2\), got \(4, 3\)"):
        VectorBase(in_features=2).prepare(torch.zeros(4, 3))
