"""Base classes of all estimators: `fit` and `estimate` around the `_fit` and `_estimate` of a method.

`fit` checks the parameters, deletes an earlier fit, reads and scales the source and calls ``_fit(source, rng)``;
`estimate` reads, checks and scales the target and calls ``_estimate(target)``. scikit-learn's contract is kept here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from priorshift.errors import InputError, PriorShiftWarning, StoredVersionWarning
from priorshift.inference.joint import RatioInfluence
from priorshift.inference.prior_knowledge import PointPrior, read_prior
from priorshift.io.parameters import check_settings, is_known
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import RowMetadata
from priorshift.io.sample_size import warn_of_copies, warn_of_few_groups
from priorshift.problem import Problem, Sample, Source, SourceLayout, SourceReference, Target
from priorshift.progress import show_progress
from priorshift.results import PriorEstimate
from priorshift.version import __version__
from priorshift.warning_records import record_warnings, warn


class PUEstimator(BaseEstimator, ABC):
    """Base of estimators that are fitted on positive-unlabelled data."""

    accepts_text_labels: ClassVar[bool] = False
    takes_uncertain_prior: ClassVar[bool] = False  # source_prior may be a range or a distribution
    takes_audit: ClassVar[bool] = False  # fit and estimate accept an audit
    takes_weights: ClassVar[bool] = False  # fit and estimate accept weights
    uses_unlabeled: ClassVar[bool] = True  # the method uses U, so that it matters which positives are also rows of U
    keeps_rows: ClassVar[bool] = False  # a fit, and so a stored file, contains rows of the source
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"verbose"})  # may change after fit
    # defaults for estimators without the parameter
    scenario: Literal["case-control", "censoring"] = "case-control"
    standardize: bool = False
    keep_rows: bool = False
    verbose: bool = False
    random_state: Any = None
    _layout: SourceLayout | None  # set last, so it marks a finished fit; None after a fit to counts
    _version: str  # version of the library that fitted it

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: y is required and binary, and sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True  # converted to dense when it is read
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y has two values
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether a fit has finished."""
        return hasattr(self, "_layout")

    def fit(
        self,
        X: Any,
        y: Any,
        shared: Any = None,
        audit: Any = None,
        weights: Any = None,
        groups: Any = None,
        *,
        positive_label: Any = None,
    ) -> Self:
        """Fit the estimator to the source, once for all targets.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            Labelled positives and unlabelled rows. Columns of a data frame may hold text, categories, dates and missing
            cells: they are encoded as by :class:`TableEncoder`, fitted on the unlabelled rows. An array must hold
            numbers. Estimators that need the rows later keep a reference to an array, as scikit-learn's nearest
            neighbours do: do not change it in place before `estimate`.
        y : array-like of shape (rows,)
            Two values; the larger one means labelled positive, unless `positive_label` is given.
        shared : None, "identical" or array-like of shape (rows,)
            Which labelled and unlabelled rows are the same observation: none, those with identical values, or those
            with the same id. Under ``scenario="censoring"`` this is known and must be left out.
        audit : None or array-like of shape (rows,)
            True class of some unlabelled rows, drawn at random: 1 for a positive, 0 for a negative, and NaN, None or
            empty text for all other rows. Only for :class:`WitnessShift` and :class:`MixturePrior`.
        weights : None or array-like of shape (rows,)
            Sample weights, such as inverse sampling probabilities; only their ratios matter.
        groups : None or array-like of shape (rows,)
            Group of each row, such as the patient. Rows of a group are not independent: they stay in one fold, and
            their influences on the estimate are added up.
        positive_label : object
            Value of `y` that means labelled positive, such as "fraud".

        Returns
        -------
        Self
            The fitted estimator.
        """
        self._check_parameters()
        self._forget()
        labels: dict[str, Any] = {"positive_label": positive_label, "text_labels": self.accepts_text_labels}
        metadata = {"shared": shared, "audit": audit, "weights": weights, "groups": groups}
        with record_warnings(PriorShiftWarning, show=True) as records:
            source = Source.from_labels(
                X, y, scenario=self.scenario, standardize=self.standardize, **labels, **metadata
            )
            self.check_metadata(source.metadata)
            self.fit_source(source)
        if self.keep_rows:
            self.reference_ = SourceReference.from_fit(source, records)
        return self

    def source_of(self, problem: Problem) -> Source:
        """Build the source of a problem under this estimator's scenario and scaling.

        Metadata that the method does not use is refused; positives that seem to be rows of U as well cause a warning.
        """
        source = Source.from_samples(
            problem.positive, problem.unlabeled, scenario=self.scenario, standardize=self.standardize
        )
        self.check_metadata(source.metadata)
        if self.uses_unlabeled and self.scenario == "case-control":
            source.warn_of_unstated_sharing()
        return source

    def fit_source(self, source: Source) -> Self:
        """Fit the estimator to a source that was built under the same scenario, and return the estimator."""
        return self._fit_to(source, source)

    def _fit_to(self, source: Source, problem: Any) -> Self:
        """Fit the estimator to a source; `problem` is what the method is fitted to, the source or what contains it."""
        self._check_parameters()
        if source.scenario != self.scenario:
            raise InputError(f"the source was read under {source.scenario!r}, but scenario is {self.scenario!r}.")
        warn_of_copies(source.copies, "source rows")
        if source.groups is not None:
            warn_of_few_groups(source.U.observations, "unlabelled sample")
        self._forget()
        self.classes_ = source.classes
        self.n_features_in_, names = source.input_columns
        if names:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        with show_progress(self.verbose):
            self._fit(problem, np.random.default_rng(self.random_state))
        self._settings = self.get_params()
        self._version = __version__
        self._layout = source.layout
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a stored estimator, and warn if another version of the library fitted it."""
        super().__setstate__(state)
        fitted_by = state.get("_version", "an earlier version")
        if "_layout" in state and _compatible_series(fitted_by) != _compatible_series(__version__):
            warn(
                f"A stored estimator was fitted by priorshift {fitted_by}, but is loaded by {__version__}, whose "
                "results may differ; fit it again, or load it with the version that fitted it.",
                StoredVersionWarning,
            )

    def _forget(self) -> None:
        """Delete the fitted attributes, so that an interrupted fit does not look like a finished one."""
        for name in list(vars(self)):
            is_fitted_attribute = name.endswith("_") and not name.startswith("_")  # scikit-learn's convention
            if is_fitted_attribute or name == "_layout":
                delattr(self, name)

    def _seed(self, rng: np.random.Generator) -> Any:
        """Return `random_state`, or a seed drawn now if it is None, so that every `estimate` of a fit is the same."""
        return int(rng.integers(2**62)) if self.random_state is None else self.random_state

    def _check_parameters(self) -> None:
        """Refuse parameters of the constructor with invalid values; methods override this to add checks."""
        settings = self.get_params(deep=False)
        check_settings(settings)
        self._check_source_prior(settings.get("source_prior"))

    def _check_source_prior(self, source_prior: Any) -> None:
        """Refuse a `source_prior` that cannot be one, or that the method cannot use."""
        if is_known(source_prior):
            prior = read_prior(source_prior)
            if not (self.takes_uncertain_prior or isinstance(prior, PointPrior)):
                raise InputError(
                    f"source_prior is a {prior.by} ({prior}), but {type(self).__name__} accepts only a number, such as "
                    f"{prior.value:.3g}; pass that, or use WitnessShift or TCPU."
                )

    def check_metadata(self, metadata: RowMetadata) -> None:
        """Refuse an audit or weights that the method does not use."""
        if metadata.audit is not None and not self.takes_audit:
            raise InputError(f"{type(self).__name__} takes no audit; leave it out, or use WitnessShift, the default.")
        if metadata.weights is not None and not self.takes_weights:
            raise InputError(f"{type(self).__name__} takes no weights; leave them out, or use WitnessShift or TCPU.")

    def read_target(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> Target:
        """Read target rows and metadata as a user passes them to `estimate`, and warn of suspicious rows."""
        layout = self._target_layout(RowMetadata(audit=audit, weights=weights))
        return layout.read(X_target, audit=audit, weights=weights, groups=groups)

    def target_of(self, sample: Sample) -> Target:
        """Build a target from a sample of a problem, and warn of suspicious rows."""
        return self._target_layout(sample.metadata).target(sample.data, sample.metadata)

    def _target_layout(self, metadata: RowMetadata) -> SourceLayout:
        """Return the columns, scale and groups of the source, for reading a target with this metadata.

        Raise an error if there is no valid fit to rows, or the method does not use the metadata.
        """
        self._check_fit()
        self.check_metadata(metadata)
        if self._layout is None:
            raise InputError(
                f"{type(self).__name__} was fitted to counts, not to rows; pass a histogram of the target."
            )
        return self._layout

    def _check_fit(self) -> None:
        """Raise an error if there is no fit, or if a parameter that the fit depends on has changed since then."""
        if not hasattr(self, "_layout"):
            check_is_fitted(self)
        self._check_parameters()
        current, fitted = self.get_params(), self._settings
        for name in fitted:
            parameter = name.split("__")[0]  # "source_prior__folds" is a setting of the parameter source_prior
            if parameter in self.settings_of_estimate or name not in current:
                continue
            # objects, such as estimators, are equal if they are the same or are written in the same way
            if current[name] is not fitted[name] and repr(current[name]) != repr(fitted[name]):
                raise InputError(
                    f"{name} was {fitted[name]!r} when {type(self).__name__} was fitted and is {current[name]!r} now; "
                    "fit again."
                )

    @abstractmethod
    def _fit(self, source: Any, rng: np.random.Generator) -> None:
        """Fit the method to a source, and set the fitted attributes."""


def _compatible_series(version: str) -> list[str]:
    """Return the numbers of a version that must be equal for a stored fit: ["1"] of 1.2.3, but ["0", "2"] of 0.2.3."""
    numbers = version.split(".")
    return numbers[:2] if numbers[0] == "0" else numbers[:1]


class TargetPriorEstimator(PUEstimator):
    """Base of estimators of a target's prior."""

    label: ClassVar[str]  # name of the method in results and tables

    def estimate(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> PriorEstimate:
        """Estimate the prior of the population that `X_target` is a sample of.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source, which are encoded as in `fit`.
        audit, weights, groups : None or array-like of shape (rows,)
            As in `fit`, for the rows of the target. A group with the name of one of the source is the same group.

        Returns
        -------
        PriorEstimate
            If the data determine nothing, ``value`` is NaN and the interval is [0, 1], with a warning.
        """
        return self.estimate_target(self.read_target(X_target, audit, weights, groups))

    def estimate_target(self, target: Target) -> PriorEstimate:
        """Estimate the prior of a target that was read by `read_target` or `target_of`."""
        with show_progress(self.verbose):
            return self._estimate(target)

    def estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        """Return the estimate and its influence function, for comparing targets; None if the method has none."""
        with show_progress(self.verbose):
            return self._estimate_jointly(target)

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        """Do what `estimate_jointly` does; overridden by methods that have an influence function."""
        return self._estimate(target), None

    @abstractmethod
    def _estimate(self, target: Target) -> PriorEstimate:
        """Estimate the prior of a target; implemented by each method."""


class PUClassifier(ClassifierMixin, PUEstimator):
    """Base of classifiers that are fitted on positive-unlabelled data and predict the class."""

    accepts_text_labels = True

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags of a binary classifier."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # ClassifierMixin has set it to True
        tags.classifier_tags.poor_score = True  # 0 means unlabelled, so agreement with y is not the aim
        return tags

    def _read_rows(self, X: Any) -> Target:
        """Read rows whose class is to be predicted; named columns may be in any order, and come in that of the fit."""
        layout = self._target_layout(RowMetadata())
        table = read_table(X, "X")
        width, expected = table.width, self.n_features_in_
        has_names = table.columns and hasattr(self, "feature_names_in_")  # names are compared when columns are matched
        if width != expected and not has_names:
            raise InputError(
                f"X has {width} features, but {type(self).__name__} is expecting {expected} features as input; pass "
                "the same columns in the same order."
            )
        return layout.read_rows(table)
