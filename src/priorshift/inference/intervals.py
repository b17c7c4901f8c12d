"""How sure an estimate is: the delta method and the bootstrap.

Everything here is a function of the :class:`~priorshift.embedding.gram.Embeddings` and of the source
prior π. With a = μ_U − μ_P and b = μ_T − μ_P, the ratio is R = N/D, N = ⟨a, b⟩, D = ⟨a, a⟩, and
π′ = 1 − (1−π)R.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from priorshift.arrays import Floats
from priorshift.embedding.gram import Embeddings, numerator, separation
from priorshift.inference.bounds import (
    check_bounded,
    check_even,
    paper_bound,
    required_sample_size,
    sharp_bound,
    unit,
    where_not_positive,
)
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.results import Interval

__all__ = [
    "METHODS",
    "bootstrap",
    "check_bounded",
    "check_even",
    "curve",
    "curve_with_prior",
    "delta",
    "paper_bound",
    "ratio",
    "ratio_influence",
    "required_sample_size",
    "separation_error",
    "sharp_bound",
    "standard_error",
]

METHODS = ("delta", "bootstrap", "paper-bound", "sharp-bound")

_ANY_RATIO = 1e100  # above every ratio, and its square a number
_a = np.array([-1.0, 1.0, 0.0])
_b = np.array([-1.0, 0.0, 1.0])
_N = (np.outer(_a, _b) + np.outer(_b, _a)) / 2  # N = Σ _N_jk G_jk
_D = np.outer(_a, _a)


def _variances(embeddings: Embeddings, source_prior: float) -> tuple[float, float, float]:
    """Var(N̂), Cov(N̂, D), Var(D), with N̂ = (1−π)N and the error of π in it, where π is an estimate."""
    keep, N = 1 - source_prior, float(numerator(embeddings.gram))
    n, d = embeddings.variance(_N)[0], embeddings.variance(_D)[0]
    c = (n + d - embeddings.variance(_N - _D)[0]) / 2
    with_prior = embeddings.prior_covariance
    n_prior, d_prior = (float((A * with_prior).sum()) for A in (_N, _D))
    return (
        keep**2 * n - 2 * keep * N * n_prior + N**2 * embeddings.prior_variance,
        keep * c - N * d_prior,
        d,
    )


def standard_error(embeddings: Embeddings, source_prior: float) -> float:
    """Compute the standard error of the raw estimate, √Var((1−π)N − (1−π′)D)/D.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    source_prior : float
        π.

    Returns
    -------
    float

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> print(f"{ps.inference.intervals.standard_error(embeddings, source_prior=0.2):.3f}")
    0.042
    """
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    n, c, d = _variances(embeddings, source_prior)
    kept = (1 - source_prior) * N / D
    return sqrt(max(n - 2 * kept * c + kept**2 * d, 0.0)) / abs(D)


def ratio(embeddings: Embeddings, confidence: float) -> tuple[float, Interval]:
    """Compute the standard error and Fieller's interval of R = N/D, as `delta` does for the target prior.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    confidence : float
        Of the interval.

    Returns
    -------
    error : float
        √Var(N − RD)/D.
    interval : Interval
        Every R from 0 on that the data do not reject; its upper end can be infinite.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> error, interval = ps.inference.intervals.ratio(embeddings, confidence=0.95)
    >>> print(f"{error:.3f}, {interval.low:.2f} to {interval.high:.2f}")
    0.053, 0.47 to 0.68
    """
    low, high, _ = _fieller(embeddings, 0.0, confidence, _ANY_RATIO)
    interval = Interval(low, high if high < _ANY_RATIO else float("inf"), confidence, "delta")
    return standard_error(embeddings, 0.0), interval


def curve(embeddings: Embeddings) -> FiellerCurve:
    """Compute the confidence distribution of R = N/D, whose two-sided test is that of `delta`.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.

    Returns
    -------
    FiellerCurve

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> curve = ps.inference.intervals.curve(embeddings)
    >>> curve([0.4, 0.5, 0.6]).round(2)
    array([0.  , 0.08, 0.67])
    """
    R = float(numerator(embeddings.gram)) / float(separation(embeddings.gram))
    n, c, d = (variance / separation(embeddings.gram) ** 2 for variance in _variances(embeddings, 0.0))
    return FiellerCurve(R, float(n), float(c), float(d), _freedom(embeddings))


def curve_with_prior(embeddings: Embeddings, source_prior: float) -> FiellerCurve:
    """Compute the confidence distribution of R with the error of an estimated π in it.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    source_prior : float
        π, as known or as estimated.

    Returns
    -------
    FiellerCurve
        Whose interval of π′ at this π is that of `delta`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> low, high = ps.inference.intervals.curve_with_prior(embeddings, 0.2).interval(0.2, confidence=0.95)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.455 to 0.627
    """
    D, keep = float(separation(embeddings.gram)), 1 - source_prior
    n, c, d = (variance / D / D for variance in _variances(embeddings, source_prior))
    R = float(numerator(embeddings.gram)) / D
    return FiellerCurve(R, n / keep**2, c / keep, d, _freedom(embeddings))


def ratio_influence(embeddings: Embeddings) -> tuple[Floats, Floats, Floats]:
    """Compute how much each row of P, U and T moves R = N/D.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples, exact.

    Returns
    -------
    positive, unlabeled, target : ndarray
        Scaled so that squares add up to variances.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> of_P, of_U, of_T = ps.inference.intervals.ratio_influence(embeddings)
    >>> print(f"{sum(float((v**2).sum()) for v in (of_P, of_U, of_T)) ** 0.5:.3f}")  # the standard error of R
    0.053
    """
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    of_P, of_U, of_T = embeddings.moves((_N - N / D * _D) / D)
    return of_P, of_U, of_T


def separation_error(embeddings: Embeddings) -> float:
    """Compute the standard error of the separation D.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.

    Returns
    -------
    float

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> print(f"{ps.inference.intervals.separation_error(embeddings):.4f}")
    0.0193
    """
    return sqrt(embeddings.variance(_D)[0])


def delta(embeddings: Embeddings, source_prior: float, confidence: float) -> tuple[Interval, bool]:
    """Compute the interval that inverts the delta-method test of every π′ in [0, 1] (Fieller's form).

    π′ is kept when S² ≤ q² Var(S), with S = (1−π)N − (1−π′)D and q Student's quantile with Satterthwaite's
    degrees of freedom. Var(S) includes the error of π where it is an estimate, and is taken at the π′ that is
    tested, so that a poorly known D widens the interval, up to [0, 1]. A raw estimate outside [0, 1] gets the
    interval of the nearer end, which is the wider one.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    source_prior : float
        π.
    confidence : float
        Of the interval.

    Returns
    -------
    interval : Interval
    plausible : bool
        False when no π′ in [0, 1] passes the test.

    References
    ----------
    Fieller (1954). Some problems in interval estimation. Journal of the Royal Statistical Society B 16.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> interval, plausible = ps.inference.intervals.delta(embeddings, source_prior=0.2, confidence=0.95)
    >>> print(f"{interval.low:.3f} to {interval.high:.3f}", plausible)
    0.455 to 0.627 True
    """
    low, high, plausible = _fieller(embeddings, source_prior, confidence, 1.0)
    return Interval(unit(1 - high), unit(1 - low), confidence, "delta"), plausible


def _fieller(embeddings: Embeddings, source_prior: float, confidence: float, most: float) -> tuple[float, float, bool]:
    """Smallest and largest (1−π)R from 0 to `most` that pass the test, and whether any does.

    An estimate outside that range gets the interval of the nearer end.
    """
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    n, c, d = (variance / D / D for variance in _variances(embeddings, source_prior))  # of (1−π)N/D and so on
    q = float(stats.t.ppf((1 + confidence) / 2, _freedom(embeddings)))
    if not np.isfinite([q, n, c, d]).all():
        return 0.0, most, True

    def passing(negatives: float) -> tuple[float, float] | None:
        return where_not_positive(1 - q * q * d, -2 * (negatives - q * q * c), negatives**2 - q * q * n, 0.0, most)

    negatives = (1 - source_prior) * N / D
    ends = passing(negatives)
    inside = float(min(max(negatives, 0.0), most))
    plausible = ends is not None or inside == negatives
    if inside != negatives:
        ends = passing(inside)
    low, high = ends if ends is not None else (inside, inside)  # no variance at all, up to rounding
    return low, high, plausible


def _freedom(embeddings: Embeddings) -> float:
    """Satterthwaite's degrees of freedom of N − RD at the estimate, taken for every R that is tested."""
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    return max(embeddings.variance(_N - N / D * _D)[1], 1.0)


def bootstrap(grams: NDArray[np.float64], source_prior: ArrayLike, confidence: float, value: float) -> Interval:
    """Compute the percentile interval from bootstrap samples.

    A replicate whose separation is not positive has no estimate; it counts as arbitrarily low at the lower
    end and arbitrarily high at the upper one.

    Parameters
    ----------
    grams : ndarray of shape (replicates, 3, 3)
        Gram matrices of the samples.
    source_prior : float or array-like of shape (replicates,)
        π, or one for each replicate where it is an estimate.
    confidence : float
        Of the interval.
    value : float
        The estimate of π′; the interval is widened, if need be, to hold it.

    Returns
    -------
    Interval

    References
    ----------
    Efron (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics 7.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.intervals import bootstrap
    >>> means = np.array([[0.0, 0.8, at] for at in np.linspace(0.35, 0.45, 101)])  # P, U and T on a line, T resampled
    >>> interval = bootstrap(means[:, :, None] * means[:, None, :], source_prior=0.2, confidence=0.9, value=0.6)
    >>> print(f"{interval.low:.3f} to {interval.high:.3f}")
    0.554 to 0.645
    """
    D = separation(grams)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = 1 - (1 - np.asarray(source_prior)) * numerator(grams) / D
    known = np.isfinite(draws) & (D > 0)
    tail = (1 - confidence) / 2
    low = np.quantile(np.where(known, draws, -1e300), tail, method="lower")
    high = np.quantile(np.where(known, draws, 1e300), 1 - tail, method="higher")
    return Interval(min(unit(low), value), max(unit(high), value), confidence, "bootstrap")
