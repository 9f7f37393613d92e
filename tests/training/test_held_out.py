from pathlib import Path

import pytest
import torch

from cycleback.alignment import cycle_consistency_rate
from cycleback.data import VideoRecord
from cycleback.errors import TrainingError
from cycleback.models import Encoder, build_base, build_embedder
from cycleback.training.held_out import (
    MOST_VIDEOS,
    embed_video,
    held_out_cycle_rate,
    held_out_records,
)


def records(*actions: str) -> list[VideoRecord]:
    return [VideoRecord(name=str(i), path=Path(str(i)), action=a) for i, a in enumerate(actions)]


@pytest.fixture
def encoder() -> Encoder:
    torch.manual_seed(0)
    base = build_base("small")
    return Encoder(base, build_embedder("conv", in_channels=base.channels, conv_channels=(4,))).eval()


def test_frames_and_their_maps_are_embedded_alike(encoder: Encoder) -> None:
    frames = torch.randint(0, 256, (70, 24, 24, 3), dtype=torch.uint8)
    with torch.no_grad():
        maps = encoder.features(frames.movedim(-1, 1))
    torch.testing.assert_close(
        torch.from_numpy(embed_video(encoder, frames)), torch.from_numpy(embed_video(encoder, maps))
    )


def test_the_rate_is_the_mean_over_actions(encoder: Encoder) -> None:
    videos = [torch.rand(n, encoder.base.channels, 2, 2) for n in (8, 9, 7, 6, 10)]
    embeddings = [embed_video(encoder, video) for video in videos]
    bowl = cycle_consistency_rate([embeddings[1], embeddings[3]])
    pour = cycle_consistency_rate([embeddings[i] for i in (0, 2, 4)])
    rate = held_out_cycle_rate(encoder, videos, ["pour", "bowl", "pour", "bowl", "pour"])
    assert rate == pytest.approx((bowl + pour) / 2)


def test_actions_with_one_video_are_left_out_and_large_ones_cut() -> None:
    chosen = held_out_records(records("a", *["b"] * 40, "c", "c"))
    assert [record.action for record in chosen] == ["b"] * MOST_VIDEOS + ["c", "c"]


def test_no_action_with_two_videos_is_an_error() -> None:
    with pytest.raises(TrainingError, match="at least 2 held-out videos of one action, got 1"):
        held_out_records(records("a", "b"))
