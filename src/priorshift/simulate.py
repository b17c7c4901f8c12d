"""Data with known priors: the paper's synthetic data, its sampling scheme, and label shift induced in real data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.parameters import check_count, check_prior, check_settings

__all__ = ["gaussian", "gaussian_classes", "label_some", "shift_labels"]

Random = int | np.random.Generator | None


def _generator(random_state: Random) -> np.random.Generator:
    """Return a generator of random numbers; refuse an impossible seed."""
    check_settings({"random_state": random_state})
    return np.random.default_rng(random_state)


@dataclass(frozen=True, eq=False)
class PUSample:
    """The three samples of a problem with a known answer.

    Attributes
    ----------
    positive, unlabeled, target : ndarray of shape (rows, features)
    unlabeled_labels, target_labels : ndarray of bool
        The true classes.
    positive_ids, unlabeled_ids : ndarray of int
        Observation of each source row; a number in both is a shared row.
    source_prior, target_prior : float
        The priors of the two populations.

    Examples
    --------
    >>> from priorshift import simulate
    >>> s = simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, random_state=0)
    >>> s.X.shape, int(s.y.sum()), round(float(s.target_labels.mean()), 2)
    ((300, 10), 50, 0.55)
    """

    positive: NDArray[np.float64]
    unlabeled: NDArray[np.float64]
    target: NDArray[np.float64]
    unlabeled_labels: NDArray[np.bool_]
    target_labels: NDArray[np.bool_]
    positive_ids: NDArray[np.intp]
    unlabeled_ids: NDArray[np.intp]
    source_prior: float
    target_prior: float

    @property
    def X(self) -> NDArray[np.float64]:
        """Positives, then unlabelled rows, as `fit` takes them."""
        return np.concatenate([self.positive, self.unlabeled])

    @property
    def y(self) -> NDArray[np.intp]:
        """1 for the labelled positives, 0 for the unlabelled rows."""
        return np.repeat([1, 0], [len(self.positive), len(self.unlabeled)])

    @property
    def ids(self) -> NDArray[np.intp]:
        """Observation of each row of `X`, for ``fit(X, y, shared=…)``."""
        return np.concatenate([self.positive_ids, self.unlabeled_ids])


class LabeledSource(NamedTuple):
    """The source side of a :class:`PUSample`.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.simulate import label_some
    >>> X, y = np.arange(20.0)[:, None], np.repeat([1, 0], [8, 12])
    >>> source = label_some(X, y, source_prior=0.4, label_frequency=0.5, random_state=0)
    >>> len(source.positive), len(source.unlabeled), sorted(source.positive_ids.tolist())
    (6, 14, [0, 1, 2, 3, 4, 6])
    """

    positive: NDArray[Any]
    unlabeled: NDArray[Any]
    unlabeled_labels: NDArray[np.bool_]
    positive_ids: NDArray[np.intp]
    unlabeled_ids: NDArray[np.intp]


def sample_sizes(n: int, source_prior: float, label_frequency: float) -> tuple[int, int]:
    """Compute the numbers of labelled and unlabelled rows to draw from n source rows (the paper's supplement).

    Parameters
    ----------
    n : int
    source_prior : float
        π.
    label_frequency : float
        c, the share of the positives that is labelled; at most 1/(2−π).

    Returns
    -------
    labeled, unlabeled : int
        A·c·π·n and A·(1−c)·n, A = 1/(1 − c(1−π)): n rows in all.

    Examples
    --------
    >>> from priorshift.simulate import sample_sizes
    >>> sample_sizes(2000, source_prior=0.2, label_frequency=0.5)
    (333, 1667)
    """
    c = check_prior(label_frequency, "label_frequency")
    pi = check_prior(source_prior)
    if c * (2 - pi) > 1:
        limit = 1 / (2 - pi)
        raise InputError(f"label_frequency is {c:g}, but with a source prior of {pi:g} it must be at most {limit:.3f}.")
    A = 1 / (1 - c * (1 - pi))
    return round(A * c * pi * n), round(A * (1 - c) * n)


def gaussian(
    source_prior: float,
    target_prior: float,
    n_source: int = 2000,
    n_target: int = 2000,
    *,
    label_frequency: float = 0.5,
    dimension: int = 10,
    distance: float = 1.0,
    violation: float = 0.0,
    shared: bool = True,
    random_state: Random = None,
) -> PUSample:
    """Draw the paper's synthetic data: negatives N(0, I), positives N(a, I) with a = (distance, …, distance).

    Parameters
    ----------
    source_prior, target_prior : float
        π and π′, the probability of a positive row.
    n_source, n_target : int
        Numbers of rows of the source pool and of the target.
    label_frequency : float
        The paper's c.
    dimension : int
        Number of features.
    distance : float
        Distance of the two means in each feature.
    violation : float
        The paper's g: target positives come from N(a + g, I), which breaks label shift unless it is 0.
    shared : bool
        True is the paper's scheme: labelled and unlabelled rows are drawn from one pool of `n_source` rows and
        may be the same. False draws them from separate pools.
    random_state : int, Generator or None

    Returns
    -------
    PUSample

    References
    ----------
    Mielniczuk, Rejchel and Teisseyre (2026); see :class:`priorshift.TCPU`.

    Examples
    --------
    >>> from priorshift import simulate
    >>> s = simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, random_state=0)
    >>> s.positive.shape, s.unlabeled.shape, s.target.shape
    ((50, 10), (250, 10), (300, 10))
    """
    rng = _generator(random_state)
    check_prior(target_prior, "target_prior")
    check_count("n_source", n_source, 10)
    check_count("n_target", n_target, 2)
    check_count("dimension", dimension, 1)
    m, n = sample_sizes(n_source, source_prior, label_frequency)  # labelled and unlabelled rows

    def draw(labels: NDArray[np.bool_], mean: float) -> NDArray[np.float64]:
        """Draw a row for each label: N(0, I), with `mean` added to every feature of positives."""
        return rng.normal(size=(len(labels), dimension)) + mean * labels[:, None]

    labels_target = rng.random(n_target) < target_prior
    target = draw(labels_target, distance + violation)
    if shared:
        labels = rng.random(n_source) < source_prior
        # a small pool can hold fewer positives than are to be labelled: then all of them are
        source = _draw_source(draw(labels, distance), labels, min(m, int(labels.sum())), n, rng)
    else:
        labels = rng.random(n) < source_prior
        positive, unlabeled = draw(np.ones(m, dtype=bool), distance), draw(labels, distance)
        source = LabeledSource(positive, unlabeled, labels, np.arange(m), np.arange(m, m + n))
    return PUSample(
        **source._asdict(),
        target=target,
        target_labels=labels_target,
        source_prior=source_prior,
        target_prior=target_prior,
    )


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Samples of several labelled classes, a source population and a target with known shares.

    Attributes
    ----------
    classes : dict of str to ndarray of shape (rows, features)
        Labelled rows of each class.
    unlabeled, target : ndarray of shape (rows, features)
    unlabeled_labels, target_labels : ndarray of str
        The true classes, "rest" for rows of no labelled class.
    source_priors, target_priors : dict of str to float
        Shares of the classes, the rest included, in the two populations.
    """

    classes: dict[str, NDArray[np.float64]]
    unlabeled: NDArray[np.float64]
    target: NDArray[np.float64]
    unlabeled_labels: NDArray[np.str_]
    target_labels: NDArray[np.str_]
    source_priors: dict[str, float]
    target_priors: dict[str, float]

    @property
    def X(self) -> NDArray[np.float64]:
        """Labelled rows of all classes, then unlabelled rows, as `fit` takes them."""
        return np.concatenate([*self.classes.values(), self.unlabeled])

    @property
    def y(self) -> NDArray[np.str_]:
        """Name of the class of each labelled row; empty for unlabelled rows."""
        sizes = [*map(len, self.classes.values()), len(self.unlabeled)]
        return np.repeat([*self.classes, ""], sizes)


def gaussian_classes(
    source_priors: dict[str, float],
    target_priors: dict[str, float],
    *,
    n_class: int = 200,
    n_source: int = 1000,
    n_target: int = 1000,
    dimension: int = 10,
    distance: float = 2.0,
    random_state: Random = None,
) -> ClassSample:
    """Draw normal classes with unit variance, whose means have the same distance from the origin.

    Parameters
    ----------
    source_priors, target_priors : dict of str to float
        Shares of the labelled classes in the two populations; what is missing to 1 is the rest.
    n_class : int
        Labelled rows of each class.
    n_source, n_target : int
        Rows of the two populations.
    dimension : int
        Number of columns.
    distance : float
        Distance of each mean from the origin; the directions are random, but always the same for a dimension.
    random_state : int, Generator or None
        Seed of the rows.

    Returns
    -------
    ClassSample

    Examples
    --------
    >>> from priorshift import simulate
    >>> s = simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, n_class=50, random_state=0)
    >>> {name: rows.shape for name, rows in s.classes.items()}, s.target.shape
    ({'a': (50, 10), 'b': (50, 10)}, (1000, 10))
    >>> round(float((s.target_labels == "a").mean()), 2)
    0.52
    """
    rng = _generator(random_state)
    names = [*source_priors, "rest"]
    if set(source_priors) != set(target_priors) or "rest" in source_priors:
        raise InputError("source_priors and target_priors must have the same classes, without the rest.")
    means = np.random.default_rng(5).normal(size=(len(names), check_count("dimension", dimension, 1)))
    means *= distance / np.linalg.norm(means, axis=1, keepdims=True)
    shares = []
    for priors in (source_priors, target_priors):
        of_classes = [float(priors[name]) for name in source_priors]
        if min(of_classes) < 0 or sum(of_classes) > 1 + 1e-12:
            raise InputError(f"the shares {priors} must not be negative, and add up to at most 1.")
        shares.append([*of_classes, max(1 - sum(of_classes), 0.0)])

    def draw(classes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Draw a row of each of these classes."""
        return means[classes] + rng.normal(size=(len(classes), means.shape[1]))

    labeled = {name: draw(np.full(check_count("n_class", n_class, 2), k)) for k, name in enumerate(source_priors)}
    numbers = [
        rng.choice(len(names), size=n, p=np.array(p) / sum(p))
        for n, p in zip((n_source, n_target), shares, strict=True)
    ]
    unlabeled, target = (draw(number) for number in numbers)
    unlabeled_labels, target_labels = (np.array(names)[number] for number in numbers)
    source, shifted = (dict(zip(names, p, strict=True)) for p in shares)
    return ClassSample(labeled, unlabeled, target, unlabeled_labels, target_labels, source, shifted)


def label_some(
    X: NDArray[Any], y: NDArray[Any], source_prior: float, label_frequency: float, *, random_state: Random = None
) -> LabeledSource:
    """Draw positive-unlabelled data from labelled rows, by the sampling scheme of the paper's supplement.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
    y : ndarray of shape (rows,)
        Two values; the larger one means positive.
    source_prior, label_frequency : float
        π and c, as in `sample_sizes`; they do not change the share of positives in the rows.
    random_state : int, Generator or None

    Returns
    -------
    LabeledSource
        The ids are rows of X; the two samples are not necessarily disjoint.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.simulate import label_some
    >>> X, y = np.arange(20.0)[:, None], np.repeat([1, 0], [8, 12])
    >>> source = label_some(X, y, source_prior=0.4, label_frequency=0.5, random_state=0)
    >>> source.positive.shape, source.unlabeled.shape
    ((6, 1), (14, 1))
    """
    rng = _generator(random_state)
    X = np.asarray(X)
    labels = _positive_mask(X, y)
    m, n = sample_sizes(len(X), source_prior, label_frequency)
    positives = int(labels.sum())
    if m > positives:
        raise InputError(f"{m} rows are to be labelled, but only {positives} are positive; lower label_frequency.")
    return _draw_source(X, labels, m, n, rng)


def _draw_source(X: NDArray[Any], labels: NDArray[np.bool_], m: int, n: int, rng: np.random.Generator) -> LabeledSource:
    """Draw m of the positives (True in `labels`) as labelled rows, and n of all rows as unlabelled ones.

    Both are drawn without replacement, so that a positive can be drawn twice: once as labelled, once as unlabelled.
    """
    labeled_rows = rng.choice(np.flatnonzero(labels), m, replace=False)
    unlabeled_rows = rng.choice(len(X), n, replace=False)
    return LabeledSource(X[labeled_rows], X[unlabeled_rows], labels[unlabeled_rows], labeled_rows, unlabeled_rows)


def downsample(y: NDArray[Any], prior: float, *, random_state: Random = None) -> NDArray[np.intp]:
    """Choose rows to keep, at random, so that positives make up `prior` of them.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        Two values; the larger one means positive.
    prior : float
        Strictly between 0 and 1.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of int
        Rows to keep; one class is kept whole.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.simulate import downsample
    >>> y = np.repeat([1, 0], [50, 50])
    >>> kept = downsample(y, 0.2, random_state=0)
    >>> len(kept), round(float(y[kept].mean()), 2)
    (62, 0.19)
    """
    rng = _generator(random_state)
    check_prior(prior, "prior")
    labels = _positive_mask(y, y)
    positives, negatives = np.flatnonzero(labels), np.flatnonzero(~labels)
    # keep all rows of one class, and of the other as many as make the odds prior : 1 − prior
    keep_positives = min(len(positives), round(len(negatives) * prior / (1 - prior)))
    keep_negatives = min(len(negatives), round(len(positives) * (1 - prior) / prior))
    if min(keep_positives, keep_negatives) < 1:
        raise InputError(
            f"a prior of {prior:g} leaves only one class of {len(positives)} positives and {len(negatives)} negatives; "
            f"choose a prior nearer to {labels.mean():.2g}."
        )
    kept = [rng.choice(positives, keep_positives, replace=False), rng.choice(negatives, keep_negatives, replace=False)]
    return np.sort(np.concatenate(kept))


def shift_labels(
    X: NDArray[Any],
    y: NDArray[Any],
    source_prior: float,
    target_prior: float,
    *,
    label_frequency: float = 0.5,
    random_state: Random = None,
) -> PUSample:
    """Induce label shift in labelled data, as in the paper's experiments.

    The rows are split into two halves; each is subsampled to its prior; the source half is labelled by the sampling
    scheme.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
    y : ndarray of shape (rows,)
        Two values; the larger one means positive.
    source_prior, target_prior : float
        π and π′.
    label_frequency : float
        The paper's c.
    random_state : int, Generator or None

    Returns
    -------
    PUSample

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from priorshift import simulate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> s = simulate.shift_labels(X, y, source_prior=0.2, target_prior=0.6, random_state=0)
    >>> round(float(s.target_labels.mean()), 2)
    0.6
    """
    rng = _generator(random_state)
    X = np.asarray(X)
    labels = _positive_mask(X, y)
    order = rng.permutation(len(X))
    first, second = order[: len(X) // 2], order[len(X) // 2 :]
    source_rows = first[downsample(labels[first], source_prior, random_state=rng)]
    target_rows = second[downsample(labels[second], target_prior, random_state=rng)]
    source = label_some(X[source_rows], labels[source_rows], source_prior, label_frequency, random_state=rng)
    positive_ids, unlabeled_ids = source_rows[source.positive_ids], source_rows[source.unlabeled_ids]  # rows of X
    return PUSample(
        **source._replace(positive_ids=positive_ids, unlabeled_ids=unlabeled_ids)._asdict(),
        target=X[target_rows],
        target_labels=labels[target_rows],
        source_prior=source_prior,
        target_prior=target_prior,
    )


def _positive_mask(X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether the label of each row of X is the larger of the two values of y; refuse other labels."""
    y = np.asarray(y)
    values = np.unique(y)
    if y.shape != (len(X),) or len(values) != 2:
        raise InputError(f"y has shape {y.shape} and {len(values)} values, but {len(X)} of two classes are expected.")
    return np.asarray(y == values[1])
