"""The parts of a diagnosis that have a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from priorshift.input.parameters import check_choice
from priorshift.plots.display import pyplot
from priorshift.plots.drivers import DriversDisplay
from priorshift.plots.identification import IdentificationDisplay
from priorshift.plots.planning import PlanningDisplay
from priorshift.plots.sensitivity import SensitivityDisplay
from priorshift.plots.shift import ShiftDisplay
from priorshift.plots.unexplained import LabelShiftDisplay
from priorshift.plots.variants import VariantsDisplay

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
