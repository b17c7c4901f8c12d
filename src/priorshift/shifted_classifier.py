"""A classifier for one target after the other, adapted to each by its estimated prior."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit, ndtri
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from priorshift.adapt import (
    Decisions,
    TargetMetrics,
    check_target_prior,
    decide,
    shifted_posterior,
    shifted_threshold,
    target_metrics,
)
from priorshift.base import PUClassifier, PUEstimator
from priorshift.errors import DuplicateRowsWarning, InputError, OutOfRangeWarning
from priorshift.formatting import format_short
from priorshift.io.column_checks import FarValueWarning
from priorshift.io.parameters import check_estimator, check_prior, is_number, seeded
from priorshift.io.row_metadata import RowMetadata, metadata_arguments
from priorshift.io.tables import Table
from priorshift.methods.nnpu import warn_of_few
from priorshift.methods.witness_shift import WitnessShift
from priorshift.problem import Source
from priorshift.results import Interval, PriorEstimate
from priorshift.scores.calibration import IDENTITY, Calibration, calibrate
from priorshift.source_prior import LEAST_PRIOR, estimate_source_prior
from priorshift.source_prior.km import KM2
from priorshift.warning_records import suppress_warnings, warn

_TINY = 1e-15  # probabilities are clipped to [_TINY, 1 − _TINY]
_CONFIDENCE = 0.95  # of what is expected of decisions, where the target prior has no interval
_MAX_ERRORS = 30.0  # standard errors outside [0, 1] beyond which a truncated normal is only rounding error


class ShiftedClassifier(PUClassifier):
    """A classifier that is fitted once on the source and adapted to the prior of each target.

    Parameters
    ----------
    classifier : classifier
        A classifier with ``fit(X, y)`` and ``predict_proba`` or ``decision_function``. See `predicts`. A scikit-learn
        pipeline gets a data frame as you pass it, so that its steps can select and encode columns; any other classifier
        gets numbers, encoded as by :class:`TableEncoder`.
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
    calibration_ : Calibration
        Log odds of P(Y=1|x) as a function of the score; the identity where the classifier predicts the class itself.
    source_prior_ : float
        π.
    estimate_ : PriorEstimate or None
        Estimate of the last target.
    target_prior_ : float
        π′; π before `adapt`. The mean of all possible target priors (``estimate_.details["mean"]``) where the prior
        estimator gives one; otherwise the estimate, moved inside where it is 0 or 1, with a warning.
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

    takes_audit = True  # if the prior estimator does, which otherwise raises an error
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
        """Fit both estimators, set the source prior, and calibrate the classifier's scores if it predicts labels.

        Before `adapt` the target prior is that of the source.
        """
        prior_estimator = WitnessShift() if self.prior_estimator is None else clone(self.prior_estimator)
        classifier = clone(self.classifier)
        if self.random_state is not None:
            for part in (prior_estimator, classifier):
                seeded(part, rng.integers(2**31))
        with suppress_warnings(FarValueWarning, DuplicateRowsWarning):  # these were already issued for the source
            table, y = source.table, source.labeled.astype(int)
            if isinstance(prior_estimator, FrozenEstimator):
                self.prior_estimator_ = prior_estimator.estimator
            else:
                metadata = metadata_arguments(prior_estimator, replace(source.metadata, audit=source.audit_column))
                self.prior_estimator_ = prior_estimator.fit(_rows_for(prior_estimator, table), y, **metadata)
            arguments = _fit_arguments(classifier, source)
            self._passes_native = self._takes_frame(source)
            self.classifier_ = clone(classifier).fit(self._rows_as_passed(table), y, **arguments)
            self._column_order = self._match_columns(source)
            _log_odds(self.classifier_, self._classifier_rows(table.take(slice(2))))  # raise errors now
            self.source_prior_ = self._choose_source_prior(source)
            self.calibration_ = IDENTITY
            if not self._predicts_positive():
                self.calibration_ = self._calibrate(classifier, source, arguments, rng)
                warn_of_few(len(source.positive))
        self._set_target_prior(None, self.source_prior_)

    def _choose_source_prior(self, source: Source) -> float:
        """Return the stated source prior, else that of the classifier, of the prior estimator or of KM2.

        Only an estimate may be replaced, since odds need a prior that is not 0 or 1.
        """
        if self.source_prior is not None:
            return float(self.source_prior)
        estimators = ((_last_step(self.classifier_), "prior_"), (self.prior_estimator_, "source_prior_"))
        for estimator, attribute in estimators:
            stated: Any = getattr(estimator, "source_prior", None)
            if is_number(stated):
                return float(stated)
            if prior := getattr(estimator, attribute, None):
                break
        else:
            prior = estimate_source_prior(KM2(scenario=source.scenario), source, self.random_state).value  # type: ignore[arg-type]
        return float(np.clip(prior, LEAST_PRIOR, 1 - LEAST_PRIOR))

    def _calibrate(
        self, classifier: Any, source: Source, arguments: dict[str, Any], rng: np.random.Generator
    ) -> Calibration:
        """Return the log odds of P(Y=1|x) as a function of the score, from cross-fitted scores of the classifier.

        `classifier` is not fitted; `arguments` are those of its `fit`, of which folds get weights and groups.
        """
        table, y, folds = source.table, source.labeled.astype(int), min(self.folds, *source.sizes)
        fold, scores = source.deal_folds(folds, rng), np.empty(len(y))
        for k in range(folds):
            train = fold != k
            of_rows = {name: v[train] for name, v in arguments.items() if name.endswith(("sample_weight", "groups"))}
            fitted = clone(classifier).fit(self._rows_as_passed(table.take(train)), y[train], **of_rows)
            scores[~train] = _log_odds(fitted, self._classifier_rows(table.take(~train)))
        # masses sum to 1, so that these weights sum to the effective sample size
        weights_P, weights_U = source.P.size * source.P.mass, source.U.size * source.U.mass
        return calibrate(scores[source.positive], scores[source.population], self.source_prior_, weights_P, weights_U)

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
        target = self._target_layout(RowMetadata()).read(X_target)
        arguments = metadata_arguments(self.prior_estimator_, RowMetadata(audit, weights, groups))
        with suppress_warnings(FarValueWarning):
            estimate = self.prior_estimator_.estimate(_rows_for(self.prior_estimator_, target.table), **arguments)
        return self._set_target_prior(estimate, _move_inside(estimate, len(target)))

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
            return self._set_target_prior(target_prior, _move_inside(target_prior, target_prior.sizes[2]))
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
        positive = shifted_posterior(self._source_posterior(X), self.source_prior_, self.target_prior_)
        return np.stack([1 - positive, positive], axis=1)

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
        is_positive = self._source_posterior(X) > self.threshold_
        return np.asarray(self.classes_[is_positive.astype(int)])

    def decide(
        self,
        X: Any,
        *,
        cost_ratio: float | None = None,
        top: int | None = None,
        precision: float | None = None,
        recall: float | None = None,
    ) -> Decisions:
        """Decide on the rows of the target adapted to, by a rule that suits its prior; pass at most one of the rules.

        Where positives are rare, few posteriors exceed 0.5, so :meth:`predict` finds hardly any of them.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.
        cost_ratio : float or None
            Cost of a missed positive in units of that of a false alarm. Default 1, the decisions of :meth:`predict`.
        top : int or None
            Number of rows to decide positive, those with the largest posteriors, such as the number you can follow up.
        precision : float or None
            Wanted share of positives among the rows decided positive.
        recall : float or None
            Wanted share of all positives that are decided positive.

        Returns
        -------
        Decisions
            ``is_positive`` for each row, ``threshold`` on the posterior, and the expected ``true_positives``,
            ``precision`` and ``recall``, each with an interval such as ``precision_interval``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> import priorshift as ps
        >>> s = ps.simulate.gaussian(0.1, 0.02, n_source=4000, n_target=4000, shared=False, random_state=0)
        >>> shifted = ps.ShiftedClassifier(LogisticRegression(), source_prior=0.1, random_state=0).fit(s.X, s.y)
        >>> found = shifted.adapt(s.target).decide(s.target, top=100)
        >>> int(found.is_positive.sum()), int(s.target_labels[found.is_positive].sum()) in found.true_positives_interval
        (100, True)
        """
        scores = self._scores(X)
        low, high, confidence = self._target_prior_range()
        posterior, at_low, at_high = (
            shifted_posterior(expit(self.calibration_(scores)), self.source_prior_, prior)
            for prior in (self.target_prior_, low, high)
        )
        rule = {"cost_ratio": cost_ratio, "top": top, "precision": precision, "recall": recall}
        return decide(posterior, (at_low, at_high), confidence, scores, **rule)  # type: ignore[arg-type]

    def _target_prior_range(self) -> tuple[float, float, float]:
        """Return the ends of the target prior's interval and its confidence; a given prior is known exactly."""
        prior, estimate = self.target_prior_, self.estimate_
        if estimate is None:
            return prior, prior, _CONFIDENCE
        if estimate.interval is not None:
            return estimate.interval.low, estimate.interval.high, estimate.interval.confidence
        error = float(ndtri((1 + _CONFIDENCE) / 2)) * getattr(estimate, "standard_error", np.nan)
        if not np.isfinite(error):  # nothing is known of the error of the estimate
            return 0.0, 1.0, _CONFIDENCE
        return max(prior - error, 0.0), min(prior + error, 1.0), _CONFIDENCE

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
            Each metric has an interval, such as ``precision_interval``, which includes that of the target prior.
        """
        positive, target = self._source_posterior(X_positive), self._source_posterior(X_target)
        interval = Interval(*self._target_prior_range(), "prior")
        return target_metrics(positive, target, self.target_prior_, self.threshold_, target_prior_interval=interval)

    def _source_posterior(self, X: Any) -> NDArray[np.float64]:
        """Return the calibrated source posterior P(Y=1|x) of each row of X, as a user passes it."""
        scores = self._scores(X)
        return np.asarray(expit(self.calibration_(scores)))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the classifier's score of each row of X, as a user passes it."""
        table = self._read_rows(X).table  # refuses an estimator that is not fitted
        return _log_odds(self.classifier_, self._classifier_rows(table))

    def _takes_frame(self, source: Source) -> bool:
        """Return whether the classifier gets the data frame that the user passed, rather than numbers.

        It does if it is, or wraps, a pipeline, or if it was fitted before on the columns of the frame.
        """
        columns = source.input_columns[1]
        if columns is None or source.table.native is None:  # an array, or a file
            return False
        parts = [self.classifier, *self.classifier.get_params().values()]
        fitted_on = getattr(self.classifier, "feature_names_in_", ())
        was_fitted = source.table.origin is not None and set(fitted_on) == set(columns)
        return was_fitted or any(isinstance(part, Pipeline) for part in parts)

    def _rows_as_passed(self, table: Table) -> Any:
        """Return the rows of a table as numbers, or as the user passed them where the classifier takes them so."""
        if not self._passes_native:
            return table.values
        if table.native is None:
            raise InputError(f"{table.name} is a file, but the classifier was fitted to a data frame; pass one.")
        return table.native

    def _classifier_rows(self, table: Table) -> Any:
        """Return the rows of a table with the columns of the fitted classifier, in the order that it uses."""
        rows = self._rows_as_passed(table)
        if isinstance(rows, np.ndarray):
            return rows[:, self._column_order]
        names = self.feature_names_in_[self._column_order].tolist()
        return nw.to_native(nw.from_native(rows, eager_only=True).select(names))

    def _match_columns(self, source: Source) -> NDArray[np.intp]:
        """Return the positions in the source of the columns of the fitted classifier, in the order that it uses.

        Only a frozen classifier, fitted before, may have used another order or other columns, which are refused.
        """
        width, columns = source.input_columns if self._passes_native else (source.table.width, source.table.columns)
        names = list(getattr(self.classifier_, "feature_names_in_", []))
        expected = len(names) or getattr(self.classifier_, "n_features_in_", width)
        if expected != width or (names and columns and set(names) != set(columns)):
            fitted = f" ({names[0]}, …)" if names else ""
            received = f" ({columns[0]}, …)" if columns else ""
            raise InputError(
                f"{type(self.classifier).__name__} was fitted on {expected} columns{fitted}, but X has "
                f"{width}{received}; pass the same columns to both."
            )
        if not names or not columns:
            return np.arange(width)
        return np.array([columns.index(name) for name in names], dtype=np.intp)

    @property
    def scenario(self) -> Literal["case-control", "censoring"]:  # type: ignore[override]
        """The scenario of the two estimators, which must agree."""
        prior_estimator = WitnessShift() if self.prior_estimator is None else self.prior_estimator
        parts = prior_estimator, _last_step(self.classifier)
        scenarios = {getattr(part, "scenario", None) for part in parts} - {None}
        if len(scenarios) > 1:
            names = " and ".join(sorted(map(repr, scenarios)))
            raise InputError(f"the classifier and the prior estimator have scenario {names}; set both to the same.")
        return "censoring" if "censoring" in scenarios else "case-control"

    def _set_target_prior(self, estimate: PriorEstimate | None, target_prior: float) -> ShiftedClassifier:
        """Set the target prior, with its estimate if there is one, and the threshold that follows from it."""
        self.estimate_ = estimate
        self.target_prior_ = target_prior
        self.threshold_ = shifted_threshold(self.source_prior_, target_prior)
        return self

    def _predicts_positive(self) -> bool:
        """Return whether the classifier predicts the class, rather than which rows are labelled."""
        if self.predicts != "auto":
            return self.predicts == "positive"
        is_frozen = isinstance(self.classifier, FrozenEstimator)
        return is_frozen or getattr(_last_step(self.classifier), "predicts_positive", False)

    def _check_parameters(self) -> None:
        """Check the settings, the classifier and the prior estimator."""
        super()._check_parameters()
        if self.source_prior is not None:
            check_prior(self.source_prior)
        has_probabilities = self._predicts_positive() or hasattr(self.classifier, "predict_proba")
        score = "predict_proba" if has_probabilities else "decision_function"
        check_estimator("classifier", self.classifier, (score,), "a classifier")
        if self.prior_estimator is not None:
            check_estimator("prior_estimator", self.prior_estimator, ("estimate",), "None or an estimator")


def _move_inside(estimate: Any, rows: int) -> float:
    """Return an estimated target prior, moved inside if it is 0 or 1, since data cannot show a prior of exactly that.

    The result is the mean of all possible priors: that of the estimate, or else of N(raw, standard error²) truncated to
    [0, 1]; where the error is unknown, or far smaller than the distance to the end, it is half a row from the end, of
    the target's `rows`. An estimate of NaN is refused.
    """
    value = float(estimate.value)
    if not np.isfinite(value):
        raise InputError("the target prior cannot be estimated from these data; pass a known prior to adapt_to.")
    mean = getattr(estimate, "details", {}).get("mean")
    mean = value if mean is None or not np.isfinite(mean) else float(mean)
    if 0 < mean < 1:
        return mean
    raw, error = float(getattr(estimate, "raw", value)), float(getattr(estimate, "standard_error", np.nan))
    half_row = 0.5 / (rows + 1)
    inside = abs(value - half_row)  # half a row from the end, 0 or 1
    # the condition is false if the error is NaN or infinite
    if error > 0 and abs(raw - value) < _MAX_ERRORS * error < np.inf:
        low, high = (np.array([0.0, 1.0]) - raw) / error
        inside = float(np.clip(stats.truncnorm.mean(low, high, raw, error), half_row, 1 - half_row))
    warn(
        f"The estimate {format_short(raw)} (standard error {error:.2g}) lies at an end of [0, 1] or outside, so a "
        f"target prior of {inside:.2g} is used for decisions. If you know the target prior, pass it to adapt_to.",
        OutOfRangeWarning,
    )
    return inside


def _log_odds(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return each row's log odds of the second class by predict_proba, or else its score by decision_function."""
    has_probabilities = hasattr(model, "predict_proba")
    with warnings.catch_warnings():  # X has no column names, but its columns are in the model's order
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        output = model.predict_proba(X) if has_probabilities else model.decision_function(X)
    output = np.asarray(output, dtype=float)
    kind, shape = ("probabilities", (len(X), 2)) if has_probabilities else ("scores", (len(X),))
    if output.shape != shape or not np.isfinite(output).all():
        raise InputError(
            f"{type(model).__name__} gave {kind} of shape {output.shape} for {len(X)} rows, or not finite ones; a "
            "classifier fitted on two classes is expected."
        )
    if not has_probabilities:
        return output
    return np.asarray(logit(np.clip(output[:, 1], _TINY, 1 - _TINY)))


def _rows_for(estimator: Any, table: Table) -> Any:
    """Return the rows as a prior estimator takes them: a Table for estimators of this library, an array for others.

    One that was fitted before on a data frame with text gets the rows as the user passed them.
    """
    if not isinstance(estimator, PUEstimator):
        return table.values
    fitted_on = set(getattr(estimator, "feature_names_in_", table.columns or ()))
    return table if table.origin is None or fitted_on == set(table.columns or ()) else table.native


def _last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, which has what is special to a PU classifier; others themselves."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _fit_arguments(classifier: Any, source: Source) -> dict[str, Any]:
    """Return what the classifier's `fit`, or that of the last step of a pipeline, takes besides X and y.

    Where scikit-learn's metadata routing is on, it is what the classifier or its parts request. A pipeline also gets
    weights that its last step takes and has neither requested nor declined, so that scikit-learn refuses them.
    """
    metadata = {"shared": source.shared_argument, "sample_weight": source.weights, "groups": source.groups}
    metadata = {name: value for name, value in metadata.items() if value is not None}
    last, is_pipeline = _last_step(classifier), isinstance(classifier, Pipeline)
    taken = {name for name in ("shared", "sample_weight") if has_fit_parameter(last, name)}
    if not get_config()["enable_metadata_routing"]:
        prefix = f"{classifier.steps[-1][0]}__" if is_pipeline else ""
        return {prefix + name: metadata[name] for name in taken & metadata.keys()}
    requested = get_routing_for_object(classifier).consumes("fit", metadata.keys())
    request = get_routing_for_object(last)  # of a single estimator, unless it wraps others
    if "sample_weight" in taken and isinstance(request, MetadataRequest):
        is_unset = request.fit.requests.get("sample_weight") is None
        requested = requested | {"sample_weight"} if is_unset else requested
    return {name: metadata[name] for name in requested & metadata.keys()}
