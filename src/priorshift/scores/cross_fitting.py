"""Cross-fitted scores: how much each row looks like a labelled positive, by a model that was fitted without it.

Rows are assigned to folds, rows of one observation to the same fold; a row is scored by the model that was fitted
without its fold. Rows of a target are assigned to the models at random and not averaged over them, so that their noise
is that of source rows; a row of a group that is in the source is scored by the model that was fitted without it. All of
this is repeated with other folds and other random features.

The model is kernel ridge regression of "labelled" (1) against "population" (−1), both with weight one half, with a
Gaussian kernel exp(−c‖x−y‖²/p) by random Fourier features; c and the ridge are chosen by cross-validation. It has two
hundred coefficients, for which a subsample is enough: it is fitted to at most `FIT_ROWS` rows of P and of U, and all
rows are scored. A scikit-learn classifier can replace it.

When streaming, the fold of a row is a hash of its values (:mod:`priorshift.io.row_hashes`): in any order and on any
machine the row is scored by a model that was fitted without it, and no record of the fitted rows is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from priorshift.arrays import Floats, Folds, Index, Scores
from priorshift.embedding.gpu_sums import import_cuda, resolve_device
from priorshift.errors import InputError
from priorshift.io.parameters import check_estimator, seeded
from priorshift.problem import Source
from priorshift.threads import map_in_threads

_BLOCK = 512  # rows whose features are in memory together


def fourier_features(rows: NDArray[Any], frequencies: NDArray[Any]) -> NDArray[Any]:
    """Return cosines and sines of the projections of rows on frequencies, and the constant 1.

    `frequencies` has shape (columns, frequencies); the features have shape (rows, 2·frequencies + 1), in single
    precision if both `rows` and `frequencies` are.
    """
    D = frequencies.shape[1]
    scale = float(1 / np.sqrt(D))  # of both, so that their squares add up to 1
    features = np.empty((len(rows), 2 * D + 1), np.result_type(rows, frequencies))
    features[:, -1] = 1
    for k in range(0, len(rows), _BLOCK):
        block = slice(k, min(k + _BLOCK, len(rows)))
        # with t = tan(a/2), cos a = 2/(1+t²) − 1 and sin a = 2t/(1+t²): one slow function in place of two
        t = np.tan(rows[block] @ (frequencies / 2))
        scaled = 2 * scale / (1 + t * t)
        np.subtract(scaled, scale, out=features[block, :D])
        np.multiply(scaled, t, out=features[block, D : 2 * D])
    return features


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression on random features: Σ β_j cos(ω_j·x) + γ_j sin(ω_j·x) + constant.

    Each pair is r cos(ω·x − φ), and cos a = 2/(1 + tan²(a/2)) − 1, which needs one slow function per frequency.
    """

    beta: Floats  # coefficients of `fourier_features`: β, γ and the constant
    half: Floats  # ω/2, shape (columns, frequencies)
    phase: Floats  # φ/2
    twice: Floats  # 2r
    constant: float  # with −Σ r

    @classmethod
    def from_coefficients(cls, frequencies: Floats, beta: Floats) -> Ridge:
        """Combine the two coefficients of each frequency in `fourier_features` to an amplitude r and a phase φ."""
        D = frequencies.shape[1]
        cosine, sine = beta[:D] / np.sqrt(D), beta[D : 2 * D] / np.sqrt(D)
        r = np.hypot(cosine, sine)
        return cls(beta, frequencies / 2, np.arctan2(sine, cosine) / 2, 2 * r, float(beta[-1] - r.sum()))

    def __call__(self, rows: NDArray[Any], index: Index | None = None) -> NDArray[Any]:
        """Return the score Σ 2r/(1 + tan²((ω·x − φ)/2)) + constant of each row; in single precision if `rows` are.

        `index` are the positions of the rows to be scored; None means all.
        """
        index = np.arange(len(rows)) if index is None else index
        if rows.dtype == np.float32:
            return self._single_scores(rows, index)
        scores = np.empty(len(index))
        buffer = np.empty((min(_BLOCK, len(index)), len(self.twice)))  # allocated once, since allocation is slow
        for k in range(0, len(index), _BLOCK):
            block = slice(k, min(k + _BLOCK, len(index)))
            t = np.matmul(rows[index[block]], self.half, out=buffer[: block.stop - block.start])
            t -= self.phase
            np.tan(t, out=t)
            t *= t
            t += 1
            np.divide(self.twice, t, out=t)
            scores[block] = t.sum(axis=1) + self.constant
        return scores

    def _single_scores(self, rows: NDArray[np.float32], index: Index) -> NDArray[np.float32]:
        """Return the score Σ r cos(ω·x − φ) + γ of the rows at `index` in single precision, where cosines are fast.

        Blocks are padded to one size: equal rows then have equal scores, wherever they are.
        """
        parameters = 2 * self.half, 2 * self.phase, self.twice / 2
        frequencies, phase, r = (array.astype(np.float32) for array in parameters)
        scores = np.empty(len(index), np.float32)
        block, angles = np.zeros((_BLOCK, rows.shape[1]), np.float32), np.empty((_BLOCK, len(r)), np.float32)
        for k in range(0, len(index), _BLOCK):
            count = min(_BLOCK, len(index) - k)
            block[:count] = rows[index[k : k + count]]
            np.matmul(block, frequencies, out=angles)
            np.subtract(angles, phase, out=angles)
            scores[k : k + count] = (np.cos(angles, out=angles) @ r)[:count]
        scores += self.constant + float(self.twice.sum()) / 2
        return scores


_MANY = 500_000  # rows below which starting torch costs more than it saves


def choose_score_device(device: str, rows: int) -> str:
    """Return the device for `rows` rows, "cpu" or a torch device; "auto" is a GPU if there is one and rows are many."""
    if device == "cpu" or (device == "auto" and rows < _MANY):
        return "cpu"
    return resolve_device(device, worthwhile=True)


def gpu_scores(rows: NDArray[Any], fold: Folds, models: Sequence[Ridge], device: str = "cuda") -> Floats:
    """Score each row by the model of its fold, as Ridge does, on a GPU; all models have the same frequencies."""
    torch = import_cuda(device)
    parameters = (
        models[0].half,
        np.stack([model.phase for model in models]),
        np.stack([model.twice for model in models]),
        np.array([model.constant for model in models]),
    )
    tensors = [torch.as_tensor(array, dtype=torch.float64, device=device) for array in (rows, *parameters)]
    scores = scores_on_device(torch, torch.as_tensor(fold, device=device), *tensors)
    return np.asarray(scores.cpu().numpy())


def scores_on_device(torch: Any, fold: Any, rows: Any, half: Any, phase: Any, twice: Any, constant: Any) -> Any:
    """Return the score of each row by the model of its fold.

    All are tensors of one device; `phase`, `twice` and `constant` have a first axis of models, which `fold` refers to.
    """
    if rows.is_cuda:
        from priorshift.scores.triton_scores import fused_scores

        return fused_scores(fold, rows, half, phase, twice, constant)
    scores = torch.empty(len(rows), dtype=rows.dtype)
    for k in range(len(phase)):
        members = fold == k
        t = torch.addmm(-phase[k], rows[members], half).tan_().square_().add_(1)
        scores[members] = torch.div(twice[k], t).sum(dim=1) + constant[k]
    return scores


FIT_ROWS = 20_000  # rows of P, and of U, to which the model is fitted
_FREQUENCIES = 100
_SCALES = (0.1, 0.3, 0.5, 1.0)  # values of c that are tried
_RIDGES = (1e-3, 1e-2, 1e-1)
_SCORES = ("decision_function", "predict_proba", "predict")  # methods of a model, in order of preference

Model = Callable[[NDArray[Any]], NDArray[Any]]  # rows -> scores


@dataclass(frozen=True, eq=False)
class Repetition:
    """Scores of P and U in one repetition of the cross-fitting, and the models that score a target."""

    positive: Scores  # of each row of P
    population: Scores  # of each row of U
    models: tuple[Model, ...]  # one for each fold, fitted without it
    fold: Folds  # fold of each observation

    @classmethod
    def score(cls, X: NDArray[Any], source: Source, fold: Folds, models: Sequence[Model]) -> Repetition:
        """Score the rows of the source by the models of their folds.

        `X` are all rows of the source, prepared; `fold` is that of each row. Model k was fitted without fold k.
        """
        scores = scores_by_fold(X, fold, models)
        # rows of one observation are in the same fold
        fold_of_observation = np.empty(int(source.observation.max()) + 1, dtype=fold.dtype)
        fold_of_observation[source.observation] = fold
        return cls(scores[source.positive], scores[source.population], tuple(models), fold_of_observation)

    def assign_folds(self, of_source: Index, rng: np.random.Generator) -> Folds:
        """Return the fold whose model scores each row of a target: at random, unless the row belongs to the source.

        `of_source` is the observation of the source that a row belongs to, such as its patient; −1 for none. Such a row
        is scored by the model that was fitted without that observation.
        """
        return assign_folds(of_source, len(self.models), self.fold, rng)


def assign_folds(of_source: Index, folds: int, fold_of_observation: Folds, rng: np.random.Generator) -> Folds:
    """Return the fold of each row of a target: at random, or that of the source's observation `of_source`, −1 for none.

    `fold_of_observation` is the fold of each observation of the source.
    """
    # 0, 1, …, 0, 1, …, in a random order
    in_turn = np.tile(np.arange(folds, dtype=fold_of_observation.dtype), -(-len(of_source) // folds))[: len(of_source)]
    fold = rng.permutation(in_turn)
    is_of_source = of_source >= 0
    fold[is_of_source] = fold_of_observation[of_source[is_of_source]]
    return fold


STEPS_PER_UNIT = 2.0**36  # to which scores are rounded
SINGLE_ROWS = 50_000  # rows from which on single precision saves time
_LARGEST_TIE = 1e-3  # share of the positives


def has_large_ties(positive: NDArray[Any]) -> bool:
    """Return whether many positives have the same score, or the same hash, so that scores need double precision.

    Single precision moves a score by 1e-6, which hardly changes its rank unless it is tied with many positives.
    """
    ordered, tied = np.sort(positive), max(2, int(_LARGEST_TIE * len(positive)))
    return bool((ordered[tied - 1 :] == ordered[: len(ordered) - tied + 1]).any())


def scores_by_fold(rows: NDArray[Any], fold: Folds, models: Sequence[Model], device: str = "cpu") -> Scores:
    """Return the score of each row by the model of its fold, which was fitted without it; a GPU needs ridge models.

    Scores in double precision are rounded to multiples of 2⁻³⁶: further digits depend on how many rows are scored
    together, and identical rows of two samples must have identical scores, or ties would break in one sample's favour.
    """
    ridges = [model for model in models if isinstance(model, Ridge)]
    if device != "cpu" and len(ridges) == len(models):
        scores = gpu_scores(rows, fold, ridges, device)
    else:
        scores = np.empty(len(rows), rows.dtype)
        for k, model in enumerate(models):
            in_fold = np.flatnonzero(fold == k)
            # a ridge regression copies only a few rows at a time
            scores[in_fold] = model(rows, in_fold) if isinstance(model, Ridge) else model(rows[in_fold])
    if rows.dtype == np.float32:
        return scores
    return np.asarray(np.round(scores * STEPS_PER_UNIT) / STEPS_PER_UNIT)


def cross_fit(
    rows: NDArray[Any],
    source: Source,
    model: Any,
    repeats: int,
    folds: int,
    rng: np.random.Generator,
    *,
    fit_rows: int = FIT_ROWS,
    deal: Callable[[int], Folds] | None = None,
) -> tuple[Repetition, ...]:
    """Cross-fit the scores `repeats` times; return the scores of the source and the models of each repetition.

    `rows` are all rows of the source, prepared. `model` is a scikit-learn classifier, or None for the ridge regression,
    which is tuned in the first repetition only, and fitted to at most `fit_rows` rows of P and of U. `deal(folds)`
    returns the fold of each row; by default folds are assigned at random.
    """
    folds = most_folds(source, folds)
    deal = deal or (lambda folds: source.deal_folds(folds, rng))
    if model is not None:
        return tuple(_fit_classifier(rows, source, model, deal(folds), folds, rng) for _ in range(repeats))
    # folds and frequencies of each repetition
    drawn = [(deal(folds), rng.normal(size=(rows.shape[1], _FREQUENCIES))) for _ in range(repeats)]
    # labels are 1 for P and −1 for U
    samples = [
        FitSample.draw(source.positive, source.P.mass, np.array([1.0]), 0.5, fit_rows, rng),
        FitSample.draw(source.population, source.U.mass, np.array([-1.0]), 0.5, fit_rows, rng),
    ]

    def build(frequencies: Floats, beta: Floats) -> Ridge:
        """Return the model with these coefficients, which has one output."""
        return Ridge.from_coefficients(frequencies, beta[:, 0])

    def score(fold: Folds, models: Sequence[Ridge]) -> Repetition:
        """Score the source by the models of one repetition."""
        return Repetition.score(rows, source, fold, models)

    return tuple(fit_ridges(rows, samples, drawn, folds, build, score))


_Model = TypeVar("_Model")
_Result = TypeVar("_Result")


def fit_ridges(
    rows: NDArray[Any],
    samples: Sequence[FitSample],
    drawn: Sequence[tuple[Folds, Floats]],
    folds: int,
    build: Callable[[Floats, Floats], _Model],
    score: Callable[[Folds, Sequence[_Model]], _Result],
    ridges: Sequence[float] = _RIDGES,
) -> list[_Result]:
    """Fit ridge regressions on random features, tuned in the first repetition; return what `score` makes of each.

    `drawn` are the fold of each row and the frequencies of each repetition. `build(frequencies, coefficients)` returns
    a model, and `score(fold, models)` gets the models of all folds of a repetition, each fitted without its fold.
    `ridges` are the strengths of regularisation that are tried.
    """
    inputs = [_Repeat(rows, samples, fold, folds, frequencies, ridges) for fold, frequencies in drawn]
    tuned = [tried for scale in map_in_threads(inputs[0].tune, _SCALES, len(rows)) for tried in scale]
    best = min(tuned, key=lambda tried: (tried.error, tried.scale, tried.ridge))  # the smallest error
    if best.error == np.inf:
        raise InputError("the score cannot be fitted because its error is not a number; rescale the features.")

    def score_once(repeat: _Repeat) -> _Result:
        """Fit the models of one repetition, except those that were fitted for the tuning, and score the source."""
        fit = best.fit if repeat is inputs[0] else _RidgeFit(repeat, best.scale)
        betas = best.coefficients if repeat is inputs[0] else fit.coefficients(best.ridge)
        return score(repeat.fold, [build(fit.frequencies, beta) for beta in betas])

    return map_in_threads(score_once, inputs, len(rows))


def most_folds(source: Source, folds: int) -> int:
    """Return the wanted number of folds, reduced where there are fewer observations to distribute over folds.

    These are observations with a labelled row, and those without (which count as at least 2).
    """
    with_positives = int(source.has_positive.sum())
    return min(folds, with_positives, max(len(source.has_positive) - with_positives, 2))


@dataclass(frozen=True, eq=False)
class FitSample:
    """Rows of a sample to which the ridge regression is fitted."""

    rows: Index  # of the source
    mass: Floats  # of each of these rows; sums to 1
    label: Floats  # what each output is to be at these rows, shape (outputs,)
    weight: float  # of the sample; the weights of all samples sum to 1

    @classmethod
    def draw(
        cls, rows: Index, mass: Floats, label: Floats, weight: float, fit_rows: int, rng: np.random.Generator
    ) -> FitSample:
        """Draw at most `fit_rows` rows of a sample at random."""
        if len(rows) > fit_rows:
            subsample = np.sort(rng.choice(len(rows), fit_rows, replace=False))
            rows, mass = rows[subsample], mass[subsample] / mass[subsample].sum()
        return cls(rows, mass, label, weight)


@dataclass(frozen=True, eq=False)
class _Repeat:
    """Input of one repetition: rows assigned to folds, and random frequencies."""

    X: NDArray[Any]  # all rows of the source, prepared
    samples: Sequence[FitSample]
    fold: Folds  # fold of each row of the source
    folds: int
    frequencies: Floats  # for c = 1/2 and one column, shape (columns, frequencies)
    ridges: Sequence[float]

    def tune(self, scale: float) -> list[_TunedFit]:
        """Fit models at the kernel's scale c with each ridge, and compute their cross-validated errors."""
        fit = _RidgeFit(self, scale)
        results = []
        for ridge in self.ridges:
            coefficients, error = fit.coefficients(ridge), 0.0
            for beta, gram, moment in zip(coefficients, fit.grams, fit.moments, strict=True):
                # Σ mass·(f·β − label)² over the held-out rows, less Σ mass·label², which is the same for all models
                error += float((beta * (gram @ beta - 2 * moment)).sum())
            results.append(_TunedFit(error if np.isfinite(error) else np.inf, scale, ridge, fit, coefficients))
        return results


@dataclass(frozen=True, eq=False)
class _TunedFit:
    """Coefficients of one repetition for one choice of scale and ridge, and their error on held-out rows."""

    error: float
    scale: float
    ridge: float
    fit: _RidgeFit
    coefficients: list[Floats]  # of each fold


class _RidgeFit:
    """Ridge regression at one scale: features of each fold, their Gram matrices and their moments with the labels."""

    def __init__(self, repeat: _Repeat, scale: float) -> None:
        """Compute features and sums of each fold for the kernel exp(−scale·‖x−y‖²/columns)."""
        self.frequencies = repeat.frequencies * float(np.sqrt(2 * scale / repeat.X.shape[1]))
        size = 2 * self.frequencies.shape[1] + 1  # number of features
        outputs = len(repeat.samples[0].label)
        self.grams, self.moments = np.zeros((repeat.folds, size, size)), np.zeros((repeat.folds, size, outputs))
        for k in range(repeat.folds):
            for sample in repeat.samples:
                in_fold = repeat.fold[sample.rows] == k
                F = fourier_features(repeat.X[sample.rows[in_fold]], self.frequencies)
                mass = sample.mass[in_fold].astype(F.dtype)
                is_even = len(mass) > 0 and np.ptp(mass) == 0  # equal masses are multiplied once
                product = mass[0] * (F.T @ F) if is_even else F.T @ (mass[:, None] * F)  # Σ mass·ffᵀ
                self.grams[k] += sample.weight * product
                self.moments[k] += np.outer(mass @ F, sample.weight * sample.label)

    def coefficients(self, ridge: float) -> list[Floats]:
        """Return the coefficients of each fold, (features, outputs), fitted to the other folds.

        They are β = (Gram + ridge·I)⁻¹ moment, with sums over the other folds.
        """
        gram, moment, folds = self.grams.sum(axis=0), self.moments.sum(axis=0), len(self.grams)
        coefficients = []
        for fold_gram, fold_moment in zip(self.grams, self.moments, strict=True):
            A = gram - fold_gram
            A[np.diag_indices_from(A)] += ridge * (1 - 1 / folds)
            factor = cho_factor(A.T, overwrite_a=True, check_finite=False)  # A is symmetric; A.T needs no copy
            coefficients.append(cho_solve(factor, moment - fold_moment))
        return coefficients


def _fit_classifier(
    X: Floats, source: Source, model: Any, fold: Folds, folds: int, rng: np.random.Generator
) -> Repetition:
    """Cross-fit a scikit-learn model that distinguishes labelled (1) from population rows (0), and score the source.

    `X` are all rows of the source, prepared; `fold` is that of each row, 0 to `folds` − 1.
    """
    models = []
    takes_weights = has_fit_parameter(model, "sample_weight")  # a model that does not is less precise, but valid
    for k in range(folds):
        P, U = source.positive[fold[source.positive] != k], source.population[fold[source.population] != k]
        y, rows = np.repeat([1, 0], [len(P), len(U)]), np.concatenate([P, U])
        weights = {"sample_weight": source.weights[rows]} if takes_weights and source.weights is not None else {}
        models.append(ModelScore(seeded(clone(model), rng).fit(X[rows], y, **weights)))
    return Repetition.score(X, source, fold, models)


def check_model(model: Any) -> None:
    """Raise InputError unless `model` is an estimator with one of the methods of `_SCORES`, which give scores."""
    methods = [name for name in _SCORES if hasattr(model, name)]
    method = methods[0] if methods else _SCORES[-1]
    check_estimator("model", model, (method,), "None or an estimator")


@dataclass(frozen=True)
class ModelScore:
    """Scores of a fitted scikit-learn model, larger for positives."""

    model: Any

    def __call__(self, rows: Floats) -> Floats:
        """Return the score of each row by the first method of `_SCORES` that the model has."""
        if not len(rows):  # most models refuse an empty table
            return np.empty(0)
        name = next(name for name in _SCORES if hasattr(self.model, name))
        scores = np.asarray(getattr(self.model, name)(rows), dtype=np.float64)
        if name == "predict_proba" and scores.shape == (len(rows), 2):
            scores = scores[:, 1]  # the probability of class 1, labelled
        if scores.shape != (len(rows),) or not np.isfinite(scores).all():
            raise InputError(
                f"{type(self.model).__name__} gave scores of shape {scores.shape} for {len(rows)} rows, or some that "
                "are not finite; one finite number for each row is expected, larger for positives."
            )
        return scores
