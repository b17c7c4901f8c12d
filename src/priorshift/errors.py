"""Errors and warnings of the library, to catch or to filter."""

__all__ = [
    "ApproximationWarning",
    "ColumnWarning",
    "DuplicateRowsWarning",
    "EstimatedPriorWarning",
    "FewPositivesWarning",
    "InconsistentInputWarning",
    "InputError",
    "IntervalWarning",
    "MissingExtraError",
    "OutOfRangeWarning",
    "PriorShiftWarning",
    "StoredVersionWarning",
    "WeakSeparationWarning",
]


class InputError(ValueError):
    """The input cannot be used; the message says what was received, what was expected and what to do.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=100, random_state=0)
    >>> try:
    ...     ps.estimate_prior(s.positive, s.unlabeled, s.target[:, :9], source_prior=0.2)
    ... except ps.errors.InputError as error:
    ...     print(error)
    target has 9 features but unlabeled has 10; pass the same columns in the same order.
    """


class InputTypeError(InputError, TypeError):
    """The input is of a type that the library does not read, such as a dictionary of columns."""


class MissingExtraError(InputError, ImportError):
    """An optional package is not installed; the message names the extra that installs it."""


class PriorShiftWarning(UserWarning):
    """Base class of all warnings of the library.

    Examples
    --------
    >>> import warnings
    >>> import priorshift as ps
    >>> warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)  # or "error"
    """


class ApproximationWarning(PriorShiftWarning):
    """The answer is approximate: rows were subsampled, features projected, or a solver did not converge."""


class ColumnWarning(PriorShiftWarning):
    """A column is suspicious or was left out, such as an id or one that holds codes for missing values."""


class DuplicateRowsWarning(PriorShiftWarning):
    """Rows occur more than once: within a sample, or both as positives and as unlabeled rows."""


class EstimatedPriorWarning(PriorShiftWarning):
    """A prior was estimated by a method whose bias or error the interval does not include."""


class FewPositivesWarning(PriorShiftWarning):
    """There are too few positives for a reliable estimate or calibration."""


class InconsistentInputWarning(PriorShiftWarning):
    """Inputs contradict each other: samples look swapped or identical, or an audit disagrees with the source prior."""


class IntervalWarning(PriorShiftWarning):
    """The interval needs care: few groups, a bound that says nothing, or an audit that disagrees with the tables."""


class LabelOrderWarning(PriorShiftWarning):
    """Labels are text, and which of them means positive was decided by alphabetical order."""


class OutOfRangeWarning(PriorShiftWarning):
    """The raw estimate lies at an end of [0, 1] or outside it."""


class PrivacyWarning(PriorShiftWarning):
    """The noise of a private release leaves little information, or its privacy budget protects nobody."""


class StoredVersionWarning(PriorShiftWarning):
    """A stored estimator was fitted by another version of the library, whose results may differ."""


class WeakSeparationWarning(PriorShiftWarning):
    """Positives resemble the rest of the source too much: the data leave the prior open in a range, or entirely."""
