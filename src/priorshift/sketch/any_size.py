"""Estimates from samples of any size: sketches, histograms, files of such, or rows that are read in batches."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import IOBase
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.input.batches import Batches
from priorshift.input.enough import check_sizes
from priorshift.input.files import PARQUET, kind
from priorshift.input.parameters import is_known
from priorshift.result import PriorEstimate
from priorshift.sketch import container
from priorshift.sketch.answer import as_sketches, from_sketches
from priorshift.sketch.histogram import KIND as HISTOGRAM
from priorshift.sketch.histogram import Histogram, check_alike, counted_source
from priorshift.sketch.private import budgets
from priorshift.sketch.score_model import KIND as MODEL
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import KIND as SKETCH
from priorshift.sketch.sketch import Sketch
from priorshift.sketch.stream import dropped_of, weights_of_each
from priorshift.tcpu import TCPU
from priorshift.witness_shift import WitnessShift

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
    if isinstance(sample, (Batches, Iterator)):
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
    estimate = estimator.fit_counted(source).estimate_counted(target.counted)
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


def _streams(samples: Mapping[str, Any], drop: Sequence[str], weights: Any = None) -> dict[str, Batches]:
    """Samples in batches; a column of weights is set aside where it is there, even of those to drop."""
    optional = [weights] if isinstance(weights, str) else []
    left_out = [column for column in drop if column not in optional]
    return {name: Batches.of(one, name, drop=left_out, optional=optional) for name, one in samples.items()}


def fit_model(estimator: WitnessShift, samples: Mapping[str, Batches], drop: Sequence[str]) -> ScoreModel:
    """Fit the model of scores that an estimator asks for.

    Parameters
    ----------
    estimator : WitnessShift
        With its settings.
    samples : mapping of str to Batches
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
    ask_km2 = not is_known(estimator.source_prior)
    model = ScoreModel.fit(samples["positive"], samples["unlabeled"], drop=of_source, ask_km2=ask_km2, **settings)
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
