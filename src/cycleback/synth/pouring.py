"""One take of the Pouring action: pictures, sound and the truth about both.

Letters: N frames of the video, H W pixels of a frame.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.levels import LEVELS
from cycleback.synth.mishaps import ANOMALIES, Mishap, plan_mishap
from cycleback.synth.motion import Motion, build_motion
from cycleback.synth.render import Renderer
from cycleback.synth.scene import Scene
from cycleback.synth.sound import CLICKS, PITCH_FORMULA, audible_pitch, pipe_metres, synthesise
from cycleback.synth.staging import draw_scene
from cycleback.synth.timeline import Timeline, draw_timeline
from cycleback.video import Audio

MIN_SIZE = 48
MIN_FPS = 10.0


@dataclass(frozen=True)
class Take:
    """Everything about a video that does not need pixels."""

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

    def truth(self) -> dict[str, Any]:
        """All there is to know, ready for JSON; NaN pitches are None."""
        pitch = audible_pitch(self.motion, self.scene.glass)
        return {
            "seed": self.seed,
            "num_frames": self.num_frames,
            "events": self.events,
            "clicks": self.clicks,
            "fill": np.round(self.motion.fill, 4).tolist(),
            "pitch_formula": PITCH_FORMULA,
            "pipe_metres": pipe_metres(self.scene.glass),
            "pitch": [None if math.isnan(hertz) else round(hertz, 1) for hertz in pitch.tolist()],
            "anomaly": None if self.mishap is None else asdict(self.mishap),
            "timeline": asdict(self.timeline),
            "scene": asdict(self.scene),
        }


@dataclass(frozen=True)
class RenderedVideo:
    """A take with its pixels and its sound."""

    frames: NDArray[np.uint8]  # (N, H, W, 3)
    audio: Audio
    fps: float
    events: dict[str, int]
    fill: NDArray[np.float64]  # (N,), share of the glass that is full
    pitch: NDArray[np.float64]  # (N,), Hz, NaN where nothing falls into the glass
    clicks: dict[str, float]  # key event -> seconds
    anomaly: str | None
    anomaly_range: tuple[int, int] | None  # first and last frame
    take: Take


def render_video(
    seed: int, *, level: str = "easy", size: int = 112, fps: float = 30.0, anomaly: str | None = None
) -> RenderedVideo:
    """Render the take that belongs to `seed`; the same arguments always give the same arrays.

    Args:
        seed: Any integer from 0 on. Different seeds give independent takes.
        level: "easy" (one camera, quiet rooms) or "hard" (everything varies).
        size: Side of a frame in pixels, even, at least 48.
        fps: Frames a second, at least 10. Durations are drawn in seconds.
        anomaly: None, or what goes wrong: "spill", "missed glass" or "hand withdraws".
    """
    take = plan_take(seed, level=level, fps=fps, anomaly=anomaly)
    return RenderedVideo(
        frames=np.stack(list(take_frames(take, size=size))),
        audio=take_audio(take),
        fps=fps,
        events=take.events,
        fill=take.motion.fill,
        pitch=audible_pitch(take.motion, take.scene.glass),
        clicks=take.clicks,
        anomaly=anomaly,
        anomaly_range=take.anomaly_range,
        take=take,
    )


def plan_take(seed: int, *, level: str = "easy", fps: float = 30.0, anomaly: str | None = None) -> Take:
    """Draw everything of a take but its pixels and its sound: milliseconds of work."""
    check_settings(level=level, fps=fps, anomaly=anomaly)
    timing, scenery, accident, _ = _streams(seed, level)
    timeline = draw_timeline(timing, LEVELS[level], fps=fps)
    scene = draw_scene(scenery, LEVELS[level])
    mishap = None
    if anomaly is not None:
        mishap, timeline = plan_mishap(anomaly, timeline, accident)
    motion = build_motion(scene, timeline, mishap)
    return Take(seed=seed, level=level, fps=fps, scene=scene, timeline=timeline, motion=motion, mishap=mishap)


def take_frames(take: Take, *, size: int = 112) -> Iterator[NDArray[np.uint8]]:
    """The frames (H, W, 3) of a take, one at a time."""
    check_size(size)
    renderer = Renderer(take.scene, take.motion, size=size, fps=take.fps, noise_seed=take.seed)
    return renderer.frames()


def take_audio(take: Take) -> Audio:
    """The sound track of a take, as long as its frames."""
    return synthesise(
        take.motion,
        take.scene.glass,
        clicks=take.clicks,
        fps=take.fps,
        rng=_streams(take.seed, take.level)[3],
    )


def _streams(seed: int, level: str) -> list[np.random.Generator]:
    """Independent generators for timing, scene, mishap and sound."""
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return np.random.default_rng((seed, list(LEVELS).index(level))).spawn(4)


def check_settings(*, level: str, fps: float, anomaly: str | None) -> None:
    """Refuse names and rates that do not exist."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
    if anomaly is not None and anomaly not in ANOMALIES:
        raise ValueError(f"anomaly must be one of {', '.join(ANOMALIES)}, got {anomaly!r}")
    if not (math.isfinite(fps) and fps >= MIN_FPS):
        raise ValueError(f"fps must be {MIN_FPS:g} or more, got {fps!r}")


def check_size(size: int) -> None:
    """Refuse frames that are too small to see anything in, or that h264 cannot hold."""
    if size < MIN_SIZE or size % 2:
        raise ValueError(f"size must be an even number of pixels from {MIN_SIZE} on, got {size}")
