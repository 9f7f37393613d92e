import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cycleback.models.transformer_embedder import TransformerEmbedder

KINDS = list(itertools.product(("full", "causal"), ("none", "relative", "shifted")))


def make(attention: str, positions: str, **options) -> TransformerEmbedder:
    torch.manual_seed(0)
    sizes = {"token_size": 16, "heads": 2, "fc_channels": (12,), "embedding_size": 5, "context_stride": 2}
    embedder = TransformerEmbedder(6, attention=attention, positions=positions, **{**sizes, **options}).eval()
    if embedder.bias is not None:
        torch.nn.init.normal_(embedder.bias.weight)
    return embedder


def video(frames: int = 23) -> torch.Tensor:
    return torch.randn(frames, 6, 2, 2, generator=torch.Generator().manual_seed(1))


def embed(embedder: TransformerEmbedder, features: torch.Tensor, *lengths: int) -> torch.Tensor:
    return torch.cat(list(embedder.embed_stream(features.split(lengths or len(features)))))


@pytest.mark.parametrize(("attention", "positions"), KINDS)
def test_chunks_change_nothing(attention, positions):
    embedder = make(attention, positions)
    whole = embed(embedder, video())
    torch.testing.assert_close(embed(embedder, video(), 5, 1, 9, 8), whole, rtol=1e-4, atol=1e-5)
    chunks = list(embedder.embed_stream(video().split([5, 1, 9, 8])))
    assert [len(chunk) for chunk in chunks] == [5, 1, 9, 8]


@pytest.mark.parametrize(("attention", "positions"), KINDS)
def test_clips_of_all_frames_are_the_whole_video(attention, positions):
    embedder = make(attention, positions, context_frames=1)
    features = video()
    clips = features[None, :, None]
    torch.testing.assert_close(embedder(clips)[0], embed(embedder, features), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", ["none", "relative", "shifted"])
def test_causal_attention_never_sees_later_frames(positions):
    features = video()
    changed = features.clone()
    changed[15:] += 1
    causal, full = make("causal", positions), make("full", positions)
    torch.testing.assert_close(embed(causal, changed)[:15], embed(causal, features)[:15])
    assert not torch.allclose(embed(full, changed)[:15], embed(full, features)[:15], atol=1e-3)


def test_only_full_attention_without_positions_cannot_count():
    can_count = {kind: make(*kind).can_count_frames for kind in KINDS}
    assert [kind for kind, can in can_count.items() if not can] == [("full", "none")]
    still = torch.ones(1, 9, 1, 6, 1, 1)  # the same frame again and again: only the clock can tell them apart
    for kind in KINDS:
        found = make(*kind, context_frames=1)(still)[0]
        differs = (found - found[0]).abs().max() > 1e-4
        assert not differs or can_count[kind]
    assert (make("full", "shifted", context_frames=1)(still)[0].std(dim=0) > 1e-4).any()


def test_shuffled_frames_have_shuffled_embeddings_without_positions():
    embedder = make("full", "none", context_frames=1)
    features, order = video(), torch.randperm(23, generator=torch.Generator().manual_seed(2))
    expected = embed(embedder, features)[order]
    torch.testing.assert_close(embed(embedder, features[order]), expected, rtol=1e-4, atol=1e-5)


def test_relative_positions_depend_on_distances_and_never_on_the_length_of_the_clip():
    embedder = make("full", "relative", context_frames=1)
    clips, frames = video(6)[None, :, None], torch.tensor([[3, 8, 20, 21, 40, 90]])
    here = embedder(clips, frames)
    torch.testing.assert_close(embedder(clips, frames + 500), here)
    assert not torch.allclose(embedder(clips, 2 * frames), here, atol=1e-3)


def test_positions_are_shifted_at_random_in_training_alone():
    embedder = make("full", "shifted", context_frames=1, dropout=0.0)
    clips = video(6)[None, :, None]
    torch.testing.assert_close(embedder(clips), embedder(clips))
    embedder.train()
    assert not torch.allclose(embedder(clips), embedder(clips), atol=1e-3)


def test_a_video_is_not_changed_by_others():
    embedder = make("full", "relative")
    clips = torch.randn(2, 7, 3, 6, 1, 1, generator=torch.Generator().manual_seed(3))
    changed = clips.clone()
    changed[1] += 1
    torch.testing.assert_close(embedder(changed)[0], embedder(clips)[0])


class LargestTensor(TorchDispatchMode):
    """Keeps the number of entries of the largest tensor that any operation returns."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, (tuple, list)) else [found]:
            if isinstance(tensor, torch.Tensor):
                self.entries = max(self.entries, tensor.numel())
        return found


@pytest.mark.parametrize("positions", ["none", "shifted"])
def test_memory_does_not_grow_with_the_square_of_the_video(positions):
    embedder = make("full", positions)
    with LargestTensor() as largest:
        embed(embedder, video(2000))
    assert 2000 * 16 <= largest.entries < 2000 * 100


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match=r"positions must be one of .*, got 'stretched'"):
        make("full", "stretched")
    with pytest.raises(ValueError, match=r"token_size must .* twice the heads, got 10 for 4"):
        make("full", "none", token_size=10, heads=4)
