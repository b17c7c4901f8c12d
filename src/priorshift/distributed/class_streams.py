"""Shares of several classes without rows in memory: samples are sketches, or are summarised in one pass.

Method "tcpu" uses sketches. Method "witness" fits its scores to some rows of each sample, and summarises all rows by
the moments of a few functions of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from operator import add
from typing import Any

from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.class_source import ClassSizes
from priorshift.distributed.summaries import (
    check_repeatable,
    fit_design,
    open_streams,
    refuse_fixed_settings,
    sketch_chunks,
    sketch_like_first,
    summarize_all,
)
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import ApproximationWarning, InputError
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.inference.mixture_moments import mixture_from_moments, parts_of_samples, sum_parts
from priorshift.io.chunks import Chunks
from priorshift.io.sample_size import check_effective_size, check_sizes
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Problem
from priorshift.sketch.class_functions import ClassFunctions
from priorshift.sketch.class_sketches import estimate_classes_from_sketches
from priorshift.sketch.design import columns_to_drop, weight_columns
from priorshift.warning_records import WarningsByName, warn


def estimate_classes_from_summaries(problem: Problem, estimator: MulticlassShift, *, is_auto: bool) -> ClassPriors:
    """Estimate the shares of the classes of a problem whose samples are sketches or streams of rows.

    `is_auto` says that the user did not choose a method, which then is "tcpu" for sketches.
    """
    if problem.kind == "moments":
        [priors] = estimate_classes_of_sketched_targets(problem, estimator, is_auto=is_auto).values()
        return priors
    names, weights, drop = problem.class_names, _weight_column(problem), problem.drop
    samples = {**_source_samples(problem), "target": problem.target.data}
    streams = open_streams(samples, drop, weights)
    weights_of = weight_columns(streams, weights)
    source_names = [name for name in streams if name != "target"]
    if estimator.method == "tcpu":
        base = ["unlabeled"] if problem.rest else source_names
        design = fit_design(estimator, streams, drop, base)
        sketches = summarize_all(streams, partial(sketch_chunks, design, weights_of, own_design=True))
        return estimate_classes_from_sketches(estimator, names, {name: sketches[name] for name in streams})
    columns_to_drop(streams, drop, source_names)  # refuses columns that no sample has
    check_repeatable(streams, source_names)
    functions = ClassFunctions.fit(estimator, names, streams, weights_of, drop)
    moments = summarize_all(streams, partial(_function_moments, functions, weights_of), merge=add)
    return _estimate_from_moments(estimator, names, functions, {name: moments[name] for name in streams})


def estimate_classes_of_sketched_targets(
    problem: Problem, estimator: MulticlassShift, *, is_auto: bool
) -> ClassPriorsByTarget:
    """Estimate the shares of the classes of a problem in all its targets, from sketches; tables are sketched like them.

    `is_auto` is as in `estimate_classes_from_summaries`.
    """
    if is_auto:
        warn(
            "The samples are sketches, which only TCPU can use, so method='auto' is 'tcpu' here. Pass method='tcpu', "
            "or tables for the default method.",
            ApproximationWarning,
        )
        estimator.set_params(method="tcpu")
    refuse_fixed_settings(estimator, problem.drop)
    source = _source_samples(problem)
    targets = {name: f"target {name!r}" if name else "target" for name in problem.targets}
    samples = {**source, **{shown: problem.targets[name].data for name, shown in targets.items()}}
    sketches = sketch_like_first(samples, _weight_column(problem))
    results, warnings = {}, WarningsByName("target")
    for name, shown in targets.items():
        with warnings.collect(name) if name else nullcontext():
            chosen = {role: sketches[role] for role in (*source, shown)}
            results[name] = estimate_classes_from_sketches(estimator, problem.class_names, chosen)
    warnings.issue()
    mixtures = [priors.mixture for priors in results.values() if priors.mixture is not None]
    return ClassPriorsByTarget(results, joint=JointMixtures.from_common_functions(mixtures), frame=problem.frame)


def _source_samples(problem: Problem) -> dict[str, Any]:
    """Return the samples of the source by their names in messages, those of the classes first."""
    samples = {f"class {name!r}": sample.data for name, sample in problem.classes.items()}
    return {**samples, "unlabeled": problem.unlabeled.data} if problem.rest else samples


def _weight_column(problem: Problem) -> str | None:
    """Return the column of weights; refuse weights that are not in a column."""
    weights = problem.columns.weights
    if weights is not None and not isinstance(weights, str):
        raise InputError(
            "weights of several classes that are streamed must be the name of a column; put them into the tables."
        )
    return weights


def _function_moments(
    functions: ClassFunctions, weights_of: Mapping[str, str | None], chunks: Chunks, start: int = 0
) -> FeatureMoments:
    """Compute the moments of the functions over a sample or a part of it; the position `start` does not matter."""
    return functions.moments(chunks, weights_of.get(chunks.name))


def _estimate_from_moments(
    estimator: MulticlassShift, names: tuple[str, ...], functions: ClassFunctions, moments: Mapping[str, FeatureMoments]
) -> ClassPriors:
    """Estimate the shares of the classes from moments of the functions over the samples, the target last."""
    for name, sample in moments.items():
        check_sizes(**{name: sample.rows})
        check_effective_size(f"the weights of {name}", sample.rows, sample.size)
    *parts, target = moments.values()
    contains = parts_of_samples(len(names), rest=estimator.rest, censoring=estimator.scenario == "censoring")
    mixture = mixture_from_moments(parts, contains, target, functions.noise)
    sizes = tuple(sum_parts(parts, member).rows for member in contains)
    return estimator.estimate_mixture(mixture, ClassSizes(names, estimator.rest, sizes), target.rows)
