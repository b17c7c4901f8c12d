"""Labels: the two values of y that mean labelled positive and unlabelled, and the classes of audited rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError, LabelOrderWarning
from priorshift.io.cells import is_missing_word
from priorshift.io.parameters import check_per_row
from priorshift.warning_records import warn

LEAST = 10  # labels, and clusters of them, below which a share is a guess
_CLASSES = {"1": True, "0": False, "true": True, "false": False}


@dataclass(frozen=True, eq=False)
class Audit:
    """Rows whose true class was looked up.

    Attributes
    ----------
    index : ndarray of int
        Where they stand in the sample; drawn at random.
    positive : ndarray of bool
        Whether each is positive.

    Examples
    --------
    >>> from priorshift.audit import read_audit
    >>> audit = read_audit(["1", "", "0", "0", "", "0", "1", "0", "0", "0", "0", "0"], rows=12)
    >>> audit.index, int(audit.positive.sum())
    (array([ 0,  2,  3,  5,  6,  7,  8,  9, 10, 11]), 2)
    """

    index: Index
    positive: Mask

    def __len__(self) -> int:
        return len(self.index)


def read_audit(values: Any, rows: int, name: str = "audit") -> Audit:
    """Read the column of an audit: 1 or 0 where the class was looked up, nothing where it was not.

    Parameters
    ----------
    values : array-like
        One entry for each row: 1 or True for a positive, 0 or False for a negative, which may be text; NaN, None or
        empty text for a row that was not looked up. A list, an array or a column of any data frame.
    rows : int
        Of the sample.
    name : str
        What messages call it.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from priorshift.audit import read_audit
    >>> audit = read_audit([1, 0, None, 0, 1, 0, 0, None, 0, 1, 0, 0], rows=12)
    >>> len(audit), int(audit.positive.sum())
    (10, 3)
    """
    return as_audit(read_classes(values, rows, name), name)


def as_audit(classes: Floats, name: str = "audit") -> Audit:
    """1, 0 or NaN for each row, of which enough were looked up."""
    index = np.flatnonzero(~np.isnan(classes))
    if len(index) < LEAST:
        raise InputError(f"{name} has {len(index)} rows with a class, but at least {LEAST} are needed; look up more.")
    return Audit(index, np.asarray(classes[index] == 1))


def read_classes(values: Any, rows: int, name: str) -> Floats:
    """A column of an audit in numbers: 1, 0, and NaN where nothing was looked up."""
    if np.ma.isMaskedArray(values):
        mask, values = np.ma.getmaskarray(values), np.ma.getdata(values).astype(object)
        values[mask] = None
    column = check_per_row(values, rows, name, "one entry for each row, empty where the class was not looked up")
    if column.dtype.kind not in "biuf":
        column = np.array([_read(value) for value in column.tolist()], dtype=float)
        strange = np.isinf(column)
    else:
        strange = ~np.isnan(column) & (column != 0) & (column != 1)
    if strange.any():
        row = int(strange.argmax())
        got = np.asarray(values).reshape(-1)[row]
        got = got.item() if isinstance(got, np.generic) else got
        raise InputError(
            f"{name} holds {got!r} in row {row} (counting from 0), but 1 for a positive, 0 for a negative or nothing "
            "for a class that was not looked up is expected; write it so."
        )
    return np.asarray(column, dtype=float)


def _read(value: Any) -> float:
    """1, 0, NaN for nothing, or infinity for anything else."""
    text = str(value).strip().lower()
    if is_missing_word(text):
        return float("nan")
    if text in _CLASSES:
        return float(_CLASSES[text])
    try:
        number = float(text)
    except ValueError:
        return float("inf")
    return number if number in (0, 1) else float("inf")


def read_labels(
    y: Any,
    rows: int,
    name: str = "y",
    *,
    classifier: bool = False,
    positive_label: Any = None,
    parameter: str = "positive_label",
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows are labelled positive, and the two values, that of positives last.

    They may be words if `positive_label` is one of them; a classifier's also without it, with a warning about their
    order. Messages call it `parameter`.

    Examples
    --------
    >>> from priorshift.io.labels import read_labels
    >>> read_labels([-1, 1, -1], 3)
    (array([False,  True, False]), array([-1,  1]))
    >>> read_labels(["ok", "fraud", "ok"], 3, positive_label="fraud")
    (array([False,  True, False]), array(['ok', 'fraud'], dtype='<U5'))
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
    if positive_label is not None:
        return _read_named(given, name, positive_label, parameter)
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in given):
        labels = labels.astype(str)
    if labels.dtype.kind in "UT" and classifier and len(np.unique(labels)) == 2:
        words = np.unique(labels)
        warn(
            f"{name} holds text: {str(words[1])!r}, the later one in the alphabet, is taken for labelled positives and "
            f"{str(words[0])!r} for unlabelled rows; pass {parameter} to be sure.",
            LabelOrderWarning,
        )
    elif labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)  # None becomes NaN, "1" a number
        except (TypeError, ValueError):
            odd = next((label for label in given if not _is_float(label)), given[0])
            raise InputError(
                f"{name} holds {str(odd)!r}, but two numbers are expected; pass 1 for positives and 0 for the rest, or "
                f"the word for positives as {parameter}."
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


def _read_named(given: list[Any], name: str, positive: Any, parameter: str) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """By the value that was named; nothing (None, NaN or empty text) is a value too, that of unlabelled rows."""
    labels = [None if is_missing_word(str(label)) else label for label in given]
    values = list(dict.fromkeys(labels))
    shown = ", ".join(map(repr, values[:5])) + ", …" * (len(values) > 5)
    if positive not in values:
        raise InputError(f"{parameter} is {positive!r}, but {name} holds {shown}; pass one of them.")
    if len(values) != 2:
        raise InputError(
            f"{name} holds {shown}, but {positive!r} ({parameter}) and one other value, for unlabelled rows, are "
            "expected; write one for all of them."
        )
    other = next(value for value in values if value != positive)
    classes = [other, next(value for value in values if value == positive)]
    return np.array([label == positive for label in labels]), np.array(classes, dtype=object if other is None else None)


def _is_float(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True
