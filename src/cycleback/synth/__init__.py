"""Render videos of the Pouring action with sound and ground truth, for demos, tests and benchmarks."""

from cycleback.synth.dataset import SynthVideo, video_seed, write_dataset
from cycleback.synth.levels import LEVELS
from cycleback.synth.motion import ANOMALIES, EVENTS
from cycleback.synth.pouring import RenderedVideo, Take, plan_take, render_audio, render_frames, render_video

__all__ = [
    "ANOMALIES",
    "EVENTS",
    "LEVELS",
    "RenderedVideo",
    "SynthVideo",
    "Take",
    "plan_take",
    "render_audio",
    "render_frames",
    "render_video",
    "video_seed",
    "write_dataset",
]
