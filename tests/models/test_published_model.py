"""The published model loads with the same weights, names and embeddings in every version."""

from pathlib import Path

import numpy as np
import torch

from cycleback import load_encoder
from cycleback.models import fingerprint

FOLDER = Path(__file__).resolve().parents[2] / "models" / "golf-lite"
FINGERPRINT = "d3e42cc63a5a1aa8"
EMBEDDINGS = {  # frame -> the first four numbers
    0: [0.14267, -0.00065, -0.13939, -0.25433],
    23: [0.05662, 0.00424, -0.10462, 0.11634],
}
TIMES = np.arange(24) / 30


def wave(*shape: int) -> np.ndarray:
    """Waves (24, *shape) in [0, 1] that move in time."""
    phases = np.arange(np.prod(shape)).reshape(shape)
    clock = TIMES.reshape(-1, *[1] * len(shape))
    return (0.5 + 0.5 * np.sin(9 * clock + 0.7 * phases)).astype(np.float32)


def test_golf_lite_embeds_as_it_did_when_published() -> None:
    encoder = load_encoder(FOLDER)
    assert fingerprint(encoder) == FINGERPRINT
    poses = np.concatenate([wave(17, 2), np.full((24, 17, 1), 0.9, dtype=np.float32)], axis=2)
    raw = {"appearance": wave(encoder.base.sizes["appearance"], 2, 2), "motion": wave(4, 8, 8), "pose": poses}
    features = torch.from_numpy(encoder.base.fuse(raw, TIMES))[:, :, None, None]
    with torch.no_grad():
        embeddings = torch.cat(list(encoder.embed_stream([features])))
    for frame, expected in EMBEDDINGS.items():
        torch.testing.assert_close(embeddings[frame, :4], torch.tensor(expected), atol=1e-3, rtol=0)
