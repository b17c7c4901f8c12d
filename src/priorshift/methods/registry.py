"""Table of all methods, for `estimate_prior`, the command line and the experiments.

A new estimator is one file and one line here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from priorshift.base import TargetPriorEstimator
from priorshift.errors import InputError
from priorshift.methods.drpu import DRPU
from priorshift.methods.km_ls import KM2LS
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift


@dataclass(frozen=True)
class Method:
    """Method of estimating the target prior."""

    name: str  # in ``estimate_prior(method=…)`` and ``--method``
    estimator: type[TargetPriorEstimator]  # its `label` is the method's name in results and tables

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the parameters of its class, which are the method's settings."""
        return tuple(inspect.signature(self.estimator).parameters)


METHODS: tuple[Method, ...] = (
    Method("witness", WitnessShift),
    Method("tcpu", TCPU),
    Method("km2-ls", KM2LS),
    Method("drpu", DRPU),
)


def names() -> tuple[str, ...]:
    """Return the names that a user can pass: "auto", then the name of every method."""
    return ("auto", *(method.name for method in METHODS))


def choose(name: Any) -> Method:
    """Return a method by its name; "auto" is the first, with the smallest error in the library's studies."""
    if isinstance(name, str):
        for method in METHODS:
            if name in (method.name, "auto"):  # "auto" matches at once, and so returns the first method
                return method
    raise InputError(f"method is {name!r}, but it must be one of {', '.join(map(repr, names()))}.")
