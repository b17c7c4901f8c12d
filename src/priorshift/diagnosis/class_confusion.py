"""Which classes cannot be distinguished, and how much narrower intervals would be if they could.

Estimated shares add up to 1, so each line of their covariance C adds up to 0, and with the unit vectors d of classes

    C = Σ over pairs j < k of v_jk (d_j − d_k)(d_j − d_k)ᵀ,   v_jk = −C_jk.

v_jk is the variance by which shares move from one class of a pair to the other, and C_jj = Σ_k v_jk. Even if the class
of each of the n target rows were known, shares would have the multinomial covariance, with v_jk = θ_j θ_k/n. What
exceeds this is due to confusion, and would vanish from C_jj and C_kk if j and k could be distinguished perfectly. The
width of an interval is proportional to the root of the variance, which also has the error of a source prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from priorshift.class_priors import ClassPriors
from priorshift.diagnosis.identification import TextReport

CLEAR_GAIN = 0.5  # narrowing of an interval from which on two classes can hardly be distinguished
_SHOWN_GAIN, _SHOWN_PAIRS = 0.2, 5  # pairs with a smaller gain are not printed, nor are more pairs
_TINY = 1e-300


@dataclass(frozen=True)
class ClassPair:
    """How far two classes are confused."""

    first: str
    second: str
    correlation: float  # of the errors of their estimated shares
    # share by which the interval of each would be narrower if they could be distinguished perfectly
    first_gain: float
    second_gain: float

    @property
    def gain(self) -> float:
        """The larger of the two gains."""
        return max(self.first_gain, self.second_gain)

    @property
    def text(self) -> str:
        """One sentence."""
        how = "hardly be distinguished" if self.gain >= CLEAR_GAIN else "be distinguished in part"
        gains = f"{self.first_gain:.0%} narrower, and that of {self.second!r} {self.second_gain:.0%}"
        return (
            f"{self.first!r} and {self.second!r} can {how}: if they could be perfectly, the interval of "
            f"{self.first!r} would be {gains}."
        )


@dataclass(frozen=True)
class ClassConfusion(TextReport):
    """All pairs of classes, those that cost most precision first."""

    pairs: tuple[ClassPair, ...]

    @property
    def confused(self) -> tuple[ClassPair, ...]:
        """Pairs that can hardly be distinguished: an interval would be half as wide, or less, if they could."""
        return tuple(pair for pair in self.pairs if pair.gain >= CLEAR_GAIN)

    @property
    def text(self) -> str:
        """A sentence for each pair that matters, not wrapped."""
        shown = [pair.text for pair in self.pairs if pair.gain >= _SHOWN_GAIN][:_SHOWN_PAIRS]
        return "\n".join(shown) or "All classes can be distinguished well from each other."

    def table(self) -> dict[str, dict[str, float]]:
        """Return for each class by how much its interval would narrow if it were distinguishable from each other."""
        gains: dict[str, dict[str, float]] = {}
        for pair in self.pairs:
            gains.setdefault(pair.first, {})[pair.second] = pair.first_gain
            gains.setdefault(pair.second, {})[pair.first] = pair.second_gain
        return gains

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs, and the table of gains, as plain values for JSON."""
        return {**super().to_dict(), "gains": self.table()}


def class_confusion(priors: ClassPriors) -> ClassConfusion:
    """Compute how far each pair of classes is confused, from the covariance of their estimated shares."""
    names, C = list(priors), priors.covariance
    shares = np.array([priors[name].value for name in names])
    variances = np.array([priors[name].standard_error ** 2 for name in names])  # with the error of the source priors
    rows = priors[names[0]].sizes[2]
    pairs = []
    for j, k in combinations(range(len(names)), 2):
        correlation = float(C[j, k] / np.sqrt(max(C[j, j] * C[k, k], _TINY)))
        confused = max(-float(C[j, k]) - float(shares[j] * shares[k]) / rows, 0.0)  # variance due to confusion
        gains = [1 - float(np.sqrt(max(1 - confused / max(variances[i], _TINY), 0.0))) for i in (j, k)]
        pairs.append(ClassPair(names[j], names[k], correlation, gains[0], gains[1]))
    return ClassConfusion(tuple(sorted(pairs, key=lambda pair: -pair.gain)))
