"""The run folder: all a user must keep or send, and the three calls that make and use one.

RUN/recipe.toml           every setting, resolved
RUN/encoder.safetensors   the weights
RUN/videos.json           which videos were trained on and which were held out
RUN/state.pt              what resuming needs
RUN/log.jsonl             loss and cycle-consistency rate, a line every few updates
RUN/selected.json         with run.select_every: which update the weights are of, and why
RUN/tensorboard/          with run.tensorboard

A model that comes with the package is such a folder, too, found by its name: see `published`.
"""

from cycleback.runs.encode import choose_device, embed_videos, load_encoder
from cycleback.runs.folder import VIDEOS_FILE, run_split, saved_recipe, select_part
from cycleback.runs.learn import Watcher, train
from cycleback.runs.published import CARD_FILE, PRETRAINED, find_run, published_models

__all__ = [
    "CARD_FILE",
    "PRETRAINED",
    "VIDEOS_FILE",
    "Watcher",
    "choose_device",
    "embed_videos",
    "find_run",
    "load_encoder",
    "published_models",
    "run_split",
    "saved_recipe",
    "select_part",
    "train",
]
