"""Speed on one GPU: training step and embedding of whole videos, rung by rung from the peers' way to ours.

The step is the paper's: ResNet-50 to Conv4c, all layers trained, 4 videos of 20 frames with 2 context frames
at 224 px. The lowest rung is how peers write it: float32, a loop over pairs, a padded Conv3d. The ceilings
(matrix products in bfloat16, copies) are measured in the same run, and the useful operations are counted.

Example:
    python benchmarks/gpu_speed.py --json --out results/gpu_speed.json
"""

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cycleback.losses import LossParts, TCCLoss
from cycleback.models import Encoder, TemporalConv, fast_inference
from cycleback.recipe import Recipe, build_batches, build_encoder, build_loss, build_optimizer, load_recipe
from cycleback.training import Arithmetic, StepReport, Trainer
from cycleback.training.recording import Recording
from reproduce import circumstances

CUDA = torch.device("cuda")
RUNGS = ("fp32", "tf32", "bf16", "channels_last", "stacked", "recorded", "compiled")
T, C = 20, 2


def milliseconds(function: Callable[[], object], *, repeats: int = 20, warmup: int = 5) -> float:
    """Median time of a call on the device."""
    for _ in range(warmup):
        function()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(statistics.median(times))


def ceilings() -> dict[str, float]:
    """What the device can do at most: bfloat16 matrix products and copies in memory."""
    a, b = (torch.randn(8192, 8192, device=CUDA, dtype=torch.bfloat16) for _ in range(2))
    product = milliseconds(lambda: a @ b)
    source = torch.empty(2**30, dtype=torch.uint8, device=CUDA).random_()
    target = torch.empty_like(source)
    copied = milliseconds(lambda: target.copy_(source))
    return {"ceiling_tflops": 2 * 8192**3 / product / 1e9, "copy_tb_per_s": 2 * 2**30 / copied / 1e9}


def plain_conv3d(conv: TemporalConv, clips: Tensor) -> Tensor:
    """Clips (C, M, I, h, w) through `nn.Conv3d` as everyone writes it."""
    return nn.functional.conv3d(clips.permute(1, 2, 0, 3, 4), conv.weight, conv.bias, padding=1).permute(
        2, 0, 1, 3, 4
    )


def loop_over_pairs(loss: TCCLoss, embeddings: Tensor, times: Tensor) -> Tensor:
    """The loss (scalar) of embeddings (B, T, D), one ordered pair at a time."""
    parts = [loss(embeddings[[u, v]], times=times[[u, v]]) for u in range(len(embeddings)) for v in range(u)]
    return torch.stack(parts).mean()


@contextmanager
def arithmetic_of(rung: str) -> Iterator[None]:
    """The global settings of a rung, put back after."""
    with ExitStack() as stack:
        stack.enter_context(
            torch.backends.cudnn.flags(enabled=True, allow_tf32=rung != "fp32", benchmark=True)
        )
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = rung != "fp32"
        stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", before)
        if RUNGS.index(rung) < RUNGS.index("stacked"):
            stack.enter_context(mock.patch.object(TemporalConv, "forward", plain_conv3d))
        yield


def step_of(rung: str, recipe: Recipe, images: Tensor) -> Callable[[], Tensor]:
    """One training step on fixed images (B, T, C, 3, H, W) in [0, 1]."""
    at = RUNGS.index(rung)
    torch.manual_seed(0)
    encoder = build_encoder(recipe).to(CUDA).train()
    if at >= RUNGS.index("channels_last"):
        encoder.base.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    forward = encoder.forward
    if rung == "compiled":
        torch.compiler.reset()
        forward = torch.compile(forward)
    loss = TCCLoss()
    weights = [p for p in encoder.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(weights, lr=1e-4, weight_decay=1e-5, fused=at >= RUNGS.index("bf16"))
    times = torch.rand(images.shape[:2], device=CUDA).sort().values

    def compute(generator: torch.Generator | None = None) -> tuple[Tensor, LossParts]:
        with torch.autocast("cuda", torch.bfloat16, enabled=at >= RUNGS.index("bf16"), cache_enabled=False):
            embeddings = forward(images).float()
        value = loss(embeddings, times=times) if at > 0 else loop_over_pairs(loss, embeddings, times)
        value.backward()
        return embeddings.detach(), LossParts(value.detach(), {})

    def eager() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        _, parts = compute()
        optimizer.step()
        return parts.total

    if at < RUNGS.index("recorded"):
        return eager
    for _ in range(3):
        eager()
    recording = Recording(compute, [images], weights)

    def replayed() -> Tensor:
        _, parts = recording.replay([images], seed=0)
        optimizer.step()
        return parts.total

    return replayed


def training_steps(recipe: Recipe, *, videos: int, rungs: tuple[str, ...] = RUNGS) -> dict[str, float]:
    """Milliseconds a step of each rung."""
    size = recipe.data.frame_size
    images = torch.rand(videos, T, C, 3, size, size, device=CUDA)
    found = {}
    for rung in rungs:
        with arithmetic_of(rung):
            step = step_of(rung, recipe, images)
            found[rung] = milliseconds(step, repeats=15, warmup=4 if RUNGS.index(rung) < 5 else 8)
            if not torch.isfinite(step()):
                raise RuntimeError(f"the loss of rung {rung} is not finite")
        print(f"{videos} videos, {rung:14} {found[rung]:8.1f} ms", flush=True)
        torch.cuda.empty_cache()
    return found


def useful_flops(recipe: Recipe) -> float:
    """Operations of a step of 4 videos, forward and backward, without products with padding in time."""
    size = recipe.data.frame_size
    step = step_of("stacked", recipe, torch.rand(4, T, C, 3, size, size, device=CUDA))
    with FlopCounterMode(display=False) as counter:
        step()
    return float(counter.get_total_flops())


def frames_of(recipe: Recipe) -> list[Tensor]:
    """Eight videos (150, H, W, 3) of noise."""
    shape = (150, recipe.data.frame_size, recipe.data.frame_size, 3)
    return [torch.randint(0, 256, shape, dtype=torch.uint8, device=CUDA) for _ in range(8)]


def small_updates() -> dict[str, dict[str, float]]:
    """Milliseconds an update of the recipe `fast`, whose embedder is tiny: eager, and replayed."""
    found = {}
    for row in ("tcc", "tcn", "sal", "tcc+tcn"):
        losses = [f"loss.weights={{ {', '.join(f'{name} = 1.0' for name in row.split('+'))} }}"]
        maps = [torch.randn(130, 112, 7, 7, device=CUDA).half() for _ in range(40)]
        found[row] = {
            way: whole_loop(
                load_recipe("fast", [*losses, f"run.record={flag}"]), maps, updates=200, skipped=50
            )
            for way, flag in (("eager", "false"), ("replayed", "true"))
        }
        print(f"fast, {row:10} {found[row]}", flush=True)
    return found


def whole_loop(recipe: Recipe, videos: list[Tensor], *, updates: int = 60, skipped: int = 25) -> float:
    """Milliseconds an update of the real training loop: sampling, augmentation, loss, log and all."""
    torch.manual_seed(0)
    torch.compiler.reset()
    encoder = build_encoder(recipe).to(CUDA)
    loss = build_loss(recipe).to(CUDA)
    run = recipe.run
    trainer = Trainer(
        encoder,
        loss,
        build_optimizer(recipe, encoder, loss),
        build_batches(recipe, videos, [""] * len(videos), encoder=encoder),
        names=[str(i) for i in range(len(videos))],
        num_updates=updates,
        augmentation=recipe.augment,
        clip_norm=recipe.optimizer.clip_norm,
        arithmetic=Arithmetic(run.precision, run.channels_last, run.compile, record=run.record),
        device=CUDA,
    )
    moments: dict[int, float] = {}

    def note(report: StepReport) -> None:
        moments[report.step] = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        trainer.run(Path(folder), save_every=updates, log_every=10, on_step=note)
    last = updates - 2  # the last update waits for the device and saves
    return 1000 * (moments[last] - moments[skipped]) / (last - skipped)


@torch.inference_mode()
def embedding(recipe: Recipe, *, frames: int = 1024) -> dict[str, float]:
    """Frames a second of whole videos: base alone, embedder alone, both; and the peers' way."""
    size = recipe.data.frame_size
    video = torch.randint(0, 256, (frames, 3, size, size), dtype=torch.uint8, device=CUDA)
    torch.manual_seed(0)
    encoder = build_encoder(recipe).to(CUDA).eval()
    found = {}
    with arithmetic_of("fp32"):
        plain = partial(peers_embedding, encoder, video[:256])
        found["peers_fp32"] = 1000 * 256 / milliseconds(plain, repeats=5, warmup=2)
    fast = fast_inference(copy.deepcopy(encoder.base), precision="bfloat16")
    ways: dict[str, Callable[[Tensor], Tensor]] = {"bf16": fast, "compile": torch.compile(fast)}
    for name, base in ways.items():
        base_only = partial(in_chunks, base, video)
        found[f"base_{name}"] = 1000 * frames / milliseconds(base_only, repeats=5, warmup=3)
    maps = in_chunks(fast, video)

    def embed(features: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return encoder.embed_sequence(features, chunk_frames=256)

    found["embedder"] = 1000 * frames / milliseconds(partial(embed, maps), repeats=5, warmup=2)
    both = milliseconds(lambda: embed(in_chunks(ways["compile"], video)), repeats=5, warmup=2)
    found["together"] = 1000 * frames / both
    print({name: round(value) for name, value in found.items()}, flush=True)
    return found


def in_chunks(base: Callable[[Tensor], Tensor], video: Tensor, size: int = 256) -> Tensor:
    """Feature maps (N, F, h, w) of a video (N, 3, H, W)."""
    return torch.cat([base(video[start : start + size]) for start in range(0, len(video), size)])


def peers_embedding(encoder: Encoder, video: Tensor, size: int = 64) -> Tensor:
    """Embeddings (N, D) of a video (N, 3, H, W), each frame's context encoded again."""
    back = encoder.context_stride
    pieces = []
    for start in range(0, len(video), size):
        now = torch.arange(start, min(start + size, len(video)), device=video.device)
        clips = video[torch.stack([(now - back).clamp_min(0), now], dim=1)]  # (n, C, 3, H, W)
        pieces.append(encoder(clips[None])[0])
    return torch.cat(pieces)


def main() -> None:
    """Measure and print; with --out, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rungs", default=",".join(RUNGS), help="separated by commas")
    parser.add_argument("--more-videos", default="8,16,32", help="other batch sizes, for the best rung")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--json", action="store_true", help="print the numbers as one JSON object, last")
    arguments = parser.parse_args()
    recipe = changed()
    result: dict[str, Any] = {**circumstances(), **ceilings()}
    rungs = tuple(arguments.rungs.split(","))
    steps = training_steps(recipe, videos=4, rungs=rungs)
    best = min(steps, key=lambda rung: steps[rung])
    flops = useful_flops(recipe)
    result |= {
        "train_ms_by_rung": steps,
        "train_step_ms": steps[best],
        "best_rung": best,
        "step_tflop": flops / 1e12,
    }
    result["train_ratio_fp32"] = steps.get("fp32", float("nan")) / steps[best]
    result["share_of_ceiling"] = flops / 1e9 / steps[best] / result["ceiling_tflops"]
    result["train_ms_by_videos"] = {
        count: training_steps(recipe, videos=int(count), rungs=(best,))[best]
        for count in arguments.more_videos.split(",")
        if count
    }
    result["train_ms_by_layers"] = {
        kind: training_steps(changed(f"encoder.train_base={kind}"), videos=4, rungs=(best,))[best]
        for kind in ("bn", "frozen")
    }
    whole = changed("run.compile=true" if best == "compiled" else "run.compile=false")
    result["loop_ms"] = whole_loop(whole, frames_of(whole))
    result["small_updates_ms"] = small_updates()
    found = embedding(recipe)
    result |= {"embed": found, "embed_fps": found["together"]}
    result["embed_ratio_fp32"] = found["together"] / found["peers_fp32"]
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=1))


def changed(*overrides: str) -> Recipe:
    """The recipe of the step, with some settings changed."""
    settings = ["data.frame_size=224", "encoder.weights=", "loss.weights={ tcc = 1.0 }"]
    return load_recipe("fast-gpu", [*settings, *overrides])


if __name__ == "__main__":
    main()
