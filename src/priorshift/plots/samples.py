"""Pictures of the three samples: their rows, their scores, and the mixture of their p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.formatting import format_percent
from priorshift.inference.confidence_curve import prior_from_ratio
from priorshift.io.readers import read_numeric_table
from priorshift.io.tables import match_columns
from priorshift.methods.witness_shift import WitnessShift
from priorshift.plots.curves import evidence_of
from priorshift.plots.display import BLUE, GREY, ORANGE, WIDTH, Display, format_prior
from priorshift.results import PriorEstimate
from priorshift.scores.mixture import density
from priorshift.scores.scored_source import WitnessEvidence

_POINTS = 3000  # rows drawn of each sample; more make a file large, not clearer
_BARS = 25  # of a histogram of p-values
_MIXTURE_TOPS = (1.5, 4.0)  # bounds on the top of the axis: near 0, where negatives lie, densities may be far above
_NEAR_ZERO = 0.1  # p-values below this do not count for the height of the axis
_FAR_RIGHT = 0.8  # of the axis: beyond, labels are written on the left of the line
_ZERO_SHARE = 0.0005  # rounds to 0.0%
_ROW_HEIGHT = 1.35  # of one sample, in heights of the tallest cell


@dataclass(eq=False, repr=False)
class PlaneDisplay(Display):
    """Rows of the source and of the target side by side, in two coordinates."""

    positive: Floats  # two coordinates of each row, as in the next two
    unlabeled: Floats
    target: Floats
    title: ClassVar[str] = "The rows of source and target"
    width, height = 1.7 * WIDTH, 3.6

    @classmethod
    def from_samples(cls, positive: Any, unlabeled: Any, target: Any) -> PlaneDisplay:
        """Compute two coordinates of about 3000 rows of each sample, evenly spaced.

        These are principal components of the unlabelled sample, the two features, or one and a random height.
        """
        named = {"unlabeled": unlabeled, "positive": positive, "target": target}
        tables = match_columns([read_numeric_table(sample, name) for name, sample in named.items()])
        samples = [table.values[:: max(1, len(table.values) // _POINTS)] for table in tables]
        reference, rng = samples[0], np.random.default_rng(0)
        if reference.shape[1] == 1:
            samples = [np.column_stack([sample, rng.random(len(sample))]) for sample in samples]
        elif reference.shape[1] > 2:  # principal components of the standardised unlabelled rows
            centre, spread = reference.mean(axis=0), reference.std(axis=0)
            spread = np.where(spread > 0, spread, 1.0)
            _, _, components = np.linalg.svd((reference - centre) / spread, full_matrices=False)
            samples = [(sample - centre) / spread @ components[:2].T for sample in samples]
        unlabeled, positive, target = samples
        return cls(positive, unlabeled, target)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the numbers of rows that are drawn of each sample."""
        return (
            f"On the left the source, {len(self.positive)} labelled positives among {len(self.unlabeled)} unlabelled "
            f"rows; on the right {len(self.target)} rows of the target, on the same scale."
        )

    def make_axes(self, figure: Any) -> Any:
        """Add two Axes side by side, with common scales."""
        return figure.subplots(1, 2, sharex=True, sharey=True)

    def draw(self, ax: Any) -> None:
        """Draw the source on the first of two Axes and the target on the second."""
        left, right = ax
        left.scatter(*self.unlabeled.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
        left.scatter(*self.positive.T, s=14, color=BLUE, marker="^", label="labelled positive", linewidths=0)
        right.scatter(*self.target.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
        for side, name in zip(ax, ("source", "target"), strict=True):
            side.set_title(name)
            side.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False, ncols=2)


@dataclass(eq=False, repr=False)
class ScoresDisplay(Display):
    """Distributions of the score in the positives, the source population and the target, one below the other."""

    edges: Floats  # of the cells of the score; the outermost cells include all rows beyond them
    positive: Floats  # share of the sample in each cell
    population: Floats
    target: Floats
    explained: Floats | None  # (1−R)·P + R·U, the target under label shift; None where R is not known
    is_rank: bool = False  # whether the score is its rank among the positives, as in samples of counts
    title: ClassVar[str] = "Who looks like the positives"
    height = 4.0

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> ScoresDisplay:
        """Take the distributions of the score from an estimate by WitnessShift; without rows, those of p-values.

        Each is an array of the sample's shares in the cells of the score.
        """
        evidence = evidence_of(estimate, WitnessEvidence, "scores", "WitnessShift")
        scores = evidence.scores
        if scores is None:
            # p-values are ranks among the positives, so that P is uniform
            U, T = _shares(evidence.source), _shares(evidence.target)
            edges, P = np.linspace(0, 1, len(U) + 1), np.full(len(U), 1 / len(U))
        else:
            edges, P, U, T = scores.edges, scores.positive, scores.population, scores.target
        R = estimate.negative_ratio
        is_known = np.isfinite(R) and estimate.status != "no estimate"
        explained = np.maximum((1 - R) * P + R * U, 0.0) if is_known else None
        return cls(edges, P, U, T, explained, scores is None)

    @property
    def middle(self) -> int:
        """Index of the inner edge of the score's cells that most nearly half of the positives lie above."""
        shares_above_inner_edges = _shares_above(self.positive)[1:-1]
        return int(np.argmin(np.abs(shares_above_inner_edges - 0.5))) + 1

    def share_above(self, sample: Floats) -> float:
        """Return the share of a sample, given by its shares in the cells, above the middle of the positives."""
        return min(float(_shares_above(sample)[self.middle]), 1.0)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the share of each sample above the middle score of the positives."""
        P, U, T = (format_percent(self.share_above(sample)) for sample in (self.positive, self.population, self.target))
        text = (
            "Three distributions of one score, from rows that look like the rest of the population on the left to rows "
            f"that look like the labelled positives on the right. To the right of the line are {P} of the labelled "
            f"positives, {U} of the source population and {T} of the target."
        )
        if self.explained is None:
            return text
        share = self.share_above(self.explained)
        expected = format_percent(share) if share > _ZERO_SHARE else "none"
        return f"{text} If only the share of positives had changed, {expected} of the target would be there."

    def draw(self, ax: Any) -> None:
        """Draw a histogram for each sample, one below the other, with its share above the middle of the positives."""
        samples = (
            ("labelled positives", self.positive, ORANGE),
            ("source population", self.population, GREY),
            ("target", self.target, BLUE),
        )
        histograms = [shares for _, shares, _ in samples]
        if self.explained is not None:
            histograms.append(self.explained)
        tallest = max(float(shares.max()) for shares in histograms)
        middle_score = self.edges[self.middle]
        # labels of the line at the middle are on its left if there is no space on its right
        is_far_right = self.middle > _FAR_RIGHT * len(self.positive)
        alignment, offset = ("right", (-4, 3)) if is_far_right else ("left", (4, 3))
        for position, (name, shares, colour) in enumerate(samples):
            base = -_ROW_HEIGHT * position
            ax.stairs(base + shares / tallest, self.edges, baseline=base, fill=True, facecolor=(colour, 0.3),
                      edgecolor=colour, linewidth=1.2)  # fmt: skip
            ax.axhline(base, color="black", linewidth=0.6)
            ax.annotate(name, (0.0, base + 1), (0, 3), ax.get_yaxis_transform(), "offset points")
            label = f"{format_percent(self.share_above(shares))} →"
            ax.annotate(label, (middle_score, base + 1), offset, textcoords="offset points", ha=alignment)
        if self.explained is not None:  # over the last sample, the target
            ax.stairs(base + self.explained / tallest, self.edges, baseline=None, color="black", linestyle=":",
                      linewidth=1.5, label="if only the prior changed")  # fmt: skip
            self.legend(ax, 1)
        ax.axvline(middle_score, color="black", linestyle="--", linewidth=0.8)
        ax.set(xlim=(self.edges[0], self.edges[-1]), ylim=(base, _ROW_HEIGHT))
        ax.set_yticks([])
        ax.locator_params(axis="x", nbins=6)
        ax.spines[["left", "right", "top"]].set_visible(False)
        score = "rank among the positives" if self.is_rank else "score"
        ax.set_xlabel(f"← unlike · {score} · like the positives →")


def _shares_above(sample: Floats) -> Floats:
    """Return the share of a sample above each edge of the cells, from 1 to 0, given its share in each cell."""
    sums_from_right = np.cumsum(sample[::-1])[::-1]
    return np.append(sums_from_right, 0.0)


def _shares(counts: Floats) -> Floats:
    """Return shares of p-values in 25 wide bins, from counts (repeats × bins), which noise may have made negative."""
    totals = np.maximum(counts.sum(axis=0).reshape(_BARS, -1).sum(axis=1), 0.0)
    return np.asarray(totals / totals.sum())


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """Densities of the p-values of population and target, with the fitted mixtures.

    Positives are spread evenly, negatives gather at 0: each curve levels off at the prior of its sample.
    """

    source: Floats  # density in each bar
    target: Floats | None
    negatives: Floats  # density g of the negatives, in finer bins
    source_prior: float  # where the mixture of the source levels off: the largest prior that the p-values allow
    target_prior: float | None  # 1 − (1 − source prior)·R; NaN where R is not known
    in_use: float  # source prior of the estimate
    title: ClassVar[str] = "Positives and negatives in both samples"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> MixtureDisplay:
        """Take the p-values of source and target, and the fitted mixture, from an estimate by WitnessShift."""
        evidence = evidence_of(estimate, WitnessEvidence, "p-values", "WitnessShift")
        largest_prior = float(evidence.priors.mean())  # over repetitions, as the density of the negatives
        negatives = density(evidence.weights).mean(axis=0)
        target_prior = prior_from_ratio(largest_prior, estimate.negative_ratio)
        # the density of a bar is its share times the number of bars
        source, target = _BARS * _shares(evidence.source), _BARS * _shares(evidence.target)
        return cls(source, target, negatives, largest_prior, target_prior, estimate.source_prior)

    @classmethod
    def from_estimator(cls, estimator: WitnessShift, target: Any = None) -> MixtureDisplay:
        """Take the p-values of the source of a fitted estimator, and of `target`: its rows or its estimate, or None."""
        check_is_fitted(estimator)
        if target is not None:
            return cls.from_estimate(target if isinstance(target, PriorEstimate) else estimator.estimate(target))
        priors, weights = estimator.scored_.mixture  # one row per repetition
        negatives, largest_prior = density(weights).mean(axis=0), float(priors.mean())
        source = _BARS * _shares(estimator.scored_.counts)
        return cls(source, None, negatives, largest_prior, None, float(estimator.source_prior_))

    @property
    def description(self) -> str:
        """Text alternative of the picture: the priors at which the mixtures of source and target level off."""
        text = (
            "Each row is placed by the share of labelled positives that have a lower score. Positives are spread "
            "evenly from left to right; negatives gather on the left. On the right, where the curves are flat, are "
            "positives and perhaps some negatives that look like them. So the height there estimates the largest "
            f"possible share of positives: {format_prior(self.source_prior)} in the source"
        )
        if self.target_prior is not None and np.isfinite(self.target_prior):
            text += f" and {format_prior(self.target_prior)} in the target"
        return (
            f"{text}. The height varies by chance, so it is not a bound. The estimate of the target prior uses the "
            f"source prior {self.in_use:.3g}."
        )

    def draw(self, ax: Any) -> None:
        """Draw histograms of the p-values of source and target, the fitted mixtures, and their priors as lines.

        A mixture has the density prior + (1 − prior)·g, where g is that of the negatives; positives are uniform.
        """
        samples = [("source", GREY, "--", self.source, self.source_prior)]
        if self.target is not None and self.target_prior is not None:
            samples.append(("target", BLUE, "-", self.target, self.target_prior))
        middles = (np.arange(len(self.negatives)) + 0.5) / len(self.negatives)  # of the bins
        for name, colour, dash, heights, prior in samples:
            ax.stairs(heights, np.linspace(0, 1, len(heights) + 1), fill=True, color=colour, alpha=0.35)
            level = f"mixture prior {format_prior(prior)}" if np.isfinite(prior) else "no mixture prior"
            label = f"{name}: {level}"
            ax.plot(middles, prior + (1 - prior) * self.negatives, dash, color=colour, linewidth=1.5, label=label)
            ax.axhline(prior, color=colour, linestyle=":", linewidth=1)
        # the top of the axis ignores the bars near 0, which may be far above
        tallest = [heights[int(_NEAR_ZERO * len(heights)) :].max() for _, _, _, heights, _ in samples]
        ax.set(xlim=(0, 1), ylim=(0, np.clip(1.5 * max(tallest), *_MIXTURE_TOPS)))
        ax.set(xlabel="p-value among the positives", ylabel="density")
        self.legend(ax, 1, title=f"source prior in use {self.in_use:.3g}")
