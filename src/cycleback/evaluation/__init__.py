"""Evaluation of embeddings: arrays in, numbers out.

the paper                               here
4.1  phase classification               phase_accuracy
4.1  phase progression                  phase_progression
4.1  Kendall's tau                      kendalls_tau, mean_tau, pair_taus
--   key-event error, PCE@k             event_error
--   embedding = frame number           time_only_embeddings
all of it, for a set of embeddings      evaluate -> Report, to_markdown
"""

from cycleback.evaluation.baselines import time_only_embeddings
from cycleback.evaluation.events import EventError, event_error
from cycleback.evaluation.kendall import MeanTau, kendalls_tau, mean_tau, pair_taus
from cycleback.evaluation.neighbors import nearest_frames
from cycleback.evaluation.phases import PhaseAccuracy, phase_accuracy
from cycleback.evaluation.progression import Progression, phase_progression
from cycleback.evaluation.protocol import evaluate
from cycleback.evaluation.report import Report
from cycleback.evaluation.table import notes, to_markdown

__all__ = [
    "EventError",
    "MeanTau",
    "PhaseAccuracy",
    "Progression",
    "Report",
    "evaluate",
    "event_error",
    "kendalls_tau",
    "mean_tau",
    "nearest_frames",
    "notes",
    "pair_taus",
    "phase_accuracy",
    "phase_progression",
    "time_only_embeddings",
    "to_markdown",
]
