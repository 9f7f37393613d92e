import pytest
import torch
from torch import Tensor

from cycleback.models import Base, EfficientNetLite0, ResNet50, SmallBase, VGGMBase
from cycleback.models.gpu_base import GpuBase

BASES = {
    "resnet50 v1": lambda: ResNet50(weights=None, layer="layer2[1]", strides="v1"),
    "resnet50": lambda: ResNet50(weights=None, layer="layer2[1]", strides="torchvision"),
    "efficientnet_lite0": lambda: EfficientNetLite0(block=4),
    "vggm": VGGMBase,
    "small": lambda: SmallBase(width=4),
}


def trained(base: Base) -> Base:
    """The base with BatchNorm statistics that are not the first ones."""
    base.train()
    with torch.no_grad():
        base(torch.rand(4, 3, 64, 64))
    return base.eval()


def relative_error(values: Tensor, reference: Tensor) -> float:
    return ((values - reference).norm() / reference.norm()).item()


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("shape", [(64, 64), (57, 70)])
def test_the_rewritten_base_gives_the_same_features(name: str, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    base = trained(BASES[name]())
    images = torch.randint(0, 256, (2, 3, *shape), dtype=torch.uint8)
    expected = base(images / 255).detach()
    for frames in (images, images / 255, images.contiguous(memory_format=torch.channels_last)):
        assert relative_error(GpuBase(base, dtype=torch.float32)(frames), expected) < 1e-5


def test_in_bfloat16_it_stays_near_the_base(picture: Tensor) -> None:
    base = EfficientNetLite0().eval()
    assert relative_error(GpuBase(base)(picture).float(), base(picture).detach()) < 0.05


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", BASES)
def test_on_a_gpu_it_gives_what_a_cpu_gives(name: str) -> None:
    torch.manual_seed(0)
    base = trained(BASES[name]())
    images = torch.randint(0, 256, (2, 3, 96, 96), dtype=torch.uint8)
    features = GpuBase(base.cuda())(images.cuda())
    assert features.dtype == torch.bfloat16
    assert relative_error(features.float().cpu(), base.cpu()(images / 255).detach()) < 0.03
