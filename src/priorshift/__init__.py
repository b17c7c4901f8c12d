"""How common the positive class is in a new population.

Estimates the class prior of an unlabelled target population under label shift, from labelled positives and
unlabelled data of a source population.
"""

from priorshift import (
    adapt,
    audit,
    datasets,
    distributed,
    errors,
    intervals,
    kernels,
    methods,
    plots,
    simulate,
    sketch,
    storage,
)
from priorshift.diagnosis.diagnose import diagnose, diagnose_targets
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.drpu import DRPU
from priorshift.estimate import estimate_prior
from priorshift.estimates import estimate_priors
from priorshift.input.encoding import TableEncoder
from priorshift.intervals import required_sample_size
from priorshift.kernel_ratio import KernelRatio
from priorshift.km import KM1, KM2
from priorshift.km_ls import KM2LS
from priorshift.mixture_prior import MixturePrior
from priorshift.nnpu import NNPUClassifier
from priorshift.prior_estimates import PriorEstimates
from priorshift.result import Interval, NegativeRatio, PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.tcpu import TCPU
from priorshift.version import __version__ as __version__
from priorshift.witness_shift import WitnessShift

__all__ = [
    "DRPU",
    "KM1",
    "KM2",
    "KM2LS",
    "TCPU",
    "Diagnoses",
    "Diagnosis",
    "Interval",
    "KernelRatio",
    "MixturePrior",
    "NNPUClassifier",
    "NegativeRatio",
    "PriorEstimate",
    "PriorEstimates",
    "ShiftedClassifier",
    "TableEncoder",
    "WitnessShift",
    "adapt",
    "audit",
    "datasets",
    "diagnose",
    "diagnose_targets",
    "distributed",
    "errors",
    "estimate_prior",
    "estimate_priors",
    "intervals",
    "kernels",
    "methods",
    "plots",
    "required_sample_size",
    "simulate",
    "sketch",
    "storage",
]
