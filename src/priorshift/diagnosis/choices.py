"""The estimate with other bandwidths and with another score: what a user could have chosen as well."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeClassifier

from priorshift.arrays import Floats
from priorshift.confidence_curve import TabulatedCurve
from priorshift.diagnosis.thinned import Thinned
from priorshift.diagnosis.variant import Reading, Variant
from priorshift.input.source import Source, Target
from priorshift.scores.scored import ScoredSource
from priorshift.scores.tested_ratios import RatioTest
from priorshift.scores.witness import Witness

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
    scored = ScoredSource.of(source, model, _REPEATS, _FOLDS, rng)
    linear = Witness.of(scored, source.without_rows(), *scored.mixture)
    of_linear = scored.target_p_values(target)
    found = linear.test(of_linear, target)
    name = "a linear score"
    if not np.isfinite(found.ratio):
        return own, reading.nothing(name)
    moved = linear.influence(found.ratio, of_linear, target)
    before = witness.influence(test.ratio, values, target)
    by_row = np.bincount(target.observation, moved.target - before.target)
    of_curve = TabulatedCurve.of(found.ratios, found.statistic, found.freedom)
    influence = np.concatenate([moved.source - before.source, by_row])
    return own, reading.variant(name, found.ratio, of_curve, own, influence)
