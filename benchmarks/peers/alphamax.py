"""AlphaMax: Jain, White, Trosset and Radivojac (2016). Nonparametric semi-supervised learning of class proportions.

1. Rows become one number: the mean of networks of five hidden units that tell P from U, each fitted to a bootstrap
   sample and asked of the rows outside it.
2. Bins of that number hold the shares p of P and w of U. Were α the prior, a part b ≤ w of U's share, α in all, would
   be positives, and the likelihood, in which each sample counts as one row, is at most

       L(α) = max over b of Σ w log(αp + w − b) + Σ p log(b/α).

   It is concave and separates over bins but for Σb = α, so that one multiplier solves it.
3. L is flat up to the prior and falls beyond. With f = −L, scaled to [0, 1] and smoothed by medians of five, the prior
   is where the slope rises most, from ten points before to ten points after, relative to the level before.

The authors average a hundred networks; twenty-five are taken here, for the time. Their lines of the third step stay
below the points, ours are least squares. Below 0.1 the grid has no ten points before, so that their code cannot answer
that; here f is continued by its first value. Of numpy's rules for bins, the one with the smallest error on 21 UCI draws
is taken. Written after the paper and its later authors' Matlab code for the third step, with which it was not compared.
"""

from __future__ import annotations

import numpy as np
from benchmarks.peers.networks import fitted
from scipy.ndimage import median_filter
from sklearn.neural_network import MLPClassifier

_NETWORKS = 25
_GRID = np.arange(0.01, 1.0, 0.01)
_POINTS = 10


def prior(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    scores = _scores(X, y, np.random.default_rng(seed))
    return prior_of_scores(scores[y == 1], scores[y == 0])


def _scores(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    total, times = np.zeros(len(X)), np.zeros(len(X))
    for _ in range(_NETWORKS):
        drawn = np.concatenate([rng.choice(ones, len(ones)), rng.choice(zeros, len(zeros))])
        rest = np.setdiff1d(np.arange(len(X)), drawn)
        network = MLPClassifier((5,), solver="lbfgs", max_iter=50, random_state=int(rng.integers(2**31)))
        total[rest] += fitted(network, X[drawn], y[drawn]).predict_proba(X[rest])[:, 1]
        times[rest] += 1
    return total / np.maximum(times, 1)


def prior_of_scores(of_P: np.ndarray, of_U: np.ndarray) -> float:
    """Steps 2 and 3; bins are as wide as numpy's rule makes them for P."""
    pooled = np.concatenate([of_P, of_U])
    width = np.diff(np.histogram_bin_edges(of_P, bins="auto")[:2])[0]
    edges = np.arange(pooled.min(), pooled.max() + width, width)
    p, w = (np.histogram(scores, bins=edges)[0] / len(scores) for scores in (of_P, of_U))
    return elbow(np.array([-likelihood(alpha, p, w) for alpha in _GRID]))


def likelihood(alpha: float, p: np.ndarray, w: np.ndarray) -> float:
    """L(α), by bisection for the multiplier of Σb = α."""
    p, w = p[w > 0] + 1e-12, w[w > 0]

    def _parts(multiplier: float) -> np.ndarray:
        # p/b − w/(αp + w − b) = multiplier: a root in (0, αp + w) of a quadratic in b, written so that nothing cancels
        s = alpha * p + w
        linear = p + w + multiplier * s
        root = np.sqrt(np.maximum(linear**2 - 4 * multiplier * p * s, 0))
        falling = linear < 0
        b = np.where(falling, linear - root, 2 * p * s) / np.where(falling, 2 * multiplier, linear + root)
        return np.clip(b, 0, w)

    low, high = -1e6, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _parts(middle).sum() > alpha else (low, middle)
    b = np.maximum(_parts(low), 1e-12)
    return float(w @ np.log(alpha * p + w - b) + p @ np.log(b / alpha))


def elbow(f: np.ndarray) -> float:
    """The point of the grid after which f rises."""
    f = median_filter((f - f.min()) / np.ptp(f), 5, mode="nearest")
    f = np.concatenate([np.repeat(f[0], _POINTS - 1), f])
    steps = np.arange(_POINTS) - (_POINTS - 1) / 2
    slopes = np.array([steps @ f[k : k + _POINTS] for k in range(len(f) - _POINTS + 1)]) / (steps @ steps)
    levels = np.array([np.median(f[k : k + _POINTS]) for k in range(len(slopes))])
    rises = (slopes[_POINTS:] - slopes[:-_POINTS]) / (levels[:-_POINTS] + 0.01)
    return float(_GRID[np.argmax(rises)])
