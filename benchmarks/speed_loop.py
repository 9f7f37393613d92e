"""The whole training loop with sampling, augmentation and log: ours from resident frames, and the peers'.

Shapes: N frames of a video, H W pixels.
"""

import dataclasses
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

import speed_peers
from cycleback.recipe import Recipe, build_batches, build_encoder, build_loss, build_optimizer
from cycleback.training import Processes, StepReport, Trainer
from speed_clock import Found, Setting, forget
from speed_training import timed_step


def whole_loop(
    recipe: Recipe, videos: list[Tensor], *, device: torch.device, updates: int = 60, skipped: int = 25
) -> float:
    """Return milliseconds per update of the real training loop on videos (N, ...) of frames or features."""
    torch.manual_seed(0)
    torch.compiler.reset()
    encoder = build_encoder(recipe).to(device)
    loss = build_loss(recipe).to(device)
    trainer = Trainer(
        encoder,
        loss,
        build_optimizer(recipe, encoder, loss),
        build_batches(recipe, videos, [""] * len(videos), encoder=encoder),
        names=[str(i) for i in range(len(videos))],
        settings=dataclasses.replace(recipe.optimizer, num_updates=updates),
        run_settings=dataclasses.replace(recipe.run, save_every=updates, log_every=10),
        augmentation=None if recipe.encoder.train_base == "frozen" else recipe.augment,
        processes=Processes(device=device),
    )
    moments: dict[int, float] = {}

    def note(report: StepReport) -> None:
        moments[report.step] = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        trainer.run(Path(folder), on_step=note)
    last = updates - 2  # the last update waits for the device and saves
    return 1000 * (moments[last] - moments[skipped]) / (last - skipped)


def noise_videos(recipe: Recipe, *, device: torch.device, count: int = 8, frames: int = 150) -> list[Tensor]:
    """Make videos (N, H, W, 3) of noise on the device."""
    shape = (frames, recipe.data.frame_size, recipe.data.frame_size, 3)
    return [torch.randint(0, 256, shape, dtype=torch.uint8, device=device) for _ in range(count)]


def measure(setting: Setting) -> Iterator[Found]:
    """Compare the loop with the bare step of the same run and with the peers' loop."""
    rung = "compiled" if "compiled" in setting.rungs else setting.best_eager_rung
    recipe = setting.recipe(
        f"optimizer.batch_size={setting.videos}", f"run.compile={str(rung == 'compiled').lower()}"
    )
    step = timed_step(rung, recipe, videos=setting.videos, setting=setting)
    updates, skipped = (8, 3) if setting.is_smoke else (60, 25)
    videos = noise_videos(recipe, device=setting.device)
    ours = whole_loop(recipe, videos, device=setting.device, updates=updates, skipped=skipped)
    print(f"loop {ours:.1f} ms, step {step['ms']:.1f} ms", flush=True)
    yield {"rung": rung, "loop_ms": ours, "step_ms": step["ms"], "loop_over_step": ours / step["ms"]}
    del videos
    forget(setting.device)
    for found in speed_peers.measure(setting):
        name = next(iter(found))
        print(f"{name} {found[name]:.1f}", flush=True)
        yield {**found, name.replace("_ms", "_ratio"): found[name] / ours}
