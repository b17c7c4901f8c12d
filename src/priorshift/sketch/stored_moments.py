"""Moments in a file, and what must be true of them if they are sums over rows at all.

‖z‖ = 1 for every row, so that a mean is no longer than 1, the second moment has Σ w² as its trace, of which each pair
of features of one frequency has the same part, and the spread about the mean is not negative in any direction. What
breaks one of these, by more than noise that was added can, is refused; a file whose numbers all fit may still be
wrong, as a table may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from priorshift.arrays import Floats
from priorshift.embedding.moments import Moments
from priorshift.input.fields import Fields

_ROUNDING = 1e-9  # of a sum over many rows
_LEAST, _MOST = 1e-150, 1e150  # of sums of weights, and of their squares
_FAR = 10.0  # standard deviations that no noise is away


def to_stored(moments: Moments) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Give the header and the arrays of a file; of the second moment the upper triangle, row by row.

    Parameters
    ----------
    moments : Moments
        Of a sample.

    Returns
    -------
    header, arrays : dict
    """
    upper = moments.product[np.triu_indices(len(moments.total))]
    sums = np.array([moments.weight, moments.squares])
    arrays = {"weights": sums, "total": moments.total, "squared_total": moments.squared_total, "product": upper}
    return {"rows": moments.rows, "weighted": moments.is_weighted, "noise": moments.noise}, arrays


def from_stored(header: Any, arrays: Mapping[str, NDArray[Any]], size: int) -> Moments:
    """Make moments of what `to_stored` gave.

    Parameters
    ----------
    header : dict
        Of a file, perhaps of someone else's; it is checked.
    arrays : mapping
        Of the same file.
    size : int
        Number of features, D.

    Returns
    -------
    Moments
    """
    fields = Fields(header, "rows weighted noise", "a sketch's sums")
    shapes = {"weights": (2,), "total": (size,), "squared_total": (size,), "product": (size * (size + 1) // 2,)}
    if arrays.keys() != {*shapes, "frequencies"}:
        raise fields.refused(
            f"it has the arrays {sorted(arrays)} where {sorted([*shapes, 'frequencies'])} are expected"
        )
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.float64:
            raise fields.refused(f"its {name!r} is not of {shape} numbers")
    product = np.zeros((size, size))
    upper = np.triu_indices(size)
    product[upper] = arrays["product"]
    product.T[upper] = arrays["product"]
    weight, squares = (float(number) for number in arrays["weights"])
    rows, noise = fields.whole("rows", 1), fields.number("noise", 0.0)
    made = Moments(rows, weight, squares, arrays["total"], arrays["squared_total"], product, noise)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are refused
        wrong = _wrong(made, fields.flag("weighted"))
    if wrong:
        raise fields.refused(wrong)
    return made


def _wrong(moments: Moments, weighted: bool) -> str:
    """What cannot be true of sums over rows; nothing where all can."""
    n, w, w2 = moments.rows, moments.weight, moments.squares
    more = 1 + _ROUNDING
    if not (_LEAST < w < _MOST and _LEAST < w2 < _MOST):
        return "its rows have no weight, or too much"
    if weighted != moments.is_weighted:
        return f"{n} rows do not have the weights that it says"
    if w2 > w * w * more or w * w > n * w2 * more:
        return f"{n} rows cannot have weights with the sums that it says"
    if moments.noise and weighted:
        return "it has noise and weights at once"
    D = len(moments.total)
    K, longest = D // 2, moments.noise * (np.sqrt(D) + _FAR)  # of noise in a mean
    lengths = np.linalg.norm(moments.total), np.linalg.norm(moments.squared_total)
    if lengths[0] > w * more + longest or lengths[1] > w2 * more + longest:
        return "its mean is longer than 1"
    if not weighted and np.abs(moments.total - moments.squared_total).max() > _ROUNDING * w:
        return "its two means differ, though all rows count the same"
    diagonal = np.diagonal(moments.product)
    if np.abs(diagonal[:K] + diagonal[K:] - w2 / K).max() > _ROUNDING * w2 + 2 * _FAR * moments.noise:
        return "its second moment has not the trace of its weights"
    spread = moments.product - np.outer(moments.squared_total, moments.squared_total) / w2
    # a symmetric matrix of noise is no longer than 2√D of it, and a mean's noise stands beside the mean twice
    below = moments.noise * (2 * np.sqrt(D) + _FAR) + 2 * longest + longest**2 / w2
    spread[np.diag_indices_from(spread)] += _ROUNDING * w2 + below
    try:
        cholesky(spread, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return "its spread is negative in some direction"
    return ""
