"""Sample weights, effective sample sizes, and checks that samples are large enough.

With weights a mean is Σ w x/Σ w, and the effective sample size is (Σ w)²/Σ w² (Kish 1965). Copies of a row count as one
row. Rows of one group each count, but they are one observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.errors import DuplicateRowsWarning, FewPositivesWarning, InputError, IntervalWarning
from priorshift.io.parameters import as_float, check_per_row
from priorshift.warning_records import warn

_WIDEST = 1e9  # largest allowed ratio of the largest to the smallest weight
_EXTREME = 1e70  # sums of squares of larger weights may overflow, those of weights below 1e-70 may underflow
FEW_POSITIVES = 20  # positives, or groups, below which an estimate is a guess
_LEAST_SIZE = 2.0  # smallest effective sample size


def read_weights(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of a whole sample as floats: a positive number for each row, none of them dominating."""
    weights = weights_of_part(values, rows, name)
    check_weights(weights, name)
    return weights


def check_weights(weights: Floats, name: str) -> None:
    """Refuse weights (one per row) so uneven that some rows have no effect, or a single row outweighs all others."""
    if weights.max() > _WIDEST * weights.min():
        raise InputError(
            f"{name} range from {weights.min():.3g} to {weights.max():.3g}, so some rows have no effect; trim them."
        )
    if len(weights) >= _LEAST_SIZE:
        check_effective_size(name, len(weights), effective_size(weights))


def check_effective_size(name: str, rows: int, size: float) -> None:
    """Refuse weights of `rows` rows whose effective sample size `size` is below 2 (allowing for rounding)."""
    if size < _LEAST_SIZE - 1e-9:
        raise InputError(
            f"{name}: the effective sample size is {size:.2f} of {rows} rows, but at least {_LEAST_SIZE:.0f} is "
            "needed; trim the largest weights."
        )


def weights_of_part(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of a part of a sample as floats, a positive number per row; their ratios are not checked."""
    unmasked = np.ma.filled(values, np.nan) if np.ma.isMaskedArray(values) else values
    column = check_per_row(unmasked, rows, name, "one number for each row")
    try:
        weights = column.astype(np.float64)
    except (TypeError, ValueError):
        weights = np.array([as_float(value) for value in column.tolist()], dtype=np.float64)  # None becomes NaN
    is_invalid, remedy = ~(np.isfinite(weights) & (weights > 0)), "leave the row out, or correct it"
    if not is_invalid.any():
        is_invalid = (weights > _EXTREME) | (weights < 1 / _EXTREME)
        remedy = "divide all weights by one number, since only ratios matter"
    if is_invalid.any():
        row = int(is_invalid.argmax())
        raise InputError(
            f"{name} holds {column.tolist()[row]!r} in row {row} (counting from 0), but every row needs a positive "
            f"number from {1 / _EXTREME:g} to {_EXTREME:g}; {remedy}."
        )
    return weights


def effective_size(weights: Floats, observation: Index | None = None) -> float:
    """Return Kish's effective sample size (Σ W)²/Σ W², where W are the weights summed by observation.

    `observation` is the observation number of each row; None means that each row is its own observation.
    """
    summed = weights if observation is None else np.bincount(observation, weights)
    return float(summed.sum() ** 2 / (summed @ summed))


def design_effect(influence: Floats, observation: Index, copies: Index) -> float:
    """Return the factor by which groups increase the variance of an estimate; at least 1.

    It is Σ(sum of influences over the rows of an observation)² divided by Σ(influence of a row)². `influence`,
    `observation` (its number) and `copies` (how many rows are copies of this one, itself included) are per row.
    """
    by_observation = np.bincount(observation, influence)
    # the c copies of a row are one row: the sum of c·influence² over them is (the sum of their influences)²
    row_variance = float(copies @ influence**2)
    if row_variance <= 0:
        return 1.0
    return max(1.0, float(by_observation @ by_observation) / row_variance)  # a ratio below 1 is noise


@dataclass(frozen=True, eq=False)
class RowMass:
    """Mass of each row of a sample in a mean, and the effective sizes that follow from it."""

    mass: Floats  # sums to 1; the copies of a row share the mass of one row
    observation: Index  # number of each row's observation
    copies: Index  # number of copies of each row, itself included
    size: float  # effective sample size; groups are not considered
    observations: float  # effective number of observations: rows of a group are one

    @classmethod
    def from_weights(cls, weights: Floats | None, observation: Index, copies: Index) -> Self:
        """Compute masses and effective sizes from per-row arrays; `weights` None means equal weights."""
        if weights is None and copies.max(initial=1) == 1:
            # one number for all rows takes no memory; a mass must, or sums would be rounded otherwise once it is stored
            rows, ones = len(copies), np.broadcast_to(np.intp(1), len(copies))
            mass = np.full(rows, 1 / max(rows, 1))
            return cls(mass, observation, ones, float(rows), effective_size(mass, observation))
        unnormalized = (1.0 if weights is None else weights) / copies
        mass = np.asarray(unnormalized / unnormalized.sum())
        size = float(1 / (copies * mass**2).sum())  # Kish's, with the copies of a row as one row
        return cls(mass, observation, copies, size, effective_size(mass, observation))

    def design_effect(self, values: Floats) -> float:
        """Return the factor by which groups increase the variance of the mean of `values`, one per row; at least 1."""
        return design_effect(self.mass * (values - self.mass @ values), self.observation, self.copies)


def check_sizes(**rows: int) -> None:
    """Refuse a sample of fewer than two rows; the keywords are the names of samples, the values their rows."""
    for name, size in rows.items():
        if size < 2:
            raise InputError(
                f"{name} has {size} {'row' if size == 1 else 'rows'}, but at least 2 are needed; add rows."
            )


def check_observations(name: str, observation: Index) -> None:
    """Refuse the sample `name` if its rows, whose observation numbers are given, are all one observation."""
    if (observation == observation[0]).all():
        raise InputError(
            f"the {len(observation)} rows of {name} are one observation (copies of one row, or one group), but at "
            "least 2 are needed; add rows, or check the groups."
        )


def warn_of_few_positives(rows: int, effective_size: float) -> None:
    """Warn that an estimate is based on few positives, if their effective sample size is below 20."""
    if effective_size < FEW_POSITIVES:
        effective = f", whose effective sample size is {effective_size:.0f}" if effective_size < rows - 0.5 else ""
        warn(
            f"The estimate rests on {rows} positive rows{effective}. Treat it as a guess, even though the interval is "
            f"wide, or label at least {FEW_POSITIVES}.",
            FewPositivesWarning,
        )


def warn_of_copies(
    copies: Index, rows: str, note: str = "they count as one observation. Remove them, unless they are intended."
) -> None:
    """Warn of copies among the rows described by `rows`; `copies` has the number of copies of each, itself included."""
    repeated = round(float((1 - 1 / copies).sum()))  # number of rows less that of distinct rows
    if repeated:
        warn(
            f"{repeated} of {len(copies)} {rows} are copies of others, in columns that do not repeat by chance; {note}",
            DuplicateRowsWarning,
        )


def warn_of_few_groups(groups: float, name: str) -> None:
    """Warn that an interval is based on few groups; `groups` is their effective number in the sample `name`."""
    if groups < FEW_POSITIVES:
        warn(
            f"The effective number of groups in the {name} is {groups:.1f}; with fewer than {FEW_POSITIVES} an "
            "interval covers less often than its confidence level. Treat it as rough, or use smaller groups.",
            IntervalWarning,
        )
