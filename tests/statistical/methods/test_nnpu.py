import numpy as np
import pytest
from scipy.special import expit

import priorshift as ps
from priorshift.errors import FewPositivesWarning, InputError
from priorshift.methods.nnpu import non_negative
from priorshift.scores.calibration import calibrate

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
    rng = np.random.default_rng(0)
    unlabeled = np.concatenate([rng.normal(1, 1, round(20_000 * held)), rng.normal(-1, 1, round(20_000 * (1 - held)))])
    a, b = calibrate(rng.normal(1, 1, 20_000), unlabeled, 0.3)
    wrong = abs(held - 0.3)
    assert a == pytest.approx(2, abs=0.05 + 4 * wrong)
    assert b == pytest.approx(np.log(0.3 / 0.7), abs=0.05 + 2 * wrong)


def test_calibration_is_the_maximum_of_its_likelihood():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(1, 2, 500), rng.normal(0, 2, 800)
    a, b = calibrate(positive, unlabeled, 0.3)

    def likelihood(a, b):
        odds = [500 / (800 * 0.3) * expit(a * s + b) for s in (positive, unlabeled)]
        return np.log(odds[0] / (1 + odds[0])).sum() - np.log1p(odds[1]).sum()

    best = likelihood(a, b)
    for step in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01), (0.01, 0.01), (0.01, -0.01)):
        assert likelihood(a + step[0], b + step[1]) < best


def test_scores_that_say_nothing_give_the_prior():
    rng = np.random.default_rng(0)
    unlabeled = rng.normal(size=300)
    a, b = calibrate(unlabeled.mean() * np.ones(5) - 1, unlabeled, 0.3)  # positives score lower: no use
    assert a == 0 and expit(b) == pytest.approx(0.3, abs=1e-4)
    a, b = calibrate(np.zeros(5), np.zeros(9), 0.3)
    assert expit(b) == pytest.approx(0.3, abs=1e-4)


def test_scores_that_separate_stay_finite():
    a, b = calibrate(np.ones(20), -np.ones(30), 0.3)
    assert np.isfinite([a, b]).all() and a > 0


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
