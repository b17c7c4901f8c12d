"""Diagnosis of the classes of a problem in one target or in several, and the results of several targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from priorshift.api import with_columns_of_classes
from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.class_source import ClassSource
from priorshift.diagnosis.classes import ClassDiagnosis, ClassParts, judge_classes
from priorshift.diagnosis.diagnosis import holm_adjusted
from priorshift.diagnosis.provenance import problem_columns, run_settings
from priorshift.diagnosis.verdict import TABLE_WARNINGS, warnings_of_target
from priorshift.errors import InputError
from priorshift.formatting import format_p_cell, wrap_lines
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.methods.multiclass import MulticlassShift
from priorshift.named_results import NamedResults
from priorshift.problem import Problem
from priorshift.result_tables import text_to_html, to_plain
from priorshift.warning_records import WarningRecord, WarningsByName, record_warnings


@dataclass(frozen=True, eq=False)
class ClassDiagnoses(NamedResults[ClassDiagnosis]):
    """Diagnoses of the shares of several classes in several targets, by target; they print as a table.

    Attributes
    ----------
    results : dict of str to ClassDiagnosis
        Diagnoses by target, in the order of the input, or of the dates or numbers of `by`.
    estimates : ClassPriorsByTarget
        The estimated shares, with differences between targets and a test of equality.
    by, frame : str or None
        As in :class:`Diagnoses`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> targets = {"spring": s.target[:500], "autumn": s.target[500:]}
    >>> known = {"a": 0.2, "b": 0.3}
    >>> diagnoses = ps.diagnose_targets(s.classes, s.unlabeled, targets, source_prior=known, random_state=0)
    >>> {name: diagnosis.verdict.answer for name, diagnosis in diagnoses.items()}
    {'spring': 'yes', 'autumn': 'yes'}
    """

    estimates: ClassPriorsByTarget = field(default_factory=lambda: ClassPriorsByTarget({}), repr=False)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each class of each target.

        Returns
        -------
        list of dict
            The answer for the target, the share of the class with its interval, and the p-values of the tests of the
            target, raw and adjusted for the number of targets.
        """
        rows = []
        for name, p_values in self._p_values().items():
            diagnosis = self[name]
            reasons = diagnosis.verdict.reasons
            for record in diagnosis.estimate.records():
                rows.append({
                    self.by or "target": name,
                    "publish": diagnosis.verdict.answer,
                    **{key: record[key] for key in ("class", "estimate", "low", "high")},
                    **p_values,
                    "reason": reasons[0] if reasons else "",
                })  # fmt: skip
        return rows

    def _p_values(self) -> dict[str, dict[str, float]]:
        """Return the p-values of the tests of each target, raw and adjusted for the number of targets."""
        new = [d.new_class_test.p_value for d in self.values()]
        shift = [d.label_shift_test.p_value for d in self.values()]
        columns = {
            "new_class_p_value": new, "new_class_adjusted_p_value": holm_adjusted(new),
            "label_shift_p_value": shift, "label_shift_adjusted_p_value": holm_adjusted(shift),
        }  # fmt: skip
        return {target: {name: p[k] for name, p in columns.items()} for k, target in enumerate(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
            "by"; under "targets" each diagnosis with adjusted p-values; "equality" and "differences" of the targets;
            and what all targets have in common, "columns" and "settings".
        """
        compared = self.estimates.to_dict()
        targets, common = {}, next(iter(self.values())).source_parts()
        for name, p_values in self._p_values().items():
            parts = {key: part for key, part in self[name].to_dict().items() if key not in common}
            adjusted = {key: p for key, p in p_values.items() if key.endswith("adjusted_p_value")}
            targets[name] = parts | to_plain(adjusted)
        compared_targets = {name: compared[name] for name in ("equality", "differences")}
        return {"by": self.by, "targets": targets, **compared_targets, **common}

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table; what concerns a target stands in its first row."""
        header = (self.by or "target", "class", "publish?", "estimate", "interval", "new class: p", "label shift: p")
        rows = []
        for target, p in self._p_values().items():
            first = [
                self[target].verdict.answer, format_p_cell(p["new_class_adjusted_p_value"]),
                format_p_cell(p["label_shift_adjusted_p_value"]),
            ]  # fmt: skip
            for k, (name, cells) in enumerate(self[target].estimate.cells().items()):
                answer, p_new, p_shift = ("", "", "") if k else first
                rows.append([target, name, answer, *cells[:2], p_new, p_shift])
        return header, rows

    def __str__(self) -> str:
        """Return the table, and below it the main reason of each verdict."""
        return "\n".join([super().__str__(), *self._notes()])

    def _notes(self) -> list[str]:
        """Return the lines below the table."""
        notes = ["p-values are adjusted for the number of targets (Holm)."]
        return notes + [wrap_lines(f"{name}: {d.verdict.reasons[0]}") for name, d in self.items() if d.verdict.reasons]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + text_to_html("\n".join(self._notes()))


def diagnose_classes(
    problem: Problem, estimator: MulticlassShift, *, records: Sequence[WarningRecord] = ()
) -> ClassDiagnosis:
    """Diagnose the shares of classes in the only target of a problem.

    The verdict quotes `records`, warnings issued while the problem was loaded.
    """
    with record_warnings(*TABLE_WARNINGS, show=True) as own_records:
        source = _fit(problem, estimator)
        target = estimator.target_of(problem.target)
        estimate = with_columns_of_classes(problem, estimator.estimate_target(target))
    parts = ClassParts.compute(estimator, source, target, estimate)
    verdict, next_steps = judge_classes(parts, [*records, *own_records])
    return ClassDiagnosis(**vars(parts), verdict=verdict, next_steps=next_steps, **_provenance(problem, estimator))


def diagnose_classes_of_targets(
    problem: Problem, estimator: MulticlassShift, *, records: Sequence[WarningRecord] = ()
) -> ClassDiagnoses:
    """Diagnose the shares of classes in all targets of a problem, with one fit to the source.

    Verdicts quote `records`, warnings issued while the problem was loaded.
    """
    with record_warnings(*TABLE_WARNINGS, show=True) as source_records:
        source = _fit(problem, estimator)
    parts, mixtures, warnings, groups = {}, [], WarningsByName("target"), dict[str, int]()
    own_records: dict[str, list[WarningRecord]] = {}
    for name, sample in problem.targets.items():
        with warnings.collect(name), record_warnings(*TABLE_WARNINGS, show=True) as own_records[name]:
            target = estimator.target_of(sample)
            estimate, mixture = estimator.estimate_jointly(target, groups)
            parts[name] = ClassParts.compute(estimator, source, target, with_columns_of_classes(problem, estimate))
        mixtures.append(mixture)
    warnings.issue()
    adjusted = [holm_adjusted(p_values) for p_values in zip(*(part.p_values for part in parts.values()), strict=True)]
    results, provenance = {}, _provenance(problem, estimator)
    for (name, part), p_new, p_shift in zip(parts.items(), *adjusted, strict=True):
        all_records = [*warnings_of_target(name, list(parts), records), *source_records, *own_records[name]]
        verdict, next_steps = judge_classes(part, all_records, (p_new, p_shift), len(parts))
        results[name] = ClassDiagnosis(**vars(part), verdict=verdict, next_steps=next_steps, **provenance)
    shares: dict[str, ClassPriors] = {name: part.estimate for name, part in parts.items()}
    joint = JointMixtures.from_mixtures(mixtures)
    estimates = ClassPriorsByTarget(shares, joint=joint, by=problem.by, frame=problem.frame)
    return ClassDiagnoses(results, estimates, by=problem.by, frame=problem.frame)


def _fit(problem: Problem, estimator: MulticlassShift) -> ClassSource:
    """Fit an estimator to the source of a problem, and return the source with its rows."""
    if problem.kind != "rows":
        raise InputError("a diagnosis needs the rows of all samples; pass tables that fit into memory.")
    source = estimator.class_source_of(problem)
    for sample in problem.targets.values():
        estimator.check_metadata(sample.metadata)
    estimator.fit_classes(source)
    return source


def _provenance(problem: Problem, estimator: MulticlassShift) -> dict[str, Any]:
    """Return the use of columns and the settings, which all targets have in common."""
    return {"columns": problem_columns(problem), "settings": run_settings(estimator, problem)}
