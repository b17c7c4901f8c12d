"""The p-values of source and target, and the mixtures that they are read as.

Who the positives look like: the score in the three samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.formatting import percent
from priorshift.methods.witness_shift import WitnessShift
from priorshift.plots.display import BLUE, GREY, ORANGE, WIDTH, Display, expect, legend_above, number
from priorshift.results import PriorEstimate
from priorshift.scores.mixture import density
from priorshift.scores.scored_source import WitnessEvidence

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


_FAR = 0.8  # of the axis, from which on there is no room for words on the right of the line
_NONE = 0.0005  # a share that rounds to 0.0 %
_ROOM = 1.35  # between two samples, in heights of the tallest cell


@dataclass(eq=False, repr=False)
class ScoresDisplay(Display):
    """How much rows look like the labelled positives: the score in P, U and T, one below the other.

    Attributes
    ----------
    edges : ndarray of shape (cells + 1,)
        Of the cells of the score; the outermost hold what lies beyond.
    positive, population, target : ndarray of shape (cells,)
        Shares of the labelled positives, the source population and the target.
    explained : ndarray of shape (cells,) or None
        What a change of the prior makes of the first two, (1−R)·P + R·U: under label shift, the target but for chance;
        None where R is not known.
    ranks : bool
        Whether the score is its rank among the positives, which is all that is kept of samples that were counted.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import ScoresDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, random_state=0)
    >>> estimate = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> display = ScoresDisplay.from_estimate(estimate).plot()
    >>> print(display.target.sum().round(6))
    1.0
    """

    edges: Floats
    positive: Floats
    population: Floats
    target: Floats
    explained: Floats | None
    ranks: bool = False
    title: ClassVar[str] = "Who looks like the positives"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> ScoresDisplay:
        """Take the numbers of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            By WitnessShift.

        Returns
        -------
        ScoresDisplay
        """
        seen = witness_evidence(estimate, "scores")
        if seen.scores is None:
            U, T = bars(seen.source), bars(seen.target)
            edges, P = np.linspace(0, 1, len(U) + 1), np.full(len(U), 1 / len(U))
        else:
            edges, P, U, T = seen.scores.edges, seen.scores.positive, seen.scores.population, seen.scores.target
        R = estimate.negative_ratio
        told = np.isfinite(R) and estimate.status != "no estimate"
        explained = np.maximum((1 - R) * P + R * U, 0.0) if told else None
        return cls(edges, P, U, T, explained, seen.scores is None)

    @property
    def middle(self) -> int:  # numpydoc ignore=RT01
        """The edge that has about half of the positives on its right."""
        return int(np.argmin(np.abs(self._right_of_all(self.positive)[1:-1] - 0.5))) + 1

    def right(self, sample: Floats) -> float:
        """Give the share of a sample that lies right of the middle of the positives.

        Parameters
        ----------
        sample : ndarray of shape (cells,)
            Its shares.

        Returns
        -------
        float
        """
        return min(float(self._right_of_all(sample)[self.middle]), 1.0)

    @staticmethod
    def _right_of_all(sample: Floats) -> Floats:
        return np.append(np.cumsum(sample[::-1])[::-1], 0.0)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        P, U, T = (percent(self.right(sample)) for sample in (self.positive, self.population, self.target))
        words = (
            "Three distributions of one score, from rows that look like the rest of the population on the left to rows "
            f"that look like the labelled positives on the right. Right of the line lie {P} of the labelled positives, "
            f"{U} of the source population and {T} of the target."
        )
        if self.explained is None:
            return words
        share = self.right(self.explained)
        alone = percent(share) if share > _NONE else "none"
        return f"{words} A change of the share of positives alone would put {alone} of the target there."

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return WIDTH, 4.0

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        samples = (
            ("labelled positives", self.positive, ORANGE),
            ("source population", self.population, GREY),
            ("target", self.target, BLUE),
        )
        tallest = max(float(s.max()) for s in (*(s for _, s, _ in samples), self.explained) if s is not None)
        line = self.edges[self.middle]
        is_far = self.middle > _FAR * len(self.positive)
        side = {"ha": "right" if is_far else "left", "xytext": (-4 if is_far else 4, 3), "textcoords": "offset points"}
        for below, (name, shares, colour) in enumerate(samples):
            base = -_ROOM * below
            ax.stairs(base + shares / tallest, self.edges, baseline=base, fill=True, facecolor=(colour, 0.3),
                      edgecolor=colour, linewidth=1.2)  # fmt: skip
            ax.axhline(base, color="black", linewidth=0.6)
            ax.annotate(name, (0.0, base + 1), (0, 3), ax.get_yaxis_transform(), "offset points")
            ax.annotate(f"{percent(self.right(shares))} →", (line, base + 1), **side)
        if self.explained is not None:
            ax.stairs(base + self.explained / tallest, self.edges, baseline=None, color="black", linestyle=":",
                      linewidth=1.5, label="as a change of the prior alone explains it")  # fmt: skip
            legend_above(ax, 1)
        ax.axvline(line, color="black", linestyle="--", linewidth=0.8)
        ax.set_xlim(self.edges[0], self.edges[-1])
        ax.set_ylim(base, _ROOM)
        ax.set_yticks([])
        ax.spines[["left", "right", "top"]].set_visible(False)
        what = "rank among the positives" if self.ranks else "score"
        ax.set_xlabel(f"← unlike the positives · {what} · like the positives →")
