"""What to do next, in sentences with numbers; the most useful first, and nothing that the verdict forbids.

What stands in the way of the number comes first (the classes cannot be told apart, a source prior that contradicts the
tables, columns that moved by themselves), then what leaves it open (the source prior, few positives), then what would
make it surer. Classes that are looked up answer all of these, since they need no label shift.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priorshift.audit import LEAST, audit_size
from priorshift.diagnosis.identification import Identification, range_in_words
from priorshift.diagnosis.label_shift import LabelShiftTest, numbered
from priorshift.diagnosis.planning import Planning
from priorshift.diagnosis.verdict import DOUBTED, Verdict, listed
from priorshift.errors import InputError
from priorshift.input.source import FEW_POSITIVES
from priorshift.result import PriorEstimate

_MOST = 4  # steps
_WIDTH = 0.2  # of the interval that an audit alone is to give
_LABELS = 100  # that are looked up beside the tables
_WORTH = 0.05  # of a width, that labels must take away to be worth it
_SWAPPED = -5.0  # standard errors of a separation of the wrong sign
_MOSTLY = 0.5  # of a variance


def next_steps(
    verdict: Verdict,
    estimate: PriorEstimate,
    label_shift: LabelShiftTest,
    identification: Identification,
    planning: Planning,
) -> tuple[str, ...]:
    """Say what to do next.

    Parameters
    ----------
    verdict : Verdict
        Whether the number may be published.
    estimate : PriorEstimate
        The number.
    label_shift : LabelShiftTest
        Whether a change of the prior explains the target.
    identification : Identification
        What the tables can tell.
    planning : Planning
        What would narrow the interval.

    Returns
    -------
    tuple of str
        At most four sentences.
    """
    steps = [
        *_publish(verdict, identification),
        *_leave_out(verdict),
        *_tell_apart(identification),
        *_mend_prior(identification),
        *_look_at_columns(label_shift),
        *_few_positives(identification),
        *_find_prior(identification, planning),
        *_look_up(verdict, estimate, label_shift, identification, planning),
        *_more_rows(verdict, planning),
    ]
    return tuple(dict.fromkeys(steps))[:_MOST]


def _publish(verdict: Verdict, found: Identification) -> Iterator[str]:
    if verdict.answer == "yes":
        yield "Publish the estimate with its interval, and say beside it that it rests on label shift and on " + (
            f"the source prior {found.source_prior:.3g}." if found.given else "a source prior that the tables tell."
        )
    elif verdict.answer == "with care" and found.level == "ratio":
        yield (
            f"If you publish now, publish the band {found.target_low:.2f} to {found.target_high:.2f}, or the ratio of "
            f"negatives {found.ratio:.2f}, rather than the one number."
        )
    elif verdict.answer == "with care":
        yield "If you publish now, publish the interval rather than the one number, and the reasons for care beside it."


def _leave_out(verdict: Verdict) -> Iterator[str]:
    """A column that should not be there spoils all that follows."""
    named = [reason for reason in verdict.reasons if "--drop" in reason]
    if named:
        yield f"Before anything else: {named[0]}"


def _tell_apart(found: Identification) -> Iterator[str]:
    if found.level != "nothing":
        return
    if found.separation < _SWAPPED:
        yield "Check whether positives and unlabelled rows are swapped: they differ, but the wrong way round."
    else:
        yield (
            f"Add columns that tell the positives from the population, or label more positives: the {found.positives} "
            f"there are lie {max(found.separation, 0.0):.1f} standard errors from the population, and it takes 1.6."
        )


def _mend_prior(found: Identification) -> Iterator[str]:
    if not found.contradicted or found.level == "nothing":
        return
    yield (
        f"Check the source prior {found.source_prior_in_words}, for which the tables leave "
        f"{range_in_words(found.told_range)}: is it of the population that the unlabelled rows are a sample of?"
    )
    yield (
        "Check the scenario: if the unlabelled rows are what was left after some positives were labelled, it is "
        '"censoring".'
    )


def _look_at_columns(test: LabelShiftTest) -> Iterator[str]:
    moved = [c.name for c in (test.named if test.p_value <= DOUBTED else test.surely_named)]
    if moved:
        them = "it was" if len(moved) == 1 else "they were"
        yield (
            f"Look at {listed(moved)}: find out whether {them} measured in the target as in the source; mend that, or "
            "leave out what cannot be compared, and ask again."
        )
    elif test.p_value <= DOUBTED and test.rows:
        yield f"Look at {numbered(test.rows[:5])}: the source hardly has any of their kind."
    elif test.reason:
        yield f"Add rows, so that label shift can be tested: {test.reason}"


def _few_positives(found: Identification) -> Iterator[str]:
    if found.effective_positives < FEW_POSITIVES:
        more = int(np.ceil(FEW_POSITIVES - found.effective_positives))
        yield f"Label {more} more positives at least: the estimate rests on {found.effective_positives:.0f}."


def _find_prior(found: Identification, planning: Planning) -> Iterator[str]:
    if found.level == "nothing" or not found.variance_from_prior > _MOSTLY:
        return
    step = (
        f"Find the source prior from outside, such as a survey or a register: {found.variance_from_prior:.0%} of the "
        "estimate's variance is from it"
    )
    labels = min(_LABELS, planning.sizes["unlabeled"])
    then = planning.predict_audit(unlabeled=labels) if labels >= LEAST else float("nan")
    if then < (1 - _WORTH) * planning.expected_width:
        step += (
            f"; or look up the classes of {labels} unlabelled rows, drawn at random (audit=, --audit-column), which "
            f"would make the interval {then:.2g} wide in place of an expected {planning.expected_width:.2g}"
        )
    yield f"{step}."


def _look_up(
    verdict: Verdict,
    estimate: PriorEstimate,
    test: LabelShiftTest,
    found: Identification,
    planning: Planning,
) -> Iterator[str]:
    """Classes of target rows: alone where the tables are not to be trusted, else beside them."""
    rows = planning.sizes["target"]
    if "target" in estimate.details.get("audit", {}) or rows < LEAST:
        return
    how = "drawn at random, and pass them as audit (audit=, --audit-column)"
    if verdict.answer == "no" or test.p_value <= DOUBTED:
        share = estimate.value if np.isfinite(estimate.value) and found.level != "nothing" else 0.5
        try:
            labels = audit_size(_WIDTH, min(max(share, 0.02), 0.98), rows=rows, confidence=planning.confidence)
        except InputError:  # the target has not so many rows
            return
        yield (
            f"Look up the classes of about {labels} rows of the target, {how}: by themselves, without any of these "
            f"assumptions, they give an interval about {_WIDTH:g} wide."
        )
        return
    labels = min(_LABELS, rows)
    now, then = planning.expected_width, planning.predict_audit(target=labels)
    if then < (1 - _WORTH) * now:
        yield (
            f"Look up the classes of {labels} rows of the target, {how}: the interval would be {then:.2g} wide in "
            f"place of an expected {now:.2g}, and label shift would be checked by them."
        )


def _more_rows(verdict: Verdict, planning: Planning) -> Iterator[str]:
    if planning.reason is None and verdict.answer != "no":
        yield planning.next_step
