"""Labels: the values of y that mean labelled positive, a class or unlabelled, and the classes of audited rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError, LabelOrderWarning
from priorshift.io.cells import as_text, is_missing_word
from priorshift.io.parameters import as_float, check_per_row
from priorshift.warning_records import warn

LEAST = 10  # smallest number of audited rows, and of groups of them, for an estimate
REST = "rest"  # name of the class that nobody labelled
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")  # a whole number as data frames write it if cells of its column are empty


@dataclass(frozen=True, eq=False)
class Audit:
    """Rows of a sample, drawn at random, whose true class was looked up.

    Attributes
    ----------
    index : ndarray of int
        Positions of the audited rows in the sample.
    positive : ndarray of bool
        Whether each of them is positive.

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


@dataclass(frozen=True, eq=False)
class ClassAudit:
    """Rows of a sample, drawn at random, whose true class, one of several, was looked up."""

    index: Index  # positions of the audited rows in the sample
    classes: Index  # number of the class of each

    @classmethod
    def from_column(cls, column: Floats, name: str = "audit") -> ClassAudit:
        """Build the audit from a column of class numbers, NaN if not audited; refuse too few rows with a class."""
        index = _audited_rows(column, name)
        return cls(index, column[index].astype(np.intp))

    def of_class(self, number: int) -> Audit:
        """Return the audit of one class against all others."""
        return Audit(self.index, np.asarray(self.classes == number))


def read_audit(values: Any, rows: int, name: str = "audit") -> Audit:
    """Read the column of an audit: 1 or 0 for rows whose class was looked up, empty for the others.

    Parameters
    ----------
    values : array-like
        Entry for each row: 1 or True for a positive, 0 or False for a negative, also as text; NaN, None or empty text
        for a row that was not audited.
    rows : int
        Number of rows of the sample.
    name : str
        Name of the column in messages.

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
    """Return the audit of a column of 1, 0 and NaN (not audited); refuse it if too few rows have a class."""
    index = _audited_rows(classes, name)
    return Audit(index, np.asarray(classes[index] == 1))


def _audited_rows(column: Floats, name: str) -> Index:
    """Return the positions of audited rows, which are not NaN; refuse too few."""
    index = np.flatnonzero(~np.isnan(column))
    if len(index) < LEAST:
        raise InputError(f"{name} has {len(index)} rows with a class, but at least {LEAST} are needed; look up more.")
    return index


def _audit_entries(values: Any, rows: int, name: str) -> list[Any]:
    """Return the entries of a column of an audit; masked rows were not audited, and are None."""
    if np.ma.isMaskedArray(values):
        mask, values = np.ma.getmaskarray(values), np.ma.getdata(values).astype(object)
        values[mask] = None
    column = check_per_row(values, rows, name, "one entry for each row, empty where the class was not looked up")
    return list(column.tolist())


def read_class_audit(values: Any, rows: int, name: str, classes: Sequence[str]) -> Floats:
    """Return a column of an audit with the names of `classes` as their numbers; NaN for a row not audited."""
    entries, number = _audit_entries(values, rows, name), {label: k for k, label in enumerate(classes)}
    column = np.full(rows, np.nan)
    for row, entry in enumerate(entries):
        if is_missing_word(str(entry)):
            continue
        text = class_name(entry)
        if text not in number:
            other = f"; other classes are {REST!r}" if REST in number else ""
            raise InputError(
                f"{name} holds {entry!r} in row {row} (counting from 0), but one of {', '.join(map(repr, classes))} or "
                f"an empty cell is expected{other}."
            )
        column[row] = number[text]
    return column


def read_named_audit(values: Any, rows: int, name: str, positive: str) -> Floats:
    """Return a column of an audit of one named class, with its name or 1, "rest" or 0, as 1, 0 and NaN."""
    numbers = {positive: 1, REST: 0}
    entries = [entry if entry is None else numbers.get(class_name(entry), entry) for entry in
               _audit_entries(values, rows, name)]  # fmt: skip
    return read_classes(np.array(entries, dtype=object), rows, name)


def read_classes(values: Any, rows: int, name: str) -> Floats:
    """Return a column of an audit as numbers: 1 for a positive, 0 for a negative, NaN for a row not audited."""
    entries = _audit_entries(values, rows, name)
    classes = np.array([_read_class(entry) for entry in entries], dtype=float)
    is_invalid = np.isinf(classes)
    if is_invalid.any():
        row = int(is_invalid.argmax())
        raise InputError(
            f"{name} holds {entries[row]!r} in row {row} (counting from 0), but 1 for a positive, 0 for a negative or "
            "an empty cell is expected."
        )
    return classes


def _read_class(value: Any) -> float:
    """Return 1.0 or 0.0 for an audited class, NaN for a missing value, and infinity for any other entry."""
    text = str(value).strip().lower()
    if is_missing_word(text):
        return float("nan")
    if text in ("true", "false"):
        return float(text == "true")
    number = as_float(text)
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
    """Return a mask of the labelled positives, and the two values of y, first that of unlabelled rows.

    By default the larger of two numbers means labelled positive. The values may be text if `positive_label` is one of
    them; those of a classifier may be text without it, with a warning about their order. Messages call y `name` and
    `positive_label` by the name `parameter`.
    """
    labels = _label_vector(y, rows, name, classifier)
    if positive_label is not None:
        return _read_named(labels.tolist(), name, positive_label, parameter)
    labels = _comparable_labels(labels, name, classifier, parameter)
    values = np.unique(labels)
    if len(values) != 2:
        kind = "continuous values" if labels.dtype.kind == "f" and (values % 1 != 0).any() else "values"
        received = "one class" if len(values) == 1 else f"{len(values)} {kind}"
        # scikit-learn expects these words of a classifier
        prefix = "Only binary classification is supported. " if classifier and len(values) > 2 else ""
        raise InputError(
            f"{prefix}{name} holds {received} ({', '.join(map(str, values[:5].tolist()))}), but labelled positives (1) "
            "and unlabelled rows (0) are both needed; pass two values."
        )
    return np.asarray(labels == values[1]), values


def read_class_labels(
    y: Any, rows: int, name: str = "y", *, unlabeled_label: Any = None, rest: bool = True
) -> tuple[Index, tuple[str, ...]]:
    """Return the number of each row's class, −1 for an unlabelled row, and the names of the classes in sorted order.

    Unlabelled rows have an empty cell or the value `unlabeled_label`; without either, the number 0 or the text "0". If
    there is no `rest`, every row must have a class.
    """
    labels = _label_vector(np.ma.filled(y, None) if np.ma.isMaskedArray(y) else y, rows, name, classifier=False)
    texts = np.array(["" if is_missing_word(str(label)) else class_name(label) for label in labels.tolist()])
    is_unlabeled = texts == ""
    if unlabeled_label is not None:
        stated = class_name(unlabeled_label)
        if stated not in texts:
            shown = ", ".join(map(repr, list(dict.fromkeys(texts[texts != ""].tolist()))[:5]))
            raise InputError(f"unlabeled_label is {unlabeled_label!r}, but {name} holds {shown}; pass one of them.")
        is_unlabeled |= texts == stated
    elif rest and not is_unlabeled.any():
        is_unlabeled = texts == "0"
        if is_unlabeled.any() and "-1" in texts:
            raise InputError(
                f"{name} holds 0 and -1, either of which may mean unlabelled; name the one that does (unlabeled_label, "
                "--unlabeled-label)."
            )
    if rest and not is_unlabeled.any():
        shown = ", ".join(map(repr, list(dict.fromkeys(texts.tolist()))[:5]))
        raise InputError(
            f"{name} holds a class in every row ({shown}), but unlabelled rows are needed; leave their cells empty, "
            "name their value (unlabeled_label, --unlabeled-label), or state that there is no other class (rest=False, "
            "--no-rest)."
        )
    if not rest and is_unlabeled.any():
        raise InputError(
            f"{name} has no class in row {int(is_unlabeled.argmax())} (counting from 0), but every row needs one "
            "if there is no rest; leave such rows out."
        )
    classes, code = np.unique(texts[~is_unlabeled], return_inverse=True)
    number = np.full(rows, -1)
    number[~is_unlabeled] = code.reshape(-1)
    return number, tuple(classes.tolist())


def class_name(label: Any) -> str:
    """Return the name of a class; 1, 1.0, "1" and "1.0" are the same."""
    text = as_text(label)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _label_vector(y: Any, rows: int, name: str, classifier: bool) -> NDArray[Any]:
    """Return y as an array of shape (rows,); refuse None, masked entries and other shapes than (rows,) or (rows, 1).

    A classifier warns of the shape (rows, 1), as scikit-learn's classifiers do.
    """
    if y is None:
        raise InputError("The estimator requires y to be passed, but the target y is None; pass 1 or 0 for each row.")
    if np.ma.is_masked(y):
        raise InputError(f"{name} has masked cells, which have no value; leave their rows out.")
    labels = check_per_row(y, rows, name, "one label for each row")
    if classifier and np.asarray(y).ndim == 2:
        warn(
            f"A column-vector {name} was passed when a 1d array was expected; pass {name}.ravel().",
            DataConversionWarning,
        )
    return labels


def _comparable_labels(labels: NDArray[Any], name: str, classifier: bool, parameter: str) -> NDArray[Any]:
    """Return labels as finite numbers, or unchanged, with a warning, if they are two texts and for a classifier."""
    entries = labels.tolist()
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in entries):
        labels = labels.astype(str)
    if labels.dtype.kind in "UT" and classifier:  # text
        texts = np.unique(labels)
        if len(texts) == 2:
            warn(
                f"{name} holds text: {str(texts[1])!r}, later in the alphabet, is taken as labelled positive and "
                f"{str(texts[0])!r} as unlabelled; pass {parameter} to decide it.",
                LabelOrderWarning,
            )
            return labels
    if labels.dtype.kind not in "biuf":  # neither booleans nor numbers
        try:
            labels = labels.astype(np.float64)  # None becomes NaN, "1" a number
        except (TypeError, ValueError):
            invalid = [label for label in entries if as_float(label) is None] or entries
            raise InputError(
                f"{name} holds {str(invalid[0])!r}, but two numbers are expected; pass 1 for positives and 0 for the "
                f"rest, or name the value of positives by {parameter}."
            ) from None
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"{name} contains NaN or inf; pass 1 for positives and 0 for the rest.")
    return labels


def _read_named(entries: list[Any], name: str, positive: Any, parameter: str) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a mask of the labels equal to `positive`, and the two values of the labels, that of positives last.

    Missing labels count as one value, None. Messages call the labels `name` and `positive` by the name `parameter`.
    """
    labels = [None if is_missing_word(str(label)) else label for label in entries]
    values = list(dict.fromkeys(labels))
    shown = ", ".join(map(repr, values[:5])) + (", …" if len(values) > 5 else "")
    if positive not in values:
        raise InputError(f"{parameter} is {positive!r}, but {name} holds {shown}; pass one of them.")
    if len(values) != 2:
        raise InputError(
            f"{name} holds {shown}, but only {positive!r} ({parameter}) and one other value, for unlabelled rows, are "
            "expected; give all unlabelled rows the same value."
        )
    unlabeled_value, positive_value = values if values[1] == positive else reversed(values)
    dtype = object if unlabeled_value is None else None
    return np.array([label == positive for label in labels]), np.array([unlabeled_value, positive_value], dtype=dtype)
