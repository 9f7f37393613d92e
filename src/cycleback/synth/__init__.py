"""Rendered videos of the Pouring action, with sound and the whole truth: for demos, tests and benchmarks."""

from cycleback.synth.dataset import SynthVideo, video_seed, write_dataset
from cycleback.synth.levels import LEVELS
from cycleback.synth.mishaps import ANOMALIES
from cycleback.synth.pouring import RenderedVideo, Take, plan_take, render_video, take_audio, take_frames
from cycleback.synth.timeline import EVENTS

__all__ = [
    "ANOMALIES",
    "EVENTS",
    "LEVELS",
    "RenderedVideo",
    "SynthVideo",
    "Take",
    "plan_take",
    "render_video",
    "take_audio",
    "take_frames",
    "video_seed",
    "write_dataset",
]
