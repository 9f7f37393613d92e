"""Measure the embedding of whole videos: frames per second, memory by length, and time from files.

Shapes: N frames of a video, n of a chunk, H W pixels, F feature channels, h w feature map, D embedding size.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from cycleback.data import FrameCache, read_dataset
from cycleback.embeddings.batches import GPU_CHUNK_FRAMES
from cycleback.embeddings.embed import embed_records
from cycleback.models import FastEncoder
from cycleback.recipe import Recipe, build_encoder
from speed_clock import CPU, Found, Setting, forget, milliseconds, peak_gb, seconds
from speed_peers import embed_with_context, global_arithmetic

VIDEOS_FROM_FILES = 150


@torch.inference_mode()
def embedding(recipe: Recipe, *, device: torch.device, frames: int = 2048) -> dict[str, float]:
    """Frames per second of whole videos: the peers' method; base alone, embedder alone, both."""
    size, few = recipe.data.frame_size, max(1, frames // 8)
    pixels = torch.randint(0, 256, (frames, size, size, 3), dtype=torch.uint8, device=device)
    video = pixels.movedim(-1, 1)  # as the frame cache has it
    torch.manual_seed(0)
    encoder = build_encoder(recipe).to(device).eval()
    rate_of = partial(frames_per_second, device=device, frames=frames)
    found = {}
    with global_arithmetic(tf32=False, conv3d=True):
        plain = partial(embed_with_context, encoder, video[:few])
        found["peers_fp32"] = frames_per_second(plain, device=device, frames=few)
    once = partial(embed_once, encoder.features, encoder.embed_stream, video)
    with global_arithmetic(tf32=True, conv3d=False):
        found["once_a_frame_tf32"] = rate_of(once)
        with torch.autocast(device.type, torch.bfloat16):
            found["once_a_frame_bf16"] = rate_of(once)
        fast = FastEncoder(encoder, precision="bfloat16")
        found["base"] = rate_of(lambda: [fast.features(piece) for piece in video.split(GPU_CHUNK_FRAMES)])
        maps = [fast.features(piece) for piece in video[:few].split(GPU_CHUNK_FRAMES)]
        again = [maps[i % len(maps)] for i in range(frames // len(maps[0]))]
        found["embedder"] = rate_of(lambda: list(fast.embedder.embed_stream(again)))
        found["together"] = rate_of(partial(embed_once, fast.features, fast.embedder.embed_stream, video))
    print({name: round(value) for name, value in found.items()}, flush=True)
    return found


def frames_per_second(function: Callable[[], object], *, device: torch.device, frames: int) -> float:
    """Frames per second of a call that handles `frames` frames."""
    return 1000 * frames / milliseconds(function, device=device, repeats=5, warmup=3)


def embed_once(
    features: Callable[[Tensor], Tensor],
    embed_stream: Callable[[Iterator[Tensor]], Iterator[Tensor]],
    video: Tensor,
) -> Tensor:
    """Embed a video (N, 3, H, W) in chunks, with the base once per frame: (N, D)."""
    return torch.cat(list(embed_stream(features(piece) for piece in video.split(GPU_CHUNK_FRAMES))))


@torch.inference_mode()
def embed_host_frames(fast: FastEncoder, *, num_frames: int, chunk: Tensor, device: torch.device) -> Tensor:
    """Embed a video that repeats one `chunk` (n, 3, H, W) of host memory: (N, D)."""
    sizes = (min(len(chunk), num_frames - start) for start in range(0, num_frames, len(chunk)))
    maps = (fast.features(chunk[:size].to(device, non_blocking=True)) for size in sizes)
    return torch.cat(list(fast.embedder.embed_stream(maps))).cpu()


def host_chunk(recipe: Recipe, setting: Setting) -> Tensor:
    """Frames (n, 3, H, W) of noise in host memory, pinned for a GPU."""
    size, count = recipe.data.frame_size, 8 if setting.is_smoke else GPU_CHUNK_FRAMES
    frames = torch.randint(0, 256, (count, size, size, 3), dtype=torch.uint8)
    return (frames.pin_memory() if setting.is_gpu else frames).movedim(-1, 1)


def by_length(recipe: Recipe, setting: Setting, lengths: tuple[int, ...]) -> Iterator[Found]:
    """Seconds and peak memory of videos of several lengths that are copied from host memory in chunks."""
    torch.manual_seed(0)
    fast = FastEncoder(build_encoder(recipe).to(setting.device).eval(), precision="bfloat16")
    chunk = host_chunk(recipe, setting)
    run = partial(embed_host_frames, fast, chunk=chunk, device=setting.device)
    for length in lengths:
        run(num_frames=length)  # cuDNN plans for a new number of frames
        forget(setting.device)
        took = seconds(partial(run, num_frames=length), device=setting.device)
        print(f"{length} frames from the host: {took:.2f} s", flush=True)
        yield {"frames": length, "seconds": took, "peak_gb": peak_gb(setting.device)}


def from_files(data: Path, setting: Setting) -> Found:
    """Seconds to decode some videos, to embed the decoded ones, and to do both at once."""
    records = read_dataset(data).records[: 2 if setting.is_smoke else VIDEOS_FROM_FILES]
    recipe = setting.recipe("data.frame_size=32" if setting.is_smoke else "data.frame_size=160")
    encoder = build_encoder(recipe).to(setting.device).eval()
    with tempfile.TemporaryDirectory() as folder:
        frames, anew = (
            FrameCache(Path(folder) / name, size=encoder.frame_size, fit=encoder.fit) for name in "ab"
        )
        decode = seconds(partial(frames.fill, records), device=CPU)
        embed_records(encoder, records[:2], frames=frames)
        embed = seconds(partial(embed_records, encoder, records, frames=frames), device=CPU)
        both = seconds(partial(embed_records, encoder, records, frames=anew), device=CPU)
        count = sum(frames.load(record).num_frames for record in records)
    return {
        "videos": len(records),
        "frames": count,
        "frame_size": recipe.data.frame_size,
        "decode_seconds": decode,
        "embed_seconds": embed,
        "both_seconds": both,
        "both_over_decode": both / decode,
    }


def measure(setting: Setting) -> Iterator[Found]:
    """Yield rates of resident frames, memory of frames in chunks, and seconds from files."""
    recipe = setting.recipe()
    found = embedding(recipe, device=setting.device, frames=16 if setting.is_smoke else 2048)
    yield {
        "frames_per_second": found,
        "embed_fps": found["together"],
        "embed_ratio_fp32": found["together"] / found["peers_fp32"],
    }
    lengths = (8, 24) if setting.is_smoke else (1_000, 10_000)
    yield {"from_host": list(by_length(recipe, setting, lengths))}
    if setting.data is not None:
        result = from_files(setting.data, setting)
        print(result, flush=True)
        yield {"from_files": result}
