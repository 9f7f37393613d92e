"""Find the directions of an embedding in which moments differ and videos agree, from videos without labels.

An embedding also shows who acts, where, and from which side. Such differences between videos hide the
differences between moments that an alignment needs. Fisher's linear discriminant separates the two, given
frames of different videos that show the same moment. Here these come from the alignment itself:

    1. put all videos on one clock (`align_many`), and take the frames at one tick as one moment
    2. S = covariance of the frames around the mean of their moment; shrink it towards a multiple of identity,
       S' = (1 - a) S + a trace(S) / D I with a = 5 / (5 + V), because few videos know S badly
    3. scale the space so that S' becomes the identity, and keep the directions of largest total variance

A second round aligns the videos along these directions, and so finds better moments. The result is a linear
map, found in seconds. It helps most where embeddings are not trained for alignment.

Shapes: V videos of N frames, D embedding size, K axes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.align import align_many
from cycleback.alignment.distances import Floats, as_videos, spread_frames, thin

MAX_AXES = 100  # that are worth keeping; the first ALIGNED_AXES of them suffice to align videos
ALIGNED_AXES = 20
MAX_VIDEOS = 100  # that the axes are learned from: more tell little, and the time grows with their square
MAX_FRAMES = 256  # of each of them
PRINCIPAL_AXES = 150  # what lies outside the principal components of the frames is noise
PRINCIPAL_FRAMES = 4096  # that the principal components are computed from
SHRINKAGE = 5  # videos; the weight of the identity beside the covariance of V videos
ROUNDS = 2


def discriminant_axes(embeddings: Sequence[ArrayLike], *, max_axes: int = MAX_AXES) -> Floats:
    """Return axes (D, K), the best first: multiply embeddings (N, D) by them before they are aligned.

    Along every axis, frames of one moment have a variance of about 1. Where all videos are alike there is
    nothing to tell apart, and the axes are the identity (D, D).

    Args:
        embeddings: (N, D) per video, at least two videos of one action.
        max_axes: keep at most this many.
    """
    videos = as_videos(embeddings, min_videos=2)
    chosen = [thin(videos[i], MAX_FRAMES) for i in spread_frames(len(videos), MAX_VIDEOS)]
    principal = _principal_axes(np.concatenate(chosen))  # (D, P)
    blocks = [video @ principal for video in chosen]
    axes, aligned = principal, blocks
    for _ in range(ROUNDS):
        scatter = _scatter_of_moments(blocks, aligned)
        if np.trace(scatter) <= 1e-12 * sum(float(np.square(block).sum()) for block in blocks):
            return np.eye(videos[0].shape[1])
        turned = _discriminate(np.concatenate(blocks), scatter, num_videos=len(blocks))  # (P, P)
        axes, aligned = principal @ turned, [block @ turned[:, :ALIGNED_AXES] for block in blocks]
    return axes[:, :max_axes]


def _principal_axes(frames: Floats) -> Floats:
    """Return the principal components (D, P) of `frames` (M, D); the identity where D is small already."""
    size = frames.shape[1]
    if size <= PRINCIPAL_AXES:
        return np.eye(size)
    sample = thin(frames, PRINCIPAL_FRAMES)
    sample = sample - sample.mean(axis=0)
    return np.linalg.eigh(sample.T @ sample)[1][:, : -PRINCIPAL_AXES - 1 : -1]


def _scatter_of_moments(blocks: Sequence[Floats], aligned: Sequence[Floats]) -> Floats:
    """Return the covariance (P, P) of the frames of `blocks` (N, P) around the mean of their moment.

    `aligned` (N, K) are the same frames in the space in which the videos are aligned.
    """
    clock = align_many(aligned)
    frames, ticks = np.concatenate(blocks), np.concatenate(clock.ticks)
    counts = np.bincount(ticks, minlength=len(clock.template))
    totals = np.zeros((len(counts), frames.shape[1]))
    np.add.at(totals, ticks, frames)
    around = frames - (totals / np.maximum(counts, 1)[:, None])[ticks]
    covariance: Floats = around.T @ around / len(around)
    return covariance


def _discriminate(frames: Floats, scatter: Floats, *, num_videos: int) -> Floats:
    """Return axes (P, P) along which `scatter` (P, P), shrunk, is 1 and the variance of `frames` falls."""
    share, size = SHRINKAGE / (SHRINKAGE + num_videos), len(scatter)
    shrunk = (1 - share) * scatter + share * np.trace(scatter) / size * np.eye(size)
    values, vectors = np.linalg.eigh(shrunk)
    scaling = vectors / np.sqrt(values)  # (P, P)
    around = (frames - frames.mean(axis=0)) @ scaling
    turn = np.linalg.eigh(around.T @ around)[1][:, ::-1]
    axes: Floats = scaling @ turn
    return axes
