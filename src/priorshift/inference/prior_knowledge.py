"""Knowledge of the source prior π: a value, a range, or a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.formatting import format_range
from priorshift.inference.confidence_curve import ConfidenceCurve
from priorshift.io.parameters import check_prior, is_number

_CELLS = 500  # narrow at both ends: a tail of 2.5 % is exact to 0.05 % even if R has no error at all
_OUTSIDE = 1e-9  # mass of a distribution outside [0, 1] that rounding may leave
_EXAMPLE = "a frozen distribution, such as scipy.stats.beta(38, 214)"


@dataclass(frozen=True)
class PointPrior:
    """A known π."""

    value: float
    by: ClassVar[str] = "given"
    error: ClassVar[float] = 0.0

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible π."""
        return self.value, self.value

    def __str__(self) -> str:
        """Return the value as text."""
        return f"{self.value:g}"

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the interval of π′ = 1 − (1−π)R at the known π, from the confidence `curve` of R."""
        return curve.interval(self.value, confidence)


@dataclass(frozen=True)
class RangePrior:
    """A range that contains π, without a distribution on it."""

    low: float
    high: float
    by: ClassVar[str] = "range"
    error: ClassVar[float] = 0.0  # the sampling error is that at the middle

    @property
    def value(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible π."""
        return self.low, self.high

    def __str__(self) -> str:
        """Return the range as text."""
        return format_range(self.low, self.high)

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the interval of π′ that holds for every π of the range: the union of those at its two ends."""
        at_low, at_high = curve.interval(self.low, confidence), curve.interval(self.high, confidence)
        return min(at_low[0], at_high[0]), max(at_low[1], at_high[1])


@dataclass(frozen=True)
class DistributionPrior:
    """A distribution of π, such as that of a survey or of an expert."""

    distribution: Any  # with ``ppf``, ``cdf`` and ``mean``, inside [0, 1]
    by: ClassVar[str] = "distribution"

    @property
    def value(self) -> float:
        """The mean of the distribution."""
        return float(self.distribution.mean())

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """Values of π and their probabilities, which discretise the distribution; finer in its tails."""
        edges = (1 - np.cos(np.linspace(0, np.pi, _CELLS + 1))) / 2  # levels from 0 to 1
        return self._quantiles((edges[1:] + edges[:-1]) / 2), np.diff(edges)

    @property
    def error(self) -> float:
        """The standard deviation of π."""
        values, weights = self.points
        return float(np.sqrt(np.average((values - self.distribution.mean()) ** 2, weights=weights)))

    @property
    def range(self) -> tuple[float, float]:
        """The central 95% of the distribution."""
        low, high = self._quantiles([0.025, 0.975])
        return float(low), float(high)

    def __str__(self) -> str:
        """Return the value and the standard deviation as text."""
        return f"{self.value:.3g} ± {self.error:.2g}"

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the quantiles of π′ = 1 − (1−π)R, where π follows the distribution and R its curve."""
        values, weights = self.points
        return curve.interval(values, confidence, weights)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw stratified values of π: one from each of `count` equally probable parts."""
        return self._quantiles((rng.permutation(count) + 0.5) / count)

    def _quantiles(self, levels: Any) -> Floats:
        """Return quantiles of π at levels in [0, 1], clipped to [0, 1], where rounding may leave them outside."""
        return np.clip(np.asarray(self.distribution.ppf(levels), dtype=float), 0.0, 1.0)


@dataclass(frozen=True)
class PosteriorPrior(DistributionPrior):
    """The posterior of π given the tables; its long tail of hidden negatives moves the mean, but not the median."""

    @property
    def value(self) -> float:
        """The median of the distribution."""
        return float(self._quantiles(0.5))


PriorKnowledge = PointPrior | RangePrior | DistributionPrior


def read_prior(source_prior: Any) -> PriorKnowledge:
    """Read a number, a pair of numbers or a frozen distribution as knowledge of the source prior."""
    if isinstance(source_prior, (tuple, list)) or getattr(source_prior, "ndim", 0) == 1:
        return _read_range(source_prior)
    if hasattr(source_prior, "ppf"):
        return _read_distribution(source_prior)
    return PointPrior(check_prior(source_prior))


def _read_range(ends: Any) -> RangePrior:
    """Read two increasing numbers from 0 to 1; (0, 0) and (1, 1) are refused, since both classes must occur."""
    if len(ends) == 2 and all(is_number(end) for end in ends) and 0 <= ends[0] <= ends[1] <= 1:
        prior = RangePrior(float(ends[0]), float(ends[1]))
        if 0 < prior.value < 1:
            return prior
    raise InputError(
        f"source_prior is {ends!r}, but a range must be two increasing numbers from 0 to 1, such as (0.1, 0.2)."
    )


def _read_distribution(distribution: Any) -> DistributionPrior:
    """Check that a distribution has parameters (is frozen) and lies inside [0, 1]."""
    if isinstance(distribution, (type, stats.rv_continuous, stats.rv_discrete)):  # not frozen
        name = getattr(distribution, "name", None) or "distribution"
        raise InputError(f"source_prior is scipy's {name} without parameters; pass {_EXAMPLE}.")
    try:
        below = distribution.cdf(np.nextafter(0.0, -1.0))  # just below 0, since 0 itself is allowed
        mean, outside = float(distribution.mean()), float(1 - distribution.cdf(1.0) + below)
    except (AttributeError, TypeError):
        raise InputError(f"source_prior is not one distribution with a mean and a cdf; pass {_EXAMPLE}.") from None
    if not (0 < mean < 1 and outside <= _OUTSIDE):
        raise InputError(
            f"source_prior is a distribution with mean {mean:.3g} and {outside:.2g} of its mass outside [0, 1], but it "
            f"must lie inside; pass {_EXAMPLE}."
        )
    return DistributionPrior(distribution)


def survey_prior(positives: int, rows: int) -> Any:
    """Return the posterior of a share under Jeffreys' prior, if a survey found `positives` among `rows`."""
    return stats.beta(positives + 0.5, rows - positives + 0.5)


@dataclass(frozen=True, eq=False)
class PiecewiseUniform:
    """A distribution on [0, 1] that is uniform between neighbouring edges, with the methods of scipy.stats."""

    edges: Floats  # increasing, from 0 to 1
    probabilities: Floats  # of the steps between edges; their sum is 1

    @property
    def middles(self) -> Floats:
        """Midpoints of the steps."""
        return np.asarray((self.edges[1:] + self.edges[:-1]) / 2)

    def mean(self) -> float:
        """Compute the mean."""
        return float(self.probabilities @ self.middles)

    def std(self) -> float:
        """Compute the standard deviation."""
        within = np.diff(self.edges) ** 2 / 12  # variance inside each step, which is uniform
        return float(np.sqrt(self.probabilities @ ((self.middles - self.mean()) ** 2 + within)))

    def cdf(self, share: ArrayLike) -> Floats:
        """Compute the cumulative distribution function at shares in [0, 1]."""
        cumulative = np.append(0.0, np.cumsum(self.probabilities) / self.probabilities.sum())  # at the edges
        return np.asarray(np.interp(np.asarray(share, dtype=float), self.edges, cumulative))

    def ppf(self, level: ArrayLike) -> Floats:
        """Compute the quantiles of the given levels in [0, 1]; a step of probability 0 has none in it."""
        cumulative = np.append(0.0, np.cumsum(self.probabilities) / self.probabilities.sum())  # at the edges
        level = np.asarray(level, dtype=float)
        steps = np.flatnonzero(self.probabilities > 0)
        # the first of these steps whose upper end reaches the level; the last one where rounding leaves none
        k = steps[np.minimum(np.searchsorted(cumulative[steps + 1], level), len(steps) - 1)]
        within = np.clip((level - cumulative[k]) / (cumulative[k + 1] - cumulative[k]), 0.0, 1.0)
        return np.asarray(self.edges[k] + within * (self.edges[k + 1] - self.edges[k]))

    def times(self, log_likelihood: Floats) -> PiecewiseUniform:
        """Return the posterior by Bayes' rule, given the log-likelihood at the midpoints, up to a constant."""
        with np.errstate(divide="ignore"):  # the log of a probability 0 is −∞, which stays 0
            log = np.log(self.probabilities) + log_likelihood
        weight = np.exp(log - log.max())
        return PiecewiseUniform(self.edges, weight / weight.sum())

    def on(self, edges: Floats) -> PiecewiseUniform:
        """Return the same distribution on other steps, between these edges."""
        return PiecewiseUniform.from_cdf(self.cdf(edges), edges)

    @classmethod
    def from_cdf(cls, cumulative: Floats, edges: Floats) -> PiecewiseUniform:
        """Build the distribution from its cdf at the edges; probability outside goes to the first and last step."""
        inner = np.concatenate([[0.0], cumulative[1:-1], [1.0]])
        return cls(edges, np.maximum(np.diff(inner), 0.0))
