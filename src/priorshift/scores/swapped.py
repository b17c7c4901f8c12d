"""Are the labelled positives and the population swapped? What the scores of P and U tell about it.

The population holds the positives, U = πP + (1−π)N, so every set of rows that P has is in U too, at π times its share:
κ = inf U(A)/P(A) ≥ π. The other way round nothing is promised: rows that only negatives are like are in U and not in
P, inf P(A)/U(A) = 0 where the classes can be told apart. With the two tables swapped it is the reverse: P has rows that
U lacks altogether, and all of U's are in P.

The sets looked at are the rows of the highest scores, of which P holds a share a, and of the lowest, of which U does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from priorshift.arrays import Floats
from priorshift.errors import SampleWarning, warn
from priorshift.scores.p_values import p_values
from priorshift.scores.scored import ScoredSource

_SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])  # smaller sets may be empty by chance
_SURE = 0.95
_NOTHING = 0.01  # share of U that is like P, below which it is none


@dataclass(frozen=True)
class Inclusion:
    """How much of the one sample is in the other, at most and at least.

    Attributes
    ----------
    found : float
        Share of the population that is like the positives, by the set that has least of it.
    most : float
        What it is at most: the least of bounds of 95%.
    reverse : float
        What the share of the positives that is like the population is at least.
    """

    found: float
    most: float
    reverse: float

    @classmethod
    def of(cls, scored: ScoredSource) -> Inclusion:
        """From cross-fitted scores; repetitions are averaged, not added, since they have the same rows."""
        reverse = np.stack([p_values(-r.population, -r.positive) for r in scored.repetitions])
        (k, n), (j, m) = ((_highest(values), values.shape[1]) for values in (scored.p_values, reverse))
        most = stats.beta.ppf(_SURE, k + 1, np.maximum(n - k, 1e-9)) / _SHARES
        least = np.where(j > 0, stats.beta.ppf(1 - _SURE, np.maximum(j, 1e-9), m - j + 1), 0.0) / _SHARES
        return cls(float((k / n / _SHARES).min()), float(most.min()), float(least.min()))

    @property
    def looks_swapped(self) -> bool:
        """Whether U has nothing of what P is, while P has more of U than U can have of P."""
        return self.found < _NOTHING and self.reverse > self.most


def _highest(values: Floats) -> Floats:
    """How many p-values lie in the highest part, for each share."""
    return np.asarray((values[:, :, None] > 1 - _SHARES).sum(axis=1).mean(axis=0))


def warn_if_swapped(scored: ScoredSource) -> None:
    """Ask whether positives and population were swapped, where they look so.

    Parameters
    ----------
    scored : ScoredSource
        Scores of both.
    """
    told = Inclusion.of(scored)
    if told.looks_swapped:
        warn(
            f"Positives and unlabelled rows look swapped: at least {told.reverse:.1%} of the positives are like the "
            f"unlabelled rows, but at most {told.most:.1%} of the unlabelled rows are like the positives, though they "
            "are a sample of the population that holds them. Check which table is which.",
            SampleWarning,
        )
