"""Fitted estimators in files: the classes that a stored one is made of.

pickle and joblib store every estimator, and run whatever code stands in a file that they load. skops stores plain
arrays and the names of classes, and makes no object of a class that it was not told to trust; `TYPES` is what to tell
it.
"""

from priorshift import (
    audit,
    audited_belief,
    drpu,
    kernel_ratio,
    km,
    km_ls,
    mixture_prior,
    nnpu,
    result,
    share_distribution,
    shifted_classifier,
    source_prior,
    tcpu,
    witness_shift,
)
from priorshift.embedding import bandwidth, gram, own_pairs, random_features, sample
from priorshift.input import encoded_columns, encoding, levels, observations, scaling, source, tables, target
from priorshift.kernels import gaussian, plain
from priorshift.scores import (
    counted,
    cross_fitting,
    evidence,
    level_sets,
    posterior,
    ridge,
    scored,
    tested_ratios,
    witness,
)
from priorshift.training import network

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
