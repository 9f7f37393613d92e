"""Alignment of many pairs at once: distances and soft matches on the device, dynamic time warping on both.

Shapes: P pairs, T frames of video a, S frames of video b, D embedding size.
"""

import os
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import dtw_path, dtw_to_many
from cycleback.alignment import squared_distances as squared_distances_of_arrays
from cycleback.losses import soft_nearest_neighbors, squared_distances
from speed_clock import Found, Setting, milliseconds, seconds


def walks(videos: int, frames: int, size: int) -> list[NDArray[np.float64]]:
    """Videos (frames, size) along one random walk, each at its own pace and with noise."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(frames, size)), axis=0)
    paces = [np.sort(rng.integers(0, frames, frames)) for _ in range(videos)]
    return [walk[pace] + rng.normal(size=walk.shape) for pace in paces]


def batched_dtw_costs(costs: Tensor) -> Tensor:
    """Cost (P,) of the cheapest path through each of `costs` (P, T, S), all pairs an anti-diagonal at a time.

    The cells of an anti-diagonal depend only on the two before it. Shifted by one place a row, they are a
    column; with one place before the first row, all three predecessors are slices.
    """
    pairs, rows, columns = costs.shape
    diagonals = rows + columns - 1
    padded = F.pad(costs, (0, rows), value=torch.inf).flatten(1)[
        :, :-rows
    ]  # each row one place further right
    shifted = padded.view(pairs, rows, diagonals).permute(2, 0, 1).contiguous()  # (T + S - 1, P, T)
    before, last = torch.full((2, pairs, rows + 1), torch.inf, device=costs.device, dtype=costs.dtype)
    before[:, 0] = 0  # the one way to begin
    for cells in shifted:
        cheapest = torch.minimum(torch.minimum(before[:, :-1], last[:, :-1]), last[:, 1:])
        before[:, 1:] = cells + cheapest
        before[:, 0] = torch.inf
        before, last = last, before
    found: Tensor = last[:, -1]
    return found


def measure(setting: Setting) -> Iterator[Found]:
    """A thousand pairs of videos of two hundred frames."""
    pairs, frames, size = (8, 12, 16) if setting.is_smoke else (1000, 200, 128)
    videos = walks(pairs + 1, frames, size)
    device = setting.device
    b = torch.from_numpy(np.stack(videos[1:])).float().to(device)  # (P, S, D)
    a = torch.from_numpy(videos[0]).float().to(device).expand_as(b)  # (P, T, D)
    costs = squared_distances(a, b)
    on_device = {
        "distances_ms": milliseconds(lambda: squared_distances(a, b), device=device, repeats=7),
        "soft_matches_ms": milliseconds(lambda: soft_nearest_neighbors(a, b), device=device, repeats=7),
        "dtw_costs_ms": milliseconds(lambda: batched_dtw_costs(costs), device=device, repeats=5, warmup=2),
    }
    yield {"pairs": pairs, "frames": frames, "embedding_size": size, "on_device": on_device}
    off = difference(batched_dtw_costs(costs[:4].double()), costs[:4].double())
    if off > 1e-9:
        raise RuntimeError(f"the two ways of dynamic time warping differ by {off} of the cost")
    few, cpu = videos[1 : 2 + pairs // 10], torch.device("cpu")

    def one_by_one() -> list[NDArray[np.int64]]:
        return [dtw_path(squared_distances_of_arrays(videos[0], other)) for other in few]

    dtw_to_many(videos[0], few), one_by_one()  # compiles
    many = 1000 * seconds(lambda: dtw_to_many(videos[0], videos[1:]), device=cpu)
    single = 1000 * seconds(one_by_one, device=cpu)
    yield {
        "on_cpu": {
            "threads": os.cpu_count(),
            "dtw_paths_ms": many,
            "one_by_one_ms_a_pair": single / len(few),
            "ratio_to_one_by_one": single / len(few) / (many / pairs),
        }
    }


def difference(found: Tensor, costs: Tensor) -> float:
    """Largest relative difference of `found` (P,) and what numpy finds for `costs` (P, T, S)."""
    matrices = costs.cpu().numpy()
    expected = [cost[tuple(dtw_path(cost).T)].sum() for cost in matrices]
    return float(np.max(np.abs(found.cpu().numpy() / expected - 1)))
