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
from priorshift.arrays import Floats
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
from priorshift.hull.hull import Hull, NearestPoint
from priorshift.io.parameters import check_bandwidth
from priorshift.io.sample_size import effective_size
from priorshift.problem import Source
from priorshift.progress import track_progress
from priorshift.warning_records import warn

_START = 1.05  # KM2's threshold is based on the slope of d from 1 to here
_LARGEST_PRIOR = 0.99
_NO_SEPARATION = 1e-6
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
        With up to this many rows, each is a point of the hull, and a matrix of rows by rows is stored. More rows are
        grouped by similarity to at most 1000 points, which is as accurate, faster, and needs less memory. From the
        larger of 8000 and twice `max_rows` on, a random sample is used, with a warning; up to half of it are positives.
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
        """Choose the bandwidth, build the hull of the rows or of groups of them, and find the prior and its error."""
        sample = self._select_rows(source, rng)
        rows = self._reduce_features(source.scaling.rows(source.table.values, sample.rows)[:])
        is_grouped = len(rows) > self.max_rows
        with (
            threads.one_blas_thread() if is_grouped or len(rows) <= _SMALL else nullcontext(),
            track_progress(type(self).__name__, 4) as step,
        ):
            step()
            if isinstance(self.bandwidth, str):
                # `rows` is an array of the sample alone, so its rows are numbered anew
                count = _SEARCH_ROWS if is_grouped else len(rows)
                searched = replace(sample, rows=np.arange(len(rows))).subsample(count, rng)
                self.bandwidth_ = search_bandwidth(rows[searched.rows], searched.p, searched.u, unbiased=is_grouped)
            else:
                self.bandwidth_ = float(self.bandwidth)
            step()
            group = None
            if is_grouped:  # rows are put in the order of their groups, as `build_hull` expects
                group = group_similar_rows(rows, sample, self.bandwidth_, min(self.max_rows, _POINTS), rng)
                order = np.argsort(group, kind="stable")
                rows, sample, group = rows[order], sample.take(order), group[order]
            self._problem = rows, sample.p, sample.u, group
            hull = build_hull(*self._problem, self.bandwidth_)
            step()
            influence = self._find_prior(hull, sample, RowInfluence(sample, source.observation[sample.rows]), step)
        self.prior_influence_ = np.zeros(len(source.labeled))
        self.prior_influence_[sample.rows] = influence
        by_observation = np.bincount(source.observation, self.prior_influence_)  # rows of one observation move together
        self.standard_error_ = float(np.sqrt(by_observation @ by_observation))

    def _find_prior(
        self, hull: Hull, sample: HullSample, row_influence: RowInfluence, step: Callable[[], None]
    ) -> Floats:
        """Find λ and the prior, warn where they are doubtful, and return the influence of each row on the prior.

        `sample` are the masses of rows in P and U; `step` reports progress. The influence, shape (rows of the sample,),
        is NaN where no prior is found.
        """
        m, n = effective_size(sample.p), effective_size(sample.u)
        start, largest = hull.project(_START), 1 / (1 - _LARGEST_PRIOR)
        thresholds = _thresholds(hull, start, row_influence, min(m, n))
        self.separation_ = hull.separation
        self.thresholds_ = {rule: slope for rule, (slope, _) in thresholds.items()}
        threshold, threshold_influence = thresholds[self.rule]
        step()
        # The separation must exceed what the ridge alone gives, and the slope of d, at most the separation, must still
        # have to grow: with few rows in many features, d is a line.
        ridge_separation = sqrt(2 * RIDGE) * float(np.linalg.norm(sample.u - sample.p))
        is_separable = hull.separation > max(_NO_SEPARATION, ridge_separation)
        is_separable &= threshold < (1 - 1e-6) * hull.separation
        end = hull.find_slope(threshold, largest=largest) if is_separable else hull.project(largest)
        is_found = is_separable and end.ratio < largest
        self.ratio_, self.prior_ = end.ratio, 1 - 1 / end.ratio
        self.converged_ = start.converged and end.converged
        # expected ‖μ_U − μ_P‖² of two samples of one population
        self._warn(sample, is_found, noise=float((1 - hull.K.mean()) * (1 / m + 1 / n)))
        if not is_found:
            return np.full_like(threshold_influence, np.nan)
        return _prior_influence(hull, end, threshold_influence, row_influence)

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

    def _warn(self, sample: HullSample, is_found: bool, noise: float) -> None:
        """Warn where P and U are not separable, or hardly, or the solver did not converge.

        `is_found` says whether a prior was found; `noise` is the expected squared distance of two samples of one
        population.
        """
        name, m, n = type(self).__name__, np.count_nonzero(sample.p), np.count_nonzero(sample.u)
        rows = f"{m} positive rows and {n} rows of the population (distance {self.separation_:.2g}"
        if not is_found:
            warn(
                f"{name} finds no prior below {_LARGEST_PRIOR} from {rows}): they are too similar, or too few for "
                f"their features. Every prior is possible; {_LARGEST_PRIOR} is returned.",
                WeakSeparationWarning,
            )
        elif self.separation_**2 < 2 * noise:
            warn(
                f"{name} cannot separate {rows}, from noise alone about {np.sqrt(noise):.2g}); treat the prior as a "
                "guess.",
                WeakSeparationWarning,
            )
        if is_found and not self.converged_:
            warn(
                f"{name} stopped short of its tolerance, as it can with few positives in one dimension; the prior may "
                "be off by 0.02. Add rows or features.",
                ApproximationWarning,
            )

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


def _thresholds(
    hull: Hull, start: NearestPoint, row_influence: RowInfluence, size: float
) -> dict[str, tuple[float, Floats]]:
    """Compute the slope at which each rule takes d to have left zero, and the influence of each row on that slope.

    KM1: 1/√size. KM2: 0.8·d(1.05)/0.05 + 0.2·‖μ_U − μ_P‖, between the mean slope at the start and the largest slope.
    `start` is the nearest point of the hull at λ = 1.05, `size` the effective min(m, n).
    """
    start_influence = np.zeros_like(row_influence.masses[0])  # of each row on d(1.05)
    km1 = 1 / sqrt(size), start_influence  # depends on the sizes alone, so no row has an influence
    if start.distance > 1e-5 * hull.separation:  # else inside the hull, up to rounding: d = 0, which no row changes
        residual = hull.values(_START * hull.a + hull.p - start.weights)
        start_influence = row_influence.on_mean(residual, _START, 1 - _START) / start.distance
    separation_influence = row_influence.on_mean(hull.values(hull.a), 1.0, -1.0) / max(hull.separation, 1e-300)
    slope = 0.8 * start.distance / (_START - 1) + 0.2 * hull.separation
    km2 = slope, 0.8 / (_START - 1) * start_influence + 0.2 * separation_influence
    return {"KM1": km1 if km1[0] <= 0.9 * hull.separation else km2, "KM2": km2}


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
