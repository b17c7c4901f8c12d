"""How common the positive class is in a new population.

Estimates the class prior of an unlabelled target population under label shift, from labelled positives and
unlabelled data of a source population.
"""

from priorshift import adapt, audit, datasets, distributed, errors, kernels, plots, simulate, sketch, storage
from priorshift.api import estimate_prior, estimate_priors
from priorshift.diagnosis.diagnose import diagnose, diagnose_targets
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.inference import intervals
from priorshift.inference.intervals import required_sample_size
from priorshift.io.encoding import TableEncoder
from priorshift.methods import registry as methods
from priorshift.methods.drpu import DRPU
from priorshift.methods.kernel_ratio import KernelRatio
from priorshift.methods.km_ls import KM2LS
from priorshift.methods.nnpu import NNPUClassifier
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.prior_estimates import PriorEstimates
from priorshift.results import Interval, NegativeRatio, PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.source_prior.km import KM1, KM2
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.version import __version__ as __version__

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
