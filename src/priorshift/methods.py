"""The table of methods (a stand-in until the library's own is merged)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from priorshift.drpu import DRPU
from priorshift.km_ls import KM2LS
from priorshift.mixture_shift import MixtureShift
from priorshift.tcpu import TCPU


@dataclass(frozen=True)
class Method:
    """A method by its name in Python and on the shell; `label` is what an estimate says of itself."""

    name: str
    estimator: Any
    label: str


METHODS = (
    Method("mixture", MixtureShift, "Mixture"),
    Method("tcpu", TCPU, "TCPU"),
    Method("km2-ls", KM2LS, "KM2-LS"),
    Method("drpu", DRPU, "DRPU"),
)
