"""Is there a shift? The test of π′ = π, which needs no π.

If R = 1, target and population have one law, and E_T h = E_U h for every h: a test of two means, here of the h that
tells R = 1 best. Scores are cross-fitted, and rows of the target are scored by the same models, so that a row of either
is scored by a model that has not seen it. What rows of U do to each other's scores adds to the variance: half of the
share of noise in h does (all of it, as the tests of other ratios take, is careful where positives are few; simulations
of `experiments/studies/type_one.py` ask for half).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from priorshift.arrays import Floats
from priorshift.diagnosis.residuals import Observed, observed
from priorshift.formatting import TextReport, format_p
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.problem import Target
from priorshift.results import Interval
from priorshift.scores import mixture
from priorshift.scores.ratio_test import LEAST_SEPARATION, RatioTest
from priorshift.scores.witness import Witness

_MANY = 100  # observations of a target, from which on its own spread is taken
_LEAST_LEFT = 1e-3  # of a variance, where groups that stand in source and target cancel out


@dataclass(frozen=True)
class ShiftTest(TextReport):
    """The test of R = (1−π′)/(1−π) = 1, and how far from it R is.

    With many rows every difference is significant, so that the ratio and its interval come first: R = 0.9 says that
    the share of negatives is a tenth lower than in the source, whatever π is.

    Attributes
    ----------
    statistic : float
        N − D over its standard error, N = E_T h − E_P h and D = E_U h − E_P h for the witness h of R = 1; positive
        where the target has more negatives.
    p_value : float
        Two-sided, by Student's distribution. The interval comes of tests that are more careful with few rows: it may
        hold 1 where the p-value is below 5%.
    ratio : float
        R̂; NaN where the positives cannot be told from the population.
    interval : Interval
        Of R.
    freedom : float
        Degrees of freedom.
    separation : float
        D over its standard error: below 1.6 positives and population may be alike, and R tells nothing.

    Examples
    --------
    >>> from priorshift.diagnosis.shift_test import ShiftTest
    >>> from priorshift import Interval
    >>> print(ShiftTest(-9.1, 3e-19, 0.5, Interval(0.44, 0.57, 0.95, "witness"), 900.0, 30.0))
    R = 0.50, 95% interval 0.44 to 0.57, the share of negatives in the target over that in the source; no shift (R = 1)
    has p < 0.0001
    """

    statistic: float
    p_value: float
    ratio: float
    interval: Interval
    freedom: float
    separation: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        names = ("statistic", "p_value", "ratio", "freedom", "separation")
        numbers = {name: _number(getattr(self, name)) for name in names}
        low, high = _number(self.interval.low), _number(self.interval.high)
        return numbers | {"interval": {"low": low, "high": high, "confidence": self.interval.confidence}}

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        ends = f"{100 * self.interval.confidence:g}% interval {self.interval.low:.2f} to {self.interval.high:.2f}"
        if not self.separation > LEAST_SEPARATION:
            return "positives and population may be alike, so that no shift could be seen"
        what = "the share of negatives in the target over that in the source"
        return f"R = {self.ratio:.2f}, {ends}, {what}; no shift (R = 1) has {format_p(self.p_value)}"


def shift_test(
    witness: Witness, test: RatioTest, curve: TabulatedCurve, values: Floats, target: Target, confidence: float = 0.95
) -> ShiftTest:
    """Test R = 1 with the witness that tells it best.

    Parameters
    ----------
    witness : Witness
        Of the fitted source.
    test, curve : RatioTest, TabulatedCurve
        Of this target.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    target : Target
        The target.
    confidence : float
        Of the interval.

    Returns
    -------
    ShiftTest
    """
    statistic, freedom = _compared(witness, values, target)
    low, high = curve.quantiles(confidence) if curve.is_known else (0.0, float("inf"))
    p_value = min(1.0, 2 * float(stdtr(freedom, -abs(statistic))))
    interval = Interval(low, high, confidence, "witness")
    return ShiftTest(statistic, p_value, test.ratio, interval, freedom, test.separation)


def _compared(witness: Witness, values: Floats, target: Target) -> tuple[float, float]:
    """E_T h − E_U h over its standard error, and the degrees of freedom.

    If there is no shift T and U have one law. A small target may by chance hold none of a rare class, and by itself
    would look as if it never did: there the spread of h is that of both together.
    """
    h = witness.function(np.ones(1), target.size)[:, 0]
    _, U, T = observed(witness.source, target)
    of_T, of_U = (
        _Compared.of(sample, np.mean([function[b] for function, b in zip(h, bins, strict=True)], axis=0))
        for sample, bins in ((T, mixture.bins(values)), (U, witness.population))
    )
    noise = 1 + witness.noise_share(h) / 2
    parts, freedom = (_pooled if of_T.observations < _MANY else _apart)(of_T, of_U, noise)
    common, scale = min(len(of_T.each), len(of_U.each)), 1.0
    for part, one in zip(parts, (of_T, of_U), strict=True):
        scale *= np.sqrt(part / one.own) if one.own > 0 else 0.0
    both = float(of_T.each[:common] @ of_U.each[:common]) * scale
    variance = max(sum(parts) - 2 * both, _LEAST_LEFT * sum(parts), 1e-300)
    return float((of_T.mean - of_U.mean) / np.sqrt(variance)), max(float(freedom), 1.0)


def _apart(of_T: _Compared, of_U: _Compared, noise: float) -> tuple[tuple[float, float], float]:
    """Variances of the two means, each by its own rows, and Satterthwaite's degrees of freedom."""
    parts = of_T.own * of_T.unbiased, of_U.own * of_U.unbiased * noise
    each = sum(p**2 / (one.observations - 1) for p, one in zip(parts, (of_T, of_U), strict=True))
    return parts, sum(parts) ** 2 / max(each, 1e-300)


def _pooled(of_T: _Compared, of_U: _Compared, noise: float) -> tuple[tuple[float, float], float]:
    """The same by the spread of both together; groups of T vary among each other no less than those of U."""
    rows = 1 / of_T.squares, 1 / of_U.squares
    spread = (rows[0] * of_T.spread + rows[1] * of_U.spread) / max(sum(rows) - 2, 1.0)
    effect = max(of_T.effect, of_U.effect) if of_T.is_grouped else of_T.effect
    parts = spread * of_T.squares * effect, spread * of_U.squares * of_U.effect * noise
    return parts, of_T.observations + of_U.observations - 2


class _Compared(NamedTuple):
    """A mean of h over one of the two samples."""

    mean: float
    each: Floats  # what each observation does to it
    own: float  # sum of their squares
    spread: float  # of h among rows
    squares: float  # Σ mass²
    observations: float
    is_grouped: bool

    @classmethod
    def of(cls, sample: Observed, h: Floats) -> _Compared:
        mean = float(sample.mass @ h)
        each = np.asarray(np.bincount(sample.observation, sample.mass * (h - mean)), dtype=np.float64)
        grouped = len(np.unique(sample.observation)) < len(h)
        spread = float(sample.mass @ (h - mean) ** 2)
        return cls(mean, each, float(each @ each), spread, float(sample.mass @ sample.mass), sample.size, grouped)

    @property
    def unbiased(self) -> float:
        """What the spread of its observations about their mean is too small by."""
        return self.observations / (self.observations - 1)

    @property
    def effect(self) -> float:
        """What groups do to its variance."""
        alone = self.spread * self.squares
        return self.unbiased * self.own / alone if self.is_grouped and alone > 0 else 1.0


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
