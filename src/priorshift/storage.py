"""Names of the classes in a stored estimator, for loaders that ask which classes to trust.

pickle and joblib store every estimator, and run whatever code a file contains when they load it. skops stores plain
arrays and class names, and creates only objects of classes that it is told to trust: pass it `TYPES`.
"""

from priorshift import audit, class_source, problem, results, shifted_classifier, source_prior
from priorshift.embedding import class_values, gram, random_features, samples
from priorshift.inference import audit_combination, prior_knowledge
from priorshift.io import encoding, observations, row_metadata, sample_size, scaling, source_encoder, tables
from priorshift.kernels import kernel
from priorshift.methods import drpu, kernel_ratio, km_ls, multiclass, network, nnpu, tcpu, witness_shift
from priorshift.scores import (
    calibration,
    class_scores,
    counts,
    cross_fitting,
    level_sets,
    posterior,
    ratio_test,
    scored_source,
    witness,
)
from priorshift.source_prior import km, mixture_prior

_MODULES = (
    *(drpu, kernel_ratio, km, km_ls, mixture_prior, multiclass, nnpu, shifted_classifier, tcpu, witness_shift),
    *(
        audit,
        audit_combination,
        calibration,
        class_scores,
        class_source,
        class_values,
        counts,
        cross_fitting,
        encoding,
        gram,
        kernel,
        level_sets,
    ),
    *(network, observations, posterior, prior_knowledge, problem, random_features, ratio_test, results),
    *(row_metadata, samples, scaling, scored_source, sample_size, source_encoder, source_prior, tables, witness),
)

#: Names of the classes that a fitted estimator consists of, for ``skops.io.load(…, trusted=TYPES)``. Each is an
#: estimator or holds numbers and arrays. A model or a distribution that you pass has classes of its own to trust.
TYPES: tuple[str, ...] = tuple(
    sorted(
        f"{module.__name__}.{name}"
        for module in _MODULES
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    )
)
