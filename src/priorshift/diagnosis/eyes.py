"""All features of the rows of P, U and T, side by side, so that they have the same random signs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.diagnosis.features import ColumnFeatures, KernelFeatures, cosines_of_p_value
from priorshift.diagnosis.kernel_score import kernel_score
from priorshift.diagnosis.resampling import Mean, Observed, Signs
from priorshift.input.scaling import Rows
from priorshift.input.source import Source, Target
from priorshift.scores import mixture
from priorshift.scores.ridge import Ridge
from priorshift.scores.scored import Preparation
from priorshift.scores.witness import Witness


@dataclass(frozen=True, eq=False)
class Eyes:
    """What sees the rows: a kernel at landmarks, cosines of the p-value, and features of each column.

    Attributes
    ----------
    kernel, columns : KernelFeatures, ColumnFeatures
        Features of rows.
    cosines : ndarray of shape (features, bins)
        Functions of the p-value.
    known : ndarray
        Their mean among positives, whose p-values are ranks.
    second : float
        The factor by which the noise of the scores makes the variance of their means among P and U larger: that of the
        first, which is careful, since noise moves rows along v and slow functions of it see that most.
    rows : three Rows
        Of P, U and T, scaled.
    bins : three ndarrays of shape (repeats, rows)
        Of their p-values.
    prepare : Preparation
        Makes of rows what the kernel takes.
    """

    kernel: KernelFeatures
    columns: ColumnFeatures
    cosines: Floats
    known: Floats
    second: float
    rows: tuple[Rows, Rows, Rows]
    bins: tuple[Index, Index, Index]
    prepare: Preparation

    @classmethod
    def of(cls, source: Source, target: Target, witness: Witness, values: Floats, rng: np.random.Generator) -> Eyes:
        """With the score of `witness` where it is a user's, and else with one that a seed moves less."""
        prepare = witness.scored.prepare
        P, U = (source.scaling.rows(source.table.values, index) for index in (source.positive, source.population))
        rows = P, U, target.rows
        kernel = KernelFeatures.of(rows, prepare)
        if isinstance(witness.scored.repetitions[0].models[0], Ridge):
            witness, values = kernel_score(source, target, rows, kernel, witness.scored, rng)
        cosines = cosines_of_p_value()
        return cls(
            kernel,
            ColumnFeatures.of(source, U[:]),
            cosines,
            witness.mean_of_positives(cosines),
            1 + witness.noise_of(np.tile(cosines[0], (len(values), 1))),
            rows,
            (witness.positive, witness.population, mixture.bins(values)),
            prepare,
        )

    @property
    def of_kernel(self) -> slice:
        return slice(0, len(self.kernel.landmarks))

    @property
    def of_score(self) -> slice:
        return slice(self.of_kernel.stop, self.of_kernel.stop + len(self.cosines))

    @property
    def of_columns(self) -> slice:
        return slice(self.of_score.stop, None)

    def means(self, samples: tuple[Observed, Observed, Observed], signs: Signs) -> tuple[Mean, Mean, Mean]:
        """Of P, U and T."""
        P, U, T = (Mean.of(sample, signs, self._features(k)) for k, sample in enumerate(samples))
        P.value[self.of_score] = self.known
        for mean in (P, U):
            mean.noise[:, self.of_score] *= np.sqrt(self.second)
        return P, U, T

    def _features(self, sample: int) -> Callable[[slice], Floats]:
        rows, bins = self.rows[sample], self.bins[sample]

        def features(at: slice) -> Floats:
            block = rows[at]
            of_score = np.mean([self.cosines[:, b[at]] for b in bins], axis=0).T
            return np.concatenate([self.kernel.values(self.prepare(block)), of_score, self.columns(block)], axis=1)

        return features
