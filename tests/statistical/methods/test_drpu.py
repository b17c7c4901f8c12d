import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import priorshift as ps
from priorshift.errors import (
    DuplicateRowsWarning,
    EstimatedPriorWarning,
    FewPositivesWarning,
    InputError,
    WeakSeparationWarning,
)
from priorshift.methods import network as trainer
from priorshift.methods.drpu import lsif

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 1000, 1000, random_state=0)


def logistic(**settings):
    return ps.DRPU(model=LogisticRegression(), random_state=0, **settings)


def test_lsif_by_hand_and_its_minimum_is_the_density_ratio():
    torch = pytest.importorskip("torch")
    alpha = 0.3
    g_p, g_u = torch.tensor([0.3, -1.0]), torch.tensor([0.5, -2.0, 1.0])
    sure, doubtful = lsif(alpha)(g_p, g_u)
    r_p, r_u = (1 / (1 + np.exp(-g.numpy())) / alpha for g in (g_p, g_u))
    assert float(sure + doubtful) == pytest.approx((r_u**2).mean() / 2 - r_p.mean(), rel=1e-5)
    assert float(sure) == pytest.approx(alpha / 2 * (r_p**2).mean() - r_p.mean(), rel=1e-5)
    # two points: P puts 0.8 and 0.2 on them, U puts 0.5 and 0.5; r = 1.6, 0.4 must be the minimum
    output = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([output], max_iter=200)

    def closure():
        optimizer.zero_grad()
        risk = sum(lsif(alpha)(output[[0, 0, 0, 0, 1]], output[[0, 1]]))
        risk.backward()
        return risk

    optimizer.step(closure)
    np.testing.assert_allclose(output.sigmoid().detach() / alpha, [1.6, 0.4], rtol=1e-3)


def test_network_finds_both_priors_and_the_ratio():
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.2, 0.6, 1000, 1000, dimension=2, distance=3, random_state=0)
    drpu = ps.DRPU(random_state=0, learning_rate=1e-3, max_epochs=60).fit(s.X, s.y, shared=s.ids)
    estimate = drpu.estimate(s.target)
    # 42 held-out positives know a share to 0.07, and the smallest of many ratios is too small by about as much
    assert estimate.value == pytest.approx(0.6, abs=0.15)
    assert drpu.source_prior_ == pytest.approx(0.2, abs=0.07)
    assert estimate.negative_ratio == pytest.approx((1 - estimate.value) / (1 - drpu.source_prior_))
    r = drpu.density_ratio([[0.0, 0.0], [3.0, 3.0]])
    assert r[0] < 0.5 and 2 < r[1] <= 1 / drpu.alpha_
    assert np.argmin(drpu.held_out_divergence_) >= len(drpu.held_out_divergence_) - 31


def test_one_training_serves_many_targets(monkeypatch, sample):
    pytest.importorskip("torch")
    trainings = []
    real = trainer.train

    def counted(*args, **named):
        trainings.append(1)
        return real(*args, **named)

    monkeypatch.setattr("priorshift.methods.drpu.train", counted)
    drpu = ps.DRPU(0.2, hidden=(20,), max_epochs=10, random_state=3).fit(sample.X, sample.y)
    assert len({drpu.estimate(sample.target[k::4]).value for k in range(4)}) > 1
    assert len(trainings) == 1


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(random_state=0), LinearRegression()])
def test_any_score_can_take_the_networks_place(model, sample):
    drpu = ps.DRPU(model=model, random_state=0).fit(sample.X, sample.y, shared=sample.ids)
    assert drpu.estimate(sample.target).value == pytest.approx(0.6, abs=0.15)  # as above, and a forest is weaker
    assert drpu.alpha_ is None and type(drpu.model_) is type(model)
    with pytest.raises(InputError, match=r"density_ratio"):
        drpu.density_ratio(sample.target)


def test_a_known_prior_is_reported_and_an_estimated_one_named(sample):
    known = logistic(source_prior=0.2).fit(sample.X, sample.y).estimate(sample.target)
    assert known.source_prior == 0.2 and "by" not in str(known)
    assert "by DRPU" in str(logistic().fit(sample.X, sample.y).estimate(sample.target))


def test_interval_warns_of_what_it_leaves_out(sample):
    drpu = logistic().fit(sample.X, sample.y)
    with pytest.warns(EstimatedPriorWarning, match=r"sampling error.*bias"):
        estimate = drpu.estimate(sample.target)
    assert estimate.interval.low < estimate.value < estimate.interval.high
    half = estimate.interval.high - estimate.value
    assert half == pytest.approx(1.96 * estimate.standard_error, rel=1e-3)


def test_copies_of_all_rows_change_nothing():
    s = ps.simulate.gaussian(0.2, 0.6, 1000, 400, shared=False, random_state=0)

    def asked(times):
        model = LogisticRegression(C=1 / times, tol=1e-10)  # whose penalty is as large beside the loss
        drpu = ps.DRPU(model=model, random_state=0).fit(np.tile(s.X, (times, 1)), np.tile(s.y, times))
        return drpu, drpu.estimate(np.tile(s.target, (times, 1)))

    once, own = asked(1)
    with pytest.warns(DuplicateRowsWarning, match="one observation"):
        thrice, estimate = asked(3)
    assert thrice.least_share_ == pytest.approx(once.least_share_, rel=1e-9)
    assert estimate.value == pytest.approx(own.value, rel=1e-9)
    assert estimate.standard_error == pytest.approx(own.standard_error, rel=1e-9)
    assert estimate.interval.high - estimate.interval.low == pytest.approx(
        own.interval.high - own.interval.low, rel=1e-9
    )


def test_copies_of_some_rows_change_nothing():
    s = ps.simulate.gaussian(0.2, 0.6, 1000, 400, shared=False, random_state=0)
    drpu = logistic().fit(s.X, s.y)
    own = drpu.estimate(s.target)
    with pytest.warns(DuplicateRowsWarning, match=r"600 target rows"):
        estimate = drpu.estimate(np.concatenate([s.target, s.target[:200]]))
    assert estimate.value == pytest.approx(own.value, rel=1e-9)
    assert estimate.standard_error == pytest.approx(own.standard_error, rel=1e-9)


def test_groups_widen_the_interval_as_far_as_their_rows_are_alike():
    s = ps.simulate.gaussian(0.2, 0.6, 1500, 500, shared=False, random_state=0)
    rng = np.random.default_rng(0)

    def thrice(X):
        return np.repeat(X, 3, axis=0) + rng.normal(0, 1e-3, (3 * len(X), X.shape[1]))

    def error(X, y, target, of_source=None, of_target=None):
        drpu = logistic(n_bootstrap=2000).fit(X, y, groups=of_source)
        return drpu.estimate(target, groups=of_target).standard_error

    X, y, T = thrice(s.X), np.repeat(s.y, 3), thrice(s.target)
    patients, others = (np.repeat(np.arange(n), 3) + k for n, k in ((len(s.X), 0), (len(s.target), 10**6)))
    own, together = error(s.X, s.y, s.target), error(X, y, T, patients, others)
    assert together == pytest.approx(own, rel=0.1)  # another seed of the bootstrap; √3 apart, were they independent
    # rows that are put together at random know as much as rows that are not, but for the noise of 167 groups
    mixed = error(s.X, s.y, s.target, None, rng.permutation(len(s.target)) // 3)
    assert mixed == pytest.approx(own, rel=0.15)


def test_few_positives_fall_back_with_numbers():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, random_state=0)
    with pytest.warns(FewPositivesWarning, match=r"16 held-out.*28"):
        drpu = logistic().fit(s.X, s.y)
    assert drpu.least_share_ == 0.5
    assert 0 < drpu.estimate(s.target).value < 1


@pytest.mark.filterwarnings("ignore::priorshift.errors.FewPositivesWarning")
def test_positives_like_the_population_are_an_upper_bound_and_said_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.repeat([1, 0], [200, 200])
    constant = ps.DRPU(model=LogisticRegression(C=1e-12), random_state=0)
    with pytest.warns(WeakSeparationWarning, match=r"level set.*0\.9"):
        constant.fit(X, y)


def test_censoring_counts_the_labelled_rows_in_the_population():
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.4
    X = rng.normal(size=(3000, 2)) + 4 * truth[:, None]
    labeled = truth & (rng.random(3000) < 0.5)
    drpu = logistic(scenario="censoring").fit(X, labeled)
    assert drpu.source_prior_ == pytest.approx(0.4, abs=0.05)  # without them it would be 0.25


class BadScores(LogisticRegression):
    def decision_function(self, X):
        return np.full(len(X), np.nan)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": 3}, "model is 3, but it must be None or an estimator with fit, get_params, predict"),
        (
            {"model": LogisticRegression},
            r"model is the class LogisticRegression, but None or an estimator is expected; pass an instance, such as Log",
        ),
        ({"model": BadScores()}, "BadScores gave scores of shape .* not finite"),
        ({"hidden": 7}, "hidden is 7"),
    ],
)
def test_settings_that_cannot_be_used(settings, message, sample):
    with pytest.raises(InputError, match=message):
        ps.DRPU(**settings).fit(sample.X, sample.y)


@pytest.mark.filterwarnings("ignore::priorshift.errors.FewPositivesWarning")
def test_no_interval_pretends():
    """Too few positives: none. No row of the target above the threshold: the exact upper bound, not [0, 0]."""
    rng = np.random.default_rng(0)
    far = np.concatenate([rng.normal(6, 1, (8, 2)), rng.normal(6, 1, (20, 2)), rng.normal(0, 1, (80, 2))])
    assert logistic().fit(far, np.arange(108) < 8).estimate(far).interval is None
    X = np.concatenate([rng.normal(9, 1, (40, 2)), rng.normal(9, 1, (20, 2)), rng.normal(0, 1, (80, 2))])
    estimate = logistic().fit(X, np.arange(140) < 40).estimate(rng.normal(0, 1, (50, 2)))
    assert estimate.value == 0 and estimate.interval.low == 0
    at = estimate.details["share_of_positives"]
    assert estimate.interval.high == pytest.approx((1 - 0.025 ** (1 / 50)) / at)
    same = np.zeros((60, 2))
    nothing = ps.DRPU(model=LogisticRegression(), standardize=False, random_state=0)
    with pytest.warns(WeakSeparationWarning, match=r"level set"):
        nothing.fit(same, np.arange(60) < 30)
    assert (nothing.estimate(same).interval.low, nothing.estimate(same).interval.high) == (0, 1)
