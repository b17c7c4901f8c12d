"""Audits with class names, joint source priors and label errors between classes, from the rows to the estimate."""

import warnings

import numpy as np
import pytest
from scipy import stats

import priorshift as ps
from priorshift.class_source import ClassSource
from priorshift.errors import InconsistentInputWarning, InputError, WeakSeparationWarning

SOURCE, TARGET = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}
QUICK = {"method": "tcpu", "random_state": 0}


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(SOURCE, TARGET, n_class=150, n_source=600, n_target=600, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    return ps.MulticlassShift(SOURCE, **QUICK).fit(sample.X, sample.y)


def looked_up(labels, k, before=0):
    """A column with the classes of the first k rows, after `before` others; rows are in random order."""
    column = np.full(before + len(labels), "", dtype=object)
    column[before : before + k] = labels[:k]
    return column


def source_audit(s, k):
    return looked_up(s.unlabeled_labels, k, len(s.y) - len(s.unlabeled))


# ---- target


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_an_audit_of_the_target_moves_the_shares_towards_the_labels(sample, method):
    shift = ps.MulticlassShift(SOURCE, method=method, repeats=2, random_state=0).fit(sample.X, sample.y)
    plain, found = shift.estimate(sample.target), shift.estimate(
        sample.target, audit=looked_up(sample.target_labels, 200)
    )  # fmt: skip
    truth = {name: float((sample.target_labels == name).mean()) for name in found}
    for name, estimate in found.items():
        audit = estimate.details["audit"]["target"]
        assert audit["rows"] == [200, 600] and audit["agrees"]
        # between the estimate of the tables and that of the labels, up to the normalisation to a sum of 1
        low, high = sorted((plain[name].value, audit["value"]))
        assert low - 0.01 < estimate.value < high + 0.01
        assert estimate.interval.low < truth[name] < estimate.interval.high
        assert estimate.interval.method == "mixture and audit" and estimate.raw == pytest.approx(plain[name].raw)
        band = found.band[name]
        assert band.low <= estimate.interval.low and estimate.interval.high <= band.high
    assert sum(estimate.value for estimate in found.values()) == pytest.approx(1)
    assert found.contains(truth) and not found.contains({"a": 0.2, "b": 0.5})
    assert found.coefficients == plain.coefficients
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), [e.standard_error for e in found.values()])


def test_an_audit_that_contradicts_the_tables_is_used_alone_for_all_classes(sample, fitted):
    wrong = np.where(sample.target_labels == "a", "b", "a").astype(object)
    wrong[200:] = ""
    with pytest.warns(InconsistentInputWarning, match="share of '.*' in the target"):
        found = fitted.estimate(sample.target, audit=wrong)
    assert all(estimate.interval.method == "audit" for estimate in found.values())
    assert not found["rest"].details["audit"]["target"]["agrees"]
    assert found["rest"].value < 0.02 and found["b"].value == pytest.approx(0.5, abs=0.1)


def test_every_row_audited_is_the_share_of_the_labels(sample, fitted):
    found = fitted.estimate(sample.target, audit=sample.target_labels)
    for name, estimate in found.items():
        assert estimate.value == pytest.approx((sample.target_labels == name).mean(), abs=0.005)


def test_differences_and_ratios_of_an_audited_target_are_of_its_audited_shares(sample, fitted):
    found = fitted.estimate(sample.target, audit=looked_up(sample.target_labels, 200))
    pair = found.differences()[0]
    assert pair.estimate == pytest.approx(found["a"].value - found["b"].value)
    C = found.covariance
    assert pair.standard_error == pytest.approx(np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1]))
    assert pair.ratio == pytest.approx(found["a"].value / found["b"].value) and pair.ratio in pair.ratio_interval


def test_weights_and_groups_of_audited_rows(sample, fitted):
    """Two copies of every row in one group, or a weight of 2 of all rows, are the same as the rows once."""
    audit = looked_up(sample.target_labels, 100)
    expected = fitted.estimate(sample.target, audit=audit)
    doubled = fitted.estimate(sample.target, weights=np.full(600, 2.0), audit=audit)
    rng = np.random.default_rng(0)
    twice = np.concatenate([sample.target, sample.target + 1e-9 * rng.normal(size=sample.target.shape)])
    grouped = fitted.estimate(twice, groups=np.tile(np.arange(600), 2), audit=np.concatenate([audit, audit]))
    for name in expected:
        assert doubled[name].value == pytest.approx(expected[name].value, abs=1e-9)
        assert grouped[name].value == pytest.approx(expected[name].value, abs=0.005)
        assert grouped[name].interval.width == pytest.approx(expected[name].interval.width, rel=0.1)


def test_an_audit_without_a_rest(sample):
    s = ps.simulate.gaussian_classes({"a": 0.5, "b": 0.5}, {"a": 0.3, "b": 0.7}, n_target=500, random_state=1)
    shift = ps.MulticlassShift(rest=False, **QUICK).fit(
        np.concatenate([*s.classes.values()]), np.repeat(list("ab"), 200)
    )
    found = shift.estimate(s.target, audit=looked_up(s.target_labels, 150))
    assert list(found) == ["a", "b"] and found["a"].value + found["b"].value == pytest.approx(1)
    assert found["a"].interval.low < 0.3 < found["a"].interval.high
    with pytest.raises(InputError, match="'rest' in row 0"):
        shift.estimate(s.target, audit=["rest"] * 500)
    X, y = np.concatenate([*s.classes.values()]), np.repeat(["a", "b"], 200)
    with pytest.raises(InputError, match="needs unlabelled rows"):
        ps.MulticlassShift(rest=False, **QUICK).fit(X, y, audit=y)


# ---- source


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_an_audit_of_the_source_informs_unknown_source_priors(sample, method):
    settings = {"method": method, "repeats": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSeparationWarning)
        unknown = ps.MulticlassShift(**settings).fit(sample.X, sample.y).estimate(sample.target)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakSeparationWarning)  # the audit says what the tables leave open
        shift = ps.MulticlassShift(**settings).fit(sample.X, sample.y, audit=source_audit(sample, 200))
    found = shift.estimate(sample.target)
    for name, share in {**TARGET, "rest": 0.4}.items():
        assert found[name].interval.width < unknown[name].interval.width
        assert found[name].interval.low < share < found[name].interval.high
        assert found[name].source_prior_by == "MixturePrior and audit"
    assert found["a"].details["audit"]["source"]["rows"] == [200, 600] and "audit" not in found["rest"].details
    assert found["a"].source_prior == pytest.approx(0.2, abs=0.05)


def test_a_given_distribution_is_updated_by_an_audit_and_a_number_is_refused(sample):
    column = source_audit(sample, 200)
    flat = stats.dirichlet([1, 1, 1])
    found = ps.MulticlassShift(flat, **QUICK).fit(sample.X, sample.y, audit=column).estimate(sample.target)
    audited = found["a"].details["audit"]["source"]["value"]
    assert found["a"].source_prior == pytest.approx(audited, abs=0.02)
    assert found["a"].source_prior_by == "distribution and audit"
    separate = {"a": stats.beta(1, 1), "b": stats.beta(30, 70)}
    by_class = ps.MulticlassShift(separate, **QUICK).fit(sample.X, sample.y, audit=column).estimate(sample.target)
    audited = by_class["b"].details["audit"]["source"]["value"]
    assert 0.3 < by_class["b"].source_prior < audited  # between the two
    for known in (SOURCE, {"a": (0.1, 0.3)}):
        with pytest.raises(InputError, match="leave out one of them"):
            ps.MulticlassShift(known, **QUICK).fit(sample.X, sample.y, audit=column)


def test_under_censoring_the_labelled_rows_count_as_what_they_are():
    """Of a population, 40% of the rows of both classes are labelled; the audit is of the unlabelled rows alone."""
    rng = np.random.default_rng(0)
    s = ps.simulate.gaussian_classes(SOURCE, TARGET, n_source=3000, n_target=600, random_state=1)
    is_labeled = (s.unlabeled_labels != "rest") & (rng.random(3000) < 0.4)
    y = np.where(is_labeled, s.unlabeled_labels, "")
    column = np.where(~is_labeled & (rng.random(3000) < 0.5), s.unlabeled_labels, "")
    flat = stats.dirichlet([1, 1, 1])
    shift = ps.MulticlassShift(flat, scenario="censoring", **QUICK).fit(s.unlabeled, y, audit=column)
    found = shift.estimate(s.target)
    for name in SOURCE:
        audit, share = found[name].details["audit"]["source"], float((s.unlabeled_labels == name).mean())
        assert audit["value"] == pytest.approx(share, abs=4 * audit["standard_error"])
        assert found[name].source_prior == pytest.approx(share, abs=0.02)
        # without them, the share among unlabelled rows alone, 0.14 and 0.22
        assert abs(found[name].source_prior - float((s.unlabeled_labels[~is_labeled] == name).mean())) > 0.02
    assert sum(sample.excluded > 0 for sample in shift._audit.samples) == 3
    with pytest.raises(InputError, match="label_error"):
        shift.set_params(label_error=0.1).estimate(s.target)


def test_labelled_rows_that_are_also_unlabelled_rows_are_known(sample):
    """The first 50 rows of class a are also rows of the population, by their ids."""
    copies = sample.classes["a"][:50]
    X = np.concatenate([sample.X, copies])
    y = np.concatenate([sample.y, np.repeat("", 50)])
    ids = np.concatenate([[f"r{k}" for k in range(len(sample.X))], [f"r{k}" for k in range(50)]])
    source = ClassSource.from_labels(
        X, y, scenario="case-control", standardize=True, rest=True, shared=ids,
        audit=np.concatenate([source_audit(sample, 100), np.repeat("", 50)]),
    )  # fmt: skip
    assert (source.known_class == 0).sum() == 50 and (source.known_class < 0).sum() == 600
    assert len(source.audit.index) == 100
    wrong = np.concatenate([source_audit(sample, 100), np.repeat("b", 50)])
    with pytest.raises(InputError, match="another class than the label"):
        ps.MulticlassShift(stats.dirichlet([1, 1, 1]), **QUICK).fit(X, y, ids, audit=wrong)


def test_label_errors_with_an_audit_need_given_source_priors(sample):
    column = source_audit(sample, 100)
    flat = stats.dirichlet([1, 1, 1])
    shift = ps.MulticlassShift(flat, label_error=0.1, **QUICK).fit(sample.X, sample.y, audit=column)
    plain = ps.MulticlassShift(flat, **QUICK).fit(sample.X, sample.y, audit=column).estimate(sample.target)
    assert shift.estimate(sample.target)["rest"].raw > plain["rest"].raw
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSeparationWarning)
        estimated = ps.MulticlassShift(label_error=0.1, **QUICK).fit(sample.X, sample.y, audit=column)
    with pytest.raises(InputError, match="estimated source prior"):
        estimated.estimate(sample.target)


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (lambda s: np.repeat("strep", 600), "'strep' in row 0 .* 'a', 'b', 'rest' or an empty cell"),
        (lambda s: looked_up(s.target_labels, 9), "at least 10"),
        (lambda s: ["a"] * 3, "one entry for each row"),
    ],
)
def test_wrong_audits_are_refused(sample, fitted, audit, words):
    with pytest.raises(InputError, match=words):
        fitted.estimate(sample.target, audit=audit(sample))


# ---- joint source priors


def test_a_dirichlet_and_counts_of_a_survey_widen_the_intervals_alike(sample, fitted):
    known = fitted.estimate(sample.target)
    counts = {"a": 30, "b": 45, "rest": 75}
    survey = ps.MulticlassShift(counts, **QUICK).fit(sample.X, sample.y).estimate(sample.target)
    alpha = stats.dirichlet([30.5, 45.5, 75.5])
    dirichlet = ps.MulticlassShift(alpha, **QUICK).fit(sample.X, sample.y).estimate(sample.target)
    separate = {"a": stats.beta(30.5, 121), "b": stats.beta(45.5, 106)}
    betas = ps.MulticlassShift(separate, **QUICK).fit(sample.X, sample.y).estimate(sample.target)
    for name in survey:
        assert survey[name].interval == dirichlet[name].interval and survey[name].source_prior_by in (
            "distribution", "given",
        )  # fmt: skip
        assert survey[name].interval.width > known[name].interval.width
    # a single class depends on its own distribution alone; the rest has less error if the classes exclude each other
    assert survey["a"].interval.low == pytest.approx(betas["a"].interval.low, abs=1e-3)
    assert survey["rest"].standard_error < betas["rest"].standard_error
    assert survey["a"].source_prior == pytest.approx(30.5 / 151.5)


# ---- label errors between classes


def mislabeled_problem(rest, rng):
    """Samples that are exact mixtures of the points of all classes: labelled ones by Q, U and T by shares."""
    number, classes = 3, 2 if rest else 3
    points = [rng.normal(size=(40, 4)) + 1.5 * rng.normal(size=4) for _ in range(number)]
    own = [rng.dirichlet(5 * np.ones(40)) for _ in range(number)]
    Q = np.array([[0.85, 0.1, 0.05], [0.02, 0.88, 0.1], [0.2, 0.01, 0.79]])[:classes]
    pi, shares = rng.dirichlet(3 * np.ones(number)), rng.dirichlet(3 * np.ones(number))
    everywhere, names = np.concatenate(points), np.arange(40 * number).astype(str)

    def weights(mixture):
        return np.concatenate([share * mass for share, mass in zip(mixture, own, strict=True)])

    samples = [*Q, pi] if rest else [*Q]
    y = np.repeat(["c0", "c1", ""] if rest else ["c0", "c1", "c2"], len(everywhere))
    X, groups = np.tile(everywhere, (len(samples), 1)), np.tile(names, len(samples))
    source = X, y, np.concatenate([weights(mixture) for mixture in samples]), groups
    other = ["c0", "c1", "rest" if rest else "c2"]
    errors = {
        f"c{k}": {other[j]: float(Q[k, j]) for j in range(3) if j != k} for k in range(classes)
    }  # fmt: skip
    priors = {"c0": float(pi[0]), "c1": float(pi[1])} if rest else None
    return source, (everywhere, weights(shares), names), priors, errors, shares


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("rest", [True, False], ids=["a rest", "no rest"])
@pytest.mark.parametrize("settings", [{}, {"method": "tcpu", "statistic": "plug-in"}], ids=["witness", "tcpu"])
def test_exact_problems_with_errors_between_classes_have_their_answer(rest, settings):
    rng = np.random.default_rng(3)
    (X, y, weights, groups), (target, target_weights, names), priors, errors, shares = mislabeled_problem(rest, rng)
    shift = ps.MulticlassShift(priors, rest=rest, label_error=errors, random_state=0, **settings)
    found = shift.fit(X, y, weights=weights, groups=groups).estimate(target, weights=target_weights, groups=names)
    np.testing.assert_allclose([estimate.raw for estimate in found.values()], shares, atol=1e-10)
    ignored = shift.set_params(label_error=None).estimate(target, weights=target_weights, groups=names)
    assert max(abs(ignored[name].raw - found[name].raw) for name in found) > 0.01


def test_uncertain_errors_between_classes_widen_the_intervals(sample, fitted):
    plain = fitted.estimate(sample.target)
    shift = ps.MulticlassShift(SOURCE, label_error={"a": {"b": (0.0, 0.2)}}, **QUICK).fit(sample.X, sample.y)
    found = shift.estimate(sample.target)
    ends = [shift.set_params(label_error={"a": {"b": end}}).estimate(sample.target) for end in (0.0, 0.2)]
    assert found["b"].interval.low == pytest.approx(min(end["b"].interval.low for end in ends))
    assert found["b"].interval.high == pytest.approx(max(end["b"].interval.high for end in ends))
    assert found["rest"].interval.width == pytest.approx(plain["rest"].interval.width, rel=1e-6)
    audited = shift.set_params(label_error={"a": {"b": stats.beta(5.5, 45.5)}}).estimate(sample.target)
    assert audited["b"].interval.width > plain["b"].interval.width
