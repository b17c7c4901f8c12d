"""Pictures on Axes that the caller gives, or on new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from priorshift.drpu import DRPU
from priorshift.errors import InputError
from priorshift.input.tables import match_columns, read_table
from priorshift.input.targets import are_iso_dates
from priorshift.km import KM2
from priorshift.result import PriorEstimate
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.mixture import density
from priorshift.witness_shift import WitnessShift

# Okabe and Ito's colours, told apart with every kind of colour vision
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
_BARS = 25  # of a histogram of p-values
_TICKS, _LETTERS = 12, 45  # names under a series, and letters that fit side by side
_POINTS = 3000  # rows drawn of each sample; more make a picture heavy, not clearer


def objective(estimate: PriorEstimate, ax: Any = None, *, truth: float | None = None) -> Any:
    """Draw the objective above its minimum, L(γ) − min L, with the estimate and its interval.

    Parameters
    ----------
    estimate : PriorEstimate
        Of a method with a kernel.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.
    truth : float or None
        The true prior, where it is known.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    if np.isfinite(estimate.raw) and (np.isnan(estimate.separation) or estimate.evidence is not None):
        raise InputError(
            f"{estimate.method} has no objective to draw; plots.mixture, plots.level_sets and plots.distance_curve "
            "draw other estimators."
        )
    if np.isnan(estimate.raw):
        raise InputError("there is no estimate to draw: the separation is not positive; see estimate.separation.")
    low, high = min(0.0, estimate.raw), max(1.0, estimate.raw)
    gamma = np.linspace(low, high, 401)
    curve = estimate.excess(gamma)
    ax.plot(gamma, curve, color="black", linewidth=1.5)
    interval = estimate.interval
    label = f"estimate {estimate.value:.3f}"
    if interval is not None:
        label += f", {100 * interval.confidence:g}% interval {interval.low:.3f} to {interval.high:.3f}"
        ax.axvspan(interval.low, interval.high, color=BLUE, alpha=0.2, linewidth=0)
    ax.axvline(estimate.value, color=BLUE, linewidth=1.5, label=label)
    if truth is not None:
        ax.axvline(truth, color=ORANGE, linewidth=1.5, linestyle="--", label=f"truth {truth:.3f}")
    ax.set_xlim(low, high)
    ax.set_ylim(0, float(curve.max()) * 1.05 or 1.0)
    ax.set_xlabel("target prior γ")
    ax.set_ylabel("objective above its minimum")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)  # above, where it hides nothing
    return ax


def series(estimates: Mapping[str, PriorEstimate], ax: Any = None) -> Any:
    """Draw the estimates of several targets side by side, with their intervals and the band that holds all at once.

    Parameters
    ----------
    estimates : PriorEstimates or mapping of str to PriorEstimate
        In the order of time where the names are dates, months or years as ISO writes them, else in their own.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    names = list(estimates)
    dated = are_iso_dates(names)
    if dated:
        names.sort()
    at = np.array(names, dtype="datetime64[D]") if dated else np.arange(len(names))
    values = np.array([estimates[name].value for name in names])
    bands = getattr(estimates, "band", None)
    if bands:
        ends = np.array([(bands[name].low, bands[name].high) for name in names]).T
        label = f"all at once, {100 * bands[names[0]].confidence:g}%"
        if dated and len(names) > 1:
            ax.fill_between(at, *ends, color=BLUE, alpha=0.15, linewidth=0, label=label)
        else:
            ax.vlines(at, *ends, color=BLUE, alpha=0.25, linewidth=8, label=label)
    intervals = [estimates[name].interval for name in names]
    sure = [k for k, interval in enumerate(intervals) if interval is not None]
    if sure:
        kept = [interval for interval in intervals if interval is not None]
        label = f"{100 * kept[0].confidence:g}% interval"
        lows, highs = [interval.low for interval in kept], [interval.high for interval in kept]
        ax.vlines(at[sure], lows, highs, color=BLUE, linewidth=1.5, label=label)
    ax.plot(at, values, "o-" if dated else "o", color=BLUE, markersize=4, linewidth=1, label="estimate")
    step = 1 + (len(names) - 1) // _TICKS
    crowded = sum(map(len, names[::step])) > _LETTERS
    ax.set_xticks(at[::step], names[::step], rotation=45 if crowded else 0)
    ax.set_xlabel(getattr(estimates, "by", None) or "target")
    ax.set_ylabel("target prior")
    ax.set_ylim(0, 1)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, ncols=3)
    return ax


def mixture(estimator: WitnessShift, target: Any = None, ax: Any = None) -> Any:
    """Draw the p-values of population and target, with the fitted mixtures and the level of their positives.

    Positives are spread evenly, negatives pile up at 0: each curve ends at the prior of its sample.

    Parameters
    ----------
    estimator : WitnessShift
        Fitted.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or what the estimator said of them; None draws the source alone.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    check_is_fitted(estimator)
    scored = estimator.scored_
    priors, weights = scored.mixture
    g, largest = density(weights).mean(axis=0), float(priors.mean())
    edges = np.linspace(0, 1, len(g) + 1)
    samples = [("source", GREY, scored.counts, largest)]
    if target is not None:
        estimate = target if isinstance(target, PriorEstimate) else estimator.estimate(target)
        if estimate.method != estimator.label or estimate.evidence is None:
            raise InputError(f"an estimate by {estimate.method} has no p-values to draw; pass one by WitnessShift.")
        prior = 1 - (1 - largest) * estimate.negative_ratio
        samples.append(("target", BLUE, estimate.evidence, prior))
    for name, colour, counts, prior in samples:
        bars = counts.sum(axis=0).reshape(_BARS, -1).sum(axis=1)
        height = bars * _BARS / bars.sum()
        ax.stairs(height, edges[:: len(g) // _BARS], fill=True, color=colour, alpha=0.35)
        label = f"{name}: mixture prior {prior:.3f}"
        ax.plot((edges[1:] + edges[:-1]) / 2, prior + (1 - prior) * g, color=colour, linewidth=1.5, label=label)
        ax.axhline(prior, color=colour, linestyle=":", linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 4)
    ax.set_xlabel("p-value among the positives")
    ax.set_ylabel("density")
    ax.set_title(f"source prior in use {estimator.source_prior_:.3f}", fontsize=10)
    ax.legend(frameon=False)
    return ax


def level_sets(drpu: DRPU, target: Any = None, ax: Any = None) -> Any:
    """Draw DRPU's ratio of shares against the share of positives, for the source population and a target.

    Each prior is the lowest point of its curve on the right of the dotted line, where enough positives lie above the
    threshold to trust it.

    Parameters
    ----------
    drpu : DRPU
        Fitted.
    target : array-like, data frame, PriorEstimate or None
        Rows of a target, or what the estimator said of them; None draws the source alone.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    samples = [("source", GREY, drpu.share_curve())]
    if target is not None:
        curve = target.evidence if isinstance(target, PriorEstimate) else drpu.share_curve(target)
        if not isinstance(curve, ShareCurve):
            raise InputError(f"an estimate by {target.method} has no level sets to draw; pass one by DRPU.")
        samples.append(("target", BLUE, curve))
    for name, colour, curve in samples:
        best = curve.smallest(drpu.least_share_)
        ax.plot(curve.positive, curve.population / curve.positive, color=colour, linewidth=1.5)
        ax.plot(best.positive, best.ratio, "o", color=colour, label=f"{name} prior {best.ratio:.3f}")
    ax.axvline(
        drpu.least_share_, color="black", linestyle=":", linewidth=1, label=f"trusted above {drpu.least_share_:.2f}"
    )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("share of positives above the threshold")
    ax.set_ylabel("share of the population / share of positives")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, ncols=3)
    return ax


def distance_curve(km: KM2, ax: Any = None, *, prior: ArrayLike | None = None) -> Any:
    """Draw KM's distance d(λ) against the prior 1 − 1/λ, with its slope, the threshold and the estimate.

    Parameters
    ----------
    km : KM1 or KM2
        Fitted.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.
    prior : array-like or None
        Priors to draw the curve at; around the estimate by default.

    Returns
    -------
    matplotlib Axes
        For the distance; its slope has an axis on the right.
    """
    ax = new_axes(ax)
    curve = km.curve(prior)
    ax.plot(curve.prior, curve.distance, color="black", linewidth=1.5, label="distance")
    ax.set_xlabel("prior 1 − 1/λ")
    ax.set_ylabel("distance d(λ) to the hull")
    right = ax.twinx()
    right.plot(curve.prior, curve.slope, color=GREY, linewidth=1.5, label="slope d′(λ)")
    for rule, slope in curve.thresholds.items():
        mine = rule == km.rule
        right.axhline(
            slope,
            color=BLUE if mine else ORANGE,
            linewidth=1,
            linestyle="-" if mine else "--",
            label=f"threshold of {rule}",
        )
    right.set_ylabel("slope")
    right.set_ylim(0)
    ax.set_ylim(0)
    ax.axvline(km.prior_, color=BLUE, linewidth=1.5, label=f"{km.rule}: {km.prior_:.3f}")
    lines = [*ax.get_lines(), *right.get_lines()]
    ax.legend(lines, [line.get_label() for line in lines], loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2,
              frameon=False)  # fmt: skip
    return ax


def label_shift(positive: Any, unlabeled: Any, target: Any, axes: Sequence[Any] | None = None) -> Any:
    """Draw source and target side by side: labelled positives, unlabelled rows, target rows.

    With more than two features the rows are projected on the two principal components of the standardised
    unlabelled sample; with one, they are drawn against a random height.

    Parameters
    ----------
    positive, unlabeled, target : as in :func:`priorshift.estimate_prior`
    axes : pair of matplotlib Axes or None
        For the source and for the target; a new figure by default.

    Returns
    -------
    pair of matplotlib Axes
    """
    tables = [read_table(t, n) for t, n in ((unlabeled, "unlabeled"), (positive, "positive"), (target, "target"))]
    samples = [table.values[:: max(1, len(table.values) // _POINTS)] for table in match_columns(tables)]
    unlabeled_xy, positive_xy, target_xy = _plane(samples)
    if axes is None:
        axes = _matplotlib().subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")[1]
    left, right = axes
    left.scatter(*unlabeled_xy.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
    left.scatter(*positive_xy.T, s=12, color=BLUE, label="labelled positive", linewidths=0)
    right.scatter(*target_xy.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
    for ax, title in ((left, "source"), (right, "target")):
        ax.set_title(title)
        ax.legend(frameon=False)
    return axes


def _plane(samples: Sequence[Any]) -> list[Any]:
    """Two coordinates for every row, the same map for every sample."""
    reference = samples[0]
    if reference.shape[1] == 2:
        return list(samples)
    rng = np.random.default_rng(0)
    if reference.shape[1] == 1:
        return [np.column_stack([sample, rng.random(len(sample))]) for sample in samples]
    centre, spread = reference.mean(axis=0), reference.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    axes = np.linalg.svd((reference - centre) / spread, full_matrices=False)[2][:2]
    return [(sample - centre) / spread @ axes.T for sample in samples]


def new_axes(ax: Any = None) -> Any:
    """Give the Axes to draw on.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Those that the caller gave.

    Returns
    -------
    matplotlib Axes
        Of a new figure, if none were given.
    """
    return _matplotlib().subplots(layout="constrained")[1] if ax is None else ax


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> Any:
    """Make a figure of several Axes.

    Parameters
    ----------
    rows, columns : int
        Of Axes.
    size : tuple of two float
        In inches.

    Returns
    -------
    ndarray of matplotlib Axes
    """
    return _matplotlib().subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)[1]


def _matplotlib() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError('pictures need matplotlib; run pip install "priorshift[plot]".') from None
    return plt
