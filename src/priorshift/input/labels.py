"""The y of positive-unlabelled data: two values, the larger one means labelled positive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from priorshift.errors import InputError, LabelOrderWarning, warn


def read_labels(
    y: Any, rows: int, name: str = "y", *, classifier: bool = False
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows are labelled positive, and the two values.

    A classifier's may be words, with a warning about their order.

    Examples
    --------
    >>> from priorshift.input.labels import read_labels
    >>> read_labels([-1, 1, -1], 3)
    (array([False,  True, False]), array([-1,  1]))
    """
    if y is None:
        raise InputError(
            "The estimator requires y to be passed, but the target y is None; pass 1 for positives, else 0."
        )
    if np.ma.is_masked(y):
        raise InputError(f"{name} has masked cells, which have no value; leave their rows out.")
    try:
        labels = np.asarray(y)
    except ValueError:
        raise InputError(f"{name} has entries of different lengths; pass one label for each row.") from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
        if classifier:
            warn(
                f"A column-vector {name} was passed when a 1d array was expected; pass {name}.ravel().",
                DataConversionWarning,
            )
    if labels.shape != (rows,):
        raise InputError(f"{name} has shape {labels.shape} but X has {rows} rows; pass one label for each row.")
    given = labels.tolist()
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in given):
        labels = labels.astype(str)
    if labels.dtype.kind in "UT" and classifier and len(np.unique(labels)) == 2:
        words = np.unique(labels)
        warn(
            f"{name} holds text: {str(words[1])!r}, the later one in the alphabet, is taken for labelled positives and "
            f"{str(words[0])!r} for unlabelled rows; pass 1 and 0 to be sure.",
            LabelOrderWarning,
        )
    elif labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)  # None becomes NaN, "1" a number
        except (TypeError, ValueError):
            odd = next((label for label in given if not _is_float(label)), given[0])
            raise InputError(
                f"{name} holds {str(odd)!r}, but two numbers are expected; pass 1 for positives and 0 for the rest."
            ) from None
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"{name} contains NaN or inf; pass 1 for positives and 0 for the rest.")
    values = np.unique(labels)
    if len(values) != 2:
        found = "one class" if len(values) == 1 else f"{len(values)} values"
        if labels.dtype.kind == "f" and (values % 1 != 0).any():
            found = f"{len(values)} continuous values"
        begin = "Only binary classification is supported. " * (classifier and len(values) > 2)
        raise InputError(
            f"{begin}{name} holds {found} ({', '.join(map(str, values[:5].tolist()))}), but labelled positives (1) and "
            "unlabelled rows (0) are both needed; pass two values."
        )
    return np.asarray(labels == values[1]), values


def _is_float(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True
