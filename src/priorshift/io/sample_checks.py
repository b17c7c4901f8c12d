"""Checks of samples: enough rows, independent observations, positives and groups."""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.errors import DuplicateRowsWarning, FewPositivesWarning, InputError, IntervalWarning
from priorshift.warning_records import warn

FEW_POSITIVES = 20  # or groups


def check_sizes(**rows: int) -> None:
    """Refuse a sample of fewer than two rows."""
    for name, size in rows.items():
        if size < 2:
            raise InputError(f"{name} has {size} row{'s' * (size != 1)}, but at least 2 are needed; add rows.")


def check_distinct_samples(positive: Floats, unlabeled: Floats) -> None:
    """Refuse one table as both samples of the source."""
    if positive.shape == unlabeled.shape and np.array_equal(positive, unlabeled):
        raise InputError(
            f"positive and unlabeled are the same {len(positive)} rows; pass the labelled positives and a sample of "
            "the whole population."
        )


def check_observations(name: str, rows: int, observation: Index) -> None:
    """Refuse a sample of a single observation."""
    if (observation == observation[0]).all():
        raise InputError(
            f"the {rows} rows of {name} are one observation (copies of one row, or one group), but at least 2 are "
            "needed; add rows, or check the groups."
        )


def warn_of_few_positives(rows: int, effective_size: float) -> None:
    """Warn that an estimate is based on few positives."""
    if effective_size < FEW_POSITIVES:
        effective = f", whose effective sample size is {effective_size:.0f}" if effective_size < rows - 0.5 else ""
        warn(
            f"The estimate rests on {rows} positive rows{effective}. Treat it as a guess, even though the interval is "
            f"wide, or label at least {FEW_POSITIVES}.",
            FewPositivesWarning,
        )


def warn_of_copies(
    copies: Index, rows: str, then: str = "they count as one observation. Remove them, unless they are intended."
) -> None:
    """Warn how many of these rows are copies of others; `copies` is the number of copies of each row."""
    repeated = round(float((1 - 1 / copies).sum()))
    if repeated:
        warn(
            f"{repeated} of {len(copies)} {rows} are copies of others, in columns that do not repeat by chance; {then}",
            DuplicateRowsWarning,
        )


def warn_of_few_groups(groups: float, name: str) -> None:
    """Warn that an interval is based on few groups."""
    if groups < FEW_POSITIVES:
        warn(
            f"The effective number of groups in the {name} is {groups:.1f}; with fewer than {FEW_POSITIVES} an "
            "interval covers less often than its confidence level. Treat it as rough, or use smaller groups.",
            IntervalWarning,
        )
