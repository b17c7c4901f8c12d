"""Estimates without rows in memory: from sketches, from histograms, and from samples that are read in chunks.

The steps, each with its samples as keywords in the order positive, unlabeled, target:

- ``count_streams(estimator, streams, drop=())`` -> {name: Histogram}: fit a score model, and count samples by it
- ``sketch_streams(estimator, streams, drop=(), weights=None)`` -> {name: Sketch}: fix a design, and sketch samples
- ``estimate_from_histograms(estimator, *, positive, unlabeled, target)`` -> PriorEstimate, by WitnessShift
- ``estimate_from_sketches(estimator, *, positive, unlabeled, target)`` -> PriorEstimate, by TCPU

``streams`` is {"positive": Chunks, "unlabeled": Chunks, "target": Chunks}; ``open_streams(samples, drop, weights)``
opens them. ``fit_model`` and ``fit_design`` are the first halves of the first two, which
:mod:`priorshift.distributed` shares.

Are the sketches of positives and population swapped? The population holds the positives, U = πP + (1−π)N. Let h be any
function of a row, and D = E_U h − E_P h; then N lies D/(1−π) from P, and

    Var_U h = π Var_P h + (1−π) Var_N h + π D²/(1−π),

so that Var_U h is no smaller than π Var_P h + π D²/(1−π). If the two are swapped, and the classes well separated, it
is. The h used is the witness ⟨μ_U − μ_P, z⟩, whose variances follow from second moments.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

from priorshift.arrays import Floats
from priorshift.embedding.moments import FeatureMoments, embed_moments
from priorshift.embedding.random_features import kernel_details
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.chunks import Chunks
from priorshift.io.parameters import is_known
from priorshift.io.sample_checks import check_sizes
from priorshift.io.weights import check_effective_size
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.results import PriorEstimate
from priorshift.scores.counts import SourceCounts
from priorshift.sketch import container
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.private import privacy_details
from priorshift.sketch.row_reader import columns_to_drop, weight_columns
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Design, Sketch
from priorshift.warning_records import warn

_NAMES = ("positive", "unlabeled", "target")
_SURE = 3.0  # standard errors below zero that are not chance
_FOURTH = 4.0  # of a variance's own variance, n Var(s²)/s⁴: 2 for normal values, and rarely above this


def load(path: str | os.PathLike[str]) -> Sketch | ScoreModel | Histogram:
    """Load a sketch, a score model or a histogram from a file.

    Parameters
    ----------
    path : str or path
        Path of a file that `save` of one of them wrote.

    Returns
    -------
    Sketch, ScoreModel or Histogram

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.sketch import Sketch, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Sketch.from_sample([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]], features=64).save(f"{folder}/a.sketch")
    ...     print(load(f"{folder}/a.sketch"))
    sketch of 3 rows: 64 random features of a gaussian kernel, bandwidth 1, 2 columns
    """
    classes: list[type[Sketch] | type[ScoreModel] | type[Histogram]] = [Sketch, ScoreModel, Histogram]
    return container.load(path, classes)


def open_streams(samples: Mapping[str, Any], drop: Sequence[str], weights: str | None = None) -> dict[str, Chunks]:
    """Open samples for reading in chunks; a column of weights is set aside where it exists."""
    optional = [] if weights is None else [weights]
    dropped = [column for column in drop if column not in optional]
    return {name: Chunks.from_source(sample, name, drop=dropped, optional=optional) for name, sample in samples.items()}


def fit_model(estimator: WitnessShift, streams: Mapping[str, Chunks], drop: Sequence[str]) -> ScoreModel:
    """Fit the score model of an estimator to the source; each column to drop must be in one of the samples."""
    if estimator.model is not None:
        raise InputError(
            f"rows that are read in batches are scored by the library's own model, not by "
            f"{type(estimator.model).__name__}; leave model out, or pass tables that fit into memory."
        )
    names = ("repeats", "folds", "max_rows", "fit_rows", "standardize", "random_state")
    settings = {name: getattr(estimator, name) for name in names}
    model = ScoreModel.fit(
        streams["positive"],
        streams["unlabeled"],
        drop=columns_to_drop(streams, drop, ("positive", "unlabeled")),
        use_km2=not is_known(estimator.source_prior),
        **settings,
    )
    return replace(model, reader=replace(model.reader, drop=tuple(drop)))


def count_streams(
    estimator: WitnessShift, streams: Mapping[str, Chunks], drop: Sequence[str] = ()
) -> dict[str, Histogram]:
    """Fit the score model of an estimator to streams of P and U, and count all three samples by it."""
    for name in ("positive", "unlabeled"):
        if not streams[name].can_repeat:
            raise InputError(
                f"{name} is an iterator, which can be read only once, but the source is read twice, to fit a model and "
                "to count. Pass files or a list of tables, or make the histograms yourself."
            )
    model = fit_model(estimator, streams, drop)
    return {name: Histogram.from_sample(stream, model, device=estimator.device) for name, stream in streams.items()}


def fit_design(estimator: TCPU, streams: Mapping[str, Chunks], drop: Sequence[str]) -> Design:
    """Fix the design of sketches by the settings of an estimator and some unlabelled rows."""
    settings = {name: getattr(estimator, name) for name in ("kernel", "bandwidth", "features", "standardize")}
    settings["random_state"] = 0 if estimator.random_state is None else estimator.random_state
    settings["drop"] = tuple(columns_to_drop(streams, drop, ["unlabeled"]))
    design = Design.from_chunks(streams["unlabeled"], settings)
    return replace(design, reader=replace(design.reader, drop=tuple(drop)))


def sketch_streams(
    estimator: TCPU,
    streams: Mapping[str, Chunks],
    drop: Sequence[str] = (),
    weights: str | Mapping[str, Any] | None = None,
) -> dict[str, Sketch]:
    """Sketch the streams of three samples; weights are a column of some of them, or an array for each."""
    weights_of = weights if isinstance(weights, Mapping) else weight_columns(streams, weights)
    design = fit_design(estimator, streams, drop)
    return {name: Sketch(design, design.moments(stream, weights_of.get(name))) for name, stream in streams.items()}


def sketch_like_first(samples: Mapping[str, Any], weights: str | Mapping[str, Any] | None = None) -> dict[str, Sketch]:
    """Sketch those of the samples that are no sketches yet like the first one that is; unlabeled comes first."""
    first = next(sample for name in ("unlabeled", "positive", "target") if isinstance(sample := samples[name], Sketch))
    tables = {name: sample for name, sample in samples.items() if not isinstance(sample, Sketch)}
    if isinstance(weights, str):
        if not tables:
            raise InputError("weights were passed, but all samples are sketches, which have their own; leave them out.")
        tables = open_streams(tables, first.design.reader.drop, weights)
        weights = weight_columns(tables, weights)
    weights = weights or {}
    for name in weights:
        if name not in tables:
            raise InputError(f"weights were passed for {name}, but it is a sketch, which has its own; leave them out.")
    sketched = {name: Sketch.from_sample(one, like=first, weights=weights.get(name)) for name, one in tables.items()}
    return {**samples, **sketched}


def estimate_from_histograms(estimator: Any, *, positive: Any, unlabeled: Any, target: Any) -> PriorEstimate:
    """Estimate the target prior from three histograms by one score model."""
    if not isinstance(estimator, WitnessShift):
        raise InputError(
            f"histograms are for the default method, WitnessShift, not for {type(estimator).__name__}; leave method "
            "out, or pass sketches for TCPU."
        )
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    for name, sample in samples.items():
        if not isinstance(sample, Histogram):
            raise InputError(
                f"{name} is of type {type(sample).__name__} while other samples are histograms, which do not hold "
                "their score model. Make a histogram of it too, by the same model."
            )
        positive.check_same_model(sample)
    check_sizes(**{name: len(sample) for name, sample in samples.items()})
    source = SourceCounts(
        positive.counted, unlabeled.counted, positive.ranked, positive.folds, positive.km2_prior, estimator.scenario
    )
    estimate = estimator.fit_counts(source).estimate_counts(target.counted)
    details = {**estimate.details, "fitted_rows": positive.fitted, **privacy_details(**samples)}
    return replace(estimate, details=details)


def estimate_from_sketches(estimator: Any, *, positive: Any, unlabeled: Any, target: Any) -> PriorEstimate:
    """Estimate the target prior from three sketches of one design, as TCPU does from rows.

    Kernel, bandwidth, scale and random features are those of the sketches. Under ``scenario="censoring"`` `unlabeled`
    is still the sketch of the unlabelled rows alone.
    """
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    _check_sketches(estimator, samples)
    design = unlabeled.design
    embeddings = embed_moments(
        design.features,
        positive.moments,
        unlabeled.moments,
        target.moments,
        estimator.statistic,
        censoring=estimator.scenario == "censoring",
    )
    if estimator.scenario == "case-control":  # else the population is both
        warn_if_swapped(positive.moments, unlabeled.moments, read_prior(estimator.source_prior).range[0])
    details = kernel_details(design.features) | {
        "bandwidth_by": design.bandwidth_by,
        "standardize": design.standardize,
        "precision": "float64",
        "device": "cpu",
        "pairs": None,
    }
    return estimator.estimate_embeddings(embeddings, details | privacy_details(**samples))


def _check_sketches(estimator: Any, samples: Mapping[str, Any]) -> None:
    """Refuse samples that are no sketches of one design, and settings that need rows."""
    if not isinstance(estimator, TCPU):
        raise InputError(
            f"sketches are for TCPU, but the estimator is of type {type(estimator).__name__}; pass TCPU(…), or use "
            "histograms of a ScoreModel for the default method."
        )
    if not is_known(estimator.source_prior):
        raise InputError(
            "sketches cannot estimate the source prior, for which KM2 needs rows; pass source_prior, or use histograms "
            "of a ScoreModel, the default method."
        )
    if estimator.interval == "bootstrap":
        raise InputError("interval='bootstrap' draws rows, which sketches do not have; use interval='delta'.")
    for setting, value in (("embedding", "exact"), ("pairs", estimator.pairs)):
        if value is not None and getattr(estimator, setting) == value:
            raise InputError(f"{setting}={value!r} needs rows, which sketches do not have; leave it out.")
    for name, sketch in samples.items():
        if not isinstance(sketch, Sketch):
            raise InputError(f"{name} is of type {type(sketch).__name__}, but a Sketch is expected; make one of it.")
        if estimator.interval in ("paper-bound", "sharp-bound") and sketch.moments.noise:
            raise InputError(
                f"interval={estimator.interval!r} holds for means without noise, but {name} is private; use "
                "interval='delta'."
            )
        samples["unlabeled"].design.check_same(sketch.design, "unlabeled", name)
        check_sizes(**{name: len(sketch)})
        check_effective_size(f"the weights of {name}", len(sketch), sketch.moments.size)


def warn_if_swapped(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> None:
    """Warn if positives and population look swapped, at the least possible π; not for weights or private samples."""
    if any(one.noise or one.is_weighted for one in (positive, unlabeled)):
        return
    if _excess_variance(positive, unlabeled, prior) < -_SURE and _excess_variance(unlabeled, positive, prior) > -1:
        warn(
            "Positives and unlabelled rows look swapped: the unlabelled rows vary less than a population of which a "
            f"share of {prior:.3g} is like the positives, while the other way round the two fit. Check which sketch is "
            "which.",
            InconsistentInputWarning,
        )


def _excess_variance(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> float:
    """What remains of Var_U h for the negatives, (1−π) Var_N h, over its standard error."""
    P, U = positive, unlabeled
    a = U.mean - P.mean
    var_P, var_U = _variance(P, a), _variance(U, a)
    own = sum((1 - float(one.mean @ one.mean)) / one.rows for one in (P, U))  # ‖z‖ = 1
    D, odds = max(float(a @ a) - own, 0.0), prior / (1 - prior)
    error_of_D = 2 * sqrt(var_P / P.rows + var_U / U.rows)
    parts = sqrt(_FOURTH / U.rows) * var_U, sqrt(_FOURTH / P.rows) * prior * var_P, 2 * odds * D * error_of_D
    error = sqrt(sum(part**2 for part in parts))
    return (var_U - prior * var_P - odds * D**2) / error if error > 0 else 0.0


def _variance(sample: FeatureMoments, a: Floats) -> float:
    return max(float(a @ sample.product @ a) / sample.rows - float(a @ sample.mean) ** 2, 0.0)


def refuse_fixed_settings(estimator: Any, drop: Sequence[str]) -> None:
    """Refuse settings that were fixed when the samples were sketched or counted."""
    fixed = ("kernel", "bandwidth", "features", "standardize", "model", "repeats", "folds", "fit_rows", "max_rows")
    usual = inspect.signature(type(estimator)).parameters
    changed = [name for name in fixed if name in usual and getattr(estimator, name) != usual[name].default]
    for name in [*changed, *(["drop"] if drop else [])]:
        raise InputError(f"{name} was fixed when the samples were sketched or counted; leave it out.")
