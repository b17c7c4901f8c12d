"""A picture for each part of a diagnosis, on Axes that the caller gives, or on new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from priorshift.diagnosis.identification import Identification
from priorshift.diagnosis.label_shift import LabelShiftTest
from priorshift.diagnosis.planning import Planning
from priorshift.diagnosis.sensitivity import Sensitivity
from priorshift.diagnosis.shift import ShiftTest
from priorshift.input.parameters import check_choice
from priorshift.plots import BLUE, GREY, ORANGE, new_axes, new_figure

_COLUMNS = 12  # drawn of many
_LETTERS = 40  # of a name
_LEVEL = 0.05
_FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)


def shift(test: ShiftTest, ax: Any = None) -> Any:
    """Draw R with its interval, beside 1, where nothing has changed.

    Parameters
    ----------
    test : ShiftTest
        What is drawn.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    low, high = test.interval.low, test.interval.high
    finite = [end for end in (low, high, test.ratio, 1.0) if np.isfinite(end)]
    right = max(finite) * 1.15 + 0.05
    ax.axvline(1.0, color=GREY, linestyle="--", linewidth=1.5, label="no shift")
    ax.hlines(0, low, min(high, right), color=BLUE, linewidth=3,
              label=f"{100 * test.interval.confidence:g}% interval")  # fmt: skip
    if np.isfinite(test.ratio):
        ax.plot(test.ratio, 0, "o", color=BLUE, label=f"estimate {test.ratio:.3f}")
    ax.set_xlim(0, right)
    ax.set_yticks([])
    ax.set_xlabel("R, share of negatives in target over source")
    _legend(ax)
    return ax


def label_shift(test: LabelShiftTest, ax: Any = None) -> Any:
    """Draw how far the mean of each column has moved beyond what a change of the prior explains.

    Parameters
    ----------
    test : LabelShiftTest
        What is drawn; of many columns those that stand out most.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    columns = test.columns[:_COLUMNS][::-1]
    named = [column.p_value < _LEVEL for column in columns]
    at = np.arange(len(columns))
    colours = [ORANGE if stands_out else GREY for stands_out in named]
    ax.barh(at, [column.moved for column in columns], color=colours)
    ax.axvline(0.0, color="black", linewidth=1)
    ax.set_yticks(at, [_short(column.name) for column in columns])
    ax.set_xlabel("unexplained move of the mean, in standard deviations")
    ax.set_title(f"label shift: p = {test.p_value:.3f}; columns that stand out in colour", fontsize="medium")
    return ax


def identification(found: Identification, ax: Any = None) -> Any:
    """Draw what is known of the source prior: what the tables leave open, what estimators say, what was given.

    Parameters
    ----------
    found : Identification
        What is drawn.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    names = ["the tables", *found.estimators]
    at = np.arange(len(names))[::-1]
    ax.hlines(at[0], *found.told_range, color=BLUE, linewidth=3, label="95% of what the tables tell")
    ax.plot(list(found.estimators.values()), at[1:], "o", color=BLUE)
    low, high = found.source_prior_range
    if found.given:
        ax.axvspan(low, high, color=ORANGE, alpha=0.2, linewidth=0)
        ax.axvline(found.source_prior, color=ORANGE, linewidth=1.5, label=f"given: {found.source_prior:.3g}")
    ax.set_yticks(at, names)
    ax.set_xlim(0, 1)
    ax.set_xlabel("source prior")
    _legend(ax)
    return ax


def sensitivity(found: Sensitivity, ax: Any = None) -> Any:
    """Draw the target prior over assumed source priors, with its interval.

    Parameters
    ----------
    found : Sensitivity
        What is drawn.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    points = found.source_priors
    priors = [point.source_prior for point in points]
    ax.fill_between(priors, [p.low for p in points], [p.high for p in points], color=BLUE, alpha=0.2, linewidth=0,
                    label=f"{100 * found.conclusion.confidence:g}% interval")  # fmt: skip
    ax.plot(priors, [p.value for p in points], color=BLUE, linewidth=1.5, label="target prior")
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="no shift")
    ax.axvline(found.conclusion.source_prior, color=ORANGE, linewidth=1.5, label="in use")
    if found.conclusion.threshold is not None:
        ax.axhline(found.conclusion.threshold, color="black", linestyle=":", linewidth=1.5, label="threshold")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("assumed source prior")
    ax.set_ylabel("target prior")
    _legend(ax)
    return ax


def variants(found: Sensitivity, ax: Any = None) -> Any:
    """Draw the estimate as it would be had something been chosen otherwise, or left out.

    Parameters
    ----------
    found : Sensitivity
        What is drawn.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    shown = [v for kind in (found.scores, found.rows, found.bandwidths, found.columns) for v in kind][::-1]
    at = np.arange(len(shown))
    ax.hlines(at, [v.low for v in shown], [v.high for v in shown], color=GREY, linewidth=1.5)
    ax.scatter([v.value for v in shown], at, color=[ORANGE if v.is_clear else BLUE for v in shown], zorder=3, s=18)
    ax.axvspan(found.conclusion.low, found.conclusion.high, color=BLUE, alpha=0.12, linewidth=0)
    ax.set_yticks(at, [_short(v.name) for v in shown], fontsize="small")
    ax.set_xlabel("target prior")
    ax.set_title("with one thing changed; more than chance in orange", fontsize="medium")
    return ax


def planning(plan: Planning, ax: Any = None) -> Any:
    """Draw how wide the interval would be with more rows of each sample, and of all.

    Parameters
    ----------
    plan : Planning
        What is drawn.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes(ax)
    sizes = plan.sizes
    factors = np.array(_FACTORS)
    styles = {"positive": ("o-", ORANGE), "unlabeled": ("s-", GREY), "target": ("^-", BLUE)}
    for name, (style, colour) in styles.items():
        widths = [plan.predict(**{name: max(2, round(k * sizes[name]))}) for k in factors]
        ax.plot(factors, widths, style, color=colour, markersize=4, label=f"{name} rows alone")
    together = [plan.predict(**{name: max(2, round(k * rows)) for name, rows in sizes.items()}) for k in factors]
    ax.plot(factors, together, "k--", label="all three")
    ax.set_xscale("log", base=2)
    ax.set_xticks(factors, [f"× {k:g}" for k in factors])
    ax.set_ylim(0)
    ax.set_xlabel("rows")
    ax.set_ylabel("width of the interval")
    _legend(ax)
    return ax


_PICTURES: dict[str, tuple[str, Callable[..., Any]]] = {
    "shift_test": ("shift_test", shift),
    "label_shift_test": ("label_shift_test", label_shift),
    "identification": ("identification", identification),
    "sensitivity": ("sensitivity", sensitivity),
    "variants": ("sensitivity", variants),
    "planning": ("planning", planning),
}


def draw(parts: Mapping[str, Any], part: str | None, ax: Any = None) -> Any:
    """Draw one part, or all of them in one figure.

    Parameters
    ----------
    parts : mapping
        Of a diagnosis, by their names.
    part : str or None
        Which.
    ax : matplotlib Axes or None
        Where to draw one part.

    Returns
    -------
    matplotlib Axes
        Of several, the first.
    """
    if part is not None:
        check_choice("part", part, tuple(_PICTURES))
        name, picture = _PICTURES[part]
        return picture(parts[name], ax)
    axes = new_figure(3, 2, (13, 13)).ravel()
    for one, (name, picture) in zip(axes, _PICTURES.values(), strict=True):
        picture(parts[name], one)
    return axes[0]


def _legend(ax: Any) -> None:
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, ncols=3, fontsize="small")


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
