"""The two classifiers of phases that protocols name.

Shapes: M frames, D embedding size.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.protocol import Classifier

Features = NDArray[np.float64]
Phases = NDArray[np.int64]
Predict = Callable[[Features], Phases]


def fit_classifier(
    classifier: Classifier, features: Features, phases: Phases, *, max_iterations: int = 1000
) -> Predict:
    """A function from embeddings (M, D) to phases (M,); where one phase is all there is, it is always that.

    Args:
        classifier: "svm", or "logistic", for which features should be standardised.
        features: (M, D) to learn from.
        phases: (M,) of the same frames.
        max_iterations: of logistic regression, which may stop there before it has settled.
    """
    if len(np.unique(phases)) == 1:
        return lambda rows: np.full(len(rows), phases[0])
    if classifier == "svm":
        from sklearn.svm import SVC

        return SVC(C=1.0, kernel="rbf", gamma="scale").fit(features, phases).predict  # type: ignore[no-any-return]
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=max_iterations).fit(features, phases)
    return model.predict  # type: ignore[no-any-return]


def standardised(features: Features, others: Features) -> tuple[Features, Features]:
    """Both with mean 0 and variance 1 in each dimension of `features`; a constant dimension becomes 0."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    scale = np.where(spread > rounding, spread, 1.0)
    return (features - mean) / scale, (others - mean) / scale
