"""Estimate from samples that are distributed over many machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from priorshift.api import make_estimator
from priorshift.distributed.exact import estimate_exactly
from priorshift.distributed.reduction import import_dask
from priorshift.distributed.summaries import check_weights, count_collections, sketch_collections
from priorshift.errors import InputError
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.results import PriorEstimate
from priorshift.sketch.estimation import estimate_from_histograms, estimate_from_sketches


def estimate_prior(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    method: Any = "auto",
    source_prior: Any = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    embedding: str | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    client: Any = None,
) -> PriorEstimate:
    """Estimate the share of positives in the target population, from samples that lie on many machines.

    Rows stay where they are. A sample of them, of the source alone, decides how rows are read and scored; each part is
    then summed up in one pass, all three samples in one graph.

    Parameters
    ----------
    positive, unlabeled, target : Dask DataFrame, Array or Bag, list of Delayed tables, or table
        As in :func:`priorshift.estimate_prior`; what is no collection of Dask's is a table that lies here.
    method : {"auto", "witness", "tcpu"} or estimator
        "auto" is :class:`WitnessShift` ("witness"), from histograms of scores; "tcpu" is :class:`TCPU`. Either may be
        an estimator with its own settings; then leave out what it has.
    source_prior : float, (low, high), distribution or None
        Share of positives in the source population, if it is known, exactly or roughly. None estimates it, unless
        "tcpu" uses random features, which cannot.
    confidence : float or None
        Of the interval; None is 0.95.
    random_state : int, Generator or None
        Decides everything random.
    standardize : bool or None
        Scale every column by the mean and spread of the unlabelled source sample, which None does.
    embedding : {"random-features", "exact"} or None
        Of "tcpu": sketches of random features, which None is, in a time that is linear in rows; or all pairs of rows,
        for samples that fit into the memory of this machine, with the answer of :class:`TCPU` in memory.
    drop : sequence of str
        Columns that are not features.
    weights : None or name of a column
        What each row stands for; of "tcpu".
    client : distributed.Client or None
        Who computes; None is the current client where there is one, and else Dask's scheduler on this machine.

    Returns
    -------
    PriorEstimate
        Which prints as one line.

    Examples
    --------
    >>> import dask.array as da
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled, target = (da.from_array(rows, chunks=(500, 10)) for rows in (s.unlabeled, s.target))
    >>> print(ps.distributed.estimate_prior(s.positive, unlabeled, target, method="tcpu", source_prior=0.2))
    target prior 0.609, 95% interval 0.576 to 0.643 (TCPU, source prior 0.2)
    """
    import_dask()
    given = {"source_prior": source_prior, "confidence": confidence, "random_state": random_state,
             "standardize": standardize, "embedding": embedding}  # fmt: skip
    estimator = make_estimator(method, given)
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    drop = tuple([drop] if isinstance(drop, str) else drop)
    check_weights(weights)
    if isinstance(estimator, WitnessShift):
        if weights is not None:
            raise InputError("rows that are counted cannot be weighted; use method='tcpu', or rows in memory.")
        return estimate_from_histograms(estimator, **count_collections(estimator, samples, drop, client))
    if not isinstance(estimator, TCPU):
        raise InputError(
            f"{type(estimator).__name__} needs all rows in memory; use ps.estimate_prior for tables that fit there, or "
            "method='auto' or 'tcpu' here."
        )
    if estimator.embedding == "exact":
        return estimate_exactly(samples, estimator, drop, weights, client)
    return estimate_from_sketches(estimator, **sketch_collections(estimator, samples, drop, weights, client))
