from dataclasses import replace

import torch

from cycleback.data.sampling import sample_random
from cycleback.training import BatchMaker, mix_seed


def numbered_videos(lengths: list[int]) -> list[torch.Tensor]:
    """Videos whose every value is 1000 * video + frame."""
    return [1000 * v + torch.arange(n, dtype=torch.float32)[:, None] for v, n in enumerate(lengths)]


def maker(lengths: list[int], *, window: int | None = None, seed: int = 0) -> BatchMaker:
    return BatchMaker(
        numbered_videos(lengths),
        ["pour"] * len(lengths),
        sample=lambda n, generator: sample_random(n, 6, generator=generator),
        batch_size=2,
        context_frames=2,
        context_stride=3,
        positive_window=window,
        seed=seed,
    )


def test_frames_times_and_videos_stay_together() -> None:
    lengths = [40, 25, 60, 33]
    batch = maker(lengths)(3)
    for row, video in enumerate(batch.videos):
        current = batch.inputs[row, :, -1, 0] - 1000 * video
        assert torch.allclose(batch.times[row], current / lengths[video])


def test_context_is_oldest_first_and_clamped_at_the_start() -> None:
    batch = maker([40, 25, 60, 33])(0)
    frames = batch.inputs[..., 0] % 1000
    assert torch.equal(frames[..., 0], (frames[..., 1] - 3).clamp_min(0))


def test_the_context_stride_is_drawn_for_each_clip_from_its_range() -> None:
    make = replace(maker([90] * 4), context_stride=8, context_scale=(0.25, 1.0))
    gaps = set()
    for number in range(40):
        frames = make(number).inputs[..., 0] % 1000
        late = (frames[..., 1] - frames[..., 0])[:, -1]  # the last frame's context is not clamped
        gaps |= {int(gap) for gap in late if gap > 0}
    assert gaps == set(range(2, 9))


def test_a_drawn_context_stride_leaves_the_frames_as_they_were() -> None:
    plain, scaled = maker([40] * 4)(5), replace(maker([40] * 4), context_scale=(0.3, 1.0))(5)
    assert torch.equal(plain.inputs[:, :, -1], scaled.inputs[:, :, -1])


def test_positives_follow_the_anchors_within_the_window() -> None:
    batch = maker([40, 25, 60, 33], window=4)(0)
    anchors, near = (batch.inputs[:, :, -1, 0] % 1000).chunk(2, dim=1)
    gap = (anchors - near).abs()
    assert batch.has_positives
    assert gap.min() >= 1
    assert gap.max() <= 4


def test_a_step_is_a_function_of_the_seed_and_the_step() -> None:
    first, again, other = maker([40] * 4)(7), maker([40] * 4)(7), maker([40] * 4, seed=1)(7)
    assert torch.equal(first.inputs, again.inputs)
    assert first.videos == again.videos
    assert not torch.equal(first.inputs, other.inputs)


def test_an_epoch_sees_every_video() -> None:
    make = maker([40] * 7)
    seen = {video for step in range(make.batches_per_epoch) for video in make(step).videos}
    assert seen == set(range(7))


def test_mixed_seeds_of_near_by_steps_differ() -> None:
    seeds = {mix_seed(seed, step, slot) for seed in range(5) for step in range(50) for slot in range(4)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_phases_are_those_of_the_sampled_frames() -> None:
    lengths = [40, 25, 60, 33]
    make = replace(
        maker(lengths, window=4), phases=[torch.arange(n) + 1000 * v for v, n in enumerate(lengths)]
    )
    batch = make(2)
    assert batch.phases.dtype == torch.int64
    assert torch.equal(batch.phases, batch.inputs[:, :6, -1, 0].long())


def test_without_labels_there_are_no_phases() -> None:
    assert maker([40] * 4)(0).phases is None


def test_processes_share_the_batch_of_one() -> None:
    make = replace(maker([40] * 7, window=4), batch_size=3)
    whole = make(5)
    for rank, rows in enumerate([(0, 2), (1, 0)]):
        part = replace(make, rank=rank, world_size=2)(5)
        assert (part.rows, part.videos) == (rows, whole.videos)
        assert torch.equal(part.inputs, whole.inputs[list(rows)])
        assert torch.equal(part.times, whole.times)


def test_other_streams_are_those_of_the_same_frames_and_context() -> None:
    plain = maker([40, 25, 60, 33], window=4)
    make = replace(plain, sides=[2 * video for video in plain.videos], context_scale=(0.3, 1.0))
    for number in range(3):
        batch = make(number)
        assert batch.side is not None and torch.equal(batch.side, 2 * batch.inputs)
    share = replace(make, rank=1, world_size=2)(0)
    assert share.side is not None and torch.equal(share.side, 2 * share.inputs)
    assert plain(0).side is None


def test_a_second_view_has_its_own_frames_sides_and_strides() -> None:
    plain = replace(maker([40] * 4), second_view=True, context_scale=(0.3, 1.0))
    make = replace(plain, mirrored=[-video for video in plain.videos])
    differing = {"frames": 0, "sides": 0, "strides": 0}
    for number in range(20):
        batch = make(number)
        assert batch.has_views and batch.has_positives
        first, second = batch.inputs[..., 0].chunk(2, dim=1)  # (B, T, C)
        assert torch.equal(first[:, :, -1].abs() % 1000, batch.frames.float())
        assert torch.equal(second[:, :, -1].abs() % 1000, batch.positive_frames.float())
        differing["frames"] += not torch.equal(batch.frames, batch.positive_frames)
        signs = [(half[:, 3:] < 0).all(dim=(1, 2)) for half in (first, second)]
        differing["sides"] += not torch.equal(*signs)
        strides = [(half[:, -1, 1].abs() - half[:, -1, 0].abs()) for half in (first, second)]
        differing["strides"] += not torch.equal(*strides)
    assert min(differing.values()) > 5


def test_positives_near_by_may_be_of_a_second_view() -> None:
    make = replace(maker([40] * 4, window=2), second_view=True)
    gap = (make(0).frames - make(0).positive_frames).abs()
    assert 1 <= gap.min() <= gap.max() <= 2


def test_the_frames_ahead_end_with_the_video() -> None:
    batch = replace(maker([40, 25, 60, 33]), ahead=9)(1)
    last = torch.tensor([[40, 25, 60, 33][v] - 1 for v in batch.videos])[:, None]
    assert torch.equal(batch.positive_frames, torch.minimum(batch.frames + 9, last))
    shown = batch.inputs[:, 6:, -1, 0] % 1000
    assert torch.equal(shown.long(), batch.positive_frames)
