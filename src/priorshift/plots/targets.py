"""The estimates of several targets side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.targets import are_iso_dates
from priorshift.plots.display import BLUE, ORANGE, Display, expect, label, legend_above, shown
from priorshift.results import PriorEstimate, decimals

_TICKS, _LETTERS = 12, 45  # names under a series, and letters that fit side by side
_SHORT = 16  # letters of a name that stands askew
_RARE = 0.5  # priors up to which the axis does not reach to 1
_SAID = 6  # targets that the description goes through


@dataclass(eq=False, repr=False)
class SeriesDisplay(Display):
    """Estimates of several targets, with their intervals and the band that holds all at once.

    Attributes
    ----------
    names : tuple of str
        Of the targets, in the order of time where they are dates as ISO writes them, else in their own.
    values : ndarray of shape (targets,)
        The estimates.
    ends : ndarray of shape (targets, 2)
        Their intervals; NaN where there is none.
    band : ndarray of shape (targets, 2) or None
        The intervals that hold all of them at once.
    confidence : float
        Of both.
    by : str
        What tells the targets apart.
    truth : ndarray of shape (targets,) or None
        The true priors, NaN where one is not known.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import SeriesDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    >>> months = {"2024-01": tcpu.estimate(s.target[:150]), "2024-02": tcpu.estimate(s.target[150:])}
    >>> display = SeriesDisplay.from_estimates(months).plot()
    >>> display.names, display.values.round(2)
    (('2024-01', '2024-02'), array([0.54, 0.54]))
    """

    names: tuple[str, ...]
    values: Floats
    ends: Floats
    band: Floats | None
    confidence: float
    by: str = "target"
    truth: Floats | None = None
    title: ClassVar[str] = "The targets side by side"

    @classmethod
    def from_estimates(
        cls, estimates: Mapping[str, PriorEstimate], *, truth: Mapping[str, float] | None = None
    ) -> SeriesDisplay:
        """Take the numbers of several estimates.

        Parameters
        ----------
        estimates : PriorEstimates or mapping of str to PriorEstimate
            By the targets' names.
        truth : mapping of str to float or None
            The true priors of some targets, where they are known.

        Returns
        -------
        SeriesDisplay
        """
        what = "estimates by their targets' names", "estimate_priors"
        expect(estimates, "items", *what)
        for _, one in estimates.items():
            expect(one, "interval", *what)
        if not estimates:
            raise InputError("there is no estimate to draw; pass one or more, by their targets' names.")
        names = sorted(estimates) if are_iso_dates(list(estimates)) else list(estimates)
        intervals = [estimates[name].interval for name in names]
        ends = np.array([(np.nan, np.nan) if i is None else (i.low, i.high) for i in intervals])
        bands = getattr(estimates, "band", None)
        together = np.array([(bands[name].low, bands[name].high) for name in names]) if bands else None
        confidence = next((i.confidence for i in intervals if i is not None), float("nan"))
        values = np.array([estimates[name].value for name in names])
        strangers = sorted(set(truth or ()) - set(names))
        if strangers:
            raise InputError(f"truth has {strangers[0]!r}, which is no target; name targets that were estimated.")
        true = None if truth is None else np.array([float(truth.get(name, np.nan)) for name in names])
        by = getattr(estimates, "by", None) or "target"
        return cls(tuple(names), values, ends, together, confidence, by, true)

    @property
    def dated(self) -> bool:  # numpydoc ignore=RT01
        """Whether the names are dates, which lie on a line of time."""
        return are_iso_dates(list(self.names))

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        said, digits = [], self._digits
        for name, value, (low, high) in list(zip(self.names, self.values, self.ends, strict=True))[:_SAID]:
            ends = f" ({low:.{digits}f} to {high:.{digits}f})" if np.isfinite(low) else ""
            said.append(f"{shown(name)} {value:.{digits}f}{ends}" if np.isfinite(value) else f"{shown(name)} none")
        words = "Target prior of each target"
        if np.isfinite(self.confidence):
            words += f", with its {100 * self.confidence:g}% interval"
        words += f": {', '.join(said)}"
        if len(self.names) > _SAID:
            words += f" and {len(self.names) - _SAID} more"
        known = self.values[np.isfinite(self.values)]
        if len(known) > 1:
            words += f". They lie between {known.min():.{digits}f} and {known.max():.{digits}f}"
        if self.truth is not None:
            held = (self.ends[:, 0] <= self.truth) & (self.truth <= self.ends[:, 1])
            words += f". {held.sum()} of {np.isfinite(self.truth).sum()} intervals hold the truth"
        return f"{words}."

    @property
    def _digits(self) -> int:
        widths = np.append(np.diff(self.ends)[:, 0], self.values if np.isnan(self.ends).all() else [])
        return max((decimals(width) for width in widths if np.isfinite(width)), default=3)

    @property
    def _top(self) -> float:
        """Of the axis from 0: rare classes are not drawn as if all were none."""
        ends = self.ends if self.band is None else self.band
        true = () if self.truth is None else self.truth
        highest = float(np.nanmax([0.0, *self.values, *ends.ravel(), *true]))
        return 1.0 if highest > _RARE or highest == 0 else 1.2 * highest

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        names, dated = self.names, self.dated
        at = np.array(names, dtype="datetime64[D]") if dated else np.arange(len(names))
        sure = np.isfinite(self.ends[:, 0])
        if self.band is not None:
            said = f"all at once, {100 * self.confidence:g}%"
            if dated and len(names) > 1:
                ax.fill_between(at, *self.band.T, facecolor=(BLUE, 0.15), edgecolor=BLUE, linestyle=":", linewidth=0.8,
                                label=said)  # fmt: skip
            else:
                ax.vlines(at, *self.band.T, color=BLUE, alpha=0.35, linewidth=8, label=said)
        if sure.any():
            said = f"{100 * self.confidence:g}% interval"
            ax.vlines(at[sure], *self.ends[sure].T, color=BLUE, linewidth=1.5, label=said)
        ax.plot(at, self.values, "o-" if dated else "o", color=BLUE, markersize=4, linewidth=1, label="estimate")
        if self.truth is not None:
            ax.plot(at, self.truth, "x", color=ORANGE, markersize=6, label="truth")
        step = 1 + (len(names) - 1) // _TICKS
        crowded = sum(map(len, names[::step])) > _LETTERS
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        ax.set_xticks(at[::step], [label(name, _SHORT) for name in names[::step]], **turned)
        if not dated:
            ax.set_xlim(-0.5, len(names) - 0.5)
        ax.set_xlabel(label(self.by))
        ax.set_ylabel("target prior")
        ax.set_ylim(0, self._top)
        legend_above(ax, 3)
