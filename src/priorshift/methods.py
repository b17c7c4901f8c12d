"""The one table of methods: what `estimate_prior`, the command line and the experiments know of each.

A new estimator is one file and one line here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from priorshift import plots
from priorshift.base import TargetPriorEstimator
from priorshift.drpu import DRPU
from priorshift.input.parameters import check_choice
from priorshift.km_ls import KM2LS
from priorshift.result import PriorEstimate
from priorshift.tcpu import TCPU
from priorshift.witness_shift import WitnessShift


@dataclass(frozen=True)
class Method:
    """A method of estimating the target prior.

    Attributes
    ----------
    name : str
        In ``estimate_prior(method=…)`` and ``--method``.
    estimator : type
        Its class.
    picture : callable
        Draws an estimate, given the fitted estimator and the estimate; returns Axes.

    Examples
    --------
    >>> from priorshift.methods import choose
    >>> tcpu = choose("tcpu")
    >>> tcpu.label, tcpu.missing(["kernel", "hidden"])
    ('TCPU', ['hidden'])
    """

    name: str
    estimator: type[TargetPriorEstimator]
    picture: Callable[[Any, PriorEstimate], Any]

    @property
    def label(self) -> str:  # numpydoc ignore=RT01
        """What results and tables call it."""
        return self.estimator.label

    @property
    def options(self) -> tuple[str, ...]:  # numpydoc ignore=RT01
        """Settings that it takes, the parameters of its class."""
        return tuple(inspect.signature(self.estimator).parameters)

    def missing(self, settings: Iterable[str]) -> list[str]:
        """List the settings that it does not have.

        Parameters
        ----------
        settings : iterable of str
            Names.

        Returns
        -------
        list of str
            In their order.
        """
        return [name for name in settings if name not in self.options]


METHODS: tuple[Method, ...] = (
    Method("witness", WitnessShift, lambda witness, estimate: plots.mixture(witness, estimate)),
    Method("tcpu", TCPU, lambda _, estimate: plots.objective(estimate)),
    Method("km2-ls", KM2LS, lambda _, estimate: plots.distance_curve(estimate.evidence)),
    Method("drpu", DRPU, lambda drpu, estimate: plots.level_sets(drpu, estimate)),
)


def names() -> tuple[str, ...]:
    """List what a user can ask for.

    Returns
    -------
    tuple of str
        "auto", then the names of the methods.

    Examples
    --------
    >>> from priorshift.methods import names
    >>> names()
    ('auto', 'witness', 'tcpu', 'km2-ls', 'drpu')
    """
    return ("auto", *(method.name for method in METHODS))


def choose(name: str) -> Method:
    """Find a method by its name.

    Parameters
    ----------
    name : str
        One of `names`. "auto" is the first, the one of smallest error in the library's studies: WitnessShift.

    Returns
    -------
    Method

    Examples
    --------
    >>> from priorshift.methods import choose
    >>> choose("auto").name, choose("tcpu").name
    ('witness', 'tcpu')
    """
    check_choice("method", name, names())
    return METHODS[0] if name == "auto" else next(method for method in METHODS if method.name == name)
