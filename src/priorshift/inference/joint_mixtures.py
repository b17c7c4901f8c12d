"""Joint errors of several targets that are mixtures of the same samples: the error of the source is common to them.

The coefficients b of a target are M⁻¹g up to a constant, so the influence of an observation on them is M⁻¹ times its
influence on g(b) = E_T h − Σ b_s E_s h. The functions h of two targets differ, and so do their influences, but the
observations of the source are the same: the covariance of two targets is the sum of products over these observations.
The functions of a kernel depend on the source alone, so that these sums are those of one target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import pinvh
from scipy.special import chdtrc

from priorshift.arrays import Floats
from priorshift.inference.affine_mixture import AffineMixture, Influence
from priorshift.inference.composition import Composition
from priorshift.inference.contrasts import difference_interval, difference_p_value, ratio_interval
from priorshift.inference.joint import EqualityTest


@dataclass(frozen=True, eq=False)
class JointMixtures:
    """Coefficients of several targets as mixtures of the same samples, and their joint error."""

    coefficients: Floats  # shape (targets, samples)
    covariance: Floats  # shape (targets, targets, samples, samples)

    @classmethod
    def from_mixtures(cls, mixtures: Sequence[AffineMixture]) -> JointMixtures:
        """Compute the joint error of mixtures that have the influence of observations; common ones have one number."""
        nobody = Influence(np.empty(0, dtype=np.intp), np.empty((0, len(mixtures[0].coefficients))))
        influences = [mixture.influence or nobody for mixture in mixtures]
        samples = len(mixtures[0].coefficients)
        covariance = np.empty((len(mixtures), len(mixtures), samples, samples))
        for i, mixture in enumerate(mixtures):
            covariance[i, i] = mixture.covariance
            for j in range(i):
                _, rows, columns = np.intersect1d(
                    influences[i].numbers, influences[j].numbers, assume_unique=True, return_indices=True
                )
                covariance[i, j] = influences[i].values[rows].T @ influences[j].values[columns]
                covariance[j, i] = covariance[i, j].T
        return cls(np.stack([mixture.coefficients for mixture in mixtures]), covariance)

    @classmethod
    def from_common_functions(cls, mixtures: Sequence[AffineMixture]) -> JointMixtures:
        """Compute the joint error of mixtures by the same functions, whose targets have no rows in common."""
        samples = len(mixtures[0].coefficients)
        covariance = np.empty((len(mixtures), len(mixtures), samples, samples))
        for i, first in enumerate(mixtures):
            for j, second in enumerate(mixtures):
                covariance[i, j] = first.covariance if i == j else first.common_covariance(second.coefficients)
        return cls(np.stack([mixture.coefficients for mixture in mixtures]), covariance)

    def contrast(self, i: int, j: int) -> tuple[Floats, Floats]:
        """Return the difference of the coefficients of target `j` less target `i`, and its covariance."""
        C = self.covariance
        covariance = C[i, i] + C[j, j] - C[i, j] - C[j, i]
        return self.coefficients[j] - self.coefficients[i], covariance

    def difference(
        self, i: int, j: int, composition: Composition, k: int, confidence: float
    ) -> tuple[float, tuple[float, float], float, float]:
        """Compare the shares of class `k` in targets `i` and `j`: difference, interval, standard error and p-value.

        Interval and p-value hold for all compositions of the samples that are possible; difference and standard error
        are those of the central one.
        """
        change, covariance = self.contrast(i, j)
        w = composition.central[:, k]
        estimate, error = float(w @ change), float(np.sqrt(max(float(w @ covariance @ w), 0.0)))
        alternatives = [cases[:, :, k] for cases in composition.alternatives]
        p_value = difference_p_value(alternatives, change, covariance)
        ends = [difference_interval(cases, change, covariance, confidence) for cases in alternatives]
        return estimate, (min(low for low, _ in ends), max(high for _, high in ends)), error, p_value

    def ratio(
        self, i: int, j: int, composition: Composition, k: int, confidence: float
    ) -> tuple[float, tuple[float, float]]:
        """Compare the shares of class `k` in targets `i` and `j`: their ratio, second over first, and its interval.

        The ratio is NaN where one of them is not positive; the interval holds for all compositions that are possible.
        """
        pair = [j, i]
        b, C = self.coefficients[pair], self.covariance[np.ix_(pair, pair)]
        x, y = b @ composition.central[:, k]
        ends = []
        for cases in composition.alternatives:
            w = cases[:, :, k]
            ends.append(ratio_interval(w @ b.T, np.einsum("cs,ijst,ct->cij", w, C, w), confidence))
        estimate = float(x / y) if x > 0 and y > 0 else float("nan")
        return estimate, (min(low for low, _ in ends), max(high for _, high in ends))

    def equality(self) -> EqualityTest:
        """Test whether all targets have the same shares, by Wald's statistic, which needs no source prior."""
        targets, samples = self.coefficients.shape
        free = samples - 1  # the coefficients of a target add up to 1
        b = self.coefficients[:, :free]
        covariance = self.covariance[:, :, :free, :free].transpose(0, 2, 1, 3).reshape(targets * free, targets * free)
        to_first = np.concatenate([-np.ones((targets - 1, 1)), np.eye(targets - 1)], axis=1)
        differ = np.kron(to_first, np.eye(free))
        change = differ @ b.reshape(-1)
        statistic = max(float(change @ pinvh(differ @ covariance @ differ.T) @ change), 0.0)
        freedom = (targets - 1) * free
        return EqualityTest(statistic, freedom, float(chdtrc(freedom, statistic)))
