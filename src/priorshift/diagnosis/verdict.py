"""May I publish this number? One answer, and the reasons for it, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from priorshift.diagnosis.identification import Identification, range_in_words
from priorshift.diagnosis.label_shift import LabelShiftTest
from priorshift.diagnosis.sensitivity import Sensitivity
from priorshift.diagnosis.worded import Worded
from priorshift.input.source import FEW_POSITIVES
from priorshift.numerals import p_words, written
from priorshift.result import PriorEstimate, decimals

DOUBTED = 0.05  # a p-value of label shift below which it is doubted
REFUTED = 0.01  # and below which a violation that matters forbids the number
_OUTSIDE = 3.0  # standard errors of a raw estimate outside [0, 1], beyond which it is no chance
_WIDE, EMPTY = 0.5, 0.9  # of an interval that hardly answers, and of one that does not
_DISAGREE = 0.15  # estimators of π so far apart
_FEW_ROWS = 30  # of a target
Answer = Literal["yes", "with care", "no"]


@dataclass(frozen=True)
class Verdict(Worded):
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
    def words(self) -> str:  # numpydoc ignore=RT01
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
        adjusted = p_words(p) + (f", adjusted for {targets} targets" if targets > 1 else "")
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
    return [found.words] if found.level == "nothing" else []


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
        f"The raw estimate {written(estimate.raw, 3)} lies outside [0, 1] by {beyond / estimate.standard_error:.0f} "
        "standard errors: the classes do not look the same in source and target, or the source prior is wrong."
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
    by = written(worst.moved, 3, "+")
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
