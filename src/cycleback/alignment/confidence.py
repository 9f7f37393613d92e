"""How sure each match is, from the distances alone.

confidence = margin x agreement, both in [0, 1]

    margin      1 - d(i, match) / median_j d(i, j): how much nearer the match is than a typical frame of b.
                0 when it is no nearer, or when all frames of b are alike.
    agreement   exp(-|back(match) - i| / (0.1 T)): whether the way back to a, by the nearest neighbour of the
                match (paper 3.1), lands at i. 1 when it does, 0.37 when it misses by a tenth of the video.

Equal videos have confidence 1, collapsed embeddings 0. It ranks matches and is no probability: where videos
lie far apart as a whole, as in embeddings not trained for alignment, even right matches have a small margin.

Shapes: T frames of video a, S frames of video b.
"""

import numpy as np

from cycleback.alignment.inputs import Floats, Indices

REACH = 0.1  # share of the video; a phase of an action is seldom shorter, so a larger miss is another moment


def match_confidence(distances: Floats, indices: Indices) -> Floats:
    """Confidence (T,) in [0, 1] of the matches `indices` (T,), given squared `distances` (T, S)."""
    return match_margin(distances, indices) * cycle_agreement(distances, indices)


def match_margin(distances: Floats, indices: Indices) -> Floats:
    """Margin (T,) in [0, 1]: 1 - distance to the match over the median distance of the row."""
    matched = np.take_along_axis(distances, indices[:, None], axis=1)[:, 0]  # (T,)
    typical = np.median(distances, axis=1)  # (T,)
    nearer = np.maximum(typical - matched, 0)
    return np.divide(nearer, typical, out=np.zeros_like(nearer), where=typical > 0)


def cycle_agreement(distances: Floats, indices: Indices) -> Floats:
    """Agreement (T,) in (0, 1] of the way back with the start."""
    frames = np.arange(len(distances))
    landing = distances.argmin(axis=0)[indices]  # (T,)
    is_nearest = distances[frames, indices] <= distances[landing, indices]  # of equals, the start itself
    errors = np.where(is_nearest, 0, np.abs(landing - frames))
    return np.exp(-errors / (REACH * len(frames)))
