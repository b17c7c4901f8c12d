"""The shares of several classes from sketches: one of each class, of the source population and of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from priorshift.class_priors import ClassPriors
from priorshift.class_source import ClassSizes
from priorshift.embedding.class_values import functions_of_moments
from priorshift.embedding.random_features import kernel_details
from priorshift.errors import InputError
from priorshift.inference.mixture_moments import mixture_from_moments, parts_of_samples, sum_parts
from priorshift.io.sample_size import check_effective_size, check_sizes
from priorshift.methods.multiclass import MulticlassShift
from priorshift.sketch.sketch import Sketch


def estimate_classes_from_sketches(
    estimator: MulticlassShift, names: tuple[str, ...], samples: Mapping[str, Any]
) -> ClassPriors:
    """Estimate the shares of the classes `names` from sketches of one design, as method "tcpu" does from rows.

    `samples` are the sketches by their names in messages: of the classes, with a rest of the unlabelled rows, and last
    of the target. Kernel, bandwidth, scale and random features are those of the sketches.
    """
    _check_sketches(estimator, names, samples)
    *source, target = samples.values()
    parts, censoring = [sketch.moments for sketch in source], estimator.scenario == "censoring"
    contains = parts_of_samples(len(names), rest=estimator.rest, censoring=censoring)
    is_unbiased = estimator.statistic == "unbiased"
    functions, of_target = functions_of_moments(parts, contains, target.moments, is_unbiased=is_unbiased)
    mixture = mixture_from_moments(functions, contains, of_target)
    sizes = tuple(sum_parts(parts, member).rows for member in contains)
    priors = estimator.estimate_mixture(mixture, ClassSizes(names, estimator.rest, sizes), len(target))
    design = target.design
    details = kernel_details(design.features) | {"bandwidth_by": design.bandwidth_by, "standardize": design.standardize}
    results = {name: replace(share, details={**share.details, **details}) for name, share in priors.items()}
    return replace(priors, results=results)


def _check_sketches(estimator: MulticlassShift, names: tuple[str, ...], samples: Mapping[str, Any]) -> None:
    """Raise InputError for samples that are not sketches of one design, and for settings that need rows."""
    if estimator.method != "tcpu":
        raise InputError(f"sketches are for method='tcpu', but method is {estimator.method!r}; pass 'tcpu', or tables.")
    unknown = [name for name in names if estimator.rest and (estimator.source_prior or {}).get(name) is None]
    if unknown:
        raise InputError(
            f"sketches cannot estimate the source prior of {unknown[0]!r}, which needs rows; pass source_prior with a "
            "value for every class, or pass tables."
        )
    first_name, first = next(iter(samples.items()))
    for name, sketch in samples.items():
        if not isinstance(sketch, Sketch):
            raise InputError(f"{name} is of type {type(sketch).__name__}, but a Sketch is expected; make one of it.")
        if sketch.moments.noise:
            raise InputError(
                f"{name} is a private sketch, which is supported for one labelled class alone; pass a sketch without "
                "noise, or one class."
            )
        first.design.check_same(sketch.design, first_name, name)
        check_sizes(**{name: len(sketch)})
        check_effective_size(f"the weights of {name}", len(sketch), sketch.moments.size)
