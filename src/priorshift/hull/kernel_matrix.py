"""The Gram matrix that KM works on: distances of all pairs, the bandwidth, the matrix itself."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from priorshift.arrays import Floats
from priorshift.embedding.tiles import kernel_sums
from priorshift.errors import InputError
from priorshift.input.scaling import Rows
from priorshift.kernels import Gaussian

_WIDTHS = np.logspace(-1, 1, 5)  # of the median distance
_BLOCK = 256  # rows of the matrix that are filled at a time
RIDGE = 1e-8  # keeps faces with repeated rows solvable; 1e-7 to 1e-11 move a prior by less than 0.001


def pair_distances(rows: Floats) -> Floats:
    """Squared distances of all pairs of rows, in scipy's condensed form."""
    return np.asarray(pdist(rows, "sqeuclidean"))


def gram_matrix(rows: Floats, bandwidth: float) -> Floats:
    """Gaussian kernel of all rows, with a ridge on its diagonal."""
    kernel = Gaussian(bandwidth)
    K = np.empty((len(rows), len(rows)))
    whole = kernel.strip(rows, K.dtype)
    for at in range(0, len(rows), _BLOCK):
        block = K[at : at + _BLOCK]
        part = kernel.strip(rows[at : at + _BLOCK], K.dtype)
        if kernel.tile(part, whole, block):
            block *= part.weights[:, None]
            block *= whole.weights
    K.flat[:: len(K) + 1] = 1 + RIDGE
    return K


def search_bandwidth(rows: Floats, distances: Floats, positive: Floats, population: Floats) -> float:
    """Of five multiples of the median distance, the bandwidth under which ‖μ_U − μ_P‖ is largest.

    `positive` and `population` are what each row counts in the means.
    """
    middle = median_distance(distances, len(rows))
    if middle == 0:
        raise InputError(
            "at least half of the pairs of rows are identical, so KM finds no bandwidth; pass a known source_prior, or "
            "KM2(bandwidth=…) as source_prior."
        )
    zero, one = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    of_P, of_U = np.flatnonzero(positive), np.flatnonzero(population)
    P, U = Rows(rows, zero, one, of_P), Rows(rows, zero, one, of_U)
    p, u = len(P) * positive[of_P], len(U) * population[of_U]
    separations = []
    for width in _WIDTHS * middle:
        kernel = Gaussian(width)
        pp, uu, pu = (
            x @ kernel_sums(kernel, X, None if X is Y else Y, weights=(x, y))[0] / len(X) / len(Y)
            for X, x, Y, y in ((P, p, P, p), (U, u, U, u), (P, p, U, u))
        )
        separations.append(uu - 2 * pu + pp)
    return float(_WIDTHS[int(np.argmax(separations))] * middle)


def median_distance(distances: Floats, n: int) -> float:
    """Median of the whole n × n matrix of distances: its diagonal adds n zeros, and every pair counts twice.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.hull.kernel_matrix import median_distance, pair_distances
    >>> median_distance(pair_distances(np.array([[0.0], [3.0], [7.0]])), 3)
    3.0
    """
    middle = ((n * n - 1) // 2, n * n // 2)  # the same where n² is odd
    at = [(k - n) // 2 if k >= n else None for k in middle]
    ranks = sorted({k for k in at if k is not None})
    parted = np.partition(distances, ranks) if ranks else distances
    return float(np.mean([0.0 if k is None else np.sqrt(parted[k]) for k in at]))
