"""Conformal p-values: v(x), the rank of a row's score among those of the positives.

For positives it is uniform, whatever the score is; negatives pile up near 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats


def p_values(positive: Floats, scores: Floats) -> Floats:
    """(rank + ½)/(m + 1) of each score among the positives', ties counted half.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.p_values import p_values
    >>> p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([0.125, 0.5  , 0.875])
    """
    ranked = np.sort(positive)
    below = (np.searchsorted(ranked, scores, "left") + np.searchsorted(ranked, scores, "right")) / 2
    return np.asarray((below + 0.5) / (len(positive) + 1))


class Ranks:
    """Where scores stand among the positives', for p-values under any weights of the positives."""

    def __init__(self, positive: Floats, scores: Floats) -> None:
        self.order = np.argsort(positive, kind="stable")
        ranked = positive[self.order]
        self.low, self.high = (np.searchsorted(ranked, scores, side) for side in ("left", "right"))

    def p_values(self, weights: NDArray[np.integer]) -> Floats:
        """The p-values where each positive counts as often as its weight says."""
        below = np.concatenate([[0], np.cumsum(weights[self.order])])
        return np.asarray(((below[self.low] + below[self.high]) / 2 + 0.5) / (below[-1] + 1))
