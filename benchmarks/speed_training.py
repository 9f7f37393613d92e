"""The training step, rung by rung from the peers' way to ours, and a lower bound on its time.

Shapes: B videos, T sampled frames, C context frames, H W pixels, M clips, I O channels in and out.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cycleback.losses import LossParts, TCCLoss
from cycleback.models import TemporalConv
from cycleback.provenance import provenance
from cycleback.recipe import Recipe, build_encoder
from cycleback.training.update import CudaGraph
from speed_clock import RUNGS, Found, Setting, attempted, ceilings, forget, milliseconds, peak_gb
from speed_peers import global_arithmetic, loop_over_pairs

# The fewest bytes a step can move: each product reads its input (bfloat16) and writes its output; backward,
# the gradient of the output is read for that of the input, which is written, and both are read for that of
# the weights. Norms and activations ride along. A weight is read twice, its gradient written; Adam then reads
# four float32 and writes three.
HALF, WEIGHT_BYTES = 2, 2 * 2 + 4 + 4 * 4 + 3 * 4
FIXED, LATER = "encoder.statistics=fixed", "encoder.train_from=network.layer2"
LAYERS: dict[str, tuple[str, ...]] = {  # what trains of the base, besides all of it
    "all, statistics fixed": (FIXED,),
    "from layer 2 on, statistics fixed": (FIXED, LATER),
    "BatchNorm": ("encoder.train_base=bn",),
    "none": ("encoder.train_base=frozen",),
}


def images_of(recipe: Recipe, *, videos: int, device: torch.device) -> Tensor:
    """Make images (B, T, C, 3, H, W) of noise in [0, 1]."""
    size = recipe.data.frame_size
    frames, contexts = recipe.data.frames_per_video, recipe.encoder.conv.context_frames
    return torch.rand(videos, frames, contexts, 3, size, size, device=device)


def step_of(rung: str, recipe: Recipe, images: Tensor) -> Callable[[], Tensor]:
    """Return one training step on fixed images (B, T, C, 3, H, W)."""
    at, device = RUNGS.index(rung), images.device
    torch.manual_seed(0)
    encoder = build_encoder(recipe).to(device).train()
    if at >= RUNGS.index("channels_last"):
        encoder.base.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    forward = encoder.forward
    if rung == "compiled":
        torch.compiler.reset()
        forward = torch.compile(forward)
    loss = TCCLoss()
    weights = [p for p in encoder.parameters() if p.requires_grad]
    is_fused = at >= RUNGS.index("bf16") and device.type == "cuda"
    optimizer = torch.optim.Adam(weights, lr=1e-6, weight_decay=1e-5, fused=is_fused)  # noise teaches nothing
    times = torch.rand(images.shape[:2], device=device).sort().values

    def compute(generator: torch.Generator | None = None) -> tuple[Tensor, LossParts]:
        is_half = at >= RUNGS.index("bf16")
        with torch.autocast(device.type, torch.bfloat16, enabled=is_half, cache_enabled=False):
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
    graph = CudaGraph(compute, [images], weights)

    def replayed() -> Tensor:
        _, parts = graph.replay([images], seed=0)
        optimizer.step()
        return parts.total

    return replayed


def timed_step(rung: str, recipe: Recipe, *, videos: int, setting: Setting, repeats: int = 15) -> Found:
    """Measure milliseconds and peak memory of a step."""
    forget(setting.device)
    images = images_of(recipe, videos=videos, device=setting.device)
    # on a CPU, torch's weight gradients of a Conv3d in bfloat16 are at times not numbers
    first_without = "stacked" if setting.is_gpu else "bf16"
    with global_arithmetic(tf32=rung != "fp32", conv3d=RUNGS.index(rung) < RUNGS.index(first_without)):
        step = step_of(rung, recipe, images)
        found = milliseconds(step, device=setting.device, repeats=repeats, warmup=5)
        if not torch.isfinite(step()):
            raise RuntimeError(f"the loss of rung {rung} is not finite")
    row = {"ms": found, "peak_gb": peak_gb(setting.device)}
    print(f"{videos} videos of {images.shape[1]} frames, {rung:14} {found:8.1f} ms", flush=True)
    del step, images
    forget(setting.device)
    return row


def useful_flops(recipe: Recipe, images: Tensor) -> float:
    """Count the operations of a step, forward and backward, without products with padding in time."""
    step = step_of("stacked", recipe, images)
    with FlopCounterMode(display=False) as counter:
        step()
    return float(counter.get_total_flops())


def products_of(recipe: Recipe, images: Tensor) -> list[tuple[float, float]]:
    """(operations, bytes) of every layer with a product, forward and backward together."""
    encoder = build_encoder(recipe).to(images.device).train()
    layers: list[tuple[float, float]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        into, out = inputs[0].numel(), output.numel()
        passes = 3 if inputs[0].requires_grad else 2  # the first layer's input needs no gradient
        moved = HALF * (passes * into + 3 * out)
        layers.append((passes * operations(layer, inputs[0], output), moved))

    kinds = (nn.Conv2d, nn.Linear, TemporalConv)
    hooks = [part.register_forward_hook(note) for part in encoder.modules() if isinstance(part, kinds)]
    with torch.autocast(images.device.type, torch.bfloat16):
        encoder(images)
    for hook in hooks:
        hook.remove()
    return layers


def operations(layer: nn.Module, input: Tensor, output: Tensor) -> float:
    """Operations of a layer forward: two for each weight and place it is used at."""
    if isinstance(layer, TemporalConv):  # clips (C, M, I, h, w); 3 C - 2 products of a frame and a slice
        frames, clips, _, height, width = input.shape
        return 2.0 * layer.weight[:, :, 0].numel() * clips * height * width * (3 * frames - 2)
    weight = layer.get_parameter("weight")
    return 2.0 * output.numel() * weight[0].numel()


def least(setting: Setting, recipe: Recipe, found: Found) -> Found:
    """Return the work of the step and a lower bound on its time at the ceilings `found` in this run.

    `floor_ms` has the products at the ceiling, the bytes at the rate of copies, and, layer by layer, the
    longer of the two: no layer can do better, unless it is fused with the next product.
    """
    images = images_of(recipe, videos=setting.videos, device=setting.device)
    encoder = build_encoder(recipe)
    trained = sum(p.numel() for p in encoder.parameters() if p.requires_grad)
    flops, layers = useful_flops(recipe, images), products_of(recipe, images)
    moved = sum(bytes for _, bytes in layers) + WEIGHT_BYTES * trained
    per_ms, copied = found["ceiling_tflops"] * 1e9, found["copy_tb_per_s"] * 1e9
    by_layer = sum(max(work / per_ms, bytes / copied) for work, bytes in layers)
    forget(setting.device)
    return {
        "step_tflop": flops / 1e12,
        "step_gbytes": moved / 1e9,
        "trained_parameters": trained,
        "floor_ms": {
            "products": flops / per_ms,
            "bytes": moved / copied,
            "by layer": by_layer + WEIGHT_BYTES * trained / copied,
        },
    }


def measure(setting: Setting) -> Iterator[Found]:
    """Measure every rung, the lower bound, other batch sizes, and fewer trained layers."""
    recipe = setting.recipe()
    found = ceilings(setting)
    yield found
    yield attempted("floor", lambda: least(setting, recipe, found), setting) or {}
    times: dict[str, float] = {}
    for rung in setting.rungs:
        row = attempted(f"rung {rung}", lambda rung=rung: _paper_step(rung, setting), setting)  # type: ignore[misc]
        if row is not None:
            times[rung] = row["ms"]
            yield {"rungs": {rung: {**row, **provenance()}}}
    if not times:
        raise RuntimeError(f"no rung of {', '.join(setting.rungs)} could be measured")
    best = "compiled" if min(times, key=lambda rung: times[rung]) == "compiled" else setting.best_eager_rung
    if best in times:
        yield from _variants(setting, best)


def _paper_step(rung: str, setting: Setting) -> Found:
    return timed_step(rung, setting.recipe(), videos=setting.videos, setting=setting)


def _variants(setting: Setting, best: str) -> Iterator[Found]:
    """Measure the best rung with more videos and with fewer trained layers; compiling each takes minutes."""
    more = setting.more_videos
    if more is None:
        more = () if best == "compiled" else (3,) if setting.is_smoke else (8, 16, 32)
    for videos in more:
        row = attempted(
            f"{videos} videos",
            lambda videos=videos: timed_step(best, setting.recipe(), videos=videos, setting=setting),  # type: ignore[misc]
            setting,
        )
        if row is not None:
            yield {"by_videos": {str(videos): {"rung": best, **row, **provenance()}}}
    for kind, overrides in () if best == "compiled" else LAYERS.items():
        recipe = setting.recipe(*overrides)
        row = timed_step(best, recipe, videos=setting.videos, setting=setting)
        yield {"by_layers": {kind: {"rung": best, **row, **provenance()}}}
