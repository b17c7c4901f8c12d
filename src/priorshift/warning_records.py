"""Issue the library's warnings at the user's line, and record or suppress them within the library."""

import inspect
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from priorshift.errors import ColumnWarning, InputError, PriorShiftWarning

WarningRecord = tuple[type[Warning], str]


class FormatNotice(ColumnWarning):
    """How a file was read; unlike other warnings of columns, it is no reason to doubt the estimate."""


_Recorder = tuple[tuple[type[Warning], ...], list[WarningRecord], bool]  # categories, records, whether to show them too
_recorders: ContextVar[tuple[_Recorder, ...]] = ContextVar("recorders", default=())
_MAX_NAMES = 8  # listed in one message
_LONGEST_NAME = 60  # characters of a name in a message


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the user's line, the first outside this package, unless a recorder intercepts it.

    Recorders are those of the open `record_warnings` contexts, the innermost first.
    """
    for categories, records, show in reversed(_recorders.get()):
        if issubclass(category, categories):
            records.append((category, message))
            if not show:
                return
    package = os.path.join(os.path.dirname(__file__), "")  # folder of this package, with a separator
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def record_warnings(*categories: type[Warning], show: bool) -> Iterator[list[WarningRecord]]:
    """Yield a list that collects the library's warnings of some categories, which are issued only if `show`."""
    records: list[WarningRecord] = []
    token = _recorders.set((*_recorders.get(), (categories, records, show)))
    try:
        yield records
    finally:
        _recorders.reset(token)


@contextmanager
def suppress_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of some categories within the context, because they were issued before."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def list_names(names: Sequence[str]) -> str:
    """Return the first eight names in quotation marks, and how many more there are, for a message; cut long names."""
    shown = (name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in names[:_MAX_NAMES])
    listed = ", ".join(map(repr, shown))
    return listed if len(names) <= _MAX_NAMES else f"{listed} and {len(names) - _MAX_NAMES} more"


class WarningsByName:
    """Collects the warnings of several targets or strata, to issue each message once with the names it is about."""

    def __init__(self, kind: str) -> None:
        """Start without warnings; `kind` is what the names are of, "target" or "stratum"."""
        self.kind = kind
        self.names: list[str] = []
        self.collected: dict[WarningRecord, list[str]] = {}  # the names that each warning was issued for

    @contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Collect the warnings within the context under `name`, and begin the messages of input errors with it."""
        self.names.append(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except InputError as error:
                raise type(error)(f"{self.kind} {name!r}: {error}") from None
        for record in caught:
            self.collected.setdefault((record.category, str(record.message)), []).append(name)

    def issue(self) -> None:
        """Issue each collected warning once; those of the library begin with their names, unless all have them."""
        for (category, message), names in self.collected.items():
            is_common = len(self.names) > 1 and len(names) == len(self.names)
            if issubclass(category, PriorShiftWarning) and not is_common:
                message = f"{self.kind} {list_names(names)}: {message}"
            warn(message, category)
