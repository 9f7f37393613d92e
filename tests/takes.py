"""A project of takes of one action at varying pace: numbered clips, embeddings, and the true key events."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coded_clips import steady_times, write_clip
from cycleback.embeddings import EmbeddingSet
from cycleback.web.embedded import ProjectEmbeddings
from cycleback.web.project import Project

PACES = {"a": (48, 1.0), "b": (60, 1.3), "c": (54, 0.8), "d": (42, 1.1), "e": (66, 0.9)}  # frames, exponent
MOMENTS = {"lift": 0.3, "drop": 0.7}  # share of the action at which a key event happens
FPS = 30.0


def progress(name: str) -> NDArray[np.float64]:
    """Return the share of the action (N,) that each frame of a take shows."""
    frames, exponent = PACES[name]
    share: NDArray[np.float64] = np.linspace(0, 1, frames) ** exponent
    return share


def true_events(name: str) -> dict[str, int]:
    """Return the frames of the key events of a take."""
    return {event: int(np.abs(progress(name) - share).argmin()) for event, share in MOMENTS.items()}


def embed_takes(noise: float = 0.02) -> EmbeddingSet:
    """Return embeddings that tell the progress; those of "d" are the noisiest."""
    arrays = {}
    for seed, name in enumerate(PACES):
        share = 2 * progress(name)
        curve = np.column_stack([f(share * k) for k in (1, 3, 5) for f in (np.sin, np.cos)])
        spread = 40 * noise if name == "d" else noise
        arrays[name] = curve + spread * np.random.default_rng(seed).normal(size=curve.shape)
    return EmbeddingSet.from_arrays(arrays, fps=FPS)


def write_takes(folder: Path) -> Project:
    """Write the clips and their embeddings, and return the project."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (frames, _) in PACES.items():
        write_clip(folder / f"{name}.mp4", steady_times(frames, FPS), gop=6, size=(64, 48))
    project = Project.open(folder)
    ProjectEmbeddings(project).store(embed_takes())
    return project
