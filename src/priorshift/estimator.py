"""What every estimator of the library shares: scikit-learn's contract for two-valued labels and named columns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, Tags

from priorshift.errors import InputError
from priorshift.labels import read_labels
from priorshift.samples import Samples
from priorshift.tables import Table, match_columns, read_table


class PUEstimator(BaseEstimator):
    """Base of estimators that are fitted on positive-unlabelled data."""

    scenario: Literal["case-control", "censoring"]  # of those that read samples

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y has two values
        return tags

    def _read_source(self, X: Any, y: Any, *, classifier: bool = False) -> tuple[Table, NDArray[np.bool_]]:
        """The source table and which of its rows are labelled; remembers the columns and the two labels."""
        table = read_table(X, "X")
        labeled, self.classes_ = read_labels(y, len(table.values), classifier=classifier)
        self.n_features_in_ = table.values.shape[1]
        if table.columns:
            self.feature_names_in_ = np.asarray(table.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return table, labeled

    def _read_samples(self, X: Any, y: Any, shared: Any, *, classifier: bool = False) -> tuple[Table, Samples]:
        """The source table and its P and U, for an estimator that has a `scenario`."""
        table, labeled = self._read_source(X, y, classifier=classifier)
        return table, Samples.of(table.values, labeled, self.scenario, shared)

    def _read_target(self, X_target: Any) -> Table:
        """The target's table, with the fitted columns in their order."""
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        fitted = Table("the fitted source", np.empty((0, self.n_features_in_)), names)
        return match_columns([fitted, read_table(X_target, "target")])[1]


class PUClassifier(ClassifierMixin, PUEstimator):
    """Base of classifiers that are fitted on positive-unlabelled data and predict the class."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # 0 means unlabelled: agreement with y is not the aim
        return tags

    def _read_rows(self, X: Any) -> Table:
        """Rows to predict, with the fitted columns in their order."""
        table = read_table(X, "X")
        given, fitted = table.values.shape[1], self.n_features_in_
        if given != fitted and not (table.columns and hasattr(self, "feature_names_in_")):
            raise InputError(
                f"X has {given} features, but {type(self).__name__} is expecting {fitted} features as input; pass the "
                "same columns in the same order."
            )
        return self._read_target(table)


def seeded(estimator: Any, random_state: Any) -> Any:
    """The estimator with a number wherever it has a random_state of None, so that ours decides it."""
    rng = np.random.default_rng(random_state)
    params = estimator.get_params()
    unset = [key for key, value in params.items() if key.split("__")[-1] == "random_state" and value is None]
    return estimator.set_params(**{key: int(rng.integers(2**31)) for key in sorted(unset)}) if unset else estimator


def check_estimator(name: str, estimator: Any, methods: tuple[str, ...], otherwise: str) -> None:
    """Refuse what is no estimator of scikit-learn's kind, or lacks a method."""
    needed = ("fit", "get_params", *methods)
    if isinstance(estimator, type) or not all(hasattr(estimator, method) for method in needed):
        raise InputError(
            f"{name} is {estimator!r}, but it must be {otherwise} with {', '.join(needed)}; BaseEstimator of "
            "scikit-learn brings get_params."
        )


def check_sizes(**rows: int) -> None:
    """Two rows at least of each sample."""
    for name, size in rows.items():
        if size < 2:
            raise InputError(f"{name} has {size} row, but at least 2 are needed to tell signal from noise; add rows.")
