"""Knowledge of the source prior π, and of label errors: a value, a range, or a distribution.

A share ε of the labelled rows may not be positive. The labelled rows then have the purity q = 1 − ε, and
π′ = q − (q−π)R. An estimate from P and U is not that of π but of κ = π/q, the share of the labelled rows' distribution
that U contains, so that π = qκ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from priorshift.arrays import Floats
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.formatting import format_percent, format_range
from priorshift.inference.confidence_curve import ConfidenceCurve, TabulatedCurve, prior_from_ratio
from priorshift.io.parameters import check_prior, is_number
from priorshift.warning_records import warn

_CELLS = 500  # narrow at both ends: a tail of 2.5 % is exact to 0.05 % even if R has no error at all
_CELLS_OF_TWO = 60  # of each of two distributions, whose values are combined
_RANGE_POINTS = 101  # values of a range that counts as a uniform distribution
_NEAR = 0.05  # difference between the shares of positives in P and U below which a warning says that it is small
_IMPOSSIBLE = 0.01  # probability of a combination that is impossible, above which a warning says so
_OUTSIDE = 1e-9  # mass of a distribution outside [0, 1] that rounding may leave
_MOST_ROWS = 10**15  # rows of a survey; floats count more than nine times as many exactly
_EXAMPLE = "a frozen distribution, such as scipy.stats.beta(38, 214)"


class Case(NamedTuple):
    """Values of π and q that belong together: numbers, or arrays of equal shape with their probabilities."""

    source_prior: Floats | float  # π
    weights: Floats | None = None  # probabilities of the values; None where there is one, or all are equally probable
    purity: Floats | float = 1.0  # q


class PriorKnowledge(ABC):
    """What is known of π, and of the purity q of the labelled rows, which is 1 without label errors."""

    if TYPE_CHECKING:  # a field of a dataclass in some subclasses, which a property of the base class would prevent

        @property
        def by(self) -> str:
            """Origin of π: "given", "range" or "distribution"."""

        @property
        def value(self) -> float:
            """The π that estimates use."""

        @property
        def error(self) -> float:
            """The standard deviation of π; 0 for a number and for a range."""

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible π; the central 95% of a distribution."""

    @property
    @abstractmethod
    def cases(self) -> tuple[Case, ...]:
        """One case for each end of a range; a distribution is one case of many values."""

    @property
    def purity(self) -> float:
        """The q that estimates use."""
        return 1.0

    @property
    def is_point(self) -> bool:
        """Whether π is one number."""
        return isinstance(self, PointPrior)

    @property
    def is_distributed(self) -> bool:
        """Whether π or q has a distribution."""
        return isinstance(self, DistributionPrior)

    @property
    def factor_error(self) -> float:
        """The standard deviation of q − π; 0 for numbers and ranges."""
        return self.error

    @property
    def least_ratio(self) -> float:
        """The smallest possible R = (q−π′)/(q−π), that of π′ = 1; 0 without label errors."""
        return 0.0

    @property
    def extremes(self) -> tuple[tuple[float, float], ...]:
        """Pairs of q and π at the ends of their ranges."""
        return tuple((1.0, pi) for pi in self.range)

    @property
    def extremes_of_purity(self) -> tuple[tuple[float, float], ...]:
        """Pairs of q at the ends of its range and the largest possible π."""
        return self.extremes[1::2]  # every second pair has the upper end of π

    def corners(self, source_prior: float) -> tuple[tuple[float, float], ...]:
        """Return pairs of q and π: at the ends of ranges, and elsewhere at the values in use, of π `source_prior`."""
        return tuple((1.0, pi) for pi in self.range) if isinstance(self, RangePrior) else ((1.0, source_prior),)

    def at(self, source_prior: float) -> PriorKnowledge:
        """Return the knowledge if π were known to be `source_prior`."""
        return PointPrior(source_prior)

    def raw(self, ratio: float) -> float:
        """Compute π′ = q − (q−π)R at the values in use; it is not clipped."""
        return self.purity - (self.purity - self.value) * ratio

    def target_prior(self, ratio: float) -> float:
        """Compute π′ = q − (q−π)R at the values in use, brought into [0, 1]."""
        return prior_from_ratio(self.value, ratio, self.purity)

    def interval(self, curve: ConfidenceCurve, confidence: float) -> tuple[float, float]:
        """Compute the interval of π′ from the confidence `curve` of R: the union of those of all cases.

        The values of a case are averaged by their probabilities. For given R, π′ is linear in π and in q, so that the
        ends of ranges suffice.
        """
        ends = [curve.interval(pi, confidence, weights, purity) for pi, weights, purity in self.cases]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def mean(self, curve: TabulatedCurve) -> float:
        """Compute the mean of π′ under the `curve` of R and the distribution of π; at the middle of a range."""
        return curve.mean(self.value, purity=self.purity)

    @property
    def whole_case(self) -> Case:
        """All that is possible as one case; a range counts as a uniform distribution."""
        return Case(np.array([self.value]))

    def influences(self, ratio: Any) -> tuple[tuple[float, Any], ...]:
        """Return pairs: the standard deviation of an unknown number, and the derivative of π′ by it at the ratio R.

        `ratio` may be an array of ratios. Numbers that are known exactly or by a range have the standard deviation 0.
        """
        return ((self.error, ratio),)

    def spread(self, ratio: float) -> float:
        """Compute the standard error of π′ from the distributions of π and q."""
        (error, derivative), *others = self.influences(ratio)
        total = derivative * error
        for error, derivative in others:
            total = float(np.hypot(total, derivative * error))
        return total

    def draw_shares(self, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw `count` values of π and of q; numbers where these are known, or ranges."""
        return self.value, self.purity


@dataclass(frozen=True)
class PointPrior(PriorKnowledge):
    """A known π."""

    value: float
    by: ClassVar[str] = "given"
    error: ClassVar[float] = 0.0

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible π."""
        return self.value, self.value

    @property
    def cases(self) -> tuple[Case, ...]:
        """The known value."""
        return (Case(self.value),)

    def __str__(self) -> str:
        """Return the value as text."""
        return f"{self.value:g}"


@dataclass(frozen=True)
class RangePrior(PriorKnowledge):
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

    @property
    def cases(self) -> tuple[Case, ...]:
        """Both ends of the range."""
        return Case(self.low), Case(self.high)

    @property
    def whole_case(self) -> Case:
        """Values of the range in equal steps."""
        return Case(np.linspace(self.low, self.high, _RANGE_POINTS))


@dataclass(frozen=True)
class DistributionPrior(PriorKnowledge):
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
        return self.discretize(_CELLS)

    def discretize(self, cells: int) -> tuple[Floats, Floats]:
        """Compute as many values of π and their probabilities."""
        edges = (1 - np.cos(np.linspace(0, np.pi, cells + 1))) / 2  # levels from 0 to 1
        return self.quantiles((edges[1:] + edges[:-1]) / 2), np.diff(edges)

    @property
    def cases(self) -> tuple[Case, ...]:
        """The values that discretise the distribution."""
        return (Case(*self.points),)

    @property
    def whole_case(self) -> Case:
        """The values that discretise the distribution."""
        return Case(*self.points)

    def mean(self, curve: TabulatedCurve) -> float:
        """Compute the mean of π′ under the confidence `curve` of R and the distribution of π."""
        return curve.mean(*self.points)

    @property
    def error(self) -> float:
        """The standard deviation of π."""
        values, weights = self.points
        return float(np.sqrt(np.average((values - self.distribution.mean()) ** 2, weights=weights)))

    @property
    def range(self) -> tuple[float, float]:
        """The central 95% of the distribution."""
        low, high = self.quantiles([0.025, 0.975])
        return float(low), float(high)

    def __str__(self) -> str:
        """Return the value and the standard deviation as text."""
        return f"{self.value:.3g} ± {self.error:.2g}"

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw stratified values of π: one from each of `count` equally probable parts."""
        return self.quantiles((rng.permutation(count) + 0.5) / count)

    def draw_shares(self, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw `count` values of π; q is 1."""
        return self.draw(count, rng), self.purity

    def quantiles(self, levels: Any) -> Floats:
        """Return quantiles of π at levels in [0, 1], clipped to [0, 1], where rounding may leave them outside."""
        return np.clip(np.asarray(self.distribution.ppf(levels), dtype=float), 0.0, 1.0)


@dataclass(frozen=True)
class PosteriorPrior(DistributionPrior):
    """The posterior of π given the tables; its long tail of hidden negatives moves the mean, but not the median."""

    @property
    def value(self) -> float:
        """The median of the distribution."""
        return float(self.quantiles(0.5))


@dataclass(frozen=True)
class MislabeledPrior(PriorKnowledge):
    """What is known of π, together with what is known of the share ε of labelled rows that are not positive."""

    prior: PriorKnowledge  # of π, or of κ = π/q
    label_error: PriorKnowledge  # of ε, read by `read_label_error`
    is_relative: bool = False  # whether `prior` is of κ, as an estimate from P and U is

    @property
    def by(self) -> str:
        """Origin of π."""
        return self.prior.by

    @property
    def purity(self) -> float:
        """1 − ε."""
        return 1 - self.label_error.value

    @property
    def value(self) -> float:
        """The π that estimates use."""
        return self.purity * self.prior.value if self.is_relative else self.prior.value

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible π; the central 95% of distributions."""
        low, high = self.prior.range
        least, most = self.label_error.range
        return ((1 - most) * low, (1 - least) * high) if self.is_relative else (low, high)

    @property
    def error(self) -> float:
        """The standard deviation of π."""
        if not self.is_relative:
            return self.prior.error
        return float(np.hypot(self.purity * self.prior.error, self.prior.value * self.label_error.error))

    @property
    def is_point(self) -> bool:
        """Whether π is one number."""
        return self.prior.is_point and (self.label_error.is_point or not self.is_relative)

    @property
    def is_distributed(self) -> bool:
        """Whether π or q has a distribution."""
        return self.prior.is_distributed or self.label_error.is_distributed

    @property
    def factor_error(self) -> float:
        """The standard deviation of q − π."""
        by_label_error = (1 - self.prior.value if self.is_relative else 1.0) * self.label_error.error
        return float(np.hypot(self._scale * self.prior.error, by_label_error))

    @property
    def least_ratio(self) -> float:
        """The smallest possible R, that of π′ = 1."""
        return min(((q - 1) / (q - pi) for q, pi in self.extremes if q > pi), default=0.0)

    @property
    def extremes(self) -> tuple[tuple[float, float], ...]:
        """Pairs of q and π at the ends of their ranges."""
        return tuple(self._pair(error, prior) for error, prior in product(self.label_error.range, self.prior.range))

    def corners(self, source_prior: float) -> tuple[tuple[float, float], ...]:
        """Return pairs of q and π: at the ends of ranges, and elsewhere at the values in use, of π `source_prior`."""
        errors = self.label_error.corners(self.label_error.value)
        priors = self.prior.corners(source_prior / self._scale)
        return tuple(self._pair(error, prior) for (_, error), (_, prior) in product(errors, priors))

    def at(self, source_prior: float) -> PriorKnowledge:
        """Return the knowledge if π were known to be `source_prior`."""
        return MislabeledPrior(PointPrior(source_prior), self.label_error)

    @property
    def cases(self) -> tuple[Case, ...]:
        """One case for each combination of the ends of ranges; values of distributions are combined."""
        both = self.prior.is_distributed and self.label_error.is_distributed
        if isinstance(self.prior, DistributionPrior) and both:
            return self.combine((Case(*self.prior.discretize(_CELLS_OF_TWO)),), _CELLS_OF_TWO)
        return self.combine(self.prior.cases, _CELLS)

    def combine(self, priors: Sequence[Case], cells: int) -> tuple[Case, ...]:
        """Combine cases of π, or κ, with those of ε, whose distribution is approximated by `cells` values."""
        error = self.label_error
        errors = (Case(*error.discretize(cells)),) if isinstance(error, DistributionPrior) else error.cases
        return tuple(self._combine(prior, case) for case, prior in product(errors, priors))

    @property
    def whole_case(self) -> Case:
        """All combinations as one case; a range counts as a uniform distribution."""
        parts = []
        for known in (self.prior, self.label_error):
            part = Case(*known.discretize(_CELLS_OF_TWO)) if isinstance(known, DistributionPrior) else known.whole_case
            parts.append(part)
        return self._combine(*parts)

    def mean(self, curve: TabulatedCurve) -> float:
        """Compute the mean of π′ under the confidence `curve` of R and distributions; of a range at its middle."""
        prior, error = (PointPrior(k.value) if isinstance(k, RangePrior) else k for k in (self.prior, self.label_error))
        (case,) = MislabeledPrior(prior, error, self.is_relative).cases
        return curve.mean(*case)

    def influences(self, ratio: Any) -> tuple[tuple[float, Any], ...]:
        """Return the standard deviations of π (or κ) and ε, each with the derivative of π′ by the number.

        π′ = q(1−R) + πR = q(1 − (1−κ)R).
        """
        by_purity = 1 - (1 - self.prior.value) * ratio if self.is_relative else 1 - ratio
        return (self.prior.error, self._scale * ratio), (self.label_error.error, -by_purity)

    def draw_shares(self, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw `count` values of π and of q; numbers where these are known, or ranges."""
        prior, _ = self.prior.draw_shares(count, rng)
        purity = 1 - self.label_error.draw_shares(count, rng)[0]
        return (purity * prior if self.is_relative else prior), purity

    def __str__(self) -> str:
        """Return what is known of π as text."""
        return f"{self.value:.3g}" if self.is_relative else str(self.prior)

    @property
    def _scale(self) -> float:
        """Derivative of π by the number that `prior` is about."""
        return self.purity if self.is_relative else 1.0

    def _pair(self, label_error: float, prior: float) -> tuple[float, float]:
        """Return q and π."""
        purity = 1 - label_error
        return purity, purity * prior if self.is_relative else prior

    def _combine(self, prior: Case, label_error: Case) -> Case:
        """Combine all values of π, or κ, with all of ε; leave out those where P is not richer in positives than U."""
        if np.ndim(prior.source_prior) == 0 and np.ndim(label_error.source_prior) == 0:
            known_purity, known_prior = self._pair(float(label_error.source_prior), float(prior.source_prior))
            return Case(known_prior, None, known_purity)
        values, errors = np.atleast_1d(prior.source_prior), np.atleast_1d(label_error.source_prior)
        weights = [
            np.full(len(part), 1 / len(part)) if case.weights is None else case.weights
            for part, case in ((values, prior), (errors, label_error))
        ]
        purity, pi = 1 - np.repeat(errors, len(values)), np.tile(values, len(errors))
        pi, weight = purity * pi if self.is_relative else pi, np.outer(weights[1], weights[0]).ravel()
        is_possible = purity > pi
        return Case(pi[is_possible], weight[is_possible], purity[is_possible])


def with_label_error(prior: PriorKnowledge, label_error: Any, *, is_relative: bool = False) -> PriorKnowledge:
    """Combine what is known of π, or of κ if `is_relative`, with a `label_error` as users pass it; None is none.

    Raises InputError where the labelled rows would not be richer in positives than the unlabelled rows.
    """
    if label_error is None:
        return prior
    known = MislabeledPrior(prior, read_label_error(label_error), is_relative)
    shares = known.corners(known.value)
    purity, pi = min(shares, key=lambda pair: pair[0] - pair[1])
    if not purity > pi:
        raise InputError(
            f"label_error is {known.label_error}, so that only a share of {purity:.3g} of the labelled rows is "
            f"positive, but it must be above the source prior ({pi:.3g}); correct label_error or source_prior."
        )
    return known


def warn_of_label_error(known: PriorKnowledge) -> None:
    """Warn if label errors leave the labelled rows hardly richer in positives than the unlabelled rows."""
    if not isinstance(known, MislabeledPrior):
        return
    purity, pi = min(known.corners(known.value), key=lambda pair: pair[0] - pair[1])
    if purity - pi < _NEAR:
        warn(
            f"With a label error of {known.label_error} the share of positives among the labelled rows may be only "
            f"{purity:.3g}, hardly more than the source prior ({pi:.3g}), so that they inform little about the target. "
            "Check both, or label with fewer errors.",
            InconsistentInputWarning,
        )
        return
    possible = min(float(np.sum(1.0 if case.weights is None else case.weights)) for case in known.cases)
    if 1 - possible > _IMPOSSIBLE:
        warn(
            f"label_error ({known.label_error}) and source_prior ({known.prior}) have a probability of "
            f"{format_percent(1 - possible)} that the labelled rows contain no more positives than the unlabelled "
            "rows. These values are left out; check both distributions.",
            InconsistentInputWarning,
        )


def read_label_error(label_error: Any) -> PriorKnowledge:
    """Read the share of labelled rows that are not positive: a number from 0 to below 1, a range or a distribution."""
    name = "label_error"
    if isinstance(label_error, (tuple, list)) or getattr(label_error, "ndim", 0) == 1:
        ends = tuple(label_error)
        if len(ends) == 2 and all(is_number(end) for end in ends) and 0 <= ends[0] <= ends[1] < 1:
            return RangePrior(float(ends[0]), float(ends[1]))
        raise InputError(
            f"{name} is {label_error!r}, but a range must be two increasing numbers from 0 to below 1, such as "
            "(0.02, 0.1)."
        )
    if hasattr(label_error, "ppf"):
        return _read_distribution(label_error, name)
    if not (is_number(label_error) and 0 <= label_error < 1):
        raise InputError(
            f"{name} is {label_error!r}, but it must be a number from 0 to below 1, such as 0.05, a range such as "
            f"(0.02, 0.1), or {_EXAMPLE.replace('38, 214', '3.5, 47.5')} after 3 errors in 50 checked rows."
        )
    return PointPrior(float(label_error))


def read_prior(source_prior: Any) -> PriorKnowledge:
    """Read a number, a pair of numbers or a frozen distribution as knowledge of the source prior."""
    if isinstance(source_prior, (tuple, list)) or getattr(source_prior, "ndim", 0) == 1:
        return _read_range(source_prior)
    if hasattr(source_prior, "ppf"):
        return _read_distribution(source_prior, "source_prior")
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


def _read_distribution(distribution: Any, setting: str) -> DistributionPrior:
    """Check that a distribution has parameters (is frozen) and lies inside [0, 1]; messages name the `setting`."""
    if isinstance(distribution, (type, stats.rv_continuous, stats.rv_discrete)):  # not frozen
        name = getattr(distribution, "name", None) or "distribution"
        raise InputError(f"{setting} is scipy's {name} without parameters; pass {_EXAMPLE}.")
    try:
        below = distribution.cdf(np.nextafter(0.0, -1.0))  # just below 0, since 0 itself is allowed
        mean, outside = float(distribution.mean()), float(1 - distribution.cdf(1.0) + below)
    except (AttributeError, TypeError):
        raise InputError(f"{setting} is not one distribution with a mean and a cdf; pass {_EXAMPLE}.") from None
    if not (0 < mean < 1 and outside <= _OUTSIDE):
        raise InputError(
            f"{setting} is a distribution with mean {mean:.3g} and {outside:.2g} of its mass outside [0, 1], but it "
            f"must lie inside; pass {_EXAMPLE}."
        )
    return DistributionPrior(distribution)


def survey_prior(positives: int, rows: int) -> Any:
    """Return the posterior of a share under Jeffreys' prior, if a survey found `positives` among `rows`."""
    check_survey_rows(rows)
    return stats.beta(positives + 0.5, rows - positives + 0.5)


def check_survey_rows(rows: float) -> None:
    """Refuse a number of rows of a survey that floats cannot count."""
    if rows > _MOST_ROWS:
        raise InputError(f"the survey has more than {_MOST_ROWS:.0e} rows; check its counts, or pass the prior itself.")


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
