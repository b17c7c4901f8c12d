"""The estimate as it would be had something been chosen otherwise, and how much of the difference may be chance.

The estimate with other bandwidths and with another score: what a user could have chosen as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier

from priorshift.arrays import Floats
from priorshift.diagnosis.conclusion import target_prior
from priorshift.diagnosis.subsample import Thinned
from priorshift.formatting import format_fixed
from priorshift.inference.confidence_curve import ConfidenceCurve, TabulatedCurve
from priorshift.inference.prior_knowledge import PriorKnowledge
from priorshift.problem import Source, Target
from priorshift.result_tables import to_plain
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

_CLEAR = 3.0  # standard errors, beyond which two estimates of one number differ by more than chance


@dataclass(frozen=True)
class Variant:
    """An estimate with one thing changed.

    Attributes
    ----------
    name : str
        What was changed.
    ratio, value, low, high : float
        R̂, π̂′ and its interval; NaN, and the interval [0, 1], where there is no estimate.
    moved : float
        π̂′ less that of the estimate it is compared with, which is the first of its kind where there are several.
    error : float
        Standard error of the difference of the two, which are made of the same rows; NaN where it is not chance that
        makes it, as of rows that are left out because they matter.
    """

    name: str
    ratio: float
    value: float
    low: float
    high: float
    moved: float = 0.0
    error: float = float("nan")

    @property
    def is_clear(self) -> bool:  # numpydoc ignore=RT01
        """Whether the difference is more than chance: under label shift both estimate the same."""
        return bool(abs(self.moved) > _CLEAR * self.error)

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
        """
        return to_plain(vars(self))

    def cells(self) -> tuple[str, ...]:
        """Write it as cells of a table.

        Returns
        -------
        tuple of str
            The name, π̂′, its interval, and by how much it has moved.
        """
        if np.isnan(self.value):
            return self.name, "none", "", ""
        moved = format_fixed(self.moved, 3, "+") + (f" ± {self.error:.3f}" if np.isfinite(self.error) else "")
        return self.name, f"{self.value:.3f}", f"{self.low:.3f} to {self.high:.3f}", moved


@dataclass(frozen=True, eq=False)
class Reading:
    """How a ratio is read as π̂′: what is known of π, the π in use, and the interval's confidence.

    Attributes
    ----------
    prior : Known, Between or Distributed
        What is known of π.
    source_prior : float
        The π that the estimate uses.
    confidence : float
        Of intervals.
    """

    prior: PriorKnowledge
    source_prior: float
    confidence: float

    def variant(
        self,
        name: str,
        ratio: float,
        curve: ConfidenceCurve,
        beside: Variant | None = None,
        influence: Floats | None = None,
    ) -> Variant:
        """Make a variant.

        Parameters
        ----------
        name : str
            What was changed.
        ratio : float
            R̂.
        curve : ConfidenceCurve
            Of R.
        beside : Variant or None
            What it is compared with; None is itself.
        influence : ndarray or None
            How much more each observation moves this R̂ than the other.

        Returns
        -------
        Variant
        """
        value, low, high = target_prior(ratio, curve, self.prior, self.source_prior, self.confidence)
        if beside is None:
            return Variant(name, ratio, value, low, high)
        error = float("nan")
        if influence is not None:
            error = (1 - self.source_prior) * float(np.sqrt(influence @ influence))
        return Variant(name, ratio, value, low, high, value - beside.value, error)

    def nothing(self, name: str) -> Variant:
        """Make a variant that has no estimate.

        Parameters
        ----------
        name : str
            What was changed.

        Returns
        -------
        Variant
        """
        nan = float("nan")
        return Variant(name, nan, nan, 0.0, 1.0, nan)


_FACTORS = tuple(
    (factor, f"{words} the default bandwidth")
    for factor, words in ((0.25, "a quarter of"), (0.5, "half of"), (2.0, "twice"), (4.0, "four times"))
)
_REPEATS, _FOLDS = 2, 3  # of the linear score
_RIDGE = 0.01  # of the rows; columns have about unit spread
_PRECISE = 1e-3  # of the iterations: a score need not be more so


def over_bandwidths(thinned: Thinned, reading: Reading) -> tuple[Variant, ...]:
    """R by projection, whose default bandwidth comes first, with other bandwidths, on the same rows."""
    whole, name = thinned.whole, "the default bandwidth"
    if whole is None:
        return (reading.nothing(name),)
    variants = [reading.variant(name, whole.ratio, whole.curve)]
    for factor, name in _FACTORS:
        made = thinned.project(factor)
        if made is None:
            variants.append(reading.nothing(name))
        else:
            moved = made.influence - whole.influence
            variants.append(reading.variant(name, made.ratio, made.curve, variants[0], moved))
    return tuple(variants)


def over_scores(
    source: Source,
    target: Target,
    witness: Witness,
    values: Floats,
    test: RatioTest,
    curve: TabulatedCurve,
    reading: Reading,
    rng: np.random.Generator,
) -> tuple[Variant, ...]:
    """The estimate as it is, and with a linear score in place of the fitted one."""
    own = reading.variant("its own score", test.ratio, curve)
    if not np.isfinite(test.ratio):
        return (own,)
    total = float(len(source.labeled) if source.weights is None else source.weights.sum())
    model = RidgeClassifier(alpha=_RIDGE * total, solver="lsqr", tol=_PRECISE)
    scored = ScoredSource.fit(source, model, _REPEATS, _FOLDS, rng)
    linear = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    of_linear = scored.target_p_values(target)
    found = linear.test(of_linear, target)
    name = "a linear score"
    if not np.isfinite(found.ratio):
        return own, reading.nothing(name)
    moved = linear.influence(found.ratio, of_linear, target)
    before = witness.influence(test.ratio, values, target)
    by_row = np.bincount(target.observation, moved.target - before.target)
    of_curve = TabulatedCurve.from_tests(found.ratios, found.statistic, found.freedom)
    influence = np.concatenate([moved.source - before.source, by_row])
    return own, reading.variant(name, found.ratio, of_curve, own, influence)
