from typing import Any

import pytest
import torch

from cycleback.models import ConvEmbedder
from cycleback.models.fast_embedder import FastEmbedder, can_be_fast


def embedder(**options: Any) -> ConvEmbedder:
    """One whose BatchNorm statistics are not the first ones."""
    torch.manual_seed(0)
    defaults = {"conv_channels": (8, 6), "fc_channels": (7,), "embedding_size": 4, "context_stride": 3}
    made = ConvEmbedder(5, **{**defaults, **options})
    made.train()(torch.rand(2, 6, made.context_frames, 5, 4, 4))
    return made.eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"context_frames": 1},
        {"context_frames": 3},
        {"reduce_channels": 3},
        {"pooling": "avg"},
        {"batch_norm": False},
        {"normalize": True},
        {"conv_channels": (8,)},
    ],
)
def test_the_fast_copy_embeds_a_video_like_the_embedder(options: dict[str, Any]) -> None:
    source = embedder(**options)
    video = torch.rand(17, 5, 4, 4).split([9, 2, 6])
    fast = FastEmbedder(source, dtype=torch.float32)
    expected, found = (torch.cat(list(e.embed_stream(video))) for e in (source, fast))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pieces", [[1] * 17, [2, 3, 12], [17]])
def test_how_the_video_is_cut_does_not_matter(pieces: list[int]) -> None:
    source = embedder(context_frames=3)  # sees six frames back
    video = torch.rand(17, 5, 4, 4)
    fast = FastEmbedder(source, dtype=torch.float32)
    found = torch.cat(list(fast.embed_stream(video.split(pieces))))
    torch.testing.assert_close(found, torch.cat(list(source.embed_stream([video]))), rtol=1e-4, atol=1e-5)


def test_the_fast_copy_embeds_clips_like_the_embedder() -> None:
    source, clips = embedder(), torch.rand(2, 3, 2, 5, 4, 4)
    found = FastEmbedder(source, dtype=torch.float32)(clips)
    torch.testing.assert_close(found, source(clips).detach(), rtol=1e-4, atol=1e-5)


def test_in_bfloat16_it_stays_near_the_embedder() -> None:
    source, video = embedder(), [torch.rand(12, 5, 4, 4)]
    expected, found = (
        torch.cat(list(e.embed_stream(video))) for e in (source, FastEmbedder(source, dtype=torch.bfloat16))
    )
    assert found.dtype == torch.float32
    assert (found - expected).norm() < 0.05 * expected.norm()


def test_what_it_cannot_do_is_known() -> None:
    assert can_be_fast(embedder())
    assert not can_be_fast(embedder(context_frames=4))
    assert not can_be_fast(embedder(pooling="flatten", grid=(4, 4)))
