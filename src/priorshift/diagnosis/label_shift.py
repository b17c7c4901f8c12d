"""Is it label shift? Whether the target is a mixture of the positives and the population at all.

Two tests with different eyes, both of the residual (:mod:`priorshift.diagnosis.residuals`): of a Gaussian kernel, which
sees many kinds of change of the rows, and of cosines of the p-value, which see a change along the score that few rows
make. They have the same random signs, so that the smaller of their two p-values can be judged in the same resamples.

Little of it is left to the seed: the kernel is seen at landmarks, the score is cross-fitted many times
(:mod:`priorshift.diagnosis.residual_features`), and where the p-value is small there are more signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.diagnosis.columns import ColumnShift, unexplained
from priorshift.diagnosis.residual_features import Eyes, column_names
from priorshift.diagnosis.residuals import Mean, Observed, Residual, Signs, observed, random_signs, shares_above
from priorshift.formatting import TextReport, format_p
from priorshift.problem import Source, Target
from priorshift.scores.witness import Witness
from priorshift.threads import one_blas_thread

RESAMPLES = 999
_ROWS = 10  # of the target that are shown
_LEVEL, _SURE = 0.05, 0.01
_LEAST_SIZE = 5.0  # observations of a sample: four have only eight patterns of signs
_BLOCK = 4096
_LARGEST = 10.0  # ratio that noise is taken at


@dataclass(frozen=True)
class ResidualTest:
    """The test of one eye.

    Attributes
    ----------
    statistic : float
        λ: the squared residual over what noise makes of it.
    p_value : float
        The share of resamples with as large a one; NaN where there is nothing to compare with.
    ratio : float
        The R that leaves the least residual.
    """

    statistic: float
    p_value: float
    ratio: float


@dataclass(frozen=True)
class LabelShiftTest(TextReport):
    """The test of label shift, and what breaks it.

    Attributes
    ----------
    statistic : float
        The smaller of the two p-values of `kernel` and `score`.
    p_value : float
        The share of resamples in which it is as small.
    kernel, score : ResidualTest
        The test of the rows in the space of a kernel, and that of the scores.
    violation : float
        ‖e‖, the size of the residual in the kernel's space, without what noise makes of it; 0 where that is all.
    violation_squared : float
        Its unbiased square, which may be negative.
    separation : float
        ‖μ_U − μ_P‖ in the same space, likewise: what a change of R by 1 moves.
    columns : tuple of ColumnShift
        The columns, those that moved most beyond label shift first.
    rows : tuple of int
        Rows of the target, counted from 0, that lie where it has most beyond what label shift explains.
    resamples : int
        Random signs that were drawn.
    reason : str
        Why there is no p-value; empty where there is one.
    """

    statistic: float
    p_value: float
    kernel: ResidualTest
    score: ResidualTest
    violation: float
    violation_squared: float
    separation: float
    columns: tuple[ColumnShift, ...]
    rows: tuple[int, ...]
    resamples: int
    reason: str = ""

    @property
    def named(self) -> tuple[ColumnShift, ...]:  # numpydoc ignore=RT01
        """The columns whose adjusted p-value is below 5%."""
        return tuple(column for column in self.columns if column.p_value <= _LEVEL)

    @property
    def surely_named(self) -> tuple[ColumnShift, ...]:  # numpydoc ignore=RT01
        """Those below 1%, which count even where the two eyes, that look at all columns at once, see nothing."""
        return tuple(column for column in self.columns if column.p_value <= _SURE)

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        return {name: _plain(value) for name, value in asdict(self).items()}

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        if self.reason:
            return f"label shift cannot be tested: {self.reason}"
        eyes = f"rows {format_p(self.kernel.p_value)}, scores {format_p(self.score.p_value)}"
        verdict = "does not hold" if self.p_value <= _LEVEL else "is not contradicted"
        lines = [f"label shift {verdict}, {format_p(self.p_value)} ({eyes})"]
        said = self.named if self.p_value <= _LEVEL else self.surely_named
        if said:
            lines.append("moved beyond what a change of the share explains: " + "; ".join(map(str, said[:5])))
        if self.p_value <= _LEVEL and self.rows:
            lines.append(f"most in excess are {numbered(self.rows)}")
        return "\n".join(lines)


def numbered(rows: Sequence[int]) -> str:
    """Name rows of the target as one finds them in a file.

    Parameters
    ----------
    rows : sequence of int
        Counted from 0; one or more.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.diagnosis.label_shift import numbered
    >>> numbered((11, 3))
    'rows 12 and 4 of the target (its first row is 1, a header not counted)'
    """
    *others, last = (str(row + 1) for row in rows)
    named = f"rows {', '.join(others)} and {last}" if others else f"row {last}"
    return f"{named} of the target (its first row is 1, a header not counted)"


def label_shift_test(
    source: Source,
    target: Target,
    witness: Witness,
    values: Floats,
    rng: np.random.Generator,
    *,
    ratio: float = 1.0,
    resamples: int = RESAMPLES,
    again: tuple[float, int] = (0.0, 0),
) -> LabelShiftTest:
    """Test label shift.

    Parameters
    ----------
    source, target : Source, Target
        With their rows.
    witness : Witness
        Of the fitted source.
    values : ndarray of shape (repeats, rows)
        The target's p-values; they are looked at where a user's model made them.
    rng : Generator
        For folds and signs.
    ratio : float
        R̂ of the witness, at which the noise of features is made alike; its error costs precision alone.
    resamples : int
        Random signs for each observation.
    again : (float, int)
        A p-value that is at most so large is looked at again with so many, if that is more.

    Returns
    -------
    LabelShiftTest

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift import simulate
    >>> from priorshift.diagnosis.label_shift import label_shift_test
    >>> from priorshift.problem import Source
    >>> from priorshift.scores.scored_source import ScoredSource
    >>> from priorshift.scores.witness import Witness
    >>> s = simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, random_state=0)
    >>> source = Source.read(s.X, s.y, s.ids, scenario="case-control", standardize=True)
    >>> rng = np.random.default_rng(0)
    >>> scored = ScoredSource.fit(source, model=None, repeats=2, folds=5, rng=rng)
    >>> witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    >>> drifted = s.target + np.where(np.arange(10) == 3, 1.0, 0.0)
    >>> for rows in (s.target, drifted):
    ...     target = source.layout.read(rows)
    ...     values = scored.target_p_values(target)
    ...     test = label_shift_test(source, target, witness, values, rng, resamples=199)
    ...     print(test.p_value > 0.05, [column.name for column in test.named])
    True []
    False ['column 3']
    """
    samples = observed(source, target)
    reason = _too_few(samples)
    if reason:
        nan, none = float("nan"), ResidualTest(float("nan"), float("nan"), float("nan"))
        return LabelShiftTest(nan, nan, none, none, nan, nan, nan, (), (), resamples, reason)
    small, more = again
    with one_blas_thread():
        eyes = Eyes.of(source, target, witness, values, rng)
        test = _tested(eyes, source, samples, ratio, random_signs(samples, resamples, rng))
        if test.p_value <= small and more > resamples:
            test = _tested(eyes, source, samples, ratio, random_signs(samples, more, rng))
    return test


def _tested(
    eyes: Eyes, source: Source, samples: tuple[Observed, Observed, Observed], ratio: float, signs: Signs
) -> LabelShiftTest:
    means = eyes.means(samples, signs)
    kernel = Residual.of(*(mean.take(eyes.of_kernel).through(eyes.kernel.axes) for mean in means))
    score = _score(means, eyes, ratio)
    names, levels = column_names(source.table, eyes.columns.encoded)
    P, U, T = (mean.take(eyes.of_columns) for mean in means)
    columns = unexplained((P, U, T), eyes.columns.column, eyes.columns.is_value, names, levels)
    return _put_together(kernel, score, columns, _in_excess(eyes, kernel, samples[2]), len(signs))


def _score(means: tuple[Mean, Mean, Mean], eyes: Eyes, ratio: float) -> Residual:
    """Each cosine by its noise, so that none is louder than the others."""
    R = _in_range(ratio)
    P, U, T = (mean.take(eyes.of_score) for mean in means)
    spread = np.sqrt(((T.noise - (1 - R) * P.noise - R * U.noise) ** 2).mean(axis=0))
    scale = np.where(spread > 0, 1 / np.maximum(spread, 1e-300), 0.0)
    return Residual.of(*(mean.take(slice(None), scale) for mean in (P, U, T)))


def _too_few(samples: tuple[Observed, Observed, Observed]) -> str:
    """Why signs say nothing; empty where they do."""
    for name, sample in zip(("positive", "unlabelled", "target"), samples, strict=True):
        if sample.size < _LEAST_SIZE - 1e-9:
            return (
                f"the {name} sample is worth {sample.size:.1f} observations, and at least {_LEAST_SIZE:.0f} are needed "
                "to see how far off chance may put it."
            )
    return ""


def _in_range(ratio: float) -> float:
    """A ratio that noise is taken at."""
    return min(max(ratio, 0.0), _LARGEST) if np.isfinite(ratio) else 1.0


def _put_together(
    kernel: Residual, score: Residual, columns: tuple[ColumnShift, ...], rows: tuple[int, ...], resamples: int
) -> LabelShiftTest:
    parts, ranks = [], []
    for eye in (kernel, score):
        drawn = eye.resampled()
        if not (eye.is_known and np.isfinite(drawn).all()):
            parts.append(ResidualTest(float("nan"), float("nan"), float("nan")))
            continue
        ranks.append(shares_above(np.concatenate([[eye.statistic], drawn])))
        parts.append(ResidualTest(eye.statistic, float(ranks[-1][0]), eye.ratio))
    smaller, p_value, reason = float("nan"), float("nan"), ""
    if ranks:
        smallest = np.min(ranks, axis=0)
        smaller, p_value = float(smallest[0]), float((smallest <= smallest[0]).mean())
    else:
        reason = "the rows of the samples do not vary, so that there is nothing to compare with."
    squared = kernel.distance(_LARGEST)
    apart = float(np.sqrt(max(kernel.separation, 0.0)))
    return LabelShiftTest(
        smaller, p_value, parts[0], parts[1], float(np.sqrt(max(squared, 0.0))), squared, apart, columns, rows,
        resamples, reason,
    )  # fmt: skip


def _in_excess(eyes: Eyes, kernel: Residual, target: Observed) -> tuple[int, ...]:
    """Where the witness of the residual is largest, of each row without what it does to the residual itself."""
    e, rows = kernel.vector, eyes.rows[2]
    height = np.empty(len(rows))
    for first in range(0, len(rows), _BLOCK):
        at = slice(first, first + _BLOCK)
        phi = eyes.kernel(eyes.prepare(rows[at]))
        height[at] = phi @ e - target.mass[at] * np.einsum("ij,ij->i", phi, phi)
    first_rows = np.argsort(-height, kind="stable")[:_ROWS]
    return tuple(int(row) for row in first_rows if height[row] > 0)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
