"""By how much the classes may differ between source and target before a conclusion changes.

Label shift puts μ_T on the line through μ_P and μ_U: μ_T = μ_P + R(μ_U − μ_P). A violation δ, which moves μ_T, moves R̂
by ⟨a, δ⟩/‖a‖² with a = μ_U − μ_P, at most by ‖δ‖/‖a‖, if R̂ is the projection on a (the witness that is published is
about as sensitive). So no violation smaller than |ΔR|·‖a‖ moves it by ΔR, and one of this size along a does. In
shares of positives, since ‖a‖ = (1−π)‖μ₊ − μ₋‖: |Δπ′| of the distance of the two classes.

A violation that can be pictured is a shift of the target's rows: by s standard deviations of U, along a direction u.
The witness h moves by E_T[h(x + su) − h(x)], and R̂ reaches r where E_T h_r(x + su) = r·E_U h_r, so that one function
of fixed rows is looked at for its root. u is the direction of the regression of h on the columns, which for normal
columns is the gradient of E_T h (Stein 1981); it is where the search goes, not what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.conclusion import Conclusion
from priorshift.diagnosis.subsample import Thinned
from priorshift.problem import Source, Target
from priorshift.result_tables import to_plain
from priorshift.scores import mixture
from priorshift.scores.witness import Witness

MOST_COLUMNS = 10
_FARTHEST = 4.0  # standard deviations that rows are shifted by
_ROWS = 400  # that are shifted to look for a root
_FIT_ROWS = 5000  # of the regression
_FAR = 8.0  # standard deviations, beyond which a value is cut off, as scores do
_RIDGE = 1e-3  # of the regression, for columns that say the same
_STEPS = 12  # of a search
_NEAR = 0.02  # of what is to be reached, where the search ends


@dataclass(frozen=True)
class ColumnMove:
    """A shift of one column alone that does it.

    Attributes
    ----------
    column : str
        Its name.
    deviations : float
        Standard deviations of U that the target's values would have been moved by; NaN where 4 are not enough.
    """

    column: str
    deviations: float


@dataclass(frozen=True)
class Move:
    """A violation that moves R̂ so far.

    Attributes
    ----------
    ratio : float
        By how much, of R; its sign is the direction.
    distance : float
        ‖δ‖, the smallest kernel distance that does it; NaN where P and U are not apart for the kernel.
    shift : float
        Standard deviations that the target's rows are shifted by, along the direction that does it soonest; NaN where 4
        are not enough, or there is no column to shift.
    shift_distance : float
        The kernel distance of that shift, no smaller than `distance` but for noise.
    reached : float
        By how much R̂ moves if all rows are so shifted and everything is computed again: what the search on some rows
        is worth. NaN but for the decisive move.
    """

    ratio: float
    distance: float
    shift: float
    shift_distance: float
    reached: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
        """
        return to_plain(vars(self))


@dataclass(frozen=True)
class Violation:
    """How large a violation of label shift changes what is concluded.

    Attributes
    ----------
    to_turn : Move or None
        What carries the estimate to the other side; None where no side was concluded.
    to_doubt : Move or None
        What carries the interval's end there, so that the conclusion is open; None where it is open already.
    half_width : Move or None
        What moves π̂′ by half the width of its interval; None where there is no estimate.
    columns : tuple of ColumnMove
        Shifts of single columns that do what `decisive` does, the smallest first, of at most ten columns that the score
        rests on most; categories are not shifted.
    class_distance : float
        ‖μ₊ − μ₋‖ = ‖μ_U − μ_P‖/(1−π), the kernel distance of the classes.
    """

    to_turn: Move | None
    to_doubt: Move | None
    half_width: Move | None
    columns: tuple[ColumnMove, ...]
    class_distance: float

    @property
    def decisive(self) -> Move | None:  # numpydoc ignore=RT01
        """The move that an estimated violation is compared with: the first that is there."""
        return self.to_doubt or self.to_turn or self.half_width

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
        """
        moves = {"to_turn": self.to_turn, "to_doubt": self.to_doubt, "half_width": self.half_width}
        return {
            **{name: None if move is None else move.to_dict() for name, move in moves.items()},
            "columns": [to_plain(vars(column)) for column in self.columns],
            **to_plain({"class_distance": self.class_distance}),
        }


@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """The target's rows, shifted: what a shift does to h, and to R̂.

    Attributes
    ----------
    target : Target
        T.
    witness : Witness
        That tested it.
    values : ndarray of shape (repeats, rows)
        The p-values of its rows as they are.
    spread : ndarray of shape (columns,)
        Standard deviation of each scaled column in U, 0 for one that is left out or a category's.
    some : Target
        Those of its rows that a search shifts.
    """

    target: Target
    witness: Witness
    values: Floats
    spread: Floats
    some: Target

    @classmethod
    def of(cls, source: Source, target: Target, witness: Witness, values: Floats) -> ShiftedRows:
        """Choose the rows, and measure the columns."""
        spread = _spread(source)
        if source.table.origin is not None:
            spread = np.where(source.table.origin.own_scale, 0.0, spread)
        # evenly along the p-values, as their mass says, so that all of them are there and they count the same
        order = np.argsort(values.mean(axis=0), kind="stable")
        upto = np.cumsum(target.mass[order])
        count = min(len(target), _ROWS)
        taken = order[np.minimum(np.searchsorted(upto, (np.arange(count) + 0.5) / count), len(order) - 1)]
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
        return cls(target, witness, values, spread, some)

    @property
    def shiftable(self) -> Mask:
        return self.spread > 0

    def slopes(self, ratio: float) -> Floats:
        """The regression of h on the columns in standard deviations: what a shift by one of each does to E_T h."""
        h = _mean_of(self.witness.function(np.array([ratio]), self.target.size), mixture.bins(self.values))
        step = max(1, len(h) // _FIT_ROWS)
        scale = np.where(self.shiftable, self.spread, 1.0)
        X = np.clip(self.target.rows[np.arange(0, len(h), step)] / scale, -_FAR, _FAR)
        return regression(X, h[::step], self.target.mass[::step] / self.target.mass[::step].sum())

    def root(self, ratio: float, by: float, direction: Floats, slope: float) -> float:
        """The smallest |s| found that carries R̂ from `ratio` to `ratio + by`; NaN where 4 are not enough.

        `direction` is in standard deviations, and `slope` the change of E_T h that it is thought to make.
        """
        to = max(ratio + by, 0.0)
        h = self.witness.function(np.array([to]), self.target.size)
        D = float(_mean_of(h, self.witness.population) @ self.witness.source.population_mass)
        N = float(_mean_of(h, mixture.bins(self.values)) @ self.target.mass)
        wanted = to * D - N
        if not (D > 0 and wanted != 0 and slope != 0):
            return float("nan") if wanted else 0.0
        mass, before = self.some.mass, self._bins(0.0 * direction)
        start = float(mass @ _mean_of(h, before))

        def short(s: float) -> float:
            """How much of what is wanted is missing, from 1 at s = 0."""
            there = float(mass @ _mean_of(h, self._bins(s * direction)))
            return 1 - (there - start) / wanted

        found = _search(short, wanted / slope)
        return found if np.isfinite(found) else _search(short, -wanted / slope)  # h need not be monotone

    def tested(self, shift: Floats) -> float:
        """R̂ where all rows are shifted, in standard deviations."""
        moved = self._moved(self.target, shift)
        return self.witness.test(self.witness.scored.target_p_values(moved), moved).ratio

    def scaled(self, shift: Floats) -> Floats:
        """A shift in standard deviations as one of scaled rows."""
        return shift * self.spread

    def _bins(self, shift: Floats) -> Index:
        moved = self._moved(self.some, shift)
        return mixture.bins(self.witness.scored.target_p_values(moved))

    def _moved(self, target: Target, shift: Floats) -> Target:
        rows = target.rows
        raw = self.scaled(shift) / np.where(rows.factor != 0, rows.factor, 1.0)
        return replace(target, rows=replace(rows, shift=rows.shift - raw))


def violation(found: Conclusion, shifted: ShiftedRows, thinned: Thinned | None, columns: Sequence[Column]) -> Violation:
    """Measure how large a violation changes a conclusion.

    Parameters
    ----------
    found : Conclusion
        What is concluded.
    shifted : ShiftedRows
        The target.
    thinned : Thinned or None
        Rows of the three samples, for the kernel.
    columns : sequence of Column
        That are shifted one at a time.

    Returns
    -------
    Violation
    """
    whole = None if thinned is None else thinned.whole
    length = float("nan") if whole is None else whole.length
    distance = length / (1 - found.source_prior)
    if not np.isfinite(found.ratio):
        return Violation(None, None, None, (), distance)
    slopes = np.where(shifted.shiftable, shifted.slopes(max(found.ratio, 0.0)), 0.0)
    steepest = float(np.linalg.norm(slopes))
    towards = -1.0 if found.critical < found.ratio else 1.0
    nan = float("nan")

    def move(by: float | None, decisive: bool) -> Move | None:  # numpydoc ignore=GL08
        if by is None:
            return None
        s = shifted.root(found.ratio, by, slopes / steepest, steepest) if steepest > 0 else nan
        if not np.isfinite(s):
            return Move(by, abs(by) * length, nan, nan, nan)
        shift = s * slopes / steepest
        far = nan if thinned is None else thinned.moved_distance(shifted.scaled(shift))
        return Move(by, abs(by) * length, abs(s), far, shifted.tested(shift) - found.ratio if decisive else nan)

    to_doubt = move(found.to_doubt, True)
    to_turn = move(found.to_turn, to_doubt is None)
    half_width = move(towards * found.half_width, (to_doubt or to_turn) is None)
    made = Violation(to_turn, to_doubt, half_width, (), distance)
    alone = []
    for column in columns:
        one = np.zeros_like(slopes)
        at = column.numbers[shifted.shiftable[column.numbers]]
        if len(at) != 1 or made.decisive is None:
            continue
        one[at] = 1.0
        by = made.decisive.ratio
        alone.append(ColumnMove(column.name, shifted.root(found.ratio, by, one, float(slopes[at[0]]))))
    alone.sort(key=lambda c: abs(c.deviations) if np.isfinite(c.deviations) else np.inf)
    return replace(made, columns=tuple(alone))


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the user knows it, and those that it was encoded by.

    Attributes
    ----------
    name : str
        What messages call it.
    numbers : ndarray of int
        Columns of the rows.
    """

    name: str
    numbers: Index


def leading_columns(source: Source, shifted: ShiftedRows, ratio: float) -> tuple[Column, ...]:
    """Name the columns that h rests on most, by its regression on all; at most ten.

    Parameters
    ----------
    source : Source
        With the names.
    shifted : ShiftedRows
        The target.
    ratio : float
        R̂.

    Returns
    -------
    tuple of Column
        The most important one first; a column that was encoded by several counts as one.
    """
    used = np.flatnonzero(source.scaling.factor)
    slopes = np.abs(shifted.slopes(max(ratio, 0.0)))
    origin = source.table.origin
    of = np.arange(len(slopes)) if origin is None else origin.of
    weight = np.bincount(of[used], slopes[used] ** 2, int(of.max()) + 1)
    first = [k for k in np.argsort(-weight, kind="stable")[:MOST_COLUMNS] if np.isin(k, of[used])]
    names = list(origin.columns) if origin is not None else []
    made = []
    for k in first:
        name = f"column {names[k]!r}" if names else source.table.column(int(k))
        made.append(Column(name, used[of[used] == k]))
    return tuple(made)


def regression(X: Floats, y: Floats, mass: Floats) -> Floats:
    """Regress y on columns of about unit spread, with a little ridge for those that say the same.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        The columns.
    y, mass : ndarray of shape (rows,)
        What is explained, and what each row counts; the sum of `mass` is 1.

    Returns
    -------
    ndarray of shape (columns,)
        The slopes.
    """
    X, y = X - mass @ X, y - mass @ y
    A = X.T @ (mass[:, None] * X)
    A[np.diag_indices_from(A)] += _RIDGE * max(float(np.trace(A)) / len(A), 1e-12)
    return np.asarray(np.linalg.solve(A, X.T @ (mass * y)))


def _search(short: Callable[[float], float], start: float) -> float:
    """The root of a function that is 1 at 0, beyond the side that `start` shows; NaN where there is none near."""
    s = float(np.clip(start, -_FARTHEST, _FARTHEST))
    s = np.copysign(max(abs(s), 1e-6), s)
    inside, left = 0.0, 1.0
    for _ in range(_STEPS):
        missing = short(s)
        if missing <= 0:
            break
        if abs(s) >= _FARTHEST or (missing > 1 + _NEAR and abs(s) > abs(start)):
            return float("nan")
        inside, left = s, missing
        s = float(np.clip(s * min(max(1 / max(1 - missing, 0.25), 1.25), 4.0), -_FARTHEST, _FARTHEST))
    else:
        return float("nan")
    outside, over = s, missing
    for _ in range(_STEPS):
        if abs(missing) < _NEAR:
            break
        s = inside + (outside - inside) * float(np.clip(left / (left - over), 0.1, 0.9))
        missing = short(s)
        if missing > 0:
            inside, left = s, missing
        else:
            outside, over = s, missing
    return float(s)


def _mean_of(h: Floats, bins: Index) -> Floats:
    """h of one ratio at each row, the mean over repetitions."""
    return np.asarray(np.mean([h[k, 0][b] for k, b in enumerate(bins)], axis=0))


def _spread(source: Source) -> Floats:
    """Of scaled columns in U; 0 for one that is left out."""
    rows = source.population[:: max(1, len(source.population) // _FIT_ROWS)]
    return np.asarray(source.rows[rows].std(axis=0))
