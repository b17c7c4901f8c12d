"""Who the positives look like: the score in the three samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.numerals import percent
from priorshift.plots.display import BLUE, GREY, ORANGE, WIDTH, Display, legend_above
from priorshift.plots.p_values import bars, witness_evidence
from priorshift.result import PriorEstimate

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
        told = np.isfinite(R) and estimate.verdict != "nothing"
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
