"""The published model loads with the same weights, names and embeddings in every version."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models import Encoder, build_embedder, fingerprint, load_weights, rebuild_base

FOLDER = Path(__file__).resolve().parents[2] / "models" / "golf-lite"
FINGERPRINT = "803ae0837951678d"
EMBEDDINGS = {  # frame -> the first four numbers
    0: [0.3212099, -0.4494804, -0.5104666, 0.7342569],
    23: [0.3169105, -0.4609766, -0.4676989, 0.7568229],
}


def synthetic_clip() -> Tensor:
    """Moving waves (24, 3, 160, 160) in [0, 1]."""
    ramp = torch.linspace(0, 1, 112)
    row, column = ramp[:, None], ramp[None]
    frames = [
        torch.stack([0.5 + 0.5 * torch.sin(6 * row * channel + column * 5 + t / 4) for channel in (1, 2, 3)])
        for t in range(24)
    ]
    return F.interpolate(torch.stack(frames), (160, 160))


def test_golf_lite_embeds_as_it_did_when_published() -> None:
    base = rebuild_base("efficientnet_lite0", FOLDER, block=10)
    embedder = build_embedder(
        "conv",
        base.channels,
        reduce_channels=32,
        conv_channels=[64, 64],
        fc_channels=[128],
        embedding_size=32,
        context_frames=2,
        context_stride=8,
        dropout=0.1,
    )
    encoder = Encoder(base, embedder, frame_size=(160, 160)).eval()
    load_weights(FOLDER, encoder)
    assert fingerprint(encoder) == FINGERPRINT
    with torch.no_grad():
        embeddings = torch.cat(list(encoder.embed_stream([encoder.features(synthetic_clip())])))
    for frame, expected in EMBEDDINGS.items():
        torch.testing.assert_close(embeddings[frame, :4], torch.tensor(expected), atol=1e-4, rtol=0)
