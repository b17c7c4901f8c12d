"""Answers from three sketches: the target prior, the ratio of negatives, and whether there is a shift at all.

What is made of rows in memory is made of sketches: :class:`TCPU` and :class:`KernelRatio` get mean embeddings and never
learn where these came from. Kernel, bandwidth, scale and random features are those of the sketches; of the estimator's
settings, what is known of π, the statistic, the scenario, the interval and its confidence are heeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from priorshift import intervals
from priorshift.embedding.gram import Embeddings
from priorshift.embedding.random_features import described
from priorshift.embedding.sketched import embed_moments
from priorshift.errors import InputError
from priorshift.input.enough import check_sizes
from priorshift.input.parameters import is_known
from priorshift.input.weights import check_worth
from priorshift.kernel_ratio import KernelRatio
from priorshift.numerals import p_words
from priorshift.prior_knowledge import read_prior
from priorshift.result import NegativeRatio, PriorEstimate
from priorshift.sketch.container import is_saved
from priorshift.sketch.private import budgets
from priorshift.sketch.sketch import Sketch
from priorshift.sketch.swapped import warn_if_swapped
from priorshift.tcpu import TCPU


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
        return f"{self.ratio}; no shift (1) has {p_words(self.p_value)}"


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
    >>> from priorshift.sketch.answer import from_sketches
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
