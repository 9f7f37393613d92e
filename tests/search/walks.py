"""Videos whose embeddings are random walks."""

import numpy as np

from cycleback.embeddings import EmbeddingSet


def walks(names: list[str], *, seed: int = 0, size: int = 4, encoder: str | None = "enc") -> EmbeddingSet:
    """Videos of 20 to 60 frames at an uneven rate whose embeddings drift; `b…` are of action "bowl"."""
    generator = np.random.default_rng(seed)
    lengths = {name: int(generator.integers(20, 60)) for name in names}
    arrays = {name: generator.normal(size=(n, size)).cumsum(axis=0) + 3 for name, n in lengths.items()}
    times = {name: generator.uniform(0.02, 0.1, n).cumsum() for name, n in lengths.items()}
    actions = {name: "bowl" if name.startswith("b") else "golf" for name in names}
    return EmbeddingSet.from_arrays(arrays, times=times, actions=actions, encoder=encoder)
