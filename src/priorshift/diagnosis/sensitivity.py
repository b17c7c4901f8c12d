"""What an estimate is sensitive to: the source prior, choices, single rows and columns, violations of label shift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.diagnosis.conclusion import Conclusion, conclusion
from priorshift.diagnosis.left_out import without_columns, without_rows
from priorshift.diagnosis.subsample import Thinned
from priorshift.diagnosis.variants import Reading, Variant, over_bandwidths, over_scores
from priorshift.diagnosis.violation import Move, ShiftedRows, Violation, leading_columns, violation
from priorshift.errors import InputError
from priorshift.formatting import TextReport, decimals, format_short
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import PriorKnowledge
from priorshift.problem import Source, Target
from priorshift.result_tables import align_columns, to_plain
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.witness import Witness
from priorshift.threads import one_blas_thread

_PRIORS = np.array([0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


@dataclass(frozen=True)
class AssumedPrior:
    """π̂′ and its interval, were π this one.

    Attributes
    ----------
    source_prior : float
        π.
    value, low, high : float
        π̂′ and its interval.
    """

    source_prior: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Sensitivity(TextReport):
    """What an estimate is sensitive to.

    Attributes
    ----------
    conclusion : Conclusion
        What would have to change.
    source_priors : tuple of AssumedPrior
        π′ = 1 − (1−π)R over assumed π.
    turning_prior : float or None
        The π at which the estimate lies at the threshold; None where no π does it, as without a threshold: on which
        side of π the target lies does not depend on π.
    sure_priors : tuple of two float or None
        The π between which the interval holds the threshold; below and above the conclusion is sure.
    bandwidths : tuple of Variant
        R by projection with other bandwidths, the default first, on `kernel_rows` of each sample.
    scores : tuple of Variant
        The estimate itself first, and with a linear score.
    rows : tuple of Variant
        Without the rows that it rests on most, all rows first.
    columns : tuple of Variant
        By projection, on the same rows as `bandwidths`, without each of at most ten columns that the score rests on
        most; all columns first.
    violation : Violation
        How large a violation of label shift changes the conclusion.
    kernel_rows : tuple of three int
        Rows of P, U and T that projections used.
    reasons : tuple of str
        Why something is missing, in sentences.
    """

    conclusion: Conclusion
    source_priors: tuple[AssumedPrior, ...]
    turning_prior: float | None
    sure_priors: tuple[float, float] | None
    bandwidths: tuple[Variant, ...]
    scores: tuple[Variant, ...]
    rows: tuple[Variant, ...]
    columns: tuple[Variant, ...]
    violation: Violation
    kernel_rows: tuple[int, int, int]
    reasons: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[Variant, ...]:  # numpydoc ignore=RT01
        """All estimates with one thing changed, without those that they are compared with."""
        return tuple(v for kind in (self.bandwidths, self.scores, self.rows, self.columns) for v in kind[1:])

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and text, ready for JSON.

        Returns
        -------
        dict
        """
        kinds = {"bandwidths": self.bandwidths, "scores": self.scores, "rows": self.rows, "columns": self.columns}
        return {
            "conclusion": self.conclusion.to_dict(),
            "source_priors": [to_plain(vars(point)) for point in self.source_priors],
            "turning_prior": self.turning_prior,
            "sure_priors": None if self.sure_priors is None else list(self.sure_priors),
            **{name: [variant.to_dict() for variant in kind] for name, kind in kinds.items()},
            "violation": self.violation.to_dict(),
            "kernel_rows": list(self.kernel_rows),
            "reasons": list(self.reasons),
        }

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        lines = [_sentence(str(self.conclusion))]
        if self.turning_prior is not None:
            threshold = f"{self.conclusion.threshold:g}"
            lines.append(f"The estimate would lie at {threshold} if the source prior were {self.turning_prior:.3g}.")
        lines += _violation_lines(self.violation)
        digits = decimals(self.conclusion.high - self.conclusion.low)
        for kind, what in (
            (self.scores, "With a linear score"),
            (self.rows, "Without its most influential rows"),
            (self.bandwidths, "By projection with other bandwidths"),
            (self.columns, "By projection without a column"),
        ):
            values = [variant.value for variant in kind[1:] if np.isfinite(variant.value)]
            if values:
                run = [min(values), max(values)] if len(values) > 1 else values
                ends = " to ".join(f"{end:.{digits}f}" for end in run)
                lines.append(f"{what} the target prior is {ends}, in place of {kind[0].value:.{digits}f}.")
        clear = [variant.name for variant in self.variants if variant.is_clear]
        if clear:
            lines.append(f"More than chance, so that label shift may not hold: {', '.join(clear)}.")
        return "\n".join([*lines, *self.reasons])

    def table(self) -> str:
        """Write all estimates with one thing changed.

        Returns
        -------
        str
            A line for each; the first of its kind is what others of the kind are compared with.
        """
        kinds = (self.scores, self.rows, self.bandwidths, self.columns)
        rows = [variant.cells() for kind in kinds for variant in kind]
        return align_columns(("", "target prior", "interval", "moved by"), rows)


def sensitivity(
    source: Source,
    target: Target,
    witness: Witness,
    values: Floats,
    test: RatioTest,
    curve: TabulatedCurve,
    prior: PriorKnowledge,
    *,
    source_prior: float | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Sensitivity:
    """Measure what an estimate is sensitive to.

    Parameters
    ----------
    source : Source
        With its rows.
    target : Target
        T.
    witness : Witness
        That tested it.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    test : RatioTest
        Of every ratio.
    curve : TabulatedCurve
        Of the test.
    prior : Known, Between or Distributed
        What is known of π.
    source_prior : float or None
        The π that the estimate uses; None is that of `prior`.
    threshold : float or None
        A target prior that matters; None asks on which side of the source prior the target's lies.
    confidence : float
        Of all intervals.
    rng : Generator
        Draws rows where there are many, and folds.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift import WitnessShift, simulate
    >>> from priorshift.inference.confidence_curve import TabulatedCurve
    >>> from priorshift.diagnosis.sensitivity import sensitivity
    >>> from priorshift.problem import Source
    >>> from priorshift.inference.prior_knowledge import PointPrior
    >>> from priorshift.scores.scored_source import ScoredSource
    >>> from priorshift.scores.witness import Witness
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> source = Source.read(s.X, s.y, s.ids, scenario="case-control", standardize=True)
    >>> target, rng = source.layout.read(s.target), np.random.default_rng(0)
    >>> scored = ScoredSource.fit(source, None, repeats=5, folds=5, rng=rng)
    >>> witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    >>> values = scored.target_p_values(target)
    >>> test = witness.test(values, target)
    >>> curve = TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)
    >>> found = sensitivity(source, target, witness, values, test, curve, PointPrior(0.2), threshold=0.55, rng=rng)
    >>> print(found.conclusion)
    the target prior lies above 0.55
    >>> print(round(found.turning_prior, 1))  # 1 − 0.45/R̂
    0.1
    """
    found = conclusion(test.ratio, curve, prior, source_prior=source_prior, threshold=threshold, confidence=confidence)
    reading = Reading(prior, found.source_prior, confidence)
    reasons: list[str] = []
    turning, sure = _turning(found, curve)
    with one_blas_thread():
        thinned = None
        try:
            thinned = Thinned.of(source, target, rng)
        except InputError as error:
            reasons.append(f"No kernel was used: {error}")
        shifted = ShiftedRows.of(source, target, witness, values)
        columns = leading_columns(source, shifted, test.ratio) if np.isfinite(test.ratio) else ()
        if not np.isfinite(test.ratio):
            reasons.append("There is no estimate of the ratio of negatives, so nothing could be left out or shifted.")
        bandwidths = over_bandwidths(thinned, reading) if thinned is not None else ()
        without = [(column.name, column.numbers) for column in columns]
        return Sensitivity(
            conclusion=found,
            source_priors=_over_priors(curve, found),
            turning_prior=turning,
            sure_priors=sure,
            bandwidths=bandwidths,
            scores=over_scores(source, target, witness, values, test, curve, reading, rng),
            rows=without_rows(target, witness, values, test, curve, reading),
            columns=without_columns(thinned, without, reading) if thinned is not None else (),
            violation=violation(found, shifted, thinned, columns),
            kernel_rows=thinned.sizes if thinned is not None else (0, 0, 0),
            reasons=tuple(reasons),
        )


def _over_priors(curve: TabulatedCurve, found: Conclusion) -> tuple[AssumedPrior, ...]:
    """At the π in use and at others."""
    if not np.isfinite(found.ratio):
        return ()
    priors = np.unique(np.append(_PRIORS, found.source_prior))
    return tuple(
        AssumedPrior(float(pi), curve.mean(float(pi)), *curve.interval(float(pi), found.confidence)) for pi in priors
    )


def _turning(found: Conclusion, curve: TabulatedCurve) -> tuple[float | None, tuple[float, float] | None]:
    """π = 1 − (1−t)/R at R̂, and at the ends of the interval of R, as far as they lie in [0, 1]."""
    t, R = found.threshold, found.ratio
    if t is None or not np.isfinite(R):
        return None, None
    low, high = curve.quantiles(found.confidence)
    ends = [1 - (1 - t) / end if end > 0 else -np.inf for end in (low, high)]
    at = 1 - (1 - t) / R if R > 0 else -np.inf
    within = max(min(ends), 0.0), min(max(ends), 1.0)
    return (float(at) if 0 <= at <= 1 else None), (within if within[0] < within[1] else None)


def _violation_lines(found: Violation) -> list[str]:
    lines = []
    moves: tuple[tuple[Move | None, str], ...] = (
        (found.to_doubt, "The conclusion would be open"),
        (found.to_turn, "The estimate would lie on the other side"),
        (found.half_width, "The estimate would move by half the width of its interval"),
    )
    for move, what in moves:
        if move is None:
            continue
        ways = []
        if np.isfinite(move.distance):
            share = move.distance / found.class_distance
            ways.append(f"lay {move.distance:.2g} off in kernel distance ({share:.1%} of that of the classes)")
        if np.isfinite(move.shift):
            ways.append(f"were shifted by {move.shift:.2g} standard deviations")
        if ways:
            lines.append(f"{what} if the target's rows {' or '.join(ways)}.")
    if found.columns and np.isfinite(found.columns[0].deviations):
        first = found.columns[0]
        off = format_short(first.deviations, 2, "+")
        lines.append(f"For the first of these, {first.column} alone would have to be off by {off} standard deviations.")
    return lines


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
