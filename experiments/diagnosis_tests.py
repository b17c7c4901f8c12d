"""Run the tests of a diagnosis repeatedly: one fit serves many targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.shift_tests import LabelShiftTest, ShiftTest, label_shift_test, shift_test
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

LEVEL = 0.05
RESAMPLES = 199  # fewer than the default 999, to save time: level and power differ by less than 0.01


@dataclass(frozen=True, eq=False)
class FittedDiagnosis:
    """A source and the scores that `WitnessShift` fits by default."""

    source: Source
    witness: Witness

    @classmethod
    def fit(cls, X: NDArray[Any], y: NDArray[Any], ids: NDArray[Any], seed: int) -> FittedDiagnosis:
        """Fit the scores to rows X with labels y; rows of equal id are one observation."""
        source = Source.from_labels(X, y, shared=ids, scenario="case-control", standardize=True)
        scored = ScoredSource.fit(source, None, 5, 5, np.random.default_rng(seed))
        return cls(source, Witness.from_scores(scored, source.without_rows(), *scored.mixture))

    def tests(self, rows: NDArray[Any], seed: int) -> tuple[ShiftTest, LabelShiftTest]:
        """Test a target for a shift and for label shift."""
        target = self.source.layout.read(rows)
        p_values = self.witness.scored.target_p_values(target)
        test = self.witness.test(p_values, target)
        fit: Any = TargetFit(target, None, test, p_values, None, self.witness)  # type: ignore[arg-type]
        inputs = DiagnosisInput(self.source, fit, rng=np.random.default_rng(seed))
        return shift_test(inputs), label_shift_test(inputs, resamples=RESAMPLES)


def p_values(shift: ShiftTest, label: LabelShiftTest) -> dict[str, float]:
    """Return the p-value of each test by its name; for the columns, the smallest adjusted one."""
    return {
        "shift": shift.p_value,
        "kernel": label.kernel.p_value,
        "score": label.score.p_value,
        "label_shift": label.p_value,
        "columns": min((column.p_value for column in label.columns), default=float("nan")),
    }


def rejection_rates(p: Iterable[dict[str, float]]) -> dict[str, float]:
    """Return the share of repetitions in which each test rejects at 5%."""
    repetitions = list(p)
    return {name: round(float(np.mean([one[name] <= LEVEL for one in repetitions])), 4) for name in repetitions[0]}
