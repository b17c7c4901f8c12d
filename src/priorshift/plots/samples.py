"""Source and target side by side, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.io.tables import match_columns, read_table
from priorshift.plots.display import BLUE, GREY, WIDTH, Display

_POINTS = 3000  # rows drawn of each sample; more make a picture heavy, not clearer


@dataclass(eq=False, repr=False)
class PlaneDisplay(Display):
    """Source and target side by side: labelled positives, unlabelled rows, target rows.

    Attributes
    ----------
    positive, unlabeled, target : ndarray of shape (rows, 2)
        Where the rows lie.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import PlaneDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=50, random_state=0)
    >>> display = PlaneDisplay.from_samples(s.positive, s.unlabeled, s.target).plot()
    >>> display.target.shape, [ax.get_title() for ax in display.ax_]
    ((50, 2), ['source', 'target'])
    """

    positive: Floats
    unlabeled: Floats
    target: Floats
    title: ClassVar[str] = "The rows of source and target"

    @classmethod
    def from_samples(cls, positive: Any, unlabeled: Any, target: Any) -> PlaneDisplay:
        """Find two coordinates for every row.

        With more than two features the rows are projected on the two principal components of the standardised
        unlabelled sample; with one, they are drawn against a random height.

        Parameters
        ----------
        positive, unlabeled, target : as in :func:`priorshift.estimate_prior`
            The samples.

        Returns
        -------
        PlaneDisplay
        """
        tables = [read_table(t, n) for t, n in ((unlabeled, "unlabeled"), (positive, "positive"), (target, "target"))]
        samples = [table.values[:: max(1, len(table.values) // _POINTS)] for table in match_columns(tables)]
        of_U, of_P, of_T = _plane(samples)
        return cls(of_P, of_U, of_T)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        return (
            f"On the left the source, {len(self.positive)} labelled positives among {len(self.unlabeled)} unlabelled "
            f"rows; on the right {len(self.target)} rows of the target, on the same scale."
        )

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return 1.3 * WIDTH, 3.6

    def axes_of(self, figure: Any) -> Any:
        """Make the Axes that it is drawn on.

        Parameters
        ----------
        figure : matplotlib Figure
            An empty one.

        Returns
        -------
        pair of matplotlib Axes
            For the source and for the target.
        """
        return figure.subplots(1, 2, sharex=True, sharey=True)

    def draw(self, ax: Any) -> None:
        """Draw it on a pair of Axes, and remember nothing.

        Parameters
        ----------
        ax : pair of matplotlib Axes
            For the source and for the target.
        """
        left, right = ax
        left.scatter(*self.unlabeled.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
        left.scatter(*self.positive.T, s=14, color=BLUE, marker="^", label="labelled positive", linewidths=0)
        right.scatter(*self.target.T, s=8, color=GREY, alpha=0.6, label="unlabelled", linewidths=0)
        left.set_title("source")
        right.set_title("target")
        for one in ax:
            one.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False, ncols=2)


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
