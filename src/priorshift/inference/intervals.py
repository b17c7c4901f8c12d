"""Standard errors and intervals of R and of the target prior, from mean embeddings.

Everything here is a function of the :class:`~priorshift.embedding.gram.Embeddings`, of the source prior π and of the
purity q of the labelled rows, which is 1 without label errors. With a = μ_U − μ_P and b = μ_T − μ_P, the ratio is
R = N/D, N = ⟨a, b⟩, D = ⟨a, a⟩, and π′ = q − (q−π)R. An estimate of π from the rows is q times that of κ = π/q.

The delta method and the bootstrap hold for large samples. The paper's bound and a sharper one hold at any sample size;
both bound the plug-in estimate, for a kernel with values in [0, M] and independent rows of equal weight.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from priorshift.arrays import Floats
from priorshift.embedding.gram import Embeddings, numerator, separation
from priorshift.errors import InputError, IntervalWarning
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.io.parameters import check_number
from priorshift.kernels import Kernel
from priorshift.results import Interval
from priorshift.warning_records import warn

METHODS = ("delta", "bootstrap", "paper-bound", "sharp-bound")
BOUNDS = METHODS[2:]

_ANY_RATIO = 1e100  # above every ratio, and its square is finite
_LARGEST_DELTA = exp(-((sqrt(2) + 1) ** 2) / 2)  # Theorems 1 and 2 hold for no larger δ: 0.0543
# coefficients of N = Σ _N_jk G_jk and D = Σ _D_jk G_jk in the Gram matrix G of the means of P, U and T
_a = np.array([-1.0, 1.0, 0.0])  # a = μ_U − μ_P
_b = np.array([-1.0, 0.0, 1.0])  # b = μ_T − μ_P
_N = (np.outer(_a, _b) + np.outer(_b, _a)) / 2
_D = np.outer(_a, _a)


def _variances(embeddings: Embeddings, source_prior: float, purity: float = 1.0) -> tuple[float, float, float]:
    """Compute Var(M), Cov(M, D) and Var(D) of M = (q−π)N, with the error of π where it is an estimate from the rows."""
    factor, N = purity - source_prior, float(numerator(embeddings.gram))
    var_N, var_D = embeddings.variance(_N)[0], embeddings.variance(_D)[0]
    cov_ND = (var_N + var_D - embeddings.variance(_N - _D)[0]) / 2  # from Var(N − D)
    # covariances with the estimate of π; 0 for a known π
    cov_N_prior = purity * float((_N * embeddings.prior_covariance).sum())
    cov_D_prior = purity * float((_D * embeddings.prior_covariance).sum())
    # delta method: dM = (q−π)dN − N dπ, where dπ = q dκ
    var_M = factor**2 * var_N - 2 * factor * N * cov_N_prior + N**2 * (purity**2 * embeddings.prior_variance)
    return var_M, factor * cov_ND - N * cov_D_prior, var_D


def standard_error(embeddings: Embeddings, source_prior: float, purity: float = 1.0) -> float:
    """Compute the standard error of the raw estimate of π′, √Var((q−π)N − (q−π′)D)/D."""
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    var_M, cov_MD, var_D = _variances(embeddings, source_prior, purity)  # M = (q−π)N
    negatives = (purity - source_prior) * N / D  # estimate of q − π′
    return sqrt(max(var_M - 2 * negatives * cov_MD + negatives**2 * var_D, 0.0)) / abs(D)


def ratio_error_and_interval(embeddings: Embeddings, confidence: float) -> tuple[float, Interval]:
    """Compute the standard error √Var(N − RD)/D of R, and Fieller's interval, up to infinity if D may be 0."""
    # 1 − π′ = (1−π)R, so that at π = 0 the formulas for 1 − π′ are those for R
    low, high, _ = _fieller(embeddings, source_prior=0.0, confidence=confidence, largest=_ANY_RATIO)
    interval = Interval(low, high if high < _ANY_RATIO else float("inf"), confidence, "delta")
    return standard_error(embeddings, source_prior=0.0), interval


def curve(embeddings: Embeddings) -> FiellerCurve:
    """Compute the confidence distribution of R = N/D, by the test that `delta` inverts."""
    R, D = float(numerator(embeddings.gram)) / float(separation(embeddings.gram)), separation(embeddings.gram)
    # with π = 0, M = (1−π)N is N itself
    var_N, cov_ND, var_D = (variance / D**2 for variance in _variances(embeddings, source_prior=0.0))
    return FiellerCurve(R, float(var_N), float(cov_ND), float(var_D), _freedom(embeddings))


def curve_with_prior(embeddings: Embeddings, source_prior: float) -> FiellerCurve:
    """Compute the confidence distribution of R with the error of an estimated π in it.

    Its interval of π′ at this π is that of `delta`. With label errors `source_prior` is κ = π/q.
    """
    D, factor = float(separation(embeddings.gram)), 1 - source_prior
    var_M, cov_MD, var_D = (variance / D / D for variance in _variances(embeddings, source_prior))  # M = (1−π)N
    R = float(numerator(embeddings.gram)) / D
    return FiellerCurve(R, var_M / factor**2, cov_MD / factor, var_D, _freedom(embeddings))  # N = M/(1−π)


def ratio_influence(embeddings: Embeddings) -> tuple[Floats, Floats, Floats]:
    """Compute the influence on R = N/D of each row of P, of U and of T: three arrays, whose squares sum to Var(R̂).

    Rows of one observation count together: their influences are added up before they are squared.
    """
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    on_P, on_U, on_T = embeddings.row_influence((_N - N / D * _D) / D)  # dR = (dN − R dD)/D
    return on_P, on_U, on_T


def separation_error(embeddings: Embeddings) -> float:
    """Compute the standard error of the separation D."""
    return sqrt(embeddings.variance(_D)[0])


def delta(embeddings: Embeddings, source_prior: float, confidence: float, purity: float = 1.0) -> tuple[Interval, bool]:
    """Compute the interval that inverts the delta-method test of every π′ in [0, 1] (Fieller 1954).

    Also returns whether any π′ in [0, 1] passes the test.

    R = N/D is a ratio of products of the `embeddings`, and π′ = q − (q−π)R. π′ passes the test when S² ≤ t² Var(S),
    with S = (q−π)N − (q−π′)D and t Student's quantile with Satterthwaite's degrees of freedom. Var(S) is taken at the
    π′ that is tested, so that a poorly known D widens the interval, up to [0, 1]; it includes the error of π if the
    embeddings have the influence of rows on an estimate of π. If the raw estimate is outside [0, 1], the interval is
    that of an estimate at the nearer end, which is wider than the part of its own interval in [0, 1].
    """
    low, high, plausible = _fieller(embeddings, source_prior, confidence, purity, purity)  # low and high are of q − π′
    return Interval(_clip(purity - high), _clip(purity - low), confidence, "delta"), plausible


def _fieller(
    embeddings: Embeddings, source_prior: float, confidence: float, largest: float, purity: float = 1.0
) -> tuple[float, float, bool]:
    """Find the lowest and highest (q−π)R in [q − 1, largest] that pass the test of `delta`, and whether any passes.

    An estimate outside that range gets the interval of the nearer end.
    """
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    var_M, cov_MD, var_D = (variance / D / D for variance in _variances(embeddings, source_prior, purity))  # M = (q−π)N
    t, smallest = float(stats.t.ppf((1 + confidence) / 2, _freedom(embeddings))), purity - 1  # t: Student's quantile
    if not np.isfinite([t, var_M, cov_MD, var_D]).all():
        return smallest, largest, True

    def accepted(estimate: float) -> tuple[float, float] | None:
        """Find the x with (x − estimate)² ≤ t²(Var M − 2x Cov(M, D) + x² Var D): (q−π)R = x passes."""
        constant = estimate**2 - t * t * var_M
        return _where_not_positive(1 - t * t * var_D, -2 * (estimate - t * t * cov_MD), constant, largest, smallest)

    negatives = (purity - source_prior) * N / D  # estimate of (q−π)R = q − π′
    ends = accepted(negatives)
    nearest = float(min(max(negatives, smallest), largest))
    plausible = ends is not None or nearest == negatives
    if nearest != negatives:
        ends = accepted(nearest)
    low, high = ends if ends is not None else (nearest, nearest)  # no variance at all, up to rounding
    return low, high, plausible


def _freedom(embeddings: Embeddings) -> float:
    """Compute Satterthwaite's degrees of freedom of N − RD at the estimate of R, used for every R that is tested."""
    N, D = float(numerator(embeddings.gram)), float(separation(embeddings.gram))
    _, freedom = embeddings.variance(_N - N / D * _D)
    return max(freedom, 1.0)


def bootstrap(
    grams: NDArray[np.float64], source_prior: ArrayLike, confidence: float, value: float, purity: ArrayLike = 1.0
) -> Interval:
    """Compute the percentile interval of π′ (Efron 1979) from bootstrap samples, widened to contain `value`.

    `grams` are the Gram matrices of the means of P, U and T, shape (replicates, 3, 3). `source_prior` and `purity` may
    be one number for each replicate. A replicate whose separation is not positive has no estimate; it counts as
    arbitrarily low at the lower end and arbitrarily high at the upper one.
    """
    D = separation(grams)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.asarray(purity) - (np.asarray(purity) - np.asarray(source_prior)) * numerator(grams) / D
    has_estimate = np.isfinite(draws) & (D > 0)
    tail = (1 - confidence) / 2
    low = np.quantile(np.where(has_estimate, draws, -1e300), tail, method="lower")
    high = np.quantile(np.where(has_estimate, draws, 1e300), 1 - tail, method="higher")
    return Interval(min(_clip(low), value), max(_clip(high), value), confidence, "bootstrap")


def paper_bound(embeddings: Embeddings, source_prior: float, confidence: float, purity: float = 1.0) -> Interval:
    """Apply the paper's Theorem 2: ``|π̂′ − π′| ≤ 4√(M log(1/δ)/N)/‖a‖`` with probability 1 − 3δ, N = min(m, n, n′).

    It bounds the plug-in estimate, which is the interval's centre, whatever statistic is in use. Its proof also holds
    with label errors: the coefficients q − π′, q − π and π′ − π of the errors of the three means are at most 1.
    """
    delta = (1 - confidence) / 3
    if delta > _LARGEST_DELTA:
        least = 1 - 3 * _LARGEST_DELTA
        raise InputError(f"confidence is {confidence:g}, but Theorem 2 needs {least:.3f}; use interval='sharp-bound'.")
    raw, length = _plug_in(embeddings, source_prior, "paper-bound", purity)
    half_width = 4 * sqrt(embeddings.kernel.bound / min(embeddings.sizes) * log(1 / delta)) / length
    return _bound_interval(raw - half_width, raw + half_width, half_width, confidence, "paper-bound", embeddings)


def sharp_bound(embeddings: Embeddings, source_prior: float, confidence: float, purity: float = 1.0) -> Interval:
    """Apply the sharpest bound that the proof of Theorem 2 gives; valid for every sample size and confidence.

    The error of the plug-in estimate is at most F/‖a‖ with F = ‖(q−π′)e_U − (q−π)e_T + (π′−π)e_P‖ and e the
    errors of the three means. For a kernel with values in [0, M], one use of McDiarmid's inequality on F
    gives F ≤ √(MV)(1 + √log(1/δ)) with probability 1 − δ and
    V = (q−π′)²/n + (q−π)²/n′ + (π′−π)²/m. Where P and U share rows they are not independent, and the bounds
    of the three means, each with probability 1 − δ/3, are added instead. The interval contains every π′ that satisfies
    its own bound.
    """
    raw, length = _plug_in(embeddings, source_prior, "sharp-bound", purity)  # raw estimate and ‖a‖
    pi, q, delta = source_prior, purity, 1 - confidence
    m, n, n_target = embeddings.sizes
    scale = embeddings.kernel.bound / length**2
    if embeddings.shared:
        factor = sqrt(scale) * (1 + sqrt(log(3 / delta)))

        def bound(t: float) -> float:
            """Compute the largest error of the estimate if π′ = t."""
            return factor * (abs(q - t) / sqrt(n) + (q - pi) / sqrt(n_target) + abs(t - pi) / sqrt(m))

        ends = _where_piecewise_not_positive(lambda t: abs(raw - t) - bound(t), (pi, raw, q))
    else:
        s = scale * (1 + sqrt(log(1 / delta))) ** 2
        # π′ = t satisfies its bound if (raw − t)² ≤ s·V(t), which is quadratic in t
        constant = raw**2 - s * (q**2 / n + (q - pi) ** 2 / n_target + pi**2 / m)
        ends = _where_not_positive(1 - s * (1 / n + 1 / m), -2 * (raw - s * (q / n + pi / m)), constant, 1.0)

        def bound(t: float) -> float:
            """Compute the largest error of the estimate if π′ = t."""
            return sqrt(s * ((q - t) ** 2 / n + (q - pi) ** 2 / n_target + (t - pi) ** 2 / m))

    nearest = _clip(raw)
    low, high = ends if ends is not None else (nearest, nearest)
    return _bound_interval(low, high, bound(nearest), confidence, "sharp-bound", embeddings)


def required_sample_size(
    accuracy: float, separation: float, *, confidence: float = 0.95, kernel_bound: float = 1.0
) -> int:
    """Compute the rows needed in each sample for ``|π̂′ − π′| ≤ accuracy``, by Theorem 1(ii) of the paper.

    It is a guarantee for the worst case; the delta-method interval is that narrow with far fewer rows.

    Parameters
    ----------
    accuracy : float
        Largest acceptable error, between 0 and 1.
    separation : float
        ‖μ_U − μ_P‖² = (1−π)²‖μ₋ − μ₊‖², as in :attr:`PriorEstimate.separation` of a pilot study.
    confidence : float
        Confidence level, at least 0.837, where the theorem begins to hold. Default 0.95.
    kernel_bound : float
        M = sup k(x, x). Default 1, which is right for the Gaussian and the Laplace kernel.

    Returns
    -------
    int
        The smallest number of rows that guarantees the accuracy.

    Examples
    --------
    >>> from priorshift import required_sample_size
    >>> required_sample_size(0.05, separation=0.2)
    144449
    """
    # With δ = (1 − confidence)/3 the theorem asks for N ≥ 16M log(1/δ)/((1−α)²‖a‖²) and promises an error of at most
    # 4√(M log(1/δ)/N)/(α‖a‖). The α in (0, 1) that needs the fewest rows is 1/(1 + accuracy).
    if not 0 < check_number("accuracy", accuracy) < 1:
        raise InputError(f"accuracy is {accuracy!r}, but it must lie between 0 and 1.")
    for name, number in {"separation": separation, "kernel_bound": kernel_bound}.items():
        if not 1e-100 < check_number(name, number) < np.inf:
            raise InputError(f"{name} is {number!r}, but it must be positive and finite.")
    delta = (1 - check_number("confidence", confidence)) / 3
    if not 0 < delta <= _LARGEST_DELTA:
        least = 1 - 3 * _LARGEST_DELTA
        raise InputError(
            f"confidence is {confidence!r}, but Theorem 1 holds only from {least:.3f} to below 1; pass one."
        )
    return ceil(16 * kernel_bound * log(1 / delta) * (1 + accuracy) ** 2 / (accuracy**2 * separation))


def check_bound_applies(method: str, kernel: Kernel, is_iid: bool) -> None:
    """Raise InputError unless a finite-sample bound is proved for the kernel and the samples."""
    if not np.isfinite(kernel.bound):
        need = f"a bounded kernel, but {kernel.name!r} is not; use 'gaussian' or 'laplace'"
    elif not kernel.nonnegative:
        need = f"a kernel without negative values, but {kernel.name!r} has some; use embedding='exact'"
    elif not is_iid:
        need = "independent rows of equal weight, but rows have weights, or are copies or a group; leave these out"
    else:
        return
    raise InputError(f"interval={method!r} needs {need}, or use interval='delta'.")


def _plug_in(embeddings: Embeddings, source_prior: float, method: str, purity: float) -> tuple[float, float]:
    """Compute the plug-in estimate of π′ and ‖a‖, for which the bounds hold; raise InputError where none applies."""
    check_bound_applies(method, embeddings.kernel, embeddings.is_iid)
    D = float(separation(embeddings.plug_in))
    if np.isnan(D):  # the plug-in Gram matrix was not computed
        raise InputError(f"interval={method!r} needs all pairs of rows; leave pairs=None or use interval='delta'.")
    return purity - (purity - source_prior) * float(numerator(embeddings.plug_in)) / D, sqrt(D)


def _bound_interval(
    low: float, high: float, half_width: float, confidence: float, method: str, embeddings: Embeddings
) -> Interval:
    """Return the interval clipped to [0, 1], and warn where it is all of [0, 1]."""
    if low <= 0 and high >= 1:
        m, n, n_target = embeddings.sizes
        warn(
            f"The {method} is vacuous: with {m} positive, {n} unlabeled and {n_target} target rows it allows an error "
            f"of {half_width:.2g}, so every prior in [0, 1]; use interval='delta', or collect more rows.",
            IntervalWarning,
        )
    return Interval(_clip(low), _clip(high), confidence, method)


def _clip(share: float) -> float:
    """Limit a share to [0, 1]."""
    return float(min(max(share, 0.0), 1.0))


def _where_not_positive(
    a: float, b: float, c: float, largest: float, smallest: float = 0.0
) -> tuple[float, float] | None:
    """Find the smallest and largest x in [smallest, largest] with ax² + bx + c ≤ 0; None if there is none."""
    candidates = [smallest, largest]  # and the roots: between neighbours the sign does not change
    discriminant = b * b - 4 * a * c
    if a == 0 and b != 0:
        candidates.append(-c / b)
    elif a != 0 and discriminant >= 0:
        # of −b ± √discriminant the one that does not cancel; the other root from the product c/a of both
        s = -(b + np.copysign(sqrt(discriminant), b)) / 2
        candidates.append(s / a)
        if s != 0:
            candidates.append(c / s)
    inside = sorted(x for x in candidates if smallest <= x <= largest)
    ends = []  # of the intervals between neighbours in whose middle the polynomial is not positive
    for low, high in pairwise(inside):
        if a * ((low + high) / 2) ** 2 + b * (low + high) / 2 + c <= 0:
            ends += [low, high]
    return (ends[0], ends[-1]) if ends else None


def _where_piecewise_not_positive(f: Callable[[float], float], bends: tuple[float, ...]) -> tuple[float, float] | None:
    """Find the smallest and largest t in [0, 1] with f(t) ≤ 0, for an f that is linear between its bends."""
    knots = sorted({0.0, 1.0, *(t for t in bends if 0 < t < 1)})
    ends = [t for t in knots if f(t) <= 0]  # and the roots between neighbouring knots
    for s, t in pairwise(knots):
        at_s, at_t = f(s), f(t)
        if (at_s <= 0) != (at_t <= 0):
            ends.append(s + (t - s) * at_s / (at_s - at_t))
    return (min(ends), max(ends)) if ends else None
