from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cycleback.synth import plan_take
from cycleback.synth.containers import BOTTLE_SHAPES, GLASS_SHAPES, Container
from cycleback.synth.drawing import Canvas, view_matrix
from cycleback.synth.scene import Scene
from cycleback.synth.vessels import draw_bottle, draw_glass_back, draw_glass_front

SCENE = plan_take(2).scene
RED = replace(SCENE, liquid=replace(SCENE.liquid, colour=(255, 0, 0), opacity=1.0), label_colour=None)


def red_pixels(scene: Scene, *, fill: float = 0.0, volume: float = 0.0, tilt: float = 0.0) -> int:
    canvas = Canvas(Image.new("RGB", (160, 160), (128, 128, 128)), view_matrix(scene.camera, 160))
    draw_glass_back(canvas, scene, fill=fill)
    draw_glass_front(canvas, scene, fill=fill)
    draw_bottle(canvas, scene, base=np.array([-0.2, 0.1]), tilt=tilt, volume=volume)
    red, green, _ = np.asarray(canvas.image).astype(int).transpose(2, 0, 1)
    return int((red > green + 60).sum())


@pytest.mark.parametrize("kind", GLASS_SHAPES)
def test_a_fuller_glass_shows_more_liquid(kind: str) -> None:
    scene = replace(RED, glass=Container(kind=kind, height=0.2, radius=0.075))
    shown = [red_pixels(scene, fill=fill) for fill in (0.0, 0.3, 0.6, 0.9)]
    assert shown[0] == 0 and (np.diff(shown) > 40).all()


@pytest.mark.parametrize("kind", BOTTLE_SHAPES)
@pytest.mark.parametrize("tilt", [0.0, 1.2])
def test_a_fuller_bottle_shows_more_liquid(kind: str, tilt: float) -> None:
    scene = replace(RED, bottle=Container(kind=kind, height=0.4, radius=0.07))
    shown = [red_pixels(scene, volume=volume, tilt=tilt) for volume in (0.1, 0.4, 0.8)]
    assert (np.diff(shown) > 40).all()


def test_liquid_in_a_lying_bottle_keeps_its_amount_in_the_picture() -> None:
    upright, tilted = red_pixels(RED, volume=0.5), red_pixels(RED, volume=0.5, tilt=1.3)
    assert tilted == pytest.approx(upright, rel=0.25)
