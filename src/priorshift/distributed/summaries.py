"""Sketches and histograms of rows that lie on many machines: each part is summed up where it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from priorshift.distributed.collections import Parts, as_batches, no_rows
from priorshift.distributed.reduction import compute, tree
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.sketch.design import Design, given_settings
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.row_reader import read_batches, weighted_rows
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import DESIGN_ROWS, Sketch, design_like

_NAME = "the sample"


def sketch(
    collection: Any,
    *,
    like: Sketch | None = None,
    weights: str | None = None,
    random_state: int | np.random.Generator | None = None,
    features: int | None = None,
    bandwidth: str | float | None = None,
    kernel: Any = None,
    drop: Sequence[str] = (),
    standardize: bool | None = None,
    client: Any = None,
) -> Sketch:
    """Sketch a sample that lies on many machines, as :meth:`Sketch.of` does one that lies here.

    Parameters
    ----------
    collection : Dask DataFrame, Array or Bag, or list of Delayed tables
        Whose parts can be made again, if a worker is lost.
    like : Sketch or None
        One whose design it shall have; no other setting may stand beside it but `weights`. None fixes columns,
        encoding, scale and bandwidth by 65,536 rows at the most, drawn from all parts.
    weights : None or name of a column
        What each row stands for.
    random_state : int, Generator or None
        This and what is not described here are as in :meth:`Sketch.of`.
    features : int or None
    bandwidth : float, str or None
    kernel : str, kernel or None
    drop : sequence of str
    standardize : bool or None
    client : distributed.Client or None
        Who computes; None is the current client where there is one, and else Dask's scheduler on this machine.

    Returns
    -------
    Sketch
        That of all rows, in whatever parts they come.

    Examples
    --------
    >>> import dask.array as da
    >>> from priorshift import distributed, simulate
    >>> s = simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled = distributed.sketch(da.from_array(s.unlabeled, chunks=(500, 10)))
    >>> print(unlabeled)
    sketch of 1,667 rows: 512 random features of a gaussian kernel, bandwidth 2.24, 10 columns
    """
    settings = given_settings(
        drop,
        random_state=random_state,
        features=features,
        bandwidth=bandwidth,
        kernel=kernel,
        standardize=standardize,
    )
    check_weights(weights)
    if like is None:
        aside = [weights] if weights else []
        batches = as_batches(collection, _NAME, drop=settings.get("drop", ()), aside=aside, client=client)
        design = design_of(batches, settings)
    else:
        design = design_like(like, settings)
    parts = Parts.of(collection, _NAME)
    (moments,) = compute([moments_tree(parts, design, weights)], client)
    if moments is None:
        raise no_rows(parts)
    return Sketch(design, moments, own_design=like is None)


def histogram(collection: Any, model: ScoreModel, *, device: str = "auto", client: Any = None) -> Histogram:
    """Count the rows of a sample that lies on many machines, as :meth:`Histogram.of` does those of one that lies here.

    Parameters
    ----------
    collection : Dask DataFrame, Array or Bag, or list of Delayed tables
        With the columns of the model.
    model : ScoreModel
        What ranks rows; it travels to where they are.
    device : str
        Where each worker scores rows, as in :meth:`Histogram.of`.
    client : distributed.Client or None
        As in `sketch`.

    Returns
    -------
    Histogram
        That of all rows, in whatever parts they come.

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
        raise InputError(f"model is of type {type(model).__name__}, but a histogram is made by a ScoreModel; pass one.")
    parts = Parts.of(collection, _NAME)
    (made,) = compute([histogram_tree(parts, model, device, client)], client)
    if made is None:
        raise no_rows(parts)
    return made


def check_weights(weights: Any) -> None:
    """Of rows in many places, the name of a column."""
    if weights is not None and not isinstance(weights, str):
        raise InputError(
            f"weights is of type {type(weights).__name__}, but rows lie in many places; put the weights into a column, "
            "and pass its name."
        )


def design_of(batches: Chunks, settings: dict[str, Any]) -> Design:
    """The design that :meth:`Sketch.of` would give to the rows, if they were here."""
    return Design.of(batches.sample(DESIGN_ROWS, np.random.default_rng(0)), **settings)


def moments_tree(parts: Parts, design: Design, weights: str | None = None) -> Any:
    """A Delayed outcome: the moments of all rows."""
    return tree(parts.fused(moments_of, design, weights), add)


def histogram_tree(parts: Parts, model: ScoreModel, device: str = "auto", client: Any = None) -> Any:
    """A Delayed outcome: the histogram of all rows.

    A model that deals rows by their place must know how many come before a part.
    """
    if not model.by_place:
        return tree(parts.fused(histogram_of, model, device), Histogram.merge)
    starts = [0, *accumulate(parts.count(client)[:-1])]
    return tree(parts.outcomes(histogram_of, model, device, each=starts), Histogram.merge)


def moments_of(part: Any, name: str, design: Design, weights: str | None = None) -> FeatureMoments:
    """The moments of a table that is here."""
    batches = read_batches(part, design.reader.drop, weights, name)
    return FeatureMoments.from_rows(design.features, weighted_rows(batches, design.reader, weights))


def histogram_of(part: Any, name: str, model: ScoreModel, device: str = "auto", start: int = 0) -> Histogram:
    """The histogram of a table that is here."""
    return Histogram.of(Chunks.of(part, name, drop=model.reader.drop), like=model, device=device, start=start)
