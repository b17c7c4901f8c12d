"""pulearn (BSD), called as its documentation does: logistic regression gives the scores, everything else by default.

Its prior is that of labelled and unlabelled rows together. Elkan and Noto (2008), Learning classifiers from only
positive and unlabeled data (KDD), is its ElkanotoPuClassifier, whose `c` is the mean score of positives held out.
"""

from __future__ import annotations

import numpy as np
from benchmarks.peers.label_frequency import unlabeled_share


def _of_unlabeled(prior: float, y: np.ndarray) -> float:
    labeled = int(y.sum())
    return (prior * len(y) - labeled) / (len(y) - labeled)


def pulearn_histogram(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    from pulearn import HistogramMatchPriorEstimator

    return _of_unlabeled(HistogramMatchPriorEstimator().estimate(X, y).pi, y)


def pulearn_em(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    from pulearn import ScarEMPriorEstimator

    return _of_unlabeled(ScarEMPriorEstimator().estimate(X, y).pi, y)


def elkan_noto(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    from pulearn import ElkanotoPuClassifier
    from sklearn.linear_model import LogisticRegression

    found = ElkanotoPuClassifier(LogisticRegression(max_iter=1000), random_state=seed).fit(X, y)
    labeled = int(y.sum())
    return unlabeled_share(found.c, labeled, len(y) - labeled)
