"""What an estimate is sensitive to: the source prior, choices, rows and columns, label shift, how rows were labelled.

R = (q−π′)/(q−π), with q the share of positives among the labelled rows, is below 1 where π′ is above π. The conclusion
is on which side of a threshold the target prior is or, without one, on which side of π; it is open where the interval
contains both sides.

Label shift puts μ_T on the line through μ_P and μ_U: μ_T = μ_P + R(μ_U − μ_P). A violation δ of it, which moves μ_T,
moves the projection R̂ by ⟨a, δ⟩/‖a‖² with a = μ_U − μ_P, at most by ‖δ‖/‖a‖ (the witness is about as sensitive). So no
violation smaller than |ΔR|·‖a‖ moves R̂ by ΔR, and one of this size along a does. In shares of positives, since
‖a‖ = (q−π)‖μ₊ − μ₋‖, that is |Δπ′| of the distance of the two classes.

A violation that one can picture is a shift of the target's rows by s standard deviations of U in a direction u. R̂
reaches r where E_T h_r(x + su) = r·E_U h_r, so s is the root of one function of fixed rows. u is the direction of the
regression of h on the columns, which for normal columns is the gradient of E_T h (Stein 1981); it directs the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from priorshift.arrays import Floats
from priorshift.diagnosis.columns import CLIP, FIT_ROWS, Column, leading_columns, mean_over_repeats, regression
from priorshift.diagnosis.identification import DiagnosisInput, TextReport
from priorshift.diagnosis.labeling import Labeling, labeling
from priorshift.diagnosis.variants import (
    MOST_ROWS,
    Subsample,
    Variant,
    projection_variants,
    row_variants,
    score_variants,
)
from priorshift.errors import InputError
from priorshift.formatting import decimals, format_fixed, format_percent, format_short
from priorshift.inference.confidence_curve import prior_from_ratio
from priorshift.inference.prior_knowledge import MislabeledPrior, PosteriorPrior, with_label_error
from priorshift.io.parameters import is_number
from priorshift.problem import Target
from priorshift.result_tables import align_columns, to_plain
from priorshift.scores import mixture
from priorshift.threads import one_blas_thread

_ASSUMED_PRIORS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_LARGEST_SHIFT = 4.0  # standard deviations
_SEARCH_ROWS = 400  # target rows that are shifted in the search for a root
_STEPS = 12  # largest number of steps of a search
_TOLERANCE = 0.02  # share of the wanted change at which the search ends
_NAN = float("nan")
_ASSUMED_LABEL_ERROR = 0.05
_DERIVED = (
    "ratio_interval",
    "half_width",
    "to_turn",
    "to_doubt",
    "purity",
)  # fields of a conclusion that JSON leaves out
Side = Literal["above", "below", "open"]


@dataclass(frozen=True)
class Conclusion:
    """On which side of a threshold, or of the source prior, the target prior is."""

    threshold: float | None  # None is the source prior
    side: Side  # of π′; open where the interval contains both sides
    ratio: float  # R̂
    critical: float  # the ratio at which the conclusion turns: 1, or (q−t)/(q−π)
    value: float  # π̂′
    low: float
    high: float
    source_prior: float
    confidence: float
    ratio_interval: tuple[float, float]  # of R; with a threshold, that of (q−π′)/(q−π) at the π in use
    half_width: float  # half of the interval's width, as a difference of R
    to_turn: float | None  # change of R̂ that moves the estimate to `critical`; None where there is nothing to turn
    to_doubt: float | None  # change of R̂ that moves the interval to `critical`; None where the conclusion is open
    purity: float = 1.0  # q in use, the share of positives among the labelled rows

    def __str__(self) -> str:
        """Return the conclusion as a sentence."""
        compared = "the source prior" if self.threshold is None else f"{self.threshold:g}"
        if self.side == "open":
            return f"It is open whether the target prior is above or below {compared}."
        return f"The target prior is {self.side} {compared}."


def conclude(inputs: DiagnosisInput) -> Conclusion:
    """Conclude on which side of the threshold, or of the source prior, the target prior is.

    A target prior of t is R = (q−t)/(q−π), that of π is R = 1, and a smaller R is a larger target prior. With an audit
    of the target its interval decides, which holds whether label shift holds or not; ratios are those of the tables.
    """
    R, threshold, pi, q = inputs.ratio, inputs.threshold, inputs.fit.estimate.source_prior, inputs.purity
    value, low, high = inputs.target_prior(R, inputs.fit.test.curve)
    if threshold is None:
        critical, (ratio_low, ratio_high) = 1.0, inputs.fit.test.curve.quantiles(inputs.confidence)
    else:
        factor = max(q - pi, 1e-12)
        critical, ratio_low, ratio_high = (q - threshold) / factor, (q - high) / factor, (q - low) / factor
    side: Side = "open"
    to_turn = to_doubt = None
    if np.isfinite(R) and ratio_high < critical:
        side, to_doubt = "above", critical - ratio_high
    elif np.isfinite(R) and ratio_low > critical:
        side, to_doubt = "below", critical - ratio_low
    if np.isfinite(R) and (threshold is not None or side != "open"):
        to_turn = critical - R
    half_width, estimate = (high - low) / 2 / (q - pi), inputs.fit.estimate  # of the tables, also with an audit
    if inputs.fit.target.audit is not None and estimate.interval is not None:
        value, low, high = estimate.value, estimate.interval.low, estimate.interval.high
        least, most = inputs.fit.prior.range if threshold is None else (threshold, threshold)
        side = "above" if low > most else "below" if high < least else "open"
        to_turn = to_doubt = None  # no violation of label shift changes it
    return Conclusion(
        threshold=threshold, side=side, ratio=R, critical=critical, value=value, low=low, high=high, source_prior=pi,
        confidence=inputs.confidence, ratio_interval=(ratio_low, ratio_high), half_width=half_width,
        to_turn=to_turn, to_doubt=to_doubt, purity=q,
    )  # fmt: skip


def check_threshold(threshold: float | None) -> None:
    """Raise InputError for a threshold that is not strictly between 0 and 1."""
    if threshold is not None and not (is_number(threshold) and 0 < threshold < 1):
        raise InputError(
            f"threshold is {threshold!r}, but must be a number strictly between 0 and 1. Pass a target prior that "
            "matters, or None to compare with the source prior."
        )


@dataclass(frozen=True)
class ColumnMove:
    """A shift of one column alone that changes R̂ as much as the decisive violation."""

    column: str
    deviations: float  # standard deviations of U; NaN where 4 are not enough


@dataclass(frozen=True)
class Move:
    """A violation that changes R̂ by a given amount."""

    ratio: float  # the change of R̂, with its sign
    distance: float  # ‖δ‖, the smallest kernel distance; NaN where the kernel does not separate P from U
    shift: float  # standard deviations that the target's rows move, in the best direction; NaN where 4 are not enough
    shift_distance: float  # the kernel distance of that shift
    reached: float  # the change of R̂ if all rows are shifted so; NaN except for the decisive move


@dataclass(frozen=True)
class Violation:
    """How large a violation of label shift changes the conclusion."""

    to_turn: Move | None  # moves the estimate to the other side; None where no side was concluded
    to_doubt: Move | None  # moves the end of the interval there; None where the conclusion is open already
    half_width: Move | None  # moves π̂′ by half the width of its interval; None where there is no estimate
    columns: tuple[ColumnMove, ...]  # shifts of single columns, the smallest first; categories are not shifted
    class_distance: float  # ‖μ₊ − μ₋‖ = ‖μ_U − μ_P‖/(q−π), the kernel distance of the classes

    @property
    def decisive(self) -> Move | None:
        """The first of `to_doubt`, `to_turn` and `half_width` that exists."""
        return self.to_doubt or self.to_turn or self.half_width


@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """The target with shifted rows, to see how a shift changes the mean E_T h of the witness function, and R̂."""

    inputs: DiagnosisInput
    spread: Floats  # standard deviation of each scaled column in U; 0 where it is not used or a category's
    search_rows: Target  # target rows of equal mass that a search shifts

    @classmethod
    def choose(cls, inputs: DiagnosisInput) -> ShiftedRows:
        """Choose the target rows that a search shifts, and compute the spread of the scaled columns in U."""
        source, target = inputs.source, inputs.fit.target
        rows = source.population[:: max(1, len(source.population) // FIT_ROWS)]
        spread = np.asarray(source.rows[rows].std(axis=0))
        if source.table.origin is not None:  # levels of categories, which have their own scale, are not shifted
            spread = np.where(source.table.origin.own_scale, 0.0, spread)
        # rows in even steps of cumulative mass, sorted by p-value, so that all count the same
        order = np.argsort(inputs.fit.p_values.mean(axis=0), kind="stable")
        cumulative = np.cumsum(target.mass[order])
        count = min(len(target), _SEARCH_ROWS)
        positions = np.searchsorted(cumulative, (np.arange(count) + 0.5) / count)
        taken = order[np.minimum(positions, len(order) - 1)]
        search_rows = replace(
            target, rows=replace(target.rows, index=taken), weights=None, groups=None, audit=None,
            observation=np.arange(count), source_observation=target.source_observation[taken],
            copies=np.ones(count, dtype=np.intp),
        )  # fmt: skip
        return cls(inputs, spread, search_rows)

    def slopes(self, ratio: float) -> Floats:
        """Return how much E_T h changes if an encoded column is shifted by a standard deviation, for each column.

        h is the witness function of `ratio`. The slopes are those of its regression on the columns in the target's
        rows, which for normal columns are the derivatives of E_T h (Stein 1981).
        """
        target, fit = self.inputs.fit.target, self.inputs.fit
        h_by_bin = fit.witness.function(np.array([ratio]), target.size)[:, 0]
        h = mean_over_repeats(h_by_bin, mixture.bins(fit.p_values))
        step = max(1, len(h) // FIT_ROWS)
        spread = np.where(self.spread > 0, self.spread, 1.0)
        X = np.clip(target.rows[np.arange(0, len(h), step)] / spread, -CLIP, CLIP)
        return regression(X, h[::step], target.mass[::step] / target.mass[::step].sum())

    def root(self, ratio: float, change: float, direction: Floats, slope: float) -> float:
        """Return the shift s along `direction`, in standard deviations, that moves R̂ from `ratio` by `change`.

        R̂ is r where E_T h_r = r·E_U h_r, so s solves that equation at r = `ratio` + `change`. `slope` is about the
        derivative of E_T h in s, from which the search starts. NaN where 4 standard deviations are not enough.
        """
        fit, witness, target = self.inputs.fit, self.inputs.fit.witness, self.inputs.fit.target
        r = max(ratio + change, 0.0)
        h = witness.function(np.array([r]), target.size)[:, 0]  # shape (repeats, bins)
        mean_U = float(mean_over_repeats(h, witness.population) @ witness.source.U.mass)  # E_U h
        mean_T = float(mean_over_repeats(h, mixture.bins(fit.p_values)) @ target.mass)  # E_T h
        wanted = r * mean_U - mean_T  # change of E_T h
        if wanted == 0:
            return 0.0
        if not mean_U > 0 or slope == 0:  # also where the mean is NaN
            return _NAN

        def mean_of_h(s: float) -> float:
            """Return the mean of h over the rows of the search, shifted by s standard deviations."""
            bins = mixture.bins(witness.scored.target_p_values(self.moved(self.search_rows, s * direction)))
            return float(self.search_rows.mass @ mean_over_repeats(h, bins))

        start = mean_of_h(0.0)
        root = _NAN
        for first in (wanted / slope, -wanted / slope):  # h need not be monotone, so try both signs
            if not np.isfinite(root):
                root = _find_root(lambda s: 1 - (mean_of_h(s) - start) / wanted, first)
        return root

    def moved(self, target: Target, shift: Floats) -> Target:
        """Return a target with all rows shifted by `shift`, in standard deviations of each encoded column."""
        rows = target.rows  # scaled values are (raw − rows.shift)·rows.factor
        raw_shift = shift * self.spread / np.where(rows.factor != 0, rows.factor, 1.0)
        return replace(target, rows=replace(rows, shift=rows.shift - raw_shift))


def _find_root(missing: Callable[[float], float], start: float) -> float:
    """Return a shift s at which `missing` is 0, on the side of 0 where `start` is; NaN where none is found.

    `missing(s)` is the share of a wanted change that a shift by s leaves to be made, 1 at s = 0. First s grows until it
    is not positive, then regula falsi narrows the bracket from `inside`, where it is positive, to `outside`, where it
    is negative.
    """
    s = float(np.clip(start, -_LARGEST_SHIFT, _LARGEST_SHIFT))
    s = np.copysign(max(abs(s), 1e-6), s)
    inside, positive = 0.0, 1.0
    for _ in range(_STEPS):
        value = missing(s)
        if value <= 0:
            break
        # the largest shift is too small, or the function rises
        if abs(s) >= _LARGEST_SHIFT or (value > 1 + _TOLERANCE and abs(s) > abs(start)):
            return _NAN
        inside, positive = s, value
        factor = min(max(1 / max(1 - value, 0.25), 1.25), 4.0)  # the root of a line through (0, 1) and (s, value)
        s = float(np.clip(s * factor, -_LARGEST_SHIFT, _LARGEST_SHIFT))
    else:  # no sign change
        return _NAN
    outside, negative = s, value
    for _ in range(_STEPS):
        if abs(value) < _TOLERANCE:
            break
        s = inside + (outside - inside) * float(np.clip(positive / (positive - negative), 0.1, 0.9))
        value = missing(s)
        if value > 0:
            inside, positive = s, value
        else:
            outside, negative = s, value
    return float(s)


def violation(
    conclusion: Conclusion, shifted: ShiftedRows, subsample: Subsample | None, columns: Sequence[Column]
) -> Violation:
    """Measure how large a violation of label shift changes a conclusion.

    The violation is a shift of the target's rows: in all columns, and in each of `columns` alone. Kernel distances come
    from `subsample`, and are NaN without one.
    """
    length = _NAN if subsample is None or subsample.whole is None else subsample.whole.length  # ‖μ_U − μ_P‖
    class_distance = length / (conclusion.purity - conclusion.source_prior)  # since μ_U − μ_P = (q−π)(μ₋ − μ₊)
    R = conclusion.ratio
    if not np.isfinite(R):
        return Violation(None, None, None, (), class_distance)
    slopes = np.where(shifted.spread > 0, shifted.slopes(max(R, 0.0)), 0.0)
    # half of the interval's width as a change of R̂, towards the ratio at which the conclusion turns
    half_width = -conclusion.half_width if conclusion.critical < R else conclusion.half_width
    moves: dict[str, Move] = {}
    # the order is that of `Violation.decisive`: the first one that exists is decisive, and is checked with all rows
    for name, change in (
        ("to_doubt", conclusion.to_doubt),
        ("to_turn", conclusion.to_turn),
        ("half_width", half_width),
    ):
        if change is not None:
            moves[name] = _measure_move(R, change, shifted, slopes, subsample, length, check=not moves)
    decisive_change = next(iter(moves.values())).ratio
    column_moves = _shift_columns(R, decisive_change, shifted, slopes, columns)
    return Violation(moves.get("to_turn"), moves.get("to_doubt"), moves["half_width"], column_moves, class_distance)


def _measure_move(
    R: float,
    change: float,
    shifted: ShiftedRows,
    slopes: Floats,
    subsample: Subsample | None,
    length: float,
    *,
    check: bool,
) -> Move:
    """Return the shift of all rows that changes R̂ from R by `change`, in the direction of the `slopes` of E_T h.

    In that direction E_T h changes fastest. `length` is ‖μ_U − μ_P‖: a target whose kernel mean differs by δ from that
    under label shift changes R̂ by at most ‖δ‖/`length`. If `check`, R̂ is also computed with all rows shifted.
    """
    steepest = float(np.linalg.norm(slopes))
    deviations = shifted.root(R, change, slopes / steepest, steepest) if steepest > 0 else _NAN
    shift_distance = reached = _NAN
    if np.isfinite(deviations):
        shift = deviations * slopes / steepest  # of each encoded column, in standard deviations
        if subsample is not None:
            shift_distance = subsample.moved_distance(shift * shifted.spread)
        if check:
            target, witness = shifted.moved(shifted.inputs.fit.target, shift), shifted.inputs.fit.witness
            least = shifted.inputs.fit.prior.least_ratio
            reached = witness.test(witness.scored.target_p_values(target), target, least).ratio - R
    return Move(
        ratio=change,
        distance=abs(change) * length,
        shift=abs(deviations),
        shift_distance=shift_distance,
        reached=reached,
    )


def _shift_columns(
    R: float, change: float, shifted: ShiftedRows, slopes: Floats, columns: Sequence[Column]
) -> tuple[ColumnMove, ...]:
    """Return the shift of each column alone that changes R̂ from R by `change`, the smallest shift first."""
    moves = []
    for column in columns:
        encoded = column.encoded[shifted.spread[column.encoded] > 0]
        if len(encoded) == 1:  # a column that was encoded by several has no single shift
            direction = np.zeros_like(slopes)
            direction[encoded] = 1.0
            moves.append(ColumnMove(column.name, shifted.root(R, change, direction, float(slopes[encoded[0]]))))
    return tuple(sorted(moves, key=lambda move: abs(move.deviations) if np.isfinite(move.deviations) else np.inf))


@dataclass(frozen=True)
class AssumedPrior:
    """The estimate π̂′ and its interval under an assumed source prior."""

    source_prior: float  # π
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Sensitivity(TextReport):
    """What an estimate is sensitive to."""

    conclusion: Conclusion
    source_priors: tuple[AssumedPrior, ...]  # π′ = q − (q−π)R over assumed π
    turning_prior: float | None  # π that moves the estimate to the threshold; None without a threshold
    sure_priors: tuple[float, float] | None  # range of π in which the interval contains the threshold
    bandwidths: tuple[Variant, ...]  # R by projection with other bandwidths, the default first
    scores: tuple[Variant, ...]  # the estimate itself first, and with a linear score
    rows: tuple[Variant, ...]  # without the most influential rows, all rows first
    columns: tuple[Variant, ...]  # R by projection without each of at most ten leading columns, all columns first
    violation: Violation
    labeling: Labeling  # if the labelled positives are not a random sample of all positives
    label_errors: tuple[Variant, ...]  # with other label errors, those in use first; empty where there is no estimate
    kernel_rows: tuple[int, ...]  # rows of P, U and T that projections used
    reasons: tuple[str, ...] = ()  # why something is missing

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All estimates with one thing changed, without the references that they are compared with."""
        return (*self.bandwidths[1:], *self.scores[1:], *self.rows[1:], *self.columns[1:])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        conclusion = {name: value for name, value in vars(self.conclusion).items() if name not in _DERIVED}
        return to_plain(asdict(self) | {"conclusion": conclusion})

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        lines, conclusion = [str(self.conclusion)], self.conclusion
        if self.turning_prior is not None:
            prior = f"if the source prior were {self.turning_prior:.3g}"
            lines.append(f"The estimate would be {conclusion.threshold:g} {prior}.")
        lines += [*_violation_lines(self.violation, conclusion), *self.labeling.lines]
        lines += _label_error_lines(self.label_errors)
        digits = decimals(conclusion.high - conclusion.low)
        for kind, sentence in (  # the first of each kind is the reference
            (self.scores, "With a linear score the target prior is {other} instead of {reference}."),
            (self.rows, "Without its most influential rows the target prior is {other} instead of {reference}."),
            (
                self.bandwidths,
                f"A second method, TCPU, gives {{reference}} from at most {MOST_ROWS} rows of each sample, and "
                "{other} with other bandwidths.",
            ),
            (self.columns, "TCPU gives {other} if one column is left out, and {reference} with all of them."),
        ):
            values = [variant.value for variant in kind[1:] if np.isfinite(variant.value)]
            if values:
                between = " to ".join(f"{end:.{digits}f}" for end in sorted({min(values), max(values)}))
                lines.append(sentence.format(other=between, reference=f"{kind[0].value:.{digits}f}"))
        clear = [variant.name for variant in self.variants if variant.is_clear]
        if clear:
            lines.append(f"These differ by more than chance, so label shift may not hold: {', '.join(clear)}.")
        return "\n".join([*lines, *self.reasons])

    def table(self) -> str:
        """Return a table of all variants as text; each kind starts with the reference that it is compared with."""
        rows = []
        for variant in (*self.scores, *self.label_errors[1:], *self.rows, *self.bandwidths, *self.columns):
            cells = "none", "", ""
            if np.isfinite(variant.value):
                error = f" ± {variant.error:.3f}" if np.isfinite(variant.error) else ""
                ends, difference = f"{variant.low:.3f} to {variant.high:.3f}", format_fixed(variant.moved, 3, "+")
                cells = f"{variant.value:.3f}", ends, f"{difference}{error}"
            rows.append((variant.name, *cells))
        return align_columns(("", "target prior", "interval", "moved by"), rows)


def _label_error_lines(variants: Sequence[Variant]) -> list[str]:
    """Return sentences that say what other label errors would change."""
    lines = []
    for variant in variants[1:]:
        digits = decimals(variant.high - variant.low)
        share = variant.name.removesuffix(" label errors")
        condition = (
            "all labelled rows were positive" if share == "no" else f"{share} of the labelled rows were not positive"
        )
        ends = f"{variant.low:.{digits}f} to {variant.high:.{digits}f}"
        lines.append(f"If {condition}, the target prior would be {variant.value:.{digits}f} ({ends}).")
    return lines


def label_error_variants(inputs: DiagnosisInput) -> tuple[Variant, ...]:
    """Return the estimate as it is, and with other label errors: 5%, or none where errors were given.

    R does not depend on them. The variant is left out where the labelled rows would contain a smaller share of
    positives than the source prior.
    """
    fit, curve, R = inputs.fit, inputs.fit.test.curve, inputs.ratio
    error: float | None
    if not np.isfinite(R):
        return ()
    value, low, high = inputs.target_prior(R, curve)
    reference = Variant("the label errors in use", R, value, low, high, 0.0)
    pi = fit.estimate.source_prior
    if isinstance(fit.prior, MislabeledPrior):
        name, error, known, is_relative = "no label errors", None, fit.prior.prior, fit.prior.is_relative
        in_use = pi / fit.prior.purity if is_relative else pi  # an estimate from P and U is of π/(1−ε)
    else:
        error = _ASSUMED_LABEL_ERROR
        name = f"{format_percent(error)} label errors"
        known, is_relative = fit.prior, inputs.prior_is_relative
        in_use = (1 - error) * pi if is_relative else pi
    if is_relative and inputs.mixture is not None:  # whose estimate of π/(1−ε) depends on ε
        errors = 1 - fit.prior.purity, error or 0.0
        now, then = (inputs.mixture.with_label_error(share) for share in errors)
        known, in_use = PosteriorPrior(then.prior_distribution_), in_use * then.prior_ / now.prior_
    try:
        other = with_label_error(known, error, is_relative=is_relative)
    except InputError:
        return (reference,)
    changed = prior_from_ratio(in_use, R, other.purity)
    low, high = other.interval(curve, inputs.confidence)
    return reference, Variant(name, R, changed, min(low, changed), max(high, changed), changed - value)


def _violation_lines(violation: Violation, conclusion: Conclusion) -> list[str]:
    """Return sentences that say how large a violation of label shift changes the conclusion."""
    lines = []
    compared = "the source prior" if conclusion.threshold is None else f"{conclusion.threshold:g}"
    side = "above" if conclusion.value < (conclusion.threshold or conclusion.source_prior) else "below"
    of_decisive = ""  # what the decisive move does
    for move, consequence, of_move in (
        (violation.to_doubt, "This conclusion would become uncertain", "make this conclusion uncertain"),
        (violation.to_turn, f"The estimate would be {side} {compared}", f"move the estimate {side} {compared}"),
        (
            violation.half_width,
            "The estimate would move by half the width of its interval",
            "move the estimate by half the width of its interval",
        ),
    ):
        if move is not None and move is violation.decisive:
            of_decisive = of_move
        ways = []
        if move is not None and np.isfinite(move.distance):
            share = move.distance / violation.class_distance
            moved = f"{share:.1%} of the distance between the classes (a kernel distance of {move.distance:.2g})"
            ways.append(f"the distribution of rows moved by {moved}")
        if move is not None and np.isfinite(move.shift):
            ways.append(f"the rows were shifted by {move.shift:.2g} standard deviations in the worst direction")
        if ways:
            lines.append(f"{consequence} if, in the target, {', or if '.join(ways[::-1])}.")
    if violation.columns and np.isfinite(violation.columns[0].deviations):
        first = violation.columns[0]
        deviations = format_short(first.deviations, 2, "+")
        lines.append(f"A shift of {first.column} alone by {deviations} standard deviations would {of_decisive}.")
    return lines


def sensitivity(inputs: DiagnosisInput) -> Sensitivity:
    """Measure how an estimate depends on the source prior, on choices, rows and columns, and on label shift."""
    conclusion, curve, R, threshold = conclude(inputs), inputs.fit.test.curve, inputs.ratio, inputs.threshold
    reasons, assumed, turning_prior, sure_priors, subsample = [], [], None, None, None
    columns: tuple[Column, ...] = ()
    bandwidth_variants: tuple[Variant, ...] = ()
    column_variants: tuple[Variant, ...] = ()
    with one_blas_thread():
        try:
            subsample = Subsample.draw(inputs)
        except InputError as error:
            reasons.append(f"Nothing was computed by a kernel: {error}")
        shifted = ShiftedRows.choose(inputs)
        if np.isfinite(R):
            columns = leading_columns(inputs.source, shifted.slopes(max(R, 0.0)))
            most = min(q for q, _ in inputs.fit.prior.extremes)  # π must be below the share of positives in P
            for pi in np.unique([*_ASSUMED_PRIORS, conclusion.source_prior]).tolist():
                if pi < most:
                    low, high = inputs.fit.prior.at(pi).interval(curve, inputs.confidence)
                    assumed.append(AssumedPrior(pi, prior_from_ratio(pi, R, inputs.purity), low, high))
        else:
            reasons.append("There is no estimate of the ratio of negatives, so nothing could be left out or shifted.")
        is_audited = inputs.fit.target.audit is not None  # then neither π nor the labelling changes the conclusion
        if np.isfinite(R) and threshold is not None and not is_audited:
            # π′ is the threshold t at π = q − (q−t)/R, for R̂ and for the ends of the interval of R
            ratios, q = [R, *curve.quantiles(inputs.confidence)], inputs.purity
            prior, *ends = [float(q - (q - threshold) / r) if r > 0 else -np.inf for r in ratios]
            turning_prior = prior if 0 <= prior <= 1 else None
            low, high = max(min(ends), 0.0), min(max(ends), 1.0)
            sure_priors = (low, high) if low < high else None
        if subsample is not None:
            bandwidth_variants, column_variants = projection_variants(inputs, subsample, columns)
        scores, rows = score_variants(inputs), row_variants(inputs)
        violated = violation(conclusion, shifted, subsample, columns)
        estimate = inputs.target_prior(R, curve)  # by the tables, without an audit
        labeled = labeling(inputs, conclusion.critical, estimate, conclusion.ratio_interval)
        if is_audited:
            labeled = replace(labeled, to_turn=None, to_doubt=None)
    return Sensitivity(
        conclusion=conclusion, source_priors=tuple(assumed), turning_prior=turning_prior, sure_priors=sure_priors,
        bandwidths=bandwidth_variants, scores=scores, rows=rows, columns=column_variants, violation=violated,
        labeling=labeled, label_errors=label_error_variants(inputs), reasons=tuple(reasons),
        kernel_rows=tuple(map(len, subsample.samples)) if subsample is not None else (0, 0, 0),
    )  # fmt: skip
