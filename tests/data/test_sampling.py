from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cycleback.data.sampling import (
    context_indices,
    order_batches,
    sample_positives,
    sample_random,
    sample_segments,
    sample_strided,
)
from cycleback.errors import DataError

seeds = st.integers(0, 2**40)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 200), st.integers(1, 60), seeds)
def test_random_frames_are_sorted_different_and_inside(length: int, count: int, seed: int) -> None:
    if length < count:
        with pytest.raises(
            DataError, match=f"cannot sample {count} different frames from a video of {length}"
        ):
            sample_random(length, count, generator=generator(seed))
        return
    indices = sample_random(length, count, generator=generator(seed))
    assert indices.dtype == torch.int64 and indices.shape == (count,)
    assert indices.tolist() == sorted(set(indices.tolist()))
    assert int(indices[0]) >= 0 and int(indices[-1]) < length


def test_the_generator_alone_decides() -> None:
    for sample in (sample_random, sample_segments, lambda *a, **k: sample_strided(*a, stride=3, **k)):
        first, second = (sample(100, 20, generator=generator(7)).tolist() for _ in range(2))
        assert first == second != sample(100, 20, generator=generator(8)).tolist()


def test_every_set_of_frames_is_equally_likely() -> None:
    chance = generator()
    counts = Counter(tuple(sample_random(4, 2, generator=chance).tolist()) for _ in range(3000))
    assert len(counts) == 6
    assert all(400 < count < 600 for count in counts.values())  # 500 expected, standard deviation 20


def test_a_short_video_is_an_error_or_repeats_evenly() -> None:
    with pytest.raises(DataError, match=r"cannot sample 20 different frames from a video of 12$"):
        sample_random(12, 20, generator=generator())
    repeated = sample_random(4, 10, generator=generator(), allow_short=True)
    assert repeated.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    with pytest.raises(DataError, match="cannot sample 3 different frames from a video of 0"):
        sample_segments(0, 3, generator=generator(), allow_short=True)


@given(st.integers(1, 50), st.integers(0, 300), seeds)
def test_segments_take_one_frame_of_each_piece(count: int, extra: int, seed: int) -> None:
    length = count + extra
    indices = sample_segments(length, count, generator=generator(seed)).tolist()
    for piece, index in enumerate(indices):
        assert piece * length // count <= index < (piece + 1) * length // count


def test_segments_need_enough_frames() -> None:
    with pytest.raises(DataError, match="cannot sample 3 different frames from a video of 2"):
        sample_segments(2, 3, generator=generator())


@given(st.integers(1, 20), st.integers(1, 9), st.integers(0, 40), seeds)
def test_strided_frames_are_evenly_apart(count: int, stride: int, extra: int, seed: int) -> None:
    length = (count - 1) * stride + 1 + extra
    indices = sample_strided(length, count, stride=stride, generator=generator(seed))
    assert set(indices.diff().tolist()) <= {stride}
    assert int(indices[0]) >= 0 and int(indices[-1]) < length


def test_every_start_of_a_stride_is_drawn() -> None:
    chance = generator()
    assert {int(sample_strided(9, 3, stride=3, generator=chance)[0]) for _ in range(60)} == {0, 1, 2}


def test_a_video_too_short_for_its_strides_is_an_error_or_ends_in_its_last_frame() -> None:
    with pytest.raises(
        DataError, match=r"cannot sample 4 frames with stride 5 \(16 frames\) from a video of 12"
    ):
        sample_strided(12, 4, stride=5, generator=generator())
    assert sample_strided(12, 4, stride=5, generator=generator(), allow_short=True).tolist() == [0, 5, 10, 11]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=8), st.integers(1, 4), st.integers(1, 20))
def test_context_looks_back_and_ends_with_the_frame_itself(
    indices: list[int], frames: int, stride: int
) -> None:
    context = context_indices(torch.tensor(indices), context_frames=frames, context_stride=stride)
    expected = [[max(0, i - stride * (frames - 1 - c)) for c in range(frames)] for i in indices]
    assert context.tolist() == expected


def test_context_of_a_batch_keeps_videos_apart() -> None:
    context = context_indices(torch.tensor([[20, 30, 2], [40, 50, 60]]), context_frames=2, context_stride=15)
    assert context.tolist() == [[[5, 20], [15, 30], [0, 2]], [[25, 40], [35, 50], [45, 60]]]


@given(st.integers(1, 40), st.integers(1, 8), seeds, st.data())
def test_a_positive_is_another_frame_nearby(length: int, window: int, seed: int, data: st.DataObject) -> None:
    frames = st.lists(st.integers(0, length - 1), min_size=1, max_size=10)
    indices = torch.tensor(data.draw(frames))
    near = sample_positives(indices, window=window, num_frames=length, generator=generator(seed))
    for index, positive in zip(indices.tolist(), near.tolist(), strict=True):
        assert 0 <= positive < length and abs(positive - index) <= window
        assert positive != index or length == 1


def test_all_positives_are_equally_likely_also_at_the_edge() -> None:
    near = sample_positives(torch.full((6000,), 1), window=3, num_frames=100, generator=generator())
    counts = Counter(near.tolist())
    assert sorted(counts) == [0, 2, 3, 4]
    assert all(1350 < count < 1650 for count in counts.values())  # 1500 expected, standard deviation 34


def test_positives_of_a_batch_know_each_length() -> None:
    indices = torch.tensor([[0, 1], [0, 9]])
    near = sample_positives(indices, window=50, num_frames=torch.tensor([[2], [10]]), generator=generator())
    assert near[0].tolist() == [1, 0] and int(near.max()) < 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_random(5, 0, generator=generator()), "count must be at least 1, got 0"),
        (lambda: sample_strided(5, 2, stride=0, generator=generator()), "stride must be at least 1, got 0"),
        (
            lambda: context_indices(torch.tensor([1]), context_frames=0, context_stride=1),
            "context_frames .* got 0",
        ),
        (
            lambda: sample_positives(torch.tensor([1]), window=0, num_frames=4, generator=generator()),
            "window .* got 0",
        ),
    ],
)
def test_counts_below_one_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


sizes = st.dictionaries(st.sampled_from("abcde"), st.integers(2, 13), min_size=1)


def actions_of(sizes: dict[str, int]) -> list[str]:
    return [action for action, count in sizes.items() for _ in range(count)]


@given(sizes, st.integers(2, 6), st.integers(0, 99))
def test_batches_are_different_videos_of_one_action_and_every_video_is_seen(
    sizes: dict[str, int], batch_size: int, seed: int
) -> None:
    actions = actions_of(sizes)
    order = order_batches(actions, batch_size=batch_size, seed=seed, epoch=3)
    for batch in order:
        (action,) = {actions[video] for video in batch}
        assert len(set(batch)) == len(batch) == min(batch_size, sizes[action])
    assert {video for batch in order for video in batch} == set(range(len(actions)))


@given(sizes, st.integers(2, 6), st.integers(0, 99))
def test_actions_come_equally_often(sizes: dict[str, int], batch_size: int, seed: int) -> None:
    actions = actions_of(sizes)
    order = order_batches(actions, batch_size=batch_size, seed=seed, epoch=1)
    counts = Counter(actions[batch[0]] for batch in order)
    assert set(counts.values()) == {max(-(-count // min(batch_size, count)) for count in sizes.values())}


def test_no_video_comes_twice_before_all_have_come() -> None:
    order = order_batches(["pour"] * 12, batch_size=4, seed=0, epoch=0)
    assert sorted(video for batch in order for video in batch) == list(range(12))


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    settings = {"batch_size": 3}
    orders = [
        order_batches(["a"] * 30, seed=seed, epoch=epoch, **settings) for seed in (0, 1) for epoch in (0, 1)
    ]
    assert len({str(order) for order in orders}) == 4
    assert order_batches(["a"] * 30, seed=0, epoch=1, **settings) == orders[1]


def test_a_left_over_video_is_joined_by_others() -> None:
    companions = Counter()
    for epoch in range(300):
        last = order_batches(["a"] * 5, batch_size=4, seed=0, epoch=epoch)[-1]
        assert len(set(last)) == 4
        companions.update(last)
    assert all(200 < count < 280 for count in companions.values())  # 240 expected of each


def test_an_action_of_one_video_is_an_error() -> None:
    with pytest.raises(DataError, match="action 'lift' has 1 video to train on, at least 2 are needed"):
        order_batches(["pour", "lift", "pour"], batch_size=2, seed=0, epoch=0)
    with pytest.raises(DataError, match="the data set has 1 video"):
        order_batches([""], batch_size=2, seed=0, epoch=0)
    with pytest.raises(DataError, match="no videos to train on"):
        order_batches([], batch_size=2, seed=0, epoch=0)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size must be at least 2 .* got 1"):
        order_batches(["a", "a"], batch_size=1, seed=0, epoch=0)
