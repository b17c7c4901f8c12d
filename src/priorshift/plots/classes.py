"""Pictures of the shares of several classes: bars with intervals, and a triangle with the joint region of three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.class_priors import ClassPriors
from priorshift.formatting import format_percent
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, check_has, interval_label, printable, tick_label
from priorshift.results import Interval

_MAX_LISTED = 6  # classes in the description
_GRID = 32  # steps along each side of the parallelogram in which the region is computed
_MARGIN = 0.6  # of that parallelogram beyond the band, in widths of the band: the region is a little larger
_HEIGHT = np.sqrt(3) / 2  # of a triangle with sides of length 1


@dataclass(eq=False, repr=False)
class SharesDisplay(Display):
    """Share of each class in the target, with its interval, the simultaneous band and its share in the source."""

    names: tuple[str, ...]
    values: Floats
    ends: Floats  # of the intervals, one row per class
    band: Floats | None  # ends of the simultaneous intervals
    source: Floats  # share of each class in the source; NaN if there is none
    confidence: float
    title: ClassVar[str] = "The share of each class"

    @classmethod
    def from_estimates(cls, priors: ClassPriors) -> SharesDisplay:
        """Take the numbers of the classes of one target."""
        check_has(priors, "covariance", "the shares of several classes", "estimate_prior")
        estimates = list(priors.values())
        intervals = [estimate.interval for estimate in estimates]
        ends = np.array([(np.nan, np.nan) if i is None else (i.low, i.high) for i in intervals])
        bands = [priors.band.get(name) for name in priors]
        band = np.array([(b.low, b.high) for b in bands if b is not None]) if all(bands) else None
        values, source = (np.array([getattr(e, name) for e in estimates]) for name in ("value", "source_prior"))
        return cls(tuple(priors), values, ends, band, source, priors.confidence)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the shares of the first classes with their intervals."""
        parts = []
        for k, name in enumerate(self.names[:_MAX_LISTED]):
            low, high = self.ends[k]
            before = f", {self.source[k]:.3f} in the source" if np.isfinite(self.source[k]) else ""
            parts.append(f"{printable(name)} {self.values[k]:.3f} ({low:.3f} to {high:.3f}{before})")
        more = f" and {len(self.names) - _MAX_LISTED} more" if len(self.names) > _MAX_LISTED else ""
        return f"Share of each class with its {interval_label(self.confidence)}: {'; '.join(parts)}{more}."

    @property
    def caption(self) -> str:
        """What to look for: classes whose interval does not contain their share in the source."""
        return "Share of each class in the target with its interval, next to its share in the source."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches; each class has a row."""
        return self.rows_size(len(self.names), 1.6)

    def draw(self, ax: Any) -> None:
        """Draw each class in a row below its name."""
        heights, _ = self.label_rows(ax, self.names, [tick_label(name) for name in self.names])
        if self.band is not None:
            label = f"all at once, {100 * self.confidence:g}%"
            ax.hlines(heights, *self.band.T, color=BLUE, alpha=0.35, linewidth=8, label=label)
        ax.hlines(heights, *self.ends.T, color=BLUE, linewidth=1.5, label=interval_label(self.confidence))
        ax.plot(self.values, heights, "o", color=BLUE, markersize=4, label="target")
        if np.isfinite(self.source).any():
            ax.plot(self.source, heights, "D", color=ORANGE, markerfacecolor="none", markersize=5, label="source")
        ax.set(xlabel="share", xlim=(0, 1))
        self.legend(ax, 2)


@dataclass(eq=False, repr=False)
class SimplexDisplay(Display):
    """Shares of three classes as a point in a triangle, with their joint confidence region."""

    names: tuple[str, str, str]
    values: Floats  # shares of the three classes
    source: Floats  # in the source; NaN if there is none
    points: Floats  # possible shares around the estimate, on a grid of the first two classes; shape (points, 3)
    p_values: Floats  # of the points
    spacing: tuple[float, float]  # of the grid, in the shares of the first two classes
    confidence: float
    title: ClassVar[str] = "The shares of three classes together"
    height: ClassVar[float] = 3.9

    @classmethod
    def from_estimates(cls, priors: ClassPriors) -> SimplexDisplay:
        """Take the numbers of three classes, and test the shares at the points of a grid around the estimate."""
        first, second, third = priors
        axes = [_axis(priors.band[name]) for name in (first, second)]
        pairs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        points = np.column_stack([pairs, 1 - pairs.sum(axis=1)])
        points = points[points[:, 2] > -1e-12]
        p_values = np.array([priors.p_value({first: a, second: b}) for a, b in points[:, :2].tolist()])
        values, source = (np.array([getattr(e, name) for e in priors.values()]) for name in ("value", "source_prior"))
        spacing = (float(axes[0][1] - axes[0][0]), float(axes[1][1] - axes[1][0]))
        return cls((first, second, third), values, source, points, p_values, spacing, priors.confidence)

    @property
    def region_share(self) -> float:
        """Share of the triangle that the region takes."""
        is_inside = self.p_values >= 1 - self.confidence
        return min(float(is_inside.sum()) * self.spacing[0] * self.spacing[1] / 0.5, 1.0)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the three shares, and how much of the triangle the region takes."""
        shares = ", ".join(f"{printable(n)} {v:.3f}" for n, v in zip(self.names, self.values, strict=True))
        return (
            f"Shares of three classes in a triangle: {shares}. The joint region, with {100 * self.confidence:g}% "
            f"confidence, takes {format_percent(self.region_share)} of all possible shares."
        )

    @property
    def caption(self) -> str:
        """What to look for: whether the region contains the source, and whether it is long in one direction."""
        return (
            "A corner is a target of one class alone. The region contains the shares of all classes at once; where it "
            "is long, the classes at both of its ends are hard to distinguish."
        )

    def draw(self, ax: Any) -> None:
        """Draw the triangle, the region, the estimate and the source."""
        x, y = _position(self.points)
        limit = 1 - self.confidence
        ax.tricontourf(x, y, self.p_values, levels=[limit, 1.01], colors=[BLUE], alpha=0.3)
        corners = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
        ax.plot(*_position(corners), color=GREY, linewidth=1)
        ax.plot(*_position(self.values[None]), "o", color=BLUE, markersize=5, label="target")
        if np.isfinite(self.source).all():
            ax.plot(*_position(self.source[None]), "D", color=ORANGE, markerfacecolor="none", label="source")
        for name, corner, (dx, dy) in zip(self.names, corners, ((0, -0.06), (0, -0.06), (0, 0.05)), strict=False):
            px, py = _position(corner[None])
            ax.text(float(px[0]) + dx, float(py[0]) + dy, tick_label(name), ha="center", va="center")
        ax.set(xlim=(-0.1, 1.1), ylim=(-0.12, _HEIGHT + 0.1))
        ax.set_aspect("equal", anchor="N")
        ax.axis("off")
        self.legend(ax, 2)


def _axis(band: Interval) -> Floats:
    """Return possible shares of a class in equal steps, over its band and somewhat more."""
    margin = max(_MARGIN * band.width, 1e-6)
    return np.linspace(max(band.low - margin, 0.0), min(band.high + margin, 1.0), _GRID + 1)


def _position(shares: Floats) -> tuple[Floats, Floats]:
    """Return where shares of three classes, (points, 3), lie in the triangle: the third class is on top."""
    return np.asarray(shares[:, 1] + shares[:, 2] / 2), np.asarray(_HEIGHT * shares[:, 2])
