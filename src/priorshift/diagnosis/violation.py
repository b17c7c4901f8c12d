"""What is concluded about the target prior, and how large a violation of label shift would change it.

R = (1−π′)/(1−π) is below 1 where π′ is above π. The conclusion is on which side of a threshold the target prior is or,
without one, on which side of π; it is open where the interval contains both sides.

Label shift puts μ_T on the line through μ_P and μ_U: μ_T = μ_P + R(μ_U − μ_P). A violation δ of it, which moves μ_T,
moves the projection R̂ by ⟨a, δ⟩/‖a‖² with a = μ_U − μ_P, at most by ‖δ‖/‖a‖ (the witness is about as sensitive). So no
violation smaller than |ΔR|·‖a‖ moves R̂ by ΔR, and one of this size along a does. In shares of positives, since
‖a‖ = (1−π)‖μ₊ − μ₋‖, that is |Δπ′| of the distance of the two classes.

A violation that one can picture is a shift of the target's rows by s standard deviations of U in a direction u. R̂
reaches r where E_T h_r(x + su) = r·E_U h_r, so s is the root of one function of fixed rows. u is the direction of the
regression of h on the columns, which for normal columns is the gradient of E_T h (Stein 1981); it directs the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.diagnosis.columns import CLIP, FIT_ROWS, Column, regression
from priorshift.diagnosis.parts import DiagnosisInput
from priorshift.diagnosis.variants import Subsample
from priorshift.errors import InputError
from priorshift.io.parameters import is_number
from priorshift.problem import Target
from priorshift.result_tables import to_plain
from priorshift.scores import mixture

_LARGEST_SHIFT = 4.0  # standard deviations
_SEARCH_ROWS = 400  # that are shifted in the search for a root
_STEPS = 12  # of a search
_TOLERANCE = 0.02  # of the wanted change, at which the search ends
Side = Literal["above", "below", "open"]


@dataclass(frozen=True)
class Conclusion:
    """On which side of a threshold, or of the source prior, the target prior is."""

    threshold: float | None  # None is the source prior
    side: Side  # of π′; open where the interval contains both sides
    ratio: float  # R̂
    critical: float  # the ratio at which the conclusion turns: 1, or (1−t)/(1−π)
    value: float  # π̂′
    low: float
    high: float
    source_prior: float
    confidence: float
    ratio_interval: tuple[float, float]  # compared with `critical`; its upper end can be infinite

    @property
    def half_width(self) -> float:
        """Half of the interval's width, as a difference of R."""
        return (self.high - self.low) / 2 / (1 - self.source_prior)

    @property
    def to_turn(self) -> float | None:
        """The change of R̂ that moves the estimate to `critical`; None where there is no conclusion to turn."""
        if not np.isfinite(self.ratio) or (self.threshold is None and self.side == "open"):
            return None
        return self.critical - self.ratio

    @property
    def to_doubt(self) -> float | None:
        """The change of R̂ that moves the interval to `critical`; None where the conclusion is open already."""
        if self.side == "open":
            return None
        return self.critical - (self.ratio_interval[1] if self.side == "above" else self.ratio_interval[0])

    def __str__(self) -> str:
        compared = "the source prior" if self.threshold is None else f"{self.threshold:g}"
        if self.side == "open":
            return f"It is open whether the target prior is above or below {compared}."
        return f"The target prior is {self.side} {compared}."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, without the interval of R."""
        return to_plain({name: value for name, value in vars(self).items() if name != "ratio_interval"})


def conclude(inputs: DiagnosisInput) -> Conclusion:
    """Conclude on which side of the threshold, or of the source prior, the target prior is."""
    ratio, threshold, confidence = inputs.ratio, inputs.threshold, inputs.confidence
    pi = inputs.fit.estimate.source_prior
    value, low, high = inputs.target_prior(ratio, inputs.fit.curve)
    negatives = max(1 - pi, 1e-12)
    if threshold is None:
        critical, interval = 1.0, inputs.fit.curve.quantiles(confidence)
    else:
        critical, interval = (1 - threshold) / negatives, ((1 - high) / negatives, (1 - low) / negatives)
    side: Side = "open"
    if np.isfinite(ratio):
        side = "above" if interval[1] < critical else "below" if interval[0] > critical else "open"
    return Conclusion(threshold, side, ratio, critical, value, low, high, pi, confidence, interval)


def check_threshold(threshold: float | None) -> None:
    """Raise InputError for a threshold that is not strictly between 0 and 1."""
    if threshold is not None and not (is_number(threshold) and 0 < threshold < 1):
        raise InputError(
            f"threshold is {threshold!r}, but must be a number strictly between 0 and 1. Pass a target prior that "
            "matters, or None to compare with the source prior."
        )


@dataclass(frozen=True)
class ColumnMove:
    """A shift of one column alone that does what the decisive violation does."""

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
    class_distance: float  # ‖μ₊ − μ₋‖ = ‖μ_U − μ_P‖/(1−π), the kernel distance of the classes

    @property
    def decisive(self) -> Move | None:
        """The first of `to_doubt`, `to_turn` and `half_width` that exists."""
        return self.to_doubt or self.to_turn or self.half_width

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return to_plain(asdict(self))


@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """The target with shifted rows: what a shift does to E_T h and to R̂."""

    inputs: DiagnosisInput
    spread: Floats  # standard deviation of each scaled column in U; 0 where it is not used or a category's
    some: Target  # the rows that a search shifts

    @classmethod
    def choose(cls, inputs: DiagnosisInput) -> ShiftedRows:
        """Choose the rows of a search, and measure the spread of the columns."""
        source, target = inputs.source, inputs.fit.target
        rows = source.population[:: max(1, len(source.population) // FIT_ROWS)]
        spread = np.asarray(source.rows[rows].std(axis=0))
        if source.table.origin is not None:
            spread = np.where(source.table.origin.own_scale, 0.0, spread)
        # in even steps of mass along the p-values, so that these rows count the same
        order = np.argsort(inputs.fit.p_values.mean(axis=0), kind="stable")
        cumulative = np.cumsum(target.mass[order])
        count = min(len(target), _SEARCH_ROWS)
        taken = order[np.minimum(np.searchsorted(cumulative, (np.arange(count) + 0.5) / count), len(order) - 1)]
        some = replace(
            target,
            rows=replace(target.rows, index=taken),
            weights=None,
            observation=np.arange(count),
            of_source=target.of_source[taken],
            copies=np.ones(count, dtype=np.intp),
            groups=None,
            audit=None,
        )
        return cls(inputs, spread, some)

    def slopes(self, ratio: float) -> Floats:
        """Return the change of E_T h by a shift of one standard deviation in each column, by regression."""
        target = self.inputs.fit.target
        function = self.inputs.fit.witness.function(np.array([ratio]), target.size)
        h = _mean_over_repeats(function, mixture.bins(self.inputs.fit.p_values))
        step = max(1, len(h) // FIT_ROWS)
        scale = np.where(self.spread > 0, self.spread, 1.0)
        X = np.clip(target.rows[np.arange(0, len(h), step)] / scale, -CLIP, CLIP)
        return regression(X, h[::step], target.mass[::step] / target.mass[::step].sum())

    def root(self, ratio: float, change: float, direction: Floats, slope: float) -> float:
        """Return the smallest |s| found that moves R̂ from `ratio` by `change`; NaN where 4 are not enough.

        `direction` is in standard deviations, and `slope` the expected change of E_T h per unit of s.
        """
        witness, target = self.inputs.fit.witness, self.inputs.fit.target
        goal = max(ratio + change, 0.0)
        h = witness.function(np.array([goal]), target.size)
        D = float(_mean_over_repeats(h, witness.population) @ witness.source.population_mass)
        N = float(_mean_over_repeats(h, mixture.bins(self.inputs.fit.p_values)) @ target.mass)
        wanted = goal * D - N
        if not (D > 0 and wanted != 0 and slope != 0):
            return float("nan") if wanted else 0.0

        def mean_of_h(s: float) -> float:
            moved = self._moved(self.some, s * direction)
            bins = mixture.bins(witness.scored.target_p_values(moved))
            return float(self.some.mass @ _mean_over_repeats(h, bins))

        start = mean_of_h(0.0)

        def missing(s: float) -> float:
            """Return the share of the wanted change that is missing, 1 at s = 0."""
            return 1 - (mean_of_h(s) - start) / wanted

        found = _find_root(missing, wanted / slope)
        return found if np.isfinite(found) else _find_root(missing, -wanted / slope)  # h need not be monotone

    def shifted_ratio(self, shift: Floats) -> float:
        """Return R̂ where all rows are shifted, in standard deviations."""
        witness, moved = self.inputs.fit.witness, self._moved(self.inputs.fit.target, shift)
        return witness.test(witness.scored.target_p_values(moved), moved).ratio

    def _moved(self, target: Target, shift: Floats) -> Target:
        rows = target.rows
        raw = shift * self.spread / np.where(rows.factor != 0, rows.factor, 1.0)
        return replace(target, rows=replace(rows, shift=rows.shift - raw))


def violation(
    conclusion: Conclusion, shifted: ShiftedRows, subsample: Subsample | None, columns: Sequence[Column]
) -> Violation:
    """Measure how large a violation changes a conclusion; `columns` are also shifted one at a time."""
    whole = None if subsample is None else subsample.whole
    length = float("nan") if whole is None else whole.length
    class_distance = length / (1 - conclusion.source_prior)
    if not np.isfinite(conclusion.ratio):
        return Violation(None, None, None, (), class_distance)
    slopes = np.where(shifted.spread > 0, shifted.slopes(max(conclusion.ratio, 0.0)), 0.0)
    steepest = float(np.linalg.norm(slopes))
    nan = float("nan")

    def move(change: float | None, decisive: bool) -> Move | None:
        if change is None:
            return None
        s = shifted.root(conclusion.ratio, change, slopes / steepest, steepest) if steepest > 0 else nan
        if not np.isfinite(s):
            return Move(change, abs(change) * length, nan, nan, nan)
        shift = s * slopes / steepest
        distance = nan if subsample is None else subsample.moved_distance(shift * shifted.spread)
        reached = shifted.shifted_ratio(shift) - conclusion.ratio if decisive else nan
        return Move(change, abs(change) * length, abs(s), distance, reached)

    to_doubt = move(conclusion.to_doubt, True)
    to_turn = move(conclusion.to_turn, to_doubt is None)
    direction = -1.0 if conclusion.critical < conclusion.ratio else 1.0
    half_width = move(direction * conclusion.half_width, (to_doubt or to_turn) is None)
    found = Violation(to_turn, to_doubt, half_width, (), class_distance)
    alone = []
    for column in columns:
        at = column.numbers[shifted.spread[column.numbers] > 0]
        if len(at) != 1 or found.decisive is None:
            continue
        unit = np.zeros_like(slopes)
        unit[at] = 1.0
        deviations = shifted.root(conclusion.ratio, found.decisive.ratio, unit, float(slopes[at[0]]))
        alone.append(ColumnMove(column.name, deviations))
    alone.sort(key=lambda c: abs(c.deviations) if np.isfinite(c.deviations) else np.inf)
    return replace(found, columns=tuple(alone))


def _find_root(missing: Callable[[float], float], start: float) -> float:
    """Return the root of a function that is 1 at 0, on the side of `start`; NaN where there is none nearby."""
    s = float(np.clip(start, -_LARGEST_SHIFT, _LARGEST_SHIFT))
    s = np.copysign(max(abs(s), 1e-6), s)
    inside, positive = 0.0, 1.0
    for _ in range(_STEPS):
        value = missing(s)
        if value <= 0:
            break
        if abs(s) >= _LARGEST_SHIFT or (value > 1 + _TOLERANCE and abs(s) > abs(start)):
            return float("nan")
        inside, positive = s, value
        factor = min(max(1 / max(1 - value, 0.25), 1.25), 4.0)
        s = float(np.clip(s * factor, -_LARGEST_SHIFT, _LARGEST_SHIFT))
    else:
        return float("nan")
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


def _mean_over_repeats(h: Floats, bins: Index) -> Floats:
    """Return h of one ratio at each row, the mean over repetitions."""
    return np.asarray(np.mean([h[k, 0][b] for k, b in enumerate(bins)], axis=0))
