"""Results of a diagnosis: a verdict on one estimate, or on those of several targets, with the parts it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from priorshift.diagnosis.verdict import DiagnosisParts, Verdict, next_steps
from priorshift.formatting import decimals, format_p_cell, wrap_lines
from priorshift.inference.joint import holm
from priorshift.io.column_checks import ColumnUse
from priorshift.named_results import NamedResults
from priorshift.prior_estimates import PriorEstimates
from priorshift.reportable import Reportable
from priorshift.result_tables import text_to_html, to_plain

_QUESTIONS = {
    "shift_test": "Is there a shift?",
    "label_shift_test": "Is it label shift?",
    "identification": "Do the tables determine it?",
    "sensitivity": "What would change it?",
    "planning": "What would narrow it?",
}


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Reportable, DiagnosisParts):
    """Whether an estimate can be trusted, and why; it prints as a page.

    Attributes
    ----------
    verdict : Verdict
        Whether the estimate may be published, with reasons.
    estimate : PriorEstimate
        The estimate.
    shift_test : ShiftTest
        Test of whether the prior has changed.
    label_shift_test : LabelShiftTest
        Test of whether a change in prevalence explains the target, with the columns and rows that contradict it.
    identification : Identification
        What the tables determine of the source and the target prior.
    sensitivity : Sensitivity
        What the estimate is sensitive to, and how large a violation of the assumptions changes the conclusion.
    planning : Planning
        How precise the estimate would be with more rows or an audit.
    drivers : tuple of Driver
        Columns that distinguish positives from the population, the most important first.
    columns : tuple of ColumnUse
        How each column of the tables was used.
    settings : dict
        Settings that differ from the defaults, as plain values, and "random_state".

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> diagnosis = ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    >>> diagnosis.verdict.answer, diagnosis.label_shift_test.p_value > 0.05
    ('yes', True)
    """

    verdict: Verdict
    columns: tuple[ColumnUse, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def next_steps(self) -> tuple[str, ...]:
        """At most four recommendations, the most useful first."""
        return next_steps(self.verdict, self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        return {
            **{name: getattr(self, name).to_dict() for name in ("verdict", "estimate", *_QUESTIONS)},
            "next_steps": list(self.next_steps),
            **_source_parts(self),
        }

    def plot(self, part: str | None = None, ax: Any = None) -> Any:
        """Draw one or all parts.

        Parameters
        ----------
        part : str or None
            "shift_test", "label_shift_test", "identification", "sensitivity", "variants", "planning" or "drivers".
            Default all but the last, in a new figure.
        ax : matplotlib Axes or None
            Axes for one part. Default a new figure.

        Returns
        -------
        matplotlib Axes
            The first, if several.
        """
        from priorshift.plots.functions import plot_diagnosis  # only those who draw need it

        return plot_diagnosis(self, part, ax)

    def __str__(self) -> str:
        """Return the page: verdict, estimate, a section for each question, and what to do next."""
        parts = [str(self.verdict), str(self.estimate)]
        for name, question in _QUESTIONS.items():
            text = self.planning.composition if name == "planning" else getattr(self, name).text
            parts.append(f"{question}\n{wrap_lines(text, '  ')}")
        if self.next_steps:
            steps = "\n".join(f"- {step}" for step in self.next_steps)
            parts.append(f"What to do next?\n{wrap_lines(steps, '  ')}")
        if "target" in self.estimate.details.get("audit", {}):
            parts.append("(What would change or narrow it refers to the tables without the audit of the target.)")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return text_to_html(str(self))


@dataclass(frozen=True, eq=False)
class Diagnoses(NamedResults[Diagnosis]):
    """Diagnoses of several targets by name; they print as a table.

    Attributes
    ----------
    results : dict of str to Diagnosis
        What the mapping holds, in its order.
    by : str or None
        Column whose values are the names of the targets.
    estimates : PriorEstimates
        The estimates, with a simultaneous band, differences and a test of equality.
    frame : str or None
        Data-frame library of :meth:`to_frame`, "pandas" or "polars". Default the one that is installed.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> targets = {"spring": s.target[:100], "autumn": s.target[100:]}
    >>> diagnoses = ps.diagnose_targets(s.positive, s.unlabeled, targets, source_prior=0.2, random_state=0)
    >>> for name, diagnosis in diagnoses.items():
    ...     print(name, diagnosis.verdict.answer, f"{diagnosis.estimate.value:.2f}")
    spring yes 0.47
    autumn yes 0.51
    """

    estimates: PriorEstimates = field(default_factory=lambda: PriorEstimates({}), repr=False)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each target.

        Returns
        -------
        list of dict
            The answer, the estimate with its interval, R, and p-values, raw and adjusted for the number of targets.
        """
        shift = holm_adjusted([d.shift_test.p_value for d in self.values()])
        label_shift = holm_adjusted([d.label_shift_test.p_value for d in self.values()])
        rows = []
        for (name, d), p_shift, p_label_shift in zip(self.items(), shift, label_shift, strict=True):
            interval = d.estimate.interval
            rows.append({
                self.by or "target": name,
                "publish": d.verdict.answer,
                "estimate": d.estimate.value,
                "low": interval.low if interval else float("nan"),
                "high": interval.high if interval else float("nan"),
                "negative_ratio": d.shift_test.ratio,
                "shift_p_value": d.shift_test.p_value,
                "shift_adjusted_p_value": p_shift,
                "label_shift_p_value": d.label_shift_test.p_value,
                "label_shift_adjusted_p_value": p_label_shift,
                "reason": d.verdict.reasons[0] if d.verdict.reasons else "",
            })  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
            "by"; under "targets" each diagnosis with adjusted p-values and its part of the band; "equality"; and what
            all targets have in common: "columns", "settings" and "drivers".
        """
        estimates, targets = self.estimates.to_dict(), {}
        # drivers are empty for targets without an estimate, so take those of a target that has them
        common = max((_source_parts(d) for d in self.values()), key=lambda part: len(part["drivers"]), default={})
        for (name, d), row in zip(self.items(), self.records(), strict=True):
            target_parts = {key: part for key, part in d.to_dict().items() if key not in common}
            adjusted = {key: value for key, value in to_plain(row).items() if key.endswith("adjusted_p_value")}
            targets[name] = target_parts | adjusted | {"band": estimates["targets"].get(name, {}).get("band")}
        return {"by": self.by, "targets": targets, "equality": estimates["equality"], **common}

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table, a row for each target."""
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
        """Return the table, and below it the main reason of each verdict."""
        lines = [super().__str__(), "p-values are adjusted for the number of targets (Holm)."]
        lines += [wrap_lines(f"{name}: {d.verdict.reasons[0]}") for name, d in self.items() if d.verdict.reasons]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + text_to_html("\n".join(str(self).splitlines()[len(self) + 1 :]))


def _source_parts(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the parts of a diagnosis that depend on the source alone, as plain values for JSON."""
    return {
        "drivers": [driver.to_dict() for driver in diagnosis.drivers],
        "columns": [column.to_dict() for column in diagnosis.columns],
        "settings": diagnosis.settings,
    }


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's rule; those that are NaN stay and do not count."""
    adjusted = np.array(p_values, dtype=float)
    is_known = np.isfinite(adjusted)
    adjusted[is_known] = holm(adjusted[is_known].tolist())
    return adjusted.tolist()
