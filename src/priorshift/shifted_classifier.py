"""A classifier for one target after the other, adapted to each by its estimated prior."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from priorshift.adapt import TargetMetrics, check_target_prior, shifted_posterior, shifted_threshold, target_metrics
from priorshift.base import PUClassifier, PUEstimator
from priorshift.errors import DuplicateRowsWarning, InputError, OutOfRangeWarning
from priorshift.formatting import format_short
from priorshift.io.column_checks import FarValueWarning
from priorshift.io.parameters import check_estimator, check_prior, seeded
from priorshift.io.row_metadata import RowMetadata, metadata_arguments
from priorshift.io.tables import Table
from priorshift.methods.nnpu import warn_of_few
from priorshift.methods.witness_shift import WitnessShift
from priorshift.problem import Source
from priorshift.results import PriorEstimate
from priorshift.scores.calibration import calibrate
from priorshift.source_prior.estimated import LEAST_PRIOR, estimate_source_prior
from priorshift.source_prior.km import KM2
from priorshift.warning_records import suppress_warnings, warn

_TINY = 1e-15  # what a probability of 0 or 1 is taken for
_FAR = 30.0  # standard errors beyond an end, of which nothing is left inside but rounding


class ShiftedClassifier(PUClassifier):
    """A classifier that is fitted once on the source and adapted to the prior of each target.

    Parameters
    ----------
    classifier : classifier
        A classifier with ``fit(X, y)`` and ``predict_proba`` or ``decision_function``. See `predicts`.
    prior_estimator : estimator or None
        An estimator with ``fit(X, y)`` and ``estimate(X_target)``. Default None, which is :class:`WitnessShift`. Wrap
        one that is already fitted to the same source in scikit-learn's ``FrozenEstimator``.
    source_prior : float or None
        π, where it is known. Default None: the classifier's ``prior_``, the prior estimator's ``source_prior_``, or,
        where there is neither, the estimate of :class:`KM2`.
    predicts : {"auto", "positive", "labeled"}
        What the classifier predicts after it was fitted on labelled (1) and unlabelled (0) rows. A PU classifier
        predicts P(Y=1|x), "positive"; so does one in scikit-learn's ``FrozenEstimator`` that was fitted on true classes
        of the source. An ordinary classifier predicts who is "labeled"; its cross-fitted scores are then calibrated to
        probabilities of the class. "auto" is "positive" for frozen classifiers and those with ``predicts_positive``,
        such as :class:`NNPUClassifier`, and "labeled" for others.
    folds : int
        Number of folds of that cross-fitting.
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of the folds, and of the two estimators where they have no random_state of their own.

    Attributes
    ----------
    classifier_, prior_estimator_
        The fitted estimators.
    calibration_ : tuple of float
        a, b of P(Y=1|x) = σ(a·score + b); (1, 0) where the classifier predicts the class itself.
    source_prior_ : float
        π.
    estimate_ : PriorEstimate or None
        Estimate of the last target.
    target_prior_ : float
        π′; π before `adapt`. Where the estimate lies at an end of [0, 1], it is moved inside according to its error,
        with a warning.
    threshold_ : float
        Threshold of the source posterior.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002). Adjusting the outputs of a classifier to new a priori probabilities: a
    simple procedure. Neural Computation 14.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift import ShiftedClassifier, TCPU, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.8, random_state=0)
    >>> shifted = ShiftedClassifier(LogisticRegression(), TCPU(0.2), random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> before = (shifted.predict(s.target) == s.target_labels).mean()
    >>> after = (shifted.adapt(s.target).predict(s.target) == s.target_labels).mean()
    >>> print(f"{shifted.target_prior_:.2f} {shifted.threshold_:.2f} {before:.2f} {after:.2f}")
    0.79 0.06 0.90 0.96
    """

    takes_audit = True  # if the prior estimator does, who refuses it otherwise
    takes_weights = True

    def __init__(
        self,
        classifier: Any,
        prior_estimator: Any = None,
        *,
        source_prior: float | None = None,
        predicts: Literal["auto", "positive", "labeled"] = "auto",
        folds: int = 5,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.classifier = classifier
        self.prior_estimator = prior_estimator
        self.source_prior = source_prior
        self.predicts = predicts
        self.folds = folds
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        with suppress_warnings(FarValueWarning, DuplicateRowsWarning):  # they were said of the source
            self._fit_parts(source, rng)

    def _fit_parts(self, source: Source, rng: np.random.Generator) -> None:
        table, y = source.table, source.labeled.astype(int)
        prior_estimator = WitnessShift() if self.prior_estimator is None else clone(self.prior_estimator)
        classifier = clone(self.classifier)
        if self.random_state is not None:
            for part in (prior_estimator, classifier):
                seeded(part, rng.integers(2**31))
        shared = source.shared_argument
        if isinstance(prior_estimator, FrozenEstimator):
            self.prior_estimator_ = prior_estimator.estimator
        else:
            metadata = replace(source.metadata, audit=source.audit_column)
            self.prior_estimator_ = prior_estimator.fit(
                _rows_for(prior_estimator, table), y, **metadata_arguments(prior_estimator, metadata)
            )
        shared_rows = {"shared": shared} if shared is not None and has_fit_parameter(classifier, "shared") else {}
        weights = {}
        if source.weights is not None and has_fit_parameter(classifier, "sample_weight"):
            weights["sample_weight"] = source.weights
        self.classifier_ = clone(classifier).fit(table.values, y, **shared_rows, **weights)
        self._order = self._column_order(table)
        _log_odds(self.classifier_, table.values[:2, self._order])  # better now than when it is needed
        prior = self._prior(source)
        self.calibration_ = (1.0, 0.0)
        if not self._predicts_positive():
            folds = min(self.folds, *source.sizes)
            fold = source.deal(folds, rng)
            scores = np.empty(len(y))
            for k in range(folds):
                of_fold = {name: values[fold != k] for name, values in weights.items()}
                model = clone(classifier).fit(table.values[fold != k], y[fold != k], **of_fold)
                scores[fold == k] = _log_odds(model, table.values[fold == k])
            counts = [
                n * mass
                for n, mass in zip(source.effective_sizes, (source.positive_mass, source.population_mass), strict=True)
            ]
            self.calibration_ = calibrate(scores[source.positive], scores[source.population], prior, *counts)
            warn_of_few(len(source.positive))
        self.source_prior_ = prior
        self._set_target_prior(None, prior)

    def _prior(self, source: Source) -> float:
        """π as given, the classifier's, the prior estimator's, or KM2's."""
        prior = self.source_prior or getattr(self.classifier_, "prior_", None)
        prior = prior or getattr(self.prior_estimator_, "source_prior_", None)
        if prior is None:
            prior = estimate_source_prior(KM2(scenario=source.scenario), source, self.random_state).value  # type: ignore[arg-type]
        return float(np.clip(prior, LEAST_PRIOR, 1 - LEAST_PRIOR))

    def adapt(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> ShiftedClassifier:
        """Estimate the prior of a target population, and adapt the predictions to it.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        audit : None or array-like of shape (rows,)
            Classes that were looked up, for a prior estimator that uses them, such as :class:`WitnessShift`.
        weights, groups : None or array-like of shape (rows,)
            As in `fit`, for the target's rows.

        Returns
        -------
        ShiftedClassifier
            Itself.
        """
        self._check_fit()
        target = self._target_layout(RowMetadata()).read(X_target)
        arguments = metadata_arguments(self.prior_estimator_, RowMetadata(audit, weights, groups))
        with suppress_warnings(FarValueWarning):
            estimate = self.prior_estimator_.estimate(_rows_for(self.prior_estimator_, target.table), **arguments)
        return self._adapt_to_estimate(estimate, len(target))

    def adapt_to(self, target_prior: float | PriorEstimate) -> ShiftedClassifier:
        """Adapt the predictions to a target prior that is known or was estimated before.

        Parameters
        ----------
        target_prior : float or PriorEstimate
            π′, from 0 to 1; the source's own prior undoes an earlier `adapt`.

        Returns
        -------
        ShiftedClassifier
            Itself.
        """
        self._check_fit()
        if isinstance(target_prior, PriorEstimate):
            return self._adapt_to_estimate(target_prior, target_prior.sizes[2])
        return self._set_target_prior(None, check_target_prior(target_prior))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the posterior in the target adapted to, or in the source before `adapt`.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows, 2)
            P′(Y=0|x) and P′(Y=1|x).
        """
        p = shifted_posterior(self._source_posterior(X), self.source_prior_, self.target_prior_)
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likelier class in the target adapted to, or in the source before `adapt`.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows,)
            Values of `classes_`; the larger one means positive.
        """
        p = self._source_posterior(X)
        return np.asarray(self.classes_[(p > self.threshold_).astype(int)])

    def metrics(self, X_positive: Any, X_target: Any) -> TargetMetrics:
        """Compute metrics of the decisions in the target, without its labels.

        Parameters
        ----------
        X_positive : array-like or data frame of shape (rows, features)
            Positives that were not used in `fit`.
        X_target : array-like or data frame of shape (rows, features)
            Rows of the target adapted to.

        Returns
        -------
        TargetMetrics
        """
        positive, target = self._source_posterior(X_positive), self._source_posterior(X_target)
        return target_metrics(positive, target, self.target_prior_, self.threshold_)

    def _source_posterior(self, X: Any) -> NDArray[np.float64]:
        rows = self._read_rows(X).table.values[:, self._order]
        a, b = self.calibration_
        return np.asarray(expit(a * _log_odds(self.classifier_, rows) + b))

    def _column_order(self, table: Table) -> NDArray[np.intp]:
        """Find the order of columns that the classifier was fitted with: a frozen one may have used a data frame."""
        n = table.values.shape[1]
        names = list(getattr(self.classifier_, "feature_names_in_", []))
        expected = len(names) or getattr(self.classifier_, "n_features_in_", n)
        if expected != n or (names and table.columns and set(names) != set(table.columns)):
            raise InputError(
                f"{type(self.classifier).__name__} was fitted on {expected} columns"
                f"{f' ({names[0]}, …)' if names else ''}, but X has {n}"
                f"{f' ({table.columns[0]}, …)' if table.columns else ''}; pass the same columns to both."
            )
        order = [table.columns.index(name) for name in names] if names and table.columns else range(n)
        return np.array(order, dtype=np.intp)

    def _scenario(self) -> str:
        """Return the scenario of the two estimators, which must agree."""
        parts = WitnessShift() if self.prior_estimator is None else self.prior_estimator, self.classifier
        said = {getattr(part, "scenario", None) for part in parts} - {None}
        if len(said) > 1:
            raise InputError(
                f"the classifier and the prior estimator have scenario {' and '.join(sorted(map(repr, said)))}; the "
                "population is the same, so set both to the same scenario."
            )
        return str(*said) if said else "case-control"

    def _adapt_to_estimate(self, estimate: PriorEstimate, rows: int) -> ShiftedClassifier:
        """Adapt to an estimate from some rows of the target."""
        if not np.isfinite(estimate.value):
            raise InputError(
                "the target prior cannot be estimated from these data (see the warning); pass a known prior to "
                "adapt_to."
            )
        return self._set_target_prior(estimate, _inside(estimate, rows))

    def _set_target_prior(self, estimate: PriorEstimate | None, target_prior: float) -> ShiftedClassifier:
        self.estimate_ = estimate
        self.target_prior_ = target_prior
        self.threshold_ = shifted_threshold(self.source_prior_, target_prior)
        return self

    def _predicts_positive(self) -> bool:
        if self.predicts != "auto":
            return self.predicts == "positive"
        return isinstance(self.classifier, FrozenEstimator) or getattr(self.classifier, "predicts_positive", False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.source_prior is not None:
            check_prior(self.source_prior)
        score = "predict_proba" if hasattr(self.classifier, "predict_proba") else "decision_function"
        if self._predicts_positive():
            score = "predict_proba"
        check_estimator("classifier", self.classifier, (score,), "a classifier")
        if self.prior_estimator is not None:
            check_estimator("prior_estimator", self.prior_estimator, ("estimate",), "None or an estimator")


def _inside(estimate: Any, rows: int) -> float:
    """Move an estimate at an end of [0, 1] inside, since data cannot show that a prior is exactly 0 or 1.

    It is the mean of N(raw, standard error²) within [0, 1]; where no error is known, or it is far smaller than the
    distance to the end, half a row of the target.
    """
    value = float(estimate.value)
    if 0 < value < 1:
        return value
    raw, error = (
        float(getattr(estimate, name, default)) for name, default in (("raw", value), ("standard_error", np.nan))
    )
    half_row = 0.5 / (rows + 1)
    inside = abs(value - half_row)
    if error > 0 and abs(raw - value) < _FAR * error < np.inf:
        low, high = (np.array([0.0, 1.0]) - raw) / error
        inside = float(np.clip(stats.truncnorm.mean(low, high, raw, error), half_row, 1 - half_row))
    warn(
        f"The estimate {format_short(raw)} (standard error {error:.2g}) lies at an end of [0, 1] or outside, where "
        f"all rows would get the same decision; decisions use a target prior of {inside:.2g} instead, which is within "
        "the standard error. If you know the target prior, pass it to adapt_to.",
        OutOfRangeWarning,
    )
    return inside


def _log_odds(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the log odds of the second class from predict_proba, or else from the decision function."""
    name, proba = type(model).__name__, hasattr(model, "predict_proba")
    with warnings.catch_warnings():  # a model that was fitted on a frame: the columns are in its order
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        answer = np.asarray(model.predict_proba(X) if proba else model.decision_function(X), dtype=float)
    if answer.shape != ((len(X), 2) if proba else (len(X),)) or not np.isfinite(answer).all():
        raise InputError(
            f"{name} gave {'probabilities' if proba else 'scores'} of shape {answer.shape} for {len(X)} rows, or some "
            "that are not finite; a classifier of two classes that knows both is expected."
        )
    return np.asarray(logit(np.clip(answer[:, 1], _TINY, 1 - _TINY))) if proba else answer


def _rows_for(estimator: Any, table: Table) -> Any:
    """Return the rows as an estimator takes them: ours know a table and its columns, others an array."""
    return table if isinstance(estimator, PUEstimator) else table.values
