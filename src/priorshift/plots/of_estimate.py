"""The pictures that an estimate has by itself."""

from __future__ import annotations

from priorshift.km import KM2
from priorshift.plots.display import Display
from priorshift.plots.distance import DistanceDisplay
from priorshift.plots.objective_curve import ObjectiveDisplay, has_objective
from priorshift.plots.p_values import MixtureDisplay
from priorshift.plots.scores import ScoresDisplay
from priorshift.plots.shares import LevelSetsDisplay
from priorshift.result import PriorEstimate
from priorshift.scores.evidence import LevelSetEvidence, WitnessEvidence


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
