"""Shares of several labelled classes and a rest in a target population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from priorshift.arrays import Floats
from priorshift.base import PUEstimator
from priorshift.class_priors import ClassPriors
from priorshift.class_source import REST, ClassSizes, ClassSource
from priorshift.embedding.class_values import ClassEmbedding
from priorshift.embedding.samples import EmbeddedSample
from priorshift.errors import FewPositivesWarning, InputError, WeakSeparationWarning
from priorshift.inference.affine_mixture import AffineMixture, Influence, SampleValues
from priorshift.inference.audit_combination import AuditedPrior, check_prior_uncertain
from priorshift.inference.class_audit import (
    AuditedClasses,
    ClassSampleAudit,
    combine_source_audit,
    combine_target_audit,
)
from priorshift.inference.class_knowledge import (
    LabelErrors,
    SourceShares,
    read_class_priors,
    read_label_errors,
)
from priorshift.inference.composition import Composition
from priorshift.inference.prior_knowledge import PosteriorPrior, read_prior
from priorshift.io.labels import ClassAudit, read_class_audit
from priorshift.io.parameters import check_choice
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import NO_METADATA
from priorshift.io.sample_size import warn_of_few_positives
from priorshift.kernels.kernel import make_kernel
from priorshift.methods.class_results import build_class_priors, central_shares
from priorshift.problem import Problem, Sample, Target
from priorshift.progress import show_progress, track_progress
from priorshift.results import PriorEstimate
from priorshift.scores.class_posteriors import ClassPosteriors
from priorshift.scores.class_scores import ClassScores, check_class_model, target_observations
from priorshift.scores.cross_fitting import FIT_ROWS
from priorshift.scores.scored_source import largest_share
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.threads import one_blas_thread
from priorshift.warning_records import WarningsByName, suppress_warnings

_METHODS = {"witness": "Witness", "tcpu": "TCPU"}
_SUM = 1e-6  # error of the sum of shares that rounding may leave


class MulticlassShift(PUEstimator):
    """Shares of several labelled classes, and of a rest that nobody labelled, in a target population.

    Under label shift the target is a mixture of the samples of the classes and of the source population,
    f_T = Σ b_k f_k + R f_U, whose coefficients need no source prior. With the shares π_k of the classes in the source,
    those in the target are π′_k = b_k + R π_k, and R π_0 for the rest. K separate estimates would be wrong if more than
    one class changes, since "all others" are then another mixture.

    Parameters
    ----------
    source_prior : mapping of str to float, (low, high), distribution or count, Dirichlet distribution or None
        Share of each class in the source population, as in :class:`WitnessShift`. Classes without one, and all classes
        if it is None (default), are estimated by :class:`MixturePrior`. A mapping that also has "rest" holds the counts
        of a survey, such as ``{"flu": 30, "covid": 12, "rest": 108}``. ``scipy.stats.dirichlet(alpha)`` is a joint
        distribution of all shares in the order of ``classes_``, the rest last.
    method : {"witness", "tcpu"}
        How the mixture is estimated: by efficient functions of a cross-fitted score (default), or by mean embeddings.
    rest : bool
        Whether there may be rows of other classes. Default True. If False, every class is labelled, unlabelled rows of
        the source are not needed, and there is no source prior.
    label_error : float, (low, high), distribution, mapping or None
        Share of the labelled rows of a class that are not of this class but of the rest: one for all classes, or a
        mapping of classes to it. Default None: no errors. A mapping of mappings, such as ``{"flu": {"covid": 0.05,
        "rest": 0.02}}``, states of which classes wrong rows are; it is the only form without a rest.
    model : classifier or None
        Model of the scores, with ``predict_proba``. Default None: ridge regression on random features, tuned by
        cross-validation.
    repeats, folds : int
        Repetitions and folds of the cross-fitting.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Whether to scale every column by the mean and spread of the population sample.
    confidence : float
        Confidence level of the intervals.
    kernel, bandwidth, statistic : object
        Kernel and statistic of method "tcpu", as in :class:`TCPU`.
    max_rows : int
        As in :class:`WitnessShift`, for source priors that are estimated.
    fit_rows : int
        Largest number of rows of all samples together to which the score is fitted; all rows are scored.
    verbose : bool
        Whether to show progress on a terminal.
    random_state : int, Generator or None
        Seed of folds, random features and subsamples.

    Attributes
    ----------
    classes_ : ndarray of str
        Names of all classes; "rest" is the last, if there is one.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from priorshift import MulticlassShift, simulate
    >>> s = simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> shift = MulticlassShift({"a": 0.2, "b": 0.3}, random_state=0).fit(s.X, s.y)
    >>> print(shift.estimate(s.target))
    class  rows  estimate    95% interval     all at once  source prior
    a       200     0.501  0.450 to 0.552  0.440 to 0.562           0.2
    b       200     0.146  0.096 to 0.194  0.085 to 0.203           0.3
    rest            0.353  0.302 to 0.411  0.292 to 0.424           0.5
    """

    takes_uncertain_prior = True
    takes_audit = True
    takes_weights = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"source_prior", "label_error", "confidence", "verbose"})
    _source: ClassSource  # without its rows
    _sizes: ClassSizes  # names of the classes and numbers of rows
    _audit: ClassSampleAudit | None  # of unlabelled rows of the source
    _functions: ClassScores | ClassEmbedding  # by which a target is compared with the samples
    _estimated: dict[str, MixturePrior]

    def __init__(
        self,
        source_prior: Any = None,
        *,
        method: Literal["witness", "tcpu"] = "witness",
        rest: bool = True,
        label_error: Any = None,
        model: Any = None,
        repeats: int = 3,
        folds: int = 5,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        kernel: Any = "gaussian",
        bandwidth: Any = "dimension",
        statistic: Literal["unbiased", "plug-in"] = "unbiased",
        max_rows: int = 4000,
        fit_rows: int = FIT_ROWS,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.method = method
        self.rest = rest
        self.label_error = label_error
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.statistic = statistic
        self.max_rows = max_rows
        self.fit_rows = fit_rows
        self.verbose = verbose
        self.random_state = random_state

    @property
    def label(self) -> str:
        """Name of the method in results and tables."""
        return _METHODS[self.method]

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        shared: Any = None,
        weights: Any = None,
        groups: Any = None,
        *,
        audit: Any = None,
        unlabeled_label: Any = None,
    ) -> Self:
        """Fit the estimator to the source, once for all targets.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            Labelled and unlabelled rows, as in :class:`WitnessShift`.
        y : array-like of shape (rows,)
            Name of the class of each labelled row. Unlabelled rows have an empty cell (None, NaN, empty text) or
            `unlabeled_label`; if there is neither, the value 0.
        shared, weights, groups : None or array-like of shape (rows,)
            As in :class:`WitnessShift`.
        audit : None or array-like of shape (rows,)
            True class of some unlabelled rows, drawn at random: the name of a labelled class or "rest", and an empty
            cell for all other rows.
        unlabeled_label : object
            Value of `y` of unlabelled rows.

        Returns
        -------
        Self
            The fitted estimator.
        """
        self._check_parameters()
        self._forget()
        source = ClassSource.from_labels(
            X, y, scenario=self.scenario, standardize=self.standardize, rest=self.rest,
            unlabeled_label=unlabeled_label, shared=shared, audit=audit, weights=weights, groups=groups,
        )  # fmt: skip
        return self.fit_classes(source)

    def class_source_of(self, problem: Problem) -> ClassSource:
        """Build the source of a problem with several labelled classes under this estimator's scenario and scaling.

        Metadata that the method does not use is refused; labelled rows that seem to be unlabelled rows as well cause a
        warning.
        """
        self.check_classes(problem.class_names)
        unlabeled = problem.unlabeled if problem.rest else None
        source = ClassSource.from_samples(
            problem.classes, unlabeled, scenario=self.scenario, standardize=self.standardize, rest=self.rest
        )
        self.check_metadata(source.source.metadata)
        if self.rest and self.scenario == "case-control":
            source.source.warn_of_unstated_sharing()
        return source

    def check_classes(self, names: Sequence[str]) -> None:
        """Refuse settings that cannot be used with these labelled classes."""
        self._check_parameters()
        if self.rest:
            read_class_priors(self.source_prior, names)
        self._label_errors(names)

    def fit_classes(self, source: ClassSource) -> Self:
        """Fit the estimator to a source that was built under the same scenario, and return the estimator."""
        self.check_classes(source.names)
        self._fit_to(source.source, source)
        self.classes_ = np.array(source.classes)
        return self

    def _fit(self, source: ClassSource, rng: np.random.Generator) -> None:
        """Score the source by cross-fitting or embed it, and estimate the source priors that are not known."""
        self._seed_of_cases = int(rng.integers(2**62))
        if self.rest and source.audit is not None:
            for prior in read_class_priors(self.source_prior, source.names).values():
                if prior is not None:
                    check_prior_uncertain(prior)
        with one_blas_thread(), track_progress("MulticlassShift", 1) as step:
            step()
            if self.method == "witness":
                self._functions = ClassScores.fit(source, self.model, self.repeats, self.folds, rng, self.fit_rows)
            else:
                self._functions = self._embed(source)
        self._audit = None
        if source.audit is not None:
            self._audit = ClassSampleAudit.from_source(source, source.audit, _scores(self._base_functions))
        self._estimated = {}
        collected = WarningsByName("class")
        for k, name in enumerate(source.names):
            with collected.collect(name):
                warn_of_few_positives(len(source.rows[k]), source.samples[k].observations)
        if self.rest:
            known = read_class_priors(self.source_prior, source.names)
            # an audit narrows what the tables leave open
            left_open = (FewPositivesWarning, *(() if source.audit is None else (WeakSeparationWarning,)))
            for k, name in enumerate(source.names):
                if known[name] is None:
                    with collected.collect(name), suppress_warnings(*left_open):
                        self._estimated[name] = self._estimate_prior_of_class(source, k)
        collected.issue()
        self._source, self._sizes = source.without_rows(), source.sizes

    @property
    def _base_functions(self) -> Floats:
        """Functions of the classes at the rows of the base, by which the classes are distinguished."""
        functions = self._functions
        return functions.ratios[-1] if isinstance(functions, ClassScores) else functions.source_functions[-1]

    def _estimate_prior_of_class(self, source: ClassSource, k: int) -> MixturePrior:
        """Estimate the share of one class in the source population from its rows and the population."""
        settings = {name: getattr(self, name) for name in ("repeats", "folds", "scenario", "standardize", "max_rows")}
        seed = None if self.random_state is None else self._seed_of_cases % 2**31 + k
        estimator = MixturePrior(**settings, fit_rows=self.fit_rows, random_state=seed)
        return estimator.fit_source(source.binary(k))

    def _embed(self, source: ClassSource) -> ClassEmbedding:
        """Embed the samples of the source by the kernel, and compute the functions at their rows."""
        rows, scaling = source.source.rows, source.source.scaling
        base = scaling.rows(source.source.table.values, source.rows[-1])
        kernel = make_kernel(self.kernel, self.bandwidth, base, scaling.features)
        samples = [
            EmbeddedSample(replace(rows, index=index), sample.mass, sample.observation)
            for index, sample in zip(source.rows, source.samples, strict=True)
        ]
        embedding = ClassEmbedding(kernel, samples, self.statistic == "unbiased")
        embedding.source_functions  # noqa: B018 (computed now, kept for every target)
        return embedding

    def read_target(self, X_target: Any, audit: Any = None, weights: Any = None, groups: Any = None) -> Target:
        """Read target rows and metadata as a user passes them to `estimate`, and warn of suspicious rows."""
        target = super().read_target(X_target, None, weights, groups)
        if audit is None:
            return target
        column = read_class_audit(audit, len(target), "the audit of target", self._source.classes)
        return replace(target, class_audit=ClassAudit.from_column(column))

    def target_of(self, sample: Sample) -> Target:
        """Build a target from a sample of a problem, and warn of suspicious rows."""
        metadata = sample.metadata
        target = super().target_of(replace(sample, metadata=replace(metadata, audit=None)))
        if metadata.audit is None:
            return target
        return replace(target, class_audit=ClassAudit.from_column(metadata.audit))

    def estimate(self, X_target: Any, weights: Any = None, groups: Any = None, *, audit: Any = None) -> ClassPriors:
        """Estimate the share of each class in the population that `X_target` is a sample of.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        weights, groups : None or array-like of shape (rows,)
            As in `fit`, for the rows of the target.
        audit : None or array-like of shape (rows,)
            As in `fit`, for the rows of the target. The intervals then rely on these labels alone.

        Returns
        -------
        ClassPriors
        """
        return self.estimate_target(self.read_target(X_target, audit, weights, groups))

    def estimate_target(self, target: Target) -> ClassPriors:
        """Estimate the shares of the classes in a target that was read by `read_target` or `target_of`."""
        with show_progress(self.verbose), one_blas_thread():
            return self._conclude(self.mixture_of(target), len(target), target)

    def posteriors(self, X_target: Any, priors: ClassPriors | Mapping[str, float]) -> Floats:
        """Compute the probability of each class for each row of a target, for decisions.

        By Bayes' rule with the shares of the target, and with the density ratios of the classes by the cross-fitted
        score, calibrated with the source priors. The class with the largest probability is the decision with the fewest
        expected errors.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Rows with the columns of the source.
        priors : ClassPriors, or mapping of str to float
            Shares of the classes in the target, as `estimate` returns them, or as you know them.

        Returns
        -------
        ndarray of shape (rows, classes)
            In the order of ``classes_``; each row adds up to 1.
        """
        scores = self.class_scores
        target = self._target_layout(NO_METADATA).read_rows(read_table(X_target, "X_target"))
        with one_blas_thread():
            ratios = scores.target_ratios(target)
        return self._posteriors(ratios, self._composition()[0].central, self._read_shares(priors))

    def _posteriors(self, ratios: Floats, composition: Floats, shares: Floats) -> Floats:
        """Compute the probability of each class for rows with these density ratios, by calibrated densities."""
        masses = [sample.mass for sample in self._source.samples]
        calibrated = ClassPosteriors.fit(self.class_scores.ratios, masses, composition, has_rest=self._source.has_rest)
        weighted = calibrated.densities(ratios) * shares
        return np.asarray(weighted / np.maximum(weighted.sum(axis=1, keepdims=True), 1e-300))

    def _read_shares(self, priors: ClassPriors | Mapping[str, float]) -> Floats:
        """Return the share of each class in the order of `classes_`; refuse shares that do not add up to 1."""
        if set(priors) != set(self._source.classes):
            shown, expected = (", ".join(map(repr, names)) for names in (priors, self._source.classes))
            raise InputError(f"priors has {shown}, but the classes are {expected}; pass a share for each.")
        found = [priors[name] for name in self._source.classes]
        shares = np.array([share.value if isinstance(share, PriorEstimate) else float(share) for share in found])
        if not (shares >= 0).all() or abs(shares.sum() - 1) > _SUM:
            raise InputError(f"priors adds up to {shares.sum():.4g}; pass shares from 0 to 1 that add up to 1.")
        return shares

    @property
    def class_scores(self) -> ClassScores:
        """Scores of the fitted source, which method "tcpu" does not have."""
        if not isinstance(self._functions, ClassScores):
            raise InputError("method='tcpu' has no density ratios of the classes; use method='witness' for posteriors.")
        return self._functions

    def estimate_jointly(self, target: Target, groups: dict[str, int]) -> tuple[ClassPriors, AffineMixture]:
        """Return the shares of the classes in a target, and the mixture with its influence, for comparing targets.

        `groups` numbers the groups of all targets so far; those of this target are added.
        """
        with show_progress(self.verbose), one_blas_thread():
            mixture = self.mixture_of(target, keep_influence=True)
            priors = self._conclude(replace(mixture, influence=None), len(target), target)
        if mixture.influence is not None:
            influence = _common_influence(mixture.influence, self._source, target, groups)
            mixture = replace(mixture, influence=influence)
        return priors, mixture

    def contradicted_priors(self, error: float = 0.01) -> dict[str, tuple[float, float]]:
        """Return the stated source priors that the tables exclude: for a class, its smallest value and an upper bound.

        The bounds hold together with the confidence 1 − `error`, whatever the other classes look like, if labels have
        no errors. The tables cannot contradict a smaller prior. There are no bounds for method "tcpu".
        """
        functions, found = self._functions, {}
        if not self.rest or self.label_error is not None or not isinstance(functions, ClassScores):
            return {}
        known, samples = read_class_priors(self.source_prior, self._source.names), self._source.samples
        for k, name in enumerate(self._source.names):
            prior = known[name]
            if prior is not None:
                scores, others = functions.ratios[k][:, k], functions.ratios[-1][:, k]
                bound = largest_share(scores, samples[k], others, samples[-1], error / len(known))
                if prior.range[0] > bound:
                    found[name] = prior.range[0], bound
        return found

    def mixture_of(self, target: Target, *, keep_influence: bool = False) -> AffineMixture:
        """Estimate the coefficients of a target as a mixture of the samples, which need no source prior."""
        functions = self._functions
        if isinstance(functions, ClassScores):
            ratios = functions.target_ratios(target)
            return functions.mixture(self._source, target, ratios, keep_influence=keep_influence)
        samples, of_target = self.values_of(target)
        return AffineMixture.from_values(samples, of_target, keep_influence=keep_influence)

    def values_of(self, target: Target) -> tuple[list[SampleValues], SampleValues]:
        """Return the functions that determine the coefficients, at the rows of the samples and of a target."""
        functions = self._functions
        if isinstance(functions, ClassScores):
            ratios = functions.target_ratios(target)
            coefficients = functions.mixture(self._source, target, ratios).coefficients
            return functions.values(self._source, target, ratios, coefficients)
        observation = target_observations(self._source, target)
        h = functions.functions(EmbeddedSample(target.rows, target.mass, observation))
        samples = [
            SampleValues(values, sample.mass, sample.observation, sample.observations)
            for values, sample in zip(functions.source_functions, self._source.samples, strict=True)
        ]
        return samples, SampleValues(h, target.mass, observation, target.observations)

    def estimate_mixture(self, mixture: AffineMixture, sizes: ClassSizes, target_rows: int) -> ClassPriors:
        """Compute the shares of all classes from a mixture of samples that were summarised without rows in memory.

        Source priors that are not known are those of the last fit, if there was one.
        """
        if not hasattr(self, "_estimated"):
            self._estimated, rng = {}, np.random.default_rng(self.random_state)
            self._seed_of_cases = int(rng.integers(2**62))
        self._sizes, self._audit = sizes, None
        return self._conclude(mixture, target_rows)

    def _conclude(self, mixture: AffineMixture, target_rows: int, target: Target | None = None) -> ClassPriors:
        """Compute the shares of all classes with their intervals from the mixture and what is known of the source.

        `target` is needed for its audit, if there is one.
        """
        composition, audited_source = self._composition()
        return build_class_priors(
            mixture,
            composition,
            self._sizes,
            target_rows,
            audited=self._audit_target(target, mixture, composition),
            audited_source=audited_source,
            prior_origins=self._prior_origins(audited_source),
            settings={"scenario": self.scenario, "standardize": self.standardize, **self._label_error_details()},
            method=self.label,
            confidence=self.confidence,
        )

    def _audit_target(
        self, target: Target | None, mixture: AffineMixture, composition: Composition
    ) -> AuditedClasses | None:
        """Combine the audit of a target with its estimated shares; None without an audit."""
        if target is None or target.class_audit is None:
            return None
        functions = self._functions
        if isinstance(functions, ClassScores):
            shares = central_shares(mixture, composition).values
            predicted = self._posteriors(functions.target_ratios(target), composition.central, shares)
        else:
            predicted = _scores(self.values_of(target)[1].h)
        audit = ClassSampleAudit.from_target(target, target.class_audit, predicted)
        return combine_target_audit(audit, mixture, composition, self._source.classes)

    def _composition(self) -> tuple[Composition, tuple[AuditedPrior, ...]]:
        """Return what the samples consist of under the current settings, and the results of an audit of the source."""
        source, errors = self._sizes, self._label_errors(self._sizes.names)
        rng = np.random.default_rng(self._seed_of_cases)
        if not source.has_rest:
            return Composition.without_rest(errors, len(source.names), rng), ()
        estimated = {}
        for name, one in self._estimated.items():  # if only a part of the labelled rows are of the class
            corrected = one.with_label_error(1 - errors.purity(source.names.index(name)))
            estimated[name] = PosteriorPrior(corrected.prior_distribution_)
        shares = SourceShares.read(self.source_prior, source.names, estimated)
        audited: tuple[AuditedPrior, ...] = ()
        if self._audit is not None:
            shares, audited = combine_source_audit(shares, self._audit, source.names, errors)
        return Composition.with_rest(shares, errors, rng), audited

    def _label_errors(self, names: Sequence[str]) -> LabelErrors:
        """Return what is known of the label errors of the classes."""
        return read_label_errors(self.label_error, names, rest=self.rest)

    def _label_error_details(self) -> dict[str, Any]:
        """Return the label errors for the details of results: shares by labelled and true class."""
        errors = self._label_errors(self._sizes.names)
        found: dict[str, dict[str, float]] = {}
        for (k, j), share in zip(errors.cells, errors.values.tolist(), strict=True):
            found.setdefault(self._sizes.classes[k], {})[self._sizes.classes[j]] = share
        return {"label_error": found} if found else {}

    def _prior_origins(self, audited: tuple[AuditedPrior, ...]) -> dict[str, str | None]:
        """Return the origin of the source prior of each class; None if there is no source population."""
        names = self._sizes.names
        if not self._sizes.has_rest:
            return dict.fromkeys(names)
        origins: dict[str, str | None] = {}
        known = read_class_priors(self.source_prior, names)
        for j, name in enumerate(names):
            prior = known[name]
            origin = "MixturePrior" if prior is None else prior.by
            origins[name] = audited[j].by(origin) if audited else origin
        origin = "given" if not self._estimated else "MixturePrior"
        return origins | {REST: f"{origin} and audit" if audited else origin}

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used."""
        super()._check_parameters()
        check_choice("method", self.method, tuple(_METHODS))
        if not isinstance(self.rest, bool):
            raise InputError(f"rest is {self.rest!r}, but True or False is expected.")
        if self.model is not None:
            check_class_model(self.model)

    def _check_source_prior(self, source_prior: Any) -> None:
        """Refuse a source prior without a rest, and one that is no mapping of classes."""
        if source_prior is None:
            return
        if not self.rest:
            raise InputError("source_prior is not used with rest=False, since there is no source population; omit it.")
        if hasattr(source_prior, "alpha"):  # a Dirichlet distribution
            return
        if not isinstance(source_prior, Mapping):
            raise InputError(
                f"source_prior is {source_prior!r}, but with several classes a mapping of classes to shares is "
                "expected, such as {'flu': 0.1}, or a Dirichlet distribution."
            )
        for prior in source_prior.values() if REST not in source_prior else ():
            if prior is not None:
                read_prior(prior)


def _common_influence(influence: Influence, source: ClassSource, target: Target, groups: dict[str, int]) -> Influence:
    """Return the influence of the observations that another target may have too: those of the source, and groups.

    `groups` numbers the groups of all targets.
    """
    first_free = int(source.source.observation.max()) + 1  # numbers from here on are those of the target alone
    is_own = influence.numbers >= first_free
    if target.groups is None:
        return Influence(influence.numbers[~is_own], influence.values[~is_own])
    numbers = influence.numbers.copy()
    first_row = np.unique(target.observation, return_index=True)[1]
    names = target.groups[first_row[numbers[is_own] - first_free]]
    numbers[is_own] = [first_free + groups.setdefault(name, len(groups)) for name in names.tolist()]
    return Influence(numbers, influence.values)


def _scores(functions: Floats) -> Floats:
    """Return a score of each class from functions of all but the last class; the score of the last is their sum."""
    return np.column_stack([functions, functions.sum(axis=1)])
