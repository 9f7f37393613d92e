"""Networks of the `transformers` library from this machine, or from the hub where there is one."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from safetensors import SafetensorError
from torch import nn

from cycleback.errors import CheckpointError, require
from cycleback.models.preprocessing import Colour, Preprocessing

FILES = "config.json, model.safetensors and preprocessor_config.json"

FAILURES = (OSError, ValueError, RuntimeError, SafetensorError)  # of a file that is not here, or damaged


@dataclass(frozen=True)
class Pretrained:
    """A network as the library gives it.

    Attributes:
        network: the whole of it, text part included where it has one.
        config: the library's description of it; fits into JSON.
        preprocessing: what the pixels must look like.
        missing: names of tensors its files lack; the library gave them random values.
    """

    network: nn.Module
    config: dict[str, Any]
    preprocessing: Preprocessing
    missing: frozenset[str] = frozenset()


def load_pretrained(model: str) -> Pretrained:
    """The network in the folder `model`, or of that name: from this machine if it is here, or the hub."""
    library, folder = transformers(), Path(model).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or model.startswith(".")):
        raise CheckpointError(f"there is no folder {model} with {FILES}.")
    try:
        return _load(library, str(folder), local_files_only=True)
    except FAILURES as error:
        failure: Exception = error
    if not folder.is_dir() and hub_answers():
        try:
            return _load(library, model, local_files_only=False)
        except FAILURES as error:
            failure = error
    reason = str(failure).splitlines()[0]
    advice = f"Give as model the path of a folder with {FILES}."
    raise CheckpointError(f"cannot load the base {model!r}: {reason} {advice}") from failure


def from_blueprint(blueprint: Mapping[str, Any]) -> Pretrained:
    """The network of a `TransformersBase.blueprint`, with random weights."""
    library = transformers()
    config = library.AutoConfig.for_model(**blueprint["config"])
    preprocessing = Preprocessing.from_dict(blueprint["preprocessing"])
    return Pretrained(library.AutoModel.from_config(config), dict(blueprint["config"]), preprocessing)


def transformers() -> ModuleType:
    """The library, or one line that says how to get it."""
    return require("transformers", extra="bases", purpose="a base of the transformers library")


def hub_answers() -> bool:
    """Whether the hub can be reached; its own library needs half a minute to find out that it cannot."""
    constants = require("huggingface_hub.constants", extra="bases", purpose="the hub")
    if constants.HF_HUB_OFFLINE or getproxies():
        return not constants.HF_HUB_OFFLINE
    try:
        socket.create_connection((urlsplit(constants.ENDPOINT).hostname, 443), timeout=5).close()
    except OSError:
        return False
    return True


def _load(library: ModuleType, model: str, *, local_files_only: bool) -> Pretrained:
    options = {"local_files_only": local_files_only}
    config = library.AutoConfig.from_pretrained(model, **options)
    pixels, _ = library.ImageProcessingMixin.get_image_processor_dict(model, **options)
    preprocessing = read_preprocessing(pixels)
    with _without_bars(library):
        network, report = library.AutoModel.from_pretrained(
            model, config=config, output_loading_info=True, **options
        )
    description = json.loads(config.to_json_string(use_diff=False))
    return Pretrained(network, description, preprocessing, frozenset(report["missing_keys"]))


def read_preprocessing(pixels: Mapping[str, Any]) -> Preprocessing:
    """The pixel scale in what `preprocessor_config.json` says."""
    scale = 255.0 * pixels.get("rescale_factor", 1 / 255) if pixels.get("do_rescale", True) else 255.0
    if not pixels.get("do_normalize", True):
        return Preprocessing(scale, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    if "image_mean" not in pixels or "image_std" not in pixels:
        raise ValueError(f"preprocessor_config.json has no image_mean and image_std, only {sorted(pixels)}.")
    return Preprocessing(scale, mean=_colour(pixels["image_mean"]), std=_colour(pixels["image_std"]))


def _colour(value: Any) -> Colour:
    """One number a colour, from three or from one for all."""
    red, green, blue = value if isinstance(value, list | tuple) else (value,) * 3
    return float(red), float(green), float(blue)


@contextmanager
def _without_bars(library: ModuleType) -> Iterator[None]:
    """No progress bars of the library inside the block: a caller may be drawing its own."""
    logging = library.utils.logging
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
