"""Plan and render one take of the Pouring action: frames, sound and ground truth.

Letters: N frames of the video, H W pixels of a frame.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.backdrop import draw_backdrop
from cycleback.synth.containers import Points, rotate
from cycleback.synth.drawing import Canvas, shake_matrices, translate, view_matrix
from cycleback.synth.hand import draw_hand_back, draw_hand_front, pose_hand
from cycleback.synth.levels import LEVELS
from cycleback.synth.motion import (
    ANOMALIES,
    Mishap,
    Motion,
    Timeline,
    build_motion,
    plan_mishap,
    sample_timeline,
)
from cycleback.synth.props import draw_mover, draw_props
from cycleback.synth.scene import Light, Scene, sample_scene
from cycleback.synth.sound import CLICKS, PITCH_FORMULA, audible_pitch, pipe_metres, synthesise
from cycleback.synth.vessels import (
    TABLE_LANDING,
    draw_bottle,
    draw_glass_back,
    draw_glass_front,
    draw_puddle,
    draw_shadow,
    draw_splash,
    draw_stream,
)
from cycleback.video import Audio

if TYPE_CHECKING:
    from PIL import Image

MIN_SIZE = 48
MIN_FPS = 10.0
MARGIN = 0.06  # border around the backdrop as a share of the picture, for the shake
NOISE_FRAMES = 7  # different sheets of sensor noise


@dataclass(frozen=True)
class Take:
    """The plan of a video: everything except pixels and sound."""

    seed: int
    level: str
    fps: float
    scene: Scene
    timeline: Timeline
    motion: Motion
    mishap: Mishap | None

    @property
    def num_frames(self) -> int:
        """Length of the video."""
        return self.timeline.num_frames

    @property
    def events(self) -> dict[str, int]:
        """Key event -> frame."""
        return self.timeline.events

    @property
    def clicks(self) -> dict[str, float]:
        """Key event that clicks -> seconds."""
        return {event: frame / self.fps for event, frame in self.events.items() if event in CLICKS}

    @property
    def anomaly_range(self) -> tuple[int, int] | None:
        """First and last frame in which something goes wrong."""
        return None if self.mishap is None else (self.mishap.start, self.mishap.end - 1)

    @property
    def pitch(self) -> NDArray[np.float64]:
        """Pitch (N,) of the pour in Hz, NaN while nothing falls into the glass."""
        return audible_pitch(self.motion, self.scene.glass)

    def truth(self) -> dict[str, Any]:
        """Return the ground truth, ready for JSON; NaN pitches become None."""
        return {
            "seed": self.seed,
            "num_frames": self.num_frames,
            "events": self.events,
            "clicks": self.clicks,
            "fill": np.round(self.motion.fill, 4).tolist(),
            "pitch_formula": PITCH_FORMULA,
            "pipe_metres": pipe_metres(self.scene.glass),
            "pitch": [None if math.isnan(hertz) else round(hertz, 1) for hertz in self.pitch.tolist()],
            "anomaly": None if self.mishap is None else asdict(self.mishap),
            "timeline": asdict(self.timeline),
            "scene": asdict(self.scene),
        }


@dataclass(frozen=True)
class RenderedVideo:
    """A take with its frames and its sound."""

    take: Take
    frames: NDArray[np.uint8]  # (N, H, W, 3)
    audio: Audio


def render_video(
    seed: int, *, level: str = "easy", size: int = 112, fps: float = 30.0, anomaly: str | None = None
) -> RenderedVideo:
    """Render the take of `seed`; the same arguments always give the same arrays.

    Args:
        seed: Any integer from 0 on. Different seeds give independent takes.
        level: "easy" (one camera, quiet rooms) or "hard" (everything varies).
        size: Side of a frame in pixels, even, at least 48.
        fps: Frames per second, at least 10. Durations are sampled in seconds.
        anomaly: None, "spill", "missed glass" or "hand withdraws".
    """
    take = plan_take(seed, level=level, fps=fps, anomaly=anomaly)
    return RenderedVideo(take, np.stack(list(render_frames(take, size=size))), render_audio(take))


def plan_take(seed: int, *, level: str = "easy", fps: float = 30.0, anomaly: str | None = None) -> Take:
    """Sample everything of a take except its pixels and its sound; takes milliseconds."""
    check_settings(level=level, fps=fps, anomaly=anomaly)
    timing, scenery, accident, _ = _spawn_generators(seed, level)
    timeline = sample_timeline(timing, LEVELS[level], fps=fps)
    scene = sample_scene(scenery, LEVELS[level])
    mishap = None
    if anomaly is not None:
        mishap, timeline = plan_mishap(anomaly, timeline, accident)
    motion = build_motion(scene, timeline, mishap)
    return Take(seed=seed, level=level, fps=fps, scene=scene, timeline=timeline, motion=motion, mishap=mishap)


def render_frames(take: Take, *, size: int = 112) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames (H, W, 3) of a take, one at a time."""
    check_size(size)
    renderer = Renderer(take.scene, take.motion, size=size, fps=take.fps, noise_seed=take.seed)
    return (renderer.frame(index) for index in range(take.num_frames))


def render_audio(take: Take) -> Audio:
    """Synthesise the sound track of a take, as long as its frames."""
    rng = _spawn_generators(take.seed, take.level)[3]
    return synthesise(take.motion, take.scene.glass, clicks=take.clicks, fps=take.fps, rng=rng)


def _spawn_generators(seed: int, level: str) -> list[np.random.Generator]:
    """Return independent generators for timing, scene, mishap and sound."""
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return np.random.default_rng((seed, list(LEVELS).index(level))).spawn(4)


def check_settings(*, level: str, fps: float, anomaly: str | None) -> None:
    """Raise if the level or the anomaly is unknown or the rate is too low."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
    if anomaly is not None and anomaly not in ANOMALIES:
        raise ValueError(f"anomaly must be one of {', '.join(ANOMALIES)}, got {anomaly!r}")
    if not (math.isfinite(fps) and fps >= MIN_FPS):
        raise ValueError(f"fps must be {MIN_FPS:g} or more, got {fps!r}")


def check_size(size: int) -> None:
    """Raise if frames would be too small to show anything, or odd, which H.264 cannot store."""
    if size < MIN_SIZE or size % 2:
        raise ValueError(f"size must be an even number of pixels from {MIN_SIZE} on, got {size}")


class Renderer:
    """Renders any frame of one take, in any order, always with the same result."""

    def __init__(self, scene: Scene, motion: Motion, *, size: int, fps: float, noise_seed: int) -> None:
        """Draw the still background; `size` is the side of a frame in pixels."""
        self.scene, self.motion, self.fps = scene, motion, fps
        self._oversample = 3 if size <= 256 else 2
        self._pixels = size * self._oversample
        self._view = view_matrix(scene.camera, self._pixels)
        self._shake = shake_matrices(scene.camera, num_frames=motion.num_frames, fps=fps, pixels=self._pixels)
        self._margin = round(MARGIN * self._pixels) if scene.camera.shake else 0
        self._backdrop = self._draw_still()
        self._gain = light_gain(scene.light, size)
        self._noise = _noise_sheets(scene.light.noise, size, seed=noise_seed)

    def frame(self, index: int) -> NDArray[np.uint8]:
        """Render frame `index` as (H, W, 3)."""
        shake = self._shake[index]
        canvas = Canvas(self._shake_backdrop(shake), shake @ self._view)
        self._draw_moving(canvas, index)
        small = np.asarray(canvas.image.reduce(self._oversample), dtype=np.float32)
        lit = small * self._gain
        if self._noise is not None:
            lit += self._noise[(index * 3) % NOISE_FRAMES]
        return np.asarray(np.clip(lit, 0, 255), dtype=np.uint8)

    def _draw_still(self) -> "Image.Image":
        scene = self.scene
        view = translate(self._margin, self._margin) @ self._view
        image = draw_backdrop(scene, view, pixels=self._pixels + 2 * self._margin)
        canvas = Canvas(image, view)
        if scene.surroundings.mover is None:
            draw_props(canvas, scene)
        draw_shadow(canvas, scene, x=scene.glass_x, height=0.0, radius=scene.glass.radius, strength=0.36)
        return image

    def _shake_backdrop(self, shake: NDArray[np.float64]) -> "Image.Image":
        from PIL import Image

        if self._margin == 0:
            return self._backdrop.copy()
        inverse = np.linalg.inv(shake)
        inverse[:2, 2] += self._margin
        size = (self._pixels, self._pixels)
        return self._backdrop.transform(size, Image.Transform.AFFINE, inverse[:2].ravel().tolist())

    def _draw_moving(self, canvas: Canvas, index: int) -> None:
        scene, motion, seconds = self.scene, self.motion, index / self.fps
        base, tilt = np.array([motion.base_x[index], motion.base_y[index]]), float(motion.tilt[index])
        reach, close = float(motion.reach[index]), float(motion.close[index])
        fill, puddle = float(motion.fill[index]), float(motion.puddle[index])
        if scene.surroundings.mover is not None:
            draw_mover(canvas, scene, scene.surroundings.mover, seconds=seconds)
            draw_props(canvas, scene)
        if puddle > 0:
            draw_puddle(canvas, scene, x=self._landing_x(), amount=puddle)
        middle = float(base[0] + 0.5 * scene.bottle.height * np.sin(tilt))
        draw_shadow(canvas, scene, x=middle, height=float(base[1]), radius=scene.bottle.radius)
        draw_glass_back(canvas, scene, fill=fill)
        if motion.flow[index] > 0:
            self._draw_streams(canvas, index, base=base, tilt=tilt, seconds=seconds)
        draw_glass_front(canvas, scene, fill=fill, ripple=float(motion.flow[index]))
        pose = pose_hand(scene, base=base, tilt=tilt, reach=reach, close=close)
        if reach > 0:
            draw_hand_back(canvas, scene, pose)
        draw_bottle(canvas, scene, base=base, tilt=tilt, volume=float(motion.bottle[index]))
        if reach > 0:
            draw_hand_front(canvas, scene, pose)

    def _landing_x(self) -> float:
        """Return world x where liquid that misses the glass lands."""
        scene, motion = self.scene, self.motion
        strays = np.flatnonzero(motion.astray > 0)
        if motion.astray[strays[0]] < 1:  # a spill, over the far side
            return scene.glass_x + scene.glass.radius + 0.05
        middle = strays[len(strays) // 2]
        lip = rotate(np.array([scene.bottle.lip]), float(motion.tilt[middle]))[0]
        return float(motion.base_x[middle] + lip[0] + 0.02)

    def _draw_streams(self, canvas: Canvas, index: int, *, base: Points, tilt: float, seconds: float) -> None:
        """Draw the stream into the glass and the one beside it, if there is any."""
        scene, motion = self.scene, self.motion
        lip = rotate(np.array([scene.bottle.lip]), tilt)[0] + base
        span = (float(motion.tail[index]), float(motion.head[index]))
        flow, astray = float(motion.flow[index]), float(motion.astray[index])
        surface = np.array([scene.glass_x, scene.glass.surface(float(motion.fill[index]))])
        table = np.array([self._landing_x(), TABLE_LANDING]) if astray else surface
        for share, landing in ((1 - astray, surface), (astray, table)):
            if share <= 0:
                continue
            width = scene.liquid.stream_width * flow**0.5 * (0.55 + 0.45 * share)
            draw_stream(canvas, scene, lip=lip, landing=landing, span=span, width=width, seconds=seconds)
            if span[1] >= 1:
                draw_splash(canvas, scene, at=landing, strength=flow, seconds=seconds)


def light_gain(light: Light, size: int) -> NDArray[np.float32]:
    """Return the factor per pixel (H, W, 3): brightness, tint, fall-off across, darker corners."""
    across, down = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size))
    towards = across * np.cos(light.direction) - down * np.sin(light.direction)
    corners = 1 - 0.10 * (across**2 + down**2)
    gain = light.brightness * (1 + light.slope * 0.5 * towards) * corners
    return np.asarray(gain[..., None] * np.array(light.tint), dtype=np.float32)


def _noise_sheets(strength: float, size: int, *, seed: int) -> NDArray[np.float32] | None:
    if strength == 0:
        return None
    rng = np.random.default_rng(seed)
    return rng.standard_normal((NOISE_FRAMES, size, size, 3), dtype=np.float32) * np.float32(strength)
