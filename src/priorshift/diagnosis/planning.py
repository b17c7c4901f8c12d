"""How many rows, or audited labels, an interval of a wanted width needs, and which to add first.

Widths are predicted by :mod:`priorshift.diagnosis.width_model`. Where π is estimated from the rows, its distribution is
computed anew from the counts that other sizes would have: where positives and negatives overlap it hardly narrows, and
more rows do not help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from priorshift.audit import expected_audit
from priorshift.diagnosis.identification import DiagnosisInput, TextReport
from priorshift.diagnosis.width_model import Sizes, WidthModel
from priorshift.errors import InputError
from priorshift.inference.audit_combination import (
    DOUBT_OF_TARGET,
    SampleAudit,
    combine_with_audit,
    target_prior_distribution,
)
from priorshift.inference.confidence_curve import TabulatedCurve, prior_from_ratio
from priorshift.inference.prior_knowledge import (
    Case,
    DistributionPrior,
    MislabeledPrior,
    PiecewiseUniform,
    PriorKnowledge,
    RangePrior,
)
from priorshift.io.labels import LEAST
from priorshift.io.parameters import is_number
from priorshift.result_tables import to_plain
from priorshift.scores.posterior import PopulationCounts, expected_spreads, posterior_counts, prior_posterior
from priorshift.scores.witness import Witness

SAMPLES = ("positive", "unlabeled", "target")
_NAMES = {"positive": "labelled positives", "unlabeled": "unlabelled rows", "target": "target rows"}
_MOST_TIMES = 1e4  # multiple of the pilot's rows beyond which a width counts as unreachable
_CELLS = 60  # points by which a distribution of π is approximated
_CELLS_OF_ERROR = 12  # points by which a distribution of the share of label errors is approximated
_ROW_FACTORS = (0.25, 1.0, 4.0, 16.0, 64.0)  # multiples of the rows at which the posterior of π is computed
_AUDIT_NODES = ((-np.sqrt(3), 1 / 6), (0.0, 2 / 3), (np.sqrt(3), 1 / 6))  # standard errors and weights: Gauss–Hermite
_LEAST_SHARE = 1e-6  # of positives and of negatives in a planned audit; without both, its labels have no variance
_NEGLIGIBLE = 0.05  # share of the width that doubling a sample must save to be recommended


@dataclass(frozen=True)
class Required(TextReport):
    """Numbers of rows or labels that an interval of a wanted width needs; each is enough by itself."""

    width: float  # wanted
    positive: int | None  # rows of this sample where the others stay as they are; None where no number is enough
    unlabeled: int | None
    target: int | None
    all: tuple[int, ...] | None  # rows of P, U and T where all grow in proportion
    audited_target: int | None  # rows of the target to audit, combined with the tables
    audited_source: int | None  # unlabelled rows to audit, in place of a range of π or added to a distribution

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        needed: dict[str, int | None] = {_NAMES[name]: getattr(self, name) for name in SAMPLES}
        needed["audited target rows"] = self.audited_target
        if self.audited_source is not None:
            needed["audited unlabelled rows"] = self.audited_source
        options = [f"{name}: {'not reachable' if rows is None else f'{rows:,}'}" for name, rows in needed.items()]
        in_proportion = "not reachable" if self.all is None else " + ".join(f"{rows:,}" for rows in self.all)
        options.append(f"all three in proportion: {in_proportion}")
        return f"A width of {self.width:g} needs one of: {'; '.join(options)}."


@dataclass(frozen=True, eq=False)
class Planning(TextReport):
    """How wide the interval is, why, and what would make it narrower."""

    width: float  # of the interval
    # share of the variance of π̂′ from each sample, from "source_prior" and, where labels may be wrong, "label_error"
    components: dict[str, float]
    sizes: dict[str, int]  # rows of the three samples
    confidence: float
    reason: str | None = None  # why nothing can be planned
    _pilot: _Pilot | None = field(default=None, repr=False)  # predicts widths; None where nothing can be planned

    def predict(self, *, positive: int | None = None, unlabeled: int | None = None, target: int | None = None) -> float:
        """Return the expected width with other numbers of rows; NaN where nothing can be planned."""
        multiples = []  # of the rows of each sample
        for name, rows in zip(SAMPLES, (positive, unlabeled, target), strict=True):
            if rows is not None and not (is_number(rows) and 2 <= rows < np.inf):
                raise InputError(f"{name} is {rows!r}, but must be a number of rows, 2 or more. Change it or omit it.")
            multiples.append(1.0 if rows is None else rows / self.sizes[name])
        return float("nan") if self._pilot is None else self._pilot.width(*multiples)

    def required(self, width: float) -> Required:
        """Return the total numbers of rows that an interval of this width needs, including the present ones."""
        if not (is_number(width) and 0 < width < 1):
            raise InputError(f"width is {width!r}, but must be between 0 and 1. Pass the width of the interval.")
        pilot = self._pilot
        if pilot is None:
            return Required(float(width), None, None, None, None, None, None)
        rows = [self.sizes[name] for name in SAMPLES]
        alone = [pilot.rows_needed(width, rows, [k]) for k in range(3)]  # of each sample, if it alone grows
        positive, unlabeled, target = (None if needed is None else needed[0] for needed in alone)
        in_proportion = pilot.rows_needed(width, rows, [0, 1, 2])
        audited_target = _fewest_labels(pilot.width_with_target_audit, width, pilot.target_rows)
        audited_source = None
        if not pilot.prior.is_point:
            audited_source = _fewest_labels(pilot.width_with_source_audit, width, rows[1])
        return Required(float(width), positive, unlabeled, target, in_proportion, audited_target, audited_source)

    def predict_audit(self, *, unlabeled: int = 0, target: int = 0) -> float:
        """Return the expected width after an audit of random rows of one sample; NaN if it cannot be planned."""
        if (unlabeled > 0) == (target > 0):
            raise InputError("Pass either unlabeled or target, the number of rows to audit.")
        if self._pilot is None:
            return float("nan")
        return self._pilot.width_with_target_audit(target) if target else self._pilot.width_with_source_audit(unlabeled)

    @cached_property
    def doubled(self) -> dict[str, float]:
        """The expected width if one sample had twice as many rows, and if all had."""
        single = {name: self.predict(**{name: 2 * self.sizes[name]}) for name in SAMPLES}
        return single | {"all": self.predict(**{name: 2 * self.sizes[name] for name in SAMPLES})}

    @property
    def expected_width(self) -> float:
        """The expected width with the present numbers of rows, with which predictions are compared."""
        return self.predict()

    @property
    def next_step(self) -> str:
        """Which sample to enlarge first, and the width that it would give."""
        if self._pilot is None:
            return f"No sample size can be planned: {self.reason}"
        present, best = self.expected_width, min(SAMPLES, key=lambda name: self.doubled[name])
        doubled, prior_share = self.doubled[best], self.components["source_prior"]
        open_prior = f"{prior_share:.0%} of the variance comes from the source prior"
        if present - doubled < _NEGLIGIBLE * present:
            if prior_share <= 0.5:
                return "More rows of one sample alone hardly help. Enlarge all three samples, or audit target rows."
            return f"More rows hardly help: {open_prior}. A survey, or an audit of unlabelled or target rows, does."
        size, gain = self.sizes[best], f"the expected width of the interval is {doubled:.3g} instead of {present:.3g}"
        step = f"Add {_NAMES[best]} first: with twice as many ({size:,} to {2 * size:,}) {gain}."
        if prior_share <= 0.5:
            return step
        # the effect of more rows on an estimated source prior is extrapolated
        rough = " (how much more rows reduce it is a rough guess)" if self._pilot.prior_is_from_rows else ""
        return f"{step} But {open_prior}{rough}, which an audit or a survey reduces."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("width", "components", "sizes", "confidence", "doubled", "next_step", "reason")
        return to_plain({name: getattr(self, name) for name in names})

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        return self.next_step if self._pilot is None else f"{self.composition}\n{self.next_step}"

    @property
    def composition(self) -> str:
        """The width, and the shares of its variance, in a sentence."""
        if self._pilot is None:
            return self.next_step
        names = _NAMES | {"source_prior": "source prior", "label_error": "label errors"}
        shares = ", ".join(f"{names[name]} {share:.0%}" for name, share in self.components.items() if share > 0)
        expected = f"{self.expected_width:.3g} is expected of samples like these"
        return f"The interval is {self.width:.3g} wide ({expected}). Shares of its variance: {shares}."


@dataclass(frozen=True, eq=False)
class _Pilot:
    """The present samples as a pilot study, which predicts widths at multiples of its sizes."""

    model: WidthModel
    curve: TabulatedCurve
    prior: PriorKnowledge
    # spread of π at multiples of the rows of P and U, relative to the present; None unless π is estimated from the rows
    relative_spread: Callable[[float, float], float] | None
    explained: Sequence[float]  # share of the labels' variance in U and T that the scores explain
    source_rows: float  # of U
    target_rows: int
    confidence: float

    @property
    def prior_is_from_rows(self) -> bool:
        """Whether π is estimated from the rows."""
        return self.relative_spread is not None

    def width(self, positive: float, unlabeled: float, target: float) -> float:
        """Return the expected width with these multiples of the rows of P, U and T."""
        m, n, t = self.model.sizes
        spread_factor = 1.0 if self.relative_spread is None else self.relative_spread(positive, unlabeled)
        return self._width((m * positive, n * unlabeled, t * target), self.prior, spread_factor)

    def rows_needed(self, width: float, rows: Sequence[int], enlarged: Sequence[int]) -> tuple[int, ...] | None:
        """Return the rows of some samples that give this width if they alone grow, in proportion; None if none do.

        `rows` are the present ones of P, U and T, and `enlarged` the samples that grow, 0, 1 or 2.
        """

        def width_at(factor: float) -> float:
            """Return the width if these samples had `factor` times their rows."""
            return self.width(*(factor if k in enlarged else 1.0 for k in range(3)))

        factor = _smallest_factor(width_at, width, 2 / min(rows[k] for k in enlarged))
        # 1e-9 undoes rounding errors; a sample has at least two rows
        return None if factor is None else tuple(max(ceil(factor * rows[k] - 1e-9), 2) for k in enlarged)

    def _width(self, sizes: Sizes, prior: PriorKnowledge, spread_factor: float = 1.0) -> float:
        """Return the expected width of the interval of π′ with effective sizes of P, U and T, and this knowledge of π.

        The spread of a distribution about its mean is first multiplied by `spread_factor`.
        """
        known = prior.prior if isinstance(prior, MislabeledPrior) else prior
        if isinstance(known, DistributionPrior):
            # quantiles at levels of equal angle, which are dense in both tails
            edges = (1 - np.cos(np.linspace(0, np.pi, _CELLS + 1))) / 2
            points = np.asarray(known.distribution.ppf((edges[1:] + edges[:-1]) / 2), dtype=float)
            points = np.clip(known.value + spread_factor * (points - known.value), 0.0, 1.0)
            cases: tuple[Case, ...] = (Case(points, np.diff(edges)),)
        else:  # a value, or a range by its two ends
            cases = tuple(Case(np.array([pi]), np.ones(1)) for pi in sorted(set(known.range)))
        if isinstance(prior, MislabeledPrior):
            cases = prior.combine(cases, _CELLS_OF_ERROR)
        return self.model.width(sizes, cases, self.confidence)

    @cached_property
    def _target_belief(self) -> PiecewiseUniform:
        """The distribution of π′ before any audit."""
        return target_prior_distribution(self.curve, self.prior)

    def width_with_target_audit(self, labels: int) -> float:
        """Return the expected width if this number of target rows, drawn at random, were audited."""
        belief = self._target_belief
        _, _, size_T = self.model.sizes
        _, explained_T = self.explained
        expected = expected_audit(_within_limits(belief.mean()), labels, self.target_rows, explained_T)
        spread = float(np.hypot(belief.std(), expected.standard_error))  # of what the audit may find
        total = 0.0
        for node, weight in _AUDIT_NODES:
            share = _within_limits(belief.mean() + node * spread)
            audit = expected_audit(share, labels, self.target_rows, explained_T)
            audited = combine_with_audit(belief, SampleAudit(audit, size_T), from_rows=True, doubt=DOUBT_OF_TARGET)
            low, high = audited.interval(self.confidence)
            total += weight * (high - low)
        return total

    def width_with_source_audit(self, labels: int) -> float:
        """Return the expected width if this number of unlabelled rows, drawn at random, were audited."""
        prior = self.prior
        if prior.is_point:  # π is known, so labels of unlabelled rows add nothing
            return self._width(self.model.sizes, prior)
        # labels update a distribution of π; a range has none, and π is estimated from the labels alone. So it is with
        # label errors if π is estimated from P and U
        label_error = prior.label_error if isinstance(prior, MislabeledPrior) else None
        known = prior.prior if isinstance(prior, MislabeledPrior) and not prior.is_relative else prior
        belief = known.distribution if isinstance(known, DistributionPrior) else None
        _, size_U, _ = self.model.sizes
        explained_U, _ = self.explained
        audit = expected_audit(_within_limits(prior.value), labels, self.source_rows, explained_U)
        audited = combine_with_audit(belief, SampleAudit(audit, size_U), from_rows=self.prior_is_from_rows)
        after: PriorKnowledge = DistributionPrior(audited.distribution)
        return self._width(self.model.sizes, MislabeledPrior(after, label_error) if label_error else after)


def _within_limits(share: float) -> float:
    """Return a share of positives, moved away from 0 and 1 if necessary."""
    return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)


def _relative_spread(witness: Witness) -> Callable[[float, float], float]:
    """Return a function that gives the expected spread of the posterior of π at multiples of the rows of P and U.

    The spread is relative to the present one. It is computed at several multiples, and interpolated on logarithmic
    scales. With p times the positives and u times the population it is that of g times both, 1/g = α/p + (1−α)/u.
    """
    source, (m, n) = witness.source, (witness.source.P.size, witness.source.U.size)
    counts = PopulationCounts(posterior_counts(witness.scored.p_values, round(m), n * source.U.mass), round(m), m)
    # both samples multiplied by the same factor; last, the positives alone
    multiples = [*((factor, factor) for factor in _ROW_FACTORS), (_ROW_FACTORS[-1], 1.0)]
    spreads = expected_spreads(counts, prior_posterior(counts)[0], multiples)
    present = spreads[_ROW_FACTORS.index(1.0)]
    if not present > 0:  # also where it is NaN
        return lambda positives, population: 1.0
    log_factors = np.log(_ROW_FACTORS)
    log_spreads = np.log(np.maximum(np.minimum.accumulate(spreads[:-1] / present), 1e-6))
    # factor g of both samples with the spread that more positives alone give; with p = 64 and u = 1 it determines α
    log_spread_of_positives = np.log(min(spreads[-1] / present, 1.0))
    g = float(np.exp(np.interp(-log_spread_of_positives, -log_spreads, log_factors)))
    alpha = min(max((1 - 1 / max(g, 1.0)) / (1 - 1 / _ROW_FACTORS[-1]), 0.0), 1.0)

    def spread(positives: float, population: float) -> float:
        """Return the relative spread at multiples of the rows of P and U, extrapolated linearly in logarithms."""
        log_factor = np.log(1 / (alpha / positives + (1 - alpha) / population))
        if log_factor > log_factors[-1]:
            rise, run = log_spreads[-1] - log_spreads[-2], log_factors[-1] - log_factors[-2]
            return float(np.exp(log_spreads[-1] + (log_factor - log_factors[-1]) * rise / run))
        return float(np.exp(np.interp(log_factor, log_factors, log_spreads)))

    return spread


def planning(inputs: DiagnosisInput) -> Planning:
    """Plan sample sizes with the present samples as a pilot study: the width, its components, and predictions."""
    fit, prior, witness, target = inputs.fit, inputs.fit.prior, inputs.fit.witness, inputs.fit.target
    scored, names = witness.scored, [*SAMPLES, "source_prior"]
    if isinstance(prior, MislabeledPrior):
        names.append("label_error")
    sizes = dict(zip(SAMPLES, (*scored.sizes, len(target)), strict=True))
    if not (np.isfinite(inputs.ratio) and fit.test.curve.is_known):
        reason = "the positives cannot be distinguished from the unlabelled rows."
        return Planning(1.0, dict.fromkeys(names, float("nan")), sizes, inputs.confidence, reason)
    # R̂, or the nearest possible ratio: the mean of what is possible would be far from 0 for a rare class
    q = prior.purity
    model = WidthModel.fit(fit, (q - prior_from_ratio(prior.value, inputs.ratio, q)) / (q - prior.value))
    explained = []  # in U and T, the share of the labels' variance that posteriors explain, if they are calibrated
    for p_values, ratio, mass in (
        (scored.p_values, 1.0, witness.source.U.mass),
        (fit.p_values, max(inputs.ratio, 0.0), target.mass),
    ):
        posterior = scored.predicted(p_values, ratio)
        mean = float(mass @ posterior)
        explained.append(min(float(mass @ (posterior - mean) ** 2) / max(mean * (1 - mean), 1e-12), 0.99))
    parts_of_prior = (prior.prior, prior.label_error) if isinstance(prior, MislabeledPrior) else (prior,)
    from_rows = inputs.prior_from_rows and isinstance(parts_of_prior[0], DistributionPrior)
    pilot = _Pilot(
        model=model, curve=fit.test.curve, prior=prior, explained=explained, source_rows=scored.sizes[1],
        relative_spread=_relative_spread(witness) if from_rows else None, target_rows=len(target),
        confidence=inputs.confidence,
    )  # fmt: skip
    # Var π̂′ = (q−π)²·Var R̂ + R²·Var π + (1−R)²·Var q; a range counts as a uniform distribution
    parts = [(q - prior.value) ** 2 * variance for variance in model.variances(model.sizes)]
    for known, (error, derivative) in zip(parts_of_prior, prior.influences(model.ratio), strict=True):
        spread = (known.high - known.low) / 12**0.5 if isinstance(known, RangePrior) else error
        parts.append((derivative * spread) ** 2)
    total = sum(parts)
    components = {name: part / total if total > 0 else 0.0 for name, part in zip(names, parts, strict=True)}
    low, high = prior.interval(fit.test.curve, inputs.confidence)
    return Planning(high - low, components, sizes, inputs.confidence, None, pilot)


def _smallest_factor(width_at: Callable[[float], float], width: float, least: float) -> float | None:
    """Return the smallest multiple of the rows, from `least` on, that gives at most this width, to a thousandth.

    `width_at(multiple)` decreases. None where even 10,000 times the rows are too few.
    """
    low, high = 1.0, 1.0
    while width_at(high) > width:
        low, high = high, 4 * high
        if high > _MOST_TIMES:
            return None
    if high == 1.0:  # the present rows are enough
        low = min(least, 1.0)
        if width_at(low) <= width:
            return low
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        if width_at(middle) <= width:
            high = middle
        else:
            low = middle
    return high


def _fewest_labels(width_at: Callable[[int], float], width: float, rows: int) -> int | None:
    """Return the smallest number of audited rows that gives at most this width, to 1%; None where `rows` are too few.

    `width_at(labels)` decreases with the number of labels.
    """
    if rows < LEAST:
        return None
    too_few, enough = LEAST - 1, LEAST
    while width_at(enough) > width:
        if enough >= rows:
            return None
        too_few, enough = enough, min(2 * enough, rows)
    while enough - too_few > max(1, too_few // 100):
        labels = (too_few + enough) // 2
        if width_at(labels) > width:
            too_few = labels
        else:
            enough = labels
    return enough
