import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

import priorshift as ps
from priorshift.adapt import target_metrics
from priorshift.errors import InputError
from priorshift.problem import Source
from priorshift.shifted_classifier import _move_inside


class Oracle(ClassifierMixin, BaseEstimator):
    """The true posterior of the paper's synthetic data, as a classifier that was fitted on true classes."""

    def __init__(self, prior):
        self.prior = prior

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        raise AssertionError("a frozen classifier must not be fitted")

    def predict_proba(self, X):
        p = expit(X.sum(axis=1) - X.shape[1] / 2 + np.log(self.prior / (1 - self.prior)))
        return np.stack([1 - p, p], axis=1)


def frozen(prior):
    return FrozenEstimator(Oracle(prior))


@pytest.mark.parametrize("source", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("target", [0.2, 0.4, 0.6, 0.8])
def test_adapted_decisions_are_never_worse_over_the_papers_grid(source, target):
    """With a fitted, imperfect classifier and an estimated target prior; noise of 4000 rows is 0.007 (one sd)."""
    s = ps.simulate.gaussian(source, target, 2000, 4000, random_state=5)
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(source), random_state=0)
    shifted.fit(s.X, s.y, shared=s.ids)

    def accuracy():
        return (shifted.predict(s.target) == s.target_labels).mean()

    before = accuracy()
    after = shifted.adapt(s.target)
    assert after is shifted
    ours = accuracy()
    # the same rows are decided: only those between the two thresholds differ, a few hundred, so 0.005 is generous
    assert ours >= before - 0.005
    if abs(source - target) >= 0.3:
        assert ours > before
        pi, new = shifted.source_prior_, shifted.target_prior_
        shifted.threshold_ = (1 - pi) * new / ((1 - new) * pi + (1 - pi) * new)  # as the paper prints it
        assert accuracy() < before < ours


def test_frozen_classifier_keeps_its_fit_and_gets_the_targets_posterior():
    s = ps.simulate.gaussian(0.2, 0.6, 500, 500, random_state=0)
    shifted = ps.ShiftedClassifier(frozen(0.2), ps.TCPU(0.2)).fit(s.X, s.y)
    np.testing.assert_allclose(
        shifted.predict_proba(s.target), Oracle(0.2).predict_proba(s.target), rtol=1e-9, atol=1e-12
    )
    shifted.adapt_to(0.6)
    np.testing.assert_allclose(
        shifted.predict_proba(s.target), Oracle(0.6).predict_proba(s.target), rtol=1e-9, atol=1e-12
    )
    assert shifted.estimate_ is None and shifted.target_prior_ == 0.6
    shifted.adapt(s.target)
    assert shifted.target_prior_ == shifted.estimate_.value == ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target).value
    positive = shifted.predict_proba(s.target)[:, 1] > 0.5
    np.testing.assert_array_equal(positive, shifted.predict(s.target) == 1)
    shifted.adapt_to(shifted.source_prior_)
    assert shifted.threshold_ == 0.5


@pytest.mark.parametrize("classifier", [LogisticRegression(), LogisticRegression(class_weight="balanced"), LinearSVC()])
def test_an_ordinary_classifier_is_calibrated_to_the_class(classifier):
    s = ps.simulate.gaussian(0.2, 0.2, 2000, 10_000, shared=False, random_state=0)
    shifted = ps.ShiftedClassifier(classifier, ps.TCPU(0.2), random_state=0).fit(s.X, s.y)
    p = shifted.predict_proba(s.target)[:, 1]
    assert p.mean() == pytest.approx(0.2, abs=0.02)
    assert np.abs(p - Oracle(0.2).predict_proba(s.target)[:, 1]).mean() < 0.04
    best = ((Oracle(0.2).predict_proba(s.target)[:, 1] > 0.5) == s.target_labels).mean()
    assert (shifted.predict(s.target) == s.target_labels).mean() > best - 0.01


@pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
def test_the_source_prior_comes_from_whoever_knows_it():
    s = ps.simulate.gaussian(0.2, 0.6, 400, 400, random_state=0)
    asked = ps.ShiftedClassifier(LogisticRegression(), ps.KM2LS()).fit(s.X, s.y)
    # one is told its rows are scaled already, and KM2 searches to 1e-3: they differ by rounding
    assert asked.source_prior_ == pytest.approx(ps.KM2().fit(s.X, s.y).prior_, rel=1e-6)
    default = ps.ShiftedClassifier(LogisticRegression(), random_state=0).fit(s.X, s.y)
    assert isinstance(default.prior_estimator_, ps.WitnessShift)
    assert default.source_prior_ == default.prior_estimator_.source_prior_ == pytest.approx(0.2, abs=0.1)
    assert asked.adapt(s.target).target_prior_ == ps.KM2LS().fit(s.X, s.y).estimate(s.target).value


@pytest.mark.parametrize("prior", [0.0002, 0.9998])
@pytest.mark.parametrize("stated_to", ["classifier", "prior estimator"])
def test_a_stated_source_prior_is_used_as_it_is(prior, stated_to):
    """Only an estimate of 0 or 1 is replaced."""
    s = ps.simulate.gaussian(0.2, 0.5, n_source=600, n_target=100, shared=False, random_state=0)
    settings = {"source_prior": prior} if stated_to == "classifier" else {"prior_estimator": ps.WitnessShift(prior)}
    shifted = ps.ShiftedClassifier(LogisticRegression(), random_state=0, **settings).fit(s.X, s.y)
    assert shifted.source_prior_ == prior


def test_nnpu_is_taken_as_a_pu_classifier():
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.2, 0.8, 500, 2000, random_state=0)
    nnpu = ps.NNPUClassifier(0.25, hidden=(), folds=2, max_epochs=40, random_state=0)
    shifted = ps.ShiftedClassifier(nnpu, ps.TCPU(0.2)).fit(s.X, s.y, shared=s.ids)
    assert shifted.source_prior_ == 0.25  # what its probabilities were calibrated to
    plain = nnpu.fit(s.X, s.y, shared=s.ids).predict_proba(s.target)
    np.testing.assert_allclose(shifted.predict_proba(s.target), plain, rtol=1e-6, atol=1e-9)
    before = (shifted.predict(s.target) == s.target_labels).mean()
    assert (shifted.adapt(s.target).predict(s.target) == s.target_labels).mean() > before


def test_metrics_without_labels_are_those_with_them():
    rng = np.random.default_rng(0)
    s = ps.simulate.gaussian(0.2, 0.6, 500, 40_000, random_state=1)
    shifted = ps.ShiftedClassifier(frozen(0.2), ps.TCPU(0.2)).fit(s.X, s.y).adapt_to(0.6)
    found = shifted.metrics(rng.normal(1, 1, (40_000, 10)), s.target)
    decided, truth = shifted.predict(s.target) == 1, s.target_labels
    # samples of 40,000 rows know each of these to 0.004
    assert found.recall == pytest.approx(decided[truth].mean(), abs=0.015)
    assert found.false_positive_rate == pytest.approx(decided[~truth].mean(), abs=0.015)
    assert found.precision == pytest.approx(truth[decided].mean(), abs=0.015)
    assert found.accuracy == pytest.approx((decided == truth).mean(), abs=0.015)
    assert found.auc == pytest.approx(roc_auc_score(truth, shifted.predict_proba(s.target)[:, 1]), abs=0.015)
    assert found.decided_positive == decided.mean()


def test_metrics_of_an_exact_problem():
    """Target = 2 copies of the positives' scores and 2 negatives: everything by hand."""
    found = target_metrics([1.0, 3.0], [1.0, 3.0, 0.0, 2.0], target_prior=0.5, threshold=1.5)
    assert (found.recall, found.false_positive_rate, found.precision) == (0.5, 0.5, 0.5)
    assert (found.accuracy, found.auc, found.decided_positive) == (0.5, 0.75, 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"classifier": Ridge()},
            r"classifier is Ridge\(\), but it must be a classifier with fit, get_params, decision_function",
        ),
        (
            {"classifier": LogisticRegression},
            "classifier is the class LogisticRegression, but a classifier is expected; pass an instance",
        ),
        ({"classifier": LinearSVC(), "predicts": "positive"}, r"classifier is LinearSVC\(\), but .* predict_proba"),
        (
            {"prior_estimator": ps.KM2()},
            r"prior_estimator is KM2\(\), but it must be None or an estimator with .* estimate",
        ),
        (
            {"prior_estimator": ps.TCPU(0.2, scenario="censoring"), "classifier": ps.NNPUClassifier(0.2)},
            "'case-control' and 'censoring'",
        ),
        ({"predicts": "maybe"}, "predicts is 'maybe', but it must be one of"),
    ],
)
def test_settings_that_cannot_be_used(settings, message):
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    with pytest.raises(InputError, match=message):
        ps.ShiftedClassifier(**{"classifier": LogisticRegression(), **settings}).fit(s.X, s.y)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_a_target_without_an_answer_cannot_be_adapted_to():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 2)), np.repeat([1, 0], 30)
    X[30:] = X[:30]
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.3)).fit(X, y)
    with pytest.raises(InputError, match=r"adapt_to"):
        shifted.adapt(X)


def test_scores_without_numbers_are_refused():
    with pytest.raises(InputError, match=r"positive .*score"):
        target_metrics([], [1.0], 0.5, 0.5)
    with pytest.raises(InputError, match=r"target .*score"):
        target_metrics([1.0], [np.nan], 0.5, 0.5)


class Odd(LogisticRegression):
    """A classifier whose answers have the wrong shape or are no numbers."""

    def __init__(self, answer=None):
        super().__init__()
        self.answer = answer

    def predict_proba(self, X):
        return self.answer(super().predict_proba(X))


@pytest.mark.parametrize(
    "answer", [lambda p: p[:, 1], lambda p: p[:, :1], lambda p: p * np.nan, lambda p: np.c_[p, p[:, 0]]]
)
def test_answers_that_are_no_probabilities_are_refused_in_fit(answer):
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    with pytest.raises(InputError, match=r"Odd .*shape"):
        ps.ShiftedClassifier(Odd(answer), ps.TCPU(0.2)).fit(s.X, s.y)


def test_a_classifier_frozen_on_a_frame_gets_its_columns_in_its_order(tmp_path):

    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, dimension=3, random_state=0)
    scale = np.array([3.0, 1.0, 1.0])  # so that columns cannot be exchanged unnoticed
    source, target = (pd.DataFrame(X * scale, columns=list("abc")) for X in (s.X, s.target))
    model = LogisticRegression().fit(source, s.y)
    told = model.predict_proba(target)[:, 1]
    target.to_csv(tmp_path / "t.csv", index=False)
    for order in (["a", "b", "c"], ["c", "a", "b"]):
        shifted = ps.ShiftedClassifier(FrozenEstimator(model), ps.TCPU(0.2)).fit(source[order], s.y)
        for given in (target[order], target[["b", "c", "a"]], target[order].to_numpy(), str(tmp_path / "t.csv")):
            np.testing.assert_allclose(shifted.predict_proba(given)[:, 1], told, rtol=1e-9)
    with pytest.raises(InputError, match=r"3 columns.*X has 2"):
        ps.ShiftedClassifier(FrozenEstimator(model), ps.TCPU(0.2)).fit(source[["a", "b"]], s.y)


def test_calibration_rests_on_scores_of_rows_held_out():
    """A tree knows the rows that it was fitted on by heart: their scores would say that labelled means positive."""
    from sklearn.tree import DecisionTreeClassifier

    s = ps.simulate.gaussian(0.3, 0.3, 1500, 3000, shared=False, random_state=0)
    shifted = ps.ShiftedClassifier(
        DecisionTreeClassifier(min_samples_leaf=5, random_state=0), ps.TCPU(0.3), random_state=0
    )
    p = shifted.fit(s.X, s.y).predict_proba(s.target)[:, 1]
    assert p.mean() == pytest.approx(0.3, abs=0.06)


def test_shared_rows_are_dealt_together_by_every_estimator(monkeypatch):
    """What is dealt is what was said."""
    pytest.importorskip("torch")
    s = ps.simulate.gaussian(0.3, 0.6, 200, 100, random_state=0)
    shared = len(set(s.positive_ids) & set(s.unlabeled_ids))
    assert shared > 20
    given = []

    deal = Source.deal_folds

    def watched(source, *rest):
        given.append(len(source.shared))
        return deal(source, *rest)

    monkeypatch.setattr(Source, "deal_folds", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
        ps.DRPU(model=LogisticRegression()).fit(s.X, s.y, shared=s.ids)
        nnpu = ps.NNPUClassifier(0.3, max_epochs=1, folds=2, hidden=())
        nnpu.fit(s.X, s.y, shared=s.ids)
        ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.3)).fit(s.X, s.y, shared=s.ids)
        ps.ShiftedClassifier(nnpu, ps.TCPU(0.3)).fit(s.X, s.y, shared=s.ids)
    assert given == [shared] * 4


def test_random_models_are_decided_by_random_state():
    s = ps.simulate.gaussian(0.3, 0.6, 300, 100, random_state=0)
    forest = RandomForestClassifier(n_estimators=30)
    answers = [ps.DRPU(model=forest, random_state=0).fit(s.X, s.y).source_prior_ for _ in range(2)]
    assert answers[0] == answers[1]
    shifted = [ps.ShiftedClassifier(forest, ps.TCPU(0.3), random_state=0).fit(s.X, s.y) for _ in range(2)]
    np.testing.assert_array_equal(*(x.predict_proba(s.target) for x in shifted))


def test_few_positives_are_said():
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    with pytest.warns(ps.errors.FewPositivesWarning, match=r"5 positive"):
        ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.2)).fit(s.X[-88:], s.y[-88:])


def test_text_and_thresholds_that_are_no_numbers():
    with pytest.raises(InputError, match=r"^p contains"):
        ps.adapt.shifted_posterior(["a"], 0.2, 0.5)
    with pytest.raises(InputError, match=r"^positive contains"):
        target_metrics(["a"], [1.0], 0.5, 0.5)
    with pytest.raises(InputError, match=r"threshold is nan"):
        target_metrics([1.0], [1.0], 0.5, np.nan)
    with pytest.raises(InputError, match=r"target_prior is True"):
        target_metrics([1.0], [1.0], True, 0.5)


class Array(BaseEstimator):
    """A stranger's estimator: knows arrays alone, and nothing of shared rows."""

    def fit(self, X, y):
        self.mean_ = np.asarray(X, dtype=float).mean()
        return self

    def estimate(self, X_target):
        assert isinstance(X_target, np.ndarray)
        return ps.PriorEstimate(0.4, 0.4, None, 0.1, 0.3, 0.86, np.nan, "Array", (1, 1, len(X_target)))


def test_a_strangers_prior_estimator_is_given_arrays_and_what_it_asks_for():
    s = ps.simulate.gaussian(0.3, 0.6, 300, 100, random_state=0)
    frame = pd.DataFrame(s.X).add_prefix("x")
    shifted = ps.ShiftedClassifier(LogisticRegression(), Array(), source_prior=0.3, random_state=0)
    shifted.fit(frame, s.y, shared=s.ids).adapt(pd.DataFrame(s.target).add_prefix("x"))
    assert shifted.target_prior_ == 0.4


class Fixed(BaseEstimator):
    """Answers what it is told to."""

    def __init__(self, raw=0.0, error=0.1):
        self.raw, self.error = raw, error

    def fit(self, X, y):
        return self

    def estimate(self, X_target):
        value = float(np.clip(self.raw, 0, 1))
        return ps.PriorEstimate(value, self.raw, None, self.error, 0.2, 1.0, 1.0, "Fixed", (1, 1, len(X_target)))


@pytest.mark.parametrize("raw", [-0.3, -0.002, 0.0, 1.0, 1.2])
def test_an_estimate_at_an_end_does_not_decide_all_rows_alike(raw):
    s = ps.simulate.gaussian(0.2, 0.2, 300, 100, shared=False, random_state=0)
    shifted = ps.ShiftedClassifier(LogisticRegression(), Fixed(raw), source_prior=0.2, random_state=0).fit(s.X, s.y)
    with pytest.warns(ps.errors.OutOfRangeWarning, match="at an end of"):
        shifted.adapt(s.target)
    # the mean of the normal density within [0, 1], by a sum over a fine grid
    grid = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(-(((grid - raw) / 0.1) ** 2) / 2)
    assert shifted.target_prior_ == pytest.approx((grid * density).sum() / density.sum(), rel=1e-6)
    assert 0 < shifted.threshold_ < 1 and shifted.estimate_.value in (0, 1)
    assert shifted.adapt_to(0.0).threshold_ == 1  # a prior that is known is taken at its word
    with pytest.warns(ps.errors.OutOfRangeWarning, match="standard error nan"):
        shifted.set_params(prior_estimator=Fixed(raw, np.nan)).fit(s.X, s.y).adapt(s.target)
    assert min(shifted.target_prior_, 1 - shifted.target_prior_) == pytest.approx(0.5 / 101)


def test_an_estimate_that_is_sure_or_bare_is_half_a_row_from_its_end():
    with pytest.warns(ps.errors.OutOfRangeWarning):
        assert _move_inside(Fixed(1.3, 1e-9).estimate(range(100)), 100) == pytest.approx(1 - 0.5 / 101)
    with pytest.warns(ps.errors.OutOfRangeWarning):  # an answer of the user's own kind: a value and nothing else
        assert _move_inside(SimpleNamespace(value=0.0), 100) == pytest.approx(0.5 / 101)


@pytest.mark.slow
def test_rare_positives_are_still_decided():
    """π′ = 0.004, 20 draws: before, every fourth estimate was clipped to 0 and nothing was decided, without a word."""
    boundary = []
    for seed in range(20):
        s = ps.simulate.gaussian(0.01, 0.004, 10_000, 3000, distance=1.5, shared=False, random_state=seed)
        shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.01, interval=None), random_state=0).fit(s.X, s.y)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            shifted.adapt(s.target)
        boundary.append(any(issubclass(w.category, ps.errors.OutOfRangeWarning) for w in said))
        assert boundary[-1] == (shifted.estimate_.value == 0)
        assert 0 < shifted.target_prior_ < 0.05 and shifted.threshold_ < 1
    assert 0 < sum(boundary) < 20


class Foreign(BaseEstimator):
    """An estimator of the user's own, with what the documentation asks for: fit(X, y) and estimate(X_target)."""

    def fit(self, X, y):
        self.threshold_ = np.asarray(X, dtype=float)[np.asarray(y) == 1].mean()
        return self

    def estimate(self, X_target):
        share = float((np.asarray(X_target, dtype=float).mean(axis=1) > self.threshold_).mean())
        return ps.PriorEstimate(share, share, None, 0.1, 0.2, 1.0, 1.0, "Foreign", (1, 1, 1))


def test_an_estimator_of_the_users_own_is_given_plain_rows():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 100, shared=False, random_state=0)
    told = Foreign().fit(s.X, s.y).estimate(s.target).value
    assert ps.estimate_prior(s.positive, s.unlabeled, s.target, method=Foreign()).value == told
    shifted = ps.ShiftedClassifier(LogisticRegression(), Foreign(), source_prior=0.2).fit(s.X, s.y)
    assert shifted.adapt(s.target).target_prior_ == told


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_a_fitted_prior_estimator_and_its_estimate_are_used_as_they_are(monkeypatch):
    s = ps.simulate.gaussian(0.2, 0.6, 400, 400, shared=False, random_state=0)
    usual = ps.ShiftedClassifier(LogisticRegression(), ps.WitnessShift(random_state=1), random_state=0)
    usual.fit(s.X, s.y).adapt(s.target)
    witness = ps.WitnessShift(random_state=1).fit(s.X, s.y)
    estimate = witness.estimate(s.target)
    monkeypatch.setattr(ps.WitnessShift, "fit", lambda *args, **named: pytest.fail("fitted again"))
    monkeypatch.setattr(ps.WitnessShift, "estimate", lambda *args, **named: pytest.fail("estimated again"))
    again = ps.ShiftedClassifier(LogisticRegression(), FrozenEstimator(witness), random_state=0)
    again.fit(s.X, s.y).adapt_to(estimate)
    assert again.prior_estimator_ is witness and again.estimate_ is estimate
    np.testing.assert_array_equal(again.predict_proba(s.target), usual.predict_proba(s.target))


def test_an_estimate_that_is_none_cannot_be_adapted_to():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, shared=False, random_state=0)
    shifted = ps.ShiftedClassifier(frozen(0.2), ps.TCPU(0.2)).fit(s.X, s.y)
    nothing = ps.PriorEstimate(np.nan, np.nan, None, np.nan, 0.2, np.nan, 0.0, "TCPU", (40, 160, 200))
    with pytest.raises(InputError, match="cannot be estimated"):
        shifted.adapt_to(nothing)
