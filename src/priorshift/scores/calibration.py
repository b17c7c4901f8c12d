"""Probabilities from scores, without negatives: a monotone calibration for positive-unlabelled data.

Let P(Y=1|score) = p in a population of prior π. Of m positive and n unlabelled rows together, a row of that score is
then a labelled one with odds ρp, ρ = m/(nπ), whatever the law of the scores (Lancaster and Imbens 1996). The log odds
of p are an increasing, piecewise linear function of the score that maximises the likelihood of this, with a penalty on
changes of its slope: where nothing is known it is a straight line, as in Platt's scaling. A straight line alone is
wrong where the scores of one class vary more than those of the other, and most wrong far from the source prior. (The
moments of the PU risk, E_U[p] = π and E_U[p·score] = πE_P[score], are simpler, but where the unlabelled sample happens
to hold fewer positives than π, no slope is steep enough for them.) Scores must be of rows held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from priorshift.arrays import Floats

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of either sample, between which the calibration is linear
_LEAST_PIECE = 1e-3  # least distance of knots, in standard deviations of the score
_EQUAL = 1e-12  # spread of scores, relative to their size, below which they are equal
_RIDGE = 1e-3  # weight of the penalty slope²/2 in the sum over rows: keeps slopes finite where samples do not overlap
_BEND = 0.3  # weight of the penalty (change of slope)²/2, where scores have unit spread


@dataclass(frozen=True, eq=False)
class Calibration:
    """Log odds of the positive class as an increasing function of a score: linear between knots and beyond them.

    Attributes
    ----------
    knots : ndarray
        Scores, increasing; at least two.
    log_odds : ndarray
        Log odds at these scores.
    """

    knots: Floats
    log_odds: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Return the log odds of each score."""
        x, z = self.knots, self.log_odds
        inside = np.interp(scores, x, z)
        slopes = np.diff(z) / np.diff(x)
        below, above = np.minimum(scores - x[0], 0.0), np.maximum(scores - x[-1], 0.0)
        return np.asarray(inside + slopes[0] * below + slopes[-1] * above)


IDENTITY = Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]))  # for scores that are log odds already


def calibrate(
    positive: Floats,
    unlabeled: Floats,
    prior: float,
    positive_weights: Floats | float = 1.0,
    unlabeled_weights: Floats | float = 1.0,
) -> Calibration:
    """Return the log odds of P(Y=1|score) in a population of the given `prior`, as a function of the score.

    The first two arguments are scores of held-out rows, shapes (m,) and (n,); weights are one number for each row, or
    one for all.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.calibration import calibrate
    >>> rng = np.random.default_rng(0)  # N(1, 1) among N(-1, 1): the log odds are 2x + log(0.3/0.7)
    >>> positive = rng.normal(1, 1, 20_000)
    >>> unlabeled = np.concatenate([rng.normal(1, 1, 30_000), rng.normal(-1, 1, 70_000)])
    >>> calibration = calibrate(positive, unlabeled, prior=0.3)
    >>> print(calibration(np.array([0.0, 1.0])).round(1))
    [-0.8  1.1]
    """
    weights_P = np.broadcast_to(positive_weights, positive.shape)
    weights_U = np.broadcast_to(unlabeled_weights, unlabeled.shape)
    weights = np.concatenate([weights_P, weights_U])
    # scores are standardised, so that penalties have the same meaning everywhere; the last line undoes it
    scores, m = np.concatenate([positive, unlabeled]), len(positive)
    centre = float(np.average(unlabeled, weights=weights_U))
    spread = float(np.sqrt(np.average((unlabeled - centre) ** 2, weights=weights_U)))
    if spread <= _EQUAL * np.abs(scores).max():  # all scores of U are equal, but for rounding
        spread = float(np.ptp(scores)) or 1.0
    scores = (scores - centre) / spread
    knots = _choose_knots(scores[:m], weights_P, scores[m:], weights_U)
    lengths = _lengths_below(scores, knots)  # shape (rows, pieces)
    of_P = lengths[:m]
    ratio = float(weights_P.sum()) / (float(weights_U.sum()) * prior)  # ρ = m/(nπ)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        """Return −Σ_P log p + Σ log(1 + ρp) + penalties, over the number of rows, and its gradient.

        The coefficients are the slope of each piece and the log odds at the first knot.
        """
        slopes, constant = coefficients[:-1], coefficients[-1]
        z, z_P = lengths @ slopes + constant, of_P @ slopes + constant
        p, bends = expit(z), np.diff(slopes)
        value = weights @ np.log1p(ratio * p) + weights_P @ np.logaddexp(0, -z_P)
        value += _RIDGE / 2 * (slopes @ slopes) + _BEND / 2 * (bends @ bends)
        # derivatives of the two sums with respect to z
        d_all, d_P = weights * ratio * p * (1 - p) / (1 + ratio * p), weights_P * expit(-z_P)
        d_slopes = d_all @ lengths - d_P @ of_P + _RIDGE * slopes
        d_slopes[:-1] -= _BEND * bends
        d_slopes[1:] += _BEND * bends
        return float(value) / len(scores), np.append(d_slopes, d_all.sum() - d_P.sum()) / len(scores)

    pieces = len(knots) - 1
    start = np.append(np.ones(pieces), np.log(prior / (1 - prior)) + knots[0])  # a slope of 1 through the mean score
    options = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    bounds = [(0, None)] * pieces + [(None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x  # type: ignore[call-overload]
    log_odds = found[-1] + np.concatenate([[0.0], np.cumsum(found[:-1] * np.diff(knots))])
    return Calibration(centre + spread * knots, log_odds)


def _choose_knots(positive: Floats, weights_P: Floats, unlabeled: Floats, weights_U: Floats) -> Floats:
    """Return the ends of the pieces, increasing: scores that are quantiles of either sample, and not nearly equal."""
    knots = []
    for scores, weights in ((positive, weights_P), (unlabeled, weights_U)):
        order = np.argsort(scores)
        below = np.cumsum(weights[order]) / weights.sum()  # share of the weight up to each score
        index = np.minimum(np.searchsorted(below, np.array(_QUANTILES) - 1e-12), len(scores) - 1)
        knots.append(scores[order][index])
    distinct = np.unique(knots)
    distinct = distinct[np.diff(distinct, prepend=-np.inf) > _LEAST_PIECE]
    return distinct if len(distinct) > 1 else distinct[0] + np.array([0.0, 1.0])


def _lengths_below(scores: Floats, knots: Floats) -> Floats:
    """Return how much of each piece lies below each score, shape (scores, pieces); the outer pieces have no end."""
    lengths = np.clip(scores[:, None], knots[:-1], knots[1:]) - knots[:-1]
    lengths[:, 0] += np.minimum(scores - knots[0], 0.0)
    lengths[:, -1] += np.maximum(scores - knots[-1], 0.0)
    return lengths
