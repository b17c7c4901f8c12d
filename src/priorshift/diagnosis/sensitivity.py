"""What an estimate is sensitive to: the source prior, choices, single rows and columns, violations of label shift."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from priorshift.diagnosis.columns import leading_columns
from priorshift.diagnosis.parts import DiagnosisInput, TextReport
from priorshift.diagnosis.variants import (
    Subsample,
    Variant,
    bandwidth_variants,
    column_variants,
    row_variants,
    score_variants,
)
from priorshift.diagnosis.violation import Conclusion, ShiftedRows, Violation, conclude, violation
from priorshift.errors import InputError
from priorshift.formatting import decimals, format_short
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.result_tables import align_columns, to_plain
from priorshift.threads import one_blas_thread

_ASSUMED_PRIORS = np.array([0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


@dataclass(frozen=True)
class AssumedPrior:
    """π̂′ and its interval if π were this."""

    source_prior: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Sensitivity(TextReport):
    """What an estimate is sensitive to."""

    conclusion: Conclusion
    source_priors: tuple[AssumedPrior, ...]  # π′ = 1 − (1−π)R over assumed π
    turning_prior: float | None  # π that moves the estimate to the threshold; None without a threshold
    sure_priors: tuple[float, float] | None  # range of π in which the interval contains the threshold
    bandwidths: tuple[Variant, ...]  # R by projection with other bandwidths, the default first
    scores: tuple[Variant, ...]  # the estimate itself first, and with a linear score
    rows: tuple[Variant, ...]  # without the most influential rows, all rows first
    columns: tuple[Variant, ...]  # R by projection without each of at most ten leading columns, all columns first
    violation: Violation
    kernel_rows: tuple[int, int, int]  # rows of P, U and T that projections used
    reasons: tuple[str, ...] = ()  # why something is missing

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All estimates with one thing changed, without those that they are compared with."""
        return tuple(v for kind in (self.bandwidths, self.scores, self.rows, self.columns) for v in kind[1:])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return to_plain(asdict(self)) | {"conclusion": self.conclusion.to_dict()}

    @property
    def text(self) -> str:
        """The sentences of this part, one line each, not wrap_lines."""
        lines = [str(self.conclusion)]
        if self.turning_prior is not None:
            threshold = f"{self.conclusion.threshold:g}"
            lines.append(f"The estimate would be {threshold} if the source prior were {self.turning_prior:.3g}.")
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
                ends = [min(values), max(values)] if len(values) > 1 else values
                between = " to ".join(f"{end:.{digits}f}" for end in ends)
                lines.append(f"{what} the target prior is {between} instead of {kind[0].value:.{digits}f}.")
        clear = [variant.name for variant in self.variants if variant.is_clear]
        if clear:
            lines.append(f"These differ by more than chance, so label shift may not hold: {', '.join(clear)}.")
        return "\n".join([*lines, *self.reasons])

    def table(self) -> str:
        """Return a table of all variants; each kind starts with the estimate that it is compared with."""
        kinds = (self.scores, self.rows, self.bandwidths, self.columns)
        rows = [variant.cells() for kind in kinds for variant in kind]
        return align_columns(("", "target prior", "interval", "moved by"), rows)


def sensitivity(inputs: DiagnosisInput) -> Sensitivity:
    """Measure what an estimate is sensitive to."""
    conclusion, curve, ratio = conclude(inputs), inputs.fit.curve, inputs.ratio
    reasons: list[str] = []
    turning, sure = _turning_priors(conclusion, curve)
    with one_blas_thread():
        subsample = None
        try:
            subsample = Subsample.draw(inputs)
        except InputError as error:
            reasons.append(f"Nothing was computed by a kernel: {error}")
        shifted = ShiftedRows.choose(inputs)
        columns = leading_columns(inputs.source, shifted.slopes(max(ratio, 0.0))) if np.isfinite(ratio) else ()
        if not np.isfinite(ratio):
            reasons.append("There is no estimate of the ratio of negatives, so nothing could be left out or shifted.")
        return Sensitivity(
            conclusion=conclusion,
            source_priors=_assumed_priors(conclusion, curve),
            turning_prior=turning,
            sure_priors=sure,
            bandwidths=bandwidth_variants(inputs, subsample) if subsample is not None else (),
            scores=score_variants(inputs),
            rows=row_variants(inputs),
            columns=column_variants(inputs, subsample, columns) if subsample is not None else (),
            violation=violation(conclusion, shifted, subsample, columns),
            kernel_rows=subsample.sizes if subsample is not None else (0, 0, 0),
            reasons=tuple(reasons),
        )


def _assumed_priors(conclusion: Conclusion, curve: TabulatedCurve) -> tuple[AssumedPrior, ...]:
    """Return the estimate at the source prior in use and at others."""
    if not np.isfinite(conclusion.ratio):
        return ()
    priors = np.unique(np.append(_ASSUMED_PRIORS, conclusion.source_prior))
    return tuple(
        AssumedPrior(float(pi), curve.mean(float(pi)), *curve.interval(float(pi), conclusion.confidence))
        for pi in priors
    )


def _turning_priors(conclusion: Conclusion, curve: TabulatedCurve) -> tuple[float | None, tuple[float, float] | None]:
    """Return π = 1 − (1−t)/R at R̂, and at the ends of the interval of R, as far as they are in [0, 1]."""
    t, R = conclusion.threshold, conclusion.ratio
    if t is None or not np.isfinite(R):
        return None, None
    ends = [1 - (1 - t) / end if end > 0 else -np.inf for end in curve.quantiles(conclusion.confidence)]
    turning = 1 - (1 - t) / R if R > 0 else -np.inf
    within = max(min(ends), 0.0), min(max(ends), 1.0)
    return (float(turning) if 0 <= turning <= 1 else None), (within if within[0] < within[1] else None)


def _violation_lines(violation: Violation) -> list[str]:
    lines = []
    for move, consequence in (
        (violation.to_doubt, "The conclusion would be open"),
        (violation.to_turn, "The estimate would be on the other side"),
        (violation.half_width, "The estimate would move by half the width of its interval"),
    ):
        if move is None:
            continue
        ways = []
        if np.isfinite(move.distance):
            share = move.distance / violation.class_distance
            ways.append(f"drifted by a kernel distance of {move.distance:.2g} ({share:.1%} of that of the classes)")
        if np.isfinite(move.shift):
            ways.append(f"were shifted by {move.shift:.2g} standard deviations")
        if ways:
            lines.append(f"{consequence} if the target's rows {' or '.join(ways)}.")
    if violation.columns and np.isfinite(violation.columns[0].deviations):
        first = violation.columns[0]
        deviations = format_short(first.deviations, 2, "+")
        lines.append(f"The first of these needs a shift of {first.column} alone by {deviations} standard deviations.")
    return lines
