"""Plan the action of a video: the time of each event, the mishap, and the state in every frame.

The five phases are: before the touch (lead-in, reach), lift and tilt, pour, put back, withdraw (and tail).
Letters: N frames of the video.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.containers import Container
from cycleback.synth.levels import Level
from cycleback.synth.scene import Scene

Array = NDArray[np.float64]  # (N,)

EVENTS = ("hand touches bottle", "liquid starts exiting", "pouring complete", "bottle back on table")
MOVING_PHASES = ("reach", "prepare", "pour", "put_back", "withdraw")
ANOMALIES = ("spill", "missed glass", "hand withdraws")
MIN_FRAMES = 2
MIN_POUR_SECONDS = 0.9  # a spill or a miss takes time to be visible
FALL_SECONDS = 0.10  # from the lip to the glass
CLOSE_SECONDS = 0.13  # fingers close around the bottle, or open
EXTRA_TILT = 0.07  # radians beyond the tilt at which the liquid reaches the lip, at full flow
LIP_OVERHANG = 0.03  # horizontal distance from the lip to the middle of the glass


@dataclass(frozen=True)
class Pace:
    """How progress runs through a phase: early or late (`skew`), and with a pause (a share of the time)."""

    skew: float = 1.0
    pause_at: float = 0.5
    pause_share: float = 0.0

    def warp(self, progress: Array) -> Array:
        """Map progress in [0, 1] to progress in [0, 1], monotonically; 0 and 1 stay."""
        start = self.pause_at * (1 - self.pause_share)
        moving = np.where(progress < start, progress, np.maximum(start, progress - self.pause_share))
        return np.asarray(np.clip(moving / (1 - self.pause_share), 0.0, 1.0) ** self.skew)


@dataclass(frozen=True)
class Detour:
    """The hand lets go after the touch and leaves; it comes back if `returns`. Lengths are in frames."""

    hold: int
    leave: int
    away: int
    come_back: int
    returns: bool

    @property
    def frames(self) -> int:
        """Frames from the touch until the hand is on the bottle again."""
        return self.hold + self.leave + self.away + self.come_back


@dataclass(frozen=True)
class Timeline:
    """Durations in frames, and the pace of each moving phase."""

    fps: float
    lead_in: int
    reach: int
    prepare: int
    pour: int
    put_back: int
    withdraw: int
    tail: int
    paces: dict[str, Pace]
    detour: Detour | None = None

    @property
    def touch(self) -> int:
        """First frame with the hand on the bottle."""
        return self.lead_in + self.reach

    @property
    def grip(self) -> int:
        """First frame of the grip that lifts the bottle: the touch, or the second touch after a detour."""
        return self.touch + (self.detour.frames if self.detour else 0)

    @property
    def start(self) -> int:
        """First frame with liquid outside the bottle."""
        return self.grip + self.prepare

    @property
    def complete(self) -> int:
        """First frame after the pour with no liquid in the air."""
        return self.start + self.pour

    @property
    def back(self) -> int:
        """First frame with the bottle on the table again."""
        return self.complete + self.put_back

    @property
    def pours(self) -> bool:
        """False if the hand leaves for good."""
        return self.detour is None or self.detour.returns

    @property
    def num_frames(self) -> int:
        """Length of the video."""
        if self.detour is not None and not self.detour.returns:
            return self.touch + self.detour.hold + self.detour.leave + self.detour.away
        return self.back + self.withdraw + self.tail

    @property
    def events(self) -> dict[str, int]:
        """Key event -> frame, without events that never happen."""
        frames = (self.touch, self.start, self.complete, self.back)
        return dict(zip(EVENTS, frames if self.pours else frames[:1], strict=False))


def sample_timeline(rng: np.random.Generator, level: Level, *, fps: float) -> Timeline:
    """Sample independent durations until the level allows the length of the whole video."""
    low, high = np.log(np.array(list(level.seconds.values()))).T
    while True:
        seconds = np.exp(low + (high - low) * rng.beta(level.extremes, level.extremes, len(low)))
        if level.total_seconds[0] <= seconds.sum() <= level.total_seconds[1]:
            break
    frames = np.maximum(MIN_FRAMES, np.round(seconds * fps)).astype(int)
    paces = {phase: _sample_pace(rng, level) for phase in MOVING_PHASES}
    return Timeline(fps=fps, paces=paces, **dict(zip(level.seconds, frames.tolist(), strict=True)))


def _sample_pace(rng: np.random.Generator, level: Level) -> Pace:
    skew = float(np.exp(rng.uniform(*np.log(level.skew))))
    pauses = rng.random() < level.pause_chance
    pause_at, share = float(rng.uniform(0.25, 0.75)), float(rng.uniform(0.15, 0.4))
    return Pace(skew=skew, pause_at=pause_at, pause_share=share if pauses else 0.0)


@dataclass(frozen=True)
class Mishap:
    """Something that goes wrong from frame `start` up to, not including, frame `end`.

    The range covers the act itself; a puddle stays in the picture after it. Liquid falls on the bottle's side
    of the glass if `side` is -1, on the far side if it is 1.
    """

    kind: str
    start: int
    end: int
    side: float


def plan_mishap(kind: str, timeline: Timeline, rng: np.random.Generator) -> tuple[Mishap, Timeline]:
    """Sample when `kind` happens; returns it with a timeline that has room for it."""
    if kind == "hand withdraws":
        return _plan_withdrawal(timeline, rng)
    longer = replace(timeline, pour=max(timeline.pour, round(MIN_POUR_SECONDS * timeline.fps)))
    first, last = (0.0, rng.uniform(0.6, 1.0)) if rng.random() < 0.5 else (rng.uniform(0.15, 0.4), 1.0)
    start = longer.start + round(first * longer.pour)
    end = longer.start + max(round(last * longer.pour), 6)
    side = -1.0 if kind == "missed glass" and rng.random() < 0.5 else 1.0
    return Mishap(kind=kind, start=start, end=min(end, longer.complete), side=side), longer


def _plan_withdrawal(timeline: Timeline, rng: np.random.Generator) -> tuple[Mishap, Timeline]:
    seconds = rng.uniform((0.15, 0.3, 0.3, 0.3), (0.5, 0.7, 1.2, 0.7))
    hold, leave, away, come_back = (max(3, round(length * timeline.fps)) for length in seconds)
    returns = bool(rng.random() < 0.5)
    if not returns:
        away, come_back = away + round(0.5 * timeline.fps), 0
    detour = Detour(hold=hold, leave=leave, away=away, come_back=come_back, returns=returns)
    changed = replace(timeline, detour=detour)
    end = changed.grip if returns else changed.num_frames
    return Mishap(kind="hand withdraws", start=changed.touch + hold, end=end, side=-1.0), changed


@dataclass(frozen=True)
class Motion:
    """The state of the scene in each frame; all arrays are (N,)."""

    reach: Array  # 0 the hand is out of the picture, 1 it is at the bottle
    close: Array  # 0 open hand, 1 fingers around the bottle
    base_x: Array  # middle of the bottle's base
    base_y: Array
    tilt: Array  # radians, towards the glass
    bottle: Array  # fill of the bottle, 0 to 1
    fill: Array  # fill of the glass, 0 to 1
    flow: Array  # strength of the stream at the lip, 0 to 1
    head: Array  # how far the front of the stream has fallen: 0 the lip, 1 the surface
    tail: Array  # how far its end has fallen
    astray: Array  # 0 all liquid lands in the glass, 1 all of it lands beside it
    puddle: Array  # liquid on the table, 0 to 1

    @property
    def num_frames(self) -> int:
        """Length of the video."""
        return len(self.fill)


def build_motion(scene: Scene, timeline: Timeline, mishap: Mishap | None = None) -> Motion:
    """Compute the state in every frame; it depends only on the arguments."""
    frames = np.arange(timeline.num_frames, dtype=np.float64)
    reach, close = _move_hand(frames, timeline)
    flow, head, tail = _move_stream(frames, timeline)
    poured = _pour(frames, timeline)
    astray, shift = _miss_glass(frames, mishap, fps=timeline.fps, glass=scene.glass)
    steps = np.diff(poured, prepend=0.0)
    landed, spilt = np.cumsum(steps * (1 - astray)), np.cumsum(steps * astray)  # each can be exactly 0
    liquid = scene.liquid
    volume = liquid.bottle_start + (liquid.bottle_end - liquid.bottle_start) * poured
    base_x, base_y, tilt = _move_bottle(frames, scene, timeline, volume=volume, flow=flow, shift=shift)
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


def _move_hand(frames: Array, timeline: Timeline) -> tuple[Array, Array]:
    """Return `reach` and `close`: the hand comes in, may leave and come again, and leaves at the end."""
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
        second_grip = ramp(frames, timeline.grip - quick / 2, timeline.grip + quick / 2)
        close = np.maximum(close, second_grip * timeline.pours)
    if timeline.pours:
        let_go = timeline.back + min(quick, timeline.withdraw / 3)
        out = timeline.paces["withdraw"].warp(ramp(frames, let_go, timeline.back + timeline.withdraw))
        reach = reach - smooth(out)
        close = close - ramp(frames, timeline.back, let_go)
    return np.clip(reach, 0.0, 1.0), smooth(np.clip(close, 0.0, 1.0))


def _move_stream(frames: Array, timeline: Timeline) -> tuple[Array, Array, Array]:
    """Return `flow`, `head` and `tail`; liquid is in the air from `start` to before `complete`."""
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


def _pour(frames: Array, timeline: Timeline) -> Array:
    """Return the share of the liquid that has left the bottle; it never stops growing during the pour."""
    if not timeline.pours:
        return np.zeros_like(frames)
    progress = ramp(frames, timeline.start, timeline.complete - 1)
    return 0.25 * progress + 0.75 * timeline.paces["pour"].warp(progress)


def _miss_glass(frames: Array, mishap: Mishap | None, *, fps: float, glass: Container) -> tuple[Array, Array]:
    """Return the share of the stream that misses the glass, and how far the lip moves aside for it."""
    if mishap is None or mishap.kind == "hand withdraws":
        return np.zeros_like(frames), np.zeros_like(frames)
    inside = (frames >= mishap.start) & (frames < mishap.end)
    if mishap.kind == "spill":
        return np.where(inside, 0.45, 0.0), np.zeros_like(frames)
    quick = 0.2 * fps
    aside = smooth(ramp(frames, mishap.start - quick, mishap.start))
    back = smooth(ramp(frames, mishap.end - 1, mishap.end + quick))
    return np.where(inside, 1.0, 0.0), (aside - back) * mishap.side * (glass.radius + 0.07)


def _move_bottle(
    frames: Array, scene: Scene, timeline: Timeline, *, volume: Array, flow: Array, shift: Array
) -> tuple[Array, Array, Array]:
    """Return base x, base y and tilt: from the table to over the glass and back.

    Over the glass, the lip stays in place and the tilt follows the liquid, so that it always just runs over.
    """
    if not timeline.pours:
        return np.full_like(frames, scene.bottle_x), np.zeros_like(frames), np.zeros_like(frames)
    out = timeline.paces["prepare"].warp(ramp(frames, timeline.grip, timeline.start))
    home = timeline.paces["put_back"].warp(ramp(frames, timeline.complete - 1, timeline.back))
    lift = smooth(ramp(out, 0.08, 0.85)) - smooth(ramp(home, 0.1, 1.0))
    carry = smooth(ramp(out, 0.2, 0.9)) - smooth(ramp(home, 0.15, 0.9))
    lean = smooth(ramp(out, 0.3, 1.0)) - smooth(ramp(home, 0.0, 0.7))
    volumes = np.linspace(volume.min(), volume.max(), 9)  # a short table: each tilt is a search
    tilts = np.interp(volume, volumes, [scene.bottle.pour_tilt(float(v)) for v in volumes])
    pour_tilt = tilts + EXTRA_TILT * flow
    lip_x, lip_y = scene.bottle.lip
    over_x = scene.glass_x - LIP_OVERHANG - (lip_x * np.cos(pour_tilt) + lip_y * np.sin(pour_tilt))
    over_y = scene.glass.height + scene.pour_gap + lip_x * np.sin(pour_tilt) - lip_y * np.cos(pour_tilt)
    rest_x = np.where(frames < timeline.complete, scene.bottle_x, scene.back_x)
    base_x = rest_x + (over_x - rest_x) * carry + shift
    base_y = np.maximum(over_y, 0.05) * lift
    return base_x, base_y, pour_tilt * lean


def ramp(values: Array, start: float, end: float) -> Array:
    """Rise linearly from 0 at `start` to 1 at `end`: values (N,) -> (N,)."""
    return np.clip((values - start) / max(end - start, 1e-9), 0.0, 1.0)


def smooth(progress: Array) -> Array:
    """Ease in and out: [0, 1] -> [0, 1] with zero speed at both ends."""
    return progress * progress * (3.0 - 2.0 * progress)
