"""Entry points of a diagnosis: three tables in, and whether the estimate from them can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift.api import check_one_class, choose_estimator, compare_targets, make_estimator, with_columns
from priorshift.diagnosis.class_targets import diagnose_classes, diagnose_classes_of_targets
from priorshift.diagnosis.columns import Driver, drivers
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis, holm_adjusted
from priorshift.diagnosis.identification import DiagnosisInput, identify
from priorshift.diagnosis.planning import planning
from priorshift.diagnosis.provenance import problem_columns, run_settings
from priorshift.diagnosis.sensitivity import check_threshold, sensitivity
from priorshift.diagnosis.shift_tests import RESAMPLES, label_shift_test, shift_test
from priorshift.diagnosis.verdict import TABLE_WARNINGS, DiagnosisParts, judge, warnings_of_target
from priorshift.errors import InputError
from priorshift.io.row_metadata import Columns
from priorshift.loading import InputOptions, load_problem
from priorshift.methods.multiclass import MulticlassShift
from priorshift.methods.witness_shift import TargetFit, WitnessShift
from priorshift.problem import Problem, Sample, Source, Target
from priorshift.progress import track_progress
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import WarningRecord, WarningsByName, record_warnings

# p-values of label shift below which it is tested again with more resamples: for one target, and for several
_RETEST_ONE, _RETEST_SEVERAL = 0.1, 0.01
_MORE_RESAMPLES, _MOST_RESAMPLES = 4999, 19_999
_MOST_SIGNS = 10**8  # random signs in memory: resamples times rows


def diagnose(
    positive: Any = None,
    unlabeled: Any = None,
    target: Any = None,
    *,
    threshold: float | None = None,
    method: Any = "auto",
    source_prior: Any = None,
    label_error: Any = None,
    scenario: str | None = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    shared: str | None = None,
    drop: Sequence[str] = (),
    audit: Columns = None,
    weights: Columns = None,
    groups: Columns = None,
    encoder: Any = "auto",
    missing: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    sheet: str | Mapping[str, str] | None = None,
    rest: bool = True,
) -> Any:
    """Diagnose the estimated prior of a target: whether it can be trusted, what could be wrong, and what would help.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV, Excel or Parquet file
        Samples, as in :func:`estimate_prior`; `positive` may be a mapping of classes. Leave out the first two if
        `method` was fitted with ``keep_rows=True``.
    threshold : float or None
        Target prior that matters, such as one above which action is taken; the diagnosis says on which side of it the
        target prior is. Default: the source prior.
    method : {"auto", "witness"} or WitnessShift
        The default estimator, or one with other settings, such as ``WitnessShift(0.2, repeats=20)``. One that was
        fitted with ``keep_rows=True`` holds the source; then `audit`, `weights` and `groups` are mappings, such as
        ``{"target": weights}``, and all other options are those of the fit.
    source_prior : float, (low, high), distribution, estimator or None
        As in :func:`estimate_prior`, and so are all that follow.
    label_error : float, (low, high), distribution or None
    scenario : {"case-control", "censoring"} or None
    confidence : float or None
    random_state : int, Generator or None
    standardize : bool or None
    shared : None, "identical" or name of an id column
    drop : sequence of str
    audit, weights, groups : None, name of a column or mapping
    encoder : {"auto"}, None or transformer
    missing : sequence of values
    columns : mapping of str to str, or None
    sheet : str, mapping or None
    rest : bool

    Returns
    -------
    Diagnosis or ClassDiagnosis
        A verdict and the parts it rests on; it prints as a page. For several classes, a :class:`ClassDiagnosis`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=1000, n_target=1000, shared=False, random_state=0)
    >>> diagnosis = ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    >>> diagnosis.verdict.answer
    'yes'
    >>> print(diagnosis.shift_test)
    The share of negatives in the target is R = 0.51 times that in the source (95% interval 0.46 to
    0.57). Test of no shift (R = 1): p < 0.0001.

    A fit that keeps the rows of the source can be stored, and diagnoses later targets.

    >>> witness = ps.WitnessShift(0.2, keep_rows=True, random_state=0).fit(s.X, s.y)
    >>> ps.diagnose(target=s.target, method=witness).verdict.answer
    'yes'
    """
    if positive is None and unlabeled is None and isinstance(method, WitnessShift):
        settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence, "shared": shared}
        settings |= {
            "label_error": label_error,
            "random_state": random_state,
            "standardize": standardize,
            "drop": drop or None,
        }
        settings |= {"missing": missing or None, "columns": columns, "sheet": sheet}
        _check_options_of_fit(settings, encoder)
        return _diagnose_by_fit(method, target, threshold, {"audit": audit, "weights": weights, "groups": groups})
    chosen = {"source_prior": source_prior, "label_error": label_error, "scenario": scenario,
              "confidence": confidence, "random_state": random_state, "standardize": standardize}  # fmt: skip
    positive, estimator, rest = _choose_estimator(positive, method, chosen, rest, threshold)
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, missing=missing,
        columns=columns, sheet=sheet, stream=False,
    )  # fmt: skip
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        problem = load_problem(positive=positive, unlabeled=unlabeled, target=target, rest=rest, options=options)
    if isinstance(estimator, MulticlassShift):
        return diagnose_classes(problem, estimator, records=records)
    return diagnose_target(problem, estimator, threshold=threshold, records=records)


def diagnose_targets(
    positive: Any,
    unlabeled: Any,
    targets: Any,
    *,
    by: str | None = None,
    threshold: float | None = None,
    method: Any = "auto",
    source_prior: Any = None,
    label_error: Any = None,
    scenario: str | None = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    shared: str | None = None,
    drop: Sequence[str] = (),
    audit: Columns = None,
    weights: Columns = None,
    groups: Columns = None,
    encoder: Any = "auto",
    missing: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    sheet: str | Mapping[str, str] | None = None,
    rest: bool = True,
) -> Any:
    """Diagnose several targets with one fit to the source.

    Parameters
    ----------
    positive, unlabeled, targets : array-like, data frame, or path of a CSV, Excel or Parquet file
        Samples, as in :func:`estimate_priors`; `positive` may be a mapping of classes.
    by : str or None
        As in :func:`estimate_priors`.
    threshold : float or None
        As in :func:`diagnose`, and so are all that follow.
    method : {"auto", "witness"} or WitnessShift
    source_prior : float, (low, high), distribution, estimator or None
    scenario : {"case-control", "censoring"} or None
    confidence : float or None
    random_state : int, Generator or None
    standardize : bool or None
    shared : None, "identical" or name of an id column
    drop : sequence of str
    audit, weights, groups : None, name of a column or mapping
    encoder : {"auto"}, None or transformer
    missing : sequence of values
    columns : mapping of str to str, or None
    sheet : str, mapping or None
    rest : bool

    Returns
    -------
    Diagnoses, or a mapping of str to ClassDiagnosis
        A mapping of names to :class:`Diagnosis`, which prints as a table. P-values are adjusted for the number of
        targets (Holm). For several classes, a mapping to :class:`ClassDiagnosis`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> targets = {"spring": s.target[:100], "autumn": s.target[100:]}
    >>> diagnoses = ps.diagnose_targets(s.positive, s.unlabeled, targets, source_prior=0.2, random_state=0)
    >>> {name: diagnosis.verdict.answer for name, diagnosis in diagnoses.items()}
    {'spring': 'yes', 'autumn': 'yes'}
    """
    chosen = {"source_prior": source_prior, "label_error": label_error, "scenario": scenario,
              "confidence": confidence, "random_state": random_state, "standardize": standardize}  # fmt: skip
    positive, estimator, rest = _choose_estimator(positive, method, chosen, rest, threshold)
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, missing=missing,
        columns=columns, sheet=sheet, by=by,
    )  # fmt: skip
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        problem = load_problem(
            positive=positive, unlabeled=unlabeled, target=targets, several=True, rest=rest, options=options
        )
    if isinstance(estimator, MulticlassShift):
        return diagnose_classes_of_targets(problem, estimator, records=records)
    return diagnose_all_targets(problem, estimator, threshold=threshold, records=records)


def _choose_estimator(
    positive: Any, method: Any, settings: Mapping[str, Any], rest: bool, threshold: float | None
) -> tuple[Any, Any, bool]:
    """Return the labelled samples, an unfitted estimator for them, and whether there is a rest.

    The only class of a mapping is the problem of positives and unlabelled rows. Several have no `threshold`.
    """
    if not isinstance(positive, Mapping):
        check_one_class(rest=rest)
        return positive, _make_estimator(method, **settings), True
    estimator, rest = choose_estimator(method, settings, positive, rest)
    if isinstance(estimator, MulticlassShift):
        if threshold is not None:
            raise InputError("threshold is not supported with several classes; compare their intervals with it.")
        return positive, estimator, rest
    [sample] = positive.values()
    return sample, _make_estimator(estimator), rest


def _make_estimator(method: Any, **settings: Any) -> WitnessShift:
    """Return the default estimator with these settings, or `method` itself if it is a WitnessShift; refuse others."""
    estimator = make_estimator(method, settings)
    if isinstance(estimator, WitnessShift):
        return estimator
    name = method if isinstance(method, str) else type(estimator).__name__
    raise InputError(
        f"method is {name!r}, but a diagnosis needs the default estimator. Omit method, or pass a WitnessShift with "
        "other settings."
    )


def _check_rows(problem: Problem) -> None:
    """Refuse samples that are not tables in memory."""
    if problem.kind != "rows":
        raise InputError(
            "A diagnosis needs the rows of all samples, not sketches, histograms or streams. Pass tables that fit into "
            "memory, or estimate the prior alone."
        )


def diagnose_target(
    problem: Problem, estimator: WitnessShift, *, threshold: float | None = None, records: Sequence[WarningRecord] = ()
) -> Diagnosis:
    """Diagnose the only target of a problem; the verdict quotes `records`, warnings issued while it was loaded."""
    _check_rows(problem)
    with record_warnings(*TABLE_WARNINGS, show=True) as fit_records:
        source = _FittedSource.fit(estimator, problem, threshold)
        parts, _ = source.diagnose(estimator.target_of(problem.target))
    settings, columns = run_settings(estimator, problem, threshold), problem_columns(problem)
    return Diagnosis(**vars(parts), verdict=judge(parts, [*records, *fit_records]), columns=columns, settings=settings)


def diagnose_all_targets(
    problem: Problem, estimator: WitnessShift, *, threshold: float | None = None, records: Sequence[WarningRecord] = ()
) -> Diagnoses:
    """Diagnose all targets of a problem; verdicts quote `records`, warnings issued while it was loaded."""
    settings, columns = run_settings(estimator, problem, threshold), problem_columns(problem)
    with record_warnings(*TABLE_WARNINGS, show=True) as source_records:
        source = _FittedSource.fit(estimator, problem, threshold)
    parts, target_records, influences, warnings_by_name = {}, {}, [], WarningsByName("target")
    for name, target in problem.targets.items():
        with warnings_by_name.collect(name), record_warnings(*TABLE_WARNINGS, show=True) as target_records[name]:
            parts[name], fit = source.diagnose(estimator.target_of(target), len(problem.targets))
            influences.append(estimator.influence(fit))
    warnings_by_name.issue()
    p_values = holm_adjusted([target_parts.label_shift_test.p_value for target_parts in parts.values()])
    diagnoses = {}
    for (name, target_parts), p_value in zip(parts.items(), p_values, strict=True):
        warnings = warnings_of_target(name, list(parts), records)
        verdict = judge(target_parts, [*warnings, *source_records, *target_records[name]], p_value, len(parts))
        diagnoses[name] = Diagnosis(**vars(target_parts), verdict=verdict, columns=columns, settings=settings)
    estimates = {name: target_parts.estimate for name, target_parts in parts.items()}
    compared = compare_targets(estimates, influences, estimator.confidence, problem.by)
    return Diagnoses(diagnoses, replace(compared, frame=problem.frame), by=problem.by, frame=problem.frame)


def _check_options_of_fit(settings: Mapping[str, Any], encoder: Any) -> None:
    """Refuse options of a diagnosis that a fitted estimator has fixed already."""
    for name, value in settings.items():
        if value is not None:
            raise InputError(f"{name} was passed together with a fitted estimator as method; set it before the fit.")
    if encoder != "auto":
        raise InputError("encoder was passed together with a fitted estimator, which has its own; leave it out.")


def _diagnose_by_fit(
    estimator: WitnessShift, X_target: Any, threshold: float | None, metadata: Mapping[str, Columns]
) -> Diagnosis:
    """Diagnose a target by an estimator that was fitted with its rows; `metadata` has mappings to the target's values.

    The verdict also quotes the warnings that were issued by the fit.
    """
    reference = getattr(estimator, "reference_", None)
    if reference is None:
        raise InputError(
            "a diagnosis needs the rows of the source; pass positive and unlabeled, or as method a WitnessShift that "
            "was fitted with keep_rows=True."
        )
    columns = {}
    for name, values in metadata.items():
        if values is not None and not (isinstance(values, Mapping) and values.keys() == {"target"}):
            raise InputError(f"{name} must be a mapping such as {{'target': values}}, with values for each target row.")
        columns[name] = None if values is None else values["target"]
    check_threshold(threshold)
    source = reference.source
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        target = estimator.read_target(X_target, **columns)
        P, U = (Sample(source.table.take(rows)) for rows in (source.labeled, ~source.labeled))
        problem = Problem({"": P}, U, {"": Sample(target.table)})
        fitted = _FittedSource(estimator, source, problem, threshold, drivers(source, estimator.witness_))
        parts, _ = fitted.diagnose(target)
    settings, uses = run_settings(estimator, problem, threshold), problem_columns(problem)
    earlier = [record for record in reference.records if issubclass(record[0], TABLE_WARNINGS)]
    return Diagnosis(**vars(parts), verdict=judge(parts, [*earlier, *records]), columns=uses, settings=settings)


@dataclass(frozen=True, eq=False)
class _FittedSource:
    """The fitted estimator and what else all targets of a problem have in common."""

    estimator: WitnessShift
    source: Source
    problem: Problem
    threshold: float | None  # target prior that conclusions refer to; None for the source prior
    drivers: tuple[Driver, ...]  # columns that distinguish positives from the population

    @classmethod
    def fit(cls, estimator: WitnessShift, problem: Problem, threshold: float | None) -> _FittedSource:
        """Fit the estimator to the source of a problem, and find the columns that distinguish its positives."""
        check_threshold(threshold)
        source = estimator.source_of(problem)
        fitted = estimator.fit_source(source)
        return cls(fitted, source, problem, threshold, drivers(source, fitted.witness_))

    def diagnose(self, target: Target, targets: int = 1) -> tuple[DiagnosisParts, TargetFit]:
        """Return the parts of the diagnosis of a target, one of `targets` in all, and the fit to that target."""
        estimator, rng = self.estimator, np.random.default_rng(self.estimator.scored_.seed)
        fit = estimator.fit_target(target)
        fit = replace(fit, estimate=with_columns(self.problem, fit.estimate))  # records how columns were used
        mixture = estimator.prior_estimator_ if isinstance(estimator.prior_estimator_, MixturePrior) else None
        is_relative = estimator.prior_estimator_ is not None and self.source.audit is None
        settings = estimator.confidence, self.threshold, mixture is not None, rng, is_relative, mixture
        inputs = DiagnosisInput(self.source, fit, *settings)
        # With more resamples a small p-value depends less on the seed, and can stay small when it is adjusted.
        rows = len(self.source.labeled) + len(fit.target)
        below, resamples = _RETEST_ONE, min(_MORE_RESAMPLES, _MOST_SIGNS // rows)
        if targets > 1:
            below, resamples = _RETEST_SEVERAL, min(max(targets * RESAMPLES, resamples), _MOST_RESAMPLES)
        # the parts by name, each computed after the progress bar has advanced
        steps: dict[str, Callable[[], Any]] = {
            "identification": lambda: identify(estimator, inputs),
            "shift_test": lambda: shift_test(inputs),
            "label_shift_test": lambda: label_shift_test(inputs, retest_below=below, retest_resamples=resamples),
            "sensitivity": lambda: sensitivity(inputs),
            "planning": lambda: planning(inputs),
        }
        parts = {}
        with track_progress("diagnose", len(steps)) as advance:
            for name, step in steps.items():
                advance()
                parts[name] = step()
        return DiagnosisParts(
            estimate=fit.estimate, drivers=self.drivers if fit.test.is_separable else (), **parts
        ), fit
