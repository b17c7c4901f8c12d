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

    Examples
    --------
    >>> from priorshift.errors import FewPositivesWarning, record_warnings, warn
    >>> with record_warnings(FewPositivesWarning) as said:
    ...     warn("Only 3 positives.", FewPositivesWarning)
    >>> said[0][1]
    'Only 3 positives.'
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
def intercept_warnings(*categories: type[Warning]) -> Iterator[list[Said]]:
    """Keep what is warned of some kinds, which is said all the same, unless the user does not want to hear it.

    Parameters
    ----------
    *categories : type
        Classes of warnings.

    Yields
    ------
    list of (type, str)
        To which warnings are added, with their messages.

    Examples
    --------
    >>> import warnings
    >>> from priorshift.errors import FewPositivesWarning, intercept_warnings, warn
    >>> with warnings.catch_warnings(record=True) as shown, intercept_warnings(FewPositivesWarning) as said:
    ...     warnings.simplefilter("always")
    ...     warn("Only 3 positives.", FewPositivesWarning)
    >>> len(said), len(shown)
    (1, 1)
    """
    with _heard(categories, alone=False) as said:
        yield said


@contextmanager
def record_warnings(*categories: type[Warning]) -> Iterator[list[Said]]:
    """Keep what is warned of some kinds, and say it to nobody: on another machine, nobody would hear it.

    Parameters
    ----------
    *categories : type
        Classes of warnings.

    Yields
    ------
    list of (type, str)
        To which warnings are added, with their messages; whoever gets it is to say them.

    Examples
    --------
    >>> from priorshift.errors import FewPositivesWarning, record_warnings, warn
    >>> with record_warnings(FewPositivesWarning) as said:
    ...     warn("Only 3 positives.", FewPositivesWarning)
    >>> [(category.__name__, message) for category, message in said]
    [('FewPositivesWarning', 'Only 3 positives.')]
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
def suppress_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Leave out warnings of some kinds, where they were given before.

    Parameters
    ----------
    *categories : type
        Classes of warnings.

    Examples
    --------
    >>> from priorshift.errors import FewPositivesWarning, suppress_warnings, warn
    >>> with suppress_warnings(FewPositivesWarning):
    ...     warn("Only 3 positives.", FewPositivesWarning)
    """
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


class InputError(ValueError):
    """The input cannot be used; the message says what was got, what was expected and what to do.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=100, random_state=0)
    >>> ps.estimate_prior(s.positive, s.unlabeled, s.target[:, :9], source_prior=0.2)
    Traceback (most recent call last):
        ...
    priorshift.errors.InputError: target has 9 features but unlabeled has 10; pass the same columns in the same
    order.
    """


class InputTypeError(InputError, TypeError):
    """The input is of a kind the library does not read, such as a mapping of columns.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=100, random_state=0)
    >>> ps.estimate_prior(s.positive, s.unlabeled, {"age": [50, 61]})
    Traceback (most recent call last):
        ...
    priorshift.errors.InputTypeError: target is a mapping, but a table is expected; pass
    pandas.DataFrame(target).
    """


class MissingExtraError(InputError, ImportError):
    """A package is needed that is not installed; the message names the extra that brings it.

    Examples
    --------
    >>> from priorshift.errors import InputError, MissingExtraError
    >>> issubclass(MissingExtraError, (InputError, ImportError))
    True
    >>> str(MissingExtraError('torch is not installed; run pip install "priorshift[torch]".'))
    'torch is not installed; run pip install "priorshift[torch]".'
    """


class PriorShiftWarning(UserWarning):
    """Base class of the library's statistical warnings; silence or escalate them all with it.

    Examples
    --------
    >>> import warnings
    >>> import priorshift as ps
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)  # or "error"
    ...     ps.errors.warn("Only 3 positives.", ps.errors.FewPositivesWarning)
    """


class WeakSeparationWarning(PriorShiftWarning):
    """Positives and the unlabelled sample are too alike for the data to tell the target prior.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X, y = rng.normal(size=(60, 3)), np.repeat([1, 0], [20, 40])
    >>> with ps.errors.record_warnings(ps.errors.WeakSeparationWarning) as said:
    ...     estimate = ps.TCPU(0.2).fit(X, y).estimate(X[20:])
    >>> print(said[0][1])
    No estimate: the separation of 20 positive from 40 unlabeled rows is −0.00014, not positive, so the data
    cannot tell positives from the source population; every prior in [0, 1] is possible. Collect more positives,
    or features that tell the classes apart.
    """


class OutOfRangeWarning(PriorShiftWarning):
    """The raw estimate lies outside [0, 1] by more than sampling error explains.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.5, 0.05, n_source=400, n_target=400, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.OutOfRangeWarning) as said:
    ...     estimate = ps.TCPU(0.1).fit(s.X, s.y).estimate(s.target)  # a half is the truth
    >>> print(said[0][1])
    The raw estimate −0.557 lies outside [0, 1] by more than its sampling error (0.11); check the source prior
    (0.1) and whether the classes look the same in source and target.
    """


class BoundaryWarning(PriorShiftWarning):
    """The estimate lies at an end of the unit interval, where every decision would be the same.

    Examples
    --------
    >>> import priorshift as ps
    >>> from sklearn.linear_model import LogisticRegression
    >>> s = ps.simulate.gaussian(0.2, 0.01, n_source=300, n_target=300, shared=False, random_state=0)
    >>> negatives = s.target[~s.target_labels][:100]
    >>> shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.2), random_state=0).fit(s.X, s.y)
    >>> with ps.errors.record_warnings(ps.errors.BoundaryWarning) as said:
    ...     shifted = shifted.adapt(negatives)
    >>> print(said[0][1])
    The estimate −0.039 (standard error 0.054) lies at or beyond an end of [0, 1], where all rows would be
    decided alike; decisions are made for a target prior of 0.032, what the error leaves inside. Pass a prior
    that you know to adapt_to.
    """


class VacuousBoundWarning(PriorShiftWarning):
    """A finite-sample bound is as wide as [0, 1] and says nothing about these data.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.VacuousBoundWarning) as said:
    ...     estimate = ps.TCPU(0.2, interval="sharp-bound").fit(s.X, s.y).estimate(s.target)
    >>> print(said[0][1])
    The sharp-bound is vacuous: with 33 positive, 167 unlabeled and 200 target rows it allows an error of 0.62,
    so every prior in [0, 1]; use interval='delta', or collect more rows.
    """


class SharedRowsWarning(PriorShiftWarning):
    """Many positives also occur in the unlabelled sample, and nobody said whether they are the same rows.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.SharedRowsWarning) as said:
    ...     estimate = ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2, method="tcpu")
    >>> print(said[0][1])
    29 of 33 positive rows also stand in the unlabeled table. If they are the same observations, pass
    shared='identical' or the name of an id column; otherwise the estimate and its interval are off.
    """


class LabelOrderWarning(PriorShiftWarning):
    """Which of two words means positive was decided by the alphabet.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.2), random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.LabelOrderWarning) as said:
    ...     shifted = shifted.fit(s.X, np.where(s.y == 1, "yes", "no"))
    >>> print(said[0][1])
    y holds text: 'yes', the later one in the alphabet, is taken for labelled positives and 'no' for unlabelled
    rows; pass positive_label to be sure.
    """


class FewPositivesWarning(PriorShiftWarning):
    """So few positives that an estimate of the source prior, or a calibration, is a guess.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, distance=3, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.FewPositivesWarning) as said:
    ...     km2 = ps.KM2().fit(s.X[30:], s.y[30:])
    >>> print(said[0][1])
    The prior rests on 3 positive rows, too few for KM2 to see how positives are spread; take it as a guess, and
    collect at least 5.
    """


class SubsampleWarning(PriorShiftWarning):
    """Not all rows were used.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=9000, n_target=10, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.SubsampleWarning) as said:
    ...     km2 = ps.KM2(max_rows=1000, random_state=0).fit(s.X, s.y)
    >>> print(said[0][1])
    KM2 uses 8000 of 9000 rows, drawn at random, since its time grows with their square; raise max_rows above
    4000 to use more.
    """


class ProjectionWarning(PriorShiftWarning):
    """The features were projected on their principal components.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=10, dimension=60, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.ProjectionWarning) as said:
    ...     km2 = ps.KM2().fit(s.X, s.y)
    >>> print(said[0][1])
    KM2 projects 60 features on their first 50 principal components, as its authors do; pass components=None to
    use all features.
    """


class EstimatedPriorWarning(PriorShiftWarning):
    """A prior was estimated by a method whose bias the interval cannot include, or whose error is not known.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> tcpu = ps.TCPU().fit(s.X, s.y)
    >>> with ps.errors.record_warnings(ps.errors.EstimatedPriorWarning) as said:
    ...     estimate = tcpu.estimate(s.target)
    >>> print(said[0][1])
    The source prior 0.228 was estimated by KM2. The interval includes the sampling error of the three samples
    and of that estimate (0.035), but not its bias: it was off by −0.06 to +0.05 on the paper's synthetic data,
    at 200 rows and at 2000 (see the guide).
    """


class FewGroupsWarning(PriorShiftWarning):
    """Rows come in few groups, so that an interval is rough.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    >>> with ps.errors.record_warnings(ps.errors.FewGroupsWarning) as said:
    ...     estimate = tcpu.estimate(s.target, groups=np.arange(300) % 4)
    >>> print(said[0][1])
    The groups of the target are worth 4.0 of equal size; with fewer than 20 an interval holds less often than
    it says. Take it as a rough one, or use smaller groups.
    """


class DuplicateRowsWarning(PriorShiftWarning):
    """Many rows are copies of others.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    >>> with ps.errors.record_warnings(ps.errors.DuplicateRowsWarning) as said:
    ...     estimate = tcpu.estimate(np.tile(s.target, (3, 1)))
    >>> print(said[0][1])
    600 of 900 target rows are copies of others, in columns that do not repeat by chance; they are taken as one
    observation. Leave them out, unless they mean something.
    """


class OverlapWarning(PriorShiftWarning):
    """The classes overlap, so that the tables leave the source prior open in a range.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=600, n_target=300, distance=0.3, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.OverlapWarning) as said:
    ...     prior = ps.MixturePrior(random_state=0).fit(s.X, s.y)
    >>> print(said[0][1])
    The classes overlap (one negative in 4 looks more positive than a positive), so the tables leave the source
    prior open from 0.00 to 0.35; the ratio of negatives is not affected. A known source_prior, a range of it, a
    survey or a few audited rows would narrow the interval.
    """


class AuditWarning(PriorShiftWarning):
    """Classes that were looked up contradict what was known or estimated without them.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> from scipy import stats
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=600, n_target=300, shared=False, random_state=0)
    >>> classes = np.append(np.full(len(s.positive), True), s.unlabeled_labels)
    >>> audit = np.where((s.y == 0) & (np.arange(len(s.y)) % 3 == 0), classes, np.nan)
    >>> witness = ps.WitnessShift(stats.beta(80, 20), random_state=0).fit(s.X, s.y, audit=audit)
    >>> with ps.errors.record_warnings(ps.errors.AuditWarning) as said:
    ...     estimate = witness.estimate(s.target)
    >>> print(said[0][1])
    The audit of 166 of 500 rows contradicts what source_prior tells: the source prior is 0.205 by the audit
    (99.9% interval 0.140 to 0.281), and 0.800 (0.652 to 0.910) without it. The audit alone is used; if its rows
    were drawn at random, it is wrong, or the labelled positives do not look like those of the unlabelled rows.
    """


class NotConvergedWarning(PriorShiftWarning, ConvergenceWarning):
    """A solver stopped short of its tolerance.

    Examples
    --------
    >>> import priorshift as ps
    >>> from sklearn.exceptions import ConvergenceWarning
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=10, shared=False, random_state=0)
    >>> ps.KM2().fit(s.X, s.y).converged_
    True
    >>> issubclass(ps.errors.NotConvergedWarning, ConvergenceWarning)
    True
    """


class StoredVersionWarning(PriorShiftWarning):
    """A stored estimator was fitted by another version of the library, whose answers may differ.

    Examples
    --------
    >>> import priorshift as ps
    >>> import pickle
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=10, shared=False, random_state=0)
    >>> tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    >>> tcpu._version = "0.0.1"  # as if it were old
    >>> with ps.errors.record_warnings(ps.errors.StoredVersionWarning) as said:
    ...     tcpu = pickle.loads(pickle.dumps(tcpu))
    >>> print(said[0][1].split(",")[0])
    A stored estimator was fitted by priorshift 0.0.1
    """


class ColumnWarning(PriorShiftWarning):
    """A column was left out, or should be: it tells nothing of the source, counts rows, or is another in the target.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.ColumnWarning) as said:
    ...     tcpu = ps.TCPU(0.2).fit(np.column_stack([s.X, np.ones(len(s.X))]), s.y)
    ...     estimate = tcpu.estimate(np.column_stack([s.target, np.arange(300) % 2]))
    >>> print(said[0][1])
    Left out column 10: constant in the population sample but not in target, which label shift does not allow;
    check how these columns were made.
    """


class FarValueWarning(ColumnWarning):
    """A column holds a value so far from all others that it may be a code for a missing one.

    Examples
    --------
    >>> import priorshift as ps
    >>> import numpy as np
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> X = s.X.copy()
    >>> X[-5:, 0] = 9999
    >>> with ps.errors.record_warnings(ps.errors.FarValueWarning) as said:
    ...     tcpu = ps.TCPU(0.2).fit(X, s.y)
    >>> print(said[0][1])
    In X, column 0 holds 9999 in 5 rows, 9235 spreads from the rest; a code for a missing value? Leave these
    rows out, or write what is known.
    """


class SampleWarning(PriorShiftWarning):
    """A sample looks like another one: passed twice, or two of them swapped.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.SampleWarning) as said:
    ...     estimate = ps.estimate_prior(s.positive, s.unlabeled, s.unlabeled, source_prior=0.2, random_state=0)
    >>> print(said[0][1])
    250 of 250 rows of target also stand in unlabeled, so both seem to be samples of one population; pass a
    sample of the new one as target.
    """


class PrivacyWarning(PriorShiftWarning):
    """Noise that hides rows leaves hardly anything of them, or its budget hides nothing.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Histogram, ScoreModel
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=60, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> with ps.errors.record_warnings(ps.errors.PrivacyWarning) as said:
    ...     released = Histogram.of(s.target, like=model).release(epsilon=0.1, delta=1e-6, random_state=0)
    >>> print(said[0][1])
    The noise for epsilon 0.1 and delta 1e-06 moves the share of 60 rows that look positive by about 1.3, so
    hardly anything of them is left; allow a larger epsilon, or release 780 rows and more.
    """


class WarningsByName:
    """What is warned of each of several parts, said once: of all alike as it is, of some with their names.

    Parameters
    ----------
    what : str
        What a part is, such as "target".

    Examples
    --------
    >>> from priorshift.errors import FewPositivesWarning, WarningsByName, record_warnings, warn
    >>> heard = WarningsByName("target")
    >>> for month in ("May", "June"):
    ...     with heard.of(month):
    ...         if month == "May":
    ...             warn("few rows.", FewPositivesWarning)
    >>> with record_warnings(FewPositivesWarning) as said:
    ...     heard.say()
    >>> said[0][1]
    "target 'May': few rows."
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
