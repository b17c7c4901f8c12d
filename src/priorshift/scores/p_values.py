"""Conformal p-values: v(x), the rank of a row's score among those of the positives.

For positives it is uniform, whatever the score is; negatives pile up near 0.
"""

from __future__ import annotations

import numpy as np

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
