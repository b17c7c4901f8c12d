"""Are the sketches of the positives and of the population swapped? What their spreads tell about it.

The population holds the positives, U = πP + (1−π)N. Let h be any function of a row, and D = E_U h − E_P h; then N lies
D/(1−π) from P, and

    Var_U h = π Var_P h + (1−π) Var_N h + π D²/(1−π),

so that Var_U h is no smaller than π Var_P h + π D²/(1−π). With the two sketches swapped it is, where the classes are
well apart. The h looked at is the witness ⟨μ_U − μ_P, z⟩, whose variances second moments have.
"""

from __future__ import annotations

from math import sqrt

from priorshift.arrays import Floats
from priorshift.embedding.moments import Moments
from priorshift.errors import SampleWarning, warn

_SURE = 3.0  # standard errors below zero, from which on it is no chance
_FOURTH = 4.0  # of a variance's own variance, n Var(s²)/s⁴: 2 for normal values, and rarely above this


def warn_if_swapped(positive: Moments, unlabeled: Moments, prior: float) -> None:
    """Ask whether positives and population were swapped, where they look so.

    Parameters
    ----------
    positive, unlabeled : Moments
        Of the two samples; of rows with weights, and of private ones, nothing is said.
    prior : float
        π, or the least that it may be.
    """
    if any(one.noise or one.is_weighted for one in (positive, unlabeled)):
        return
    if _left(positive, unlabeled, prior) < -_SURE and _left(unlabeled, positive, prior) > -1:
        warn(
            "Positives and unlabelled rows look swapped: the unlabelled rows are spread less than those of a "
            f"population of which a share of {prior:.3g} is like the positives, while the other way round the two fit. "
            "Check which sketch is which.",
            SampleWarning,
        )


def _left(positive: Moments, unlabeled: Moments, prior: float) -> float:
    """What is left of Var_U h for the negatives, (1−π) Var_N h, over its standard error."""
    P, U = positive, unlabeled
    a = U.mean - P.mean
    of_P, of_U = _variance(P, a), _variance(U, a)
    own = sum((1 - float(one.mean @ one.mean)) / one.rows for one in (P, U))  # ‖z‖ = 1
    D, odds = max(float(a @ a) - own, 0.0), prior / (1 - prior)
    error_of_D = 2 * sqrt(of_P / P.rows + of_U / U.rows)
    parts = sqrt(_FOURTH / U.rows) * of_U, sqrt(_FOURTH / P.rows) * prior * of_P, 2 * odds * D * error_of_D
    error = sqrt(sum(part**2 for part in parts))
    return (of_U - prior * of_P - odds * D**2) / error if error > 0 else 0.0


def _variance(sample: Moments, a: Floats) -> float:
    return max(float(a @ sample.product @ a) / sample.rows - float(a @ sample.mean) ** 2, 0.0)
