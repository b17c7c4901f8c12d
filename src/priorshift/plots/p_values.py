"""The p-values of source and target, and the mixtures that they are read as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.plots.display import BLUE, GREY, Display, expect, legend_above, number
from priorshift.result import PriorEstimate
from priorshift.scores.evidence import WitnessEvidence
from priorshift.scores.mixture import density
from priorshift.witness_shift import WitnessShift

_BARS = 25
_TOPS = (1.5, 4.0)  # of the densities: near 0, where negatives lie, they may be far above
_NEAR = 0.1


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """The p-values of population and target, with the fitted mixtures and the level of their positives.

    Positives are spread evenly, negatives pile up at 0: each curve ends at the prior of its sample.

    Attributes
    ----------
    source, target : ndarray of shape (bars,)
        Densities of the p-values of U and T; None for a target where the source is drawn alone.
    negatives : ndarray of shape (bins,)
        The density of negatives, g.
    source_prior, target_prior : float
        The level at which the best-fitting mixture of the source's p-values ends, an estimate of the largest source
        prior that they allow, and the target prior that it would make; NaN where the ratio of negatives is not known,
        None without a target.
    in_use : float
        The source prior that the estimate uses.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import MixtureDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, random_state=0)
    >>> estimate = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> display = MixtureDisplay.from_estimate(estimate).plot()
    >>> len(display.source), display.ax_.get_xlabel()
    (25, 'p-value among the positives')
    """

    source: Floats
    target: Floats | None
    negatives: Floats
    source_prior: float
    target_prior: float | None
    in_use: float
    title: ClassVar[str] = "Positives and negatives in both samples"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> MixtureDisplay:
        """Take the numbers of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            By WitnessShift.

        Returns
        -------
        MixtureDisplay
        """
        seen = witness_evidence(estimate, "p-values")
        largest = float(seen.priors.mean())
        prior = float(np.clip(1 - (1 - largest) * estimate.negative_ratio, 0.0, 1.0))
        g = density(seen.weights).mean(axis=0)
        return cls(_densities(seen.source), _densities(seen.target), g, largest, prior, estimate.source_prior)

    @classmethod
    def from_estimator(cls, estimator: WitnessShift, target: Any = None) -> MixtureDisplay:
        """Take the numbers of a fitted estimator.

        Parameters
        ----------
        estimator : WitnessShift
            Fitted.
        target : array-like, data frame, PriorEstimate or None
            Rows of a target, or what the estimator said of them; None draws the source alone.

        Returns
        -------
        MixtureDisplay
        """
        check_is_fitted(estimator)
        if target is not None:
            return cls.from_estimate(target if isinstance(target, PriorEstimate) else estimator.estimate(target))
        priors, weights = estimator.scored_.mixture
        g, largest = density(weights).mean(axis=0), float(priors.mean())
        return cls(_densities(estimator.scored_.counts), None, g, largest, None, float(estimator.source_prior_))

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        words = (
            "Rows that look like positives are spread evenly from left to right, negatives pile up at the left. The "
            f"mixture that fits the source population best levels off at {number(self.source_prior)}"
        )
        if self.target_prior is not None and np.isfinite(self.target_prior):
            words += f"; the target levels off at {number(self.target_prior)}"
        return f"{words}. Chance moves these levels: they are no bounds. The source prior in use is {self.in_use:.3g}."

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        samples = [("source", GREY, "--", self.source, self.source_prior)]
        if self.target is not None and self.target_prior is not None:
            samples.append(("target", BLUE, "-", self.target, self.target_prior))
        at = (np.arange(len(self.negatives)) + 0.5) / len(self.negatives)
        for name, colour, dash, heights, prior in samples:
            ax.stairs(heights, np.linspace(0, 1, len(heights) + 1), fill=True, color=colour, alpha=0.35)
            said = f"{name}: mixture prior {number(prior)}" if np.isfinite(prior) else f"{name}: no mixture prior"
            ax.plot(at, prior + (1 - prior) * self.negatives, dash, color=colour, linewidth=1.5, label=said)
            ax.axhline(prior, color=colour, linestyle=":", linewidth=1)
        ax.set_xlim(0, 1)
        beyond = [heights[int(_NEAR * len(heights)) :].max() for _, _, _, heights, _ in samples]
        ax.set_ylim(0, np.clip(1.5 * max(beyond), *_TOPS))
        ax.set_xlabel("p-value among the positives")
        ax.set_ylabel("density")
        legend_above(ax, 1, f"source prior in use {self.in_use:.3g}")


def witness_evidence(estimate: PriorEstimate, what: str) -> WitnessEvidence:  # numpydoc ignore=PR01,RT01
    """What WitnessShift leaves to be drawn of an estimate."""
    expect(estimate, "evidence", "an estimate", "estimate_prior")
    if isinstance(estimate.evidence, WitnessEvidence):
        return estimate.evidence
    raise InputError(f"an estimate by {estimate.method} has no {what} to draw; pass one by WitnessShift.")


def bars(counts: Floats, number: int = _BARS) -> Floats:  # numpydoc ignore=PR01,RT01
    """Shares of p-values in wider bins, of all repetitions; noise may have left a count below 0."""
    held = np.maximum(counts.sum(axis=0).reshape(number, -1).sum(axis=1), 0.0)
    return np.asarray(held / held.sum())


def _densities(counts: Floats) -> Floats:
    return _BARS * bars(counts)
