"""Fitted estimators in files: the classes that a stored one is made of.

pickle and joblib store every estimator, and run whatever code stands in a file that they load. skops stores plain
arrays and the names of classes, and makes no object of a class that it was not told to trust; `TYPES` is what to tell
it.
"""

from priorshift import audit, shifted_classifier
from priorshift import problem as source
from priorshift import problem as target
from priorshift import results as result
from priorshift.embedding import bandwidth, gram, random_features
from priorshift.embedding import samples as own_pairs
from priorshift.embedding import samples as sample
from priorshift.inference import audit_combination as audited_belief
from priorshift.inference import share_distribution
from priorshift.io import encoding, observations, scaling, tables
from priorshift.io import encoding as encoded_columns
from priorshift.io import encoding as levels
from priorshift.kernels import kernel as gaussian
from priorshift.kernels import kernel as plain
from priorshift.methods import drpu, kernel_ratio, km_ls, network, nnpu, tcpu, witness_shift
from priorshift.scores import counts as counted
from priorshift.scores import cross_fitting, level_sets, posterior, witness
from priorshift.scores import cross_fitting as ridge
from priorshift.scores import ratio_test as tested_ratios
from priorshift.scores import scored_source as evidence
from priorshift.scores import scored_source as scored
from priorshift.source_prior import estimated as source_prior
from priorshift.source_prior import km, mixture_prior

_ESTIMATORS = (drpu, kernel_ratio, km, km_ls, mixture_prior, nnpu, shifted_classifier, tcpu, witness_shift)
_PARTS = (audit, audited_belief, bandwidth, counted, cross_fitting, encoding, encoded_columns, evidence, gaussian, gram,
          level_sets, levels, network, observations, own_pairs, plain, posterior, random_features, result, ridge,
          sample, scaling, scored, share_distribution, source, source_prior, tables, target, tested_ratios,
          witness)  # fmt: skip

#: Names of the classes that a fitted estimator of this library is made of, for ``skops.io.load(…, trusted=TYPES)``;
#: each is an estimator or holds numbers and arrays. What you bring, a model or a distribution, has classes besides.
TYPES: tuple[str, ...] = tuple(sorted(
    f"{room.__name__}.{name}"
    for room in (*_ESTIMATORS, *_PARTS)
    for name, made in vars(room).items()
    if isinstance(made, type) and made.__module__ == room.__name__
))  # fmt: skip
