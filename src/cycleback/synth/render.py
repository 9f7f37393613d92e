"""Pictures of a take: one frame from a scene and the numbers of that moment.

Letters: N frames of the video, H W pixels of a frame.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.backdrop import draw_backdrop
from cycleback.synth.camera import shake_matrices, view_matrix
from cycleback.synth.containers import Points, rotate
from cycleback.synth.drawing import Canvas
from cycleback.synth.hand import draw_hand_back, draw_hand_front, hand_pose
from cycleback.synth.liquid import TABLE_LANDING, draw_puddle, draw_splash, draw_stream
from cycleback.synth.motion import Motion
from cycleback.synth.props import draw_mover, draw_props
from cycleback.synth.scene import Light, Scene
from cycleback.synth.vessels import draw_bottle, draw_glass_back, draw_glass_front, draw_shadow

if TYPE_CHECKING:
    from PIL import Image

MARGIN = 0.06  # of the picture, on each side of the backdrop, for the shake
NOISE_FRAMES = 7  # different sheets of sensor noise


class Renderer:
    """Renders any frame of one take, in any order, always the same."""

    def __init__(self, scene: Scene, motion: Motion, *, size: int, fps: float, noise_seed: int) -> None:
        """Draw what stands still; `size` is the side of a frame in pixels."""
        self.scene, self.motion, self.size, self.fps = scene, motion, size, fps
        self._oversample = 3 if size <= 256 else 2
        self._pixels = size * self._oversample
        self._view = view_matrix(scene.camera, self._pixels)
        self._shake = shake_matrices(scene.camera, num_frames=motion.num_frames, fps=fps, pixels=self._pixels)
        self._margin = round(MARGIN * self._pixels) if scene.camera.shake else 0
        self._backdrop = self._draw_still()
        self._gain = light_gain(scene.light, size)
        self._noise = _noise_sheets(scene.light.noise, size, seed=noise_seed)

    def frame(self, index: int) -> NDArray[np.uint8]:
        """Frame `index` as (H, W, 3)."""
        shake = self._shake[index]
        canvas = Canvas(self._shaken_backdrop(shake), shake @ self._view)
        self._draw_moving(canvas, index)
        small = np.asarray(canvas.image.reduce(self._oversample), dtype=np.float32)
        lit = small * self._gain
        if self._noise is not None:
            lit += self._noise[(index * 3) % NOISE_FRAMES]
        return np.asarray(np.clip(lit, 0, 255), dtype=np.uint8)

    def frames(self) -> Iterator[NDArray[np.uint8]]:
        """All frames in order."""
        return (self.frame(index) for index in range(self.motion.num_frames))

    def _draw_still(self) -> "Image.Image":
        shift = np.array([[1.0, 0.0, self._margin], [0.0, 1.0, self._margin], [0.0, 0.0, 1.0]])
        view = shift @ self._view
        image = draw_backdrop(self.scene, view, pixels=self._pixels + 2 * self._margin)
        canvas = Canvas(image, view)
        if self.scene.surroundings.mover is None:
            draw_props(canvas, self.scene)
        draw_shadow(
            canvas,
            self.scene,
            x=self.scene.glass_x,
            height=0.0,
            radius=self.scene.glass.radius,
            strength=0.36,
        )
        return image

    def _shaken_backdrop(self, shake: NDArray[np.float64]) -> "Image.Image":
        from PIL import Image

        if self._margin == 0:
            return self._backdrop.copy()
        inverse = np.linalg.inv(shake)
        inverse[:2, 2] += self._margin
        size = (self._pixels, self._pixels)
        return self._backdrop.transform(size, Image.Transform.AFFINE, inverse[:2].ravel().tolist())

    def _draw_moving(self, canvas: Canvas, index: int) -> None:
        scene, motion = self.scene, self.motion
        seconds = index / self.fps
        mover = scene.surroundings.mover
        if mover is not None:
            draw_mover(canvas, scene, mover, seconds=seconds)
            draw_props(canvas, scene)
        base = np.array([motion.base_x[index], motion.base_y[index]])
        tilt = float(motion.tilt[index])
        self._draw_spilt(canvas, index)
        draw_shadow(
            canvas, scene, x=self._middle(base, tilt), height=float(base[1]), radius=scene.bottle.radius
        )
        draw_glass_back(canvas, scene, fill=float(motion.fill[index]))
        self._draw_streams(canvas, index, base=base, tilt=tilt, seconds=seconds)
        draw_glass_front(canvas, scene, fill=float(motion.fill[index]), ripple=float(motion.flow[index]))
        pose = hand_pose(
            scene,
            base=base,
            tilt=tilt,
            reach=float(motion.reach[index]),
            close=float(motion.close[index]),
        )
        visible = motion.reach[index] > 0
        if visible:
            draw_hand_back(canvas, scene, pose)
        draw_bottle(canvas, scene, base=base, tilt=tilt, volume=float(motion.bottle[index]))
        if visible:
            draw_hand_front(canvas, scene, pose)

    def _middle(self, base: Points, tilt: float) -> float:
        """World x of the middle of the bottle, over which its shadow lies."""
        return float(base[0] + 0.5 * self.scene.bottle.height * np.sin(tilt))

    def _draw_spilt(self, canvas: Canvas, index: int) -> None:
        amount = float(self.motion.puddle[index])
        if amount > 0:
            draw_puddle(canvas, self.scene, x=self._beside(), amount=amount)

    def _beside(self) -> float:
        """World x where liquid that misses the glass lands."""
        scene, motion = self.scene, self.motion
        strays = np.flatnonzero(motion.astray > 0)
        if motion.astray[strays[0]] < 1:  # a spill, over the far side
            return scene.glass_x + scene.glass.radius + 0.05
        middle = strays[len(strays) // 2]
        lip = rotate(np.array([scene.bottle.lip]), float(motion.tilt[middle]))[0]
        return float(motion.base_x[middle] + lip[0] + 0.02)

    def _draw_streams(self, canvas: Canvas, index: int, *, base: Points, tilt: float, seconds: float) -> None:
        scene, motion = self.scene, self.motion
        if motion.flow[index] <= 0:
            return
        lip = rotate(np.array([scene.bottle.lip]), tilt)[0] + base
        span = (float(motion.tail[index]), float(motion.head[index]))
        width = scene.liquid.stream_width * float(motion.flow[index]) ** 0.5
        astray = float(motion.astray[index])
        surface = np.array([scene.glass_x, scene.glass.surface(float(motion.fill[index]))])
        table = np.array([self._beside(), TABLE_LANDING]) if astray else surface
        for share, landing in ((1 - astray, surface), (astray, table)):
            if share > 0:
                part = width * (0.55 + 0.45 * share)
                draw_stream(canvas, scene, lip=lip, landing=landing, span=span, width=part, seconds=seconds)
                if span[1] >= 1:
                    draw_splash(
                        canvas, scene, at=landing, strength=float(motion.flow[index]), seconds=seconds
                    )


def light_gain(light: Light, size: int) -> NDArray[np.float32]:
    """What each pixel is multiplied with, (H, W, 3): brightness, tint, fall-off across, darker corners."""
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
