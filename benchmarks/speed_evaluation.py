"""Evaluation of a set as large as Penn Action: the whole report on the CPU, nearest frames on CPU and device.

Shapes: V videos, M frames of all of them, S frames of the longest, D embedding size.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import evaluate
from cycleback.evaluation.neighbors import nearest_table
from speed_clock import CPU, Found, Setting, seconds

Floats = NDArray[np.floating[Any]]


def paper_sized(setting: Setting) -> EmbeddingSet:
    """Make as many held-out videos as Penn Action has in the paper, or a few of them."""
    with mock.patch.dict(os.environ):  # it asks for one thread when imported, which is not wanted here
        from evaluate import penn_sized

    videos = penn_sized(128)
    return videos.subset(videos.names[::80]) if setting.is_smoke else videos


def padded(videos: Sequence[Floats], device: torch.device) -> tuple[Tensor, Tensor]:
    """Videos (V, S, D) about their mean, zero beyond their end; their squared norms (V, S), there inf."""
    mean = np.concatenate(videos).mean(axis=0)
    shape = (len(videos), max(map(len, videos)), videos[0].shape[1])
    points, norms = np.zeros(shape, np.float32), np.full(shape[:2], np.inf, np.float32)
    for row, video in enumerate(videos):
        points[row, : len(video)] = video - mean
        norms[row, : len(video)] = np.square(points[row, : len(video)]).sum(axis=1)
    return torch.from_numpy(points).to(device), torch.from_numpy(norms).to(device)


def nearest_on_device(videos: Sequence[Floats], device: torch.device) -> Tensor:
    """Index (V, M) of the frame of each video nearest to each frame of all videos, in single precision."""
    points, norms = padded(videos, device)
    queries = points[norms.isfinite()]  # (M, D)
    found = [(norm - 2 * queries @ point.mT).argmin(dim=1) for point, norm in zip(points, norms, strict=True)]
    return torch.stack(found).cpu()


def by_action(videos: EmbeddingSet) -> list[list[Floats]]:
    """The embeddings (N, D) of each action's videos, which are compared with each other."""
    actions = sorted({videos.action(name) for name in videos.names})
    return [[videos[name] for name in videos.names if videos.action(name) == action] for action in actions]


def measure(setting: Setting) -> Iterator[Found]:
    """Measure the report, and its heaviest step by itself."""
    videos = paper_sized(setting)
    evaluate(None, videos.subset(videos.names[:3]))  # compiles dynamic time warping, where numba is installed
    took = seconds(lambda: evaluate(None, videos), device=CPU)
    print(f"evaluation of {len(videos.names)} videos {took:.1f} s", flush=True)
    groups = by_action(videos)
    yield {
        "videos": len(videos.names),
        "pairs": sum(len(group) * (len(group) - 1) for group in groups),
        "report_seconds": took,
        "cores": os.cpu_count(),
    }
    on_cpu = seconds(lambda: [nearest_table(group) for group in groups], device=CPU)
    nearest_on_device(groups[0], setting.device)
    found: list[Tensor] = []
    on_device = seconds(
        lambda: found.extend(nearest_on_device(group, setting.device) for group in groups), device=CPU
    )
    same = [
        np.mean(ours.numpy() == nearest_table(group).frames)
        for ours, group in zip(found, groups, strict=True)
    ]
    yield {
        "nearest_cpu_seconds": on_cpu,
        "nearest_device_seconds": on_device,
        "nearest_ratio": on_cpu / on_device,
        "nearest_same": float(np.mean(same)),
    }
