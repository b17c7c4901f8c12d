"""Scores of small networks that tell labelled from unlabelled rows, as if there were as many of each."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier


def fitted(network: MLPClassifier, X: np.ndarray, y: np.ndarray) -> MLPClassifier:
    """Rows of the smaller class are repeated until both are as many."""
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y != 1)
    most = max(len(ones), len(zeros))
    rows = np.concatenate([np.resize(ones, most), np.resize(zeros, most)])
    with warnings.catch_warnings():  # a limit of iterations is part of the method
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(X[rows], y[rows])
