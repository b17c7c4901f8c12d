"""KM1 and KM2: the prior of a population from positives and the population (Ramaswamy, Scott and Tewari 2016).

With λ = 1/(1−π), λμ_U + (1−λ)μ_P is the mean of the negatives, which lies in the hull of the points; beyond that λ
it leaves the hull, and its distance d(λ) begins to grow. KM1 and KM2 are two thresholds for the slope of d at which it
is taken to have begun. KM2-LS is KM2 with the target in place of U.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from priorshift import threads
from priorshift.arrays import Floats, Index
from priorshift.base import PUEstimator
from priorshift.errors import ApproximationWarning, FewPositivesWarning, InputError, WeakSeparationWarning
from priorshift.hull.gram_matrix import (
    RIDGE,
    HullSample,
    RowInfluence,
    build_hull,
    group_similar_rows,
    search_bandwidth,
)
from priorshift.hull.hull import Hull, NearestPoint, PivotingCycles
from priorshift.io.parameters import check_bandwidth
from priorshift.io.sample_size import effective_size
from priorshift.problem import Source
from priorshift.progress import track_progress
from priorshift.warning_records import warn

_START = 1.05  # KM2's threshold is based on the slope of d from 1 to here
_INSIDE = 1e-5  # share of the separation up to which a distance to the hull is 0, up to rounding
_OUTSIDE = 1.001  # factor on λ at which the line is outside the hull, to compute the normal of the face it left through
_LARGEST_PRIOR = 0.99
_NO_SEPARATION = 1e-6
_NORMAL_QUANTILE = 1.96  # of a difference at the level of 5%
_EXACT_ROWS = 2000  # up to which the exact search is used even where it is slow
_SMALL = 4000  # points up to which one BLAS thread is the faster choice
_POINTS = 1000  # groups at most: from 300 on, more of them hardly change the prior
_ROWS = 8000  # rows at most, or twice max_rows if that is more: time grows with their square
_SEARCH_ROWS = 4000  # rows for the search of the bandwidth, where there are many


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """d(λ) and its slope at some λ, with the threshold of the slope of each rule."""

    ratio: Floats  # λ
    distance: Floats
    slope: Floats
    thresholds: dict[str, float]

    @property
    def prior(self) -> Floats:
        """The prior 1 − 1/λ."""
        return 1 - 1 / self.ratio


_Problem = tuple[Floats, Floats, Floats, Index | None]  # rows, their masses in μ_P and in μ_U, and their groups


@dataclass(frozen=True, eq=False)
class _Solution:
    """The prior that KM2 finds in some rows."""

    problem: _Problem
    bandwidth: float
    separation: float  # ‖μ_U − μ_P‖
    thresholds: dict[str, float]  # of the slope of d, for each rule
    ratio: float  # λ
    is_found: bool  # whether the slope passes the threshold
    converged: bool
    influence: Floats  # of each row on the prior; NaN where none is found
    standard_error: float
    noise: float  # expected ‖μ_U − μ_P‖² of two samples of one population

    @property
    def prior(self) -> float:
        """The prior 1 − 1/λ."""
        return 1 - 1 / self.ratio


class KM2(PUEstimator):
    """KM2 estimate of the source prior; the paper's choice.

    Parameters
    ----------
    scenario : {"case-control", "censoring"}
        Whether the unlabelled rows, or labelled and unlabelled rows together, are the population sample.
    bandwidth : "search" or float
        Bandwidth of the Gaussian kernel. Default "search": of five, 0.1 to 10 times the median distance, the one under
        which P and U are furthest apart.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    components : int or None
        With more features than this, the rows are projected on so many principal components, as the authors do, and a
        warning says so. None never projects.
    max_rows : int
        With up to this many rows, each is a point of the hull, and a matrix of rows by rows is stored. More rows, and
        more than 2000 for which the exact search would take long, are grouped by similarity to at most 1000 points,
        which is as accurate, faster, and needs less memory. From the larger of 8000 and twice `max_rows` on, a random
        sample is used, with a warning; up to half of it are positives.
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of the sample and of the groups, where there are more than `max_rows` rows.

    Attributes
    ----------
    prior_ : float
        Estimated share of positives in the population, between 0 and 0.99.
    standard_error_ : float
        Its sampling error, from the influence of each row, without the method's bias.
    prior_influence_ : ndarray of shape (rows,)
        Influence of each row of X on `prior_`; squares of the sums over observations add up to the variance. Zero for
        rows that are not used.
    ratio_, separation_, bandwidth_ : float
        λ, ‖μ_U − μ_P‖ and the bandwidth.
    thresholds_ : dict
        The slope of d at which KM1 and KM2 determine λ.
    components_ : int or None
        Principal components in use.
    converged_ : bool

    References
    ----------
    Ramaswamy, Scott and Tewari (2016). Mixture proportion estimation via kernel embeddings of distributions. ICML.

    Examples
    --------
    >>> from priorshift import KM2, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=500, random_state=0)
    >>> round(KM2().fit(s.X, s.y).prior_, 3)
    0.268
    """

    takes_weights = True
    rule: ClassVar[str] = "KM2"
    # whether to estimate the standard error, and to warn where 2000 of the rows give another answer
    estimates_error: ClassVar[bool] = True
    keeps_rows = True  # for `curve`
    # part of TCPU's warning about an interval based on this estimate
    caveat = "it was off by −0.06 to +0.05 on the paper's synthetic data, at 200 rows and at 2000 (see the guide)."

    def __init__(
        self,
        *,
        scenario: Literal["case-control", "censoring"] = "case-control",
        bandwidth: str | float = "search",
        standardize: bool = True,
        components: int | None = 50,
        max_rows: int = 10_000,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.scenario = scenario
        self.bandwidth = bandwidth
        self.standardize = standardize
        self.components = components
        self.max_rows = max_rows
        self.verbose = verbose
        self.random_state = random_state

    def curve(self, prior: ArrayLike | None = None) -> DistanceCurve:
        """Compute the distance curve, for plotting.

        Parameters
        ----------
        prior : array-like or None
            Priors 1 − 1/λ, from 0 to below 1; around the estimate by default.

        Returns
        -------
        DistanceCurve
        """
        self._check_fit()
        if prior is None:
            top = min(_LARGEST_PRIOR, max(2 * self.prior_, self.prior_ + 0.2, 0.3), 0.5 + self.prior_ / 2)
            prior = np.linspace(0.01, top, 30)
        prior = np.asarray(prior, dtype=float).ravel()
        if not ((prior >= 0) & (prior < 1)).all():
            raise InputError("a prior of the curve lies outside [0, 1); pass numbers from 0 to below 1.")
        ratios = 1 / (1 - prior)
        distance, slope = np.zeros(len(ratios)), np.zeros(len(ratios))
        start = None  # set of points with which each search begins: the result of the last one
        with threads.one_blas_thread():
            hull = build_hull(*self._problem, self.bandwidth_)
            for k in np.argsort(ratios):
                if ratios[k] > 1:  # at 1 the point is μ_U itself: d = 0
                    nearest = hull.project(ratios[k], start=start)
                    distance[k], slope[k], start = nearest.distance, nearest.slope, nearest.weights > 0
        return DistanceCurve(ratios, distance, slope, self.thresholds_)

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Find the prior and its error, and warn where they are doubtful."""
        sample = self._select_rows(source, rng)
        selected, observation = sample.rows, source.observation[sample.rows]
        rows = self._reduce_features(source.scaling.rows(source.table.values, selected)[:])
        sample = replace(sample, rows=np.arange(len(rows)))  # rows are numbered in `rows` from here on
        with (
            threads.one_blas_thread() if len(rows) <= _SMALL or len(rows) > self.max_rows else nullcontext(),
            track_progress(type(self).__name__, 4) as step,
        ):
            is_small = len(rows) <= _EXACT_ROWS
            solution = self._solve(rows, sample, observation, rng, may_be_slow=is_small, step=step)
            self._problem, self.bandwidth_ = solution.problem, solution.bandwidth
            self.thresholds_, self.separation_ = solution.thresholds, solution.separation
            self.ratio_, self.prior_ = solution.ratio, solution.prior
            self.converged_, self.standard_error_ = solution.converged, solution.standard_error
            self.prior_influence_ = np.zeros(len(source.labeled))
            self.prior_influence_[selected] = solution.influence
            self._warn(sample, solution)
            step()
            if self.estimates_error and solution.is_found and not is_small:
                fixed = np.random.default_rng(0)  # any part will do
                for drawn in sample.draw_parts(_EXACT_ROWS, fixed):
                    part = self._solve(rows, drawn, observation, fixed, may_be_slow=False)
                    if self._warn_if_unstable(part, len(rows)):
                        break

    def _solve(
        self,
        rows: Floats,
        sample: HullSample,
        observation: Index,
        rng: np.random.Generator,
        *,
        may_be_slow: bool,
        step: Callable[[], None] = lambda: None,
    ) -> _Solution:
        """Choose the bandwidth, build the hull of the sample's rows or of groups of them, and find the prior.

        `sample` holds numbers of `rows`, and `observation` that of each of `rows`; `step` reports progress. Unless the
        exact search `may_be_slow`, rows are grouped where it would be.
        """
        part = rows[sample.rows]
        step()
        is_grouped = len(part) > self.max_rows
        if isinstance(self.bandwidth, str):
            searched = replace(sample, rows=np.arange(len(part)))
            searched = searched.subsample(_SEARCH_ROWS if is_grouped else len(part), rng)
            bandwidth = search_bandwidth(part[searched.rows], searched.p, searched.u, unbiased=is_grouped)
        else:
            bandwidth = float(self.bandwidth)
        step()
        if not is_grouped:
            hull = build_hull(part, sample.p, sample.u, None, bandwidth)
            hull.most_descended = None if may_be_slow else _POINTS
            step()
            try:
                return self._find_prior(hull, (part, sample.p, sample.u, None), sample, observation, bandwidth)
            except PivotingCycles:
                # as with near copies in one to three columns: groups of them are as accurate, and fast
                rng = np.random.default_rng(0)  # up to max_rows the result does not depend on the seed
        # rows are put in the order of their groups, as `build_hull` expects
        group = group_similar_rows(part, sample, bandwidth, min(self.max_rows, _POINTS), rng)
        order = np.argsort(group, kind="stable")
        ordered = sample.take(order)
        problem = part[order], ordered.p, ordered.u, group[order]
        hull = build_hull(*problem, bandwidth, at_rows=self.estimates_error)
        if is_grouped:
            step()
        solution = self._find_prior(hull, problem, ordered, observation, bandwidth)
        influence = np.empty_like(solution.influence)
        influence[order] = solution.influence
        return replace(solution, influence=influence)

    def _find_prior(
        self, hull: Hull, problem: _Problem, sample: HullSample, observation: Index, bandwidth: float
    ) -> _Solution:
        """Find λ, the prior, and the influence of each row of the sample on the prior."""
        m, n = effective_size(sample.p), effective_size(sample.u)
        start, largest = hull.project(_START), 1 / (1 - _LARGEST_PRIOR)
        thresholds = _thresholds(hull, start, min(m, n))
        threshold = thresholds[self.rule]
        # The separation must exceed what the ridge alone gives, and the slope of d, at most the separation, must still
        # have to grow: with few rows in many features, d is a line.
        ridge_separation = sqrt(2 * RIDGE) * float(np.linalg.norm(sample.u - sample.p))
        is_separable = hull.separation > max(_NO_SEPARATION, ridge_separation)
        is_separable &= threshold < (1 - 1e-6) * hull.separation
        end = hull.find_slope(threshold, largest=largest) if is_separable else hull.project(largest)
        is_found = bool(is_separable and end.ratio < largest)
        influence = np.full(len(sample.rows), np.nan)
        if is_found and self.estimates_error:
            row_influence = RowInfluence(sample, observation[sample.rows])
            of_threshold = np.zeros_like(influence)  # KM1's own threshold depends on the sizes alone
            if threshold == thresholds["KM2"]:
                of_threshold = _threshold_influence(hull, start, row_influence)
            if end.distance > _INSIDE * hull.separation:
                influence = _prior_influence(hull, end, of_threshold, row_influence)
            else:
                influence = _exit_influence(hull, end, row_influence)
        by_observation = np.bincount(observation[sample.rows], influence)  # rows of one observation move together
        return _Solution(
            problem=problem, bandwidth=bandwidth, separation=hull.separation,
            thresholds=thresholds,
            ratio=end.ratio, is_found=is_found, converged=start.converged and end.converged,
            influence=influence, standard_error=float(np.sqrt(by_observation @ by_observation)),
            noise=float((1 - hull.K.mean()) * (1 / m + 1 / n)),
        )  # fmt: skip

    def _select_rows(self, source: Source, rng: np.random.Generator) -> HullSample:
        """Return distinct rows of the source with their masses in P and U, and warn of a subsample or few positives."""
        sample, limit, name = HullSample.from_source(source), max(_ROWS, 2 * self.max_rows), type(self).__name__
        if len(sample.rows) > limit:
            warn(
                f"{name} uses {limit} of {len(sample.rows)} rows, drawn at random, since its time grows with their "
                f"square; raise max_rows above {limit // 2} to use more.",
                ApproximationWarning,
            )
        sample = sample.subsample(limit, rng)
        m = int(np.count_nonzero(sample.p))
        if min(m, source.P.observations) < 5:
            warn(
                f"{name} has only {m} {'' if m < 5 else 'dependent '}positive rows; treat the prior as a guess, and "
                "collect at least 5 that are independent.",
                FewPositivesWarning,
            )
        return sample

    def _reduce_features(self, rows: Floats) -> Floats:
        """Return the rows, projected on their principal components if there are more features than `components`."""
        self.components_ = None
        if self.components is None or rows.shape[1] <= self.components:
            return rows
        self.components_ = min(self.components, len(rows))
        warn(
            f"{type(self).__name__} projects {rows.shape[1]} features on their first {self.components_} principal "
            "components, as its authors do; pass components=None to use all features.",
            ApproximationWarning,
        )
        centred = rows - rows.mean(axis=0)
        _, _, axes = np.linalg.svd(centred, full_matrices=False)  # the principal axes, largest first
        return np.asarray(centred @ axes[: self.components].T)

    def _warn(self, sample: HullSample, solution: _Solution) -> None:
        """Warn where P and U are not separable, or hardly, or the solver did not converge."""
        name, m, n = type(self).__name__, np.count_nonzero(sample.p), np.count_nonzero(sample.u)
        rows = f"{m} positive rows and {n} rows of the population (distance {solution.separation:.2g}"
        if not solution.is_found:
            warn(
                f"{name} finds no prior below {_LARGEST_PRIOR} from {rows}): they are too similar, or too few for "
                f"their features. Every prior is possible; {_LARGEST_PRIOR} is returned.",
                WeakSeparationWarning,
            )
        elif solution.separation**2 < 2 * solution.noise:
            warn(
                f"{name} cannot separate {rows}, from noise alone about {np.sqrt(solution.noise):.2g}); treat the "
                "prior as a guess.",
                WeakSeparationWarning,
            )
        if solution.is_found and not solution.converged:
            warn(
                f"{name} stopped short of its tolerance, as it can with few positives in one dimension; the prior may "
                "be off by 0.02. Add rows or features.",
                ApproximationWarning,
            )

    def _warn_if_unstable(self, part: _Solution, count: int) -> bool:
        """Warn if the prior of a part of the `count` rows differs by more than sampling explains; return whether so.

        The part is drawn from the rows, so the variance of the difference is the difference of the variances.
        """
        difference = abs(part.prior - self.prior_)
        variance = part.standard_error**2 - self.standard_error_**2
        error = sqrt(max(variance, self.standard_error_**2)) if np.isfinite(variance) else self.standard_error_
        if difference <= _NORMAL_QUANTILE * error:
            return False
        cause = ""
        if part.bandwidth != self.bandwidth_:
            cause = f" The search chose the bandwidths {self.bandwidth_:.2g} and {part.bandwidth:.2g}."
        warn(
            f"{type(self).__name__} estimates a prior of {self.prior_:.3f} from {count} rows, but {part.prior:.3f} "
            f"from {_EXACT_ROWS} of them; sampling explains a difference of about {error:.3f}.{cause} Treat the prior "
            "as a guess.",
            ApproximationWarning,
        )
        return True

    def _check_parameters(self) -> None:
        """Raise InputError for a bandwidth that is neither "search" nor a positive number."""
        super()._check_parameters()
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "search"):
            check_bandwidth(self.bandwidth, "'search'")


class KM1(KM2):
    """KM1 estimate of the source prior: as KM2, with the threshold 1/√min(m, n).

    Where that exceeds 0.9‖μ_U − μ_P‖, which the slope may never reach, KM2's threshold is used.

    References
    ----------
    Ramaswamy, Scott and Tewari (2016). Mixture proportion estimation via kernel embeddings of distributions. ICML.

    Examples
    --------
    >>> from priorshift import KM1, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=500, random_state=0)
    >>> round(KM1().fit(s.X, s.y).prior_, 3)
    0.284
    """

    rule = "KM1"


def _thresholds(hull: Hull, start: NearestPoint, size: float) -> dict[str, float]:
    """Compute the slope at which each rule takes d to have left zero.

    KM1: 1/√size. KM2: 0.8·d(1.05)/0.05 + 0.2·‖μ_U − μ_P‖, between the mean slope at the start and the largest slope.
    `start` is the nearest point of the hull at λ = 1.05, `size` the effective min(m, n).
    """
    km1, km2 = 1 / sqrt(size), 0.8 * start.distance / (_START - 1) + 0.2 * hull.separation
    return {"KM1": km1 if km1 <= 0.9 * hull.separation else km2, "KM2": km2}


def _threshold_influence(hull: Hull, start: NearestPoint, row_influence: RowInfluence) -> Floats:
    """Compute the influence of each row on KM2's threshold; `start` is the nearest point of the hull at λ = 1.05."""
    influence = 0.2 * row_influence.on_mean(hull.values(hull.a), 1.0, -1.0) / max(hull.separation, 1e-300)
    if start.distance > _INSIDE * hull.separation:  # else d = 0, which no row changes
        residual = hull.values(_START * hull.a + hull.p - start.weights)
        on_distance = row_influence.on_mean(residual, _START, 1 - _START) / start.distance
        influence += 0.8 / (_START - 1) * on_distance
    return influence


def _prior_influence(hull: Hull, end: NearestPoint, threshold_influence: Floats, row_influence: RowInfluence) -> Floats:
    """Compute the influence of each row on the prior from that on the threshold; NaN where the slope does not grow.

    `end` is the point v of the hull nearest to u = λμ_U + (1−λ)μ_P, at the λ at which the slope passes the threshold.
    With a = μ_U − μ_P, d = ‖w‖, w = u − v, is a smooth function of u and a on the face of v, to which Πa is orthogonal.
    With δu and δa the changes due to a row, δ(d′) = (⟨δa, w⟩ + ⟨Πa, δu⟩)/d − d′⟨w, δu⟩/d²,
    δλ = (δ(threshold) − δ(d′))/d″ and δπ = δλ/λ².
    """
    second_derivative = (end.curvature - end.slope**2) / max(end.distance, 1e-300)  # d″
    if not (end.distance > 0 and end.curvature - end.slope**2 > 1e-9 * hull.aa):
        return np.full_like(threshold_influence, np.nan)
    # inner products of w and of Πa with all rows
    residual, orthogonal = hull.values(end.ratio * hull.a + hull.p - end.weights), hull.values(hull.a - end.derivative)
    weight_U, weight_P = end.ratio, 1 - end.ratio  # of μ_U and μ_P in u
    on_a = row_influence.on_mean(residual, 1.0, -1.0)  # ⟨δa, w⟩
    slope_influence = (on_a + row_influence.on_mean(orthogonal, weight_U, weight_P)) / end.distance
    slope_influence -= end.slope * row_influence.on_mean(residual, weight_U, weight_P) / end.distance**2
    return np.asarray((threshold_influence - slope_influence) / second_derivative / end.ratio**2)


def _exit_influence(hull: Hull, end: NearestPoint, row_influence: RowInfluence) -> Floats:
    """Compute the influence of each row on the prior where the slope jumps past the threshold from d = 0.

    `end` is the point at which u = λμ_U + (1−λ)μ_P leaves the hull, through a face with the outer normal w/‖w‖. The
    face stays where it is, so ⟨w, δu + δλ a⟩ = 0, with δu the change of u due to a row, and δπ = δλ/λ². Where the line
    leaves through several faces at once, w is a mean of their normals, and the influence an approximation.
    """
    outside = hull.project(_OUTSIDE * end.ratio, start=end.weights > 0)
    residual = hull.values(outside.ratio * hull.a + hull.p - outside.weights)
    growth = outside.slope * outside.distance  # ⟨w, a⟩
    return np.asarray(-row_influence.on_mean(residual, end.ratio, 1 - end.ratio) / growth / end.ratio**2)
