"""Networks of other libraries as bases: any image network of timm, any vision network of transformers.

Shapes: N images, H W pixels, F feature channels, h w feature map.
"""

import inspect
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError, require
from cycleback.models.base import Base, Colour, Normalize, Preprocessing
from cycleback.models.embedder import eval_mode

PROBE_PIXELS = 64  # side of the image that is run through a new network to learn its output shape
ANY_SIZE: tuple[dict[str, bool], ...] = (  # options by which families of networks accept any image size
    {"strict_img_size": False},
    {"dynamic_img_size": True, "dynamic_img_pad": True},
    {},
)
DEFAULT_MODEL = "facebook/dinov2-small"
TRAITS = ("model_type", "hidden_act", "num_attention_heads", "patch_size")  # not visible in the weights
FILES = "config.json, model.safetensors and preprocessor_config.json"
LOAD_ERRORS = (OSError, ValueError, RuntimeError, SafetensorError)  # of a missing or damaged file


class ExternalBase(Base):
    """A base around the `network` of another library; `feature_map` says how to call it."""

    network: nn.Module
    preprocessing: Preprocessing

    def _set_network(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        self.network, self.preprocessing = network.float().train(), preprocessing
        self.preprocess = Normalize(preprocessing)

    def _probe(self, *, patch_pixels: int, image_pixels: int) -> None:
        """Learn channels and stride from one image, and exclude weights without influence from training.

        The side of an image is a multiple of `patch_pixels`; the network was trained with `image_pixels`.
        """
        size = -(-PROBE_PIXELS // patch_pixels) * patch_pixels
        with torch.enable_grad():
            try:
                features = self._run_gray(size, size)
            except (RuntimeError, ValueError, AssertionError):  # a few networks accept one image size only
                size = image_pixels
                features = self._run_gray(size, size)
            features.sum().backward()  # type: ignore[no-untyped-call]
        self.channels, self.stride = features.shape[1], size // features.shape[2]
        convert_unused_parameters(self.network)
        self.zero_grad(set_to_none=True)

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """The size (h, w) of the feature map, measured: each kind of network rounds in its own way."""
        with torch.no_grad():
            features = self._run_gray(height, width)
        return features.shape[2], features.shape[3]

    def _run_gray(self, height: int, width: int) -> Tensor:
        """The features of one gray image."""
        image = torch.full((1, 3, height, width), 0.5, device=self.preprocess.shift.device)
        with eval_mode(self):
            features: Tensor = self(image)
        return features

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features."""
        return {"preprocessing": asdict(self.preprocessing)}


def convert_unused_parameters(network: nn.Module) -> None:
    """Turn each parameter without a gradient into a buffer of the same name.

    The features do not depend on it: it belongs to a head, to a later stage, or to masked images.
    """
    for name, parameter in list(network.named_parameters()):
        if parameter.grad is None:
            parent, _, child = name.rpartition(".")
            module = network.get_submodule(parent)
            delattr(module, child)
            module.register_buffer(child, parameter.detach())


class TimmBase(ExternalBase):
    """A timm network up to one of its stages, with its own weights and preprocessing.

    Args:
        model: timm's name, such as "resnet18.a1_in1k" (`timm.list_models("*", pretrained=True)`).
        stage: the stage that gives the features; -1 is the last, -2 often has stride 16.
        weights: "pretrained" (from the hub or its local cache), the path of a file with timm's names, or ""
            or None for random weights.
    """

    def __init__(self, *, model: str, stage: int = -1, weights: str | Path | None = "pretrained") -> None:
        super().__init__()
        if not model:
            raise ValueError("the base 'timm' needs the name of a model, such as 'resnet18.a1_in1k'")
        network = _create(_timm(), model, stage=stage, weights=weights or None)
        pixels: Mapping[str, Any] = network.pretrained_cfg  # type: ignore[assignment]
        self._set_network(network, Preprocessing.from_dict({"scale": 1.0, **pixels}))
        self.model, self.stage = model, stage
        info: Any = network.feature_info
        (self.channels,), (stride,) = info.channels(), info.reduction()
        self._probe(patch_pixels=stride, image_pixels=pixels["input_size"][-1])

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features."""
        return {"model": self.model.partition(".")[0], "stage": self.stage, **super().traits}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """Build the same network for weights that are loaded later."""
        return cls(**{**options, "weights": None})

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.network(images)[0]
        has_channels_last = output.shape[1] != self.channels  # in some networks
        return output.movedim(-1, 1) if has_channels_last else output


def _timm() -> ModuleType:
    try:
        return import_module("timm")
    except ImportError as error:
        raise MissingDependencyError("the base 'timm' needs timm: pip install timm") from error
    except RuntimeError as error:  # torchvision, which timm imports, was built for another torch
        reason = str(error).splitlines()[0]
        raise MissingDependencyError(f"timm needs a torchvision that fits this torch: {reason}") from error


def _create(library: ModuleType, model: str, *, stage: int, weights: str | Path | None) -> nn.Module:
    options: dict[str, Any] = {"features_only": True, "out_indices": (stage,)}
    options["pretrained"] = weights is not None
    if weights is not None and weights != "pretrained":
        if not Path(weights).is_file():
            raise CheckpointError(f"weights file {weights} does not exist.")
        options["pretrained_cfg_overlay"] = {"file": str(weights)}
    try:
        return _create_for_any_size(library, model, options)
    except IndexError as error:
        raise ValueError(f"{model} has no stage {stage}") from error
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        advice = " Pass the path of its file as weights." if isinstance(error, OSError) else ""
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"cannot load the timm model {model!r}: {reason}{advice}") from error


def _create_for_any_size(library: ModuleType, model: str, options: dict[str, Any]) -> nn.Module:
    """Try the options of `ANY_SIZE` in turn: timm cannot tell which ones a network accepts."""
    refusal = TypeError()
    for any_size in ANY_SIZE:
        try:
            network: nn.Module = library.create_model(model, **options, **any_size)
            return network
        except TypeError as error:
            refusal = error
    raise refusal


@dataclass(frozen=True)
class Pretrained:
    """A network of the library."""

    network: nn.Module  # all of it, with the text part where it has one
    config: dict[str, Any]  # the library's configuration, as JSON values
    preprocessing: Preprocessing
    missing: frozenset[str] = frozenset()  # tensors that its files lack; their values are random


class TransformersBase(ExternalBase):
    """A network such as DINOv2, ViT, SigLIP or CLIP, with its own weights and preprocessing.

    The features come from its last layer. Tokens of the whole image (class, registers) are dropped, the patch
    tokens are laid out as a feature map. Weights that do not influence them are never trained.

    Args:
        model: name on the hub, or a folder with the files that the library's `save_pretrained` writes; "" for
            the default. The hub is asked only for files that are not on this machine.
        blueprint: build this network instead, with random weights (see `rebuild`).
    """

    def __init__(self, *, model: str = DEFAULT_MODEL, blueprint: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        model = model or DEFAULT_MODEL
        source = load_pretrained(model) if blueprint is None else _build_from_blueprint(blueprint)
        self._set_network(getattr(source.network, "vision_model", source.network), source.preprocessing)
        self.config = source.config
        vision = self.config.get("vision_config") or self.config
        self._traits = {name: vision.get(name) for name in TRAITS}
        self.patch_pixels, self.merges_patches = _side(vision.get("patch_size") or 1), "depths" in vision
        takes = inspect.signature(self.network.forward).parameters
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes else {}
        image_pixels = _side(vision.get("image_size") or PROBE_PIXELS)
        self._probe(patch_pixels=self.patch_pixels, image_pixels=image_pixels)
        _require_trained(model, source, self.network)

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features."""
        return {**self._traits, **super().traits}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The library's own configuration of the network, and its preprocessing."""
        return {"config": self.config, "preprocessing": asdict(self.preprocessing)}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """Build the same network for weights that are loaded later, without the hub or the folder."""
        return cls(**{**options, "blueprint": blueprint})

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.network(pixel_values=images, **self._options).last_hidden_state
        if output.ndim == 4:
            return output
        height, width = self._patch_counts(output.shape[1], images.shape[-2:])
        patches = output[:, -height * width :]  # tokens of the whole image come first
        return torch.unflatten(patches.mT, 2, (height, width))

    def _patch_counts(self, tokens: int, pixels: torch.Size) -> tuple[int, int]:
        """The rows and columns of patches in `tokens` tokens."""
        height, width = (side // self.patch_pixels for side in pixels)
        while self.merges_patches and height * width > tokens:
            height, width = -(-height // 2), -(-width // 2)
        if height * width > tokens:
            raise CheckpointError(f"the base drops patches: {tokens} tokens for {height} x {width} patches")
        return height, width


def _side(size: Any) -> int:
    """Pixels per side, from one number or a pair."""
    return int(size[0] if isinstance(size, list | tuple) else size)


def _require_trained(model: str, source: Pretrained, network: nn.Module) -> None:
    """Refuse random weights that the library filled in for tensors missing from the files."""
    prefix = "" if network is source.network else "vision_model."
    used = {prefix + name for name, _ in network.named_parameters()}
    if untrained := sorted(source.missing & used):
        names = f"{untrained[0]} and {len(untrained) - 1} more" if len(untrained) > 1 else untrained[0]
        raise CheckpointError(f"the base {model!r} has no weights for {names}. Download it again.")


def load_pretrained(model: str) -> Pretrained:
    """Load the network in the folder `model`, or of that name: from this machine, else from the hub."""
    library, folder = _transformers(), Path(model).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or model.startswith(".")):
        raise CheckpointError(f"folder {model} does not exist; expected one with {FILES}.")
    try:
        return _load(library, str(folder), local_files_only=True)
    except LOAD_ERRORS as error:
        failure: Exception = error
    if not folder.is_dir() and hub_answers():
        try:
            return _load(library, model, local_files_only=False)
        except LOAD_ERRORS as error:
            failure = error
    reason = str(failure).splitlines()[0]
    advice = f"Pass as model the path of a folder with {FILES}."
    raise CheckpointError(f"cannot load the base {model!r}: {reason} {advice}") from failure


def _build_from_blueprint(blueprint: Mapping[str, Any]) -> Pretrained:
    """Build the network of a `TransformersBase.blueprint`, with random weights."""
    library = _transformers()
    config = library.AutoConfig.for_model(**blueprint["config"])
    preprocessing = Preprocessing.from_dict(blueprint["preprocessing"])
    return Pretrained(library.AutoModel.from_config(config), dict(blueprint["config"]), preprocessing)


def _transformers() -> ModuleType:
    return require("transformers", extra="bases", purpose="the base 'transformers'")


def hub_answers() -> bool:
    """Whether the hub can be reached. Its own library needs half a minute to find out that it cannot."""
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
    with _hide_progress_bars(library):
        network, report = library.AutoModel.from_pretrained(
            model, config=config, output_loading_info=True, **options
        )
    description = json.loads(config.to_json_string(use_diff=False))
    return Pretrained(network, description, preprocessing, frozenset(report["missing_keys"]))


def read_preprocessing(pixels: Mapping[str, Any]) -> Preprocessing:
    """Read the preprocessing from the content of `preprocessor_config.json`."""
    scale = 255.0 * pixels.get("rescale_factor", 1 / 255) if pixels.get("do_rescale", True) else 255.0
    if not pixels.get("do_normalize", True):
        return Preprocessing(scale, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    if "image_mean" not in pixels or "image_std" not in pixels:
        raise ValueError(f"preprocessor_config.json has no image_mean and image_std, only {sorted(pixels)}.")
    return Preprocessing(scale, mean=_colour(pixels["image_mean"]), std=_colour(pixels["image_std"]))


def _colour(value: Any) -> Colour:
    """One number per colour, from three numbers or from one for all."""
    red, green, blue = value if isinstance(value, list | tuple) else (value,) * 3
    return float(red), float(green), float(blue)


@contextmanager
def _hide_progress_bars(library: ModuleType) -> Iterator[None]:
    """Hide the library's progress bars inside the block: the caller may draw its own."""
    logging = library.utils.logging
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
