"""The template of every estimator: what `fit` and `estimate` do before and after what is special to a method.

`fit` checks the parameters, forgets an earlier fit, reads and scales the source and calls ``_fit(source, rng)``;
`estimate` reads, checks and scales the target and calls ``_estimate(target)``. scikit-learn's contract is kept here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from priorshift.errors import InputError, StoredVersionWarning
from priorshift.inference.joint import RatioInfluence
from priorshift.inference.prior_knowledge import PointPrior, read_prior
from priorshift.io.parameters import check_settings, is_known
from priorshift.io.readers import read_numeric_table
from priorshift.io.row_metadata import RowMetadata
from priorshift.problem import Problem, Sample, Source, SourceLayout, Target
from priorshift.progress import show_progress
from priorshift.results import PriorEstimate
from priorshift.version import __version__
from priorshift.warning_records import warn


class PUEstimator(BaseEstimator, ABC):
    """Base of estimators that are fitted on positive-unlabelled data."""

    reads_tables: ClassVar[bool] = True  # fit and estimate take a Table, with its columns
    _word_labels: ClassVar[bool] = False
    takes_uncertain_prior: ClassVar[bool] = False  # source_prior may be a range or a distribution, besides a number
    takes_audit: ClassVar[bool] = False  # fit and estimate take classes that were looked up
    takes_weights: ClassVar[bool] = False  # fit and estimate take weights of rows
    keeps_rows: ClassVar[bool] = False  # a fit, and so a stored file, holds rows of the source, beside what users bring
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"verbose"})  # they may change after fit
    _layout: SourceLayout | None  # set last, so it marks a finished fit; None after a fit to counts
    _version: str  # of the library that fitted it

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True  # made dense where it is read
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y has two values
        return tags

    def __sklearn_is_fitted__(self) -> bool:
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
            Labelled positives and unlabelled rows. Where the rows themselves are needed later, an array is kept and not
            copied, as by scikit-learn's nearest neighbours: do not change it in place before `estimate`.
        y : array-like of shape (rows,)
            Two values; the larger one means labelled positive, unless `positive_label` is given.
        shared : None, "identical" or array-like of shape (rows,)
            Which labelled and unlabelled rows are the same observation: none, those with identical values, or those
            with the same id. (Under ``scenario="censoring"`` this is known and must be left out.)
        audit : None or array-like of shape (rows,)
            The true class of some unlabelled rows, drawn at random and looked up: 1 for a positive, 0 for a negative,
            and nothing (NaN, None or empty text) for all other rows. Of :class:`WitnessShift` and
            :class:`MixturePrior`; other estimators refuse it.
        weights : None or array-like of shape (rows,)
            What each row stands for, such as the inverse of its probability to be drawn; their scale means nothing.
        groups : None or array-like of shape (rows,)
            Rows of one group, such as a patient's, are not independent; they stay together in folds, and what they do
            to the estimate adds up.
        positive_label : object
            The value of `y` that means labelled positive, such as "fraud" beside "ok" or beside nothing.

        Returns
        -------
        Self
            The fitted estimator.
        """
        self._check_parameters()
        self._forget()
        source = Source.from_labels(
            X,
            y,
            shared=shared,
            audit=audit,
            weights=weights,
            groups=groups,
            positive_label=positive_label,
            text_labels=self._word_labels,
            **self._source_settings,
        )
        self._check_metadata(source.metadata)
        return self.fit_source(source)

    def source_of(self, problem: Problem) -> Source:
        """Return the source of a problem as this estimator needs it, and warn of rows that may be shared."""
        self._check_parameters()
        source = Source.from_samples(problem.positive, problem.unlabeled, **self._source_settings)
        self._check_metadata(source.metadata)
        if getattr(self, "scenario", None) == "case-control":  # KM2-LS, without a scenario, does not use U
            source.warn_of_unstated_sharing()
        return source

    @property
    def _source_settings(self) -> dict[str, Any]:
        return {"scenario": self._scenario(), "standardize": getattr(self, "standardize", False)}

    def fit_source(self, source: Source) -> Self:
        """Fit the estimator to a source that was read before."""
        self._check_parameters()
        if source.scenario != self._scenario():
            raise InputError(f"the source was read under {source.scenario!r}, but scenario is {self._scenario()!r}.")
        source.warn_of_rows()
        self._forget()
        self.classes_ = source.classes
        self.n_features_in_ = source.table.values.shape[1]
        if source.table.columns:
            self.feature_names_in_ = np.asarray(source.table.columns, dtype=object)
        with show_progress(getattr(self, "verbose", False)):
            self._fit(source, np.random.default_rng(getattr(self, "random_state", None)))
        self._settings = self.get_params()
        self._version = __version__
        self._layout = source.layout
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fitted_by = state.get("_version", "an earlier version")
        if "_layout" in state and _generation(fitted_by) != _generation(__version__):
            warn(
                f"A stored estimator was fitted by priorshift {fitted_by}, but is loaded by {__version__}, which may "
                "answer otherwise or not at all; fit it again, or load it with the version that fitted it.",
                StoredVersionWarning,
            )

    def _forget(self) -> None:
        """An interrupted fit must leave nothing that could be mistaken for a fit."""
        for name in [name for name in vars(self) if name == "_layout" or (name[0] != "_" and name[-1] == "_")]:
            delattr(self, name)

    def _scenario(self) -> str:
        """Of estimators that have none, the unlabelled rows are the population sample."""
        return getattr(self, "scenario", "case-control")

    def _seed(self, rng: np.random.Generator) -> Any:
        """What `estimate` draws with: decided at fit, so that it answers alike each time; a Generator goes on."""
        given = getattr(self, "random_state", None)
        return int(rng.integers(2**62)) if given is None else given

    def _check_parameters(self) -> None:
        """What a name tells of a setting is checked here; a method adds what is special to it."""
        settings = self.get_params(deep=False)
        check_settings(settings)
        if is_known(settings.get("source_prior")):
            self._check_prior_knowledge(settings["source_prior"])

    def _check_prior_knowledge(self, source_prior: Any) -> None:
        prior = read_prior(source_prior)
        if not (self.takes_uncertain_prior or isinstance(prior, PointPrior)):
            raise InputError(
                f"source_prior is a {prior.by} ({prior}), but {type(self).__name__} takes only a number, such as "
                f"{prior.value:.3g}; pass that, or use WitnessShift or TCPU, which take a {prior.by} too."
            )

    def _check_metadata(self, metadata: RowMetadata) -> None:
        """Refuse an audit or weights that the method does not use."""
        if metadata.audit is not None and not self.takes_audit:
            raise InputError(
                f"{type(self).__name__} takes no audit; leave it out, or use WitnessShift, the default, which does."
            )
        if metadata.weights is not None and not self.takes_weights:
            raise InputError(
                f"{type(self).__name__} takes no weights; leave them out, or use WitnessShift, the default, or TCPU, "
                "which do."
            )

    def read_target(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> Target:
        """Read a target as `estimate` takes it, and warn of what is odd about it."""
        layout = self._target_layout(RowMetadata(audit=audit, weights=weights))
        return layout.read(X_target, audit=audit, weights=weights, groups=groups)

    def target_of(self, sample: Sample) -> Target:
        """Return a sample of a problem as a target, and warn of what is odd about it."""
        return self._target_layout(sample.metadata).target(sample.data, sample.metadata)

    def _target_layout(self, metadata: RowMetadata) -> SourceLayout:
        self._check_fit()
        self._check_metadata(metadata)
        if self._layout is None:
            raise InputError(
                f"{type(self).__name__} was fitted to counts, not to rows; pass a histogram of the target."
            )
        return self._layout

    def _check_fit(self) -> None:
        """Refuse to answer without a fit, or with settings that only another fit could heed."""
        check_is_fitted(self)
        self._check_parameters()
        now, before = self.get_params(), self._settings
        for name in (name for name in before if name.split("__")[0] not in self.settings_of_estimate):
            if name in now and now[name] is not before[name] and repr(now[name]) != repr(before[name]):
                raise InputError(
                    f"{name} was {before[name]!r} when {type(self).__name__} was fitted and is {now[name]!r} now; fit "
                    "again."
                )

    @abstractmethod
    def _fit(self, source: Source, rng: np.random.Generator) -> None: ...


def _generation(version: str) -> list[str]:
    """What must be the same for a stored fit to be understood: before 1.0 the second number too."""
    major, *rest = version.split(".")
    return [major] if major != "0" else [major, *rest[:1]]


class TargetPriorEstimator(PUEstimator):
    """Base of estimators of a target's prior."""

    label: ClassVar[str]  # what results and tables call the method

    def estimate(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> PriorEstimate:
        """Estimate the prior of the population that `X_target` is a sample of.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        audit, weights, groups : None or array-like of shape (rows,)
            As in `fit`, of the target's rows. A group of the source that stands here again is the same group.

        Returns
        -------
        PriorEstimate
            With ``value`` NaN, the interval [0, 1] if one is asked for, and a warning, where the data give no estimate.
        """
        return self.estimate_target(self.read_target(X_target, audit, weights, groups))

    def estimate_target(self, target: Target) -> PriorEstimate:
        """Estimate the prior of a target that was read before."""
        with show_progress(getattr(self, "verbose", False)):
            return self._estimate(target)

    def estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        """Estimate the prior, and return what its error has in common with that of other targets, if that is known."""
        with show_progress(getattr(self, "verbose", False)):
            return self._estimate_jointly(target)

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        return self._estimate(target), None

    @abstractmethod
    def _estimate(self, target: Target) -> PriorEstimate: ...


class PUClassifier(ClassifierMixin, PUEstimator):
    """Base of classifiers that are fitted on positive-unlabelled data and predict the class."""

    _word_labels = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # 0 means unlabelled: agreement with y is not the aim
        return tags

    def _read_rows(self, X: Any) -> Target:
        """Rows to predict, with the fitted columns in their order."""
        self._check_fit()
        table = read_numeric_table(X, "X")
        given, fitted = table.width, self.n_features_in_
        if given != fitted and not (table.columns and hasattr(self, "feature_names_in_")):
            raise InputError(
                f"X has {given} features, but {type(self).__name__} is expecting {fitted} features as input; pass the "
                "same columns in the same order."
            )
        return self._target_layout(RowMetadata()).read_rows(table, "X")
