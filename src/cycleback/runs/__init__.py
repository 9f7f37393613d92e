"""Run folders: everything a user must keep or send, and the calls that make and use one.

The files of a run folder:

    RUN/recipe.toml           every setting that has an effect, resolved
    RUN/encoder.safetensors   the weights
    RUN/videos.json           which videos were trained on and which were held out, and where they are
    RUN/state.pt              the state that resuming needs
    RUN/log.jsonl             loss and cycle-consistency rate, one line every few updates
    RUN/selected.json         with run.select_every: which update the weights are from, and why
    RUN/tensorboard/          with run.tensorboard
"""

from cycleback.runs.folder import (
    CARD_FILE,
    PRETRAINED,
    VIDEOS_FILE,
    choose_device,
    embed_videos,
    find_run,
    load_encoder,
    published_models,
    run_split,
    run_videos,
    saved_recipe,
    select_part,
)
from cycleback.runs.learn import train

__all__ = [
    "CARD_FILE",
    "PRETRAINED",
    "VIDEOS_FILE",
    "choose_device",
    "embed_videos",
    "find_run",
    "load_encoder",
    "published_models",
    "run_split",
    "run_videos",
    "saved_recipe",
    "select_part",
    "train",
]
