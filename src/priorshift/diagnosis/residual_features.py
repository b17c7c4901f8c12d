"""Functions of a row for which label shift is tested: of all columns at once, of each column, and of the score.

The score that label shift is tested with: one that a seed moves little.

The estimator's own score has random features and is tuned on one dealing of the rows to folds; the p-value of a test
that looks at it changes with both (`experiments/studies/seeds.py`). This one is ridge regression of "labelled" (1)
against "population" (−1) on the longest axes of the kernel, which need no seed. It has so few coefficients that it can
be cross-fitted many times: the folds matter little in the mean, and the ridge is tuned on all of them.

All features of the rows of P, U and T, side by side, so that they have the same random signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.residuals import Mean, Observed, Signs
from priorshift.io.scaling import Rows
from priorshift.io.tables import Table
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, Ridge, most_folds
from priorshift.scores.scored_source import Preparation, ScoredSource
from priorshift.scores.witness import Witness

_SCALES = (0.3, 1.0)  # c of the kernels exp(−c‖x−y‖²/p); 1 is TCPU's
_LANDMARKS = 256
_LEAST_LONG = 1e-6  # of the longest axis: what single precision can tell of a shorter one is rounding
_COSINES = 5  # of the p-value
_OF_COLUMN = (2, 3, 4)  # cosines of the rank in a column, beside its value
_FAR = 8.0  # standard deviations
_KNOTS = 1000  # of a distribution function


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """A mean of Gaussian kernels on the span of landmarks, on rows as the scores' models take them.

    With all rows as landmarks it is the kernel itself; a few hundred leave hardly anything of it out (Nyström), and
    unlike random features they need no seed.

    Attributes
    ----------
    landmarks : ndarray of shape (landmarks, columns)
        Rows of P, U and T, as many of each as its share of all rows.
    axes : ndarray of shape (landmarks, features)
        What makes orthonormal coordinates of the kernel's values at the landmarks, the longest axis first.
    """

    landmarks: Floats
    axes: Floats

    @classmethod
    def of(cls, rows: Sequence[Rows | Floats], prepare: Callable[[Floats], Floats]) -> KernelFeatures:
        """Of some samples."""
        total = sum(map(len, rows))
        landmarks = np.concatenate([prepare(x[evenly(len(x), round(_LANDMARKS * len(x) / total))]) for x in rows])
        length, axes = np.linalg.eigh(_kernel(landmarks, landmarks).astype(np.float64))
        kept = np.flatnonzero(length > _LEAST_LONG * length[-1])[::-1]
        return cls(landmarks, axes[:, kept] / np.sqrt(length[kept]))

    def values(self, prepared: Floats) -> NDArray[np.float32]:
        """The kernel at the landmarks."""
        return _kernel(prepared, self.landmarks)

    def __call__(self, prepared: Floats, axes: int | None = None) -> NDArray[np.float32]:
        """Coordinates of rows, on the longest axes alone where their number is given."""
        return np.asarray(self.values(prepared) @ self.axes[:, :axes].astype(np.float32))


def evenly(rows: int, most: int) -> Index:
    """Positions of at most so many rows, at least one, in even steps."""
    count = min(rows, max(most, 1))
    return np.asarray((np.arange(count) + 0.5) * rows / count, dtype=np.intp)


def _kernel(X: Floats, Y: Floats) -> NDArray[np.float32]:
    """In single precision: label shift holds for every function of a row, a rounded one too."""
    x, y = X.astype(np.float32), Y.astype(np.float32)
    squares = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
    squares -= 2 * x @ y.T
    squares = np.maximum(squares, 0) / -x.shape[1]
    return np.asarray(sum(np.exp(np.float32(scale) * squares) for scale in _SCALES) / np.float32(len(_SCALES)))


def cosines_of_p_value() -> Floats:
    """cos(kπv) in each bin of the p-value v, shape (features, bins); their mean is 0 where v is uniform."""
    middle = (np.arange(mixture.BINS) + 0.5) / mixture.BINS
    return np.asarray(np.cos(np.pi * np.outer(np.arange(1, _COSINES + 1), middle)))


@dataclass(frozen=True, eq=False)
class ColumnFeatures:
    """Of each column its value in standard deviations of U, and cosines of its rank among U.

    Attributes
    ----------
    column : ndarray of int
        The user's column that each feature is of.
    is_value : ndarray of bool
        Whether a feature is the value itself, or one of the levels of a category.
    encoded : ndarray of int
        The column of the encoded table that each feature is of.
    spread : ndarray
        Standard deviations of the encoded columns among U; 0 where they are left out.
    knots : list of ndarray or None
        Values of each encoded column, in order; None for one that has no ranks.
    """

    column: Index
    is_value: Mask
    encoded: Index
    spread: Floats
    knots: Sequence[Floats | None]

    @classmethod
    def of(cls, source: Source, population: Floats) -> ColumnFeatures:
        """From the scaled rows of U."""
        origin, width = source.table.origin, population.shape[1]
        mass = source.population_mass
        centred = population - mass @ population
        spread = np.where(source.scaling.factor != 0, np.sqrt(mass @ centred**2), 0.0)
        of = np.arange(width) if origin is None else origin.of
        has_ranks = np.ones(width, dtype=bool) if origin is None else ~origin.own_scale
        knots: list[Floats | None] = []
        column, value, encoded = [], [], []
        for k in range(width):
            if spread[k] == 0:
                knots.append(None)
                continue
            knots.append(_knots(population[:, k], mass) if has_ranks[k] else None)
            features = 1 + len(_OF_COLUMN) * has_ranks[k]
            column += [of[k]] * features
            encoded += [k] * features
            value += [True] + [False] * (features - 1)
        return cls(np.array(column, dtype=np.intp), np.array(value, dtype=bool), np.array(encoded), spread, knots)

    def __call__(self, rows: Floats) -> Floats:
        made: list[NDArray[np.float64]] = []
        for k, knots in enumerate(self.knots):
            if self.spread[k] == 0:
                continue
            made.append(np.clip(rows[:, k] / self.spread[k], -_FAR, _FAR))
            if knots is not None:
                below = np.searchsorted(knots, rows[:, k], "left") + np.searchsorted(knots, rows[:, k], "right")
                made += [np.cos(np.pi * order * below / (2 * len(knots))) for order in _OF_COLUMN]
        return np.stack(made, axis=1)


def column_names(table: Table, encoded: Index) -> tuple[list[str], list[str | None]]:
    """Names of the user's columns; and of each encoded column, which level it is, None where the name says all."""
    names = list(table.columns) if table.columns else [f"column {k}" for k in range(table.width)]
    if table.origin is None:
        return names, [None] * len(encoded)
    of, of_encoded = table.origin.of, names
    names = list(table.origin.columns)
    if len(names) <= of.max():  # two columns of one name
        names = [f"column {k}" for k in range(int(of.max()) + 1)]
    several = np.bincount(of, minlength=len(names)) > 1
    return names, [of_encoded[k] if several[of[k]] else None for k in encoded]


def _knots(values: Floats, mass: Floats) -> Floats:
    """As many values as a distribution function needs, each of the same mass."""
    order = np.argsort(values, kind="stable")
    if len(values) <= _KNOTS and np.ptp(mass) == 0:
        return np.asarray(values[order])
    middle = np.cumsum(mass[order]) - mass[order] / 2
    at = (np.arange(_KNOTS) + 0.5) / _KNOTS
    return np.asarray(values[order][np.minimum(np.searchsorted(middle, at), len(values) - 1)])


_REPEATS, _FOLDS = 20, 5
_AXES = 64
_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)
_BLOCK = 4096
_Singles = NDArray[np.float32]


@dataclass(frozen=True)
class _Linear:
    """A score that is linear in the features and a constant."""

    beta: Floats

    def __call__(self, features: Floats) -> Floats:
        return features @ self.beta


def kernel_score(
    source: Source,
    target: Target,
    rows: tuple[Rows, Rows, Rows],
    kernel: KernelFeatures,
    scored: ScoredSource,
    rng: np.random.Generator,
) -> tuple[Witness, Floats]:
    """Score P, U and T.

    Parameters
    ----------
    source, target : Source, Target
        Which rows are one observation, and what they count.
    rows : three Rows
        Of P, U and T, scaled.
    kernel : KernelFeatures
        Whose longest axes are the score's features.
    scored : ScoredSource
        With the estimator's score, whose place is taken.
    rng : Generator
        Deals rows to folds.

    Returns
    -------
    witness : Witness
        Of this score.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    """

    def features(x: Floats) -> _Singles:
        made = kernel(scored.prepare(x), _AXES)
        return np.concatenate([made, np.ones((len(made), 1), dtype=np.float32)], axis=1)

    folds = most_folds(source, _FOLDS)
    dealt = np.stack([source.deal(folds, rng) for _ in range(_REPEATS)])
    of_P, of_U = dealt[:, source.positive], dealt[:, source.population]
    halves = (rows[0], source.positive_mass, of_P, 0.5), (rows[1], source.population_mass, of_U, -0.5)
    gram, moment = np.zeros(()), np.zeros(())
    for sample, mass, fold, half in halves:
        taken = evenly(len(sample), FIT_ROWS)
        of_sample = _by_fold(features(sample[taken]), mass[taken] / mass[taken].sum(), fold[:, taken], folds)
        gram, moment = gram + abs(half) * of_sample[0], moment + half * of_sample[1]
    beta = _fitted(gram, moment)
    P, U = (_scores(sample, fold, features, beta) for sample, _, fold, _ in halves)
    repetitions = tuple(
        Repetition(P[k], U[k], tuple(map(_Linear, beta[k])), _of_observations(source, dealt[k]))
        for k in range(_REPEATS)
    )
    made = ScoredSource.from_repetitions(source, scored.prepare, repetitions, scored.seed)
    of_T = np.stack([one.assign_folds(target.of_source, rng) for one in repetitions])
    T = _scores(rows[2], of_T, features, beta)
    values = np.stack([made.ranks(one.positive, scores) for one, scores in zip(repetitions, T, strict=True)])
    return Witness.from_scores(made, source.without_rows(), *made.mixture), values


def _by_fold(F: _Singles, mass: Floats, fold: Index, folds: int) -> tuple[Floats, Floats]:
    """Gram matrices and means of the features, shapes (repeats, folds, features, features) and without the last."""
    width, of_row_mass = F.shape[1], mass.astype(np.float32)
    gram, moment = np.empty((len(fold), folds, width, width)), np.empty((len(fold), folds, width))
    for k, of_row in enumerate(fold):
        for j in range(folds):
            inside = np.flatnonzero(of_row == j)
            own = F[inside]
            weighted = own * of_row_mass[inside, None]
            gram[k, j], moment[k, j] = weighted.T @ own, weighted.sum(axis=0)
    return gram, moment


def _fitted(gram: Floats, moment: Floats) -> Floats:
    """Coefficients of each fold, fitted to the others, shape (repeats, folds, features).

    The ridge is that of the largest correlation of label and score, since only the order of the scores counts; it is
    the correlation of all repetitions, so that hardly ever another dealing of the rows finds another ridge.
    """
    others, of_others = gram.sum(axis=1, keepdims=True) - gram, moment.sum(axis=1, keepdims=True) - moment
    most, found = -np.inf, moment
    for ridge in _RIDGES:
        ridged = others + ridge * (1 - 1 / gram.shape[1]) * np.eye(gram.shape[-1])
        beta = np.linalg.solve(ridged, of_others[..., None])[..., 0]
        square = float(np.sum((gram @ beta[..., None])[..., 0] * beta))
        correlation = float(np.sum(moment * beta)) / np.sqrt(max(square, 1e-300))
        if correlation > most:
            most, found = correlation, beta
    return np.asarray(found)


def _scores(rows: Rows, fold: Index, features: Callable[[Floats], _Singles], beta: Floats) -> Floats:
    """Of each row by the model of its fold, shape (repeats, rows)."""
    made, single = np.empty(fold.shape), beta.astype(np.float32)
    for first in range(0, len(rows), _BLOCK):
        at = slice(first, first + _BLOCK)
        by_model = np.einsum("if,rkf->rik", features(rows[at]), single, optimize=True)
        made[:, at] = np.take_along_axis(by_model, fold[:, at, None], axis=2)[..., 0]
    return made


def _of_observations(source: Source, fold: Index) -> Index:
    """The fold of each observation."""
    made = np.empty(int(source.observation.max()) + 1, dtype=np.intp)
    made[source.observation] = fold
    return made


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
            witness.positive_mean(cosines),
            1 + witness.noise_share(np.tile(cosines[0], (len(values), 1))),
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
