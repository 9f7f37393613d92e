from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cycleback.synth import plan_take
from cycleback.synth.drawing import Canvas, view_matrix
from cycleback.synth.props import MOVERS, PROPS, draw_mover, draw_props
from cycleback.synth.scene import MOVER_KINDS, PROP_KINDS, Mover, Prop

SCENE = plan_take(2).scene
AROUND = SCENE.surroundings


def blank() -> Canvas:
    return Canvas(Image.new("RGB", (120, 120), (90, 90, 90)), view_matrix(SCENE.camera, 120))


def changed(canvas: Canvas) -> np.ndarray:
    return (np.asarray(canvas.image) != 90).any(axis=-1)


@pytest.mark.parametrize("kind", PROP_KINDS)
def test_a_prop_stands_where_it_is_put(kind: str) -> None:
    prop = Prop(kind=kind, x=0.2, depth=0.1, size=1.0, colour=(200, 50, 50), second_colour=(50, 200, 50))
    canvas = blank()
    draw_props(canvas, replace(SCENE, surroundings=replace(AROUND, props=(prop,))))
    columns = np.flatnonzero(changed(canvas).any(axis=0))
    assert 60 < columns.mean() < 110 and len(columns) < 50


@pytest.mark.parametrize("kind", MOVER_KINDS)
def test_a_mover_moves_over_its_period(kind: str) -> None:
    mover = Mover(kind=kind, colour=(200, 50, 50), period=2.0, phase=0.9, x=0.0)
    pictures = []
    for seconds in (0.0, 0.7):
        canvas = blank()
        draw_mover(canvas, SCENE, mover, seconds=seconds)
        assert changed(canvas).any()
        pictures.append(np.asarray(canvas.image))
    assert (pictures[0] != pictures[1]).any()


def test_every_kind_that_can_be_drawn_by_lot_exists() -> None:
    assert set(PROPS) == set(PROP_KINDS) and set(MOVERS) == set(MOVER_KINDS)
