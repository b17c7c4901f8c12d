"""Diagnosis of the estimated shares of several classes: whether they can be trusted, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from priorshift.class_priors import ClassPriors
from priorshift.class_source import REST, ClassSource
from priorshift.diagnosis.class_confusion import ClassConfusion, class_confusion
from priorshift.diagnosis.class_tests import (
    ClassLabelShiftTest,
    ClassTestInput,
    NewClassTest,
    class_label_shift_test,
    new_class_test,
)
from priorshift.diagnosis.shift_tests import numbered
from priorshift.diagnosis.verdict import (
    DOUBTED,
    FORBIDDING_WARNINGS,
    LEAST_ROWS,
    OUTSIDE_ERRORS,
    REFUTED,
    VIOLATED,
    Answer,
    Verdict,
    useful_width,
)
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.formatting import decimals, format_fixed, format_p, wrap_lines
from priorshift.io.column_checks import ColumnUse
from priorshift.io.sample_size import FEW_POSITIVES
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Target
from priorshift.progress import track_progress
from priorshift.reportable import Reportable
from priorshift.result_tables import text_to_html
from priorshift.results import EMPTY_WIDTH, PriorEstimate
from priorshift.threads import one_blas_thread
from priorshift.warning_records import FormatNotice, WarningRecord, suppress_warnings

_MOST_VARIANCE = 0.5  # share of a variance that may come from the source prior
_NARROW = 0.1  # width of an interval that is narrow enough, wherever its width comes from
_QUESTIONS = {
    "new_class_test": "Is there a class that exists only in the target?",
    "label_shift_test": "Is it label shift?",
    "confusion": "Can the classes be distinguished?",
}


class ClassVerdict(Verdict):
    """The answer to "May I publish these shares?"."""

    question: ClassVar[str] = "May I publish these shares?"
    yes: ClassVar[str] = "Yes, with their intervals: nothing in these tables contradicts them."


@dataclass(frozen=True, kw_only=True)
class ClassDiagnosis(Reportable):
    """Whether the estimated shares of several classes can be trusted, and why; it prints as a page.

    Attributes
    ----------
    verdict : ClassVerdict
        Whether the shares may be published, with reasons.
    estimate : ClassPriors
        The estimated shares.
    new_class_test : NewClassTest
        Test of whether rows of the target look like no class of the source, with a lower bound of their share.
    label_shift_test : ClassLabelShiftTest
        Test of whether a change of the shares explains the target.
    confusion : ClassConfusion
        Which classes cannot be distinguished, and what that costs.
    contradicted_priors : dict of str to (float, float)
        Stated source priors that the tables exclude, by class: the smallest one that was stated, and an upper bound.
    columns : tuple of ColumnUse
        How each column was used.
    settings : dict
        Settings that differ from the defaults, and the seed.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> diagnosis = ps.diagnose(
    ...     s.classes, s.unlabeled, s.target, source_prior={"a": 0.2, "b": 0.3}, random_state=0
    ... )
    >>> diagnosis.verdict.answer, diagnosis.label_shift_test.p_value > 0.05
    ('yes', True)

    A class that the source does not have is 15% of the target:

    >>> import numpy as np
    >>> new = np.random.default_rng(0).normal(size=(176, 10)) + 3 * np.eye(10)[0]
    >>> target = np.concatenate([s.target, new])
    >>> found = ps.diagnose(s.classes, s.unlabeled, target, source_prior={"a": 0.2, "b": 0.3}, random_state=0)
    >>> found.verdict.answer, found.new_class_test.is_detected
    ('no', True)
    """

    verdict: ClassVerdict
    estimate: ClassPriors
    new_class_test: NewClassTest
    label_shift_test: ClassLabelShiftTest
    confusion: ClassConfusion
    contradicted_priors: dict[str, tuple[float, float]] = field(default_factory=dict)
    next_steps: tuple[str, ...] = field(default=())
    columns: tuple[ColumnUse, ...] = field(default=())
    settings: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        parts = {name: getattr(self, name).to_dict() for name in ("verdict", "estimate", *_QUESTIONS)}
        contradicted = {name: list(pair) for name, pair in self.contradicted_priors.items()}
        steps = {"contradicted_priors": contradicted, "next_steps": list(self.next_steps)}
        return {**parts, **steps, **self.source_parts()}

    def source_parts(self) -> dict[str, Any]:
        """Return what all targets of one source have in common, as plain values for JSON.

        Returns
        -------
        dict
            "columns" and "settings".
        """
        return {"columns": [column.to_dict() for column in self.columns], "settings": self.settings}

    def __str__(self) -> str:
        """Return the page: verdict, shares, a section for each question, and what to do next."""
        parts = [str(self.verdict), str(self.estimate)]
        for name, question in _QUESTIONS.items():
            parts.append(f"{question}\n{wrap_lines(getattr(self, name).text, '  ')}")
        if self.next_steps:
            steps = "\n".join(f"- {step}" for step in self.next_steps)
            parts.append(f"What to do next?\n{wrap_lines(steps, '  ')}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return text_to_html(str(self))


@dataclass(frozen=True, kw_only=True)
class ClassParts:
    """What a diagnosis of several classes computes, before its verdict."""

    estimate: ClassPriors
    new_class_test: NewClassTest
    label_shift_test: ClassLabelShiftTest
    confusion: ClassConfusion
    contradicted_priors: dict[str, tuple[float, float]]

    @property
    def p_values(self) -> tuple[float, float]:
        """The p-values of the two tests, of a new class and of label shift."""
        return self.new_class_test.p_value, self.label_shift_test.p_value

    @classmethod
    def compute(cls, shift: MulticlassShift, source: ClassSource, target: Target, estimate: ClassPriors) -> ClassParts:
        """Test an estimate by an estimator that was fitted to `source`, which has its rows."""
        if not len(source.source.table.values):
            raise InputError("a diagnosis needs the rows of the source; pass the ClassSource that was fitted.")
        with track_progress("diagnose", 3) as advance, one_blas_thread():
            advance()
            inputs = ClassTestInput.build(shift, source, target)
            advance()
            new_class = new_class_test(inputs)
            advance()
            label_shift = class_label_shift_test(inputs)
            tables = estimate  # what the tables tell of confused classes, without the labels of an audit
            if target.class_audit is not None:
                with suppress_warnings(PriorShiftWarning):
                    tables = shift.estimate_target(replace(target, class_audit=None))
        return cls(
            estimate=estimate, new_class_test=new_class, label_shift_test=label_shift,
            confusion=class_confusion(tables), contradicted_priors=shift.contradicted_priors(),
        )  # fmt: skip


def judge_classes(
    parts: ClassParts, warnings: Sequence[WarningRecord], p_values: tuple[float, float] | None = None, targets: int = 1
) -> tuple[ClassVerdict, tuple[str, ...]]:
    """Judge whether the shares of classes may be published, and recommend what to do next.

    `warnings` are those of tables and fits. `p_values` are those of a new class and of label shift, adjusted for the
    number of `targets`. Default: those of the tests, for a single target.
    """
    p_new, p_shift = parts.p_values if p_values is None else p_values
    note = f", adjusted for {targets} targets" if targets > 1 else ""
    against, doubts = _tested(parts, p_new, p_shift, note)
    for name, (stated, bound) in parts.contradicted_priors.items():
        against.append(
            f"The source prior {stated:.3g} of {name!r} contradicts the tables, by which it is at most {bound:.2f}. "
            "Correct it, or check which rows are labelled."
        )
    for name, share in parts.estimate.items():
        against += _not_credible(name, share)
        doubts += _doubts(name, share)
    doubts += _doubted_priors(parts.estimate)
    if parts.estimate.audited is None:
        doubts += [pair.text for pair in parts.confusion.confused]
    target_rows = next(iter(parts.estimate.values())).sizes[2]
    if target_rows < LEAST_ROWS:
        doubts.append(
            f"Treat these shares as guesses: the target has {target_rows} rows. Collect at least {LEAST_ROWS}."
        )
    for category, message in warnings:
        if issubclass(category, FORBIDDING_WARNINGS):
            against.append(message)
        elif not issubclass(category, FormatNotice):
            doubts.append(message)
    answer: Answer = "no" if against else "with care" if doubts else "yes"
    undetectable = "A drift of the classes that imitates a change of their shares cannot be detected."
    reasons = tuple(dict.fromkeys((*against, *doubts)))
    verdict = ClassVerdict(answer, reasons, undetectable if answer == "yes" else "")
    return verdict, _next_steps(verdict, parts, has_new_class=p_new <= DOUBTED)


def _tested(parts: ClassParts, p_new: float, p_shift: float, note: str) -> tuple[list[str], list[str]]:
    """Return the reasons of the two tests against the shares, and those for care; `note` follows their p-values."""
    against: list[str] = []
    doubts: list[str] = []
    new_class, label_shift = parts.new_class_test, parts.label_shift_test
    if np.isnan(p_new):
        doubts.append(f"A new class in the target could not be tested: {new_class.reason}")
    elif p_new <= DOUBTED:
        extent = f": {new_class.bound}" if new_class.bound else ""
        consequence = "The estimate counts them as rows of other classes, so its shares are wrong."
        reason = f"{new_class.statement} ({format_p(p_new)}{note}){extent}. {consequence}"
        (against if p_new <= REFUTED else doubts).append(reason)
    if np.isnan(p_shift):
        doubts.append(f"Label shift could not be tested: {label_shift.reason}")
    elif p_shift <= DOUBTED:
        reason = f"{VIOLATED} ({format_p(p_shift)}{note}), whatever the shares of the classes."
        (against if p_shift <= REFUTED else doubts).append(reason)
    return against, doubts


def _not_credible(name: str, share: PriorEstimate) -> Iterator[str]:
    """Yield reasons not to publish the share of a class that hold whatever the tests say."""
    excess = max(-share.raw, share.raw - 1)  # beyond [0, 1], if positive
    if excess > OUTSIDE_ERRORS * share.standard_error:
        position = f"outside [0, 1] by {excess / share.standard_error:.0f} standard errors"
        cause = "The classes differ between source and target, or a source prior is wrong."
        yield f"The raw share {format_fixed(share.raw, 3)} of {name!r} is {position}. {cause}"
    if share.interval and share.interval.width > EMPTY_WIDTH:
        ends = f"{share.interval.low:.2f} to {share.interval.high:.2f}"
        yield f"The interval of {name!r}, {ends}, contains nearly every share."


def _doubts(name: str, share: PriorEstimate) -> Iterator[str]:
    """Yield reasons for care in the share of a class."""
    interval, rows = share.interval, share.sizes[0]
    if 0 < rows < FEW_POSITIVES:
        yield (
            f"Treat the share of {name!r} as a guess: it rests on {rows} labelled rows. Label at least {FEW_POSITIVES}."
        )
    if interval is None or interval.width > EMPTY_WIDTH:
        return
    prior = share.source_prior if name != REST else float("nan")
    if interval.width > useful_width(interval, prior):
        digits = decimals(interval.width)
        ends = f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
        yield f"The interval of {name!r}, {ends}, is wide for a share of this size."


def _doubted_priors(estimate: ClassPriors) -> Iterator[str]:
    """Yield a reason for care if most of the error of some shares comes from source priors."""
    if estimate.audited is not None:  # the intervals rely on the labels of the target alone
        return
    composition, names = estimate.composition, []
    for j, (name, share) in enumerate(estimate.items()):
        if composition is None or share.interval is None or not _NARROW < share.interval.width <= EMPTY_WIDTH:
            continue
        from_prior = (share.negative_ratio * composition.shares_error[j]) ** 2  # NaN without a source population
        if from_prior > _MOST_VARIANCE * share.standard_error**2:
            names.append(repr(name))
    if names:
        yield (
            f"Most of the error of {', '.join(names)} comes from source priors, which the tables do not determine. "
            "State those that are known from elsewhere, such as a survey or a register."
        )


def _next_steps(verdict: ClassVerdict, parts: ClassParts, *, has_new_class: bool) -> tuple[str, ...]:
    """Return recommendations, the most useful first."""
    steps, new_rows = [], parts.new_class_test.rows
    if has_new_class:
        shown = f", such as {numbered(new_rows[:5])}" if new_rows else ""
        steps.append(
            f"Look up the classes of rows that look like none of the source{shown}. If they are of a class of their "
            "own, label some of them and add it, or leave such rows out of the target."
        )
    elif verdict.doubts_label_shift:
        steps.append(
            "Find out whether all columns were measured in the target as in the source. Leave out those that cannot be "
            "compared, and repeat the diagnosis."
        )
    for pair in parts.confusion.confused[:1]:
        step = f"Add columns that distinguish {pair.first!r} from {pair.second!r}, or label more rows"
        if REST not in (pair.first, pair.second):
            step += ". Or merge the two classes: their total is estimated more precisely"
        steps.append(f"{step}.")
    if verdict.answer == "yes":
        basis = "assume label shift" if parts.estimate.audited is None else "rely on the looked-up classes"
        steps.append(f"Publish the shares with their intervals, and state that they {basis}.")
    elif verdict.answer == "with care":
        steps.append("If you publish now, publish the intervals with the reasons for care.")
    return tuple(steps)
