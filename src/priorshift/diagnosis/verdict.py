"""May I publish this number? One answer, and the reasons for it, the gravest first.

What to do next, in sentences with numbers; the most useful first, and nothing that the verdict forbids.

What stands in the way of the number comes first (the classes cannot be told apart, a source prior that contradicts the
tables, columns that moved by themselves), then what leaves it open (the source prior, few positives), then what would
make it surer. Classes that are looked up answer all of these, since they need no label shift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from priorshift.audit import LEAST, audit_size
from priorshift.diagnosis.identification import Identification, range_in_words
from priorshift.diagnosis.label_shift import LabelShiftTest, numbered
from priorshift.diagnosis.planning import Planning
from priorshift.diagnosis.sensitivity import Sensitivity
from priorshift.errors import InputError
from priorshift.formatting import TextReport, decimals, format_fixed, format_p
from priorshift.io.sample_checks import FEW_POSITIVES
from priorshift.results import PriorEstimate

DOUBTED = 0.05  # a p-value of label shift below which it is doubted
REFUTED = 0.01  # and below which a violation that matters forbids the number
_OUTSIDE = 3.0  # standard errors of a raw estimate outside [0, 1], beyond which it is no chance
_WIDE, EMPTY = 0.5, 0.9  # of an interval that hardly answers, and of one that does not
_DISAGREE = 0.15  # estimators of π so far apart
_FEW_ROWS = 30  # of a target
Answer = Literal["yes", "with care", "no"]


@dataclass(frozen=True)
class Verdict(TextReport):
    """The answer to "may I publish this number?".

    Attributes
    ----------
    answer : {"yes", "with care", "no"}
        The answer.
    reasons : tuple of str
        Sentences, the gravest first; none where it is "yes".
    note : str
        What no test can see, and how little of it would matter.
    """

    answer: Answer
    reasons: tuple[str, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give plain text, ready for JSON.

        Returns
        -------
        dict
        """
        return {"answer": self.answer, "reasons": list(self.reasons), "note": self.note}

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        head = {
            "yes": "Yes, with its interval: nothing in these tables speaks against it.",
            "with care": "With care.",
            "no": "No.",
        }[self.answer]
        lines = [f"May I publish this number? {head}", *(f"- {reason}" for reason in self.reasons)]
        return "\n".join([*lines, self.note] if self.note else lines)


UNJUDGED = Verdict("with care", ("Nothing was judged yet.",))


def judge(
    estimate: PriorEstimate,
    label_shift: LabelShiftTest,
    identification: Identification,
    sensitive: Sensitivity,
    *,
    said: Sequence[str] = (),
    grave: Sequence[str] = (),
    p_value: float | None = None,
    targets: int = 1,
) -> Verdict:
    """Put the parts together.

    Parameters
    ----------
    estimate : PriorEstimate
        The number.
    label_shift : LabelShiftTest
        Whether a change of the prior explains the target.
    identification : Identification
        What the tables can tell.
    sensitive : Sensitivity
        What the number rests on.
    said, grave : sequence of str
        What was odd about the tables, and what about them forbids the number.
    p_value : float or None
        Of the test of label shift, where it was adjusted for several targets; None is its own.
    targets : int
        How many.

    Returns
    -------
    Verdict
    """
    p = label_shift.p_value if p_value is None else p_value
    against = [*_nothing(identification), *_outside(estimate), *_contradicted(identification), *grave]
    doubts: list[str] = []
    if p <= DOUBTED:
        adjusted = format_p(p) + (f", adjusted for {targets} targets" if targets > 1 else "")
        broken, matters = _broken(label_shift, sensitive, adjusted)
        (against if matters and p <= REFUTED else doubts).append(broken)
    elif label_shift.surely_named and not np.isnan(p):
        doubts.append(f"{listed([c.name for c in label_shift.surely_named])} moved beyond what a change of the prior "
                      "explains, though all columns together did not.")  # fmt: skip
    elif np.isnan(p):
        doubts.append(f"Whether it is label shift could not be tested: {label_shift.reason}")
    if identification.level != "nothing":
        against += _empty(estimate)
        doubts += [
            *_open(identification),
            *_few(identification),
            *_few_rows(estimate),
            *_wide(estimate),
            *_moved(estimate, sensitive),
        ]
    answer: Answer = "no" if against else "with care" if doubts or said else "yes"
    note = _unseen(sensitive) if answer == "yes" else ""
    return Verdict(answer, tuple(dict.fromkeys((*against, *doubts, *said))), note)


def _nothing(found: Identification) -> list[str]:
    return [found.text] if found.level == "nothing" else []


def _contradicted(found: Identification) -> list[str]:
    if not found.contradicted or found.level == "nothing":
        return []
    given, told = found.source_prior_in_words, range_in_words(found.told_range)
    return [
        f"The source prior that was given ({given}) contradicts the tables, which leave {told}: it is wrong, or the "
        "labelled positives are not like those of the population, or the scenario is another (case-control, "
        "censoring), or the two source tables are swapped."
    ]


def _outside(estimate: PriorEstimate) -> list[str]:
    beyond = max(-estimate.raw, estimate.raw - 1)
    if not beyond > _OUTSIDE * estimate.standard_error:
        return []
    return [
        f"The raw estimate {format_fixed(estimate.raw, 3)} lies outside [0, 1] by "
        f"{beyond / estimate.standard_error:.0f} standard errors: the classes do not look the same in source and "
        "target, or the source prior is wrong."
    ]


def _broken(test: LabelShiftTest, sensitive: Sensitivity, p: str) -> tuple[str, bool]:
    """What breaks label shift, and whether it could move the estimate by half its interval."""
    words = f"A change of the prior does not explain the target ({p})"
    named = [column.name for column in test.named]
    if named:
        words += f"; {listed(named)} moved beyond it"
    half = sensitive.conclusion.half_width * (1 - sensitive.conclusion.source_prior)
    off = test.violation / test.separation * (1 - sensitive.conclusion.source_prior) if test.separation > 0 else np.inf
    if not np.isfinite(off):
        return f"{words}.", True
    if off == 0:  # seen in the scores alone
        return f"{words}.", False
    if off >= 1:
        return f"{words}. A violation as large as what is seen of it could move the estimate anywhere.", True
    return (
        f"{words}. A violation as large as what is seen of it could move the estimate by {off:.3f}, "
        f"{'more' if off >= half else 'less'} than half its interval ({half:.3f}).",
        off >= half,
    )


def _open(found: Identification) -> list[str]:
    made = []
    if found.level == "ratio":
        digits = decimals(found.ratio_high - found.ratio_low)
        made.append(
            f"The tables leave the source prior open, and the target prior between {found.target_low:.2f} and "
            f"{found.target_high:.2f}; what they tell is the ratio of negatives {found.ratio:.{digits}f} "
            f"({found.ratio_low:.{digits}f} to {found.ratio_high:.{digits}f}), which needs no source prior."
        )
    if not found.given and found.disagreement > _DISAGREE:
        told = [f"{name} {value:.2f}" for name, value in found.estimators.items() if name != "largest"]
        made.append(f"Estimators of the source prior disagree: {', '.join(told)}.")
    return made


def _few(found: Identification) -> list[str]:
    if found.effective_positives >= FEW_POSITIVES:
        return []
    positives = f"{found.effective_positives:.0f} positives"
    return [f"It rests on {positives}; take it as a guess, and label at least {FEW_POSITIVES}."]


def _few_rows(estimate: PriorEstimate) -> list[str]:
    rows = estimate.sizes[2]
    return (
        [f"The target has {rows} rows; take it as a guess, and bring at least {_FEW_ROWS}."] if rows < _FEW_ROWS else []
    )


def _wide(estimate: PriorEstimate) -> list[str]:
    if estimate.interval is None:
        return ["Its error is not known, so that there is no interval to publish beside it."]
    if not _WIDE < estimate.interval.width <= EMPTY:
        return []
    return [f"The interval, {estimate.interval.low:.2f} to {estimate.interval.high:.2f}, hardly answers."]


def _empty(estimate: PriorEstimate) -> list[str]:
    if estimate.interval is None or estimate.interval.width <= EMPTY:
        return []
    return [f"The interval, {estimate.interval.low:.2f} to {estimate.interval.high:.2f}, holds nearly every prior."]


def _unseen(sensitive: Sensitivity) -> str:
    """What looks like a change of the prior cannot be told from one."""
    move = sensitive.violation.half_width
    if move is None or not np.isfinite(move.shift):
        return ""
    return (
        f"No test sees a change that looks like one of the prior: rows that are shifted by {move.shift:.2g} standard "
        "deviations towards the positives or away from them would move it by half its interval."
    )


def _moved(estimate: PriorEstimate, sensitive: Sensitivity) -> list[str]:
    """Choices that should not matter and do: by more than chance, and by more than half the interval."""
    half = estimate.interval.width / 2 if estimate.interval is not None else 0.0
    moved = [v for v in sensitive.variants if v.is_clear and abs(v.moved) > half]
    if not moved:
        return []
    worst = max(moved, key=lambda v: abs(v.moved))
    how = worst.name if worst.name.startswith("without") else f"with {worst.name}"
    by = format_fixed(worst.moved, 3, "+")
    return [f"It changes by {by} {how}, which is more than chance and more than half its interval."]


def listed(names: list[str]) -> str:
    """Quote names of columns for a sentence, the first three of them.

    Parameters
    ----------
    names : list of str
        One or more.

    Returns
    -------
    str
    """
    shown = [repr(name) for name in names[:3]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


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
