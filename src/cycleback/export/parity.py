"""Compare an exported model with torch on real clips; an export that differs is not kept.

Shapes: N frames of a video, n frames of a batch, H W pixels, S size of an image, F feature channels, h w
feature map, D embedding size.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cycleback.data import Dataset, FrameCache, VideoRecord, load_sequence
from cycleback.embeddings.features import FusedFeatures
from cycleback.embeddings.poses import choose_views, cut_square
from cycleback.errors import CheckpointError
from cycleback.exported import ExportedModel, embed_exported
from cycleback.exported.model import BASE_FILE, EMBEDDER_FILE, POSE_FILE
from cycleback.exported.networks import ExportedJoints, Network, to_pixels
from cycleback.models import Base, Encoder, FusedBase, VectorBase
from cycleback.models.movenet import MoveNet
from cycleback.runs import embed_videos

BATCHES = (2, 5)  # frames of the two batches of a network of frames
VIDEOS = (1, 2)  # videos of the two batches of an embedder
LENGTHS = (11, 40)  # frames of its two lengths, where the clips have as many
MAX_OF_NETWORK = 1e-4  # difference, as a share of the root mean square of torch's output
MAX_OF_JOINTS = 1e-3  # of the side of the image
MAX_OF_VIDEOS = 1e-2  # root mean square; features are rounded to 16 bits in between, here and there

Floats = NDArray[np.float32]


def measure_parity(
    model: ExportedModel, encoder: Encoder, records: Sequence[VideoRecord], *, cache: Path | None = None
) -> dict[str, float]:
    """Return how far an exported model is from torch, by what was compared; refuse one that is too far.

    Each network is compared at two sizes of a batch, the embedder at two lengths, too, and at last the
    embeddings of the whole `records`.
    """
    frames = FrameCache(cache, size=model.frame_size, fit=model.fit)
    differences = dict(_compare_networks(model, encoder, records, frames))
    clips = Dataset(Path(), tuple(records))
    ours = embed_exported(model, clips, cache=cache, leave_out=False)
    theirs = embed_videos(encoder, clips, device="cpu", precision="float32", cache=cache, leave_out=False)
    pairs = [(ours[name], theirs[name]) for name in theirs.names]
    differences[f"embeddings of {len(pairs)} whole videos"] = max(_mean_difference(*pair) for pair in pairs)
    for what, difference in differences.items():
        limit = MAX_OF_VIDEOS if "whole" in what else MAX_OF_JOINTS if "joints" in what else MAX_OF_NETWORK
        if not difference <= limit:
            raise CheckpointError(
                f"the exported model is not the run: {what} differ by {difference:.1e}, allowed {limit:.0e}; "
                "nothing was written. Try other versions of torch and onnxruntime."
            )
    return differences


def _compare_networks(
    model: ExportedModel, encoder: Encoder, records: Sequence[VideoRecord], frames: FrameCache
) -> Iterator[tuple[str, float]]:
    """Yield what was compared, and the difference."""
    network = encoder.base.appearance if isinstance(encoder.base, FusedBase) else encoder.base
    if BASE_FILE in model.files:
        assert network is not None
        exported, samples = Network(model, BASE_FILE), _sample_frames(network, records, frames, max(BATCHES))
        for count in BATCHES:
            want = _run_base(network, samples[:count])
            given = samples if isinstance(network, VectorBase) else to_pixels(samples)
            yield f"base, {count} frames", _difference(exported.run(given[:count], want.shape), want)
    if POSE_FILE in model.files:
        yield from _compare_joints(model, records[0], frames)
    exported = Network(model, EMBEDDER_FILE)
    maps = _sample_maps(encoder, records, frames)
    for count, wanted in zip(VIDEOS, LENGTHS, strict=True):
        length = min(wanted, *map(len, maps))
        chosen = [(maps * count)[number][:length] for number in range(count)]
        want = np.stack([_run_embedder(encoder, each) for each in chosen])
        difference = _difference(exported.run(np.stack(chosen), want.shape), want)
        yield f"embedder, {count} x {length} frames", difference


def _difference(ours: Floats, theirs: Floats) -> float:
    """Return the largest difference as a share of the root mean square of `theirs`."""
    size = float(np.sqrt(np.mean(theirs.astype(np.float64) ** 2)))
    return float(np.abs(ours - theirs).max() / max(size, 1e-12))


def _mean_difference(ours: Floats, theirs: Floats) -> float:
    """Return the root mean square of the differences, as a share of that of `theirs`.

    Two cells of a map may be equally likely for a joint, so that rounding chooses: one joint in hundreds of
    frames is elsewhere then, which the largest difference would show, and nothing else.
    """
    return float(np.sqrt(np.mean((ours - theirs) ** 2) / max(float(np.mean(theirs**2)), 1e-24)))


def _sample_frames(
    network: Base, records: Sequence[VideoRecord], frames: FrameCache, count: int
) -> NDArray[Any]:
    """Return evenly spread frames of the first video: images (n, H, W, 3) or vectors (n, V)."""
    if isinstance(network, VectorBase):
        video = torch.from_numpy(load_sequence(records[0], width=network.in_features).features)
        source: NDArray[Any] = network.prepare(video).numpy()
    else:
        source = frames.load(records[0]).frames
    return np.array(source[np.linspace(0, len(source) - 1, count).round().astype(int)])


@torch.inference_mode()
def _run_base(network: Base, frames: NDArray[Any]) -> Floats:
    tensor = torch.from_numpy(frames)
    output: Floats = network(network.to_float(tensor if tensor.ndim == 2 else tensor.movedim(-1, 1))).numpy()
    return output


def _run_embedder(encoder: Encoder, maps: Floats) -> Floats:
    """Embed a video by its maps (N, F, h, w) with torch: (N, D)."""
    return torch.cat(list(encoder.embed_stream([torch.from_numpy(maps)]))).numpy()


def _compare_joints(
    model: ExportedModel, record: VideoRecord, frames: FrameCache
) -> Iterator[tuple[str, float]]:
    """Compare the joints in whole frames of a video, in sides of the image."""
    source = frames.load(record).frames
    view, size = choose_views(*source.shape[1:3])[0], ExportedJoints.image_size
    numbers = np.linspace(0, len(source) - 1, max(BATCHES)).round().astype(int)
    images = np.stack([cut_square(source[number], view, size=size) for number in numbers])
    ours, theirs = ExportedJoints(model), MoveNet("lightning")
    for count in BATCHES:
        found = np.abs(ours.find(images[:count]) - theirs.find(images[:count]))
        yield f"joints, {count} frames", float(found.max())


def _sample_maps(encoder: Encoder, records: Sequence[VideoRecord], frames: FrameCache) -> list[Floats]:
    """Return features (N, F, h, w) of the start of two videos, from torch."""
    base, count, maps = encoder.base, max(LENGTHS), list[Floats]()
    for record in records[: max(VIDEOS)]:
        if isinstance(base, FusedBase):
            maps.append(np.array(FusedFeatures(frames, base).load(record)[:count]))
        elif isinstance(base, VectorBase):
            video = torch.from_numpy(load_sequence(record, width=base.in_features).features)
            maps.append(_run_base(base, base.prepare(video).numpy()[:count]))
        else:
            maps.append(_run_base(base, np.array(frames.load(record).frames[:count])))
    return maps
