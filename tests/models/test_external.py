import torch
from torch import Tensor, nn

from cycleback.models.base import Preprocessing
from cycleback.models.external import ExternalBase, convert_unused_parameters

PLAIN = Preprocessing(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


class Strange(nn.Module):
    """A network with a head that is never called, for pictures of 96 pixels only."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 5, 8, stride=8), nn.Linear(5, 2)
        self.fixed = nn.Parameter(torch.ones(5, 1, 1), requires_grad=False)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] != 96:
            raise RuntimeError("shapes do not fit")
        output: Tensor = self.body(images) + self.fixed
        return output


class StrangeBase(ExternalBase):
    def __init__(self) -> None:
        super().__init__()
        self._set_network(Strange().half(), PLAIN)
        self._probe(patch_pixels=8, image_pixels=96)

    def feature_map(self, images: Tensor) -> Tensor:
        output: Tensor = self.network(images)
        return output


def test_one_picture_shows_channels_and_stride() -> None:
    base = StrangeBase()
    assert (base.channels, base.stride, base.training) == (5, 8, True)
    assert base.network.body.weight.dtype == torch.float32 and base.network.body.weight.grad is None


def test_only_what_the_features_depend_on_is_trained() -> None:
    base = StrangeBase()
    assert {name for name, _ in base.network.named_parameters()} == {"body.weight", "body.bias"}
    assert base.network.state_dict().keys() == Strange().state_dict().keys()


def test_kept_values_do_not_change() -> None:
    network = nn.Linear(2, 3)
    weight = network.weight.detach().clone()
    convert_unused_parameters(network)
    assert torch.equal(network.weight, weight) and not list(network.parameters())
