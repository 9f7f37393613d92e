"""Read and write video. Frames are RGB uint8 (N, H, W, 3), numbered in display order."""

from cycleback.video.audio import Audio, read_audio
from cycleback.video.canvas import fit_cell, tile
from cycleback.video.reader import FrameChunk, VideoInfo, frame_times, iter_frames, probe, read_frames
from cycleback.video.source import VIDEO_SUFFIXES
from cycleback.video.writer import write_video

__all__ = [
    "VIDEO_SUFFIXES",
    "Audio",
    "FrameChunk",
    "VideoInfo",
    "fit_cell",
    "frame_times",
    "iter_frames",
    "probe",
    "read_audio",
    "read_frames",
    "tile",
    "write_video",
]
