"""Functions that draw estimates and diagnoses on given or new Axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from priorshift.class_priors import ClassPriors
from priorshift.errors import InputError
from priorshift.io.parameters import check_choice
from priorshift.methods.drpu import DRPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.plots.batches import BatchesDisplay
from priorshift.plots.classes import SharesDisplay, SimplexDisplay
from priorshift.plots.curves import DistanceDisplay, LevelSetsDisplay, ObjectiveDisplay, has_objective
from priorshift.plots.display import Display, check_has, pyplot
from priorshift.plots.samples import MixtureDisplay, PlaneDisplay, ScoresDisplay
from priorshift.plots.sensitivity import IdentificationDisplay, PlanningDisplay, SensitivityDisplay, VariantsDisplay
from priorshift.plots.shift import DriversDisplay, LabelShiftDisplay, ShiftDisplay
from priorshift.plots.targets import SeriesDisplay
from priorshift.results import PriorEstimate
from priorshift.scores.scored_source import LevelSetEvidence, WitnessEvidence
from priorshift.source_prior.km import KM2

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_SIMPLEX_CLASSES = 3  # classes whose shares are a point in a triangle

PARTS: dict[str, Any] = {  # classes of displays with a constructor from_diagnosis, by part of a diagnosis
    "shift_test": ShiftDisplay,
    "label_shift_test": LabelShiftDisplay,
    "identification": IdentificationDisplay,
    "sensitivity": SensitivityDisplay,
    "variants": VariantsDisplay,
    "planning": PlanningDisplay,
    "drivers": DriversDisplay,  # not in the overview
}


def plot_diagnosis(diagnosis: Diagnosis, part: str | None, ax: Any = None) -> Any:
    """Draw one part of a diagnosis, a key of PARTS, on `ax` (default: a new figure) and return its Axes.

    `part` None draws an overview, the first six parts in a new figure, and returns the first Axes.
    """
    if part is not None:
        check_choice("part", part, tuple(PARTS))
        return PARTS[part].from_diagnosis(diagnosis).plot(ax).ax_
    _, axes = pyplot().subplots(3, 2, figsize=(13, 13), layout="constrained")
    for cell, display in zip(axes.ravel(), PARTS.values(), strict=False):  # the seventh part is left out
        display.from_diagnosis(diagnosis).plot(cell)
    return axes[0, 0]


def displays_of(result: PriorEstimate | Mapping[str, PriorEstimate] | Diagnosis) -> dict[str, Display]:
    """Return the pictures of a result, to be drawn by their `plot` or written by :func:`svg`.

    Parameters
    ----------
    result : PriorEstimate, PriorEstimates, ClassPriors or Diagnosis
        An estimate by any method, the estimates of several targets, the shares of several classes, or a diagnosis.

    Returns
    -------
    dict of str to Display
        Empty where the method has no picture, or there is nothing to draw. A diagnosis has one for each part of
        :meth:`Diagnosis.plot`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, random_state=0)
    >>> estimate = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> ps.plots.displays_of(estimate)
    {'objective': <ObjectiveDisplay: Which target prior fits best>}
    """
    if isinstance(result, ClassPriors):
        pictures: dict[str, Display] = {"shares": SharesDisplay.from_estimates(result)}
        if len(result) == _SIMPLEX_CLASSES and result.mixture is not None:
            pictures["simplex"] = SimplexDisplay.from_estimates(result)
        return pictures
    if isinstance(result, Mapping):
        return {"series": SeriesDisplay.from_estimates(result)}
    if not isinstance(result, PriorEstimate):
        check_has(result, "sensitivity", "an estimate or a diagnosis", "estimate_prior or diagnose")
        return {part: display.from_diagnosis(result) for part, display in PARTS.items()}
    if isinstance(result.evidence, WitnessEvidence):
        return {"scores": ScoresDisplay.from_estimate(result), "mixture": MixtureDisplay.from_estimate(result)}
    if isinstance(result.evidence, LevelSetEvidence):
        return {"level_sets": LevelSetsDisplay.from_estimate(result)}
    if isinstance(result.evidence, KM2):
        return {"distance_curve": DistanceDisplay.from_estimate(result)}
    return {"objective": ObjectiveDisplay.from_estimate(result)} if has_objective(result) else {}


def objective(estimate: PriorEstimate, ax: Any = None, *, truth: float | None = None) -> Any:
    """Draw TCPU's objective above its minimum, L(γ) − min L, with the estimate and its interval.

    Parameters
    ----------
    estimate : PriorEstimate
        An estimate by TCPU.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.
    truth : float or None
        True target prior, if known.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> ax = ps.plots.objective(ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target), truth=0.6)
    >>> ax.get_xlabel()
    'target prior γ'
    """
    return ObjectiveDisplay.from_estimate(estimate, truth=truth).plot(ax).ax_


def series(estimates: Mapping[str, PriorEstimate], ax: Any = None) -> Any:
    """Draw the estimates of several targets side by side, with their intervals and the simultaneous band.

    Parameters
    ----------
    estimates : PriorEstimates or mapping of str to PriorEstimate
        Estimates by the name of their target. Names that are ISO dates, months or years are put in the order of time.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    >>> ax = ps.plots.series({"2024-01": tcpu.estimate(s.target[:150]), "2024-02": tcpu.estimate(s.target[150:])})
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['2024-01', '2024-02']
    """
    return SeriesDisplay.from_estimates(estimates).plot(ax).ax_


def monitor(monitor: Any, ax: Any = None, *, series: str | Sequence[str] | None = None) -> Any:
    """Draw the batches of a monitor over time, with their intervals, the reference, the levels and the alarms.

    Parameters
    ----------
    monitor : Monitor or list of MonitorPoint
        A monitor with at least one batch, or some of its points. Points alone have no levels, and a reference only if
        it is the first batches.
    ax : matplotlib Axes, sequence of Axes or None
        Where to draw; one for each series. Default: a new figure.
    series : str, sequence of str or None
        Series to draw. Default: all, up to 12, those with alarms first.

    Returns
    -------
    list of matplotlib Axes
        One for each series.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.2, n_source=400, n_target=600, shared=False, random_state=0)
    >>> monitor = ps.Monitor(0.2, level=0.5).fit_samples(s.positive, s.unlabeled)
    >>> for day in range(3):
    ...     point = monitor.update(s.target[200 * day : 200 * day + 200], name=f"2026-11-1{day}")
    >>> [ax] = ps.plots.monitor(monitor)
    >>> ax.get_ylabel()
    'share'
    """
    axes = BatchesDisplay.from_monitor(monitor, series).plot(ax).ax_
    return [axes] if hasattr(axes, "figure") else axes


def class_shares(priors: ClassPriors, ax: Any = None) -> Any:
    """Draw the share of each class with its interval, the simultaneous band and its share in the source.

    Parameters
    ----------
    priors : ClassPriors
        Shares of several classes in one target.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> priors = ps.MulticlassShift({"a": 0.2, "b": 0.3}, random_state=0).fit(s.X, s.y).estimate(s.target)
    >>> ps.plots.class_shares(priors).get_xlabel()
    'share'
    """
    return SharesDisplay.from_estimates(priors).plot(ax).ax_


def simplex(priors: ClassPriors, ax: Any = None) -> Any:
    """Draw the shares of three classes as a point in a triangle, with their joint confidence region.

    Parameters
    ----------
    priors : ClassPriors
        Shares of two labelled classes and a rest, or of three labelled classes.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> priors = ps.MulticlassShift({"a": 0.2, "b": 0.3}, random_state=0).fit(s.X, s.y).estimate(s.target)
    >>> ax = ps.plots.simplex(priors)
    >>> [text.get_text() for text in ax.texts]
    ['a', 'b', 'rest']
    """
    check_has(priors, "covariance", "the shares of several classes", "estimate_prior")
    if len(priors) != _SIMPLEX_CLASSES:
        raise InputError(f"a triangle has three corners, but there are {len(priors)} classes; use class_shares.")
    return SimplexDisplay.from_estimates(priors).plot(ax).ax_


def mixture(estimator: WitnessShift, target: Any = None, ax: Any = None) -> Any:
    """Draw the p-values of population and target, with the fitted mixtures and their priors.

    Parameters
    ----------
    estimator : WitnessShift
        A fitted estimator.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or their estimate. Default: only the source is drawn.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> ax = ps.plots.mixture(ps.WitnessShift(0.2, random_state=0).fit(s.X, s.y), s.target)
    >>> ax.get_xlabel()
    'p-value among the positives'
    """
    return MixtureDisplay.from_estimator(estimator, target).plot(ax).ax_


def level_sets(drpu: DRPU, target: Any = None, ax: Any = None) -> Any:
    """Draw DRPU's ratio of shares against the share of positives, for the source population and a target.

    Parameters
    ----------
    drpu : DRPU
        A fitted estimator.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or their estimate. Default: only the source is drawn.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> from sklearn.linear_model import LogisticRegression
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=600, n_target=300, shared=False, random_state=0)
    >>> drpu = ps.DRPU(0.2, model=LogisticRegression(), random_state=0).fit(s.X, s.y)
    >>> ax = ps.plots.level_sets(drpu)
    >>> ax.get_xlabel()
    'share of positives above the threshold'
    """
    return LevelSetsDisplay.from_estimator(drpu, target).plot(ax).ax_


def distance_curve(km: KM2, ax: Any = None, *, prior: ArrayLike | None = None) -> Any:
    """Draw KM's distance d(λ) against the prior 1 − 1/λ, with its slope, the threshold and the estimate.

    Parameters
    ----------
    km : KM1 or KM2
        A fitted estimator.
    ax : matplotlib Axes or None
        Where to draw. Default: a new figure.
    prior : array-like or None
        Priors at which to draw the curve. Default: around the estimate.

    Returns
    -------
    matplotlib Axes
        For the distance; its slope has an axis on the right.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> ax = ps.plots.distance_curve(ps.KM2().fit(s.X, s.y))
    >>> ax.get_xlabel()
    'prior 1 − 1/λ'
    """
    return DistanceDisplay.from_estimator(km, prior=prior).plot(ax).ax_


def label_shift(positive: Any, unlabeled: Any, target: Any, axes: Sequence[Any] | None = None) -> Any:
    """Draw source and target side by side: labelled positives, unlabelled rows, target rows.

    With more than two features the rows are projected on the two principal components of the standardised
    unlabelled sample; with one, they are drawn against a random height.

    Parameters
    ----------
    positive, unlabeled, target : as in :func:`priorshift.estimate_prior`
    axes : pair of matplotlib Axes or None
        Where to draw source and target. Default: a new figure.

    Returns
    -------
    pair of matplotlib Axes

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> source, target = ps.plots.label_shift(s.positive, s.unlabeled, s.target)
    >>> source.get_title(), target.get_title()
    ('source', 'target')
    """
    return PlaneDisplay.from_samples(positive, unlabeled, target).plot(axes).ax_
