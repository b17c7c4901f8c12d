"""Issue the library's warnings at the user's line, and record or suppress them within the library."""

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from priorshift.errors import InputError, PriorShiftWarning

WarningRecord = tuple[type[Warning], str]
_Recorder = tuple[tuple[type[Warning], ...], list[WarningRecord], bool]  # categories, records, whether to show them too
_recorders: ContextVar[tuple[_Recorder, ...]] = ContextVar("recorders", default=())
_MAX_NAMES = 8  # listed in one message


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the user's line, the first outside this package; recorders may intercept it."""
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
    """Ignore warnings of some categories, because they were issued before."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


class WarningsByName:
    """Collects the warnings of several parts, to issue each message once with the names of the parts it is about."""

    def __init__(self, kind: str) -> None:
        """Start without warnings; `kind` is what the parts are, such as "target"."""
        self.kind = kind
        self.names: list[str] = []
        self.collected: dict[WarningRecord, list[str]] = {}  # names of the parts with each warning

    @contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Collect the warnings of the part `name`, and add its name to errors."""
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
        """Issue each collected warning once, with the names of its parts unless all parts have it."""
        for (category, message), names in self.collected.items():
            is_common = len(names) == len(self.names) > 1
            if issubclass(category, PriorShiftWarning) and not is_common:
                more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
                message = f"{self.kind} {', '.join(map(repr, names[:_MAX_NAMES]))}{more}: {message}"
            warn(message, category)
