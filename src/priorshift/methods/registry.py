"""The one table of methods: what `estimate_prior`, the command line and the experiments know of each.

A new estimator is one file and one line here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass

from priorshift.base import TargetPriorEstimator
from priorshift.io.parameters import check_choice
from priorshift.methods.drpu import DRPU
from priorshift.methods.km_ls import KM2LS
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift


@dataclass(frozen=True)
class Method:
    """A method of estimating the target prior.

    Attributes
    ----------
    name : str
        In ``estimate_prior(method=…)`` and ``--method``.
    estimator : type
        Its class.

    Examples
    --------
    >>> from priorshift.methods.registry import choose
    >>> tcpu = choose("tcpu")
    >>> tcpu.label, tcpu.missing(["kernel", "hidden"])
    ('TCPU', ['hidden'])
    """

    name: str
    estimator: type[TargetPriorEstimator]

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
    Method("witness", WitnessShift),
    Method("tcpu", TCPU),
    Method("km2-ls", KM2LS),
    Method("drpu", DRPU),
)


def names() -> tuple[str, ...]:
    """List what a user can ask for.

    Returns
    -------
    tuple of str
        "auto", then the names of the methods.

    Examples
    --------
    >>> from priorshift.methods.registry import names
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
    >>> from priorshift.methods.registry import choose
    >>> choose("auto").name, choose("tcpu").name
    ('witness', 'tcpu')
    """
    check_choice("method", name, names())
    return METHODS[0] if name == "auto" else next(method for method in METHODS if method.name == name)
