"""Losses on embeddings: tensors in, a scalar out.

    name               paper                                                    file
    TCCLoss            Dwibedi et al. 2019, 3.2, 3.3 and 5.2                    tcc.py
    TCNLoss            Sermanet et al. 2018; baseline of Dwibedi et al., 5.1    tcn.py
    CombinedLoss       Dwibedi et al. 2019, 5.1, combined losses                combined.py

All are called alike, embeddings (B, T, D) first and the rest by keyword:

    loss = TCCLoss()
    loss(embeddings, times=times).backward()
"""

from cycleback.losses.base import Loss, LossParts
from cycleback.losses.combined import CombinedLoss
from cycleback.losses.similarity import ordered_pairs, scaled_similarity, squared_distances
from cycleback.losses.tcc import (
    TCCLoss,
    cycle_back_classification,
    cycle_back_huber,
    cycle_back_logits,
    cycle_back_mse,
    cycle_back_regression,
    landing_moments,
    soft_nearest_neighbors,
)
from cycleback.losses.tcn import TCNLoss, n_pairs_loss

__all__ = [
    "CombinedLoss",
    "Loss",
    "LossParts",
    "TCCLoss",
    "TCNLoss",
    "cycle_back_classification",
    "cycle_back_huber",
    "cycle_back_logits",
    "cycle_back_mse",
    "cycle_back_regression",
    "landing_moments",
    "n_pairs_loss",
    "ordered_pairs",
    "scaled_similarity",
    "soft_nearest_neighbors",
    "squared_distances",
]
