"""What the library says when an input or a result cannot be trusted."""

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sklearn.exceptions import ConvergenceWarning

Said = tuple[type[Warning], str]
_Listener = tuple[tuple[type[Warning], ...], list[Said], bool]  # to what kinds, what it heard, whether nobody else does
_listeners: ContextVar[tuple[_Listener, ...]] = ContextVar("who listens", default=())


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside this package: the line that the user wrote.

    Parameters
    ----------
    message : str
    category : type
        A class of warnings.
    """
    for categories, said, alone in reversed(_listeners.get()):
        if issubclass(category, categories):
            said.append((category, message))
            if alone:
                return
    home = os.path.join(os.path.dirname(__file__), "")
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def overheard(*categories: type[Warning]) -> Iterator[list[Said]]:
    """Keep what is warned of some kinds, which is said all the same, unless the user does not want to hear it.

    Parameters
    ----------
    *categories : type
        Classes of warnings.

    Yields
    ------
    list of (type, str)
        To which warnings are added, with their messages.
    """
    with _heard(categories, alone=False) as said:
        yield said


@contextmanager
def kept_back(*categories: type[Warning]) -> Iterator[list[Said]]:
    """Keep what is warned of some kinds, and say it to nobody: on another machine, nobody would hear it.

    Parameters
    ----------
    *categories : type
        Classes of warnings.

    Yields
    ------
    list of (type, str)
        To which warnings are added, with their messages; whoever gets it is to say them.
    """
    with _heard(categories, alone=True) as said:
        yield said


@contextmanager
def _heard(categories: tuple[type[Warning], ...], alone: bool) -> Iterator[list[Said]]:
    said: list[Said] = []
    token = _listeners.set((*_listeners.get(), (categories, said, alone)))
    try:
        yield said
    finally:
        _listeners.reset(token)


@contextmanager
def unsaid(*categories: type[Warning]) -> Iterator[None]:
    """Leave out warnings of some kinds, where they were given before.

    Parameters
    ----------
    *categories : type
        Classes of warnings.
    """
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


class InputError(ValueError):
    """The input cannot be used; the message says what was got, what was expected and what to do."""


class InputTypeError(InputError, TypeError):
    """The input is of a kind the library does not read, such as a sparse matrix."""


class MissingExtraError(InputError, ImportError):
    """A package is needed that is not installed; the message names the extra that brings it."""


class PriorShiftWarning(UserWarning):
    """Base class of the library's statistical warnings; silence or escalate them all with it."""


class WeakSeparationWarning(PriorShiftWarning):
    """Positives and the unlabelled sample are too alike for the data to tell the target prior."""


class OutOfRangeWarning(PriorShiftWarning):
    """The raw estimate lies outside [0, 1] by more than sampling error explains."""


class BoundaryWarning(PriorShiftWarning):
    """The estimate lies at an end of the unit interval, where every decision would be the same."""


class VacuousBoundWarning(PriorShiftWarning):
    """A finite-sample bound is as wide as [0, 1] and says nothing about these data."""


class SharedRowsWarning(PriorShiftWarning):
    """Many positives also occur in the unlabelled sample, and nobody said whether they are the same rows."""


class LabelOrderWarning(PriorShiftWarning):
    """Which of two words means positive was decided by the alphabet."""


class FewPositivesWarning(PriorShiftWarning):
    """So few positives that an estimate of the source prior, or a calibration, is a guess."""


class SubsampleWarning(PriorShiftWarning):
    """Not all rows were used."""


class ProjectionWarning(PriorShiftWarning):
    """The features were projected on their principal components."""


class EstimatedPriorWarning(PriorShiftWarning):
    """A prior was estimated by a method whose bias the interval cannot include, or whose error is not known."""


class FewGroupsWarning(PriorShiftWarning):
    """Rows come in few groups, so that an interval is rough."""


class DuplicateRowsWarning(PriorShiftWarning):
    """Many rows are copies of others."""


class OverlapWarning(PriorShiftWarning):
    """The classes overlap, so that the tables leave the source prior open in a range."""


class AuditWarning(PriorShiftWarning):
    """Classes that were looked up contradict what was known or estimated without them."""


class NotConvergedWarning(PriorShiftWarning, ConvergenceWarning):
    """A solver stopped short of its tolerance."""


class StoredVersionWarning(PriorShiftWarning):
    """A stored estimator was fitted by another version of the library, whose answers may differ."""


class ColumnWarning(PriorShiftWarning):
    """A column was left out, or should be: it tells nothing of the source, counts rows, or is another in the target."""


class FarValueWarning(ColumnWarning):
    """A column holds a value so far from all others that it may be a code for a missing one."""


class SampleWarning(PriorShiftWarning):
    """A sample looks like another one: passed twice, or two of them swapped."""


class PrivacyWarning(PriorShiftWarning):
    """Noise that hides rows leaves hardly anything of them, or its budget hides nothing."""


class WarningsByName:
    """What is warned of each of several parts, said once: of all alike as it is, of some with their names.

    Parameters
    ----------
    what : str
        What a part is, such as "target".
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.names: list[str] = []
        self.said: dict[tuple[type[Warning], str], list[str]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Listen while a part is looked at; an error of it says whose it is.

        Parameters
        ----------
        name : str
            The part's.
        """
        self.names.append(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except InputError as error:
                raise type(error)(f"{self.what} {name!r}: {error}") from None
        for one in caught:
            self.said.setdefault((one.category, str(one.message)), []).append(name)

    def say(self) -> None:
        """Say what was heard."""
        for (category, message), names in self.said.items():
            alike = len(names) == len(self.names) > 1
            if issubclass(category, PriorShiftWarning) and not alike:
                few = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
                message = f"{self.what} {few}: {message}"
            warn(message, category)
