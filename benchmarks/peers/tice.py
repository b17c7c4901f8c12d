"""TIcE: Bekker and Davis (2018). Estimating the class prior in PU data through decision tree induction. AAAI.

In no part of the space can more than a share c of the rows be labelled, so each part bounds c from below: with T rows,
L of them labelled, c ≥ L/T − √(c(1−c)(1−δ)/(δT)). A tree that is grown on one fold looks for parts that are rich in
labels, best first; the other folds give the bound, and the largest one counts. The mean over five folds is c; it is
found twice, the first time with c = ½ under the root.

The authors' settings: columns scaled to [0, 1] and cut in four at quarters, max-bepp with k = 5, parts of 10 rows at
least, 500 splits, δ = max(0.025, 1/(1 + 0.004 T)). On 12 draws their own code gave the same c to four digits.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np
from benchmarks.peers.label_frequency import unlabeled_share

_FOLDS, _SPLITS, _LEAST, _K, _PARTS = 5, 500, 10, 5, 4


def prior(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    labeled = int(y.sum())
    return unlabeled_share(label_frequency(X, y, seed), labeled, len(y) - labeled)


def label_frequency(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    """c, the share of positives that is labelled."""
    spread = np.ptp(X, axis=0)
    codes = np.clip(_PARTS * (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0), 0, _PARTS - 1).astype(int)
    folds = np.random.default_rng(seed).integers(_FOLDS, size=len(X))
    c = 0.5
    for _ in range(2):
        c = float(np.mean([_bound(codes, y, folds == fold, c) for fold in range(_FOLDS)]))
    return max(c, y.mean())


def _lower(labeled: float, rows: float, delta: float, c: float) -> float:
    return labeled / rows - np.sqrt(c * (1 - c) * (1 - delta) / (delta * rows))


def _bound(codes: np.ndarray, y: np.ndarray, grown: np.ndarray, c: float) -> float:
    """The largest lower bound of c by the rows that are not `grown`, in the parts that a tree of the others finds."""
    train, held = np.flatnonzero(grown), np.flatnonzero(~grown)
    delta = max(0.025, 1 / (1 + 0.004 * len(held)))
    best = y[held].mean()
    order = count()  # of equals, the first
    parts = [(0.0, next(order), train, held, np.arange(codes.shape[1]))]
    for _ in range(_SPLITS):
        if not parts:
            break
        *_, train, held, columns = heapq.heappop(parts)
        enough = c * (1 - c) * (1 - delta) / (delta * (1 - best) ** 2)  # labelled rows that could better the bound
        columns = columns[_counts(codes[held][y[held] == 1][:, columns]).max(axis=1, initial=0) >= max(1, enough)]
        if not len(columns):
            continue
        rows, labeled = _counts(codes[train][:, columns]), _counts(codes[train][y[train] == 1][:, columns])
        bepp = (labeled / (rows + _K)).max(axis=1)
        if bepp.max() <= 0:
            continue
        column = columns[bepp.argmax()]
        if len(np.unique(codes[held, column])) == 1:
            continue  # it splits nothing
        left = columns[columns != column]
        for part in range(_PARTS):
            own, other = train[codes[train, column] == part], held[codes[held, column] == part]
            if len(other) >= _LEAST:
                best = max(best, _lower(y[other].sum(), len(other), delta, c))
            if len(own) > _LEAST and len(other) and 0 < y[own].sum() < len(own):
                heapq.heappush(parts, (-_lower(y[own].sum(), len(own), delta, c), next(order), own, other, left))
    return float(best)


def _counts(codes: np.ndarray) -> np.ndarray:
    """Rows in each part of each column."""
    return np.stack([(codes == part).sum(axis=0) for part in range(_PARTS)], axis=1)
