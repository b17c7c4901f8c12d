"""Knowledge of the shares of several classes in the source population, and of errors of their labels.

Shares are known class by class (a number, a range or a distribution each), or have a joint distribution: a Dirichlet,
such as that of a survey of all classes. An audit of unlabelled rows changes the distribution of each share, and makes
the shares dependent: of a fixed number of rows, those of one class are not of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from priorshift.arrays import Floats
from priorshift.class_source import REST
from priorshift.errors import InputError
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    PriorKnowledge,
    RangePrior,
    check_survey_rows,
    read_label_error,
    read_prior,
)
from priorshift.io.parameters import is_number
from priorshift.io.targets import target_name

CASES = 400  # drawn from distributions
_JEFFREYS = 0.5  # added to each count of a survey


@dataclass(frozen=True, eq=False)
class SourceShares:
    """What is known of the shares π_k of the labelled classes in the source population."""

    priors: tuple[PriorKnowledge, ...]  # of each class
    # whether a share was estimated from labelled rows: it is then that of what these rows consist of, of which only a
    # part is the class if there are label errors
    is_estimated: tuple[bool, ...]
    covariance: Floats | None = None  # of the shares, if they have a joint distribution; None if they are independent
    alpha: Floats | None = None  # of a Dirichlet distribution, the rest last; None if the shares have another one

    @classmethod
    def from_dirichlet(cls, alpha: Floats) -> SourceShares:
        """Build the knowledge from a Dirichlet distribution over the labelled classes and, last, the rest."""
        total = float(alpha.sum())
        mean = alpha[:-1] / total
        priors = tuple(DistributionPrior(stats.beta(part, total - part)) for part in alpha[:-1].tolist())
        covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
        return cls(priors, (False,) * len(priors), covariance, alpha)

    @classmethod
    def read(cls, source_prior: Any, names: Sequence[str], estimated: Mapping[str, DistributionPrior]) -> SourceShares:
        """Build the knowledge from a user's source priors, and from estimates of those that are not stated."""
        alpha = read_dirichlet(source_prior, names)
        if alpha is not None:
            return cls.from_dirichlet(alpha)
        known = read_class_priors(source_prior, names)
        for name in names:
            if known[name] is None and name not in estimated:
                raise InputError(f"source_prior of {name!r} was known when the estimator was fitted; fit again.")
        priors = tuple(known[name] or estimated[name] for name in names)
        return cls(priors, tuple(known[name] is None for name in names))

    @property
    def values(self) -> Floats:
        """The π_k that estimates use."""
        return np.array([prior.value for prior in self.priors])

    def errors(self, scale: Floats) -> Floats:
        """Return the standard deviation of each scale·π_k and, last, of their sum, which is that of the rest."""
        spread = scale * np.array([prior.error for prior in self.priors])
        of_sum = float((spread**2).sum())
        if self.covariance is not None:
            of_sum = float(scale @ self.covariance @ scale)
        return np.append(spread, np.sqrt(of_sum))

    @property
    def is_range(self) -> list[bool]:
        """Whether each share is known by a range."""
        return [isinstance(prior, RangePrior) for prior in self.priors]

    def draw(self, position: Floats | float, rng: np.random.Generator) -> Floats:
        """Draw cases of the shares, shape (cases, K): values at a position in ranges, and draws from distributions.

        A position is 0 at the lower end of a range and 1 at the upper; one for all, or of shape (cases, K).
        """
        if self.covariance is None:
            return draw_cases(self.priors, position, rng)
        if self.alpha is not None:
            joint = rng.dirichlet(self.alpha, CASES)[:, :-1]
        else:
            joint = rng.multivariate_normal(np.zeros(len(self.priors)), self.covariance, CASES, method="eigh")
        # dependent ranks, and for each share a value in each of as many equally probable parts of its distribution
        levels = (joint.argsort(axis=0).argsort(axis=0) + 0.5) / CASES
        columns = [
            prior.quantiles(level) if isinstance(prior, DistributionPrior) else np.full(CASES, prior.value)
            for prior, level in zip(self.priors, levels.T, strict=True)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """What is known of the shares of labelled rows that are of another class than their label says."""

    cells: tuple[tuple[int, int], ...] = ()  # numbers of the labelled and of the true class; the rest is the last
    shares: tuple[PriorKnowledge, ...] = ()  # of the labelled rows, for each of the cells

    @property
    def is_range(self) -> list[bool]:
        """Whether each share is known by a range."""
        return [isinstance(share, RangePrior) for share in self.shares]

    @property
    def values(self) -> Floats:
        """The shares that estimates use, one for each of the cells."""
        return np.array([share.value for share in self.shares])

    def purity(self, k: int) -> float:
        """Return the share of the labelled rows of class number `k` that are of this class."""
        return 1 - float(sum(share.value for (row, _), share in zip(self.cells, self.shares, strict=True) if row == k))

    def draw(self, position: Floats | float, rng: np.random.Generator) -> Floats:
        """Draw cases of the shares, shape (cases, cells), as :meth:`SourceShares.draw` does."""
        return draw_cases(self.shares, position, rng)

    def matrices(self, shares: Floats, samples: int, classes: int) -> Floats:
        """Return Q of labelled samples, (cases, samples, classes), from shares of the cells of shape (cases, cells)."""
        Q = np.zeros((len(shares), samples, classes))
        Q[:, np.arange(samples), np.arange(samples)] = 1
        for (k, j), share in zip(self.cells, shares.T, strict=True):
            Q[:, k, j] += share
            Q[:, k, k] -= share
        return Q


def draw_cases(knowledge: Sequence[PriorKnowledge], position: Floats | float, rng: np.random.Generator) -> Floats:
    """Return cases of independent shares, shape (cases, shares), as :meth:`SourceShares.draw` does."""
    is_random = any(isinstance(known, DistributionPrior) for known in knowledge)
    positions = np.atleast_2d(np.asarray(position, dtype=float))
    count = max(CASES if is_random else 1, len(positions))
    positions = np.broadcast_to(positions, (count, len(knowledge)))
    columns = []
    for known, place in zip(knowledge, positions.T, strict=True):
        low, high = known.range
        is_drawn = isinstance(known, DistributionPrior)
        columns.append(known.draw(count, rng) if is_drawn else low + place * (high - low))  # type: ignore[attr-defined]
    return np.stack(columns, axis=1) if columns else np.empty((1, 0))


def read_dirichlet(source_prior: Any, names: Sequence[str]) -> Floats | None:
    """Return the parameters of a joint distribution of all classes, the rest last; None for shares class by class.

    A joint distribution is ``scipy.stats.dirichlet(alpha)``, or a mapping with the counts of a survey, which has an
    entry for the rest; under Jeffreys' prior, ½ is added to each count.
    """
    shown = ", ".join(map(repr, (*names, REST)))
    alpha = getattr(source_prior, "alpha", None)
    if alpha is not None:
        alpha = np.asarray(alpha, dtype=float)
        if alpha.shape != (len(names) + 1,):
            raise InputError(
                f"source_prior is a Dirichlet distribution of {alpha.size} shares, but there are {len(names) + 1} "
                f"classes; pass a parameter for each, in the order {shown}."
            )
        return alpha
    if not isinstance(source_prior, Mapping):
        return None
    counts = {target_name(name): count for name, count in source_prior.items()}
    if REST not in counts:
        return None
    is_counted = all(is_number(count) and count >= 0 and float(count).is_integer() for count in counts.values())
    if set(counts) != {*names, REST} or not is_counted or not sum(counts.values()):
        raise InputError(
            f"source_prior has {REST!r}, so that counts of a survey are expected: a whole number for each of {shown}. "
            f"Pass them, or leave {REST!r} out to pass shares."
        )
    check_survey_rows(sum(counts.values()))
    return np.array([counts[name] + _JEFFREYS for name in (*names, REST)], dtype=float)


def read_class_priors(source_prior: Any, names: Sequence[str]) -> dict[str, PriorKnowledge | None]:
    """Return what is known of the share of each class by itself; None for a class of which nothing is stated."""
    alpha = read_dirichlet(source_prior, names)
    if alpha is not None:
        return dict(zip(names, SourceShares.from_dirichlet(alpha).priors, strict=True))
    stated = {target_name(name): prior for name, prior in (source_prior or {}).items()}
    unknown = [name for name in stated if name not in names]
    if unknown:
        shown = ", ".join(map(repr, names))
        raise InputError(f"source_prior has {unknown[0]!r}, but the labelled classes are {shown}; correct it.")
    known: dict[str, PriorKnowledge | None] = {}
    for name in names:
        try:
            known[name] = None if stated.get(name) is None else read_prior(stated[name])
        except InputError as error:
            counts = f" For counts of a survey, add {REST!r}." if is_number(stated[name]) and stated[name] > 1 else ""
            raise InputError(f"{str(error).replace('source_prior', f'source_prior of {name!r}', 1)}{counts}") from None
    return known


def read_label_errors(label_error: Any, names: Sequence[str], *, rest: bool) -> LabelErrors:
    """Read the shares of wrong labels: one for all classes, by class, or by class and true class."""
    if label_error is None:
        return LabelErrors()
    if not isinstance(label_error, Mapping):
        label_error = dict.fromkeys(names, label_error)
    classes = [*names, REST] if rest else [*names]
    cells: list[tuple[int, int]] = []
    shares: list[PriorKnowledge] = []
    for name, errors in label_error.items():
        if target_name(name) not in names:
            raise InputError(f"label_error has {name!r}, but the classes are {', '.join(map(repr, names))}.")
        k = names.index(target_name(name))
        for true_class, share in _true_classes(errors, names, rest):
            if true_class not in classes or true_class == names[k]:
                others = ", ".join(repr(other) for other in classes if other != names[k])
                raise InputError(f"label_error of {name!r} has {true_class!r}, but the other classes are {others}.")
            cells.append((k, classes.index(true_class)))
            shares.append(read_label_error(share))
        total = sum(share.value for (row, _), share in zip(cells, shares, strict=True) if row == k)
        if total >= 1:
            raise InputError(f"label_error of {name!r} adds up to {total:.3g}, but less than 1 is expected.")
    return LabelErrors(tuple(cells), tuple(shares))


def _true_classes(errors: Any, names: Sequence[str], rest: bool) -> Iterator[tuple[str, Any]]:
    """Yield the true class of wrong rows and their share, from a share, of the rest, or a mapping of classes."""
    if isinstance(errors, Mapping):
        yield from ((target_name(name), share) for name, share in errors.items())
    elif rest:
        yield REST, errors
    else:
        example = {names[0]: {names[1]: 0.1}}
        raise InputError(f"label_error must say of which class the errors are, such as {example}, without a rest.")
