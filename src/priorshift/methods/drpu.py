"""DRPU: the target prior from the level sets of an estimated density ratio (Nakajima and Sugiyama 2023).

Under label shift the ratio r = p₊/p of the source orders points as that of any target does, so it is trained once;
each target then costs a pass through the network and a sort.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from scipy import stats
from sklearn.base import clone

from priorshift.arrays import Floats, Index
from priorshift.base import TargetPriorEstimator
from priorshift.errors import EstimatedPriorWarning, FewPositivesWarning, InputError, WeakSeparationWarning
from priorshift.io.parameters import check_prior, is_known, seeded
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import RowMetadata
from priorshift.methods.network import Risk, Split, check_training, import_torch, train, training_prior
from priorshift.problem import Source, Target
from priorshift.results import Interval, PriorEstimate
from priorshift.scores.cross_fitting import Model, ModelScore, check_model
from priorshift.scores.level_sets import LevelSet, SampleScores, ShareCurve, margin
from priorshift.scores.scored_source import LevelSetEvidence
from priorshift.warning_records import warn

_FALLBACK = 0.5  # share of the positives that must lie above a threshold where ε allows no threshold
_LEAST_ALPHA = 0.01  # r ≤ 1/α: a smaller α lets single rows weigh more than a hundred
_LEAST_POSITIVES = 5  # held-out positives that an interval needs


class DRPU(TargetPriorEstimator):
    """DRPU: density ratio by a network, prior by its level sets; the paper's first competitor.

    Half of the source rows train the network r = p₊/p by the LSIF divergence with non-negative correction; the
    other half stops the training and gives the share of positives above each threshold. The prior is the smallest
    ratio of shares, population to positives, over thresholds above which more than ε of the m held-out positives
    lie, ε = √(4·log(em/2)/m) + √(log(2m)/(2m)). Where ε ≥ 1 (m ≤ 27) no threshold is left: a warning says so, and
    thresholds with half of the positives above them are taken instead.

    It aims at an upper bound of the prior, which is sharp where some level set holds no negatives.

    Parameters
    ----------
    source_prior : float, estimator or None
        The α of the non-negative correction, which should not exceed π: π itself where it is known, or an estimator of
        it. Default None, which is :class:`KM2`. With `model` there is no α, and a number is only π.
    model : classifier or None
        A scikit-learn classifier to use instead of the network: it is fitted to tell labelled (1) from unlabelled
        rows (0), and its ``decision_function``, ``predict_proba`` or ``predict`` orders the rows.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    confidence : float
        Confidence level of the interval. Default 0.95. It includes the sampling error of held-out and target rows, but
        no bias. With fewer than 5 held-out positives there is no interval.
    n_bootstrap : int
        Bootstrap replicates for the standard error.
    hidden : tuple of int
        Sizes of the network's hidden layers, each with batch normalisation and ReLU.
    batch_size : int
        Rows in a step of Adam; this and the next three have the paper's values as defaults.
    learning_rate, weight_decay : float
        Parameters of Adam.
    max_epochs : int
        Largest number of epochs.
    patience : int
        Epochs without a smaller held-out divergence after which training stops.
    device : str
        Torch device, such as "cpu" or "cuda".
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of the halves, the network's initial weights, the batches and the bootstrap.

    Attributes
    ----------
    source_prior_ : float
        π, given or estimated from the level sets.
    alpha_ : float or None
        α; None with `model`.
    least_share_ : float
        Smallest share of positives above a threshold that is used: ε, or one half where ε leaves no threshold.
    held_out_divergence_ : ndarray or None
        Held-out divergence after each epoch.
    model_ : estimator or None
        The fitted `model`.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Nakajima and Sugiyama (2023). Positive-unlabeled classification under class-prior shift: a prior-invariant approach
    based on density ratio estimation. Machine Learning 112.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift import DRPU, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> drpu = DRPU(model=LogisticRegression(), random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     estimate = drpu.estimate(s.target)
    >>> print(f"{estimate.value:.1f}, source prior {estimate.source_prior:.1f}")
    0.6, source prior 0.2
    """

    label = "DRPU"
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"confidence", "n_bootstrap", "verbose"})

    def __init__(
        self,
        source_prior: Any = None,
        *,
        model: Any = None,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        n_bootstrap: int = 200,
        hidden: tuple[int, ...] = (300, 300, 300),
        batch_size: int = 100,
        learning_rate: float = 2e-5,
        weight_decay: float = 5e-3,
        max_epochs: int = 1000,
        patience: int = 30,
        device: str = "cpu",
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.model = model
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.n_bootstrap = n_bootstrap
        self.hidden = hidden
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Train the ratio on one half of the source, and score the other half; observations stay in one half."""
        held_out = source.deal_folds(2, rng) == 1  # whether each row is in the half that is scored
        split = Split.from_source(source.rows[:], source, held_out)
        prior_is_known = is_known(self.source_prior)
        self.alpha_ = self.model_ = self.held_out_divergence_ = None
        score: Model  # a function of rows whose values are the larger, the more a row looks like a positive
        if self.model is None:
            import_torch()
            self.alpha_ = training_prior(self, source, _LEAST_ALPHA)
            score, divergence = train(lsif(self.alpha_), split, self, rng, "DRPU")
            self.held_out_divergence_ = np.array(divergence)
        else:
            y = np.repeat([1, 0], [len(split.positive), len(split.unlabeled)])
            self.model_ = seeded(clone(self.model), rng).fit(np.concatenate([split.positive, split.unlabeled]), y)
            score = ModelScore(self.model_)
        P, U = source.positive, source.population  # row numbers
        self._positive = _sample_scores(score(split.held_positive), source, P[held_out[P]])
        population = _sample_scores(score(split.held_unlabeled), source, U[held_out[U]])
        self._score, self._sizes = score, source.sizes
        self.least_share_ = _least_share(self._positive.observations)
        self._bootstrap_seed = int(rng.integers(2**62))
        self._source_curve = ShareCurve.from_scores(self._positive, population)
        best = self._source_curve.smallest(self.least_share_)
        self.source_prior_ = check_prior(self.source_prior) if prior_is_known else best.ratio
        self._prior_by = "given" if prior_is_known else self.label
        if best.ratio > 0.95:
            warn(
                "No level set separates positives from the population, so every source prior up to "
                f"{best.ratio:.2f} is possible, and the target's estimate is an upper bound. Add rows or features.",
                WeakSeparationWarning,
            )

    def _estimate(self, target: Target) -> PriorEstimate:
        """Estimate π′ as the smallest ratio of shares, target to positives, over all trusted thresholds."""
        scores = self._score_target(target)
        curve = ShareCurve.from_scores(self._positive, scores)
        best = curve.smallest(self.least_share_)
        sizes = self._positive.effective_size(best.threshold), scores.effective_size(best.threshold)
        rng = np.random.default_rng(self._bootstrap_seed)
        error = curve.standard_error(self.least_share_, sizes, self.n_bootstrap, rng)
        warn(
            f"The interval of DRPU includes sampling error ({error:.2g}), not its bias: it takes the smallest of many "
            "noisy ratios, which is too small where positives are few, and is an upper bound where classes overlap.",
            EstimatedPriorWarning,
        )
        pi = self.source_prior_
        return PriorEstimate(
            value=best.ratio,
            raw=best.ratio,
            interval=self._interval(best, error, scores.observations),
            standard_error=error,
            source_prior=pi,
            negative_ratio=(1 - best.ratio) / (1 - pi) if pi < 1 else float("nan"),
            separation=float("nan"),
            method=self.label,
            sizes=(*self._sizes, len(target)),
            source_prior_by=self._prior_by,
            details={
                "scenario": self.scenario,
                "standardize": self.standardize,
                "alpha": self.alpha_,
                "held_out_positives": len(self._positive.values),
                "least_share_of_positives": self.least_share_,
                "share_of_positives": best.positive,
                "share_of_target": best.population,
            },
            evidence=LevelSetEvidence(self._source_curve, curve, self.least_share_),
        )

    def _interval(self, best: LevelSet, error: float, n: float) -> Interval | None:
        """Compute the normal interval around the ratio of the best level set, whose standard error is `error`.

        `n` is the effective number of observations of the target. The interval is None with so few positives that
        resampling them shows no spread.
        """
        if round(self._positive.observations) < _LEAST_POSITIVES:
            return None
        half_width = stats.norm.ppf((1 + self.confidence) / 2) * error
        low, high = best.ratio - half_width, best.ratio + half_width
        if best.population == 0:  # none of n rows above the threshold: the exact binomial upper bound of their share
            high = (1 - ((1 - self.confidence) / 2) ** (1 / n)) / best.positive
        if best.ratio >= 1:  # no level set is informative
            low = 0.0
        return Interval(float(max(low, 0.0)), float(min(high, 1.0)), self.confidence, "bootstrap")

    def density_ratio(self, X: Any) -> Floats:
        """Estimate r(x) = p₊(x)/p(x) of the source, by the network.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows,)
            Between 0 and 1/α, where α is the prior that the network was trained with.
        """
        self._check_fit()
        if self.alpha_ is None:
            raise InputError("density_ratio needs the network, but a model was given; use the model's own methods.")
        rows = self._target_layout(RowMetadata()).read_rows(read_table(X, "X")).rows[:]
        # the network's output is the logit of p₊(x)α/p(x), so r = σ(output)/α; exp overflows beyond ±709
        return np.asarray(1 / (1 + np.exp(-np.clip(self._score(rows), -700, 700))) / self.alpha_)

    def share_curve(self, X_target: Any = None) -> ShareCurve:
        """Compute the shares of positives and of a target above each threshold.

        Parameters
        ----------
        X_target : array-like, data frame or None
            Rows of a target. Default None, which is the source population.

        Returns
        -------
        ShareCurve
        """
        self._check_fit()
        if X_target is None:
            return self._source_curve
        return ShareCurve.from_scores(self._positive, self._score_target(self.read_target(X_target)))

    def _score_target(self, target: Target) -> SampleScores:
        """Score the rows of a target, and combine the scores with the rows' masses and observations."""
        return SampleScores(self._score(target.rows[:]), target.mass, target.observation, target.copies)

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; also checks the classifier `model` and the training."""
        super()._check_parameters()
        if self.model is not None:
            check_model(self.model)
        check_training(self)


def lsif(alpha: float) -> Risk:
    """Return the risk of least-squares importance fitting of r = σ(output)/α, as a function of outputs (`Risk`).

    ½E_U[r²] − E_P[r] = (½αE_P[r²] − E_P[r]) + ½(E_U[r²] − αE_P[r²]). The first part is the positive risk; the second,
    the negative risk, is at least 0, since p − αp₊ ≥ 0 for α ≤ π. The sigmoid ensures r ≤ 1/α, as r ≤ 1/π ≤ 1/α.
    """

    def risk(positive: Any, unlabeled: Any) -> tuple[Any, Any]:
        """Compute the two parts of ½E_U[r²] − E_P[r] from outputs at positive and at unlabelled rows."""
        r_P, r_U = positive.sigmoid() / alpha, unlabeled.sigmoid() / alpha
        moved = alpha / 2 * (r_P**2).mean()  # ½αE_P[r²], moved from the negative to the positive risk
        positive_risk = moved - r_P.mean()
        negative_risk = (r_U**2).mean() / 2 - moved
        return positive_risk, negative_risk

    return risk


def _sample_scores(scores: Floats, source: Source, rows: Index) -> SampleScores:
    """Combine scores with the masses and observations of the rows they belong to, the source's row numbers `rows`.

    `rows` contain every observation and every set of copies either completely or not at all.
    """
    weights = 1 / source.copies[rows]  # all copies of a row together count once
    return SampleScores(scores, weights / weights.sum(), source.observation[rows], source.copies[rows])


def _least_share(m: float) -> float:
    """Return the least share of m held-out positives that must lie above a threshold: ε, or one half if ε ≥ 1."""
    if margin(m) < 1:  # ε
        return margin(m)
    warn(
        f"{m:.0f} held-out positives are too few for DRPU's rule, which needs 28; thresholds with {_FALLBACK:.0%} "
        "of them above are used instead. Treat the prior as a guess, or label more positives.",
        FewPositivesWarning,
    )
    return _FALLBACK
