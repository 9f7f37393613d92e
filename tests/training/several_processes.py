"""One of several processes that train or decode together; started with the variables of torchrun.

    several_processes.py train VIDEOS RUN CACHE STORAGE UPDATES [stop-after]
    several_processes.py resume VIDEOS RUN CACHE
    several_processes.py decode VIDEOS CACHE

Each video that a process decodes is a line of CACHE/decoded.txt.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from cycleback.data import FrameCache, cache, read_dataset
from cycleback.progress import Progress
from cycleback.recipe import load_recipe
from cycleback.runs import train
from cycleback.video import iter_frames

SETTINGS = (
    "encoder.streams=['appearance']",
    "encoder.base='small'",
    "encoder.train_base='all'",
    "encoder.statistics='fixed'",  # those of a share differ from those of a batch
    "encoder.conv.dropout=0.0",
    "encoder.embedder='conv'",
    "encoder.conv.reduce_channels=0",
    "encoder.conv.conv_channels=[8]",
    "encoder.conv.fc_channels=[8]",
    "encoder.conv.batch_norm=false",
    "encoder.conv.embedding_size=8",
    "data.frame_size=32",
    "data.frames_per_video=6",
    "data.held_out=0.0",
    "optimizer.batch_size=3",
    "optimizer.name='sgd'",  # Adam turns the rounding of small gradients into large steps
    "run.log_every=1",
    "run.save_every=2",
    "run.restart=false",
    "loss.weights={ tcc = 1.0 }",
)


def watch_decoding(log: Path) -> None:
    """Note each video that is decoded, and take some time for it."""

    def decode(path: Path, **options: Any) -> Iterator[Any]:
        with log.open("a") as file:
            file.write(f"{os.environ.get('RANK', '0')} {Path(path).name}\n")
        time.sleep(0.05)
        yield from iter_frames(path, **options)

    cache.iter_frames = decode


def main(what: str, videos: str, *words: str) -> None:
    torch.set_num_threads(1)
    if what == "decode":
        watch_decoding(Path(words[0]) / "decoded.txt")
        FrameCache(words[0], size=(32, 32)).fill(read_dataset(videos).records)
        return
    run, root = Path(words[0]), Path(words[1])
    watch_decoding(root / "decoded.txt")
    progress = None
    if "stop-after" in words:

        def stop(report: Any) -> None:
            if report.step == int(words[-1]):
                os.kill(os.getpid(), signal.SIGINT)

        progress = Progress(on_training=lambda name, total: stop)
    if what == "resume":
        train(videos, run, resume=True, device="cpu", cache=root)
        return
    settings = (*SETTINGS, f"data.storage='{words[2]}'", f"optimizer.num_updates={words[3]}")
    train(videos, run, recipe=load_recipe(overrides=settings), device="cpu", cache=root, progress=progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
