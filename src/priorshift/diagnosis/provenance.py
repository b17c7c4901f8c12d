"""What a diagnosis records about its input: how each column was used, and the settings of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from priorshift.io.column_checks import ColumnUse, column_uses
from priorshift.methods.multiclass import MulticlassShift
from priorshift.methods.witness_shift import WitnessShift
from priorshift.problem import Problem


def problem_columns(problem: Problem) -> tuple[ColumnUse, ...]:
    """Return how each column of a problem was used."""
    targets = [target.data for target in problem.targets.values()]
    labeled = [sample.data for sample in problem.classes.values()]
    return column_uses(labeled, problem.unlabeled.data, targets, problem.columns, problem.by)


def run_settings(
    estimator: WitnessShift | MulticlassShift, problem: Problem, threshold: float | None = None
) -> dict[str, Any]:
    """Return the settings of a run that differ from the defaults, and "random_state", as plain values for JSON.

    These are parameters of the estimator, except for those that do not change results, and options of the input.
    """
    defaults, settings = type(estimator)().get_params(deep=False), {}
    for name, value in estimator.get_params(deep=False).items():
        is_default = value is defaults[name] or (isinstance(value, (int, float, str)) and value == defaults[name])
        if name == "random_state" or not (is_default or name in ("verbose", "device", "keep_rows")):
            is_by_class = isinstance(value, Mapping)  # a source prior or label error of each class
            settings[name] = _plain_by_class(value) if is_by_class else _plain_setting(value)
    dropped: dict[str, None] = {}  # names without repetitions, in order
    for sample in (problem.unlabeled, *problem.classes.values(), *problem.targets.values()):
        dropped |= dict.fromkeys(column for column in sample.data.dropped if column != problem.by)
    options = {name: getattr(problem.columns, name) for name in ("shared", "audit", "weights", "groups")}
    options |= {"drop": list(dropped) or None, "threshold": threshold, "by": problem.by}
    return settings | {name: _plain_setting(value) for name, value in options.items() if value is not None}


def _plain_by_class(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping of classes to settings, or to such mappings, to plain values for JSON."""
    return {
        str(name): _plain_by_class(value) if isinstance(value, Mapping) else _plain_setting(value)
        for name, value in values.items()
    }


def _plain_setting(value: Any) -> Any:
    """Convert a setting to plain values for JSON; an object becomes its repr, or the call that created it."""
    if isinstance(value, Mapping):  # columns that were passed as values
        return {name: "values" for name in value}
    if isinstance(value, (list, tuple)):
        return [_plain_setting(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.random.Generator):
        return "a Generator"
    distribution = getattr(value, "dist", None)
    if distribution is not None and hasattr(distribution, "name"):  # of scipy, whose repr is an address
        arguments = [*map(repr, value.args), *(f"{name}={number!r}" for name, number in value.kwds.items())]
        return f"scipy.stats.{distribution.name}({', '.join(arguments)})"
    return repr(value)
