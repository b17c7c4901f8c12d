"""The estimate without the rows and without the columns that it rests on most.

Rows go by observations: those of P with what they share with U, those that are in U alone, and those of T. The scores
stay as they are, and everything after them is done again: ranks among the positives that are left, and the test.
Ranks need no scores. A p-value is a rising function of the score, ties included, so that rows are ranked by their
p-values among those of the positives as well.

A column is left out of the kernel's distance, which is cheaper than scores without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.subsample import Thinned
from priorshift.diagnosis.variants import Reading, Variant
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.mixture import p_values
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

_SHARE = 0.01  # of the observations of a sample, besides the single one
_LEAST = 2  # observations that must be left


def without_rows(
    target: Target, witness: Witness, values: Floats, test: RatioTest, curve: TabulatedCurve, reading: Reading
) -> tuple[Variant, ...]:
    """Leave out the observation that moves R̂ most, and the 1% that do, of P, of U and of T.

    Parameters
    ----------
    target : Target
        T.
    witness : Witness
        That tested it.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    test : RatioTest
        R̂.
    curve : TabulatedCurve
        Of the test.
    reading : Reading
        How π̂′ follows.

    Returns
    -------
    tuple of Variant
        The estimate as it is comes first.
    """
    whole = reading.variant("all rows", test.ratio, curve)
    if not np.isfinite(test.ratio):
        return (whole,)
    moved = witness.influence(test.ratio, values, target)
    of_target = np.bincount(target.observation, moved.target)
    observation = witness.source.observation
    labeled = np.zeros(len(moved.source), dtype=bool)
    labeled[observation[witness.source.positive]] = True
    samples = (
        ("positive", np.flatnonzero(labeled), moved.source),
        ("unlabelled", np.flatnonzero(~labeled), moved.source),
        ("target", np.flatnonzero(np.bincount(target.observation, target.of_source < 0) > 0), of_target),
    )
    variants = [whole]
    for name, numbers, influence in samples:
        order = numbers[np.argsort(-np.abs(influence[numbers]), kind="stable")]
        for count in sorted({1, ceil(_SHARE * len(order))}):
            if len(order) - count < _LEAST:
                continue
            out = order[:count]
            none = np.empty(0, dtype=np.intp)
            found = retested(witness, values, target, *((none, out) if name == "target" else (out, none)))
            what = f"without the {count} most influential {name} rows" if count > 1 else f"without one {name} row"
            if found is None or not np.isfinite(found.ratio):
                variants.append(reading.nothing(what))
                continue
            of_found = TabulatedCurve.from_tests(found.ratios, found.statistic, found.freedom)
            variants.append(reading.variant(what, found.ratio, of_found, whole))
    return tuple(variants)


def retested(witness: Witness, values: Floats, target: Target, of_source: Index, of_target: Index) -> RatioTest | None:
    """Test every ratio without some observations, with the scores as they are.

    Parameters
    ----------
    witness : Witness
        Of all rows.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    target : Target
        T.
    of_source, of_target : ndarray of int
        Observations that are left out; what rows of the target belong to one of the source go with it.

    Returns
    -------
    RatioTest or None
        None where a sample has too few rows left.
    """
    source, scored = witness.source, witness.scored
    stay = ~np.isin(source.observation, of_source)
    stay_T = ~(np.isin(target.observation, of_target) | np.isin(target.of_source, of_source))
    in_P, in_U = stay[source.positive], stay[source.population]
    enough = (source.observation[source.positive[in_P]], source.observation[source.population[in_U]])
    if any(len(np.unique(left)) < _LEAST for left in (*enough, target.observation[stay_T])):
        return None
    kept, kept_T = _source(source, stay), _target(target, stay_T, source, stay)
    own = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
    (m, n), mass = kept.effective_sizes, None if scored.positive_mass is None else kept.positive_mass
    of_U = np.stack([p_values(p[in_P], u[in_U], mass, m) for p, u in zip(own, scored.p_values, strict=True)])
    of_T = np.stack([p_values(p[in_P], v[stay_T], mass, m) for p, v in zip(own, values, strict=True)])
    repetitions = tuple(
        replace(r, positive=r.positive[in_P], population=r.population[in_U]) for r in scored.repetitions
    )
    counts = np.stack([mixture.histogram(v, n * kept.population_mass) for v in of_U])
    less = ScoredSource(scored.prepare, repetitions, of_U, counts, kept.sizes, scored.seed, mass, m, scored.spread)
    return Witness.from_scores(less, kept, *scored.mixture).test(of_T, kept_T)


def _source(source: Source, stay: Mask) -> Source:
    """Without the observations that do not stay; its rows are not needed."""
    number = np.cumsum(stay) - 1
    in_P, in_U = stay[source.positive], stay[source.population]
    shared = source.shared[in_P[source.shared[:, 0]] & in_U[source.shared[:, 1]]]
    at_P, at_U = np.cumsum(in_P) - 1, np.cumsum(in_U) - 1
    return replace(
        source,
        labeled=source.labeled[stay],
        positive=number[source.positive[in_P]],
        population=number[source.population[in_U]],
        shared=np.stack([at_P[shared[:, 0]], at_U[shared[:, 1]]], axis=1),
        weights=None if source.weights is None else source.weights[stay],
        groups=None if source.groups is None else source.groups[stay],
        observation=np.unique(source.observation[stay], return_inverse=True)[1].reshape(-1),
        copies=source.copies[stay],
    )


def _target(target: Target, stay: Mask, source: Source, stay_source: Mask) -> Target:
    number = np.full(int(source.observation.max()) + 2, -1)  # the last is that of rows without one
    left = np.unique(source.observation[stay_source])
    number[left] = np.arange(len(left))
    return replace(
        target,
        rows=replace(target.rows, index=np.flatnonzero(stay)),
        weights=None if target.weights is None else target.weights[stay],
        observation=np.unique(target.observation[stay], return_inverse=True)[1].reshape(-1),
        of_source=number[target.of_source[stay]],
        copies=target.copies[stay],
        groups=None if target.groups is None else target.groups[stay],
        audit=None,
    )


def without_columns(thinned: Thinned, columns: Sequence[tuple[str, Index]], reading: Reading) -> tuple[Variant, ...]:
    """Leave out one column at a time, of R by projection.

    Parameters
    ----------
    thinned : Thinned
        Rows of the three samples.
    columns : sequence of pairs
        Names, and the numbers of the columns that each was encoded by.
    reading : Reading
        How π̂′ follows.

    Returns
    -------
    tuple of Variant
        The projection with all columns comes first; nothing where there is only one column.
    """
    whole = thinned.whole
    if whole is None or thinned.features < 2:
        return ()
    variants = [reading.variant("all columns", whole.ratio, whole.curve)]
    for name, numbers in columns:
        made = thinned.project(without=numbers)
        what = f"without {name}"
        if made is None:
            variants.append(reading.nothing(what))
        else:
            moved = made.influence - whole.influence
            variants.append(reading.variant(what, made.ratio, made.curve, variants[0], moved))
    return tuple(variants)
