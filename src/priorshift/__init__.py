"""How common the positive class is in a new population.

Estimates the class prior of an unlabelled target population under label shift, from labelled positives and
unlabelled data of a source population.
"""

from priorshift import adapt, audit, datasets, errors, intervals, kernels, methods, plots, simulate
from priorshift.drpu import DRPU
from priorshift.estimate import estimate_prior
from priorshift.intervals import required_sample_size
from priorshift.kernel_ratio import KernelRatio
from priorshift.km import KM1, KM2
from priorshift.km_ls import KM2LS
from priorshift.mixture_prior import MixturePrior
from priorshift.nnpu import NNPUClassifier
from priorshift.result import Interval, NegativeRatio, PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.tcpu import TCPU
from priorshift.witness_shift import WitnessShift

__version__ = "0.1.0.dev0"

__all__ = [
    "DRPU",
    "KM1",
    "KM2",
    "KM2LS",
    "TCPU",
    "Interval",
    "KernelRatio",
    "MixturePrior",
    "NNPUClassifier",
    "NegativeRatio",
    "PriorEstimate",
    "ShiftedClassifier",
    "WitnessShift",
    "adapt",
    "audit",
    "datasets",
    "errors",
    "estimate_prior",
    "intervals",
    "kernels",
    "methods",
    "plots",
    "required_sample_size",
    "simulate",
]
