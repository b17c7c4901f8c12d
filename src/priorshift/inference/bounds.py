"""How far off an estimate can be at any sample size: the paper's bound, a sharper one, and the rows that they ask for.

Both bound the plug-in estimate, for a kernel with values in [0, M] and independent rows of equal weight. The letters
are those of :mod:`priorshift.inference.intervals`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil, exp, log, sqrt

import numpy as np

from priorshift.embedding.gram import Embeddings, numerator, separation
from priorshift.errors import InputError, IntervalWarning
from priorshift.io.parameters import check_number
from priorshift.kernels import Kernel
from priorshift.results import Interval
from priorshift.warning_records import warn

_LARGEST_DELTA = exp(-((sqrt(2) + 1) ** 2) / 2)  # Theorems 1 and 2 hold for no larger δ: 0.0543


def paper_bound(embeddings: Embeddings, source_prior: float, confidence: float) -> Interval:
    """Apply the paper's Theorem 2: ``|π̂′ − π′| ≤ 4√(M log(1/δ)/N)/‖a‖`` with probability 1 − 3δ, N = min(m, n, n′).

    It bounds the plug-in estimate, which is the interval's centre, whatever statistic is in use.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    source_prior : float
        π.
    confidence : float
        1 − 3δ; at least 0.837, where the theorem begins to hold.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=8000, n_target=8000, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> bound = ps.inference.intervals.paper_bound(embeddings, source_prior=0.2, confidence=0.9)
    >>> print(f"{bound.low:.3f} to {bound.high:.3f}")
    0.051 to 1.000
    """
    delta = (1 - confidence) / 3
    if delta > _LARGEST_DELTA:
        raise InputError(
            f"confidence is {confidence:g}, but Theorem 2 holds only from {1 - 3 * _LARGEST_DELTA:.3f} on; "
            "ask for more confidence or use interval='sharp-bound'."
        )
    raw, length = _plug_in(embeddings, source_prior, "paper-bound")
    half = 4 * sqrt(embeddings.kernel.bound / min(embeddings.sizes) * log(1 / delta)) / length
    return _bounded(raw - half, raw + half, half, confidence, "paper-bound", embeddings)


def sharp_bound(embeddings: Embeddings, source_prior: float, confidence: float) -> Interval:
    """Apply the sharpest bound that the proof of Theorem 2 gives; valid for every sample size and confidence.

    The error of the plug-in estimate is at most F/‖a‖ with F = ‖(1−π′)e_U − (1−π)e_T + (π′−π)e_P‖ and e the
    errors of the three means. For a kernel with values in [0, M], one use of McDiarmid's inequality on F
    gives F ≤ √(MV)(1 + √log(1/δ)) with probability 1 − δ and
    V = (1−π′)²/n + (1−π)²/n′ + (π′−π)²/m. Where P and U share rows they are not independent, and the bounds
    of the three means, each with probability 1 − δ/3, are added instead.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    source_prior : float
        π.
    confidence : float
        1 − δ.

    Returns
    -------
    Interval
        Every π′ that satisfies its own bound.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=8000, n_target=8000, shared=False, random_state=0)
    >>> embeddings = ps.KernelRatio().fit(s.X, s.y).embed(s.target)
    >>> bound = ps.inference.intervals.sharp_bound(embeddings, source_prior=0.2, confidence=0.9)
    >>> print(f"{bound.low:.3f} to {bound.high:.3f}")
    0.506 to 0.716
    """
    raw, length = _plug_in(embeddings, source_prior, "sharp-bound")
    pi, delta = source_prior, 1 - confidence
    m, n, n_target = embeddings.sizes
    scale = embeddings.kernel.bound / length**2
    if embeddings.shared:
        factor = sqrt(scale) * (1 + sqrt(log(3 / delta)))

        def bound(t: float) -> float:
            return factor * ((1 - t) / sqrt(n) + (1 - pi) / sqrt(n_target) + abs(t - pi) / sqrt(m))

        kept = _where_piecewise_not_positive(lambda t: abs(raw - t) - bound(t), (pi, raw))
    else:
        s = scale * (1 + sqrt(log(1 / delta))) ** 2
        kept = where_not_positive(
            1 - s * (1 / n + 1 / m),
            -2 * (raw - s * (1 / n + pi / m)),
            raw**2 - s * (1 / n + (1 - pi) ** 2 / n_target + pi**2 / m),
            0.0,
            1.0,
        )

        def bound(t: float) -> float:
            return sqrt(s * ((1 - t) ** 2 / n + (1 - pi) ** 2 / n_target + (t - pi) ** 2 / m))

    nearest = unit(raw)
    low, high = kept if kept is not None else (nearest, nearest)
    return _bounded(low, high, bound(nearest), confidence, "sharp-bound", embeddings)


def required_sample_size(
    accuracy: float, separation: float, *, confidence: float = 0.95, kernel_bound: float = 1.0
) -> int:
    """Count the rows needed in each sample for ``|π̂′ − π′| ≤ accuracy``, by Theorem 1(ii) of the paper.

    With δ = (1 − confidence)/3 the theorem asks for N ≥ 16M log(1/δ)/((1−α)²‖a‖²) and promises an error of at
    most 4√(M log(1/δ)/N)/(α‖a‖). The α in (0, 1) that needs the fewest rows is 1/(1 + accuracy), which gives
    N = 16M log(1/δ)(1 + accuracy)²/(accuracy²‖a‖²). It is a guarantee for the worst case; the delta-method interval
    is that narrow with far fewer rows.

    Parameters
    ----------
    accuracy : float
        Largest error wanted, between 0 and 1.
    separation : float
        ‖μ_U − μ_P‖² = (1−π)²‖μ₋ − μ₊‖², as in :attr:`PriorEstimate.separation` of a pilot study.
    confidence : float
        At least 0.837, where the theorem begins to hold.
    kernel_bound : float
        M = sup k(x, x); 1 for the Gaussian and the Laplace kernel.

    Returns
    -------
    int
        The smallest such N.

    Examples
    --------
    >>> from priorshift import required_sample_size
    >>> required_sample_size(0.05, separation=0.2)
    144449
    """
    numbers = {"accuracy": accuracy, "separation": separation, "confidence": confidence, "kernel_bound": kernel_bound}
    for name, number in numbers.items():
        check_number(name, number)
    if not 0 < accuracy < 1:
        raise InputError(
            f"accuracy is {accuracy!r}, but it must lie between 0 and 1; pass the largest error you accept."
        )
    if not (separation > 1e-100 and np.isfinite(separation)):
        raise InputError(f"separation is {separation!r}, but it must be positive; without separation no size suffices.")
    if not (kernel_bound > 0 and np.isfinite(kernel_bound)):
        raise InputError(f"kernel_bound is {kernel_bound!r}, but the theorem needs a kernel with finite sup k(x, x).")
    delta = (1 - confidence) / 3
    if not 0 < delta <= _LARGEST_DELTA:
        raise InputError(
            f"confidence is {confidence!r}, but Theorem 1 holds only from {1 - 3 * _LARGEST_DELTA:.3f} to below 1."
        )
    return ceil(16 * kernel_bound * log(1 / delta) * (1 + accuracy) ** 2 / (accuracy**2 * separation))


def check_bounded(kernel: Kernel, method: str) -> None:
    """Refuse a kernel that the finite-sample bounds are not proved for.

    Parameters
    ----------
    kernel : Kernel
        Its values must lie in [0, M].
    method : str
        The bound that was asked for.

    Examples
    --------
    >>> from priorshift.inference.intervals import check_bounded
    >>> from priorshift.kernels import Energy, Gaussian
    >>> check_bounded(Gaussian(1.0), "paper-bound")
    >>> check_bounded(Energy(), "paper-bound")
    Traceback (most recent call last):
        ...
    priorshift.errors.InputError: interval='paper-bound' needs a bounded kernel, but 'energy' is not; use
    'gaussian' or 'laplace', or interval='delta'.
    """
    if np.isfinite(kernel.bound) and not kernel.nonnegative:
        raise InputError(
            f"interval={method!r} is proved for kernels without negative values, but {kernel.name!r} has some; use "
            "embedding='exact', or interval='delta'."
        )
    if not np.isfinite(kernel.bound):
        raise InputError(
            f"interval={method!r} needs a bounded kernel, but {kernel.name!r} is not; "
            "use 'gaussian' or 'laplace', or interval='delta'."
        )


def check_even(is_even: bool, method: str) -> None:
    """Refuse samples that the finite-sample bounds are not proved for.

    Parameters
    ----------
    is_even : bool
        Whether in each sample every row counts the same and is its own observation.
    method : str
        The bound that was asked for.

    Examples
    --------
    >>> from priorshift.inference.intervals import check_even
    >>> check_even(False, "sharp-bound")
    Traceback (most recent call last):
        ...
    priorshift.errors.InputError: interval='sharp-bound' is proved for independent rows of equal weight, but
    here rows have weights, or are copies or a group; leave these out, or use interval='delta'.
    """
    if not is_even:
        raise InputError(
            f"interval={method!r} is proved for independent rows of equal weight, but here rows have weights, or are "
            "copies or a group; leave these out, or use interval='delta'."
        )


def _plug_in(embeddings: Embeddings, source_prior: float, method: str) -> tuple[float, float]:
    """The plug-in estimate and ‖a‖, for which the bounds hold."""
    check_bounded(embeddings.kernel, method)
    check_even(embeddings.is_even, method)
    D = float(separation(embeddings.plug_in))
    if np.isnan(D):
        raise InputError(
            f"interval={method!r} bounds the estimate from all pairs of rows, but a sample of pairs was asked for; "
            "leave pairs=None or use interval='delta'."
        )
    return 1 - (1 - source_prior) * float(numerator(embeddings.plug_in)) / D, sqrt(D)


def _bounded(low: float, high: float, half: float, confidence: float, method: str, embeddings: Embeddings) -> Interval:
    if low <= 0 and high >= 1:
        m, n, n_target = embeddings.sizes
        warn(
            f"The {method} is vacuous: with {m} positive, {n} unlabeled and {n_target} target rows it allows an error "
            f"of {half:.2g}, so every prior in [0, 1]; use interval='delta', or collect more rows.",
            IntervalWarning,
        )
    return Interval(unit(low), unit(high), confidence, method)


def unit(x: float) -> float:
    """Give the nearest number in [0, 1].

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    float
    """
    return float(min(max(x, 0.0), 1.0))


def where_not_positive(a: float, b: float, c: float, low: float, high: float) -> tuple[float, float] | None:
    """Find the smallest and largest x in [low, high] with ax² + bx + c ≤ 0.

    Parameters
    ----------
    a, b, c : float
        Of the polynomial.
    low, high : float
        Where it is looked at.

    Returns
    -------
    two floats or None
        None where there is no such x.
    """
    candidates = [low, high]
    discriminant = b * b - 4 * a * c
    if a == 0:
        candidates += [-c / b] if b else []
    elif discriminant >= 0:
        # the sum that does not cancel; the other root from their product c/a
        s = -(b + np.copysign(sqrt(discriminant), b)) / 2
        candidates += [s / a] + ([c / s] if s else [])
    inside = sorted(x for x in candidates if low <= x <= high)
    kept = [(x, y) for x, y in pairwise(inside) if a * ((x + y) / 2) ** 2 + b * (x + y) / 2 + c <= 0]
    return (kept[0][0], kept[-1][1]) if kept else None


def _where_piecewise_not_positive(f: Callable[[float], float], bends: tuple[float, ...]) -> tuple[float, float] | None:
    """Smallest and largest t in [0, 1] with f(t) ≤ 0, for an f that is linear between its bends."""
    knots = sorted({0.0, 1.0, *(t for t in bends if 0 < t < 1)})
    kept = []
    for s, t in pairwise(knots):
        at_s, at_t = f(s), f(t)
        kept += [x for x, y in ((s, at_s), (t, at_t)) if y <= 0]
        if (at_s <= 0) != (at_t <= 0):
            kept.append(s + (t - s) * at_s / (at_s - at_t))
    return (min(kept), max(kept)) if kept else None
