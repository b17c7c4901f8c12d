"""May this number be published? One answer with its reasons, the most serious first, and what to do next.

Next steps start with what forbids the number (classes that cannot be separated, a source prior that contradicts the
tables, columns that drifted), then what leaves it open (the source prior, few positives), then what would make it more
precise. Audited labels help with all of these, since they need no label shift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from priorshift.audit import audit_size
from priorshift.diagnosis.columns import Driver
from priorshift.diagnosis.identification import Identification, TextReport
from priorshift.diagnosis.planning import Planning
from priorshift.diagnosis.sensitivity import Sensitivity
from priorshift.diagnosis.shift_tests import LabelShiftTest, ShiftTest, numbered
from priorshift.errors import ColumnWarning, DuplicateRowsWarning, InconsistentInputWarning, InputError, IntervalWarning
from priorshift.formatting import decimals, format_fixed, format_p
from priorshift.io.labels import LEAST
from priorshift.io.sample_size import FEW_POSITIVES
from priorshift.results import EMPTY_WIDTH, Interval, PriorEstimate
from priorshift.scores.ratio_test import LEAST_SEPARATION
from priorshift.warning_records import FormatNotice, WarningRecord

FORBIDDING_WARNINGS = (InconsistentInputWarning,)  # a number whose tables have these must not be published
TABLE_WARNINGS = (ColumnWarning, DuplicateRowsWarning, IntervalWarning, *FORBIDDING_WARNINGS)  # that a verdict quotes
DOUBTED = 0.05  # p-value of label shift up to which it is in doubt
REFUTED = 0.01  # p-value up to which a violation that matters forbids the number
_WIDE = 0.5  # width above which an interval says little, whatever the prevalence
OUTSIDE_ERRORS = 3.0  # standard errors of a raw estimate outside [0, 1] that are more than chance
_DISAGREEMENT = 0.15  # difference of two estimates of π that is reported
LEAST_ROWS = 30  # of a target, below which an estimate is a guess
_MOST_STEPS = 4  # recommendations
_AUDIT_WIDTH, _LEAST_AUDIT_WIDTH = 0.2, 0.02  # largest and smallest of the interval that an audit alone is to give
_AUDIT_LABELS = 100  # to add to the tables
_MOST_AUDITED = 0.5  # share of the target's rows that an audit may ask for; who can look up more needs no estimate
_LEAST_GAIN = 0.05  # share of the width that labels must save to be recommended
# An estimate gets no plain yes if P is fewer standard errors from U, or if the classes overlap and more of the scores
# is noise, or fewer positives were labelled: a separation that is large by chance goes with an interval that misses
# (the study weak_separation).
_CLEAR_SEPARATION, _MOST_NOISE, _MOST_OVERLAP, _ENOUGH_POSITIVES = 4.0, 0.2, 0.1, 200
_SWAPPED = -5.0  # standard errors of a separation of the wrong sign
_MOST_VARIANCE = 0.5  # share of the variance that comes from π, above which π should be found from elsewhere
VIOLATED = "A change in prevalence does not explain the target"  # starts the reason that label shift is in doubt
Answer = Literal["yes", "with care", "no"]


@dataclass(frozen=True)
class Verdict(TextReport):
    """The answer to "May I publish this number?"."""

    answer: Answer
    reasons: tuple[str, ...]  # sentences, the most serious first; none for "yes"
    note: str = ""  # what no test can detect, and how much of it would matter

    question: ClassVar[str] = "May I publish this number?"
    yes: ClassVar[str] = "Yes, with its interval: nothing in these tables contradicts it."

    @property
    def doubts_label_shift(self) -> bool:
        """Whether a test contradicts label shift, by its p-value adjusted for the number of targets."""
        return any(reason.startswith(VIOLATED) for reason in self.reasons)

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        answer = self.yes if self.answer == "yes" else f"{self.answer.capitalize()}."
        lines = [f"{self.question} {answer}", *(f"- {reason}" for reason in self.reasons)]
        return "\n".join([*lines, self.note] if self.note else lines)


@dataclass(frozen=True, kw_only=True)
class DiagnosisParts:
    """What a diagnosis computes, before its verdict."""

    estimate: PriorEstimate
    shift_test: ShiftTest
    label_shift_test: LabelShiftTest
    identification: Identification
    sensitivity: Sensitivity
    planning: Planning
    drivers: tuple[Driver, ...] = ()


def judge(
    parts: DiagnosisParts, warnings: Sequence[WarningRecord], p_value: float | None = None, targets: int = 1
) -> Verdict:
    """Judge whether an estimate may be published.

    `warnings` are those of tables and fits; `p_value` is that of label shift, adjusted for the number of `targets`.
    Default: the one of the label-shift test, for a single target.
    """
    estimate, identification, label_shift = parts.estimate, parts.identification, parts.label_shift_test
    p = label_shift.p_value if p_value is None else p_value
    forbidding = [message for category, message in warnings if issubclass(category, FORBIDDING_WARNINGS)]
    cautions = [
        message for category, message in warnings if not issubclass(category, (*FORBIDDING_WARNINGS, FormatNotice))
    ]
    against, doubts = [*_not_credible(estimate, identification), *forbidding], []
    has_audit = "target" in estimate.details.get("audit", {})  # its interval needs neither label shift nor the source
    if has_audit:
        against, doubts = [], against
    if np.isnan(p):
        doubts.append(f"Label shift could not be tested: {label_shift.reason}")
    elif p <= DOUBTED:
        adjusted = format_p(p) + (f", adjusted for {targets} targets" if targets > 1 else "")
        reason, matters = _violated_label_shift(label_shift, parts.sensitivity, adjusted)
        if matters and p <= REFUTED and not has_audit:
            against.append(reason)
        else:
            doubts.append(reason)
    elif label_shift.clearly_moved_columns:
        names = _quote_names([column.name for column in label_shift.clearly_moved_columns])
        doubts.append(f"{names} moved more than a change in prevalence explains, though all columns together did not.")
    if identification.level != "nothing":
        interval = estimate.interval
        if interval and interval.width > EMPTY_WIDTH:
            against.append(f"The interval, {interval.low:.2f} to {interval.high:.2f}, contains nearly every prior.")
        doubts += _doubts(estimate, identification, parts.sensitivity)
    answer: Answer = "yes"
    if against:
        answer = "no"
    elif doubts or cautions:
        answer = "with care"
    move, note = parts.sensitivity.violation.half_width, ""
    if answer == "yes" and move is not None and np.isfinite(move.shift):
        shift = f"a shift of the target's rows by {move.shift:.2g} standard deviations towards the positives, or away"
        consequence = f"{shift} from them, would move the estimate by half its interval"
        note = f"A drift that imitates a change in prevalence cannot be detected: {consequence}."
    reasons = dict.fromkeys((*against, *doubts, *cautions))  # without repetitions
    return Verdict(answer, tuple(reasons), note)


def _not_credible(estimate: PriorEstimate, identification: Identification) -> Iterator[str]:
    """Yield reasons not to publish an estimate that hold whatever the tests say."""
    if identification.level == "nothing":
        yield identification.text
    excess = max(-estimate.raw, estimate.raw - 1)  # beyond [0, 1], if positive
    if excess > OUTSIDE_ERRORS * estimate.standard_error:
        position = f"outside [0, 1] by {excess / estimate.standard_error:.0f} standard errors"
        cause = "The classes differ between source and target, or the source prior is wrong."
        yield f"The raw estimate {format_fixed(estimate.raw, 3)} is {position}. {cause}"
    if identification.contradicted and identification.level != "nothing":
        prior, largest = identification.source_prior_text, identification.largest_text
        yield (
            f"The given source prior ({prior}) contradicts the tables, by which it is at most {largest}. Either it is "
            "wrong, or the labelled positives are not typical, or the scenario is wrong, or source tables are swapped."
        )


def _doubts(estimate: PriorEstimate, identification: Identification, sensitivity: Sensitivity) -> Iterator[str]:
    """Yield reasons for care in an estimate that the tables determine, at least given the source prior."""
    interval, positives, rows = estimate.interval, identification.effective_positives, estimate.sizes[2]
    if identification.level == "ratio":
        between = f"{identification.target_low:.2f} and {identification.target_high:.2f}"
        yield (
            f"The tables do not determine the source prior, so the target prior is between {between}. They determine "
            f"the ratio of negatives, {identification.ratio_text}, which needs no source prior."
        )
    estimates = {name: value for name, value in identification.estimators.items() if name != "largest"}
    finite = [value for value in estimates.values() if np.isfinite(value)]
    if not identification.given and finite and max(finite) - min(finite) > _DISAGREEMENT:
        values = ", ".join(f"{name} {value:.2f}" for name, value in estimates.items())
        yield f"Estimators of the source prior disagree: {values}."
    separation, noise = identification.separation, identification.score_noise
    is_uncertain = noise > _MOST_NOISE or positives < _ENOUGH_POSITIVES
    if separation < _CLEAR_SEPARATION or (is_uncertain and identification.overlap > _MOST_OVERLAP):
        yield (
            f"The scores that the estimate rests on are {noise:.0%} noise, and the positives are "
            f"{separation:.1f} standard errors from the population. Label more positives, or add "
            "columns that distinguish them."
        )
    audited = sensitivity.labeling.audited
    if audited is not None and sensitivity.labeling.is_atypical:
        yield (
            f"The {audited.count} audited positives differ from the labelled ones ({format_p(audited.p_value)}), so "
            "these are not a random sample of all positives, as the estimate assumes."
        )
    if positives < FEW_POSITIVES:
        yield f"Treat this estimate as a guess: it rests on {positives:.0f} positives. Label at least {FEW_POSITIVES}."
    if rows < LEAST_ROWS:
        yield f"Treat this estimate as a guess: the target has {rows} rows. Collect at least {LEAST_ROWS}."
    if interval is None:
        yield "The error of the estimate is not known, so there is no interval to publish with it."
    elif interval.width <= EMPTY_WIDTH and interval.width > useful_width(interval, estimate.source_prior):
        digits = decimals(interval.width)
        ends = f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
        yield f"The interval, {ends}, is wide for a prevalence of this size."
    half_width = interval.width / 2 if interval is not None else 0.0
    clear = [variant for variant in sensitivity.variants if variant.is_clear and abs(variant.moved) > half_width]
    if clear:
        worst = max(clear, key=lambda variant: abs(variant.moved))
        changed = worst.name if worst.name.startswith("without") else f"with {worst.name}"
        change = format_fixed(worst.moved, 3, "+")
        yield f"The estimate changes by {change} {changed}, which is more than chance and more than half its interval."


def useful_width(interval: Interval, source_prior: float) -> float:
    """Return the largest width of an interval that is useful for its prevalence.

    It is the geometric mean of the shares of the rarer class in target (at the middle of the interval) and source, and
    at most 0.5: 0.02 to 0.05 says something about a class with prior 0.03, and 0.00 to 0.39 does not.
    """
    middle = (interval.low + interval.high) / 2
    shares = [min(prior, 1 - prior) for prior in (middle, source_prior) if np.isfinite(prior)]
    return min(float(np.prod(shares) ** (1 / len(shares))), _WIDE)


def _violated_label_shift(test: LabelShiftTest, sensitivity: Sensitivity, p_text: str) -> tuple[str, bool]:
    """Return a sentence on a detected violation of label shift, and whether it could move π̂′ by half its interval.

    A violation of size ‖e‖ moves R̂ at most by ‖e‖/‖μ_U − μ_P‖, and π̂′ by q−π times that, where q is the share of
    positives among the labelled rows. `p_text` is its p-value.
    """
    text = f"{VIOLATED} ({p_text})"
    if test.moved_columns:
        text += f": {_quote_names([column.name for column in test.moved_columns])} moved more than that"
    factor = sensitivity.conclusion.purity - sensitivity.conclusion.source_prior
    half_width = sensitivity.conclusion.half_width * factor
    change = test.violation / test.separation * factor if test.separation > 0 else np.inf
    if not 0 < change < np.inf:  # 0 where the violation was detected in the scores alone; it can also be NaN
        return f"{text}.", change != 0
    compared = "more" if change >= half_width else "less"
    extent = "anywhere" if change >= 1 else f"by {change:.3f}, {compared} than half its interval ({half_width:.3f})"
    text += f". A violation as large as the detected one could move the estimate {extent}."
    return text, change >= min(half_width, 1)


def _quote_names(names: Sequence[str]) -> str:
    """Quote at most three names for a sentence, and count the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more


def next_steps(verdict: Verdict, parts: DiagnosisParts) -> tuple[str, ...]:
    """Return at most four recommendations, the most useful first."""
    identification, planning = parts.identification, parts.planning
    # the first warning that recommends --drop, such as one of a column that reveals the label
    drop_columns = [f"Before anything else: {reason}" for reason in verdict.reasons if "--drop" in reason][:1]
    steps = [
        *_what_to_publish(verdict, identification), *drop_columns, *_check_source(identification),
        *_check_columns(parts.label_shift_test, verdict.doubts_label_shift),
    ]  # fmt: skip
    effective = identification.effective_positives
    if effective < FEW_POSITIVES:
        more = int(np.ceil(FEW_POSITIVES - effective - 1e-9))  # 1e-9 undoes rounding errors
        steps.append(f"Label at least {more} more positives: the estimate rests on {effective:.0f}.")
    steps += [*_find_source_prior(identification, planning), *_audit_target(verdict, parts)]
    if planning.reason is None and verdict.answer != "no":
        steps.append(planning.next_step)
    return tuple(dict.fromkeys(steps))[:_MOST_STEPS]


def _what_to_publish(verdict: Verdict, identification: Identification) -> Iterator[str]:
    """Yield a recommendation of which numbers to publish."""
    if verdict.answer == "yes":
        given_prior = f"the source prior {identification.source_prior:.3g}"
        prior = given_prior if identification.given else "a source prior that was estimated from the tables"
        yield f"Publish the estimate with its interval, and state that it assumes label shift and {prior}."
    elif verdict.answer == "with care" and identification.level == "ratio":
        ends = f"{identification.target_low:.2f} to {identification.target_high:.2f}"
        yield f"If you publish now, publish the range {ends} or the ratio of negatives {identification.ratio:.2f}."
    elif verdict.answer == "with care":
        yield "If you publish now, publish the interval rather than one number, with the reasons for care."


def _check_source(identification: Identification) -> Iterator[str]:
    """Yield recommended checks of the source tables and of the given source prior."""
    separation = identification.separation
    if identification.level == "nothing" and separation < _SWAPPED:
        yield "Check whether positives and unlabelled rows are swapped: they differ in the wrong direction."
    elif identification.level == "nothing":
        needed = f"at least {LEAST_SEPARATION:.1f} are needed"
        if separation > LEAST_SEPARATION:
            needed = "which is too little for this target"
        errors = f"{max(separation, 0.0):.1f} standard errors, {needed}"
        yield f"Add columns that distinguish the positives, or label more of them: their separation is {errors}."
    elif identification.contradicted:
        possible = f"which is at most {identification.largest_text} by the tables"
        question = "does it refer to the population that the unlabelled rows are a sample of?"
        yield f"Check the source prior {identification.source_prior_text}, {possible}: {question}"
        yield 'Check the scenario: if the unlabelled rows are those left after some were labelled, use "censoring".'


def _check_columns(test: LabelShiftTest, rejected: bool) -> Iterator[str]:
    """Yield recommended checks of the columns and rows that contradict label shift, if a test `rejected` it."""
    moved_columns = test.moved_columns if rejected else test.clearly_moved_columns
    moved = [column.name for column in moved_columns]
    if moved:
        subject = "it was" if len(moved) == 1 else "they were"
        names, question = _quote_names(moved), f"find out whether {subject} measured in the target as in the source"
        yield f"Check {names}: {question}. Correct or leave out what cannot be compared, and repeat the diagnosis."
    elif rejected and test.rows:
        yield f"Check {numbered(test.rows[:5])}: the source has hardly any similar rows."
    elif test.reason:
        yield f"Add rows, so that label shift can be tested: {test.reason}"


def _find_source_prior(identification: Identification, planning: Planning) -> Iterator[str]:
    """Yield a recommendation of a survey or an audit of the source, if most of the variance comes from its prior."""
    if identification.level == "nothing" or not identification.variance_from_prior > _MOST_VARIANCE:  # or NaN
        return
    share = f"{identification.variance_from_prior:.0%} of the estimate's variance comes from it"
    step = f"Find the source prior from elsewhere, such as a survey or a register: {share}"
    labels = min(_AUDIT_LABELS, planning.sizes["unlabeled"])
    width = planning.predict_audit(unlabeled=labels) if labels >= LEAST else float("nan")
    if width < (1 - _LEAST_GAIN) * planning.expected_width:  # never where the width is NaN
        gain = f"the expected width of the interval is then {width:.2g} instead of {planning.expected_width:.2g}"
        step += f". Or audit {labels} unlabelled rows, drawn at random (audit=, --audit-column): {gain}"
    yield f"{step}."


def _audit_target(verdict: Verdict, parts: DiagnosisParts) -> Iterator[str]:
    """Yield a recommendation to audit target rows: alone if the tables cannot be trusted, else combined with them."""
    estimate, planning, rows = parts.estimate, parts.planning, parts.planning.sizes["target"]
    if "target" in estimate.details.get("audit", {}) or rows < LEAST:
        return
    action = "random rows of the target and pass them as an audit (audit=, --audit-column)"
    if verdict.answer == "no" or verdict.doubts_label_shift:
        interval = estimate.interval
        is_empty = interval is not None and interval.width > EMPTY_WIDTH
        known = np.isfinite(estimate.value) and parts.identification.level != "nothing" and not is_empty
        share = min(max(estimate.value if known else 0.5, 0.02), 0.98)
        useful = useful_width(estimate.interval, estimate.source_prior) if known and estimate.interval else 1.0
        with suppress(InputError):  # raised where the target has too few rows
            width = min(_AUDIT_WIDTH, max(useful, _LEAST_AUDIT_WIDTH))
            labels = audit_size(width, share, rows=rows, confidence=planning.confidence)
            for factor in (2, 3):  # a wider interval needs fewer labels
                if labels > _MOST_AUDITED * rows and factor * width <= 2 * _AUDIT_WIDTH:
                    wider = factor * width
                    labels_for_wider = audit_size(wider, share, rows=rows, confidence=planning.confidence)
                    if labels_for_wider <= _MOST_AUDITED * rows:
                        labels, width = labels_for_wider, wider
                        break
            if labels > _MOST_AUDITED * rows:
                yield (
                    f"Collect more rows of the target, or look up the classes of all {rows}: an audit would need "
                    f"{labels} of them for an interval of width {width:.2g}."
                )
            else:
                gain = f"without any of these assumptions they give an interval of width {width:.2g}"
                yield f"Look up the classes of about {labels} {action}: {gain}."
        return
    labels = min(_AUDIT_LABELS, int(_MOST_AUDITED * rows))
    if labels < LEAST:
        return
    present, audited = planning.expected_width, planning.predict_audit(target=labels)
    if audited < (1 - _LEAST_GAIN) * present:
        gain = f"the expected width of the interval is then {audited:.2g} instead of {present:.2g}"
        yield f"Look up the classes of {labels} {action}: {gain}, and label shift is checked by them."


def warnings_of_target(name: str, targets: Sequence[str], records: Sequence[WarningRecord]) -> list[WarningRecord]:
    """Return the warnings that concern one of several targets: all but those whose message names only others."""
    own, others = f"target {name!r}", [f"target {other!r}" for other in targets if other != name]
    return [(kind, text) for kind, text in records if own in text or not any(other in text for other in others)]
