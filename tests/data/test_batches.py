from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycleback.data import batch_order
from cycleback.errors import DataError

sizes = st.dictionaries(st.sampled_from("abcde"), st.integers(2, 13), min_size=1)


def actions_of(sizes: dict[str, int]) -> list[str]:
    return [action for action, count in sizes.items() for _ in range(count)]


def all_ranks(actions: list[str], world_size: int, **settings: int) -> list[list[list[int]]]:
    return [batch_order(actions, rank=rank, world_size=world_size, **settings) for rank in range(world_size)]


@given(sizes, st.integers(2, 6), st.integers(0, 99), st.integers(1, 5))
def test_batches_are_different_videos_of_one_action(
    sizes: dict[str, int], batch_size: int, seed: int, world_size: int
) -> None:
    actions = actions_of(sizes)
    for batches in all_ranks(actions, world_size, batch_size=batch_size, seed=seed, epoch=3):
        for batch in batches:
            (action,) = {actions[video] for video in batch}
            assert len(set(batch)) == len(batch) == min(batch_size, sizes[action])


@given(sizes, st.integers(2, 6), st.integers(0, 99), st.integers(1, 5))
def test_every_video_is_seen_and_ranks_get_equally_many_batches(
    sizes: dict[str, int], batch_size: int, seed: int, world_size: int
) -> None:
    actions = actions_of(sizes)
    ranks = all_ranks(actions, world_size, batch_size=batch_size, seed=seed, epoch=0)
    assert {len(batches) for batches in ranks} == {len(ranks[0])}
    assert {video for batches in ranks for batch in batches for video in batch} == set(range(len(actions)))


@given(sizes, st.integers(2, 6), st.integers(0, 99))
def test_actions_come_equally_often(sizes: dict[str, int], batch_size: int, seed: int) -> None:
    actions = actions_of(sizes)
    order = batch_order(actions, batch_size=batch_size, seed=seed, epoch=1)
    counts = Counter(actions[batch[0]] for batch in order)
    assert set(counts.values()) == {max(-(-count // min(batch_size, count)) for count in sizes.values())}


@given(sizes, st.integers(2, 6), st.integers(1, 5))
def test_ranks_share_out_the_batches_of_one_process(
    sizes: dict[str, int], batch_size: int, world: int
) -> None:
    actions = actions_of(sizes)
    alone = batch_order(actions, batch_size=batch_size, seed=4, epoch=2)
    ranks = all_ranks(actions, world, batch_size=batch_size, seed=4, epoch=2)
    dealt = [ranks[turn % world][turn // world] for turn in range(world * len(ranks[0]))]
    assert dealt[: len(alone)] == alone and len(dealt) - len(alone) < world


def test_ranks_are_disjoint_where_the_numbers_divide() -> None:
    ranks = all_ranks(["pour"] * 16, 2, batch_size=4, seed=0, epoch=0)
    seen = [{video for batch in batches for video in batch} for batches in ranks]
    assert len(seen[0]) == len(seen[1]) == 8 and not seen[0] & seen[1]


def test_no_video_comes_twice_before_all_have_come() -> None:
    order = batch_order(["pour"] * 12, batch_size=4, seed=0, epoch=0)
    assert sorted(video for batch in order for video in batch) == list(range(12))


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    settings = {"batch_size": 3, "world_size": 2, "rank": 1}
    orders = [
        batch_order(["a"] * 30, seed=seed, epoch=epoch, **settings) for seed in (0, 1) for epoch in (0, 1)
    ]
    assert len({str(order) for order in orders}) == 4
    assert batch_order(["a"] * 30, seed=0, epoch=1, **settings) == orders[1]


def test_a_left_over_video_is_joined_by_others() -> None:
    companions = Counter()
    for epoch in range(300):
        last = batch_order(["a"] * 5, batch_size=4, seed=0, epoch=epoch)[-1]
        assert len(set(last)) == 4
        companions.update(last)
    assert all(200 < count < 280 for count in companions.values())  # 240 expected of each


def test_an_action_of_one_video_is_an_error() -> None:
    with pytest.raises(DataError, match="action 'lift' has 1 video to train on, at least 2 are needed"):
        batch_order(["pour", "lift", "pour"], batch_size=2, seed=0, epoch=0)
    with pytest.raises(DataError, match="the data set has 1 video"):
        batch_order([""], batch_size=2, seed=0, epoch=0)
    with pytest.raises(DataError, match="no videos to make batches of"):
        batch_order([], batch_size=2, seed=0, epoch=0)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size must be at least 2 .* got 1"):
        batch_order(["a", "a"], batch_size=1, seed=0, epoch=0)
    with pytest.raises(ValueError, match=r"rank must be in 0\.\.1, got 2"):
        batch_order(["a", "a"], batch_size=2, seed=0, epoch=0, rank=2, world_size=2)
