"""A distribution of a share, such as the source prior: what is known of it, as probabilities of small steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from priorshift.arrays import Floats


@dataclass(frozen=True, eq=False)
class ShareDistribution:
    """A distribution on [0, 1] that is even between neighbouring edges; with scipy's names, so it can stand for one.

    Attributes
    ----------
    edges : ndarray of shape (steps + 1,)
        Rising, from 0 to 1.
    probabilities : ndarray of shape (steps,)
        Of the steps between them; their sum is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.share_distribution import ShareDistribution
    >>> share = ShareDistribution(np.array([0.0, 0.2, 1.0]), np.array([0.5, 0.5]))
    >>> print(round(share.mean(), 3), share.ppf([0.25, 0.75]))
    0.35 [0.1 0.6]
    """

    edges: Floats
    probabilities: Floats

    @property
    def middles(self) -> Floats:  # numpydoc ignore=RT01
        """Of the steps."""
        return np.asarray((self.edges[1:] + self.edges[:-1]) / 2)

    def mean(self) -> float:
        """Compute the mean.

        Returns
        -------
        float
        """
        return float(self.probabilities @ self.middles)

    def std(self) -> float:
        """Compute the standard deviation.

        Returns
        -------
        float
        """
        within = np.diff(self.edges) ** 2 / 12
        return float(np.sqrt(self.probabilities @ ((self.middles - self.mean()) ** 2 + within)))

    def cdf(self, share: ArrayLike) -> Floats:
        """Compute the probability that the share is at most that.

        Parameters
        ----------
        share : array-like
            Where.

        Returns
        -------
        ndarray
        """
        return np.asarray(np.interp(np.asarray(share, dtype=float), self.edges, self._cumulative))

    def ppf(self, level: ArrayLike) -> Floats:
        """Compute quantiles.

        Parameters
        ----------
        level : array-like
            Probabilities.

        Returns
        -------
        ndarray
        """
        cumulative, steps = self._cumulative, self.probabilities > 0  # a step of no probability has no quantile in it
        level = np.asarray(level, dtype=float)
        k = np.flatnonzero(steps)[np.minimum(np.searchsorted(cumulative[1:][steps], level), steps.sum() - 1)]
        within = np.clip((level - cumulative[k]) / (cumulative[k + 1] - cumulative[k]), 0.0, 1.0)
        return np.asarray(self.edges[k] + within * (self.edges[k + 1] - self.edges[k]))

    def times(self, log_likelihood: Floats) -> ShareDistribution:
        """Multiply with a likelihood, as Bayes' rule does.

        Parameters
        ----------
        log_likelihood : ndarray of shape (steps,)
            At the middles of the steps, up to a constant.

        Returns
        -------
        ShareDistribution
        """
        with np.errstate(divide="ignore"):
            log = np.log(self.probabilities) + log_likelihood
        weight = np.exp(log - log.max())
        return ShareDistribution(self.edges, weight / weight.sum())

    def on(self, edges: Floats) -> ShareDistribution:
        """Give the same distribution on other steps.

        Parameters
        ----------
        edges : ndarray
            Rising, from 0 to 1; where they are finer, a step is even as it was.

        Returns
        -------
        ShareDistribution
        """
        return ShareDistribution.of(self.cdf(edges), edges)

    @classmethod
    def of(cls, cumulative: Floats, edges: Floats) -> ShareDistribution:
        """Make the distribution with these probabilities of a share at or below the edges.

        Parameters
        ----------
        cumulative : ndarray
            Never falling; what is missing at its ends counts to the first and the last step.
        edges : ndarray
            Rising, from 0 to 1.

        Returns
        -------
        ShareDistribution
        """
        inner = np.concatenate([[0.0], cumulative[1:-1], [1.0]])
        return cls(edges, np.maximum(np.diff(inner), 0.0))

    @property
    def _cumulative(self) -> Floats:
        return np.append(0.0, np.cumsum(self.probabilities) / self.probabilities.sum())
