"""Evaluation of embeddings: arrays in, numbers out.

    the paper                               here
    4.1  phase classification               phase_accuracy
    4.1  phase progression                  phase_progression
    4.1  Kendall's tau                      mean_tau, pair_taus
    5    few-shot classification            few_shot_accuracy
    --   key-event error, PCE@k             event_error
    --   frame retrieval, precision@K       retrieval_precision
    --   are confident matches right        measure_calibration
    --   cropped, faster, with a lead-in    perturb
    --   embedding = frame number           time_only_embeddings
    --   train and held-out overlap         find_overlap, refuse_overlap
    all of it, for a set of embeddings      evaluate -> Report, to_markdown

`cycleback.evaluation.protocol` lists the protocols, `cycleback.evaluation.scores` the table of scores.
"""

from cycleback.evaluation.events import event_error, measure_calibration
from cycleback.evaluation.order import mean_tau, pair_taus
from cycleback.evaluation.overlap import find_overlap, refuse_overlap
from cycleback.evaluation.perturbations import PERTURBATIONS, perturb
from cycleback.evaluation.phases import few_shot_accuracy, phase_accuracy, phase_progression
from cycleback.evaluation.protocol import PROTOCOLS
from cycleback.evaluation.report import Report
from cycleback.evaluation.retrieval import retrieval_precision
from cycleback.evaluation.scorer import evaluate, time_only_embeddings
from cycleback.evaluation.scores import TIME_ONLY, notes, to_markdown

__all__ = [
    "PERTURBATIONS",
    "PROTOCOLS",
    "TIME_ONLY",
    "Report",
    "evaluate",
    "event_error",
    "few_shot_accuracy",
    "find_overlap",
    "mean_tau",
    "measure_calibration",
    "notes",
    "pair_taus",
    "perturb",
    "phase_accuracy",
    "phase_progression",
    "refuse_overlap",
    "retrieval_precision",
    "time_only_embeddings",
    "to_markdown",
]
