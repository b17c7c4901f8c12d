"""PULSCAR: Kumar and Lambert (2024). Positive unlabeled learning selected not at random (PULSNAR). PeerJ Comput. Sci.

1. XGBoost tells P from U; every row gets the probability of a model that did not see it (five folds, its defaults).
2. Densities of P's and U's probabilities by Chen's beta kernels, on a grid of as many points as Scott's rule gives bins
   (the nearest power of two, 512 at most). The bandwidth, within 0.01 and 0.5, is the one at which the density of all
   rows is nearest to their histogram in the mean of squares.
3. ε(α) is the smallest f_U − αf_P above a probability of ½; α, of a grid of 10,000, is where the slope of
   log₁₀(|ε(α)| + min f_P) changes most.

PULSNAR is the same after the positives were clustered, for labels that depend on the features; here they do not. Their
package is in no index and asks for R. On the same scores of 28 draws its own code for steps 2 and 3 gave the same,
with the local search for the bandwidth of its examples; its default searches globally.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import beta
from sklearn.model_selection import StratifiedKFold, cross_val_predict

_GRID = np.arange(10_000) / 10_000


def prior(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    from xgboost import XGBClassifier

    model = XGBClassifier(max_depth=6, n_jobs=1, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    scores = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1].astype(float)
    return prior_of_scores(scores[y == 1], scores[y == 0])


def prior_of_scores(of_P: np.ndarray, of_U: np.ndarray) -> float:
    """Steps 2 and 3."""
    pooled = np.concatenate([of_P, of_U])
    points = _points(pooled)
    bars = np.histogram(pooled, bins=points, range=(0, 1))[0] / len(pooled)
    width = minimize_scalar(
        lambda b: np.mean((_density(pooled, points, b) - bars) ** 2), bounds=(0.01, 0.5), method="bounded"
    ).x
    f_P, f_U = (_density(scores, points, width) for scores in (of_P, of_U))
    upper = np.linspace(0, 1, points) > 0.5
    least = (f_U[upper] - _GRID[:, None] * f_P[upper]).min(axis=1)
    slope = np.diff(np.log10(np.abs(least) + (f_P.min() or 1e-10)))
    return float(_GRID[1 + np.argmax(np.abs(np.diff(slope)))])


def _points(scores: np.ndarray) -> int:
    bins = np.ptp(scores) / (3.5 * scores.std() / len(scores) ** (1 / 3))
    low, high = 2 ** np.floor(np.log2(bins)), 2 ** np.ceil(np.log2(bins))
    return int(min(512, low if bins - low < high - bins else high))


def _density(scores: np.ndarray, points: int, width: float) -> np.ndarray:
    """Of Chen's beta kernels, summing to one over the grid."""
    x = np.linspace(0, 1, points)[:, None]
    density = beta.pdf(scores, x / width + 1, (1 - x) / width + 1).mean(axis=1)
    return density / density.sum()
