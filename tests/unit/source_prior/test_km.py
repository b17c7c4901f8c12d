import sys
import warnings
from typing import ClassVar

import numpy as np
import pytest

import priorshift as ps
from priorshift.errors import (
    ApproximationWarning,
    EstimatedPriorWarning,
    FewPositivesWarning,
    InputError,
    WeakSeparationWarning,
)
from priorshift.progress import show_progress, track_progress
from priorshift.source_prior import km


@pytest.fixture
def sample():
    return ps.simulate.gaussian(0.3, 0.6, 300, 300, shared=False, random_state=0)


def test_well_separated_classes_give_the_true_share():
    s = ps.simulate.gaussian(0.3, 0.6, 600, 10, distance=4.0, random_state=0)
    truth = s.unlabeled_labels.mean()
    for rule in (ps.KM1(), ps.KM2()):
        assert rule.fit(s.X, s.y).prior_ == pytest.approx(truth, abs=0.05)


def test_prior_is_that_of_a_tight_solve(sample):
    """Everything at a tolerance of 1e-10, through the public pieces."""
    from priorshift.hull.gram_matrix import gram_matrix
    from priorshift.hull.hull import Hull

    km2 = ps.KM2(standardize=False).fit(sample.X, sample.y)
    positive = sample.y == 1
    p = positive / positive.sum()
    a = ~positive / (~positive).sum() - p
    hull = Hull(gram_matrix(sample.X, km2.bandwidth_), p, a)
    start = hull.project(1.05, tolerance=1e-10)
    threshold = 0.8 * start.distance / 0.05 + 0.2 * hull.separation
    assert km2.thresholds_["KM2"] == pytest.approx(threshold, rel=1e-3)
    assert km2.thresholds_["KM1"] == pytest.approx(1 / np.sqrt(positive.sum()))
    assert km2.prior_ == pytest.approx(1 - 1 / hull.find_slope(threshold, tolerance=1e-10).ratio, abs=1e-3)


@pytest.mark.parametrize("rule", [ps.KM1, ps.KM2])
def test_influence_is_the_change_when_a_row_counts_more(rule, sample, monkeypatch):
    """By a difference quotient: more weight on one row in its mean, the hull unchanged."""
    from priorshift.hull import gram_matrix as module
    from priorshift.hull.hull import Hull

    base = rule().fit(sample.X, sample.y)
    rows = np.arange(0, len(sample.X), 23)
    assert len(rows) > 10
    step = 0.02
    for row in rows:
        moved = []
        for sign in (1, -1):

            class Weighted(Hull):
                def __init__(self, K, p, a, at_rows=None, row=row, sign=sign):
                    u = p + a
                    for weights in (p, u):
                        if weights[row] > 0:
                            push = sign * step * weights[row]
                            weights *= 1 - push
                            weights[row] += push
                    super().__init__(K, p, u - p)

            monkeypatch.setattr(module, "Hull", Weighted)
            moved.append(rule(bandwidth=base.bandwidth_).fit(sample.X, sample.y).prior_)
        size = (sample.y == sample.y[row]).sum()
        quotient = (moved[0] - moved[1]) / (2 * step) * np.sqrt(size / (size - 1))
        # priors are exact to 1e-4, so a quotient is to 0.005; a change of face bends it a little
        assert base.prior_influence_[row] == pytest.approx(quotient, abs=0.006, rel=0.15)


@pytest.mark.slow
def test_standard_error_is_the_spread_of_the_prior():
    rng = np.random.default_rng(0)
    fits = []
    for _ in range(120):
        s = ps.simulate.gaussian(0.3, 0.6, 300, 10, shared=False, random_state=rng)
        fits.append(ps.KM2().fit(s.X, s.y))
    spread = np.std([km.prior_ for km in fits], ddof=1)
    error = np.mean([km.standard_error_ for km in fits])
    # first-order influence overstates a little in small samples; 120 draws know a spread to 6.5 %
    assert 0.9 * spread < error < 1.7 * spread


def test_shared_rows_enter_the_standard_error():
    s = ps.simulate.gaussian(0.3, 0.6, 300, 300, random_state=0)
    told, untold = ps.KM2().fit(s.X, s.y, shared=s.ids), ps.KM2().fit(s.X, s.y)
    assert told.prior_ == untold.prior_
    assert told.standard_error_ < untold.standard_error_


def test_censoring_takes_all_rows_as_the_population(sample):
    censored = ps.KM2(scenario="censoring", bandwidth=3.0).fit(sample.X, sample.y)
    m = len(sample.positive)
    X, y = np.concatenate([sample.positive, sample.X]), np.repeat([1, 0], [m, len(sample.X)])
    # the same hull, with its positives twice
    assert censored.prior_ == pytest.approx(ps.KM2(bandwidth=3.0).fit(X, y).prior_, abs=2e-3)


def test_a_start_inside_the_hull_has_no_influence(sample):
    """Under censoring the first point often lies inside the hull; its distance of 0 must not blow up the error.

    Neither must rounding, where the slope jumps past the threshold as the line leaves the hull.
    """
    few, rng = np.concatenate([sample.positive[:15], sample.unlabeled[:60]]), np.random.default_rng(0)
    y = np.repeat([1, 0], [15, 60])
    rounded = [few * (1 + 2e-16 * rng.integers(-2, 3, few.shape)) for _ in range(10)]
    errors = [ps.KM2(scenario="censoring").fit(X, y).standard_error_ for X in rounded]
    np.testing.assert_allclose(errors, np.sqrt(0.2 * 0.8 / 74), rtol=1e-3)


@pytest.mark.parametrize(("m", "n"), [(10, 40), (15, 60), (40, 60)])
def test_rows_without_neighbours_give_the_labelled_share_and_its_binomial_error(m, n):
    """The kernel of different rows is 0, so the line leaves the hull where the weights of the labelled rows are 0."""
    X = np.random.default_rng(0).normal(size=(m + n, 3))
    with pytest.warns(WeakSeparationWarning):
        km2 = ps.KM2(scenario="censoring", bandwidth=0.02).fit(X, np.repeat([1, 0], [m, n]))
    share = m / (m + n)
    assert km2.prior_ == pytest.approx(share, abs=1e-6)
    assert km2.standard_error_ == pytest.approx(np.sqrt(share * (1 - share) / (m + n - 1)), rel=1e-3)


@pytest.mark.parametrize("inside", [0, 1])
def test_the_influence_of_each_row_where_the_line_leaves_the_hull_through_one_face(monkeypatch, inside):
    """The kernel of different rows is 0, so the prior is the smallest ratio u/p of the shares of a value in U and P.

    The point that the search finds is just outside the hull, or taken to be on its border.
    """
    monkeypatch.setattr(km, "_INSIDE", inside)
    positive, unlabeled = np.repeat(range(6), [9, 5, 3, 2, 4, 7]), np.repeat(range(8), [4, 11, 9, 10, 8, 12, 15, 20])
    X, y = np.append(positive, unlabeled)[:, None] * 1.0, np.repeat([1, 0], [len(positive), len(unlabeled)])
    km2 = ps.KM2(bandwidth=0.02).fit(X, y)
    p, u = np.mean(positive == 0), np.mean(unlabeled == 0)
    assert km2.prior_ == pytest.approx(u / p, abs=1e-4)
    expected = np.where(y == 1, -u / p**2 * ((X[:, 0] == 0) - p), ((X[:, 0] == 0) - u) / p)
    sizes = np.where(y == 1, len(positive), len(unlabeled))
    expected /= np.sqrt(sizes * (sizes - 1))
    np.testing.assert_allclose(km2.prior_influence_, expected, rtol=1e-3, atol=1e-5)


def test_curve_passes_through_the_estimate(sample):
    km2 = ps.KM2().fit(sample.X, sample.y)
    curve = km2.curve([0.0, km2.prior_, 0.9])
    assert curve.distance[0] == 0
    assert curve.slope[1] == pytest.approx(km2.thresholds_["KM2"], rel=2e-3)
    assert (np.diff(curve.distance) > 0).all()
    np.testing.assert_allclose(curve.prior, [0, km2.prior_, 0.9])
    assert len(km2.curve().ratio) == 30
    with pytest.raises(InputError, match=r"outside \[0, 1\)"):
        km2.curve([1.0])


def test_many_features_are_projected_unless_told_not_to():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 60)), np.repeat([1, 0], [30, 60])
    X[:50] += 1
    with pytest.warns(ps.errors.ApproximationWarning, match=r"60 features.* 50"):
        projected = ps.KM2(standardize=False).fit(X, y)
    assert projected.components_ == 50
    assert ps.KM2(components=None).fit(X, y).components_ is None
    centred = X - X.mean(axis=0)
    scores = centred @ np.linalg.svd(centred)[2][:50].T
    assert projected.prior_ == pytest.approx(ps.KM2(standardize=False).fit(scores, y).prior_, abs=1e-6)


def test_few_positives_and_noise_are_said(sample):
    rng = np.random.default_rng(0)
    U = rng.normal(size=(80, 3))
    with pytest.warns(FewPositivesWarning, match=r"3 positive"):
        ps.KM2().fit(np.concatenate([U[:3] + 3, U]), np.repeat([1, 0], [3, 80]))
    with pytest.warns(WeakSeparationWarning, match=r"40 positive.* 80 rows"):
        ps.KM2().fit(np.concatenate([rng.normal(size=(40, 3)), U]), np.repeat([1, 0], [40, 80]))
    with pytest.warns(WeakSeparationWarning, match=r"0\.99.*80 positive"):
        same = ps.KM2().fit(np.concatenate([U, U]), np.repeat([1, 0], [80, 80]))
    assert same.prior_ == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": "median"}, "bandwidth is 'median', but it must be a positive number .* or 'search'"),
        ({"bandwidth": -1.0}, "bandwidth is -1.0, but it must be a positive number"),
        ({"components": 0}, "components is 0, but it must be a whole number of at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message, sample):
    with pytest.raises(InputError, match=message):
        ps.KM2(**options).fit(sample.X, sample.y)


def test_rows_without_a_median_distance_are_refused():
    X = np.repeat([[0.0, 1], [1, 0]], [30, 2], axis=0)
    with pytest.raises(InputError, match=r"identical"):
        ps.KM2().fit(X, np.repeat([1, 0], [10, 22]))


def test_tcpu_asks_km2_and_says_what_its_interval_lacks(sample):
    tcpu = ps.TCPU().fit(sample.X, sample.y)
    with pytest.warns(EstimatedPriorWarning, match=r"KM2.*bias"):
        estimate = tcpu.estimate(sample.target)
    assert estimate.source_prior == tcpu.prior_estimator_.prior_
    assert estimate.source_prior == pytest.approx(ps.KM2().fit(sample.X, sample.y).prior_, abs=1e-9)
    assert "by KM2" in str(estimate)
    assert estimate.source_prior_by == "KM2"
    assert estimate.details["source_prior_standard_error"] == pytest.approx(tcpu.prior_estimator_.standard_error_)
    assert tcpu.source_prior_ == estimate.source_prior


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_interval_with_an_estimated_prior_is_wider_and_right(sample):
    """Var π̂′ from the influences of all rows on 1 − (1−π̂)R̂, written out."""
    tcpu = ps.TCPU(statistic="plug-in", standardize=False).fit(sample.X, sample.y)
    estimated = tcpu.estimate(sample.target)
    known = ps.TCPU(estimated.source_prior, statistic="plug-in", standardize=False).fit(sample.X, sample.y)
    known = known.estimate(sample.target)
    assert estimated.raw == pytest.approx(known.raw)
    q = tcpu.prior_estimator_.prior_influence_
    from priorshift.kernels import Gaussian

    kernel = Gaussian(tcpu.kernel_.bandwidth)
    samples = (sample.positive, sample.unlabeled, sample.target)
    P, U, T = (lambda x, of=of: kernel(x, of).mean(axis=1) for of in samples)
    R, D, pi = estimated.negative_ratio, estimated.separation, estimated.source_prior
    total = 0.0
    directions = (
        lambda x: (2 * R - 1) * (U(x) - P(x)) - (T(x) - P(x)),
        lambda x: (T(x) - P(x)) - 2 * R * (U(x) - P(x)),
        lambda x: U(x) - P(x),
    )
    m = len(sample.positive)
    for of, direction, prior in zip(samples, directions, (q[:m], q[m:], 0.0), strict=True):
        psi = direction(of) / D
        psi = (psi - psi.mean()) / np.sqrt(len(of) * (len(of) - 1))
        total += ((R * prior - (1 - pi) * psi) ** 2).sum()
    assert estimated.standard_error == pytest.approx(np.sqrt(total), rel=1e-9)


class Noisy(ps.KM2):
    """A prior of 0.3 whose error is large and known: every row moves it at random."""

    def fit(self, X, y):
        self.prior_ = 0.3
        self.prior_influence_ = np.random.default_rng(0).normal(size=len(X)) * 0.1 / np.sqrt(len(X))
        return self


OPTIONS = [{}, {"interval": "bootstrap"}, {"pairs": 100_000}]


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
@pytest.mark.parametrize("options", OPTIONS, ids=["delta", "bootstrap", "pairs"])
def test_error_of_the_prior_enters_every_interval(options, scenario, sample):
    """sd(π̂) = 0.1 and R near 0.6: π̂′ gets R²·0.01 more variance, a threefold interval. Both scenarios alike."""
    known, noisy = (
        ps.TCPU(prior, random_state=0, scenario=scenario, **options).fit(sample.X, sample.y).estimate(sample.target)
        for prior in (0.3, Noisy(scenario=scenario))
    )
    R = known.negative_ratio
    added = np.sqrt(known.standard_error**2 + (0.1 * R) ** 2)
    # the random influence is nearly uncorrelated with R; 300 rows and 500 replicates know a spread to 5 % each
    assert noisy.standard_error == pytest.approx(added, rel=0.15)
    assert noisy.interval.width == pytest.approx(known.interval.width * added / known.standard_error, rel=0.2)


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_a_shared_row_moves_the_prior_once(sample):
    """The joint variance with shared rows, written out observation by observation."""
    s = ps.simulate.gaussian(0.3, 0.6, 200, 150, random_state=1)
    tcpu = ps.TCPU(Noisy(), statistic="plug-in", standardize=False).fit(s.X, s.y, shared=s.ids)
    estimate = tcpu.estimate(s.target)
    q = tcpu.prior_estimator_.prior_influence_
    from priorshift.kernels import Gaussian

    kernel = Gaussian(tcpu.kernel_.bandwidth)
    samples = (s.positive, s.unlabeled, s.target)
    P, U, T = (lambda x, of=of: kernel(x, of).mean(axis=1) for of in samples)
    R, D = estimate.negative_ratio, estimate.separation
    directions = (
        lambda x: (2 * R - 1) * (U(x) - P(x)) - (T(x) - P(x)),
        lambda x: (T(x) - P(x)) - 2 * R * (U(x) - P(x)),
        lambda x: U(x) - P(x),
    )
    moves = {}
    m = len(s.positive)
    names = (s.positive_ids, s.unlabeled_ids, [f"target {k}" for k in range(len(s.target))])
    for of, direction, prior, ids in zip(samples, directions, (q[:m], q[m:], np.zeros(150)), names, strict=True):
        psi = direction(of) / D
        psi = (psi - psi.mean()) / np.sqrt(len(of) * (len(of) - 1))
        for name, move in zip(ids, R * prior - 0.7 * psi, strict=True):
            moves[name] = moves.get(name, 0.0) + move
    assert estimate.standard_error == pytest.approx(np.sqrt(sum(move**2 for move in moves.values())), rel=1e-9)


def test_a_scenario_that_contradicts_is_refused_and_the_default_follows():
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.5
    X = rng.normal(size=(400, 4)) + 2 * truth[:, None]
    y = truth & (rng.random(400) < 0.6)
    tcpu = ps.TCPU(scenario="censoring").fit(X, y)
    assert tcpu.prior_estimator_.prior_ == pytest.approx(0.5, abs=0.08)
    with pytest.raises(
        InputError,
        match=r"'case-control'.*'censoring'",
    ):
        ps.TCPU(ps.KM2(), scenario="censoring").fit(X, y)


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_standardizing_makes_units_irrelevant(sample):
    units = np.logspace(-3, 3, 10)
    assert ps.KM2(standardize=True).fit(sample.X * units, sample.y).prior_ == pytest.approx(
        ps.KM2(standardize=True).fit(sample.X, sample.y).prior_, abs=1e-6
    )
    plain = ps.KM2LS(standardize=True).fit(sample.X, sample.y).estimate(sample.target).value
    scaled = ps.KM2LS(standardize=True).fit(sample.X * units, sample.y).estimate(sample.target * units).value
    assert scaled == pytest.approx(plain, abs=1e-6)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
def test_km1_takes_the_threshold_of_km2_where_its_own_is_out_of_reach():
    rng = np.random.default_rng(0)
    P, U = rng.normal(size=(6, 3)) + 0.7, rng.normal(size=(100, 3))
    km1 = ps.KM1(bandwidth=4.0).fit(np.concatenate([P, U]), np.repeat([1, 0], [6, 100]))
    assert 1 / np.sqrt(6) > 0.9 * km1.separation_
    assert km1.thresholds_["KM1"] == km1.thresholds_["KM2"]


def test_a_solver_that_stops_short_is_said(sample, monkeypatch):
    from dataclasses import replace

    from priorshift.hull.hull import Hull

    real = Hull.project
    monkeypatch.setattr(Hull, "project", lambda *args, **named: replace(real(*args, **named), converged=False))
    with pytest.warns(ps.errors.ApproximationWarning, match=r"tolerance"):
        assert not ps.KM2().fit(sample.X, sample.y).converged_


def test_where_d_is_a_line_no_prior_is_found():
    """Few rows in many features, all equally far from each other: nothing tells where d leaves zero."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 40)), np.repeat([1, 0], [20, 60])
    with pytest.warns(WeakSeparationWarning, match=r"too few"):
        km2 = ps.KM2(bandwidth=0.3).fit(X, y)
    assert km2.prior_ == pytest.approx(0.99)
    assert np.isnan(km2.standard_error_)


class Oracle(ps.KM2):
    """A source-prior estimator that does not tell its error."""

    def fit(self, X, y):
        self.prior_ = self.max_rows / 1e5
        return self


def test_an_estimator_that_hides_its_error_gets_no_interval(sample):
    tcpu = ps.TCPU(Oracle(max_rows=30_000)).fit(sample.X, sample.y)
    with pytest.warns(EstimatedPriorWarning, match=r"0\.300.*Oracle"):
        estimate = tcpu.estimate(sample.target)
    assert estimate.interval is None
    assert np.isnan(estimate.standard_error)
    assert estimate.source_prior == 0.3
    with pytest.raises(InputError, match=r"Oracle .*1\.5"):
        ps.TCPU(Oracle(max_rows=150_000)).fit(sample.X, sample.y).estimate(sample.target)


class Plain:
    """Not a scikit-learn estimator; it has fit and then prior_, and that is enough."""

    def fit(self, X, y):
        self.prior_ = 0.25
        self.prior_influence_ = [0.0, 1.0]


def test_any_object_with_a_prior_works_and_its_influence_is_checked(sample):
    with pytest.raises(InputError, match=r"\(2,\).*300 rows"):
        ps.TCPU(Plain()).fit(sample.X, sample.y).estimate(sample.target)


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_a_prior_that_becomes_known_has_no_error_any_more(sample):
    asked = ps.TCPU(Noisy()).fit(sample.X, sample.y).set_params(source_prior=0.3).estimate(sample.target)
    known = ps.TCPU(0.3).fit(sample.X, sample.y).estimate(sample.target)
    assert asked == known


def test_bounds_need_a_known_prior(sample):
    with pytest.raises(InputError, match=r"'paper-bound'"):
        ps.TCPU(interval="paper-bound").fit(sample.X, sample.y)


def test_km2_ls_is_km2_on_the_target(sample):
    km2ls = ps.KM2LS(standardize=False).fit(sample.X, sample.y)
    with pytest.warns(EstimatedPriorWarning, match=r"KM2-LS.*bias"):
        estimate = km2ls.estimate(sample.target)
    X = np.concatenate([sample.positive, sample.target])
    y = np.repeat([1, 0], [len(sample.positive), len(sample.target)])
    assert estimate.value == pytest.approx(ps.KM2(standardize=False).fit(X, y).prior_, abs=1e-9)
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert str(estimate).endswith("(KM2-LS)")
    shared = ps.simulate.gaussian(0.3, 0.6, 200, 200, random_state=0)  # of no consequence here, so not asked about
    with pytest.warns(EstimatedPriorWarning) as said:
        ps.estimate_prior(shared.positive, shared.unlabeled, shared.target, method="km2-ls")
    assert [warning.category for warning in said] == [EstimatedPriorWarning]
    with pytest.raises(InputError, match=r"'km2-ls'.*source_prior"):
        ps.estimate_prior(sample.positive, sample.unlabeled, sample.target, method="km2-ls", source_prior=0.2)


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_the_ratio_needs_no_prior_and_the_prior_is_asked_once(sample):
    class Counted(ps.KM2):
        fits: ClassVar[list] = []

        def fit(self, X, y, shared=None):
            self.fits.append(1)
            return super().fit(X, y, shared)

    R = ps.KernelRatio().fit(sample.X, sample.y).negative_ratio(sample.target)
    tcpu = ps.TCPU(Counted()).fit(sample.X, sample.y)
    with pytest.warns(EstimatedPriorWarning):
        first, again = tcpu.estimate(sample.target), tcpu.estimate(sample.target[:150])
    assert len(Counted.fits) == 1 and tcpu.prior_estimator_.prior_ == first.source_prior == again.source_prior
    assert tcpu.negative_ratio(sample.target) == R
    assert R.value == first.negative_ratio and R.value in R.interval
    known = tcpu.set_params(source_prior=0.3).estimate(sample.target)
    assert (known.source_prior, known.source_prior_by, tcpu.prior_estimator_) == (0.3, "given", None)
    assert R.standard_error == pytest.approx(known.standard_error / 0.7)
    for other in (None, ps.KM1(), Counted(bandwidth=2.0)):
        with pytest.raises(InputError, match=r"Counted.*TCPU"):
            tcpu.set_params(source_prior=other).estimate(sample.target)


@pytest.mark.parametrize("shared", [None, "ids"])
def test_the_estimator_of_the_prior_is_told_of_shared_rows(shared):
    s = ps.simulate.gaussian(0.3, 0.6, 300, 100, random_state=0)
    ids = s.ids if shared else None
    settings = {"repeats": 2, "use_km2": False, "random_state": 0}
    tcpu = ps.TCPU(ps.MixturePrior(**settings, standardize=False)).fit(s.X, s.y, shared=ids)
    direct = ps.MixturePrior(**settings).fit(s.X, s.y, shared=ids)
    # equal rows have equal scores up to rounding, which decides their ranks; without the ids it is off by 0.05
    assert tcpu.source_prior_ == pytest.approx(direct.prior_, abs=2e-3)


def test_progress_is_drawn_on_a_terminal_and_nowhere_else(monkeypatch, capsys):
    monkeypatch.setattr("priorshift.progress._DELAY", -1.0)
    with show_progress(True), track_progress("KM2", 4) as step:
        step()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with track_progress("KM2", 4) as step:  # nobody asked
        step()
    assert capsys.readouterr().err == ""
    with show_progress(True), show_progress(False), track_progress("KM2", 4) as step:  # what is called inherits it
        step()
        step()
    said = capsys.readouterr().err
    assert "KM2 [#####...............] step 2 of 4" in said
    assert said.endswith("\r\033[K")
    s = ps.simulate.gaussian(0.3, 0.6, 100, 50, random_state=0)
    ps.KM2(verbose=True).fit(s.X, s.y)
    assert "step 4 of 4" in capsys.readouterr().err


def two_columns(rows, seed):
    """Two columns with a normal distribution each, in which pivoting cycles where there are many rows."""
    rng = np.random.default_rng(seed)
    n = rows // 2
    P = rng.normal(1.5, 1, size=(n, 2))
    U = np.concatenate([rng.normal(1.5, 1, size=(n // 10, 2)), rng.normal(size=(n - n // 10, 2))])
    return np.concatenate([P, U]), np.repeat([1, 0], n)


def test_where_the_exact_search_would_be_slow_groups_of_rows_give_the_same_prior(monkeypatch):
    from priorshift.hull.hull import Hull
    from priorshift.source_prior import km

    X, y = two_columns(1200, 0)
    exact = ps.KM2().fit(X, y)
    monkeypatch.setattr(km, "_EXACT_ROWS", 600)
    monkeypatch.setattr(km, "_POINTS", 400)
    searched, descend = [], Hull._descend
    monkeypatch.setattr(Hull, "_descend", lambda self, *args: (searched.append(len(self.K)), descend(self, *args))[1])
    grouped = ps.KM2().fit(X, y)
    assert 1200 in searched  # the exact search cycled, and was given up
    assert len(grouped._problem[3]) == 1200 and grouped._problem[3].max() == 399
    assert abs(grouped.prior_ - exact.prior_) < 0.5 * exact.standard_error_
    assert np.corrcoef(grouped.prior_influence_, exact.prior_influence_)[0, 1] > 0.8
    assert ps.KM2().fit(X, y).prior_ == grouped.prior_  # although no seed is given


def test_a_prior_that_part_of_the_rows_contradicts_is_said(monkeypatch):
    from dataclasses import replace

    from priorshift.source_prior import km

    monkeypatch.setattr(km, "_EXACT_ROWS", 300)
    s = ps.simulate.gaussian(0.3, 0.6, 600, 10, distance=3.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prior = ps.KM2().fit(s.X, s.y).prior_
    solve = ps.KM2._solve

    def with_another_bandwidth(self, rows, sample, *args, **options):
        solution = solve(self, rows, sample, *args, **options)
        if len(sample.rows) < 600:
            solution = replace(solution, ratio=1 / (1 - 0.9), bandwidth=17.0)
        return solution

    monkeypatch.setattr(ps.KM2, "_solve", with_another_bandwidth)
    said = rf"{prior:.3f} from 600 rows, but 0\.900 from 300 of them; .* bandwidths [0-9.]+ and 17\."
    with pytest.warns(ApproximationWarning, match=said):
        ps.KM2().fit(s.X, s.y)
    with warnings.catch_warnings():  # sampling may explain it where the error is large
        warnings.simplefilter("error", ApproximationWarning)
        monkeypatch.setattr(
            ps.KM2, "_solve", lambda *a, **k: replace(with_another_bandwidth(*a, **k), standard_error=1.0)
        )
        ps.KM2().fit(s.X, s.y)


@pytest.mark.parametrize("contradicting", [1, 2])
def test_a_part_that_contradicts_the_prior_is_reported_whichever_of_the_two_it_is(contradicting, monkeypatch):
    from dataclasses import replace

    from priorshift.source_prior import km

    monkeypatch.setattr(km, "_EXACT_ROWS", 300)
    s = ps.simulate.gaussian(0.3, 0.6, 600, 10, distance=3.0, random_state=0)
    solve, parts = ps.KM2._solve, []

    def contradict(self, rows, sample, *args, **options):
        solution = solve(self, rows, sample, *args, **options)
        if len(sample.rows) < 600:
            parts.append(sample)
            if len(parts) == contradicting:
                return replace(solution, ratio=1 / (1 - 0.9))
        return solution

    monkeypatch.setattr(ps.KM2, "_solve", contradict)
    with pytest.warns(ApproximationWarning, match=r"0\.900 from 300 of them"):
        ps.KM2().fit(s.X, s.y)
    assert len(parts) == contradicting  # no further part is needed
