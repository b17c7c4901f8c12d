"""Probabilities from scores, without negatives: Platt's scaling for positive-unlabelled data.

Let P(Y=1|score) = p = σ(a·score + b) in a population of prior π. Of m positive and n unlabelled rows together, a row of
that score is then a labelled one with odds ρp, ρ = m/(nπ), whatever the law of the scores (Lancaster and Imbens
1996); a and b maximise the likelihood of this. (The moments of the PU risk, E_U[p] = π and E_U[p·score] = πE_P[score],
are simpler, but where the unlabelled sample happens to hold fewer positives than π, no slope is steep enough for them.)
Scores must be of rows held out.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from priorshift.arrays import Floats

_RIDGE = 1e-3  # weight of the penalty a²/2 in the sum over rows: keeps a finite where the samples do not overlap


def calibrate(
    positive: Floats,
    unlabeled: Floats,
    prior: float,
    positive_weights: Floats | float = 1.0,
    unlabeled_weights: Floats | float = 1.0,
) -> tuple[float, float]:
    """Return a ≥ 0 and b, so that σ(a·score + b) is P(Y=1|score) in a population of the given `prior`.

    The first two arguments are scores of held-out rows, shapes (m,) and (n,); weights are one number for each row, or
    one for all.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.calibration import calibrate
    >>> rng = np.random.default_rng(0)  # N(1, 1) among N(-1, 1): the log odds are 2x + log(0.3/0.7)
    >>> positive = rng.normal(1, 1, 20_000)
    >>> unlabeled = np.concatenate([rng.normal(1, 1, 30_000), rng.normal(-1, 1, 70_000)])
    >>> a, b = calibrate(positive, unlabeled, prior=0.3)
    >>> print(round(a, 1), round(b, 1))
    2.0 -0.8
    """
    weights_P = np.broadcast_to(positive_weights, positive.shape)
    weights_U = np.broadcast_to(unlabeled_weights, unlabeled.shape)
    weights = np.concatenate([weights_P, weights_U])
    # scores are standardised, so that the optimiser starts near the solution; the last line undoes it
    centre, spread = float(unlabeled.mean()), float(unlabeled.std()) or 1.0
    scores_P = (positive - centre) / spread
    scores = np.concatenate([scores_P, (unlabeled - centre) / spread])
    ratio = float(weights_P.sum()) / (float(weights_U.sum()) * prior)  # ρ = m/(nπ)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        """Return −Σ_P log p + Σ log(1 + ρp) + penalty, over the number of rows, and its gradient in (a, b)."""
        a, b = coefficients
        z, z_P = a * scores + b, a * scores_P + b
        p = expit(z)
        value = weights @ np.log1p(ratio * p) + weights_P @ np.logaddexp(0, -z_P) + _RIDGE / 2 * a**2
        # derivatives of the two sums with respect to z = a·score + b
        d_all, d_P = weights * ratio * p * (1 - p) / (1 + ratio * p), weights_P * expit(-z_P)
        gradient = np.array([d_all @ scores - d_P @ scores_P + _RIDGE * a, d_all.sum() - d_P.sum()])
        return float(value) / len(scores), gradient / len(scores)

    start = np.array([1.0, np.log(prior / (1 - prior))])
    options = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    bounds = [(0, None), (None, None)]
    a, b = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x  # type: ignore[call-overload]
    return float(a / spread), float(b - a * centre / spread)
