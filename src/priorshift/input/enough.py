"""Whether samples hold enough to tell anything from: rows, observations, positives and groups."""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.errors import DuplicateRowsWarning, FewGroupsWarning, FewPositivesWarning, InputError, warn

FEW_POSITIVES = 20  # or groups


def check_sizes(**rows: int) -> None:
    """Two rows at least of each sample."""
    for name, size in rows.items():
        if size < 2:
            rows_there = f"{size} row{'s' * (size != 1)}"
            raise InputError(f"{name} has {rows_there}, but at least 2 are needed to tell signal from noise; add rows.")


def check_source_apart(positive: Floats, unlabeled: Floats) -> None:
    """Refuse one table as both samples of the source."""
    if positive.shape == unlabeled.shape and np.array_equal(positive, unlabeled):
        raise InputError(
            f"positive and unlabeled are the same {len(positive)} rows, so positives cannot be told from the "
            "population; pass the labelled positives and a sample of the whole population."
        )


def check_observations(name: str, rows: int, observation: Index) -> None:
    """Two at least in each sample."""
    if (observation == observation[0]).all():
        raise InputError(
            f"the {rows} rows of {name} are one observation (copies of one row, or one group), but at least 2 are "
            "needed to tell signal from noise; add rows, or check the groups."
        )


def warn_of_few_positives(rows: int, worth: float) -> None:
    """Say so where an estimate rests on few positives, which are worth so many independent ones."""
    if worth < FEW_POSITIVES:
        but = f", which are worth {worth:.0f} independent ones" if worth < rows - 0.5 else ""
        warn(
            f"The estimate rests on {rows} positive rows{but}; take it as a guess, for all that the interval is wider. "
            f"Label at least {FEW_POSITIVES}.",
            FewPositivesWarning,
        )


def warn_of_copies(
    copies: Index,
    rows: str,
    then: str = "they are taken as one observation. Leave them out, unless they mean something.",
) -> None:
    """Say how many of these rows are copies of others, and what follows; `copies` counts those of each row."""
    again = round(float((1 - 1 / copies).sum()))
    if again:
        warn(
            f"{again} of {len(copies)} {rows} are copies of others, in columns that do not repeat by chance; {then}",
            DuplicateRowsWarning,
        )


def warn_of_few_groups(groups: float, name: str) -> None:
    """Say so where an interval rests on few groups, which are worth so many of equal size."""
    if groups < FEW_POSITIVES:
        warn(
            f"The groups of the {name} are worth {groups:.1f} of equal size; with fewer than {FEW_POSITIVES} an "
            "interval holds less often than it says. Take it as a rough one, or use smaller groups.",
            FewGroupsWarning,
        )
