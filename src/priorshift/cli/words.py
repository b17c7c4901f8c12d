"""Results in words on stdout: the estimate and its interval bold, the answer of a diagnosis in its colour."""

from __future__ import annotations

import re

from priorshift.cli.colours import ANSWERS, BOLD, painted, printable
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.prior_estimates import PriorEstimates
from priorshift.result import PriorEstimate


def print_result(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> None:
    """Print what `str` makes of it; of several estimates also whether they are equal."""
    text = printable(str(result))
    if isinstance(result, PriorEstimates):
        text = _with_columns(text, len(result) + (result.pooled is not None), after="rows")
        if result.joint is not None and len(result) > 1:
            text += f"\n{result.equality_test()}"
    elif isinstance(result, Diagnoses):
        text = _with_columns(text, len(result), after="publish?")
    elif isinstance(result, Diagnosis):
        text = _with_answer(_with_estimate(text, result.estimate))
    else:
        text = _with_estimate(text, result)
    print(text)


def print_answer(found: Diagnosis) -> None:
    """Print whether the number may be published, and the number, in two lines."""
    print(_with_answer(str(found.verdict).partition("\n")[0]))
    print_result(found.estimate)


def _with_answer(text: str) -> str:
    return re.sub(r"(?<=^May I publish this number\? )[\w ]+", _answer, text)


def _with_estimate(text: str, estimate: PriorEstimate) -> str:
    """What stands before the brackets of its line is the number and its interval."""
    number = str(estimate).partition(" (")[0]
    return text.replace(number, painted(number, BOLD), 1)


def _answer(found: re.Match[str]) -> str:
    return painted(found[0], ANSWERS.get(found[0].strip().lower(), BOLD))


def _with_columns(text: str, count: int, after: str) -> str:
    """A table of so many rows with its answers coloured, and bold columns after one of them up to the intervals."""
    header, *rows = text.split("\n")
    start = header.rindex(after) + len(after)
    end = header.index("interval", start) + len("interval") if "interval" in header[start:] else len(header)
    for k, row in enumerate(rows[:count]):
        answer = re.sub(rf"({'|'.join(ANSWERS)})$", _answer, row[:start])
        rows[k] = answer + painted(row[start:end], BOLD) + row[end:]
    return "\n".join([header, *rows])
