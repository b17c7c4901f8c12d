"""Estimates without rows in memory: samples are summarised, in chunks here or in parts on a Dask cluster.

There is one path for all samples that do not fit into memory: fix a design or a score model by some rows of the source,
summarise each sample by it as a :class:`Sketch` or :class:`Histogram`, and estimate from the summaries. A sample on
this machine is read in chunks; the parts of a Dask collection are summarised where they are, and merged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

from priorshift.distributed.collections import Parts, compute, tree
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.parameters import is_known
from priorshift.io.readers import is_distributed
from priorshift.io.tables import ColumnSelection
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.results import PriorEstimate
from priorshift.sketch.design import Design, columns_to_drop, weight_columns
from priorshift.sketch.histogram import Histogram, check_model, estimate_from_histograms
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Sketch, design_like, estimate_from_sketches, given_settings

_NAME = "the sample"

# function of chunks and `start`, the number of rows of the sample before them; returns their sketch or histogram
Summarize = Callable[..., Any]


def sketch(
    collection: Any, *, like: Sketch | None = None, weights: str | None = None, client: Any = None, **settings: Any
) -> Sketch:
    """Sketch a sample that is distributed over many machines, as :meth:`Sketch.from_sample` does one in one place.

    Parameters
    ----------
    collection : Dask DataFrame, Array or Bag, or list of Delayed tables
        Parts of the sample. They are computed again if a worker is lost.
    like : Sketch or None
        Sketch whose design to use. None fixes a design by at most 65,536 rows, drawn from all parts.
    weights : None or name of a column
        Weight of each row.
    client : distributed.Client or None
        Client that computes. None is the current client if there is one, else Dask's scheduler on this machine.
    **settings : object
        Further settings of a first sketch, as in :meth:`Sketch.from_sample`.

    Returns
    -------
    Sketch
        Sketch of all rows; it does not depend on how they are partitioned.

    Examples
    --------
    >>> import dask.array as da
    >>> from priorshift import distributed, simulate
    >>> s = simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled = distributed.sketch(da.from_array(s.unlabeled, chunks=(500, 10)))
    >>> print(unlabeled)
    sketch of 1,667 rows: 512 random features of a gaussian kernel, bandwidth 2.24, 10 columns
    """
    passed = given_settings(settings)
    check_weights(weights)
    if like is None:
        streams = _open_collection(collection, passed.get("drop", ()), weights, client)
        design = Design.from_chunks(streams[_NAME], passed)
    else:
        design = design_like(like, passed)
        streams = _open_collection(collection, design.reader.drop, weights, client)
    summarize = partial(sketch_chunks, design, {_NAME: weights}, own_design=like is None)
    return summarize_all(streams, summarize)[_NAME]


def histogram(collection: Any, model: ScoreModel, *, device: str = "auto", client: Any = None) -> Histogram:
    """Count the rows of a distributed sample, as :meth:`Histogram.from_sample` does those of one in one place.

    Parameters
    ----------
    collection : Dask DataFrame, Array or Bag, or list of Delayed tables
        Parts of the sample, with the columns of the model.
    model : ScoreModel
        Model that scores and ranks rows.
    device : str
        Where each worker scores rows, as in :meth:`Histogram.from_sample`. Default "auto".
    client : distributed.Client or None
        Client that computes, as in `sketch`.

    Returns
    -------
    Histogram
        Histogram of all rows; it does not depend on how they are partitioned.

    Examples
    --------
    >>> import dask.array as da
    >>> from priorshift import distributed, simulate
    >>> from priorshift.sketch import ScoreModel
    >>> s = simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> print(distributed.histogram(da.from_array(s.target, chunks=(100, 10)), model))
    histogram of 500 rows by a score model of 83 positives
    """
    check_model(model)
    streams = _open_collection(collection, model.reader.drop, client=client)
    count = partial(Histogram.from_sample, model=model, device=device)
    return summarize_all(streams, count, by_place=model.by_place)[_NAME]


def estimate_streams(estimator: Any, samples: Mapping[str, Any], drop: Sequence[str], weights: Any) -> PriorEstimate:
    """Estimate the target prior from "positive", "unlabeled" and "target" without all of their rows in memory.

    TCPU uses sketches of the samples and WitnessShift histograms. `drop` are columns that are not used; `weights` is
    the name of a column, or a mapping from samples to weights.
    """
    streams = open_streams(samples, drop, weights)
    if isinstance(estimator, TCPU):
        weights_of = weights if isinstance(weights, Mapping) else weight_columns(streams, weights)
        design = fit_design(estimator, streams, drop, ["unlabeled"])
        summarize = partial(sketch_chunks, design, weights_of, own_design=True)
        return estimate_from_sketches(estimator, **summarize_all(streams, summarize))
    check_repeatable(streams, ("positive", "unlabeled"))
    model = _fit_model(estimator, streams, drop)
    count = partial(Histogram.from_sample, model=model, device=estimator.device)
    return estimate_from_histograms(estimator, **summarize_all(streams, count, by_place=model.by_place))


def open_streams(samples: Mapping[str, Any], drop: Sequence[str], weights: Any) -> dict[str, Chunks]:
    """Open samples, without the columns `drop`, for reading in chunks; the keys are the names of the samples.

    If `weights` is the name of a column, it is not a feature in those samples that have it.
    """
    selection = _select_columns(drop, weights)
    streams = {}
    for name, sample in samples.items():
        if is_distributed(sample):
            streams[name] = Chunks(name, [Parts.from_collection(sample, name, selection)])
        else:
            streams[name] = Chunks.from_source(sample, name, drop=selection.drop, optional=selection.optional)
    return streams


def _open_collection(
    collection: Any, drop: Sequence[str], weights: Any = None, client: Any = None
) -> dict[str, Chunks]:
    """Open one distributed sample as `open_streams` does; raise an error for anything but a Dask collection."""
    return {_NAME: Chunks(_NAME, [Parts.from_collection(collection, _NAME, _select_columns(drop, weights), client)])}


def _select_columns(drop: Sequence[str], weights: Any) -> ColumnSelection:
    """Return the columns to leave out: `drop`, and the column `weights`, which not every sample needs to have."""
    optional = (weights,) if isinstance(weights, str) else ()
    return ColumnSelection(drop=tuple(column for column in drop if column not in optional), optional=optional)


def sketch_like_first(samples: Mapping[str, Any], weights: str | Mapping[str, Any] | None = None) -> dict[str, Sketch]:
    """Return all samples as sketches: a table is sketched with the design of the first sketch among U, P and T.

    The keys of `samples`, of which one at least is a sketch, are the names of samples in messages; U is "unlabeled".
    `weights` is the name of a column of the tables, or a mapping from samples to weights.
    """
    in_order = [samples[name] for name in sorted(samples, key=lambda name: name != "unlabeled")]
    first = next(sample for sample in in_order if isinstance(sample, Sketch))
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
    sketched = {
        name: Sketch.from_sample(table, like=first, weights=weights.get(name)) for name, table in tables.items()
    }
    return {**samples, **sketched}


def check_repeatable(streams: Mapping[str, Chunks], names: Sequence[str]) -> None:
    """Raise InputError if one of the samples `names`, to which scores are fitted, can be read only once."""
    for name in names:
        if not streams[name].can_repeat:
            raise InputError(
                f"{name} is an iterator, which can be read only once, but the source is read twice, to fit a model and "
                "to summarise all rows. Pass files or a list of tables."
            )


def _fit_model(estimator: WitnessShift, streams: Mapping[str, Chunks], drop: Sequence[str]) -> ScoreModel:
    """Fit a score model to the streams "positive" and "unlabeled", with the settings of an estimator.

    Raise InputError if a column to drop is in no sample.
    """
    if estimator.model is not None:
        raise InputError(
            f"model={type(estimator.model).__name__} needs all rows in memory; leave model out, or pass tables that "
            "fit into memory."
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


def fit_design(estimator: Any, streams: Mapping[str, Chunks], drop: Sequence[str], names: Sequence[str]) -> Design:
    """Fit the design of sketches to a subsample of the streams `names` together, with the settings of an estimator."""
    settings = {
        name: getattr(estimator, name)
        for name in ("kernel", "bandwidth", "features", "standardize")
        if hasattr(estimator, name)
    }
    settings["random_state"] = 0 if estimator.random_state is None else estimator.random_state
    settings["drop"] = tuple(columns_to_drop(streams, drop, names))
    together = Chunks(" and ".join(names), [part for name in names for part in streams[name].parts])
    design = Design.from_chunks(together, settings)
    return replace(design, reader=replace(design.reader, drop=tuple(drop)))


def sketch_chunks(
    design: Design, weights_of: Mapping[str, Any], chunks: Chunks, start: int = 0, *, own_design: bool
) -> Sketch:
    """Sketch a sample, or a part of it, by a given design; `own_design` says whether the samples here fixed it.

    `weights_of` maps the names of samples to weights. `start` is that of `Summarize`; a sketch does not need it.
    """
    return Sketch.from_chunks(chunks, design, weights_of.get(chunks.name), own_design=own_design)


def summarize_all(
    streams: Mapping[str, Chunks],
    summarize: Summarize,
    *,
    by_place: bool = False,
    merge: Callable[[Any, Any], Any] | None = None,
) -> dict[str, Any]:
    """Return the summary of each sample: Dask collections in one graph on their cluster, others here.

    With `by_place` a row's position in its sample matters, so that the rows before each part are counted first. `merge`
    combines the summaries of two parts of a sample; the default is that of sketches and histograms.
    """
    trees, collections, client = {}, {}, None
    for name, chunks in streams.items():
        parts = chunks.parts[0]
        if not isinstance(parts, Parts):
            continue
        if by_place:
            starts = [0, *accumulate(parts.counts[:-1])]  # number of rows before each part
            outcomes = parts.map(_summarize_part, parts.selection, summarize, each=starts)
        else:
            outcomes = parts.map_fused(_summarize_part, parts.selection, summarize)
        trees[name], collections[name], client = tree(outcomes, merge or _merge), parts, parts.client
    summaries = dict(zip(trees, compute(trees.values(), client), strict=True)) if trees else {}
    for name, summary in summaries.items():
        if summary is None:
            raise collections[name].no_rows()
    local = {name: summarize(chunks) for name, chunks in streams.items() if name not in trees}
    return summaries | local


def _summarize_part(part: Any, name: str, selection: ColumnSelection, summarize: Summarize, start: int = 0) -> Any:
    """Return the sketch or histogram of one part of the sample `name`, before which the sample has `start` rows."""
    chunks = Chunks.from_source(part, name, extra=selection.extra, drop=selection.drop, optional=selection.optional)
    return summarize(chunks, start=start)


def _merge(summary: Any, other: Any) -> Any:
    """Merge the sketches or histograms of two parts of a sample."""
    return summary.merge(other)


def check_weights(weights: Any) -> None:
    """Raise InputError for weights of a distributed sample that are not the name of a column."""
    if weights is not None and not isinstance(weights, str):
        raise InputError(
            f"weights is of type {type(weights).__name__}, but the rows are on many machines. Put the weights into a "
            "column, and pass its name."
        )


def refuse_fixed_settings(estimator: Any, drop: Sequence[str]) -> None:
    """Raise InputError if the user sets what was fixed when the samples were sketched or counted.

    That is columns to `drop`, and settings of the estimator that differ from its defaults.
    """
    fixed = ("kernel", "bandwidth", "features", "standardize", "model", "repeats", "folds", "fit_rows", "max_rows")
    parameters = inspect.signature(type(estimator)).parameters
    changed = [name for name in fixed if name in parameters and getattr(estimator, name) != parameters[name].default]
    if drop:
        changed.append("drop")
    if changed:
        raise InputError(f"{changed[0]} was fixed when the samples were sketched or counted; leave it out.")
