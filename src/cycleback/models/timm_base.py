"""Any image network of the `timm` library as a base.

Shapes: N images, H W pixels, F feature channels, h w feature map.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models.base import Preprocessing
from cycleback.models.external import ExternalBase

ANY_SIZE: tuple[dict[str, bool], ...] = (  # options by which families of networks accept any image size
    {"strict_img_size": False},
    {"dynamic_img_size": True, "dynamic_img_pad": True},
    {},
)


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
    except OSError as error:
        reason, advice = str(error).splitlines()[0], "Pass the path of its file as weights."
        raise CheckpointError(f"cannot load the timm model {model!r}: {reason} {advice}") from error
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"cannot load the timm model {model!r}: {str(error).splitlines()[0]}"
        ) from error


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
