"""Conformal p-values: v(x), the rank of a row's score among those of the positives.

For positives it is uniform, whatever the score is; negatives pile up near 0.
"""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats, Index


def p_values(
    positive: Floats,
    scores: Floats,
    mass: Floats | None = None,
    worth: float | None = None,
    *,
    in_order: bool = False,
) -> Floats:
    """(rank + ½)/(m + 1) of each score among the positives', ties counted half.

    Where positives count differently, with a `mass` that sums to 1, m is what they are worth, and a rank m times the
    mass below. Positives `in_order` are not sorted again.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.p_values import p_values
    >>> p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([0.125, 0.5  , 0.875])
    """
    if mass is None:
        ranked, m = positive if in_order else np.sort(positive), float(len(positive))
        first, end = _ranks(ranked, scores)
        below = (first + end) / 2
    else:
        order = np.argsort(positive, kind="stable")
        ranked, m = positive[order], len(positive) if worth is None else worth
        first, end = _ranks(ranked, scores)
        up_to = m * np.concatenate([[0.0], np.cumsum(mass[order])])
        below = (up_to[first] + up_to[end]) / 2
    return np.asarray((below + 0.5) / (m + 1))


def _ranks(ranked: Floats, scores: Floats) -> tuple[Index, Index]:
    """How many are below each score, and how many are not above it; the second is searched for among ties alone."""
    first = np.searchsorted(ranked, scores, "left")
    tied = np.flatnonzero(ranked[np.minimum(first, len(ranked) - 1)] == scores)
    end = first.copy()
    end[tied] = np.searchsorted(ranked, scores[tied], "right")
    return first, end
