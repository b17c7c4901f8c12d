"""Are the sketches of the positives and of the population swapped? What their spreads tell about it.

The population holds the positives, U = πP + (1−π)N. Let h be any function of a row, and D = E_U h − E_P h; then N lies
D/(1−π) from P, and

    Var_U h = π Var_P h + (1−π) Var_N h + π D²/(1−π),

so that Var_U h is no smaller than π Var_P h + π D²/(1−π). With the two sketches swapped it is, where the classes are
well apart. The h looked at is the witness ⟨μ_U − μ_P, z⟩, whose variances second moments have.

Answers from three sketches: the target prior, the ratio of negatives, and whether there is a shift at all.

What is made of rows in memory is made of sketches: :class:`TCPU` and :class:`KernelRatio` get mean embeddings and never
learn where these came from. Kernel, bandwidth, scale and random features are those of the sketches; of the estimator's
settings, what is known of π, the statistic, the scenario, the interval and its confidence are heeded.

Estimates from samples of any size: sketches, histograms, files of such, or rows that are read in batches."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import IOBase
from math import isnan, sqrt
from pathlib import Path
from typing import Any

from priorshift.arrays import Floats
from priorshift.embedding.gram import Embeddings
from priorshift.embedding.moments import FeatureMoments, embed_moments
from priorshift.embedding.random_features import described
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.formatting import format_p
from priorshift.inference import intervals
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.chunks import Chunks
from priorshift.io.files import PARQUET, kind
from priorshift.io.parameters import is_known
from priorshift.io.weights import check_worth
from priorshift.methods.kernel_ratio import KernelRatio
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.problem import check_sizes
from priorshift.results import NegativeRatio, PriorEstimate
from priorshift.sketch import container
from priorshift.sketch.container import is_saved
from priorshift.sketch.histogram import KIND as HISTOGRAM
from priorshift.sketch.histogram import Histogram, check_alike, counted_source
from priorshift.sketch.private import budgets
from priorshift.sketch.row_reader import dropped_of, weights_of_each
from priorshift.sketch.score_model import KIND as MODEL
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import KIND as SKETCH
from priorshift.sketch.sketch import Sketch
from priorshift.warning_records import warn

_SURE = 3.0  # standard errors below zero, from which on it is no chance
_FOURTH = 4.0  # of a variance's own variance, n Var(s²)/s⁴: 2 for normal values, and rarely above this


def warn_if_swapped(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> None:
    """Ask whether positives and population were swapped, where they look so.

    Parameters
    ----------
    positive, unlabeled : Moments
        Of the two samples; of rows with weights, and of private ones, nothing is said.
    prior : float
        π, or the least that it may be.
    """
    if any(one.noise or one.is_weighted for one in (positive, unlabeled)):
        return
    if _left(positive, unlabeled, prior) < -_SURE and _left(unlabeled, positive, prior) > -1:
        warn(
            "Positives and unlabelled rows look swapped: the unlabelled rows are spread less than those of a "
            f"population of which a share of {prior:.3g} is like the positives, while the other way round the two fit. "
            "Check which sketch is which.",
            InconsistentInputWarning,
        )


def _left(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> float:
    """What is left of Var_U h for the negatives, (1−π) Var_N h, over its standard error."""
    P, U = positive, unlabeled
    a = U.mean - P.mean
    of_P, of_U = _variance(P, a), _variance(U, a)
    own = sum((1 - float(one.mean @ one.mean)) / one.rows for one in (P, U))  # ‖z‖ = 1
    D, odds = max(float(a @ a) - own, 0.0), prior / (1 - prior)
    error_of_D = 2 * sqrt(of_P / P.rows + of_U / U.rows)
    parts = sqrt(_FOURTH / U.rows) * of_U, sqrt(_FOURTH / P.rows) * prior * of_P, 2 * odds * D * error_of_D
    error = sqrt(sum(part**2 for part in parts))
    return (of_U - prior * of_P - odds * D**2) / error if error > 0 else 0.0


def _variance(sample: FeatureMoments, a: Floats) -> float:
    return max(float(a @ sample.product @ a) / sample.rows - float(a @ sample.mean) ** 2, 0.0)


@dataclass(frozen=True)
class SketchedShift:
    """The test of R = (1−π′)/(1−π) = 1, which needs no π, and how far from it R is.

    Attributes
    ----------
    ratio : NegativeRatio
        R and its interval.
    p_value : float
        Two-sided, of R = 1; NaN where the data give no R.
    """

    ratio: NegativeRatio
    p_value: float

    def __str__(self) -> str:
        return f"{self.ratio}; no shift (1) has {format_p(self.p_value)}"


def from_sketches(positive: Sketch, unlabeled: Sketch, target: Sketch, estimator: TCPU) -> PriorEstimate:
    """Estimate the target prior from sketches of the three samples.

    Parameters
    ----------
    positive, unlabeled, target : Sketch
        Of one design. Under ``scenario="censoring"`` `unlabeled` is of the unlabelled rows all the same.
    estimator : TCPU
        With a known source prior; it needs no fit.

    Returns
    -------
    PriorEstimate
        As :class:`TCPU` with the same random features makes it of the rows.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Sketch
    >>> from priorshift.sketch.estimation import from_sketches
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled = Sketch.of(s.unlabeled, features=512)
    >>> positive, target = (Sketch.of(rows, like=unlabeled) for rows in (s.positive, s.target))
    >>> print(from_sketches(positive, unlabeled, target, ps.TCPU(source_prior=0.2)))
    target prior 0.609, 95% interval 0.576 to 0.643 (TCPU, source prior 0.2)
    """
    if not isinstance(estimator, TCPU):
        raise InputError(
            f"sketches are answered by TCPU, but the estimator is of type {type(estimator).__name__}; pass TCPU(…), or "
            "use histograms of a ScoreModel for the default method."
        )
    if not is_known(estimator.source_prior):
        raise InputError(
            "sketches alone cannot tell the source prior, which KM2 estimates from rows; pass source_prior, or use "
            "histograms of a ScoreModel, the default method."
        )
    if estimator.interval == "bootstrap":
        raise InputError("interval='bootstrap' draws rows, which sketches do not have; use interval='delta'.")
    if estimator.interval in ("paper-bound", "sharp-bound") and any(
        isinstance(one, Sketch) and one.moments.noise for one in (positive, unlabeled, target)
    ):
        raise InputError(
            f"interval={estimator.interval!r} is proved for means without noise, but a sketch is private; use "
            "interval='delta'."
        )
    embeddings = embed_sketches(positive, unlabeled, target, estimator)
    if estimator.scenario == "case-control":  # else the population is both
        warn_if_swapped(positive.moments, unlabeled.moments, read_prior(estimator.source_prior).range[0])
    design = unlabeled.design
    details = described(design.features) | {
        "bandwidth_by": design.bandwidth_by,
        "standardize": design.standardize,
        "precision": "float64",
        "device": "cpu",
        "pairs": None,
    }
    details |= budgets(positive=positive, unlabeled=unlabeled, target=target)
    return estimator.estimate_embeddings(embeddings, details)


def negative_ratio_from_sketches(
    positive: Sketch, unlabeled: Sketch, target: Sketch, estimator: KernelRatio | None = None
) -> NegativeRatio:
    """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives, which needs no source prior.

    Parameters
    ----------
    positive, unlabeled, target : Sketch
        As in `from_sketches`.
    estimator : KernelRatio or None
        It needs no fit; None is ``KernelRatio()``.

    Returns
    -------
    NegativeRatio
    """
    estimator = KernelRatio() if estimator is None else estimator
    return estimator.ratio_of_embeddings(embed_sketches(positive, unlabeled, target, estimator))


def shift_from_sketches(
    positive: Sketch, unlabeled: Sketch, target: Sketch, estimator: KernelRatio | None = None
) -> SketchedShift:
    """Test whether there is a shift, R = 1, by the interval of R that just reaches 1.

    :func:`priorshift.diagnose` tests the same with cross-fitted scores of the rows, and with more power.

    Parameters
    ----------
    positive, unlabeled, target : Sketch
        As in `from_sketches`.
    estimator : KernelRatio or None
        As in `negative_ratio_from_sketches`.

    Returns
    -------
    SketchedShift
    """
    estimator = KernelRatio() if estimator is None else estimator
    embeddings = embed_sketches(positive, unlabeled, target, estimator)
    ratio = estimator.ratio_of_embeddings(embeddings)
    if isnan(ratio.value):
        return SketchedShift(ratio, float("nan"))
    below = float(intervals.curve(embeddings)(1.0))
    return SketchedShift(ratio, 2 * min(below, 1 - below))


def embed_sketches(positive: Sketch, unlabeled: Sketch, target: Sketch, estimator: KernelRatio) -> Embeddings:
    """Make the mean embeddings of three sketches.

    Parameters
    ----------
    positive, unlabeled, target : Sketch
        As in `from_sketches`.
    estimator : KernelRatio
        Whose `statistic` and `scenario` are asked.

    Returns
    -------
    Embeddings
    """
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    for name, sketch in samples.items():
        if not isinstance(sketch, Sketch):
            raise InputError(f"{name} is of type {type(sketch).__name__}, but a Sketch is expected; make one of it.")
        unlabeled.design.check_same(sketch.design, "unlabeled", name)
        check_sizes(**{name: sketch.rows})
        check_worth(f"the weights of {name}", sketch.rows, sketch.moments.size)
    for setting, value in (("embedding", "exact"), ("pairs", estimator.pairs)):
        if value is not None and getattr(estimator, setting) == value:
            raise InputError(f"{setting}={value!r} needs rows, which sketches do not have; leave it out.")
    return embed_moments(
        unlabeled.design.features,
        positive.moments,
        unlabeled.moments,
        target.moments,
        estimator.statistic,
        censoring=estimator.scenario == "censoring",
    )


def as_sketches(
    positive: Any, unlabeled: Any, target: Any, weights: Mapping[str, Any] | None = None
) -> tuple[Sketch, Sketch, Sketch]:
    """Make sketches of what may be sketches, files of such, or samples, which are sketched like the first sketch.

    Parameters
    ----------
    positive, unlabeled, target : Sketch, path of one, or sample
        One of them at least a sketch, or the path of one.
    weights : mapping or None
        Of "positive", "unlabeled" and "target" to the weights of a sample that is no sketch yet, as in
        :meth:`Sketch.of`.

    Returns
    -------
    positive, unlabeled, target : Sketch
    """
    samples = {"unlabeled": unlabeled, "positive": positive, "target": target}
    found = {name: Sketch.load(one) if is_saved(one) else one for name, one in samples.items()}
    first = next((one for one in found.values() if isinstance(one, Sketch)), None)
    if first is None:
        raise InputError("none of the three samples is a sketch, which would tell how to sketch the others; make one.")
    weights = weights or {}
    for name in weights:
        if isinstance(found.get(name), Sketch):
            raise InputError(f"weights were passed for {name}, but it is a sketch, which has its own; leave them out.")
    U, P, T = (
        one if isinstance(one, Sketch) else Sketch.of(one, like=first, weights=weights.get(name))
        for name, one in found.items()
    )
    return P, U, T


LARGE = 2**30  # bytes of a file, or of its numbers in memory, from which on it is read in batches
_NAMES = ("positive", "unlabeled", "target")


def load(path: str | os.PathLike[str]) -> Sketch | ScoreModel | Histogram:
    """Read a file of any of the three kinds.

    Parameters
    ----------
    path : str or path
        That :meth:`Sketch.save`, :meth:`ScoreModel.save` or :meth:`Histogram.save` wrote.

    Returns
    -------
    Sketch, ScoreModel or Histogram

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.sketch import Sketch, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Sketch.of([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]], features=64).save(f"{folder}/a.sketch")
    ...     print(load(f"{folder}/a.sketch"))
    sketch of 3 rows: 64 random features of a gaussian kernel, bandwidth 1, 2 columns
    """
    makers: dict[str, Callable[[container.Contents], Sketch | ScoreModel | Histogram]] = {
        SKETCH: Sketch.from_contents,
        MODEL: ScoreModel.from_contents,
        HISTOGRAM: Histogram.from_contents,
    }
    return container.load(path, makers)


def is_summary(sample: Any) -> bool:
    """Whether it is no rows but what was made of rows, or the path of a file of such.

    Parameters
    ----------
    sample : object
        Anything.

    Returns
    -------
    bool
    """
    return isinstance(sample, (Sketch, Histogram, ScoreModel)) or container.is_saved(sample)


def open_samples(positive: Any, unlabeled: Any, target: Any) -> list[Any]:
    """Read those of the three samples that are files of sketches or histograms; others stay as they are.

    Parameters
    ----------
    positive, unlabeled, target : object
        As :func:`priorshift.estimate_prior` takes them.

    Returns
    -------
    list
        In the same order.
    """
    samples = []
    for name, one in zip(_NAMES, (positive, unlabeled, target), strict=True):
        if isinstance(one, (str, Path)) and not os.path.exists(one):
            raise InputError(f"{name} ({one}) does not exist; check the path.")
        sample = load(one) if container.is_saved(one) else one
        if isinstance(sample, ScoreModel):
            raise InputError(
                f"{name} is a score model, but a sample is expected; count one by it, and pass its histogram."
            )
        samples.append(sample)
    return samples


def needs_batches(sample: Any) -> bool:
    """Whether a sample can be read in batches alone, or is too large to be read at once.

    Parameters
    ----------
    sample : object
        Anything.

    Returns
    -------
    bool
    """
    if isinstance(sample, (Chunks, Iterator)):
        return not isinstance(sample, IOBase)  # an open file is refused where rows are read
    if isinstance(sample, (list, tuple)):
        return bool(sample) and all(isinstance(one, (str, Path)) for one in sample)
    try:
        path = Path(sample) if isinstance(sample, (str, Path)) else None
        if path is None or not path.exists():
            return False
        if path.is_dir():
            return any(kind(file) == PARQUET for file in path.iterdir())
        return path.stat().st_size >= LARGE or (kind(path) == PARQUET and _numbers(path) >= LARGE)
    except (OSError, ValueError):
        return False


def _numbers(path: Path) -> int:
    """Bytes of a Parquet file's cells, if each were a number."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata
    except ImportError:
        return 0
    try:
        found = read_metadata(path)
    except (ArrowException, OSError):  # what is wrong is said where it is read
        return 0
    return int(8 * found.num_rows * found.num_columns)


def estimate_at_any_size(
    estimator: Any, positive: Any, unlabeled: Any, target: Any, *, drop: Sequence[str] = (), weights: Any = None
) -> PriorEstimate:
    """Estimate the target prior without holding a sample in memory.

    Parameters
    ----------
    estimator : WitnessShift or TCPU
        It is not fitted: WitnessShift answers from histograms, TCPU from sketches.
    positive, unlabeled, target : Sketch, Histogram, or sample
        Three histograms by one model; or sketches of one design, where samples beside them are sketched alike; or
        samples, which are read in batches, twice where a model is fitted.
    drop : sequence of str
        Columns that are not features.
    weights : None or str
        A column that says what each row stands for; of TCPU.

    Returns
    -------
    PriorEstimate
    """
    samples = [positive, unlabeled, target]
    histograms, sketches = ([isinstance(one, summary) for one in samples] for summary in (Histogram, Sketch))
    if any(histograms) and any(sketches):
        raise InputError(
            "a sketch stands beside a histogram, but they answer by different methods; pass three of a kind."
        )
    if any(histograms) or any(sketches):
        _refuse_settings(estimator, drop)
    if any(histograms):
        if weights is not None:
            raise InputError("weights were passed beside histograms, which count rows; leave them out.")
        return _of_histograms(estimator, *samples)
    if any(sketches):
        return from_sketches(*_beside_sketches(samples, weights), estimator)
    if isinstance(estimator, TCPU):
        return _by_sketches(estimator, samples, drop, weights)
    if not isinstance(estimator, WitnessShift):
        raise InputError(
            f"{type(estimator).__name__} needs all rows in memory; pass tables that fit there, or use the default "
            "method or TCPU."
        )
    if weights is not None:
        raise InputError("rows that are counted in batches cannot be weighted; use method='tcpu', or rows in memory.")
    return _of_histograms(estimator, *_counted(estimator, samples, drop))


def _refuse_settings(estimator: Any, drop: Sequence[str]) -> None:
    """What was fixed when the sample was sketched or counted cannot be set afterwards."""
    fixed = ("kernel", "bandwidth", "features", "standardize", "model", "repeats", "folds", "fit_rows", "max_rows")
    usual = inspect.signature(type(estimator)).parameters
    changed = [name for name in fixed if name in usual and getattr(estimator, name) != usual[name].default]
    for name in [*changed, *(["drop"] if drop else [])]:
        raise InputError(f"{name} was fixed when the samples were sketched or counted; leave it out.")


def _beside_sketches(samples: Sequence[Any], weights: Any) -> tuple[Sketch, Sketch, Sketch]:
    """Sketches of all three samples, where some are sketches already, which have their weights."""
    each = dict(zip(_NAMES, samples, strict=True))
    if isinstance(weights, str):
        tables = {name: one for name, one in each.items() if not isinstance(one, Sketch)}
        if not tables:
            raise InputError("weights were passed, but all samples are sketches, which have their own; leave them out.")
        drop = next(one.design.reader.drop for one in samples if isinstance(one, Sketch))
        streams = _streams(tables, drop, weights)
        each |= streams
        weights = {name: column for name, column in weights_of_each(streams, weights).items() if column is not None}
    return as_sketches(each["positive"], each["unlabeled"], each["target"], weights)


def _of_histograms(estimator: Any, positive: Any, unlabeled: Any, target: Any) -> PriorEstimate:
    if not isinstance(estimator, WitnessShift):
        raise InputError(
            f"histograms are answered by the default method, WitnessShift, not by {type(estimator).__name__}; leave "
            "method out, or pass sketches for TCPU."
        )
    for name, sample in zip(_NAMES, (positive, unlabeled, target), strict=True):
        if not isinstance(sample, Histogram):
            raise InputError(
                f"{name} is of type {type(sample).__name__} beside histograms, which do not hold the model that they "
                "were made by; make a histogram of it too, by that model."
            )
    check_sizes(positive=len(positive), unlabeled=len(unlabeled), target=len(target))
    check_alike(positive, target)
    source = counted_source(positive, unlabeled, estimator.scenario)
    estimate = estimator.fit_counts(source).estimate_counts(target.counted)
    more = budgets(positive=positive, unlabeled=unlabeled, target=target)
    return replace(estimate, details={**estimate.details, "fitted_rows": positive.fitted, **more})


def _counted(estimator: WitnessShift, samples: Sequence[Any], drop: Sequence[str]) -> list[Histogram]:
    streams = _streams(dict(zip(_NAMES, samples, strict=True)), drop)
    for name in ("positive", "unlabeled"):
        if not streams[name].can_repeat:
            raise InputError(
                f"{name} is a stream that can be read once, but the source is read twice, to fit a model and to count; "
                "pass files or a list of tables, or make the histograms yourself."
            )
    model = fit_model(estimator, streams, drop)
    return [Histogram.of(batches, like=model, device=estimator.device) for batches in streams.values()]


def _streams(samples: Mapping[str, Any], drop: Sequence[str], weights: Any = None) -> dict[str, Chunks]:
    """Samples in batches; a column of weights is set aside where it is there, even of those to drop."""
    optional = [weights] if isinstance(weights, str) else []
    left_out = [column for column in drop if column not in optional]
    return {name: Chunks.of(one, name, drop=left_out, optional=optional) for name, one in samples.items()}


def fit_model(estimator: WitnessShift, samples: Mapping[str, Chunks], drop: Sequence[str]) -> ScoreModel:
    """Fit the model of scores that an estimator asks for.

    Parameters
    ----------
    estimator : WitnessShift
        With its settings.
    samples : mapping of str to Chunks
        "positive" and "unlabeled", to which it is fitted, and "target".
    drop : sequence of str
        Columns that are not features, each of which stands in one of the samples at least.

    Returns
    -------
    ScoreModel
    """
    if estimator.model is not None:
        raise InputError(
            f"rows that are read in batches are scored by the library's own model, not by "
            f"{type(estimator.model).__name__}; leave model out, or pass tables that fit into memory."
        )
    names = ("repeats", "folds", "max_rows", "fit_rows", "standardize", "random_state")
    settings = {name: getattr(estimator, name) for name in names}
    of_source = dropped_of(samples, drop, ("positive", "unlabeled"))
    use_km2 = not is_known(estimator.source_prior)
    model = ScoreModel.fit(samples["positive"], samples["unlabeled"], drop=of_source, use_km2=use_km2, **settings)
    return replace(model, reader=model.reader.dropping(drop))


def _by_sketches(estimator: TCPU, samples: Sequence[Any], drop: Sequence[str], weights: Any) -> PriorEstimate:
    streams = _streams(dict(zip(_NAMES, samples, strict=True)), drop, weights)
    of_each = weights_of_each(streams, weights) if isinstance(weights, str) else dict(weights or {})
    settings = design_settings(estimator) | {"drop": dropped_of(streams, drop, ["unlabeled"])}
    first = Sketch.of(streams["unlabeled"], weights=of_each.get("unlabeled"), **settings)
    first = replace(first, design=first.design.dropping(drop))
    P, T = (Sketch.of(streams[name], like=first, weights=of_each.get(name)) for name in ("positive", "target"))
    return from_sketches(P, first, T, estimator)


def design_settings(estimator: TCPU) -> dict[str, Any]:
    """Give the settings of the sketches that an estimator asks for.

    Parameters
    ----------
    estimator : TCPU
        With its settings.

    Returns
    -------
    dict
        As :meth:`Sketch.of` takes them.
    """
    settings = {name: getattr(estimator, name) for name in ("kernel", "bandwidth", "features", "standardize")}
    return settings | {"random_state": 0 if estimator.random_state is None else estimator.random_state}
