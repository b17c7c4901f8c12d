"""Measure the default's error and interval where some labelled rows are not positive, and π is estimated.

The samples are those of :mod:`experiments.studies.label_errors`.
"""

from __future__ import annotations

from functools import partial

from experiments.studies import label_errors
from experiments.study import Trial

TRIAL = Trial(
    "label_errors_unknown",
    "Labelled rows that are not positive, source prior estimated",
    label_errors.grid(20),
    label_errors.UNIT,
    partial(label_errors.measure, is_known=False),
    partial(label_errors.texts, name="label-errors-unknown"),
    quotes=("label-errors-unknown",),
    small_values={"rows": 300},
)
