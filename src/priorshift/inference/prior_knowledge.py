"""What is known of the source prior π: its value, a range that it lies in, or a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.inference.confidence_curve import ConfidenceCurve
from priorshift.io.parameters import check_prior, is_number

_CELLS = 500  # of equal angle, narrow at both ends: a tail of 2.5 % is met to 0.05 % even if R has no error at all
_OUTSIDE = 1e-9  # of a distribution's mass beyond 0 and 1, which rounding may leave


@dataclass(frozen=True)
class PointPrior:
    """π is known.

    Attributes
    ----------
    value : float
        π.
    """

    value: float
    by: ClassVar[str] = "given"
    error: ClassVar[float] = 0.0

    @property
    def range(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Where π lies."""
        return self.value, self.value

    def __str__(self) -> str:
        return f"{self.value:g}"

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the interval of π′ given π.

        Parameters
        ----------
        curve : ConfidenceCurve
            Of R.
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float
        """
        return curve.interval(self.value, confidence)


@dataclass(frozen=True)
class RangePrior:
    """π lies somewhere between two numbers, which says no more than that.

    Attributes
    ----------
    low, high : float
        Its least and largest value.
    """

    low: float
    high: float
    by: ClassVar[str] = "range"
    error: ClassVar[float] = 0.0  # the sampling error is that at the middle

    @property
    def value(self) -> float:  # numpydoc ignore=RT01
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def range(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Where π lies."""
        return self.low, self.high

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}"

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the interval of π′ that holds for every π: the union of those given π, which its ends decide.

        Parameters
        ----------
        curve : ConfidenceCurve
            Of R.
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float
        """
        lows, highs = zip(*(curve.interval(pi, confidence) for pi in self.range), strict=True)
        return min(lows), max(highs)


@dataclass(frozen=True)
class DistributionPrior:
    """π is uncertain, by a distribution: a survey's, or an expert's.

    Attributes
    ----------
    distribution : frozen distribution of scipy.stats
        Anything with ``ppf``, ``cdf`` and ``mean``, inside [0, 1].
    """

    distribution: Any
    by: ClassVar[str] = "distribution"

    @property
    def value(self) -> float:  # numpydoc ignore=RT01
        """The mean."""
        return float(self.distribution.mean())

    @cached_property
    def points(self) -> tuple[Floats, Floats]:  # numpydoc ignore=RT01
        """Values of π and their probabilities: the distribution, cell by cell."""
        edges = (1 - np.cos(np.linspace(0, np.pi, _CELLS + 1))) / 2
        return self._quantiles((edges[1:] + edges[:-1]) / 2), np.diff(edges)

    @property
    def error(self) -> float:  # numpydoc ignore=RT01
        """The standard deviation."""
        values, weights = self.points
        return float(np.sqrt(np.average((values - self.value) ** 2, weights=weights)))

    @property
    def range(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Where π lies with probability 95%."""
        low, high = self._quantiles([0.025, 0.975])
        return float(low), float(high)

    def __str__(self) -> str:
        return f"{self.value:.3g} ± {self.error:.2g}"

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the quantiles of π′ = 1 − (1−π)R, where π follows the distribution and R its curve.

        Parameters
        ----------
        curve : ConfidenceCurve
            Of R.
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float
        """
        values, weights = self.points
        return curve.interval(values, confidence, weights)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw values of π, one from each of as many equal parts of the distribution.

        Parameters
        ----------
        count : int
            How many.
        rng : Generator
            Decides their order.

        Returns
        -------
        ndarray of shape (count,)
        """
        return self._quantiles((rng.permutation(count) + 0.5) / count)

    def _quantiles(self, levels: Any) -> Floats:
        return np.clip(np.asarray(self.distribution.ppf(levels), dtype=float), 0.0, 1.0)


PriorKnowledge = PointPrior | RangePrior | DistributionPrior


def read_prior(source_prior: Any) -> PriorKnowledge:
    """Read what a user knows of the source prior.

    Parameters
    ----------
    source_prior : float, pair of float or frozen distribution of scipy.stats
        A number strictly between 0 and 1; a range (low, high) within [0, 1]; or a distribution within [0, 1].

    Returns
    -------
    Known, Between or Distributed

    Examples
    --------
    >>> from scipy import stats
    >>> from priorshift.inference.prior_knowledge import read_prior
    >>> for given in (0.15, (0.1, 0.2), stats.beta(37.5, 213.5)):  # the last one: 37 positives in a survey of 250
    ...     prior = read_prior(given)
    ...     print(f"{prior.by}: {prior}; in use {prior.value:.3f}")
    given: 0.15; in use 0.150
    range: 0.1 to 0.2; in use 0.150
    distribution: 0.149 ± 0.022; in use 0.149
    """
    if isinstance(source_prior, (tuple, list)) or getattr(source_prior, "ndim", 0) == 1:
        return _read_range(source_prior)
    if hasattr(source_prior, "ppf"):
        return _read_distribution(source_prior)
    return PointPrior(check_prior(source_prior))


def _read_range(ends: Any) -> RangePrior:
    if len(ends) == 2 and all(is_number(end) for end in ends) and 0 <= ends[0] <= ends[1] <= 1:
        known = RangePrior(float(ends[0]), float(ends[1]))
        if 0 < known.value < 1:
            return known
    raise InputError(
        f"source_prior is {ends!r}, but a range must be two numbers from 0 to 1, the lower one first and not both 0 or "
        "both 1, such as (0.1, 0.2)."
    )


def _read_distribution(given: Any) -> DistributionPrior:
    if isinstance(given, (type, stats.rv_continuous, stats.rv_discrete)):
        name = getattr(given, "name", None) or "a distribution"
        raise InputError(
            f"source_prior is scipy's {name} without its parameters, but one distribution is expected; freeze it, such "
            "as scipy.stats.beta(38, 214)."
        )
    try:
        mean, outside = float(given.mean()), float(1 - given.cdf(1.0) + given.cdf(np.nextafter(0.0, -1.0)))
    except (AttributeError, TypeError):
        raise InputError(
            "source_prior is a distribution without the mean and the cdf of one number; pass a frozen one of "
            "scipy.stats, such as scipy.stats.beta(38, 214)."
        ) from None
    if not (0 < mean < 1 and outside <= _OUTSIDE):
        raise InputError(
            f"source_prior is a distribution with mean {mean:.3g} and {outside:.2g} of its mass outside [0, 1], but "
            "that of a share lies inside; pass such a one, for instance scipy.stats.beta(38, 214)."
        )
    return DistributionPrior(given)


def survey_prior(positives: int, rows: int) -> Any:
    """Return the distribution of a share of which a survey found `positives` among `rows`, by Jeffreys' prior."""
    return stats.beta(positives + 0.5, rows - positives + 0.5)


@dataclass(frozen=True, eq=False)
class PiecewiseUniform:
    """A distribution on [0, 1] that is even between neighbouring edges; with scipy's names, so it can stand for one.

    Attributes
    ----------
    edges : ndarray of shape (steps + 1,)
        Rising, from 0 to 1.
    probabilities : ndarray of shape (steps,)
        Of the steps between them; their sum is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.prior_knowledge import PiecewiseUniform
    >>> share = PiecewiseUniform(np.array([0.0, 0.2, 1.0]), np.array([0.5, 0.5]))
    >>> print(round(share.mean(), 3), share.ppf([0.25, 0.75]))
    0.35 [0.1 0.6]
    """

    edges: Floats
    probabilities: Floats

    @property
    def middles(self) -> Floats:  # numpydoc ignore=RT01
        """Of the steps."""
        return np.asarray((self.edges[1:] + self.edges[:-1]) / 2)

    def mean(self) -> float:
        """Compute the mean.

        Returns
        -------
        float
        """
        return float(self.probabilities @ self.middles)

    def std(self) -> float:
        """Compute the standard deviation.

        Returns
        -------
        float
        """
        within = np.diff(self.edges) ** 2 / 12
        return float(np.sqrt(self.probabilities @ ((self.middles - self.mean()) ** 2 + within)))

    def cdf(self, share: ArrayLike) -> Floats:
        """Compute the probability that the share is at most that.

        Parameters
        ----------
        share : array-like
            Where.

        Returns
        -------
        ndarray
        """
        return np.asarray(np.interp(np.asarray(share, dtype=float), self.edges, self._cumulative))

    def ppf(self, level: ArrayLike) -> Floats:
        """Compute quantiles.

        Parameters
        ----------
        level : array-like
            Probabilities.

        Returns
        -------
        ndarray
        """
        cumulative, steps = self._cumulative, self.probabilities > 0  # a step of no probability has no quantile in it
        level = np.asarray(level, dtype=float)
        k = np.flatnonzero(steps)[np.minimum(np.searchsorted(cumulative[1:][steps], level), steps.sum() - 1)]
        within = np.clip((level - cumulative[k]) / (cumulative[k + 1] - cumulative[k]), 0.0, 1.0)
        return np.asarray(self.edges[k] + within * (self.edges[k + 1] - self.edges[k]))

    def times(self, log_likelihood: Floats) -> PiecewiseUniform:
        """Multiply with a likelihood, as Bayes' rule does.

        Parameters
        ----------
        log_likelihood : ndarray of shape (steps,)
            At the middles of the steps, up to a constant.

        Returns
        -------
        ShareDistribution
        """
        with np.errstate(divide="ignore"):
            log = np.log(self.probabilities) + log_likelihood
        weight = np.exp(log - log.max())
        return PiecewiseUniform(self.edges, weight / weight.sum())

    def on(self, edges: Floats) -> PiecewiseUniform:
        """Give the same distribution on other steps.

        Parameters
        ----------
        edges : ndarray
            Rising, from 0 to 1; where they are finer, a step is even as it was.

        Returns
        -------
        ShareDistribution
        """
        return PiecewiseUniform.from_cdf(self.cdf(edges), edges)

    @classmethod
    def from_cdf(cls, cumulative: Floats, edges: Floats) -> PiecewiseUniform:
        """Make the distribution with these probabilities of a share at or below the edges.

        Parameters
        ----------
        cumulative : ndarray
            Never falling; what is missing at its ends counts to the first and the last step.
        edges : ndarray
            Rising, from 0 to 1.

        Returns
        -------
        ShareDistribution
        """
        inner = np.concatenate([[0.0], cumulative[1:-1], [1.0]])
        return cls(edges, np.maximum(np.diff(inner), 0.0))

    @property
    def _cumulative(self) -> Floats:
        return np.append(0.0, np.cumsum(self.probabilities) / self.probabilities.sum())
