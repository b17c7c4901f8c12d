"""What each sample consists of: the shares of the classes in the source population, and errors of labels.

With b the coefficients of the target as a mixture of samples, the share of class j in the target is θ_j = Σ_s b_s W_sj,
where W_sj is the share of class j in sample s: 1 for the class itself, π_j for the source population, and Q_kj for a
class k that was labelled with errors. Shares and errors may be known, lie in a range, or have a distribution. θ_j is
linear in each of them, so that an interval that holds for all values of a range is the union of those at its ends;
distributions are averaged over cases that are drawn from them. The joint region of all θ is the union of those of all
values within the ranges, also of different positions in different ranges, so it needs cases within them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.inference.affine_mixture import AffineMixture
from priorshift.inference.class_knowledge import CASES, LabelErrors, SourceShares
from priorshift.inference.prior_knowledge import PointPrior, RangePrior

_MOST_LABELLED = 1 - 1e-3  # share of all labelled classes together in the source, which has a rest
_LEAST_DETERMINANT = 1e-6  # of W, below which errors of labels make samples indistinguishable


@dataclass(frozen=True, eq=False)
class Composition:
    """Shares of the classes in each sample: the best guess, and the cases that are possible."""

    central: Floats  # W, shape (samples, classes)
    alternatives: tuple[Floats, ...]  # cases of W, each of shape (cases, samples, classes); an interval holds in each
    shares_error: Floats  # standard deviation of π_j, shape (classes,); 0 if there is no base population
    within: Floats | None = None  # cases of W at all positions in ranges; None if there are no ranges

    @property
    def region_cases(self) -> Floats:
        """Cases of W whose regions together are the joint region of all θ, shape (cases, samples, classes)."""
        return np.concatenate(self.alternatives) if self.within is None else self.within

    @classmethod
    def without_rest(cls, errors: LabelErrors, classes: int, rng: np.random.Generator) -> Composition:
        """Build the composition if every class is labelled: each sample is its class, apart from label errors."""
        central = errors.matrices(errors.values[None], classes, classes)[0]
        positions: list[Floats | float] = [*_ends(errors.is_range), *_positions(errors.is_range)]
        cases = [_possible(errors.matrices(errors.draw(position, rng), classes, classes)) for position in positions]
        ends = len(_ends(errors.is_range))
        return cls(_checked(central), tuple(cases[:ends]), np.zeros(classes), *cases[ends:])

    @classmethod
    def with_rest(cls, shares: SourceShares, errors: LabelErrors, rng: np.random.Generator) -> Composition:
        """Build the composition of K labelled classes and a population with a rest, the last class."""
        K = len(shares.priors)
        Q = errors.matrices(errors.values[None], K, K + 1)
        scale = np.where(shares.is_estimated, np.einsum("ckk->ck", Q[..., :K]), 1.0)
        ends = _range_ends(shares)
        pi = scale * (shares.values + ends.middle)
        total = float(pi.sum())
        central = _checked(_matrix(pi / max(total / _MOST_LABELLED, 1.0), Q)[0])
        alternatives = [
            _cases(shares, errors, shares.draw(position, rng), errors.draw(error_end, rng))
            for position, error_end in product(ends.positions, _ends(errors.is_range))
        ]
        within = [
            _cases(shares, errors, shares.draw(places[:, :K], rng), errors.draw(places[:, K:], rng))
            for places in _positions([*shares.is_range, *errors.is_range])
        ]
        return cls(central, tuple(alternatives), shares.errors(scale[0]), *within)

    def interval(self, mixture: AffineMixture, j: int, confidence: float) -> tuple[float, float]:
        """Return the interval of θ_j that holds in all alternatives."""
        ends = np.array([mixture.curve(cases[:, :, j]).interval(confidence) for cases in self.alternatives])
        return float(ends[:, 0].min()), float(ends[:, 1].max())


class _RangeEnds(NamedTuple):
    """Where in the ranges of source priors an interval has its ends, such that all of them add up to less than 1."""

    positions: list[Floats | float]  # 0 at the lower ends and 1 at the upper; one for all classes, or of shape (1, K)
    middle: Floats  # what is added to the values of the classes to have possible ones, shape (K,)


def _range_ends(shares: SourceShares) -> _RangeEnds:
    """Return the ends of ranges that are possible together; refuse priors that add up to 1 or more.

    The share of a class in the target grows with its source prior alone, and that of the rest falls with their sum. So
    if not all priors can be at their upper ends, each of them is, as far as possible, while the others are at their
    lower ends; and all are as far up as possible together.
    """
    K, is_range = len(shares.priors), np.array(shares.is_range)
    ends = np.array([prior.range for prior in shares.priors])
    low, width = np.where(is_range, ends[:, 0], shares.values), np.where(is_range, ends[:, 1] - ends[:, 0], 0.0)
    free, nothing = _MOST_LABELLED - float(low.sum()), np.zeros(K)
    is_stated = all(isinstance(prior, (PointPrior, RangePrior)) for prior in shares.priors)
    if low.sum() >= 1 and is_stated:
        at_least = "at least " if is_range.any() else ""
        raise InputError(
            f"source_prior adds up to {at_least}{low.sum():.3g} over the labelled classes, but less than 1 is "
            "expected, since there is a rest; state that there is none (rest=False, --no-rest), or correct the priors."
        )
    if not is_range.any():
        return _RangeEnds([0], nothing)
    if width.sum() < free or free <= 0:
        return _RangeEnds([0, 1], nothing)
    together = np.full(K, free / width.sum())
    single = [np.eye(K)[k] * min(1.0, free / width[k]) for k in np.flatnonzero(width)]
    middle = low + width * min(0.5, together[0] / 2) - shares.values
    return _RangeEnds([0, together[None], *(position[None] for position in single)], np.where(is_range, middle, 0.0))


def _cases(shares: SourceShares, errors: LabelErrors, pi: Floats, epsilon: Floats) -> Floats:
    """Return W in cases of π and of label errors ε; cases whose shares add up to 1 or more are omitted.

    If all do, as those of the upper ends of ranges may, they are scaled down.
    """
    K, count = len(shares.priors), max(len(pi), len(epsilon))
    Q = errors.matrices(np.broadcast_to(epsilon, (count, epsilon.shape[1])), K, K + 1)
    scales = np.where(shares.is_estimated, np.einsum("ckk->ck", Q[..., :K]), 1.0)
    pi = np.broadcast_to(pi, (count, K)) * scales
    total = pi.sum(axis=1, keepdims=True)
    is_possible = total[:, 0] < 1
    if is_possible.any():
        pi, Q = pi[is_possible], Q[is_possible]
    else:
        pi = pi / (total / _MOST_LABELLED)
    return _possible(_matrix(pi, Q))


def _matrix(pi: Floats, Q: Floats) -> Floats:
    """Return W, (cases, K + 1, K + 1), from π of shape (cases, K) and Q of the labelled samples."""
    population = np.concatenate([pi, 1 - pi.sum(axis=1, keepdims=True)], axis=1)
    return np.concatenate([Q, population[:, None]], axis=1)


def _possible(W: Floats) -> Floats:
    """Return the cases in which the samples can be distinguished; refuse W if there are none."""
    determinants = np.linalg.det(W)
    is_possible = (W > -1e-12).all(axis=(1, 2)) & (determinants > _LEAST_DETERMINANT)
    _checked(W[determinants.argmax()])
    return W[is_possible] if is_possible.any() else W


def _checked(W: Floats) -> Floats:
    """Return W; refuse one in which a labelled sample has no more of its class than others have.

    With one class, its determinant is the share of positives among labelled rows less that in the population.
    """
    if not np.linalg.det(W) > _LEAST_DETERMINANT:
        raise InputError(
            "label_error is so large that the labelled samples contain hardly more of their classes than other samples "
            "do; correct label_error or source_prior."
        )
    return W


def _ends(is_range: Sequence[bool]) -> tuple[int, ...]:
    """Return (0, 1), for the lower and the upper end, if there are ranges; (0,) if there are none."""
    return (0, 1) if any(is_range) else (0,)


def _positions(is_range: Sequence[bool]) -> list[Floats]:
    """Return positions all over the ranges, also different ones in different ranges; none if there are no ranges."""
    if not any(is_range):
        return []
    positions = np.zeros((CASES, len(is_range)))
    spread = qmc.Halton(sum(is_range), scramble=False).random(CASES)
    # stretched, so that ends and corners are among them
    positions[:, np.asarray(is_range)] = np.clip(0.5 + 1.1 * (spread - 0.5), 0.0, 1.0)
    return [positions]
