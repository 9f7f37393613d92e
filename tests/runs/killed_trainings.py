"""Kill a training before each of its renames, resume it, and compare it with one that ran through.

A program of its own, run by `test_kills.py`: it forks, which pytest should not.

    python killed_trainings.py FOLDER     prints one JSON object per kill
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open

import cycleback
from cycleback.errors import ConfigError
from cycleback.recipe import Recipe
from cycleback.recipe.sections import ConvSettings, DataSettings, EncoderSettings, LossSettings, MLPSettings
from cycleback.synth import write_dataset
from cycleback.training.settings import OptimizerSettings, RunSettings

KEPT = Recipe(
    data=DataSettings(frame_size=32, frames_per_video=8, held_out=0.5),
    encoder=EncoderSettings(
        streams=("appearance",),
        base="small",
        embedder="conv",
        train_base="all",
        conv=ConvSettings(reduce_channels=0, conv_channels=(8,), fc_channels=(8,)),
    ),
    optimizer=OptimizerSettings(num_updates=4, batch_size=2),
    run=RunSettings(log_every=1, save_every=2, select_every=2),
    loss=LossSettings(weights={"tcc": 1.0}),
)
UNTRAINED = Recipe(
    data=DataSettings(frame_size=32, frames_per_video=8, held_out=0.0),
    encoder=EncoderSettings(
        streams=("motion",), embedder="mlp", mlp=MLPSettings(fc_channels=(8,), embedding_size=4)
    ),
    optimizer=OptimizerSettings(num_updates=4, batch_size=2),
    run=RunSettings(log_every=1, save_every=2),
)
RECIPES = {"kept": (KEPT, 5), "untrained": (UNTRAINED, 2)}  # with the number of videos


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a child process; return its exit code, negative if a signal killed it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_before_rename(number: int) -> None:
    """Kill this process when it is about to rename something for the `number`-th time (1-based)."""
    count, replace = 0, os.replace

    def count_or_die(*paths: Path) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*paths)

    os.replace = count_or_die  # type: ignore[assignment]


def resume_or_start(videos: Path, run: Path, recipe: Recipe, cache: Path) -> None:
    has_begun = (run / "recipe.toml").exists()
    try:
        cycleback.train(videos, run, recipe=None if has_begun else recipe, resume=has_begun, cache=cache)
    except ConfigError as error:
        if "there is nothing to resume" not in str(error):
            raise


def read(run: Path) -> dict[str, str]:
    """Return the digest of each file of a run, without the seconds that it took."""
    found = {}
    for path in sorted(run.iterdir()):
        if path.name == "log.jsonl":
            records = [json.loads(line) for line in path.read_text().splitlines()]
            content = repr([{k: v for k, v in each.items() if k != "seconds"} for each in records]).encode()
        elif path.name == "state.pt":
            state = torch.load(path, weights_only=True)
            content = repr((state["step"], state["selected"], sorted(state["encoder"]))).encode()
            content += b"".join(tensor.numpy().tobytes() for tensor in state["encoder"].values())
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:  # the order of its metadata is random
                names = sorted(file.keys())
                content = repr((sorted(file.metadata().items()), names)).encode()
                content += b"".join(file.get_tensor(name).numpy().tobytes() for name in names)
        else:
            content = path.read_bytes()
        found[path.name] = hashlib.sha256(content).hexdigest()
    return found


def kill_everywhere(folder: Path, recipe: Recipe, count: int) -> None:
    videos, cache = folder / "videos", folder / "cache"
    write_dataset(videos, videos=count, seed=0, size=64, jobs=1)
    cycleback.train(videos, folder / "whole", recipe=recipe, cache=cache)
    whole = read(folder / "whole")
    for number in range(1, 100):

        def train_and_die(number: int = number) -> None:
            kill_before_rename(number)
            cycleback.train(videos, folder / f"run{number}", recipe=recipe, cache=cache)

        run = folder / f"run{number}"
        killed = fork(train_and_die)
        left = sorted(path.name for path in run.glob("*"))
        resumed = fork(lambda run=run: resume_or_start(videos, run, recipe, cache))
        after = read(run)
        others = [name for name in whole.keys() | after.keys() if whole.get(name) != after.get(name)]
        print(json.dumps({"killed": killed, "left": left, "resumed": resumed, "others": others}))
        if killed == 0:
            return


if __name__ == "__main__":
    torch.set_num_threads(1)
    for kind, (recipe, count) in RECIPES.items():
        kill_everywhere(Path(sys.argv[1]) / kind, recipe, count)
