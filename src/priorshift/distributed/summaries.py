"""Sketches, histograms and estimates of samples on many machines: each part is summarised where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import add
from typing import Any

from priorshift.distributed.collections import Parts, is_distributed, open_collection
from priorshift.distributed.exact import estimate_exactly
from priorshift.distributed.reduction import compute, tree
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.results import PriorEstimate
from priorshift.sketch.estimation import estimate_from_histograms, estimate_from_sketches, fit_design, fit_model
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.row_reader import open_chunks, weight_columns
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Design, Sketch, design_like, given_settings

_NAME = "the sample"


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
    given = given_settings(settings)
    check_weights(weights)
    if like is None:
        aside = [weights] if weights else []
        chunks = open_collection(collection, _NAME, drop=given.get("drop", ()), extra=aside, client=client)
        design = Design.from_chunks(chunks, given)
    else:
        design = design_like(like, given)
    parts = Parts.from_collection(collection, _NAME)
    (moments,) = compute([_moments_tree(parts, design, weights)], client)
    if moments is None:
        raise parts.no_rows()
    return Sketch(design, moments, own_design=like is None)


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
    if not isinstance(model, ScoreModel):
        raise InputError(f"model is of type {type(model).__name__}, but a ScoreModel is expected; fit one first.")
    parts = Parts.from_collection(collection, _NAME)
    (counted,) = compute([_histogram_tree(parts, model, device, client)], client)
    if counted is None:
        raise parts.no_rows()
    return counted


def count_collections(
    estimator: WitnessShift, samples: Mapping[str, Any], drop: Sequence[str] = (), client: Any = None
) -> dict[str, Histogram]:
    """Fit the score model of an estimator to "positive" and "unlabeled", and count these and "target" by it."""
    chunks = {name: open_collection(sample, name, drop=drop, client=client) for name, sample in samples.items()}
    model, device = fit_model(estimator, chunks, drop), estimator.device

    def count_there(parts: Parts) -> Any:
        return _histogram_tree(parts, model, device, client)

    def count_here(table: Any, name: str) -> Histogram:
        return _count_part(table, name, model, device)

    return _summarise(samples, count_there, count_here, client)


def sketch_collections(
    estimator: TCPU,
    samples: Mapping[str, Any],
    drop: Sequence[str] = (),
    weights: str | None = None,
    client: Any = None,
) -> dict[str, Sketch]:
    """Fix a design by an estimator's settings and "unlabeled", and sketch "positive", "unlabeled" and "target"."""
    optional = [weights] if weights else []
    chunks = {
        name: open_collection(sample, name, drop=drop, optional=optional, client=client)
        for name, sample in samples.items()
    }
    weights_of = weight_columns(chunks, weights)
    design = fit_design(estimator, chunks, drop)

    def sum_there(parts: Parts) -> Any:
        return _moments_tree(parts, design, weights_of[parts.name])

    def sum_here(table: Any, name: str) -> FeatureMoments:
        return _sum_part(table, name, design, weights_of[name])

    moments = _summarise(samples, sum_there, sum_here, client)
    return {name: Sketch(design, one) for name, one in moments.items()}


def estimate_collections(
    estimator: Any, samples: Mapping[str, Any], drop: Sequence[str], weights: Any, client: Any = None
) -> PriorEstimate:
    """Estimate by WitnessShift or TCPU; rows stay where they are, and each part is summarised there in one pass."""
    check_weights(weights)
    if not isinstance(estimator, TCPU):
        return estimate_from_histograms(estimator, **count_collections(estimator, samples, drop, client))
    if estimator.embedding == "exact":
        return estimate_exactly(samples, estimator, drop, weights, client)
    return estimate_from_sketches(estimator, **sketch_collections(estimator, samples, drop, weights, client))


def check_weights(weights: Any) -> None:
    """Refuse weights of a distributed sample that are not the name of a column."""
    if weights is not None and not isinstance(weights, str):
        raise InputError(
            f"weights is of type {type(weights).__name__}, but the rows are on many machines. Put the weights into a "
            "column, and pass its name."
        )


def _summarise(
    samples: Mapping[str, Any], there: Callable[[Parts], Any], here: Callable[[Any, str], Any], client: Any
) -> dict[str, Any]:
    """Summarise collections by the Delayed outcome of `there`, all in one graph, and tables by `here`."""
    parts = {name: Parts.from_collection(sample, name) for name, sample in samples.items() if is_distributed(sample)}
    summaries = dict(zip(parts, compute([there(one) for one in parts.values()], client), strict=True))
    for name, summary in summaries.items():
        if summary is None:
            raise parts[name].no_rows()
    return {name: summaries[name] if name in parts else here(sample, name) for name, sample in samples.items()}


def _moments_tree(parts: Parts, design: Design, weights: str | None) -> Any:
    """Return the Delayed moments of all rows."""
    return tree(parts.map_fused(_sum_part, design, weights), add)


def _histogram_tree(parts: Parts, model: ScoreModel, device: str, client: Any) -> Any:
    """Return the Delayed histogram of all rows; some models need to know how many rows come before each part."""
    if not model.by_place:
        return tree(parts.map_fused(_count_part, model, device), Histogram.merge)
    starts = [0, *accumulate(parts.count(client)[:-1])]
    return tree(parts.map(_count_part, model, device, each=starts), Histogram.merge)


def _sum_part(part: Any, name: str, design: Design, weights: str | None) -> FeatureMoments:
    return design.moments(open_chunks(part, design.reader.drop, weights, name), weights)


def _count_part(part: Any, name: str, model: ScoreModel, device: str, start: int = 0) -> Histogram:
    chunks = Chunks.from_source(part, name, drop=model.reader.drop)
    return Histogram.from_sample(chunks, model, device=device, start=start)
