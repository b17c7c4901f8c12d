"""The door of doubt: three tables in, and whether the number that they give may be published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift.api import compare_targets, make_estimator, with_columns
from priorshift.diagnosis.columns import Driver, drivers
from priorshift.diagnosis.conclusion import check_threshold
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis, adjusted, run_settings
from priorshift.diagnosis.identification import identify
from priorshift.diagnosis.label_shift import RESAMPLES, label_shift_test
from priorshift.diagnosis.planning import planning
from priorshift.diagnosis.sensitivity import sensitivity
from priorshift.diagnosis.shift_test import shift_test
from priorshift.diagnosis.verdict import UNJUDGED, judge
from priorshift.errors import ColumnWarning, DuplicateRowsWarning, InconsistentInputWarning, InputError, IntervalWarning
from priorshift.io.column_uses import ColumnUse, column_uses
from priorshift.io.row_metadata import Columns
from priorshift.loading import InputOptions, load_problem
from priorshift.methods.witness_shift import TargetFit, WitnessShift
from priorshift.problem import Problem, Source, Target
from priorshift.progress import track_progress
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import WarningRecord, WarningsByName, record_warnings

_PARTS = 5  # of a diagnosis, after the estimate
# what a verdict mentions of the tables, and what of it forbids a number; other warnings are of what it judges itself
ODD = (ColumnWarning, DuplicateRowsWarning, IntervalWarning)
GRAVE = (InconsistentInputWarning,)
# p-values that more resamples are drawn for, of one target and of one of several, whose p-values are adjusted
_DOUBTFUL, _UNLIKELY = 0.1, 0.01
_MORE_RESAMPLES, _MOST_RESAMPLES = 4999, 19_999
_MOST_SIGNS = 10**8  # that are held


def diagnose(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    threshold: float | None = None,
    method: Any = "auto",
    source_prior: Any = None,
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
) -> Diagnosis:
    """Ask whether the estimated prior of a target may be believed, what could be wrong with it, and what would help.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV or Parquet file
        As in :func:`estimate_prior`.
    threshold : float or None
        A target prior that matters, such as that above which something is done: the conclusion whose robustness is
        looked at is then on which side of it the prior lies. None asks whether it lies above or below the source's.
    method : {"auto", "witness"} or WitnessShift
        The default estimator, or one with other settings, such as ``WitnessShift(0.2, repeats=20)``: what is asked
        here is asked of its ratio of negatives.
    source_prior : float, (low, high), distribution, estimator or None
        As in :func:`estimate_prior`, and so is all that follows.
    scenario : {"case-control", "censoring"} or None
    confidence : float or None
    random_state : int, Generator or None
    standardize : bool or None
    shared : None, "identical" or name of an id column
    drop : sequence of str
    audit, weights, groups : None, name of a column or mapping
    encoder : {"auto"}, None or transformer

    Returns
    -------
    Diagnosis
        Which prints as a page, with a verdict on top.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=1000, n_target=1000, shared=False, random_state=0)
    >>> found = ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    >>> found.verdict.answer
    'yes'
    >>> print(found.shift_test)
    R = 0.51, 95% interval 0.46 to 0.57, the share of negatives in the target over that in the source; no shift (R = 1)
    has p < 0.0001
    """
    estimator = _estimator(method, source_prior, scenario, confidence, random_state, standardize)
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, stream=False
    )
    with record_warnings(*ODD, *GRAVE, show=True) as records:
        problem = load_problem(positive=positive, unlabeled=unlabeled, target=target, options=options)
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
) -> Diagnoses:
    """Diagnose several targets, with one fit to the source.

    Parameters
    ----------
    positive, unlabeled, targets : array-like, data frame, or path of a CSV or Parquet file
        As in :func:`estimate_priors`.
    by : str or None
        As in :func:`estimate_priors`.
    threshold : float or None
        As in :func:`diagnose`, and so is all that follows.
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

    Returns
    -------
    Diagnoses
        A mapping of names to :class:`Diagnosis` that prints as a table. Where nothing is wrong one in twenty tests says
        otherwise, so p-values are adjusted for the number of targets (Holm).

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, shared=False, random_state=0)
    >>> targets = {"spring": s.target[:100], "autumn": s.target[100:]}
    >>> found = ps.diagnose_targets(s.positive, s.unlabeled, targets, source_prior=0.2, random_state=0)
    >>> {name: diagnosis.verdict.answer for name, diagnosis in found.items()}
    {'spring': 'yes', 'autumn': 'yes'}
    """
    estimator = _estimator(method, source_prior, scenario, confidence, random_state, standardize)
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, by=by
    )
    with record_warnings(*ODD, *GRAVE, show=True) as records:
        problem = load_problem(positive=positive, unlabeled=unlabeled, target=targets, several=True, options=options)
    return diagnose_all_targets(problem, estimator, threshold=threshold, records=records)


def diagnose_target(
    problem: Problem,
    estimator: WitnessShift,
    *,
    threshold: float | None = None,
    records: Sequence[WarningRecord] = (),
) -> Diagnosis:
    """Diagnose the only target of a problem; `records` are warnings that were issued while it was loaded."""
    if problem.kind != "rows":
        raise InputError(
            "a diagnosis needs the rows of all samples, not sketches, histograms or streams; pass tables that fit into "
            "memory, or estimate the prior alone."
        )
    with record_warnings(*ODD, *GRAVE, show=True) as more:
        fitted = _Fitted.to(estimator, problem, threshold)
        found = fitted.diagnosis(fitted.examine(estimator.target_of(problem.target)))
    found = replace(found, columns=problem_columns(problem), settings=run_settings(estimator, problem, threshold))
    return _judged(found, [*records, *more])


def diagnose_all_targets(
    problem: Problem,
    estimator: WitnessShift,
    *,
    threshold: float | None = None,
    records: Sequence[WarningRecord] = (),
) -> Diagnoses:
    """Diagnose all targets of a problem; `records` are warnings that were issued while it was loaded."""
    settings, columns = run_settings(estimator, problem, threshold), problem_columns(problem)
    with record_warnings(*ODD, *GRAVE, show=True) as of_source:
        fitted = _Fitted.to(estimator, problem, threshold)
    found, of_target, influences, by_name = {}, {}, [], WarningsByName("target")
    for name, target in problem.targets.items():
        with by_name.collect(name), record_warnings(*ODD, *GRAVE, show=True) as of_target[name]:
            seen = fitted.examine(estimator.target_of(target))
            found[name] = fitted.diagnosis(seen, len(problem.targets))
            influences.append(estimator.influence(seen))
        found[name] = replace(found[name], columns=columns, settings=settings)
    by_name.issue()
    p_values = adjusted([one.label_shift_test.p_value for one in found.values()])
    judged = {
        name: _judged(one, [*_not_of_others(records, name, found), *of_source, *of_target[name]], p, len(found))
        for (name, one), p in zip(found.items(), p_values, strict=True)
    }
    estimates = {name: one.estimate for name, one in judged.items()}
    compared = compare_targets(estimates, influences, estimator.confidence, problem.by)
    return Diagnoses(judged, replace(compared, frame=problem.frame), by=problem.by, frame=problem.frame)


def problem_columns(problem: Problem) -> tuple[ColumnUse, ...]:
    """Return what was done with each column of a problem."""
    targets = [target.data for target in problem.targets.values()]
    return column_uses(problem.positive.data, problem.unlabeled.data, targets, problem.columns, problem.by)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The estimator, its source, and what is common to all targets."""

    estimator: WitnessShift
    source: Source
    problem: Problem
    threshold: float | None
    drivers: tuple[Driver, ...]

    @classmethod
    def to(cls, estimator: WitnessShift, problem: Problem, threshold: Any) -> _Fitted:
        check_threshold(threshold)
        source = estimator.source_of(problem)
        fitted = estimator.fit_source(source)
        return cls(fitted, source, problem, threshold, drivers(source, fitted.witness))

    def examine(self, target: Target) -> TargetFit:
        """The target as the estimator sees it; its estimate knows what became of the columns."""
        seen = self.estimator.fit_target(target)
        return replace(seen, estimate=with_columns(self.problem, seen.estimate))

    def diagnosis(self, seen: TargetFit, targets: int = 1) -> Diagnosis:
        """Each part asks the target that was examined once; what is judged of them is left open.

        A target that label shift hardly explains gets more resamples, so that its p-value hardly depends on them; of
        several targets, so many that it can be small even when it is adjusted for their number.
        """
        estimator, source, target, estimate = self.estimator, self.source, seen.target, seen.estimate
        rng, confidence = np.random.default_rng(estimator.scored_.seed), estimator.confidence
        # where P and U may be alike, R tells nothing
        test = seen.test if seen.is_separable else replace(seen.test, ratio=float("nan"))
        common = (seen.p_values, test, seen.curve, seen.prior)
        with track_progress("diagnose", _PARTS) as step:
            step()
            identification = identify(estimator, source, seen)
            step()
            shift = shift_test(seen.witness, seen.test, seen.curve, seen.p_values, target, confidence)
            again = _again(targets, len(source.labeled) + len(target))
            label_shift = label_shift_test(
                source, target, seen.witness, seen.p_values, rng, ratio=seen.test.ratio, again=again
            )
            step()
            sensitive = sensitivity(
                source, target, seen.witness, *common, source_prior=estimate.source_prior, threshold=self.threshold,
                confidence=confidence, rng=rng,
            )  # fmt: skip
            step()
            from_rows = isinstance(estimator.prior_estimator_, MixturePrior)
            plan = planning(seen.witness, target, *common, from_rows=from_rows, confidence=confidence)
            step()
        found = self.drivers if seen.is_separable else ()
        return Diagnosis(UNJUDGED, estimate, shift, label_shift, identification, sensitive, plan, found)


def _again(targets: int, rows: int) -> tuple[float, int]:
    """Which p-values are looked at again, and with how many resamples."""
    if targets == 1:
        return _DOUBTFUL, min(_MORE_RESAMPLES, _MOST_SIGNS // rows)
    return _UNLIKELY, min(max(targets * RESAMPLES, min(_MORE_RESAMPLES, _MOST_SIGNS // rows)), _MOST_RESAMPLES)


def _not_of_others(said: Sequence[WarningRecord], name: str, names: Iterable[str]) -> list[WarningRecord]:
    """What was warned as tables were read, but for what names another target."""
    others = [f"target {other!r}" for other in names if other != name]
    return [one for one in said if f"target {name!r}" in one[1] or not any(other in one[1] for other in others)]


def _judged(
    found: Diagnosis, said: Sequence[WarningRecord], p_value: float | None = None, targets: int = 1
) -> Diagnosis:
    verdict = judge(
        found.estimate,
        found.label_shift_test,
        found.identification,
        found.sensitivity,
        said=[message for category, message in said if not issubclass(category, GRAVE)],
        grave=[message for category, message in said if issubclass(category, GRAVE)],
        p_value=p_value,
        targets=targets,
    )
    return replace(found, verdict=verdict)


def _estimator(
    method: Any, source_prior: Any, scenario: Any, confidence: Any, random_state: Any, standardize: bool | None
) -> WitnessShift:
    settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence,
                "random_state": random_state, "standardize": standardize}  # fmt: skip
    made = make_estimator(method, settings)
    if not isinstance(made, WitnessShift):
        name = method if isinstance(method, str) else type(made).__name__
        raise InputError(
            f"method is {name!r}, but what is asked here is asked of the default estimator; leave method out, or pass "
            "a WitnessShift with other settings."
        )
    return made
