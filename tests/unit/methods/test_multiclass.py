"""Several labelled classes and a rest: exact problems, sibling formulas, settings and refusals."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import priorshift as ps
from priorshift.errors import InputError, WeakSeparationWarning
from priorshift.methods.class_results import nearest_shares

SOURCE, TARGET = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(SOURCE, TARGET, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    return ps.MulticlassShift(SOURCE, random_state=0).fit(sample.X, sample.y)


def exact_problem(classes, rest, rng):
    """The points of all classes, once for each sample, with weights that make U and T exact mixtures of the classes.

    Returns X, y, weights and names of points for the source, and X, weights and names for the target, and the shares.
    """
    number = classes + rest
    points = [rng.normal(size=(40, 4)) + 1.5 * rng.normal(size=4) for _ in range(number)]
    own = [rng.dirichlet(5 * np.ones(40)) for _ in range(number)]
    pi, shares = rng.dirichlet(3 * np.ones(number)), rng.dirichlet(3 * np.ones(number))
    X = [*points[:classes]]
    y = [np.repeat(f"c{k}", 40) for k in range(classes)]
    weights = [*own[:classes]]
    names = [np.char.add(f"point {k} ", np.arange(40).astype(str)) for k in range(number)]
    groups = [*names[:classes]]
    if rest:
        X += points
        y.append(np.repeat("", 40 * number))
        weights += [p * w for p, w in zip(pi, own, strict=True)]
        groups += names
    target = np.concatenate(points), np.concatenate([p * w for p, w in zip(shares, own, strict=True)])
    priors = {f"c{k}": float(pi[k]) for k in range(classes)} if rest else None
    return (
        (np.concatenate(X), np.concatenate(y), np.concatenate(weights), np.concatenate(groups)),
        target,
        names,
        priors,
        shares,
    )


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("rest", [True, False], ids=["a rest", "no rest"])
@pytest.mark.parametrize("settings", [{}, {"method": "tcpu", "statistic": "plug-in"}], ids=["witness", "tcpu"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_exact_problems_have_their_answer(classes, settings, rest):
    rng = np.random.default_rng(classes)
    (X, y, weights, groups), (target, target_weights), names, priors, shares = exact_problem(classes, rest, rng)
    shift = ps.MulticlassShift(priors, rest=rest, random_state=0, **settings).fit(X, y, weights=weights, groups=groups)
    found = shift.estimate(target, weights=target_weights, groups=np.concatenate(names))
    raw = [estimate.raw for estimate in found.values()]
    np.testing.assert_allclose(raw, shares, atol=1e-10)
    expected = dict(zip(found, shares, strict=True))
    assert found.contains(expected) and sum(e.value for e in found.values()) == pytest.approx(1, abs=1e-12)


def test_tcpu_solves_the_equations_of_the_gram_matrix(sample):
    """An independent dense solution of ‖μ_T − Σ b_s μ_s‖², without the diagonals."""
    shift = ps.MulticlassShift(SOURCE, method="tcpu", standardize=False).fit(sample.X, sample.y)
    samples = [*sample.classes.values(), sample.unlabeled, sample.target]

    def product(i, j):
        distances = ((samples[i][:, None] - samples[j][None]) ** 2).sum(axis=2)
        K = np.exp(-distances / 10)
        n = len(K)
        return (K.sum() - n) / (n * (n - 1)) if i == j else K.mean()

    gram = np.array([[product(i, j) for j in range(4)] for i in range(4)])
    U, T = 2, 3
    A = [[gram[i, j] - gram[i, U] - gram[U, j] + gram[U, U] for j in range(2)] for i in range(2)]
    b = [gram[i, T] - gram[i, U] - gram[U, T] + gram[U, U] for i in range(2)]
    c = np.linalg.solve(A, b)
    found = shift.estimate(sample.target)
    np.testing.assert_allclose([found.coefficients[name] for name in "ab"], c, atol=1e-9)
    R = 1 - c.sum()
    assert found["a"].raw == pytest.approx(c[0] + R * 0.2) and found["rest"].raw == pytest.approx(R * 0.5)


def test_estimates_are_near_the_truth_and_add_up(fitted, sample):
    found = fitted.estimate(sample.target)
    for name, share in {**TARGET, "rest": 0.4}.items():
        drawn = float((sample.target_labels == name).mean())
        assert abs(found[name].value - drawn) < 3.5 * found[name].standard_error, (name, share)
        assert found[name].interval.low < found[name].value < found[name].interval.high
        band = found.band[name]
        assert band.low <= found[name].interval.low and found[name].interval.high <= band.high
    assert sum(estimate.value for estimate in found.values()) == pytest.approx(1)
    np.testing.assert_allclose(found.covariance.sum(axis=0), 0, atol=1e-12)
    assert found.contains({name: found[name].raw for name in found}) and not found.contains({"a": 0.1, "b": 0.8})
    assert fitted.estimate(sample.target).to_dict() == found.to_dict()  # the same each time


def test_separate_estimates_of_classes_are_wrong_where_more_than_one_changes():
    """The reason for a joint estimate: "all others" are another mixture in the target."""
    source, target = {"a": 0.3, "b": 0.3}, {"a": 0.1, "b": 0.8}
    s = ps.simulate.gaussian_classes(source, target, n_class=500, n_source=4000, n_target=4000, random_state=0)
    joint = ps.MulticlassShift(source, random_state=0).fit(s.X, s.y).estimate(s.target)
    alone = ps.estimate_prior(s.classes["a"], s.unlabeled, s.target, source_prior=0.3, random_state=0)
    assert abs(joint["a"].raw - 0.1) < 0.03 < abs(alone.raw - 0.1)


def test_more_uncertain_source_priors_give_wider_intervals(fitted, sample):
    shift = ps.MulticlassShift(SOURCE, random_state=0).fit(sample.X, sample.y)
    known = shift.estimate(sample.target)
    in_range = shift.set_params(source_prior={"a": (0.15, 0.25), "b": 0.3}).estimate(sample.target)
    survey = shift.set_params(source_prior={"a": stats.beta(20, 80), "b": 0.3}).estimate(sample.target)
    for found in (in_range, survey):
        assert found["a"].interval.width > 1.1 * known["a"].interval.width
        assert found["b"].interval.width == pytest.approx(known["b"].interval.width, rel=1e-6)
        assert found["rest"].interval.width > known["rest"].interval.width
    ends = [
        shift.set_params(source_prior={"a": end, "b": 0.3}).estimate(sample.target)["a"].interval
        for end in (0.15, 0.25)
    ]
    assert in_range["a"].interval.low == pytest.approx(min(end.low for end in ends))
    assert in_range["a"].interval.high == pytest.approx(max(end.high for end in ends))
    assert survey["a"].source_prior_by == "distribution" and in_range["a"].source_prior_by == "range"


def test_known_label_errors_are_corrected_in_one_linear_step(fitted, sample):
    found = fitted.estimate(sample.target)
    corrected = ps.MulticlassShift(SOURCE, label_error={"a": 0.1}, random_state=0).fit(sample.X, sample.y)
    corrected = corrected.estimate(sample.target)
    b = found.coefficients
    assert corrected["a"].raw == pytest.approx(0.9 * b["a"] + b["source"] * 0.2)
    assert corrected["b"].raw == pytest.approx(found["b"].raw)
    assert corrected["rest"].raw == pytest.approx(0.1 * b["a"] + b["source"] * 0.5)
    everywhere = fitted.set_params(label_error=(0.0, 0.1)).estimate(sample.target)
    fitted.set_params(label_error=None)
    assert everywhere["a"].interval.low <= corrected["a"].interval.low + 1e-9


def test_unknown_source_priors_are_estimated_class_by_class(sample):
    shift = ps.MulticlassShift({"b": 0.3}, random_state=0).fit(sample.X, sample.y)
    found = shift.estimate(sample.target)
    assert found["a"].source_prior_by == "MixturePrior" and found["b"].source_prior_by == "given"
    assert found["a"].interval.low <= 0.5 <= found["a"].interval.high
    with pytest.raises(InputError, match="fit again"):
        shift.set_params(source_prior={"a": 0.2}).estimate(sample.target)


def test_a_scikit_learn_classifier_can_replace_the_scores(sample):
    from sklearn.linear_model import LogisticRegression

    found = ps.MulticlassShift(SOURCE, model=LogisticRegression(), repeats=2, random_state=0).fit(sample.X, sample.y)
    assert found.estimate(sample.target)["a"].value == pytest.approx(0.5, abs=0.1)


def test_posteriors_are_near_those_of_the_true_densities(fitted, sample):
    found = fitted.estimate(sample.target)
    posteriors = fitted.posteriors(sample.target, found)
    assert posteriors.shape == (1000, 3) and list(fitted.classes_) == ["a", "b", "rest"]
    np.testing.assert_allclose(posteriors.sum(axis=1), 1)
    means = np.random.default_rng(5).normal(size=(3, 10))
    means *= 2 / np.linalg.norm(means, axis=1, keepdims=True)  # those of the simulator
    true = np.exp(-((sample.target[:, None] - means) ** 2).sum(axis=2) / 2) * [0.5, 0.1, 0.4]
    true /= true.sum(axis=1, keepdims=True)
    number = np.select([sample.target_labels == name for name in "ab"], [0, 1], 2)
    right, best = ((p.argmax(axis=1) == number).mean() for p in (posteriors, true))
    assert right > best - 0.03 and np.abs(posteriors - true).mean() < 0.1
    with pytest.raises(InputError, match="witness"):
        ps.MulticlassShift(SOURCE, method="tcpu").fit(sample.X, sample.y).posteriors(sample.target, found)


def test_labels_may_be_numbers_or_have_a_named_value(sample):
    number = np.select([sample.y == "a", sample.y == "b"], [1, 2], 0)
    by_number = ps.MulticlassShift({1: 0.2, "2": 0.3}, random_state=0).fit(sample.X, number)
    assert list(by_number.classes_) == ["1", "2", "rest"]
    named = np.where(sample.y == "", "unknown", sample.y)
    by_name = ps.MulticlassShift(SOURCE, random_state=0).fit(sample.X, named, unlabeled_label="unknown")
    expected = by_number.estimate(sample.target)["1"].value
    assert by_name.estimate(sample.target)["a"].value == pytest.approx(expected, abs=1e-12)


def test_under_censoring_the_population_includes_the_labelled_rows():
    rng = np.random.default_rng(0)
    s = ps.simulate.gaussian_classes(SOURCE, TARGET, n_source=2000, n_target=2000, random_state=1)
    labeled = (s.unlabeled_labels != "rest") & (rng.random(2000) < 0.4)
    y = np.where(labeled, s.unlabeled_labels, "")
    found = ps.MulticlassShift(SOURCE, scenario="censoring", random_state=0).fit(s.unlabeled, y).estimate(s.target)
    assert found["a"].raw == pytest.approx(0.5, abs=4 * found["a"].standard_error)
    assert found["rest"].raw == pytest.approx(0.4, abs=4 * found["rest"].standard_error)


def test_classes_that_look_the_same_are_reported():
    s = ps.simulate.gaussian_classes(
        SOURCE, TARGET, distance=0.0, n_class=60, n_source=200, n_target=200, random_state=0
    )
    with pytest.warns(WeakSeparationWarning, match="'a', 'b'"):
        found = ps.MulticlassShift(SOURCE, random_state=0).fit(s.X, s.y).estimate(s.target)
    assert found["a"].interval.width > 0.9


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_too_few_distinct_rows_for_the_classes_are_refused(method):
    """A column of two values cannot distinguish two classes and a population, however many rows there are."""
    rng = np.random.default_rng(0)
    X = (rng.random((460, 1)) < np.repeat([0.8, 0.2, 0.5], [80, 80, 300])[:, None]).astype(float)
    y = np.repeat(["a", "b", ""], [80, 80, 300])
    with pytest.raises(InputError, match="2 distinct values"):
        ps.MulticlassShift(SOURCE, method=method, random_state=0).fit(X, y)
    X[:, 0] += (rng.random(460) < np.repeat([0.1, 0.7, 0.3], [80, 80, 300])) * 2  # four values
    found = ps.MulticlassShift(SOURCE, method=method, random_state=0).fit(X, y).estimate(X[160:])
    assert found["a"].interval.low <= 0.2 <= found["a"].interval.high


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_shares_are_those_of_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 3))
    A -= A.mean(axis=0)  # shares add up to 1, so errors add up to 0
    covariance, raw = A @ A.T, rng.dirichlet(np.ones(4)) + A @ rng.normal(size=3) * 0.3
    raw += (1 - raw.sum()) / 4
    found = nearest_shares(raw, covariance)
    assert found.min() >= 0 and found.sum() == pytest.approx(1)
    inverse = np.linalg.pinv(covariance)
    best = minimize(
        lambda x: (x - raw) @ inverse @ (x - raw), np.full(4, 0.25), bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    distance = (found - raw) @ inverse @ (found - raw)
    assert distance <= best.fun * 1.15 + 1e-8  # zeros are never released, so that it may be slightly farther


REFUSED = {
    "one class": ({}, lambda s: np.where(s.y == "a", "a", ""), "at least 2"),
    "every row has a class": ({}, lambda s: np.where(s.y == "", "c", s.y), "unlabelled rows are needed"),
    "a class called rest": ({}, lambda s: np.where(s.y == "a", "rest", s.y), "rename it"),
    "a number": ({"source_prior": 0.2}, lambda s: s.y, "mapping of classes"),
    "an unknown class": ({"source_prior": {"z": 0.2}}, lambda s: s.y, "'z'"),
    "shares above 1": ({"source_prior": {"a": 0.6, "b": 0.5}}, lambda s: s.y, "less than 1"),
    "a method": ({"method": "km2-ls"}, lambda s: s.y, "witness"),
    "priors without a rest": ({"rest": False, "source_prior": {"a": 0.2}}, lambda s: s.y, "rest=False"),
    "an empty class without a rest": ({"rest": False}, lambda s: s.y, "every row needs one"),
    "a label error": ({"label_error": 1.5}, lambda s: s.y, "label_error"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_wrong_use_is_refused_in_a_sentence(sample, why):
    settings, labels, words = REFUSED[why]
    with pytest.raises(InputError, match=words):
        ps.MulticlassShift(**settings, random_state=0).fit(sample.X, labels(sample)).estimate(sample.target)
