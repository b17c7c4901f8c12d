"""Values of mean embeddings at rows, for several classes: the functions by which TCPU estimates a mixture of samples.

TCPU chooses the coefficients b of f_T = Σ b_s f_s that minimise ‖μ_T − Σ b_s μ_s‖². With the base last, this is the
solution of E_T h = Σ b_s E_s h for the functions h_s = μ_s − μ_base, whose means are the Gram matrix of the embeddings.
The unbiased statistic leaves out self-pairs, so that a row is not compared with itself.

With random features z, h is an affine function of z, so that its moments follow from those of z: sketches are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.embedding.moments import FeatureMoments
from priorshift.embedding.samples import EmbeddedSample, self_pairs
from priorshift.embedding.tiles import kernel_sums
from priorshift.kernels import Kernel

_LEAST_MASS = 1e-12  # of the rows that are no self-pairs of a row


@dataclass(frozen=True, eq=False)
class ClassEmbedding:
    """The samples of a source, the base last, and a kernel."""

    kernel: Kernel
    samples: Sequence[EmbeddedSample]
    is_unbiased: bool = True  # whether self-pairs are left out

    @cached_property
    def source_functions(self) -> list[Floats]:
        """h at the rows of each sample, shape (rows, samples − 1)."""
        count = len(self.samples)
        values = [np.empty((len(sample), count)) for sample in self.samples]  # μ_k at the rows of each sample
        for j, X in enumerate(self.samples):
            for k in range(j, count):
                values[j][:, k], values[k][:, j] = self._mean_values(X, self.samples[k])
        return [_less_base(value) for value in values]

    def functions(self, target: EmbeddedSample) -> Floats:
        """Return h at the rows of a target, shape (rows, samples − 1)."""
        return _less_base(np.stack([self._mean_values(target, Y)[0] for Y in self.samples], axis=1))

    def _mean_values(self, X: EmbeddedSample, Y: EmbeddedSample) -> tuple[Floats, Floats]:
        """Return μ_Y at the rows of X and μ_X at the rows of Y; without self-pairs if the statistic is unbiased."""
        same = X is Y
        weights = X.weights, Y.weights  # about 1, so that no digit is lost
        row_sums, column_sums = kernel_sums(self.kernel, X.rows, None if same else Y.rows, weights=weights)
        at_X, at_Y = row_sums / len(Y), column_sums / len(X)
        own = self_pairs(self.kernel, X, Y) if self.is_unbiased else None
        if own is None:
            return at_X, at_Y
        own_X, own_Y = own
        return (
            np.asarray((at_X - own_X.sums) / np.maximum(1 - own_X.mass, _LEAST_MASS)),
            np.asarray((at_Y - own_Y.sums) / np.maximum(1 - own_Y.mass, _LEAST_MASS)),
        )


def functions_of_moments(
    parts: Sequence[FeatureMoments], contains: Mask, target: FeatureMoments, *, is_unbiased: bool
) -> tuple[list[FeatureMoments], FeatureMoments]:
    """Return the moments of h over the parts of a source and over a target, from those of their random features.

    `contains` says which parts each sample consists of, the base last, shape (samples, parts).
    """
    weights = contains @ np.array([part.weight for part in parts])
    means = contains @ np.stack([part.total for part in parts]) / weights[:, None]
    functions = []
    for member, part in zip(contains.T, parts, strict=True):
        # mean mass of a row of this part in each sample: the mass of its self-pairs, whose kernel value is ‖z‖² = 1
        own = member * part.squares / (part.weight * weights) if is_unbiased else np.zeros(len(weights))
        A, c = means / (1 - own)[:, None], -own / (1 - own)
        functions.append(part.affine(A[:-1] - A[-1], c[:-1] - c[-1]))
    return functions, target.affine(means[:-1] - means[-1], np.zeros(len(means) - 1))


def _less_base(values: Floats) -> Floats:
    """Return μ_s − μ_base from the values of all means."""
    return np.asarray(values[:, :-1] - values[:, -1:])
