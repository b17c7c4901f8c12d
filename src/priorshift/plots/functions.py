"""The pictures that an estimate has by itself.

The parts of a diagnosis that have a picture.

Pictures in one call, on Axes that the caller gives, or on new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from numpy.typing import ArrayLike

from priorshift.io.parameters import check_choice
from priorshift.methods.drpu import DRPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.plots.columns import DriversDisplay, LabelShiftDisplay
from priorshift.plots.curves import DistanceDisplay, LevelSetsDisplay, ObjectiveDisplay, has_objective
from priorshift.plots.display import Display, pyplot
from priorshift.plots.ratio import PlanningDisplay, ShiftDisplay
from priorshift.plots.samples import PlaneDisplay
from priorshift.plots.scores import MixtureDisplay, ScoresDisplay
from priorshift.plots.source_prior import IdentificationDisplay, SensitivityDisplay
from priorshift.plots.targets import SeriesDisplay
from priorshift.plots.variants import VariantsDisplay
from priorshift.results import PriorEstimate
from priorshift.scores.scored_source import LevelSetEvidence, WitnessEvidence
from priorshift.source_prior.km import KM2


def displays_of(estimate: PriorEstimate) -> list[Display]:
    """Give the pictures of an estimate, by its method.

    Parameters
    ----------
    estimate : PriorEstimate
        By any method.

    Returns
    -------
    list of Display
        Empty where the method has no picture, or there is nothing to draw.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, random_state=0)
    >>> estimate = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> [display.title for display in ps.plots.displays_of(estimate)]
    ['Which target prior fits best']
    """
    if isinstance(estimate.evidence, WitnessEvidence):
        return [ScoresDisplay.from_estimate(estimate), MixtureDisplay.from_estimate(estimate)]
    if isinstance(estimate.evidence, LevelSetEvidence):
        return [LevelSetsDisplay.from_estimate(estimate)]
    if isinstance(estimate.evidence, KM2):
        return [DistanceDisplay.from_estimate(estimate)]
    return [ObjectiveDisplay.from_estimate(estimate)] if has_objective(estimate) else []


if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis


class _OfDiagnosis(Protocol):
    """A picture that is made of a diagnosis."""

    ax_: Any

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> Self: ...
    def plot(self, ax: Any = None) -> Self: ...


_TOGETHER: dict[str, type[_OfDiagnosis]] = {
    "shift_test": ShiftDisplay,
    "label_shift_test": LabelShiftDisplay,
    "identification": IdentificationDisplay,
    "sensitivity": SensitivityDisplay,
    "variants": VariantsDisplay,
    "planning": PlanningDisplay,
}
PARTS: dict[str, type[_OfDiagnosis]] = _TOGETHER | {"drivers": DriversDisplay}


def draw_parts(diagnosis: Diagnosis, part: str | None, ax: Any = None) -> Any:
    """Draw one part of a diagnosis, or six of them in one figure.

    Parameters
    ----------
    diagnosis : Diagnosis
        What is drawn.
    part : str or None
        Which.
    ax : matplotlib Axes or None
        Where to draw one part.

    Returns
    -------
    matplotlib Axes
        Of several, the first.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> found = ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    >>> ax = ps.plots.draw_parts(found, "shift_test")
    >>> len(ax.lines) > 0
    True
    """
    if part is not None:
        check_choice("part", part, tuple(PARTS))
        return PARTS[part].from_diagnosis(diagnosis).plot(ax).ax_
    axes = pyplot().subplots(3, 2, figsize=(13, 13), layout="constrained")[1].ravel()
    for one, display in zip(axes, _TOGETHER.values(), strict=True):
        display.from_diagnosis(diagnosis).plot(one)
    return axes[0]


def objective(estimate: PriorEstimate, ax: Any = None, *, truth: float | None = None) -> Any:
    """Draw the objective above its minimum, L(γ) − min L, with the estimate and its interval.

    Parameters
    ----------
    estimate : PriorEstimate
        Of a method with a kernel.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.
    truth : float or None
        The true prior, where it is known.

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
    """Draw the estimates of several targets side by side, with their intervals and the band that holds all at once.

    Parameters
    ----------
    estimates : PriorEstimates or mapping of str to PriorEstimate
        In the order of time where the names are dates, months or years as ISO writes them, else in their own.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

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


def mixture(estimator: WitnessShift, target: Any = None, ax: Any = None) -> Any:
    """Draw the p-values of population and target, with the fitted mixtures and the level of their positives.

    Parameters
    ----------
    estimator : WitnessShift
        Fitted.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or what the estimator said of them; None draws the source alone.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

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
        Fitted.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or what the estimator said of them; None draws the source alone.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

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
        Fitted.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.
    prior : array-like or None
        Priors to draw the curve at; around the estimate by default.

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
        For the source and for the target; a new figure by default.

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
