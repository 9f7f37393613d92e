"""The straightforward implementation, as peers write it: the baseline of every ratio.

float32, a loop over pairs, a padded Conv3d, files decoded from their start in every update, every frame
augmented on the CPU, context frames encoded again for each embedding.

Shapes: B videos, T sampled frames, C context frames, N frames of a whole video, H W pixels, D embedding size.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from cycleback.data import read_dataset
from cycleback.losses import TCCLoss
from cycleback.models import Encoder, TemporalConv
from cycleback.recipe import Recipe, build_encoder
from cycleback.synth import render_video
from cycleback.video import write_video
from speed_clock import Setting, synchronize

Image = NDArray[np.uint8]
Clip = tuple[Tensor, Tensor]


def plain_conv3d(conv: TemporalConv, clips: Tensor) -> Tensor:
    """Clips (C, M, I, h, w) through `nn.Conv3d` as everyone writes it."""
    return nn.functional.conv3d(clips.permute(1, 2, 0, 3, 4), conv.weight, conv.bias, padding=1).permute(
        2, 0, 1, 3, 4
    )


def loop_over_pairs(loss: TCCLoss, embeddings: Tensor, times: Tensor) -> Tensor:
    """Return the loss (scalar) of embeddings (B, T, D), computed one pair of videos at a time."""
    parts = [loss(embeddings[[u, v]], times=times[[u, v]]) for u in range(len(embeddings)) for v in range(u)]
    return torch.stack(parts).mean()


@contextmanager
def global_arithmetic(*, tf32: bool, conv3d: bool) -> Iterator[None]:
    """Settings of the whole process, put back after.

    Args:
        tf32: whether float32 products may be rounded.
        conv3d: whether the embedder runs as a padded Conv3d.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=tf32, benchmark=True))
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", before)
        if conv3d:
            stack.enter_context(mock.patch.object(TemporalConv, "forward", plain_conv3d))
        yield


def embed_with_context(encoder: Encoder, video: Tensor, size: int = 64) -> Tensor:
    """Embeddings (N, D) of a video (N, 3, H, W), each frame's context encoded again."""
    back = encoder.context_stride
    pieces = []
    for start in range(0, len(video), size):
        now = torch.arange(start, min(start + size, len(video)), device=video.device)
        clips = video[torch.stack([(now - back).clamp_min(0), now], dim=1)]  # (n, C, 3, H, W)
        pieces.append(encoder(clips[None])[0])
    return torch.cat(pieces)


class DecodedClips(Dataset[Clip]):
    """Clips (T, C, 3, H, W) in [0, 1] and their times (T,), read from the files whenever asked for."""

    def __init__(self, files: Sequence[Path], recipe: Recipe) -> None:
        self.files, self.settings = list(files), recipe.augment
        self.size, self.count = recipe.data.frame_size, recipe.data.frames_per_video
        self.contexts, self.stride = recipe.encoder.conv.context_frames, recipe.encoder.conv.context_stride

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> Clip:
        path = self.files[number]
        length = count_frames(path)
        chosen = sorted(random.choices(range(length), k=self.count))
        contexts = [
            [max(0, index - self.stride * back) for back in reversed(range(self.contexts))]
            for index in chosen
        ]
        images = frames_at(path, {index for row in contexts for index in row}, self.size)
        change = self._draw()
        clips = [torch.stack([change(images[index]) for index in row]) for row in contexts]
        return torch.stack(clips), torch.tensor(chosen) / length

    def _draw(self) -> Callable[[Image], Tensor]:
        """One draw a clip: an image (H, W, 3) to a tensor (3, H, W), changed on the CPU."""
        flip = random.random() < self.settings.flip
        shift = random.uniform(-1, 1) * self.settings.brightness
        factor = random.uniform(*self.settings.contrast)

        def change(image: Image) -> Tensor:
            pixels = torch.from_numpy(image).permute(2, 0, 1).float() / 255
            pixels = (pixels.flip(-1) if flip else pixels) + shift
            mean = pixels.mean(dim=(-2, -1), keepdim=True)
            return ((pixels - mean) * factor + mean).clamp(0, 1)

        return change


def one_thread(worker: int) -> None:
    """OpenCV's own threads do not survive the start of a worker process."""
    if find_spec("cv2") is not None:
        import_module("cv2").setNumThreads(0)


def count_frames(path: Path) -> int:
    """Frames the file says it has."""
    if find_spec("cv2") is None:
        with import_module("av").open(str(path)) as container:
            return int(container.streams.video[0].frames)
    cv2 = import_module("cv2")
    return int(cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FRAME_COUNT))


def frames_at(path: Path, wanted: set[int], size: int) -> dict[int, Image]:
    """Some frames (size, size, 3) of a file, decoded from its start up to the last one wanted."""
    found: dict[int, Image] = {}
    for index, (convert, frame) in enumerate(decoded(path, size)):
        if index in wanted:
            found[index] = convert(frame)
        if index == max(wanted):
            break
    last = found[max(found)]  # a file may hold fewer frames than it says
    return {index: found.get(index, last) for index in wanted}


def decoded(path: Path, size: int) -> Iterator[tuple[Callable[[Any], Image], Any]]:
    """Every frame in turn, and what makes it an RGB image (size, size, 3): OpenCV, or else PyAV."""
    if find_spec("cv2") is None:
        with import_module("av").open(str(path)) as container:
            for frame in container.decode(video=0):
                yield lambda found: found.to_ndarray(width=size, height=size, format="rgb24"), frame
        return
    cv2 = import_module("cv2")
    capture = cv2.VideoCapture(str(path))
    while True:
        is_there, frame = capture.read()
        if not is_there:
            return
        yield lambda found: cv2.cvtColor(cv2.resize(found, (size, size)), cv2.COLOR_BGR2RGB), frame


@contextmanager
def video_files(setting: Setting, count: int = 16) -> Iterator[list[Path]]:
    """Files of the data set, or else rendered ones, which go away again."""
    if setting.data is not None:
        records = read_dataset(setting.data).records
        yield [record.path for record in records if record.kind == "video"][:count]
        return
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.mp4" for number in range(2 if setting.is_smoke else 8)]
        for number, path in enumerate(files):
            write_file(path, render_video(number, size=48 if setting.is_smoke else 224).frames)
        yield files


def write_file(path: Path, frames: NDArray[np.uint8]) -> None:
    """Frames (N, H, W, 3) as a video, with PyAV or else OpenCV."""
    if find_spec("av") is not None:
        write_video(path, frames, fps=30.0)
        return
    cv2 = import_module("cv2")
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), 30.0, frames.shape[2:0:-1])
    for frame in frames:
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
    writer.release()


def loop_ms(setting: Setting, recipe: Recipe, files: Sequence[Path], *, workers: int, updates: int) -> float:
    """Return milliseconds per update, end to end, after one warm-up update per worker and one more."""
    batch = recipe.optimizer.batch_size
    repeated = [files[i % len(files)] for i in range(batch * (updates + workers + 1))]
    random.seed(0)
    torch.manual_seed(0)
    encoder = build_encoder(recipe).to(setting.device).train()
    optimizer = torch.optim.Adam([p for p in encoder.parameters() if p.requires_grad], lr=1e-4)
    loss, moments = TCCLoss(), []
    with global_arithmetic(tf32=False, conv3d=True):
        for images, times in DataLoader(
            DecodedClips(repeated, recipe),
            batch_size=batch,
            num_workers=workers,
            pin_memory=setting.is_gpu,
            worker_init_fn=one_thread,
            timeout=60 if workers else 0,
        ):
            optimizer.zero_grad()
            embeddings = encoder(images.to(setting.device))
            value = loop_over_pairs(loss, embeddings, times.to(setting.device))
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            synchronize(setting.device)
            moments.append(time.perf_counter())
    return 1000 * (moments[-1] - moments[workers]) / (len(moments) - 1 - workers)


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure milliseconds per update from files, decoded in the loop and by worker processes."""
    recipe = setting.recipe(f"optimizer.batch_size={setting.videos}")
    updates = 2 if setting.is_smoke else 5
    workers = 1 if setting.is_smoke else min(8, os.cpu_count() or 1)
    with video_files(setting) as files:
        found = loop_ms(setting, recipe, files, workers=workers, updates=4 * updates)
        yield {"peers_loader_ms": found, "peers_workers": workers}
        yield {"peers_loop_ms": loop_ms(setting, recipe, files, workers=0, updates=updates)}
