import numpy as np
import pytest
from scipy.special import expit

import priorshift as ps
from priorshift.errors import FewPositivesWarning, InputError
from priorshift.methods.nnpu import non_negative
from priorshift.scores.calibration import Calibration, calibrate

QUICK = dict(hidden=(10,), folds=2, max_epochs=5, random_state=0)


@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
def test_risk_without_negatives_is_the_risk_with_them(loss):
    """U is made of copies of the positives and the negatives, so the two are equal exactly."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(size=4), rng.normal(size=6)
    prior = 0.4
    unlabeled = np.concatenate([positive, negative])
    sure, doubtful = non_negative(torch, prior, loss)(torch.tensor(positive), torch.tensor(unlabeled))

    def ell(z):
        return expit(-z) if loss == "sigmoid" else np.logaddexp(0, -z)

    assert float(sure) == pytest.approx(prior * ell(positive).mean(), rel=1e-12)
    assert float(doubtful) == pytest.approx((1 - prior) * ell(-negative).mean(), rel=1e-12)


def bayes(X, prior):
    """Log odds of N(1, I) against N(0, I)."""
    return X.sum(axis=1) - X.shape[1] / 2 + np.log(prior / (1 - prior))


@pytest.mark.parametrize("settings", [{}, {"loss": "logistic"}, {"hidden": ()}])
def test_accuracy_and_probabilities_are_near_the_best_possible(settings):
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.2, 0.2, 2000, 20_000, random_state=1)
    classifier = ps.NNPUClassifier(0.2, random_state=0, **settings).fit(s.X, s.y, shared=s.ids)
    best = ((bayes(s.target, 0.2) > 0) == s.target_labels).mean()
    assert (classifier.predict(s.target) == s.target_labels).mean() > best - 0.02
    p = classifier.predict_proba(s.target)[:, 1]
    assert p.mean() == pytest.approx(0.2, abs=0.03)  # 333 positives and 1667 rows know it to 0.02
    assert np.abs(p - expit(bayes(s.target, 0.2))).mean() < 0.06


@pytest.mark.parametrize("held", [0.25, 0.3, 0.35])
def test_calibration_finds_the_log_odds_whatever_share_the_sample_holds(held):
    """N(1, 1) among N(-1, 1): log odds 2x + log(0.3/0.7); the unlabelled rows hold fewer or more positives than π."""
    x, errors = np.linspace(-2, 2, 9), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        positive, negative = rng.normal(1, 1, round(20_000 * held)), rng.normal(-1, 1, round(20_000 * (1 - held)))
        log_odds = calibrate(rng.normal(1, 1, 20_000), np.concatenate([positive, negative]), 0.3)
        errors.append(expit(log_odds(x)) - expit(2 * x + np.log(0.3 / 0.7)))
    # the largest error of one draw, and at each score the mean error of all of them
    assert np.abs(errors).max(axis=1).mean() < 0.03 + 3 * abs(held - 0.3)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.015 + 3 * abs(held - 0.3)


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_calibration_holds_where_the_classes_vary_unequally(spread):
    """N(2, 1) among N(0, spread²): the posteriors, shifted to another prior, have that prior as their mean."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(2, 1, 4000), rng.normal(0, spread, 4000)
    log_odds = calibrate(rng.normal(2, 1, 2000), np.concatenate([positive[:2000], negative[:2000]]), 0.5)
    for share in (0.05, 0.2, 0.8):
        rows = np.concatenate([positive[2000:][: round(2000 * share)], negative[2000:][: round(2000 * (1 - share))]])
        mean = expit(log_odds(rows) + np.log(share / (1 - share))).mean()
        assert mean == pytest.approx(share, abs=0.02)


def test_calibration_is_the_maximum_of_its_penalised_likelihood():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(1, 2, 500), rng.normal(0, 2, 800)
    found = calibrate(positive, unlabeled, 0.3)

    def likelihood(log_odds):
        curve = Calibration(found.knots, log_odds)
        odds = [500 / (800 * 0.3) * expit(curve(s)) for s in (positive, unlabeled)]
        slopes = np.diff(log_odds) / np.diff(found.knots) * unlabeled.std()
        penalty = 0.5e-3 * (slopes**2).sum() + 0.15 * (np.diff(slopes) ** 2).sum()
        return np.log(odds[0] / (1 + odds[0])).sum() - np.log1p(odds[1]).sum() - penalty

    best = likelihood(found.log_odds)
    for _ in range(50):
        step = 0.02 * rng.normal(size=len(found.knots))
        if (np.diff(found.log_odds + step) >= 0).all():
            assert likelihood(found.log_odds + step) < best


def test_scores_that_say_nothing_give_the_prior():
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=300)
    reversed_order = calibrate(unlabeled.mean() * np.ones(5) - 3, unlabeled, 0.3)  # positives score lower: no use
    np.testing.assert_allclose(expit(reversed_order(np.array([-2.0, 0.0, 2.0]))), 0.3, atol=1e-4)
    assert expit(calibrate(np.zeros(5), np.zeros(9), 0.3)(np.zeros(1))) == pytest.approx(0.3, abs=1e-4)


def test_scores_that_separate_stay_finite():
    found = calibrate(np.ones(20), -np.ones(30), 0.3)
    assert np.isfinite(found.log_odds).all() and found(np.ones(1)) > found(-np.ones(1))


def test_predictions_are_classes_and_an_unknown_prior_is_asked_of_km2():
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.3, 0.3, 400, 50, random_state=0)
    y = np.where(s.y, 7, -2)
    classifier = ps.NNPUClassifier(**QUICK).fit(s.X, y)
    assert set(classifier.predict(s.target)) <= {-2, 7}
    assert classifier.prior_ == pytest.approx(ps.KM2(standardize=True).fit(s.X, s.y).prior_, rel=1e-9)
    assert ((classifier.decision_function(s.target) > 0) == (classifier.predict(s.target) == 7)).all()


def test_censoring_counts_the_labelled_rows_in_the_population():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    truth = rng.random(1500) < 0.4
    X = rng.normal(size=(1500, 2)) + 4 * truth[:, None]
    labeled = truth & (rng.random(1500) < 0.5)
    classifier = ps.NNPUClassifier(0.4, scenario="censoring", hidden=(), folds=2, random_state=0).fit(X, labeled)
    assert (classifier.predict(X) == truth).mean() > 0.97
    assert classifier.predict_proba(X)[:, 1].mean() == pytest.approx(0.4, abs=0.02)


def test_few_positives_are_said():
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.2, 0.2, 100, 10, random_state=0)
    X, y = s.X[-90:], s.y[-90:]
    with pytest.warns(FewPositivesWarning, match=r"7 positive"):
        ps.NNPUClassifier(0.2, **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source_prior": 0}, "source_prior is 0, but it must be a number strictly between 0 and 1"),
        ({"loss": "hinge"}, "loss is 'hinge', but it must be one of 'sigmoid', 'logistic'"),
        ({"learning_rate": -1}, "learning_rate is -1, but it must be positive"),
    ],
)
def test_settings_that_cannot_be_used(settings, message):
    s = ps.simulate.gaussian(0.3, 0.3, 100, 10, random_state=0)
    with pytest.raises(InputError, match=message):
        ps.NNPUClassifier(**settings).fit(s.X, s.y)


@pytest.mark.parametrize("levels", [(2.0, 3.0), (0.1, 0.7, 1.5), (2.0, 3.0, 4.0)])
def test_calibration_of_tied_scores_is_finite_and_increases(levels):
    rng = np.random.default_rng(0)
    for m, n in ((20, 40), (40, 100)):
        positive = rng.choice(levels, size=m, p=np.arange(1, len(levels) + 1) / sum(range(len(levels) + 1)))
        found = calibrate(positive, rng.choice(levels, size=n), 0.3)
        log_odds = found(np.array(levels))
        assert np.isfinite(log_odds).all() and (np.diff(log_odds) >= 0).all() and log_odds[-1] > log_odds[0]
    tied = calibrate(np.repeat([2.0, 3.0], [1, 19]), np.repeat([2.0, 3.0], [2, 38]), 0.3)
    np.testing.assert_allclose(expit(tied(np.array([2.0, 3.0]))), 0.3, atol=0.05)  # both samples are alike


def test_scores_of_the_population_that_are_equal_but_for_rounding():
    found = calibrate(np.full(10, 0.1), np.full(30, 0.1), 0.3)
    assert expit(found(np.array([0.1]))) == pytest.approx(0.3, abs=1e-3)
