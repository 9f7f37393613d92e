"""Draw the hand and the arm: an open hand comes in, and its fingers close around the bottle.

Part of the hand is behind the bottle and part in front of it, so it is drawn in two steps.
"""

from dataclasses import dataclass

import numpy as np

from cycleback.synth.containers import Points, rotate
from cycleback.synth.drawing import Canvas
from cycleback.synth.palette import RGB, darker, lighter
from cycleback.synth.scene import Scene

FINGERS = 4
FINGER_RADIUS = 0.0142
OPEN_LENGTH = 0.115  # a stretched finger
PALM = 0.05
WRIST = 0.115  # from the bottle's side to the wrist
ARM = 1.0  # from the wrist to the elbow, out of the picture
AWAY = 0.85  # distance of a withdrawn hand from the bottle

Stroke = tuple[tuple[float, float], tuple[float, float], float]  # start, end, radius, in the fingers' frame


@dataclass(frozen=True)
class HandPose:
    """Position of the hand."""

    middle: Points  # (2,), of the grip
    fingers: float  # angle
    wrist: float  # angle
    radius: float  # of the bottle at the grip
    close: float  # 0 open, 1 closed

    def to_world(self, points: Points) -> Points:
        """Map points (K, 2) from the frame of the fingers to the world."""
        return rotate(points, self.fingers) + self.middle


def pose_hand(scene: Scene, *, base: Points, tilt: float, reach: float, close: float) -> HandPose:
    """Place the hand on the bottle if `reach` is 1, or away from it along the entry direction."""
    bottle = scene.bottle
    height = scene.hand.grip_height * bottle.height
    angle = scene.hand.entry_angle
    grip = rotate(np.array([[0.0, height]]), tilt)[0] + base
    away = np.array([-np.cos(angle), np.sin(angle)]) * AWAY * (1 - reach)
    turned = tilt + angle * 0.8 * (1 - reach) - 0.1 * (1 - close)
    wrist = 0.55 * tilt + angle * (0.8 - 0.3 * close)
    return HandPose(
        middle=grip + away, fingers=turned, wrist=wrist, radius=float(bottle.radius_at(height)), close=close
    )


def draw_hand_back(canvas: Canvas, scene: Scene, pose: HandPose) -> None:
    """Draw the arm, the palm, and the fingers or thumb behind the bottle."""
    size, skin = scene.hand.size, scene.hand.colour
    palm = pose.to_world(np.array([[-pose.radius - 0.012, 0.0]]))[0]
    back = rotate(np.array([[-WRIST * size, 0.0]]), pose.wrist)[0]
    wrist = palm + back
    elbow = wrist + back / np.hypot(*back) * ARM
    canvas.capsule(wrist, palm, (0.037 * size, (PALM + 0.004) * size), darker(skin, 0.28))
    _draw_arm(canvas, scene, wrist=wrist, elbow=elbow)
    fingers_in_front = scene.hand.grip == "fingers"
    far = [_thumb(pose, size, across=0.9)] if fingers_in_front else _fingers(pose, size, wrapped=1.12)
    _draw_strokes(canvas, pose, far, colour=darker(skin, 0.12), size=size)
    canvas.capsule(wrist, palm, (0.033 * size, PALM * size), skin)
    if not fingers_in_front:
        canvas.capsule(wrist, palm, (0.018 * size, 0.03 * size), lighter(skin, 0.08))


def draw_hand_front(canvas: Canvas, scene: Scene, pose: HandPose) -> None:
    """Draw the fingers or the thumb in front of the bottle."""
    size = scene.hand.size
    fingers_in_front = scene.hand.grip == "fingers"
    near = _fingers(pose, size, wrapped=0.62) if fingers_in_front else [_thumb(pose, size, across=0.45)]
    _draw_strokes(canvas, pose, near, colour=scene.hand.colour, size=size)


def _fingers(pose: HandPose, size: float, *, wrapped: float) -> list[Stroke]:
    """Place four fingers side by side along the bottle; they shorten as they wrap around it."""
    strokes: list[Stroke] = []
    for finger in range(FINGERS):
        place = (1.5 - finger) * 2 * FINGER_RADIUS * 0.96 * size
        stretched = OPEN_LENGTH * size * (0.86, 1.0, 0.97, 0.8)[finger]
        knuckle = -pose.radius - 0.004
        tip = knuckle + stretched + pose.close * (pose.radius * (1 + wrapped) + 0.004 - stretched)
        fan = (1 - pose.close) * (1.5 - finger) * 0.012
        strokes.append(((knuckle, place), (tip, place + fan), FINGER_RADIUS))
    return strokes


def _thumb(pose: HandPose, size: float, *, across: float) -> Stroke:
    start = (-pose.radius - 0.02 * size, 0.03 * size)
    open_end = np.array([-pose.radius + 0.035 * size, 0.105 * size])
    closed_end = np.array([pose.radius * across, 0.035 * size])
    end = open_end + pose.close * (closed_end - open_end)
    return (start, (float(end[0]), float(end[1])), 0.018)


def _draw_strokes(canvas: Canvas, pose: HandPose, strokes: list[Stroke], *, colour: RGB, size: float) -> None:
    for start, end, thickness in strokes:
        radius = thickness * size
        first, last = pose.to_world(np.array([start, end]))
        canvas.capsule(first, last, (radius * 1.16, radius * 1.1), darker(colour, 0.32), count=5)
        canvas.capsule(first, last, (radius, radius * 0.9), colour, count=5)


def _draw_arm(canvas: Canvas, scene: Scene, *, wrist: Points, elbow: Points) -> None:
    """Draw the bare forearm and the sleeve, each with a darker lower edge, and the watch."""
    size, skin, sleeve = scene.hand.size, scene.hand.colour, scene.hand.sleeve
    along = (elbow - wrist) / ARM
    across = np.array([along[1], -along[0]])
    across = across if across[1] < 0 else -across
    cuff = wrist + along * scene.hand.sleeve_start
    canvas.capsule(wrist, elbow, (0.036 * size, 0.06 * size), darker(skin, 0.28))
    canvas.capsule(wrist - across * 0.003, elbow, (0.033 * size, 0.055 * size), skin)
    if scene.hand.watch:
        strap = (wrist + along * 0.036, wrist + along * 0.058)
        _draw_band(canvas, strap, across=across, widths=(0.038 * size, 0.039 * size), colour=(40, 40, 46))
    shadow = darker(sleeve, 0.3)
    _draw_band(canvas, (cuff, elbow), across=across, widths=(0.047 * size, 0.085 * size), colour=shadow)
    shifted = (cuff - across * 0.006, elbow - across * 0.006)
    _draw_band(canvas, shifted, across=across, widths=(0.041 * size, 0.075 * size), colour=sleeve)
    hem = (cuff, cuff + along * 0.016)
    _draw_band(canvas, hem, across=across, widths=(0.049 * size, 0.05 * size), colour=lighter(sleeve, 0.18))


def _draw_band(
    canvas: Canvas, ends: tuple[Points, Points], *, across: Points, widths: tuple[float, float], colour: RGB
) -> None:
    """Draw a straight band between two points."""
    (first, last), (narrow, wide) = ends, widths
    corners = [first - across * narrow, first + across * narrow, last + across * wide, last - across * wide]
    canvas.polygon(np.array(corners), colour)
