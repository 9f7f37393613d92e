"""What every frame shows, as numbers: hand, bottle, stream and liquid over time.

Letters: N frames of the video. All arrays are (N,).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.containers import Container
from cycleback.synth.mishaps import Mishap
from cycleback.synth.scene import Scene
from cycleback.synth.timeline import Timeline, ramp, smooth, window

Array = NDArray[np.float64]

FALL_SECONDS = 0.10  # from the lip to the glass
CLOSE_SECONDS = 0.13  # fingers close around the bottle, or open
EXTRA_TILT = 0.07  # radians beyond the tilt at which the liquid reaches the lip, at full flow
LIP_OVERHANG = 0.03  # the lip stays this far short of the middle of the glass


@dataclass(frozen=True)
class Motion:
    """The state of the scene in each frame."""

    reach: Array  # 0 the hand is out of the picture, 1 it is at the bottle
    close: Array  # 0 open hand, 1 fingers around the bottle
    base_x: Array  # middle of the bottle's base
    base_y: Array
    tilt: Array  # radians, towards the glass
    bottle: Array  # share of the bottle that is full
    fill: Array  # share of the glass that is full
    flow: Array  # strength of the stream at the lip, 0 to 1
    head: Array  # how far the front of the stream has fallen, 0 the lip, 1 the surface
    tail: Array  # how far its end has fallen
    astray: Array  # 0 all liquid lands in the glass, 1 all of it beside
    puddle: Array  # liquid on the table, 0 to 1

    @property
    def num_frames(self) -> int:
        """Length of the video."""
        return len(self.fill)


def build_motion(scene: Scene, timeline: Timeline, mishap: Mishap | None = None) -> Motion:
    """All arrays of a take; pure in its arguments."""
    frames = np.arange(timeline.num_frames, dtype=np.float64)
    reach, close = hand_motion(frames, timeline)
    flow, head, tail = stream_motion(frames, timeline)
    poured = _poured(frames, timeline)
    astray, shift = _astray(frames, mishap, fps=timeline.fps, glass=scene.glass)
    steps = np.diff(poured, prepend=0.0)
    landed, spilt = np.cumsum(steps * (1 - astray)), np.cumsum(steps * astray)  # each can be exactly 0
    liquid = scene.liquid
    volume = liquid.bottle_start + (liquid.bottle_end - liquid.bottle_start) * poured
    base_x, base_y, tilt = bottle_motion(frames, scene, timeline, volume=volume, flow=flow, shift=shift)
    return Motion(
        reach=reach,
        close=close,
        base_x=base_x,
        base_y=base_y,
        tilt=tilt,
        bottle=volume,
        fill=liquid.glass_start + (liquid.glass_final - liquid.glass_start) * landed,
        flow=flow,
        head=head,
        tail=tail,
        astray=astray * (flow > 0),
        puddle=spilt,
    )


def hand_motion(frames: Array, timeline: Timeline) -> tuple[Array, Array]:
    """`reach` and `close`: in, perhaps out and in again, and out at the end."""
    quick = CLOSE_SECONDS * timeline.fps
    reach = smooth(timeline.paces["reach"].warp(ramp(frames, timeline.lead_in, timeline.touch)))
    close = ramp(frames, timeline.touch - quick / 2, timeline.touch + quick / 2)
    if timeline.detour is not None:
        leave = timeline.touch + timeline.detour.hold
        gone, again = leave + timeline.detour.leave, timeline.grip - timeline.detour.come_back
        away = smooth(ramp(frames, leave, gone))
        if timeline.detour.returns:
            away = away - smooth(ramp(frames, again, timeline.grip))
        reach = reach - away
        close = close * (1 - ramp(frames, leave - quick, leave))
        close = np.maximum(
            close, ramp(frames, timeline.grip - quick / 2, timeline.grip + quick / 2) * timeline.pours
        )
    if timeline.pours:
        let_go = timeline.back + min(quick, timeline.withdraw / 3)
        out = timeline.paces["withdraw"].warp(ramp(frames, let_go, timeline.back + timeline.withdraw))
        reach = reach - smooth(out)
        close = close - ramp(frames, timeline.back, let_go)
    return np.clip(reach, 0.0, 1.0), smooth(np.clip(close, 0.0, 1.0))


def stream_motion(frames: Array, timeline: Timeline) -> tuple[Array, Array, Array]:
    """`flow`, `head` and `tail`: something is in the air from the start to before the end of the pour."""
    if not timeline.pours:
        return np.zeros_like(frames), np.zeros_like(frames), np.zeros_like(frames)
    fall = max(2.0, FALL_SECONDS * timeline.fps)
    head = ramp(frames, timeline.start - 1, timeline.start - 1 + fall)
    tail = ramp(frames, timeline.complete - fall, timeline.complete)
    swell = ramp(frames, timeline.start - 1, timeline.start + 2 * fall)
    fade = 1 - ramp(frames, timeline.complete - 2 * fall, timeline.complete)
    inside = (frames >= timeline.start) & (frames < timeline.complete)
    flow = np.where(inside, 0.35 + 0.65 * np.minimum(swell, fade), 0.0)
    return flow, head, tail


def _poured(frames: Array, timeline: Timeline) -> Array:
    """Share of the pour that is over, 0 to 1; the pour's pace bends it but never stops the stream."""
    if not timeline.pours:
        return np.zeros_like(frames)
    progress = ramp(frames, timeline.start, timeline.complete - 1)
    return 0.25 * progress + 0.75 * timeline.paces["pour"].warp(progress)


def _astray(frames: Array, mishap: Mishap | None, *, fps: float, glass: Container) -> tuple[Array, Array]:
    """Share of the stream that misses the glass, and how far the lip is moved to the side for it."""
    if mishap is None or mishap.kind == "hand withdraws":
        return np.zeros_like(frames), np.zeros_like(frames)
    quick = 0.2 * fps
    inside = (frames >= mishap.start) & (frames < mishap.end)
    if mishap.kind == "spill":
        return np.where(inside, 0.45, 0.0), np.zeros_like(frames)
    moved = smooth(ramp(frames, mishap.start - quick, mishap.start)) - smooth(
        ramp(frames, mishap.end - 1, mishap.end + quick)
    )
    distance = glass.radius + 0.07
    return np.where(inside, 1.0, 0.0), moved * mishap.side * distance


def bottle_motion(
    frames: Array, scene: Scene, timeline: Timeline, *, volume: Array, flow: Array, shift: Array
) -> tuple[Array, Array, Array]:
    """Base x, base y and tilt: from the table to over the glass and back.

    Over the glass the lip stays in place and the tilt follows the liquid, so that it always just runs over.
    """
    if not timeline.pours:
        return np.full_like(frames, scene.bottle_x), np.zeros_like(frames), np.zeros_like(frames)
    out = timeline.paces["prepare"].warp(ramp(frames, timeline.grip, timeline.start))
    home = timeline.paces["put_back"].warp(ramp(frames, timeline.complete - 1, timeline.back))
    lift = window(out, (0.08, 0.85)) - window(home, (0.1, 1.0))
    carry = window(out, (0.2, 0.9)) - window(home, (0.15, 0.9))
    lean = window(out, (0.3, 1.0)) - window(home, (0.0, 0.7))
    pour_tilt = _pour_tilts(scene.bottle, volume) + EXTRA_TILT * flow
    lip_x, lip_y = scene.bottle.lip
    over_x = scene.glass_x - LIP_OVERHANG - (lip_x * np.cos(pour_tilt) + lip_y * np.sin(pour_tilt))
    over_y = scene.glass.height + scene.pour_gap + lip_x * np.sin(pour_tilt) - lip_y * np.cos(pour_tilt)
    rest_x = np.where(frames < timeline.complete, scene.bottle_x, scene.back_x)
    base_x = rest_x + (over_x - rest_x) * carry + shift
    base_y = np.maximum(over_y, 0.05) * lift
    return base_x, base_y, pour_tilt * lean


def _pour_tilts(bottle: Container, volume: Array) -> Array:
    """The tilt at which each volume (N,) reaches the lip, from a short table."""
    volumes = np.linspace(volume.min(), volume.max(), 9)
    return np.interp(volume, volumes, [bottle.pour_tilt(float(v)) for v in volumes])
