"""What a diagnosis was asked with, in plain values: enough to ask again.

What a diagnosis is: a verdict, and the parts that it rests on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from priorshift import result_tables
from priorshift.diagnosis.columns import Driver
from priorshift.diagnosis.identification import Identification
from priorshift.diagnosis.label_shift import LabelShiftTest
from priorshift.diagnosis.planning import Planning
from priorshift.diagnosis.sensitivity import Sensitivity
from priorshift.diagnosis.shift_test import ShiftTest
from priorshift.diagnosis.verdict import Verdict, next_steps
from priorshift.formatting import decimals, format_p_cell, wrap_lines
from priorshift.inference.joint import holm
from priorshift.io.column_uses import ColumnUse
from priorshift.prior_estimates import PriorEstimates, TargetResults
from priorshift.problem import Problem
from priorshift.results import PriorEstimate


def run_settings(estimator: BaseEstimator, problem: Problem, threshold: float | None) -> dict[str, Any]:
    """Return the settings that differ from the defaults, and the random state, ready for JSON."""
    given, usual = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    made = {
        name: _plain(value)
        for name, value in given.items()
        if name not in ("verbose", "device") and (name == "random_state" or not _is(value, usual[name]))
    }
    tables = [sample.data for sample in (problem.unlabeled, problem.positive, *problem.targets.values())]
    dropped = list(dict.fromkeys(column for table in tables for column in table.dropped if column != problem.by))
    more = {**vars(problem.columns), "drop": dropped or None, "threshold": threshold, "by": problem.by}
    return made | {name: _plain(value) for name, value in more.items() if value is not None}


def _is(value: Any, other: Any) -> bool:
    return value is other or (isinstance(value, (int, float, str)) and bool(value == other))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # columns that were passed as values
        return {name: "values" for name in value}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    distribution = getattr(value, "dist", None)
    if distribution is not None and hasattr(
        distribution, "name"
    ):  # a frozen distribution, whose own text is an address
        arguments = [*map(repr, value.args), *(f"{name}={number!r}" for name, number in value.kwds.items())]
        return f"scipy.stats.{distribution.name}({', '.join(arguments)})"
    if isinstance(value, np.random.Generator):
        return "a Generator"
    return repr(value)


_QUESTIONS = {
    "shift_test": "Is there a shift?",
    "label_shift_test": "Is it label shift?",
    "identification": "Can the tables tell?",
    "sensitivity": "What would change it?",
    "planning": "What would narrow it?",
}


@dataclass(frozen=True)
class Diagnosis:
    """Whether an estimate may be believed, and why; it prints as a page.

    Attributes
    ----------
    verdict : Verdict
        May this number be published? With reasons.
    estimate : PriorEstimate
        The number.
    shift_test : ShiftTest
        Whether the prior has changed at all.
    label_shift_test : LabelShiftTest
        Whether a change of the prior explains the target, and which columns and rows speak against it.
    identification : Identification
        What the tables can tell.
    sensitivity : Sensitivity
        What the number rests on, and how wrong assumptions may be before the conclusion changes.
    planning : Planning
        How sure more rows would make it.
    drivers : tuple of Driver
        The columns that tell positives from the population, the most important first; none where nothing does.
    columns : tuple of ColumnUse
        What was done with each column of the tables.
    settings : dict
        What was asked with, but for defaults, in plain values; with "random_state".

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> found = ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    >>> found.verdict.answer, found.label_shift_test.p_value > 0.05
    ('yes', True)
    """

    verdict: Verdict
    estimate: PriorEstimate
    shift_test: ShiftTest
    label_shift_test: LabelShiftTest
    identification: Identification
    sensitivity: Sensitivity
    planning: Planning
    drivers: tuple[Driver, ...] = ()
    columns: tuple[ColumnUse, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def next_steps(self) -> tuple[str, ...]:  # numpydoc ignore=RT01
        """What to do next, in at most four sentences, the most useful first."""
        return next_steps(self.verdict, self.estimate, self.label_shift_test, self.identification, self.planning)

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        return {
            **{name: getattr(self, name).to_dict() for name in ("verdict", "estimate", *_QUESTIONS)},
            "next_steps": list(self.next_steps),
            **_of_source(self),
        }

    def plot(self, part: str | None = None, ax: Any = None) -> Any:
        """Draw a part.

        Parameters
        ----------
        part : str or None
            Which of "shift_test", "label_shift_test", "identification", "sensitivity", "variants", "planning" and
            "drivers"; None draws all but the last, in a new figure.
        ax : matplotlib Axes or None
            Where to draw one part; a new figure by default.

        Returns
        -------
        matplotlib Axes
            Of several, the first.
        """
        from priorshift.plots.functions import plot_diagnosis  # only those who draw need it

        return plot_diagnosis(self, part, ax)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, command: str | None = None) -> None:
        """Write a page that can be forwarded: one HTML file for screen and paper, which needs no network.

        Parameters
        ----------
        path : str or path
            Of the file, which is written whole or not at all.
        title : str or None
            Its heading.
        command : str or None
            What is shown as the command that repeats it.
        """
        from priorshift.report import write

        write(self, path, title=title, command=command)

    def __str__(self) -> str:
        parts = [str(self.verdict), str(self.estimate)]
        for name, question in _QUESTIONS.items():
            words = self.planning.composition if name == "planning" else getattr(self, name).text
            parts.append(f"{question}\n{wrap_lines(words, '  ')}")
        if self.next_steps:
            steps = "\n".join(f"- {step}" for step in self.next_steps)
            parts.append(f"What to do next?\n{wrap_lines(steps, '  ')}")
        if "target" in self.estimate.details.get("audit", {}):
            parts.append("(What would change or narrow it is of the tables without the audit of the target.)")
        return "\n\n".join(parts)


@dataclass(frozen=True, eq=False)
class Diagnoses(TargetResults[Diagnosis]):
    """Diagnoses of several targets, by their names; it prints as a table.

    Attributes
    ----------
    results : dict of str to Diagnosis
        What the mapping holds, in its order.
    by : str or None
        The column that told the targets apart.
    estimates : PriorEstimates
        The estimates alone, with a band for all at once, differences and a test of equality.
    frame : str or None
        The library of data frames that :meth:`to_frame` uses, "pandas" or "polars"; None takes what is installed.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> targets = {"spring": s.target[:100], "autumn": s.target[100:]}
    >>> found = ps.diagnose_targets(s.positive, s.unlabeled, targets, source_prior=0.2, random_state=0)
    >>> for name, diagnosis in found.items():
    ...     print(name, diagnosis.verdict.answer, f"{diagnosis.estimate.value:.2f}")
    spring yes 0.47
    autumn yes 0.51
    """

    estimates: PriorEstimates = field(default_factory=lambda: PriorEstimates({}), repr=False)

    def records(self) -> list[dict[str, Any]]:
        """Give a row for each target.

        Returns
        -------
        list of dict
            The answer, the estimate with its interval, R, and p-values, alone and adjusted for the number of targets.
        """
        shift, label_shift = (
            adjusted([getattr(d, name).p_value for d in self.values()]) for name in ("shift_test", "label_shift_test")
        )
        rows = []
        for (name, d), of_shift, of_label_shift in zip(self.items(), shift, label_shift, strict=True):
            interval = d.estimate.interval
            rows.append({
                self.by or "target": name,
                "publish": d.verdict.answer,
                "estimate": d.estimate.value,
                "low": interval.low if interval else float("nan"),
                "high": interval.high if interval else float("nan"),
                "negative_ratio": d.shift_test.ratio,
                "shift_p_value": d.shift_test.p_value,
                "shift_adjusted_p_value": of_shift,
                "label_shift_p_value": d.label_shift_test.p_value,
                "label_shift_adjusted_p_value": of_label_shift,
                "reason": d.verdict.reasons[0] if d.verdict.reasons else "",
            })  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            "by", and under "targets" each diagnosis by its target's name, with adjusted p-values and its part of the
            band beside; "equality", and what is the same for all: "columns", "settings" and, where something tells
            positives from the population, "drivers".
        """
        adjusted = {
            name: {key: value for key, value in result_tables.to_plain(row).items() if key.endswith("adjusted_p_value")}
            for name, row in zip(self, self.records(), strict=True)
        }
        of_estimates = self.estimates.to_dict()
        common = max((_of_source(d) for d in self.values()), key=lambda part: len(part["drivers"]), default={})
        return {
            "by": self.by,
            "targets": {
                name: {key: part for key, part in d.to_dict().items() if key not in common}
                | adjusted[name]
                | {"band": of_estimates["targets"].get(name, {}).get("band")}
                for name, d in self.items()
            },
            "equality": of_estimates["equality"],
            **common,
        }

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        header = (self.by or "target", "publish?", "estimate", "interval", "no shift: p", "label shift: p")
        rows = []
        for row in self.records():
            digits = decimals(row["high"] - row["low"])
            rows.append((
                row[self.by or "target"], row["publish"], f"{row['estimate']:.{digits}f}",
                f"{row['low']:.{digits}f} to {row['high']:.{digits}f}",
                format_p_cell(row["shift_adjusted_p_value"]), format_p_cell(row["label_shift_adjusted_p_value"]),
            ))  # fmt: skip
        return header, rows

    def __str__(self) -> str:
        lines = [super().__str__(), "p-values are adjusted for the number of targets (Holm)."]
        lines += [wrap_lines(f"{name}: {d.verdict.reasons[0]}") for name, d in self.items() if d.verdict.reasons]
        return "\n".join(lines)


def _of_source(found: Diagnosis) -> dict[str, Any]:
    """What is the same for all targets of one source."""
    return {
        "drivers": [driver.to_dict() for driver in found.drivers],
        "columns": [column.to_dict() for column in found.columns],
        "settings": found.settings,
    }


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's rule, but for those that do not exist.

    Parameters
    ----------
    p_values : sequence of float
        NaN where there is none.

    Returns
    -------
    list of float
        In the same order.
    """
    known = [k for k, p in enumerate(p_values) if np.isfinite(p)]
    made = list(p_values)
    for k, p in zip(known, holm([p_values[k] for k in known]), strict=True):
        made[k] = p
    return made
