"""Which columns tell the positives from the population: how far they differ, and what the score makes of it.

The score is looked at through h = 1 − f_P/f_U, the witness of R = 1 but for a factor, in the rows of U. Its linear part
is Σ β_j x_j, by the regression of h on the columns, and a column rests it by the variance of its own term; the terms of
the levels of one category are one. Two columns that say the same share what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.diagnosis.features import column_names
from priorshift.diagnosis.violation import MOST_COLUMNS, regression
from priorshift.input.source import Source
from priorshift.numerals import percent, written
from priorshift.records import plain
from priorshift.scores.witness import Witness

_FIT_ROWS = 5000  # of the regression
_FAR = 8.0  # standard deviations, beyond which a value is cut off, as scores do


@dataclass(frozen=True)
class Driver:
    """A column that tells positives from the population.

    Attributes
    ----------
    name : str
        The column.
    level : str or None
        Of a category or another column that was encoded by several, the one that differs most.
    difference : float
        Mean of P less mean of U, of that level, in standard deviations of U.
    importance : float
        What the column makes up of all that the score rests on, from 0 to 1.
    """

    name: str
    level: str | None
    difference: float
    importance: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and text.

        Returns
        -------
        dict
        """
        return plain(vars(self))

    def __str__(self) -> str:
        which = f"{self.name} ({self.level})" if self.level else self.name
        off = written(self.difference, 2, "+")
        return f"{which}: {percent(self.importance)}, positives {off} standard deviations off"


def drivers(source: Source, witness: Witness) -> tuple[Driver, ...]:
    """Name the columns that the score rests on; at most ten.

    Parameters
    ----------
    source : Source
        With its rows.
    witness : Witness
        Of its scores.

    Returns
    -------
    tuple of Driver
        The most important one first; columns that are left out are not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.diagnosis.drivers import drivers
    >>> from priorshift.input.source import Source
    >>> from priorshift.scores.scored import ScoredSource
    >>> from priorshift.scores.witness import Witness
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(900, 2)), np.repeat([1, 0], [300, 600])
    >>> X[:420, 0] += 2  # all positives, and a fifth of the population
    >>> source = Source.read(X, y, None, scenario="case-control", standardize=True)
    >>> scored = ScoredSource.of(source, None, repeats=2, folds=5, rng=rng)
    >>> first, second = drivers(source, Witness.of(scored, source.without_rows(), *scored.mixture))
    >>> first.name, first.importance > 0.9 > 0.1 > second.importance
    ('column 0', True)
    """
    step = max(1, len(source.population) // _FIT_ROWS)
    U, P = (source.rows[rows] for rows in (source.population, source.positive))
    mass_P, mass = source.positive_mass, source.population_mass
    mean = mass @ U
    spread = np.sqrt(mass @ (U - mean) ** 2)
    used = np.flatnonzero((source.scaling.factor != 0) & (spread > 0))
    if not len(used):
        return ()
    h = witness.function(np.ones(1), float(len(source.population)))[:, 0]
    of_row = np.mean([h[k][bins] for k, bins in enumerate(witness.population)], axis=0)
    some = np.clip((U - mean)[::step][:, used] / spread[used], -_FAR, _FAR)
    weight = mass[::step] / mass[::step].sum()
    terms = (some - weight @ some) * regression(some, of_row[::step], weight)
    origin = source.table.origin
    of = used if origin is None else origin.of[used]
    numbers, code = np.unique(of, return_inverse=True)
    code = code.reshape(-1)
    together = np.zeros((len(used), len(numbers)))
    together[np.arange(len(used)), code] = 1.0
    variance = weight @ (terms @ together) ** 2
    share = variance / variance.sum() if variance.sum() > 0 else variance
    differs = (mass_P @ P - mean)[used] / spread[used]
    names, levels = column_names(source.table, used)
    made = []
    for k in np.argsort(-share, kind="stable")[:MOST_COLUMNS]:
        own = np.flatnonzero(code == k)
        most = own[np.argmax(np.abs(differs[own]))]
        name = names[numbers[k]]
        made.append(Driver(name, _level(name, levels[most]), float(differs[most]), float(share[k])))
    return tuple(made)


def _level(name: str, encoded: str | None) -> str | None:
    """What an encoded column is called without the name of the one that it is of."""
    if encoded is None or not encoded.startswith(name):
        return encoded
    rest = encoded.removeprefix(name)
    return (rest.removeprefix(" = ") if rest.startswith(" = ") else rest.removeprefix(" (").removesuffix(")")) or None
