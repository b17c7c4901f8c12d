"""Means of features, and how far off chance may put them: a random sign for each observation.

A mean E φ = Σ mass·φ(x) is off by a sum of independent parts mass·(φ(x) − E φ), one for each observation. With random
signs before these parts the sum is distributed as the error is, and the same signs serve every function of the rows:
what two means, or two tests, have in common they keep. Rows of one observation have one sign, in whichever samples
they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.input.source import Source, Target
from priorshift.input.weights import effective_size

Signs = NDArray[np.int8]  # shape (resamples, observations)
_VALUES = 2**22  # signs and features held at a time


@dataclass(frozen=True, eq=False)
class Observed:
    """What each row of a sample counts, and which observation it is, with one numbering for all samples."""

    mass: Floats
    observation: Index

    @property
    def size(self) -> float:
        """Observations of equal weight that it is worth, two at least."""
        codes = np.unique(self.observation, return_inverse=True)[1].reshape(-1)
        return max(effective_size(self.mass, codes), 2.0)


def observed(source: Source, target: Target) -> tuple[Observed, Observed, Observed]:
    """P, U and T; a row of the target whose group the source has is an observation of the source."""
    number = source.observation
    of_target = np.where(target.of_source >= 0, target.of_source, target.observation + int(number.max()) + 1)
    return (
        Observed(source.positive_mass, number[source.positive]),
        Observed(source.population_mass, number[source.population]),
        Observed(target.mass, of_target),
    )


def random_signs(samples: tuple[Observed, ...], resamples: int, rng: np.random.Generator) -> Signs:
    """A sign for each observation in each resample."""
    observations = 1 + max(int(sample.observation.max()) for sample in samples)
    signs = rng.integers(0, 2, size=(resamples, observations), dtype=np.int8)
    signs *= 2
    signs -= 1
    return signs


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean of features, and by how much it is off in each resample.

    Attributes
    ----------
    value : ndarray of shape (features,)
        E φ.
    noise : ndarray of shape (resamples, features)
        With mean zero.
    size : float
        Observations of equal weight that the mean is of.
    """

    value: Floats
    noise: Floats
    size: float

    @classmethod
    def of(cls, sample: Observed, signs: Signs, features: Callable[[slice], Floats]) -> Mean:
        """Block by block; `features` gives those of some rows."""
        value: Any = 0.0
        noise: Any = 0.0
        own = np.zeros(len(signs))
        block = max(1, _VALUES // len(signs))
        for first in range(0, len(sample.mass), block):
            rows = slice(first, first + block)
            phi, mass = features(rows), sample.mass[rows]
            # single precision: what is off by chance need not be known to more than six digits
            weights = signs[:, sample.observation[rows]] * mass.astype(np.float32)
            value = value + mass @ phi
            noise = noise + (weights @ phi.astype(np.float32)).astype(np.float64)
            own += weights.sum(axis=1)
        size = sample.size
        return cls(value, (noise - own[:, None] * value) * np.sqrt(size / (size - 1)), size)

    def take(self, features: Any, scale: Floats | float = 1.0) -> Mean:
        """Some of the features, times `scale`."""
        return Mean(self.value[features] * scale, self.noise[:, features] * scale, self.size)

    def through(self, matrix: Floats) -> Mean:
        """Other features, linear in these."""
        return Mean(self.value @ matrix, self.noise @ matrix, self.size)
