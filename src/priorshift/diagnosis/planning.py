"""How many rows, or labels looked up, an interval of a wanted width needs; and which to add first.

A width is predicted from the pilot by :mod:`priorshift.diagnosis.width_model`. Where π is read from the rows, what is
believed of it is computed anew from the counts that other sizes would have: where positives and negatives overlap it
hardly narrows, and rows do not help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.audit import LEAST, expected_audit
from priorshift.diagnosis.width_model import Sizes, WidthModel
from priorshift.errors import InputError
from priorshift.formatting import TextReport
from priorshift.inference.audit_combination import SampleAudit, combine_with_audit, target_prior_distribution
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    PiecewiseUniform,
    PointPrior,
    PriorKnowledge,
    RangePrior,
)
from priorshift.io.parameters import is_number
from priorshift.problem import Target
from priorshift.result_tables import to_plain
from priorshift.scores.posterior import PopulationCounts, expected_spreads, prior_posterior
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

SAMPLES = ("positive", "unlabeled", "target")
_NAMES = {"positive": "labelled positives", "unlabeled": "unlabelled rows", "target": "target rows"}
_MOST = 1e4  # times the pilot's rows, beyond which a width counts as not to be reached
_CELLS = 60  # of a distribution of π, of equal angle
_FORESEEN = (0.25, 1.0, 4.0, 16.0, 64.0)  # times the rows, where the posterior of π is
_NEGLIGIBLE = 0.05  # of the width, that doubling a sample must take away to be worth saying


@dataclass(frozen=True)
class Required(TextReport):
    """What a width needs, each by itself.

    Attributes
    ----------
    width : float
        That is wanted.
    positive, unlabeled, target : int or None
        Rows of that sample where the others stay as they are; None where no number is enough.
    all : tuple of three int or None
        Rows of P, U and T where all grow in proportion; None where no number is enough.
    audited_target : int or None
        Rows of the target to look up, put together with the tables; None where all of them are not enough.
    audited_source : int or None
        Unlabelled rows of the source to look up, which take the place of a range of π and add to a distribution; None
        where π is known, or all of them are not enough.
    """

    width: float
    positive: int | None
    unlabeled: int | None
    target: int | None
    all: tuple[int, int, int] | None
    audited_target: int | None
    audited_source: int | None

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
        """
        return vars(self) | {"all": None if self.all is None else list(self.all)}

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        rows = [f"{_NAMES[name]}: {_count(getattr(self, name))}" for name in SAMPLES]
        together = "not to be reached" if self.all is None else " + ".join(f"{size:,}" for size in self.all)
        audits = [f"target rows looked up: {_count(self.audited_target)}"]
        if self.audited_source is not None:
            audits.append(f"unlabelled rows looked up: {self.audited_source:,}")
        what = "; ".join([*rows, f"all three in proportion: {together}", *audits])
        return f"for a width of {self.width:g}, one of: {what}"


@dataclass(frozen=True, eq=False)
class Planning(TextReport):
    """How wide the interval is, why, and what would make it narrower.

    Attributes
    ----------
    width : float
        Of the pilot's interval.
    components : dict
        The share of the variance of π̂′ that comes from "positive", "unlabeled", "target" and "source_prior".
    sizes : dict
        Rows of the three samples.
    confidence : float
        Of the interval.
    reason : str or None
        Why nothing can be planned; None where it can.
    """

    width: float
    components: dict[str, float]
    sizes: dict[str, int]
    confidence: float
    reason: str | None = None
    _pilot: _Pilot | None = field(default=None, repr=False)

    def predict(self, *, positive: int | None = None, unlabeled: int | None = None, target: int | None = None) -> float:
        """Predict the width with other numbers of rows.

        Parameters
        ----------
        positive, unlabeled, target : int or None
            Rows; None is as many as there are.

        Returns
        -------
        float
            The mean width that such samples would give; NaN where nothing can be planned.
        """
        wanted = {"positive": positive, "unlabeled": unlabeled, "target": target}
        times = []
        for name, rows in wanted.items():
            if rows is not None and not (is_number(rows) and 2 <= rows < np.inf):
                raise InputError(f"{name} is {rows!r}, but a number of rows must be 2 or more; pass such a one, or "
                                 "leave it out.")  # fmt: skip
            times.append(1.0 if rows is None else rows / self.sizes[name])
        if self._pilot is None:
            return float("nan")
        return self._pilot.width((times[0], times[1], times[2]))

    def required(self, width: float) -> Required:
        """Say what a width needs.

        Parameters
        ----------
        width : float
            Upper less lower end of the interval, between 0 and 1.

        Returns
        -------
        Required
            Numbers of rows in all, those that are there included.
        """
        if not (is_number(width) and 0 < width < 1):
            raise InputError(f"width is {width!r}, but it must lie between 0 and 1; pass the width of the interval.")
        pilot = self._pilot
        if pilot is None:
            return Required(float(width), None, None, None, None, None, None)
        rows = [self.sizes[name] for name in SAMPLES]

        def alone(k: int) -> int | None:  # numpydoc ignore=GL08
            def at(times: float) -> float:
                factors = [1.0, 1.0, 1.0]
                factors[k] = times
                return pilot.width((factors[0], factors[1], factors[2]))

            times = _least(at, width, 2 / rows[k])
            return None if times is None else max(ceil(times * rows[k] - 1e-9), 2)

        together = _least(lambda times: pilot.width((times, times, times)), width, 2 / min(rows))
        p, u, t = (None if together is None else max(ceil(together * size - 1e-9), 2) for size in rows)
        everything = None if p is None or u is None or t is None else (p, u, t)
        return Required(
            float(width),
            alone(0),
            alone(1),
            alone(2),
            everything,
            _labels(pilot.width_with_target_audit, width, pilot.target_rows),
            None if isinstance(pilot.prior, PointPrior) else _labels(pilot.width_with_source_audit, width, rows[1]),
        )

    def predict_audit(self, *, unlabeled: int = 0, target: int = 0) -> float:
        """Predict the width where the classes of some rows were looked up.

        Parameters
        ----------
        unlabeled, target : int
            Unlabelled rows of the source, or rows of the target, drawn at random; one of the two.

        Returns
        -------
        float
            NaN where nothing can be planned.
        """
        if (unlabeled > 0) == (target > 0):
            raise InputError("pass unlabeled or target, the number of rows to look up in one of the two samples.")
        if self._pilot is None:
            return float("nan")
        return self._pilot.width_with_target_audit(target) if target else self._pilot.width_with_source_audit(unlabeled)

    @cached_property
    def doubled(self) -> dict[str, float]:  # numpydoc ignore=RT01
        """The width if one sample had twice as many rows, and if all had."""
        one = {name: self.predict(**{name: 2 * self.sizes[name]}) for name in SAMPLES}
        return one | {"all": self.predict(**{name: 2 * self.sizes[name] for name in SAMPLES})}

    @property
    def expected_width(self) -> float:  # numpydoc ignore=RT01
        """The mean width of samples like the pilot; what predictions are to be compared with."""
        return self.predict()

    @property
    def next_step(self) -> str:  # numpydoc ignore=RT01
        """Which sample to enlarge first and what it buys, in a sentence."""
        if self._pilot is None:
            return f"Nothing can be planned: {self.reason}"
        now = self.expected_width
        best = min(SAMPLES, key=lambda name: self.doubled[name])
        then, prior = self.doubled[best], self.components["source_prior"]
        open_prior = f"{prior:.0%} of the variance is that of the source prior" if prior > 0.5 else None
        if now - then < _NEGLIGIBLE * now:
            if open_prior is None:
                return "More rows of one sample alone hardly help: enlarge all three, or audit target rows."
            return f"More rows hardly help: {open_prior}; a survey, audited unlabelled rows or audited target rows do."
        more = f"{self.sizes[best]:,} to {2 * self.sizes[best]:,}"
        step = (
            f"Add {_NAMES[best]} first: twice as many ({more}) would make the interval {then:.3g} wide in place of an "
            f"expected {now:.3g}"
        )
        if open_prior is None:
            return f"{step}."
        rough = "" if self._pilot.belief is None else " (how far rows narrow it is a rough guess)"
        return f"{step}; but {open_prior}{rough}, which an audit or a survey cuts."

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and text, ready for JSON.

        Returns
        -------
        dict
        """
        return {
            **to_plain({"width": self.width}),
            "components": to_plain(self.components),
            "sizes": dict(self.sizes),
            "confidence": self.confidence,
            "doubled": to_plain(self.doubled),
            "next_step": self.next_step,
            "reason": self.reason,
        }

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        return self.next_step if self._pilot is None else f"{self.composition}\n{self.next_step}"

    @property
    def composition(self) -> str:  # numpydoc ignore=RT01
        """What the width is made of, in a sentence."""
        if self._pilot is None:
            return self.next_step
        names = _NAMES | {"source_prior": "source prior"}
        shares = ", ".join(f"{names[name]} {share:.0%}" for name, share in self.components.items() if share > 0)
        like_these = f"{self.expected_width:.3g} is expected of samples like these"
        return f"The interval is {self.width:.3g} wide, where {like_these}; of its variance: {shares}."


@dataclass(frozen=True, eq=False)
class _Pilot:
    """What widths at other sizes follow from; sizes are told as multiples of the pilot's."""

    model: WidthModel
    curve: TabulatedCurve
    prior: PriorKnowledge
    belief: _RowBelief | None
    explained: tuple[float, float]  # of labels of U and T, by the predictions
    source_rows: float
    target_rows: int
    confidence: float

    def sizes(self, times: Sizes) -> Sizes:
        (m, n, t), (p, u, v) = self.model.sizes, times
        return m * p, n * u, t * v

    def width(self, times: Sizes) -> float:
        factor = 1.0 if self.belief is None else self.belief.factor(times[0], times[1])
        return self._width(self.sizes(times), self.prior, factor)

    def _width(self, sizes: Sizes, prior: PriorKnowledge, factor: float = 1.0) -> float:
        """Where the spread of π about its mean is so many times what is known of it now."""
        if isinstance(prior, DistributionPrior):
            edges = (1 - np.cos(np.linspace(0, np.pi, _CELLS + 1))) / 2
            points = np.asarray(prior.distribution.ppf((edges[1:] + edges[:-1]) / 2), dtype=float)
            points = np.clip(prior.value + factor * (points - prior.value), 0.0, 1.0)
            return self.model.width(sizes, [(points, np.diff(edges))], self.confidence)
        ends = [(np.array([pi]), np.ones(1)) for pi in sorted(set(prior.range))]
        return self.model.width(sizes, ends, self.confidence)

    @cached_property
    def _target_belief(self) -> PiecewiseUniform:
        return target_prior_distribution(self.curve, self.prior)

    def width_with_target_audit(self, k: int) -> float:
        belief = self._target_belief
        share = expected_audit(_inner(belief.mean()), k, self.target_rows, self.explained[1])
        sample = SampleAudit(share, self.model.sizes[2])
        return _width(combine_with_audit(belief, sample, from_rows=True).distribution, self.confidence)

    def width_with_source_audit(self, k: int) -> float:
        prior = self.prior
        if isinstance(prior, PointPrior):
            return self._width(self.model.sizes, prior)
        belief = prior.distribution if isinstance(prior, DistributionPrior) else None  # a range is given up for labels
        share = expected_audit(_inner(prior.value), k, self.source_rows, self.explained[0])
        sample = SampleAudit(share, self.model.sizes[1])
        audited = combine_with_audit(belief, sample, from_rows=self.belief is not None).distribution
        return self._width(self.model.sizes, DistributionPrior(audited))


@dataclass(frozen=True, eq=False)
class _RowBelief:
    """How the posterior of π narrows with rows.

    Its spread is foreseen with several times the rows, `times`, and is read in between on logarithmic scales. More rows
    of one sample alone count as fewer of both: 1/g = α/p + (1−α)/u with p times the positives and u times the others.
    """

    times: Floats
    spread: Floats  # over that of the pilot
    positive_share: float  # α

    @classmethod
    def of(cls, witness: Witness) -> _RowBelief:
        source, scored = witness.source, witness.scored
        m, n = source.effective_sizes
        counts = PopulationCounts.from_p_values(scored.p_values, round(m), m, n * source.population_mass)
        both = [(times, times) for times in _FORESEEN]
        found = expected_spreads(counts, prior_posterior(counts)[0], [*both, (_FORESEEN[-1], 1.0)])
        now = found[_FORESEEN.index(1.0)]
        if not now > 0:
            return cls(np.array(_FORESEEN), np.ones(len(_FORESEEN)), 0.5)
        spread = np.maximum(np.minimum.accumulate(found[:-1] / now), 1e-6)
        log = np.log(np.array(_FORESEEN))
        like = float(np.exp(np.interp(-np.log(min(found[-1] / now, 1.0)), -np.log(spread), log)))
        share = (1 - 1 / max(like, 1.0)) / (1 - 1 / _FORESEEN[-1])
        return cls(np.array(_FORESEEN), spread, min(max(share, 0.0), 1.0))

    def factor(self, positives: float, population: float) -> float:
        """Spread with so many times the rows, over that of the pilot."""
        g = 1 / (self.positive_share / positives + (1 - self.positive_share) / population)
        x, y = np.log(self.times), np.log(self.spread)
        at = np.log(g)
        if at > x[-1]:
            return float(np.exp(y[-1] + (at - x[-1]) * (y[-1] - y[-2]) / (x[-1] - x[-2])))
        return float(np.exp(np.interp(at, x, y)))


def planning(
    witness: Witness,
    target: Target,
    values: Floats,
    test: RatioTest,
    curve: TabulatedCurve,
    prior: PriorKnowledge,
    *,
    from_rows: bool = False,
    confidence: float = 0.95,
) -> Planning:
    """Plan a study from a pilot.

    Parameters
    ----------
    witness : Witness
        Of the pilot's source.
    target : Target
        Its target.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    test : RatioTest
        Of every ratio.
    curve : TabulatedCurve
        Of the test.
    prior : Known, Between or Distributed
        What is known of π.
    from_rows : bool
        Whether that was read from the pilot's rows, so that more of them tell more; a number, a range or a survey was
        not.
    confidence : float
        Of the interval.

    Returns
    -------
    Planning

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift import simulate
    >>> from priorshift.inference.confidence_curve import TabulatedCurve
    >>> from priorshift.diagnosis.planning import planning
    >>> from priorshift.problem import Source
    >>> from priorshift.inference.prior_knowledge import PointPrior
    >>> from priorshift.scores.scored_source import ScoredSource
    >>> from priorshift.scores.witness import Witness
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> source = Source.read(s.X, s.y, s.ids, scenario="case-control", standardize=True)
    >>> target = source.layout.read(s.target)
    >>> scored = ScoredSource.fit(source, None, repeats=5, folds=5, rng=np.random.default_rng(0))
    >>> witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    >>> values = scored.target_p_values(target)
    >>> test = witness.test(values, target)
    >>> curve = TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)
    >>> plan = planning(witness, target, values, test, curve, PointPrior(0.2))
    >>> print(f"{plan.width:.2f}; with four times the target rows {plan.predict(target=8000):.2f}")
    0.06; with four times the target rows 0.04
    """
    m, n = witness.scored.sizes
    sizes = {"positive": m, "unlabeled": n, "target": len(target)}
    low, high = prior.interval(curve, confidence)
    if not (np.isfinite(test.ratio) and curve.is_known):
        nan = float("nan")
        none = dict.fromkeys((*SAMPLES, "source_prior"), nan)
        reason = "positives cannot be told from unlabelled rows, so that no width can be predicted."
        return Planning(1.0, none, sizes, confidence, reason)
    # an R̂ that cannot be, since π′ would lie outside [0, 1], is taken for what it tells of π′
    value = curve.mean(*(prior.points if isinstance(prior, DistributionPrior) else (prior.value,)))
    model = WidthModel.of(witness, values, target, test, (1 - value) / (1 - prior.value))
    belief = None
    if from_rows and isinstance(prior, DistributionPrior):
        belief = _RowBelief.of(witness)
    scored = witness.scored
    explained = (
        _explained(scored, scored.p_values, witness.source.population_mass, 1.0),
        _explained(scored, values, target.mass, max(test.ratio, 0.0)),
    )
    pilot = _Pilot(model, curve, prior, belief, explained, n, len(target), confidence)
    return Planning(high - low, _components(model, prior), sizes, confidence, None, pilot)


def _components(model: WidthModel, prior: PriorKnowledge) -> dict[str, float]:
    """Shares of Var π̂′ = (1−π)²·Var R̂ + R²·Var π; a range counts as an even distribution."""
    spread = (prior.high - prior.low) / 12**0.5 if isinstance(prior, RangePrior) else prior.error
    of_rows = ((1 - prior.value) ** 2 * part for part in model.variances(model.sizes))
    parts = dict(zip((*SAMPLES, "source_prior"), (*of_rows, (model.ratio * spread) ** 2), strict=True))
    total = sum(parts.values())
    return {name: part / total if total > 0 else 0.0 for name, part in parts.items()}


def _explained(scored: ScoredSource, values: Floats, mass: Floats, ratio: float) -> float:
    """Of the labels' variance by the posteriors, as if these were calibrated."""
    f = scored.predicted(values, ratio)
    mean = float(mass @ f)
    return min(float(mass @ (f - mean) ** 2) / max(mean * (1 - mean), 1e-12), 0.99)


def _width(distribution: PiecewiseUniform, confidence: float) -> float:
    low, high = distribution.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    return float(high - low)


def _inner(share: float) -> float:
    return min(max(share, 1e-6), 1 - 1e-6)


def _least(width_at: Callable[[float], float], width: float, least: float) -> float | None:
    """The smallest multiple of the pilot's rows that gives the width, to a thousandth; None beyond the most."""
    low, high = min(least, 1.0), 1.0
    if width_at(high) > width:
        while width_at(high) > width:
            low, high = high, 4 * high
            if high > _MOST:
                return None
    elif width_at(low) <= width:
        return low
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if width_at(middle) <= width else (middle, high)
    return high


def _labels(width_at: Callable[[int], float], width: float, rows: int) -> int | None:
    """The fewest labels that give the width; None where those of all rows do not."""
    few, most = LEAST - 1, LEAST
    if rows < LEAST:
        return None
    while width_at(most) > width:
        if most >= rows:
            return None
        few, most = most, min(2 * most, rows)
    while most - few > max(1, few // 100):
        k = (few + most) // 2
        few, most = (k, most) if width_at(k) > width else (few, k)
    return most


def _count(rows: int | None) -> str:
    return "not to be reached" if rows is None else f"{rows:,}"
