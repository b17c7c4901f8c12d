"""Decisions on rows by the posteriors of several classes, and how many of them are expected to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.adapt import Decisions, expect, shifted_posterior
from priorshift.arrays import Floats, Index
from priorshift.class_priors import ClassPriors
from priorshift.errors import InputError
from priorshift.io.parameters import is_number
from priorshift.result_tables import align_columns, to_plain
from priorshift.results import Interval


@dataclass(frozen=True, eq=False)
class ExpectedClass:
    """What to expect of the decisions for one class."""

    rows: float  # expected number of rows of this class
    rows_interval: Interval
    decisions: Decisions  # for this class against all others

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = self.decisions.to_dict()
        names = {"decided": "decided_positive", "right": "true_positives", "right_interval": "true_positives_interval"}
        same = ("precision", "precision_interval", "recall", "recall_interval")
        interval = [self.rows_interval.low, self.rows_interval.high]
        record = {"rows": self.rows, "rows_interval": interval, **{name: plain[key] for name, key in names.items()}}
        return dict(to_plain({**record, **{name: plain[name] for name in same}}))


@dataclass(frozen=True, eq=False)
class ClassDecisions:
    """Decisions on the rows of a target by the posteriors of all classes; what to expect of them prints as a table."""

    posteriors: Floats  # shape (rows, classes); each row adds up to 1
    decided: Index  # number of the class that each row is decided to be
    expected: dict[str, ExpectedClass]  # by class, in the order of the columns of `posteriors`

    @property
    def names(self) -> NDArray[Any]:
        """Name of the class that each row is decided to be."""
        return np.array(list(self.expected), dtype=object)[self.decided]

    def to_dict(self) -> dict[str, Any]:
        """Return what to expect of each class as plain values for JSON, without the single decisions."""
        return {name: one.to_dict() for name, one in self.expected.items()}

    def __str__(self) -> str:
        """Return the table."""
        header = ("class", "expected rows", "decided", "of these right", "precision", "recall")
        rows: list[Sequence[str]] = []
        for name, one in self.expected.items():
            d = one.decisions
            rows.append((
                name, _cell(one.rows, one.rows_interval, 0), f"{int(d.is_positive.sum())}",
                _cell(d.true_positives, d.true_positives_interval, 0), _cell(d.precision, d.precision_interval, 2),
                _cell(d.recall, d.recall_interval, 2),
            ))  # fmt: skip
        return align_columns(header, rows)


def decide_classes(base: Floats, priors: ClassPriors, costs: Mapping[str, float] | None = None) -> ClassDecisions:
    """Decide on rows by the posteriors of all classes, with the fewest expected errors or the lowest expected cost.

    `base` are the posteriors where all classes are equally common, from which those for other shares follow. The cost
    c_k of an error on a row of class k is 1 unless `costs` states it; a row is decided to be the class with the largest
    c_k p_k. Expectations are sums of posteriors; their intervals hold over the interval of the share of the class, and
    include the chance in the classes of the rows.
    """
    names = list(priors)
    cost = read_costs(costs or {}, names)
    equal = np.full(len(names), 1 / len(names))
    shares = np.array([priors[name].value for name in names])
    posteriors = shifted_posterior(base, equal, shares)
    decided = np.argmax(cost * posteriors, axis=1)
    expected = {}
    for k, (name, prior) in enumerate(priors.items()):
        interval = prior.interval or Interval(prior.value, prior.value, priors.confidence, "none")
        at_ends = [
            shifted_posterior(base, equal, _with_share(shares, k, end))[:, k] for end in (interval.low, interval.high)
        ]
        possible = (posteriors[:, k], at_ends[0], at_ends[1])
        rows = expect(np.ones(len(base), dtype=bool), np.nan, possible, interval.confidence)
        decisions = expect(decided == k, np.nan, possible, interval.confidence)
        expected[name] = ExpectedClass(rows.true_positives, rows.true_positives_interval, decisions)
    return ClassDecisions(posteriors, decided, expected)


def _with_share(shares: Floats, k: int, share: float) -> Floats:
    """Return shares in which that of one class is changed, and those of the others in proportion."""
    others = shares.copy()
    others[k] = 0.0
    total = others.sum()
    if total == 0:  # the others have no proportions
        others = np.where(np.arange(len(shares)) == k, 0.0, 1.0)
        total = others.sum()
    others = others * (1 - share) / total
    others[k] = share
    return others


def read_costs(costs: Mapping[str, float], names: Sequence[str], parameter: str = "cost_ratio") -> Floats:
    """Return the cost of an error on a row of each class; refuse unknown classes, and costs that are not positive."""
    for name, cost in costs.items():
        if name not in names:
            shown = ", ".join(map(repr, names))
            raise InputError(f"{parameter} has {name!r}, but the classes are {shown}; correct it.")
        if not (is_number(cost) and np.isfinite(cost) and cost > 0):
            raise InputError(f"{parameter} of {name!r} is {cost!r}, but it must be a positive number, such as 20.")
    return np.array([float(costs.get(name, 1.0)) for name in names])


def _cell(value: float, interval: Interval, digits: int) -> str:
    """Return a number with its interval for the table; nothing if it does not exist."""
    if not np.isfinite(value):
        return ""
    return f"{value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"
