"""Estimate how common the positive class is in a new population.

Estimates the class prior of an unlabelled target population under label shift, from labelled positives and
unlabelled data of a source population. Names are imported when they are first used, so that ``import priorshift``
takes a few milliseconds.
"""

from priorshift.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers and editors take it for true; typing's own would cost an import
if TYPE_CHECKING:
    from priorshift import adapt as adapt
    from priorshift import audit as audit
    from priorshift import datasets as datasets
    from priorshift import distributed as distributed
    from priorshift import errors as errors
    from priorshift import experimental as experimental
    from priorshift import kernels as kernels
    from priorshift import plots as plots
    from priorshift import simulate as simulate
    from priorshift import sketch as sketch
    from priorshift import storage as storage
    from priorshift.api import estimate_prior as estimate_prior
    from priorshift.api import estimate_priors as estimate_priors
    from priorshift.class_priors import ClassPriors as ClassPriors
    from priorshift.class_priors_by_target import ClassPriorsByTarget as ClassPriorsByTarget
    from priorshift.diagnosis.classes import ClassDiagnosis as ClassDiagnosis
    from priorshift.diagnosis.diagnose import diagnose as diagnose
    from priorshift.diagnosis.diagnose import diagnose_targets as diagnose_targets
    from priorshift.diagnosis.diagnosis import Diagnoses as Diagnoses
    from priorshift.diagnosis.diagnosis import Diagnosis as Diagnosis
    from priorshift.inference.intervals import required_sample_size as required_sample_size
    from priorshift.io.encoding import TableEncoder as TableEncoder
    from priorshift.methods.drpu import DRPU as DRPU
    from priorshift.methods.kernel_ratio import KernelRatio as KernelRatio
    from priorshift.methods.km_ls import KM2LS as KM2LS
    from priorshift.methods.multiclass import MulticlassShift as MulticlassShift
    from priorshift.methods.nnpu import NNPUClassifier as NNPUClassifier
    from priorshift.methods.tcpu import TCPU as TCPU
    from priorshift.methods.witness_shift import WitnessShift as WitnessShift
    from priorshift.monitoring.monitor import Monitor as Monitor
    from priorshift.monitoring.points import Alarm as Alarm
    from priorshift.monitoring.points import MonitorPoint as MonitorPoint
    from priorshift.prior_estimates import PriorEstimates as PriorEstimates
    from priorshift.results import Interval as Interval
    from priorshift.results import NegativeRatio as NegativeRatio
    from priorshift.results import PriorEstimate as PriorEstimate
    from priorshift.shifted_classifier import ShiftedClassifier as ShiftedClassifier
    from priorshift.source_prior.km import KM1 as KM1
    from priorshift.source_prior.km import KM2 as KM2
    from priorshift.source_prior.mixture_prior import MixturePrior as MixturePrior

_MODULES = (
    "adapt", "audit", "datasets", "distributed", "errors", "experimental", "kernels", "plots", "simulate", "sketch",
    "storage",
)  # fmt: skip
_NAMES = {  # public names by the module that defines them
    "api": ("estimate_prior", "estimate_priors"),
    "class_priors": ("ClassPriors",),
    "class_priors_by_target": ("ClassPriorsByTarget",),
    "diagnosis.classes": ("ClassDiagnosis",),
    "diagnosis.diagnose": ("diagnose", "diagnose_targets"),
    "diagnosis.diagnosis": ("Diagnosis", "Diagnoses"),
    "inference.intervals": ("required_sample_size",),
    "io.encoding": ("TableEncoder",),
    "methods.drpu": ("DRPU",),
    "methods.kernel_ratio": ("KernelRatio",),
    "methods.km_ls": ("KM2LS",),
    "methods.multiclass": ("MulticlassShift",),
    "methods.nnpu": ("NNPUClassifier",),
    "methods.tcpu": ("TCPU",),
    "methods.witness_shift": ("WitnessShift",),
    "monitoring.monitor": ("Monitor",),
    "monitoring.points": ("Alarm", "MonitorPoint"),
    "prior_estimates": ("PriorEstimates",),
    "results": ("Interval", "NegativeRatio", "PriorEstimate"),
    "shifted_classifier": ("ShiftedClassifier",),
    "source_prior.km": ("KM1", "KM2"),
    "source_prior.mixture_prior": ("MixturePrior",),
}
_DEFINED_IN = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_DEFINED_IN])


def __getattr__(name: str) -> object:
    """Import a public module or name when it is first used (PEP 562)."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"priorshift.{name}")
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'priorshift' has no attribute {name!r}")
    value: object = getattr(import_module(f"priorshift.{_DEFINED_IN[name]}"), name)
    globals()[name] = value  # so that this function is not called for it again
    return value


def __dir__() -> list[str]:
    """List the public names, also those that were not used yet."""
    return sorted({*globals(), *__all__})
