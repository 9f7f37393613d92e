"""The run folder: all a user must keep or send, and the three calls that make and use one.

RUN/recipe.toml           every setting, resolved
RUN/encoder.safetensors   the weights
RUN/videos.json           which videos were trained on and which were held out
RUN/state.pt              what resuming needs
RUN/log.jsonl             loss and cycle-consistency rate, a line every few updates
RUN/selected.json         with run.select_every: which update the weights are of, and why
RUN/tensorboard/          with run.tensorboard
"""

from cycleback.runs.encode import PRETRAINED, choose_device, embed_videos, load_encoder
from cycleback.runs.folder import VIDEOS_FILE, run_split, saved_recipe, select_part
from cycleback.runs.learn import Watcher, train

__all__ = [
    "PRETRAINED",
    "VIDEOS_FILE",
    "Watcher",
    "choose_device",
    "embed_videos",
    "load_encoder",
    "run_split",
    "saved_recipe",
    "select_part",
    "train",
]
