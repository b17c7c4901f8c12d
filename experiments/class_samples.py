"""Draw samples of several labelled classes, a source population with a rest, and a shifted target.

Classes of "gaussian" are normal with unit variance. Classes of a table are its own, the first ones labelled, and all
others the rest; rows are standardised, drawn with replacement and moved by a tenth of a standard deviation, so that no
two of them are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from experiments.keel import load_classes
from priorshift import datasets

Rows = NDArray[np.float64]

_JITTER = 0.1
_DIMENSION, _DISTANCE = 10, 2.0  # of the normal classes


@dataclass(frozen=True, eq=False)
class ClassDraw:
    """One draw: the labelled rows of each class, the population and the target, and the shares of all classes."""

    classes: dict[str, Rows]
    unlabeled: Rows
    target: Rows
    source_shares: NDArray[np.float64]  # the rest last
    target_shares: NDArray[np.float64]
    unlabeled_classes: NDArray[np.intp]  # number of the class of each row
    target_classes: NDArray[np.intp]

    @property
    def X(self) -> Rows:
        """Labelled and unlabelled rows, as `fit` takes them."""
        return np.concatenate([*self.classes.values(), self.unlabeled])

    @property
    def y(self) -> NDArray[np.str_]:
        """Names of the classes, empty for unlabelled rows."""
        return np.repeat([*self.classes, ""], [*map(len, self.classes.values()), len(self.unlabeled)])

    @property
    def priors(self) -> dict[str, float]:
        """Shares of the labelled classes in the source, by name."""
        return dict(zip(self.classes, self.source_shares.tolist(), strict=False))


def normal_means(classes: int) -> Rows:
    """Return the means of the normal classes, the rest last; their directions are always the same."""
    means = np.random.default_rng(5).normal(size=(classes + 1, _DIMENSION))
    return np.asarray(_DISTANCE * means / np.linalg.norm(means, axis=1, keepdims=True))


def density_ratios(X: Rows, shares: NDArray[np.float64]) -> Rows:
    """Return the true w_k = f_k/f_U of rows of normal classes, for the shares of all classes in U, the rest last."""
    means = normal_means(len(shares) - 1)
    exponents = -((X[:, None] - means[None]) ** 2).sum(axis=2) / 2
    densities = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.asarray(densities[:, :-1] / (densities @ shares)[:, None])


@cache
def _pools(data: str, classes: int) -> tuple[Rows, ...]:
    """Return the rows of each labelled class and of the rest of a table, standardised."""
    if data.startswith("KEEL "):
        X, y = load_classes(data.removeprefix("KEEL "))
    else:
        table = datasets.load_images(data) if data in datasets.IMAGES else datasets.load_table(data)
        X, y = table.X.astype(np.float64), np.asarray(table.classes)
    number = np.unique(y, return_inverse=True)[1].reshape(-1)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (*(X[number == k] for k in range(classes)), X[number >= classes])


def draw(data: str, classes: int, labeled: int, rows: int, rng: np.random.Generator) -> ClassDraw:
    """Draw `labeled` rows of each class, and `rows` of the population and of a target.

    The source has the classes' shares in the table, or equal shares if they are normal; the shares in the target are
    uniform on the simplex.
    """
    if data == "gaussian":
        source = np.full(classes + 1, 1 / (classes + 1))
    else:
        sizes = np.array([len(pool) for pool in _pools(data, classes)])
        source = sizes / sizes.sum()
    target = rng.dirichlet(np.ones(classes + 1))
    labeled_rows = {f"class {k}": draw_rows(data, classes, np.full(labeled, k), rng) for k in range(classes)}
    samples, numbers = [], []
    for shares in (source, target):
        numbers.append(rng.choice(classes + 1, size=rows, p=shares))
        samples.append(draw_rows(data, classes, numbers[-1], rng))
    return ClassDraw(labeled_rows, *samples, source, target, *numbers)


def draw_rows(data: str, classes: int, number: NDArray[np.intp], rng: np.random.Generator) -> Rows:
    """Draw a row of each of the numbered classes; the last number is the rest."""
    if data == "gaussian":
        return normal_means(classes)[number] + rng.normal(size=(len(number), _DIMENSION))
    pools = _pools(data, classes)
    X = np.empty((len(number), pools[0].shape[1]))
    for k, pool in enumerate(pools):
        members = np.flatnonzero(number == k)
        X[members] = pool[rng.integers(len(pool), size=len(members))]
    return np.asarray(X + _JITTER * rng.normal(size=X.shape))
