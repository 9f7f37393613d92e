"""Losses on embeddings: tensors in, a scalar out.

    name               paper                                                    file
    TCCLoss            Dwibedi et al. 2019, 3.2, 3.3 and 5.2                    tcc.py
    StochasticTCCLoss  Dwibedi et al. 2019, 3.4, randomly selected frames       stochastic.py
    LAVLoss            Haresh et al. 2021: soft-DTW and contrast within videos  lav.py
    IDMLoss            Haresh et al. 2021, contrast within videos alone         idm.py
    GTALoss            Hadji et al. 2021: smoothDTW and global cycles           gta.py
    VAVALoss           Liu et al. 2022: optimal transport with a prior          vava.py
    VAOTLoss           Ali et al. 2025: cross-entropy to a transport plan       vaot.py
    ReversalLoss       Xue and Grauman 2023 (AE2): forwards before backwards    reversal.py
    SCLLoss            Chen et al. 2022 (CARL): two views of one video          scl.py
    NextFrameLoss      PRISM 2026: the next frame of a slow copy                next_frame.py
    TCNLoss            Sermanet et al. 2018; baseline of Dwibedi et al., 5.1    tcn.py
    OrderLoss          not in a paper: matches run forward in time              order.py
    MatchLoss          not in a paper: learn the matches of the untrained input  match.py
    SaLLoss            Misra et al. 2016; baseline of Dwibedi et al., 5.1       sal.py
    SupervisedLoss     Dwibedi et al. 2019, 5, supervised learning              supervised.py
    CombinedLoss       Dwibedi et al. 2019, 5.1, combined losses                base.py

All are called alike, with embeddings (B, T, D) first and the rest by keyword:

    loss = TCCLoss()
    loss(embeddings, times=times).backward()
"""

from cycleback.losses.base import CombinedLoss, Loss, LossParts
from cycleback.losses.gta import GTALoss
from cycleback.losses.idm import IDMLoss, contrastive_idm
from cycleback.losses.lav import LAVLoss
from cycleback.losses.match import MatchLoss
from cycleback.losses.next_frame import NextFrameLoss
from cycleback.losses.order import OrderLoss
from cycleback.losses.reversal import ReversalLoss
from cycleback.losses.sal import SaLLoss, Triplets, draw_triplets, triplet_errors
from cycleback.losses.scl import SCLLoss, sequence_contrast
from cycleback.losses.similarity import (
    ordered_pairs,
    scaled_similarity,
    squared_distances,
    unordered_pairs,
)
from cycleback.losses.soft_dtw import soft_dtw, warp_table
from cycleback.losses.stochastic import Cycles, StochasticTCCLoss, draw_cycles, walk_cycles
from cycleback.losses.supervised import SupervisedLoss, phase_errors
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
from cycleback.losses.transport import Structure, Virtual, sinkhorn, transport_plan
from cycleback.losses.vaot import VAOTLoss
from cycleback.losses.vava import VAVALoss

__all__ = [
    "CombinedLoss",
    "Cycles",
    "GTALoss",
    "IDMLoss",
    "LAVLoss",
    "Loss",
    "LossParts",
    "MatchLoss",
    "NextFrameLoss",
    "OrderLoss",
    "ReversalLoss",
    "SCLLoss",
    "SaLLoss",
    "StochasticTCCLoss",
    "Structure",
    "SupervisedLoss",
    "TCCLoss",
    "TCNLoss",
    "Triplets",
    "VAOTLoss",
    "VAVALoss",
    "Virtual",
    "contrastive_idm",
    "cycle_back_classification",
    "cycle_back_huber",
    "cycle_back_logits",
    "cycle_back_mse",
    "cycle_back_regression",
    "draw_cycles",
    "draw_triplets",
    "landing_moments",
    "n_pairs_loss",
    "ordered_pairs",
    "phase_errors",
    "scaled_similarity",
    "sequence_contrast",
    "sinkhorn",
    "soft_dtw",
    "soft_nearest_neighbors",
    "squared_distances",
    "transport_plan",
    "triplet_errors",
    "unordered_pairs",
    "walk_cycles",
    "warp_table",
]
