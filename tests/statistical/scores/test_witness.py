"""The efficient witness: its optimality, its tests against a slow implementation, and the estimator made of them."""

import warnings
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
from exact_problems import stacked
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.errors import (
    DuplicateRowsWarning,
    EstimatedPriorWarning,
    FewPositivesWarning,
    InputError,
    OutOfRangeWarning,
    WeakSeparationWarning,
)
from priorshift.io.observations import linked
from priorshift.problem import Source, Target
from priorshift.scores import mixture, witness
from priorshift.scores.mixture import p_values
from priorshift.scores.ratio_test import _root
from priorshift.scores.witness import Witness

# ---- the witness


def of_scores(positive, population, source, **law):
    """A witness of given scores, shape (repeats, rows)."""
    repetitions = [SimpleNamespace(positive=p, models=(None, None)) for p in positive]
    mass = source.P.mass
    mass = None if np.ptp(mass) < 1e-12 and len(mass) == round(source.P.size) else mass

    def ranks(p, scores):
        return p_values(p, scores, mass, source.P.size)

    values = np.stack([ranks(p, u) for p, u in zip(positive, population, strict=True)])
    scored = SimpleNamespace(repetitions=repetitions, p_values=values, positive_mass=mass, ranks=ranks)
    prior, weights = law["law"] if law else mixture.fit_one(np.stack([*map(mixture.histogram, values)]))
    return Witness.from_scores(scored, source, prior, weights)


def source_of(m, n, shared=None, seed=0, **known):
    X = np.random.default_rng(seed).normal(size=(m + n, 2))
    return Source.from_labels(
        X, np.arange(m + n) < m, shared=shared, **known, scenario="case-control", standardize=False
    )


def target_of(t, weights=None, observation=None, of_source=None, copies=None):
    """A target without columns: all that the witness asks of it."""
    return Target(
        None, range(t), weights, np.arange(t) if observation is None else observation,
        np.full(t, -1) if of_source is None else of_source, np.ones(t, dtype=int) if copies is None else copies,
    )  # fmt: skip


@pytest.mark.parametrize(("m", "n", "t"), [(30, 400, 100), (500, 200, 50), (50, 300, 5000)])
def test_no_function_of_a_row_has_a_smaller_variance(m, n, t, monkeypatch):
    """Among functions of the bins min h'Qh/(a'h)², Q the variance of N − rD and a'h = D, is met by Q⁻¹a."""
    prior, weights = np.array([0.3]), np.eye(14)[[4]]
    f_U = (0.3 + 0.7 * mixture.density(weights)[0]) / mixture.BINS
    f_P = np.full(mixture.BINS, 1 / mixture.BINS)
    seen = []
    monkeypatch.setattr(
        witness, "_average", lambda h, bins: seen.append(h) or np.zeros((h.shape[1], bins.shape[1])) + 1e-3
    )
    rng = np.random.default_rng(0)
    made = of_scores(rng.normal(size=(1, m)), rng.normal(size=(1, n)), source_of(m, n), law=(prior, weights))
    ratios = np.array([0.05, 0.4, 1.0, 1.3])
    made._try_ratios(ratios, made._sample(np.zeros((1, t)), target_of(t)))
    for r, h in zip(ratios, seen[0][0], strict=True):
        f_T = (1 - r) * f_P + r * f_U
        assert f_T.min() > 0
        Q = sum(c * (np.diag(f) - np.outer(f, f)) for c, f in ((1 / t, f_T), ((1 - r) ** 2 / m, f_P), (r**2 / n, f_U)))
        best = np.linalg.lstsq(Q, f_U - f_P, rcond=1e-10)[0]
        variance = [(x @ Q @ x) / (x @ (f_U - f_P)) ** 2 for x in (h, best)]
        assert variance[0] == pytest.approx(variance[1], rel=1e-6)
        h, best = h - h @ f_P, best - best @ f_P  # as functions, up to a constant and scale
        np.testing.assert_allclose(h / np.abs(h).max(), best / np.abs(best).max(), atol=1e-6)
        worse = best + 0.1 * np.abs(best).max() * np.cos(np.arange(mixture.BINS))
        assert (worse @ Q @ worse) / (worse @ (f_U - f_P)) ** 2 > 1.0001 * variance[0]


def slow(made, source, values, target, r):
    """N − rD, its variance, D, degrees of freedom and D's number of standard errors, row by row."""
    mass_P, mass_U, mass_T = (list(x) for x in (source.P.mass, source.U.mass, target.mass))
    copies_P, copies_U = source.copies[source.positive], source.copies[source.population]
    m, n, t = (
        1 / sum(c * w**2 for c, w in zip(copies, mass, strict=True))
        for copies, mass in ((copies_P, mass_P), (copies_U, mass_U), (target.copies, mass_T))
    )
    own = np.stack([made.scored.ranks(rep.positive, rep.positive) for rep in made.scored.repetitions])
    even = made.scored.positive_mass is None

    def bin_of(v):
        return min(int(v * 200), 199)

    def mean(x, mass):
        return sum(a * w for a, w in zip(x, mass, strict=True))

    def variance(x, mass):
        centre = mean(x, mass)
        return mean([(a - centre) ** 2 for a in x], mass)

    tables = []
    for rho in made.density_ratio:
        bottom = max_zero((1 - r) * rho + r) / t + (1 - r) ** 2 * rho / m + r**2 / n
        tables.append((1 - rho) / bottom)
    scale = max(np.abs(table).max() for table in tables)
    expected, seen, expected_U, seen_U = [], [], [], []
    for k, table in enumerate(tables):
        table = table / scale
        of_P = [table[bin_of(v)] for v in own[k]]
        rows = len(mass_P)
        ranks = [table[bin_of((j + 0.5) / (rows + 1))] for j in range(rows + 1)]
        tables[k] = table = table - (np.mean(ranks) if even else mean(of_P, mass_P))
        expected.append(np.var(table))
        seen.append(variance([table[bin_of(v)] for v in own[k]], mass_P))
        f = 1 / made.density_ratio[k] / np.sum(1 / made.density_ratio[k])  # the mixture's law of U
        expected_U.append(f @ table**2 - (f @ table) ** 2)
        seen_U.append(variance([table[bin_of(v)] for v in made.scored.p_values[k]], mass_U))
    h_T, h_U, h_P = (
        np.array([[tables[k][bin_of(v)] for v in row] for k, row in enumerate(of_sample)])
        for of_sample in (values, made.scored.p_values, own)
    )
    T, U, P = h_T.mean(axis=0), h_U.mean(axis=0), h_P.mean(axis=0)
    N, D = mean(T, mass_T), mean(U, mass_U)
    wider = np.sqrt(max(np.mean(expected) / np.mean(seen), 1))
    wider_U = np.sqrt(max(np.mean(expected_U) / np.mean(seen_U), 1))
    supposed = (1 - r) * mean(P**2, mass_P) + r * mean(U**2, mass_U)  # if R = r
    supposed -= ((1 - r) * mean(P, mass_P) + r * D) ** 2
    # how much a row's h differs between repetitions, beside that the whole repetition does
    centred = h_U - np.array([[mean(row, mass_U)] for row in h_U])
    folds = len(made.scored.repetitions[0].models)
    between = mean(centred.var(axis=0, ddof=1), mass_U)
    noise = min(between * (folds - 1) / variance(U, mass_U), 1.0)

    # what each row does, and what each observation does: one of the source, or one of the target alone
    def count(mass, observation):
        sums = {}
        for w, o in zip(mass, observation, strict=True):
            sums[o] = sums.get(o, 0.0) + w
        return 1 / sum(x**2 for x in sums.values())

    observed = {
        "T": target.observation,
        "U": source.observation[source.population],
        "P": source.observation[source.positive],
    }
    counts = {name: count(mass, observed[name]) for name, mass in zip("TUP", (mass_T, mass_U, mass_P), strict=True)}
    rows_of = {}
    for name, x, mass in (
        ("P", wider * (P - mean(P, mass_P)), mass_P),
        ("U", wider_U * (U - D), mass_U),
        ("T", T - N, mass_T),
    ):
        unbiased = np.sqrt(counts[name] / (counts[name] - 1))
        rows_of[name] = [a * w * unbiased for a, w in zip(x, mass, strict=True)]

    def by_observation(u, p, tt=0.0):
        sums = {}
        for name, factor in (("U", u), ("P", p)):
            for one, o in zip(rows_of[name], observed[name], strict=True):
                sums["source", o] = sums.get(("source", o), 0.0) + factor * one
        if tt:
            for one, o, known in zip(rows_of["T"], target.observation, target.source_observation, strict=True):
                key = ("source", known) if known >= 0 else ("target", o)
                sums[key] = sums.get(key, 0.0) + tt * one
        return sums

    def squares(sums):
        return sum(x**2 for x in sums.values())

    of_target = {}
    for one, o in zip(rows_of["T"], target.observation, strict=True):
        of_target[o] = of_target.get(o, 0.0) + one
    var_U, var_P = squares(by_observation(1, 0)), squares(by_observation(0, 1))
    floor = supposed / t
    from_T = max(sum(x**2 for x in of_target.values()), floor)
    if len(of_target) < len(T) and source.groups is not None:
        from_T = max(from_T, floor * max(var_U / sum(x**2 for x in rows_of["U"]), 1.0))
    V = from_T + (1 + noise) * squares(by_observation(r, 1 - r))
    if (target.source_observation >= 0).any():
        second = np.sqrt(1 + noise)
        together = squares(by_observation(second * r, second * (1 - r), -1.0))
        V += together - sum(x**2 for x in of_target.values()) - squares(by_observation(second * r, second * (1 - r)))
    parts = np.array([from_T, r**2 * var_U, (1 - r) ** 2 * var_P])
    freedom = parts.sum() ** 2 / (parts**2 / np.array([counts[name] - 1 for name in "TUP"])).sum()
    of_D = max(squares(by_observation(1, -1)), var_U + var_P)
    return N - r * D, V, D, freedom, D / np.sqrt((1 + noise) * of_D)


def test_no_ratio_where_positives_look_like_the_population():
    rng = np.random.default_rng(0)
    witness = ps.WitnessShift(0.2, random_state=0).fit(rng.normal(size=(300, 3)), np.arange(300) < 100)
    with pytest.warns(WeakSeparationWarning, match=r"every ratio"):
        ratio = witness.negative_ratio(rng.normal(size=(200, 3)))
    assert np.isnan(ratio.value) and (ratio.interval.low, ratio.interval.high) == (0, np.inf)


def test_a_handful_of_unlabelled_rows_is_not_sure():
    """Three rows that happen to be alike do not make the ratio known."""
    held = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        U, T = (rng.normal(size=(k, 3)) + 2 * (rng.random(k) < p)[:, None] for k, p in ((4, 0.2), (200, 0.6)))
        X = np.concatenate([rng.normal(size=(50, 3)) + 2, U])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            held += 0.6 in ps.WitnessShift(0.2, random_state=0).fit(X, np.arange(54) < 50).estimate(T).interval
    assert held >= 24  # of 30, where 28 or 29 are nominal: with four rows it falls a little short


def test_p_values_of_one_model_are_not_compared_with_those_of_another():
    """A MixturePrior of one's own has other scores, so a target's rows tell it nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) + 1.5 * (np.arange(600) < 250)[:, None]
    T = rng.normal(size=(400, 3)) + 1.5 * (np.arange(400) < 250)[:, None]
    for asked, moves in ((None, True), (ps.MixturePrior(model=LogisticRegression(), random_state=0), False)):
        witness = ps.WitnessShift(asked, random_state=0).fit(X, np.arange(600) < 150)
        assert (witness.estimate(T).source_prior != witness.source_prior_) == moves


def max_zero(x):
    return np.where(x > 0, x, 0)


def scored_problem(kind):
    """Three repetitions of noisy scores, with rows that are one observation or count more where the kind says so."""
    rng = np.random.default_rng(3)
    m, n, t = 15, 40, 25
    target = target_of(t)
    if kind == "censoring":
        X = rng.normal(size=(n, 2))
        source = Source.from_labels(X, np.arange(n) < m, scenario="censoring", standardize=False)
    elif kind == "shared":
        source = source_of(m, n, shared=np.r_[:m, 3 : 3 + n])
    elif kind == "copies":
        X = np.repeat(rng.normal(size=(11, 2)), 5, axis=0)
        source = Source.from_labels(X, np.arange(55) < m, scenario="case-control", standardize=False)
        assert (source.P.size, source.U.size) == pytest.approx((3, 8))
        observation = linked(t, np.array([[0, 1], [1, 2], [5, 9]]))
        target = target_of(t, observation=observation, copies=np.bincount(observation)[observation])
    elif kind == "weights":
        source = source_of(m, n, weights=rng.uniform(0.5, 2, m + n))
        target = target_of(t, weights=rng.uniform(0.5, 2, t))
    elif kind in ("groups", "groups in source and target"):
        groups = np.r_[np.arange(m) // 2, 5 + np.arange(n) // 4]  # some have positives and unlabelled rows
        source = source_of(m, n, groups=groups, weights=rng.uniform(0.5, 2, m + n))
        of_source = np.unique(source.observation)[np.arange(t) // 3] if kind != "groups" else None
        target = target_of(t, rng.uniform(0.5, 2, t), np.arange(t) // 3, of_source)
    else:
        source = source_of(m, n)
    of_observation = rng.normal(size=source.observation.max() + 1)
    scores = of_observation[source.observation] + rng.normal(size=(3, len(source.labeled)))
    scores += 1.5 * source.labeled
    made = of_scores(scores[:, source.positive], scores[:, source.population], source)
    of_target = rng.normal(size=(3, t)) + 1.0
    values = np.stack(
        [made.scored.ranks(s[source.positive], x) for s, x in zip(scores, of_target, strict=True)]
    )  # fmt: skip
    return made, source, values, target


KINDS = ["apart", "shared", "copies", "censoring", "weights", "groups", "groups in source and target"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_is_that_of_a_slow_implementation(kind):
    made, source, values, target = scored_problem(kind)
    ratios = np.array([0.0, 0.3, 1.0, 2.5, 40.0])
    tried = made._try_ratios(ratios, made._sample(values, target))
    np.testing.assert_array_equal(tried.ratios, ratios)
    told = np.array([slow(made, source, values, target, one) for one in ratios]).T
    names = ("difference", "variance", "denominator", "freedom", "separation")
    for name, expected in zip(names, told, strict=True):
        np.testing.assert_allclose(getattr(tried, name), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    if kind != "apart":  # what is one observation, and what a row counts, matters
        lone = Witness(made.scored, source_of(*(len(x[0]) for x in (made.positive, made.population))), made.density_ratio,
                       made.population, made.positive, made.folds)  # fmt: skip
        alone = lone._try_ratios(ratios, lone._sample(values, target_of(values.shape[1])))
        assert not np.allclose(alone.variance, tried.variance, rtol=0.01)


def test_order_of_rows_and_size_of_blocks_change_nothing(monkeypatch):
    made, _, values, target = scored_problem("groups in source and target")
    before = made.test(values, target)
    order = np.random.default_rng(0).permutation(values.shape[1])
    parts = (target.weights, target.observation, target.source_observation, target.copies)
    again = made.test(values[:, order], target_of(len(order), *(part[order] for part in parts)))
    monkeypatch.setattr(witness, "_BLOCK", 50)
    blocks = made.test(values, target)
    for other in (again, blocks):
        for name in ("curve.ratios", "curve.level", "error", "ratio", "separation"):
            np.testing.assert_allclose(attrgetter(name)(other), attrgetter(name)(before), rtol=1e-8)
    assert (np.diff(before.curve.ratios) > 0).all() and len(before.curve.ratios) > 40


@pytest.mark.parametrize("copies", [(1, 3, 2, 1), (1, 1, 0, 1), (2, 1, 1, 3), (1, 3, 1, 0)])
def test_the_root_is_the_ratio_where_label_shift_is_exact(copies):
    """T and U are stacked of the same rows; what is left is that ranks among 600 positives are known to 1/600."""
    rng = np.random.default_rng(0)
    problem = stacked(rng.normal(size=(600, 1)) + 1.5, rng.normal(size=(500, 1)), copies)
    P, U, T = (rows[None, :, 0] for rows in (problem.positive, problem.unlabeled, problem.target))
    made = of_scores(np.repeat(P, 2, axis=0), np.repeat(U, 2, axis=0), source_of(P.shape[1], U.shape[1]))
    test = made.test(np.repeat(p_values(P[0], T[0])[None], 2, axis=0), target_of(T.shape[1]))
    R = (1 - problem.target_prior) / (1 - problem.source_prior)
    assert test.ratio == pytest.approx(R, abs=0.005)
    ratios, level = test.curve.ratios, test.curve.level
    assert abs(np.interp(test.ratio, ratios, level)) < 0.02 and test.separation > 5
    inside = (ratios > 0.2 * R) & (ratios < 3 * R) & (np.abs(level) < 15)  # beyond that, tails underflow
    assert (np.diff(level[inside]) > 0).all()


def test_a_root_beyond_the_ends_is_that_of_the_nearest_witness():
    r = np.array([0.0, 1.0, 2.0])
    assert _root(r, np.array([1.0, 0.0, -1.0]), np.ones(3)) == pytest.approx(1.0)
    assert _root(r, np.array([0.5, -0.5, -1.0]), np.array([1.0, 2.0, 2.0])) == pytest.approx(0.5 * 0.5 + 0.5 * 0.75)
    assert _root(r, np.array([-0.5, -1.0, -2.0]), np.full(3, 2.0)) == pytest.approx(-0.25)
    assert _root(r, np.array([3.0, 2.0, 1.0]), np.full(3, 2.0)) == pytest.approx(2.5)
    assert np.isnan(_root(r, np.array([-0.5, 1.0, 2.0]), np.full(3, -2.0)))
    assert np.isnan(_root(r, np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 0.0])))


# ---- the estimator


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 1000, 1000, random_state=0)


@pytest.fixture(scope="module")
def asked(sample):
    """None at fit: MixturePrior is asked."""
    return ps.WitnessShift(random_state=0).fit(sample.X, sample.y, shared=sample.ids)


def known(sample, prior=0.2, **settings):
    return ps.WitnessShift(prior, random_state=0, **settings).fit(sample.X, sample.y, shared=sample.ids)


@pytest.fixture(scope="module")
def given(sample):
    return known(sample)


def ends(interval):
    return interval.low, interval.high


def test_both_priors_are_found(asked, sample):
    estimate = asked.estimate(sample.target)
    assert asked.source_prior_ == pytest.approx(0.2, abs=0.05)
    assert estimate.value == pytest.approx(0.6, abs=0.07)
    assert 0.6 in estimate.interval and estimate.interval.width < 0.2
    assert estimate.raw == pytest.approx(1 - (1 - estimate.source_prior) * estimate.negative_ratio)
    assert estimate.status == "ok" and estimate.details["overlap"] == asked.prior_estimator_.overlap_
    assert str(estimate).endswith(f"(Witness, source prior {estimate.source_prior:.3g} by MixturePrior)")
    assert asked.estimate(sample.unlabeled).negative_ratio == pytest.approx(1, abs=0.1)
    assert asked.estimate(sample.positive).value > 0.85


def test_a_known_prior_is_used_and_the_ratio_is_free_of_it(given, asked, sample):
    estimate = given.estimate(sample.target)
    assert estimate.source_prior == 0.2 and "by" not in str(estimate)
    assert 0.6 in estimate.interval and estimate.interval.width < asked.estimate(sample.target).interval.width
    R = given.negative_ratio(sample.target)
    assert R.value == estimate.negative_ratio and 0.5 in R.interval
    assert estimate.raw == pytest.approx(1 - 0.8 * R.value)
    assert estimate.value == pytest.approx(estimate.raw, abs=0.002)  # R is well known, so that nothing is cut off
    assert estimate.standard_error == pytest.approx(0.8 * R.standard_error)
    assert ends(estimate.interval) == pytest.approx((1 - 0.8 * R.interval.high, 1 - 0.8 * R.interval.low), abs=1e-6)
    for other in (0.05, 0.7, (0.1, 0.4)):
        assert known(sample, other).estimate(sample.target).negative_ratio == pytest.approx(R.value, rel=1e-12)
    assert asked.estimate(sample.target).negative_ratio == pytest.approx(R.value, rel=1e-12)


def test_a_range_gives_the_union_over_it(given, sample):
    at = {pi: given.set_params(source_prior=pi).estimate(sample.target) for pi in (0.1, 0.2, 0.3)}
    estimate = given.set_params(source_prior=(0.1, 0.3)).estimate(sample.target)
    given.set_params(source_prior=0.2)
    assert ends(estimate.interval) == pytest.approx((at[0.1].interval.low, at[0.3].interval.high), abs=1e-9)
    assert estimate.value == pytest.approx(at[0.2].value) and estimate.source_prior == pytest.approx(0.2)
    assert estimate.source_prior_by == "range" and estimate.details["source_prior_range"] == [0.1, 0.3]


def test_a_distribution_gives_the_quantiles_of_a_simulation(given, sample):
    survey = stats.beta(20, 80)
    estimate = given.set_params(source_prior=survey).estimate(sample.target)
    given.set_params(source_prior=0.2)
    rng = np.random.default_rng(0)
    R = given.negative_ratio(sample.target)
    pi = survey.rvs(200_000, random_state=rng)
    drawn = 1 - (1 - pi) * (R.value + R.standard_error * rng.normal(size=len(pi)))
    # the curve is nearly normal here; that it is not quite moves an end by a hundredth of the width
    np.testing.assert_allclose(ends(estimate.interval), np.quantile(drawn, [0.025, 0.975]), atol=0.002)
    assert estimate.value == pytest.approx(drawn.mean(), abs=0.002)
    assert estimate.standard_error == pytest.approx(drawn.std(), rel=0.01)
    assert estimate.source_prior_by == "distribution"


def test_an_estimator_with_an_influence_has_its_error_in_the_interval(given, sample):
    asking = ps.WitnessShift(ps.KM2(), random_state=0).fit(sample.X, sample.y, shared=sample.ids)
    with pytest.warns(EstimatedPriorWarning, match=r"KM2.*bias"):
        estimate = asking.estimate(sample.target)
    km2, R = asking.prior_estimator_, asking.negative_ratio(sample.target)
    assert isinstance(km2, ps.KM2) and estimate.source_prior == pytest.approx(km2.prior_, abs=1e-6)
    error = estimate.details["source_prior_standard_error"]
    tcpu = ps.TCPU(ps.KM2(), standardize=True).fit(sample.X, sample.y, shared=sample.ids)
    with pytest.warns(EstimatedPriorWarning):
        assert error == pytest.approx(tcpu.estimate(sample.target).details["source_prior_standard_error"], rel=0.01)
    assert estimate.standard_error == pytest.approx(
        np.hypot((1 - km2.prior_) * R.standard_error, R.value * error), rel=1e-6
    )
    width = 2 * 1.96 * estimate.standard_error
    assert estimate.interval.width == pytest.approx(width, rel=0.03)
    narrow = asking.set_params(source_prior=km2.prior_).estimate(sample.target)
    assert estimate.interval.width > narrow.interval.width


class Fixed(BaseEstimator):
    """A prior from elsewhere, with or without word of its error."""

    def __init__(self, prior=0.2, influence=None):
        self.prior = prior
        self.influence = influence

    def fit(self, X, y):
        self.prior_ = self.prior
        if self.influence is not None:
            self.prior_influence_ = np.full(len(X), self.influence)
        return self


def test_an_estimator_without_an_error_gets_no_interval(given, sample):
    asking = ps.WitnessShift(Fixed(), random_state=0).fit(sample.X, sample.y, shared=sample.ids)
    with pytest.warns(EstimatedPriorWarning, match=r"0\.200.*Fixed"):
        estimate = asking.estimate(sample.target)
    assert estimate.interval is None and np.isnan(estimate.standard_error) and estimate.source_prior_by == "Fixed"
    assert estimate.value == pytest.approx(given.estimate(sample.target).value)
    with pytest.warns(EstimatedPriorWarning):
        assert ps.WitnessShift(Fixed(0.9), random_state=0).fit(sample.X, sample.y).estimate(sample.target).raw > 0.8


def test_an_estimator_that_is_sure_is_one_that_knows(given, sample):
    asking = ps.WitnessShift(Fixed(0.2, 0.0), random_state=0).fit(sample.X, sample.y, shared=sample.ids)
    assert asking.estimate(sample.target).interval == given.estimate(sample.target).interval


def test_knowledge_after_fit_replaces_what_was_asked_and_not_the_reverse(asked, given, sample):
    at = asked.set_params(source_prior=0.2).estimate(sample.target)
    assert ends(at.interval) == pytest.approx(ends(given.estimate(sample.target).interval), rel=1e-9)
    assert asked.source_prior_ == 0.2 and asked.prior_estimator_ is None
    asked.set_params(source_prior=None)
    assert asked.estimate(sample.target).source_prior_by == "MixturePrior"
    for prior, word in ((None, "None"), (ps.KM2(), r"KM2\(\)")):
        with pytest.raises(InputError, match=rf"source_prior was 0\.2.*{word}"):
            given.set_params(source_prior=prior).estimate(sample.target)
    given.set_params(source_prior=0.2)
    with pytest.raises(InputError, match=r"source_prior.*None.*KM2"):
        asked.set_params(source_prior=ps.KM2()).estimate(sample.target)
    asked.set_params(source_prior=None)


def test_the_confidence_may_change_after_fit(given, sample):
    widths = [given.set_params(confidence=c).estimate(sample.target).interval.width for c in (0.5, 0.95, 0.99)]
    z = stats.norm.ppf([0.75, 0.975, 0.995])
    np.testing.assert_allclose(np.array(widths) / widths[1], z / z[1], rtol=0.03)  # Student's, of many degrees


def test_the_same_seed_gives_the_same_answer(sample):
    one, two = (known(sample, repeats=2).estimate(sample.target) for _ in range(2))
    assert one == two
    other = ps.WitnessShift(0.2, repeats=2, random_state=1).fit(sample.X, sample.y, shared=sample.ids)
    assert other.estimate(sample.target) != one


def test_censoring_is_what_shared_rows_are():
    """The labelled rows once more in the population, told by their ids, are the same problem."""
    rng = np.random.default_rng(0)
    truth = rng.random(600) < 0.4
    X = rng.normal(size=(600, 3)) + 1.5 * truth[:, None]
    labeled = truth & (rng.random(600) < 0.3)
    target = rng.normal(size=(5000, 3)) + 1.5 * (rng.random(5000) < 0.8)[:, None]
    censored = ps.WitnessShift(0.4, scenario="censoring", random_state=0).fit(X, labeled).estimate(target)
    both, ids = np.concatenate([X[labeled], X]), np.r_[np.flatnonzero(labeled), np.arange(600)]
    y = np.arange(len(both)) < labeled.sum()
    shared = ps.WitnessShift(0.4, random_state=0).fit(both, y, shared=ids).estimate(target)
    assert censored.value == pytest.approx(shared.value, abs=1e-3)  # other folds
    assert censored.standard_error == pytest.approx(shared.standard_error, rel=0.02)


@pytest.mark.parametrize("rows", [200, 800])
def test_rows_that_were_exported_four_times_leave_the_width(rows):
    """Folds, features and the tuned ridge are drawn anew for other rows, which moves a width by a few percent."""
    s = ps.simulate.gaussian(0.3, 0.6, rows, rows, shared=False, random_state=0)
    once = ps.WitnessShift(0.3, random_state=0).fit(s.X, s.y).estimate(s.target)
    X, y, target = (np.repeat(part, 4, axis=0) for part in (s.X, s.y, s.target))
    with pytest.warns(DuplicateRowsWarning, match=f"{3 * rows} of {4 * rows} source rows"):
        fitted = ps.WitnessShift(0.3, random_state=0).fit(X, y)
    with pytest.warns(DuplicateRowsWarning, match=f"{3 * rows} of {4 * rows} target rows"):
        four = fitted.estimate(target)
    assert four.interval.width == pytest.approx(once.interval.width, rel=0.15)  # half, if they were taken as rows
    assert abs(four.value - once.value) < 0.6 * once.standard_error


def test_positives_that_are_the_population_tell_nothing():
    U = np.random.default_rng(0).normal(size=(20, 3))
    fitted = ps.WitnessShift(0.2, random_state=0).fit(np.concatenate([U[::-1], U]), np.arange(40) < 20)
    with pytest.warns(
        WeakSeparationWarning,
        match=r"20 positives.*20 unlabelled.*-?\d+\.\d times",
    ):
        estimate = fitted.estimate(np.random.default_rng(1).normal(size=(9, 3)))
    assert ends(estimate.interval) == (0, 1) and estimate.status == "no estimate" and 0 < estimate.value < 1
    assert str(estimate).endswith(", the data cannot tell)")


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_where_nothing_can_be_told_every_prior_is_held():
    """P, U and T of one law: R can be anything, and each π′ may be left out once in twenty times, or less."""
    priors, held, nothing = (0.02, 0.3, 0.6, 0.98), [], 0
    for seed in range(60):
        rng = np.random.default_rng((5, seed))
        X, target = rng.normal(size=(120, 2)), rng.normal(size=(50, 2))
        shift = ps.WitnessShift(0.3, repeats=2, folds=3, random_state=seed).fit(X, np.arange(120) < 40)
        estimate = shift.estimate(target)
        nothing += estimate.status == "no estimate"
        held.append([prior in estimate.interval for prior in priors])
    assert (np.mean(held, axis=0) >= 0.9).all()
    assert nothing >= 45  # 5 % should pass by chance; as separation is looked for, some more do


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a_handful_of_unlabelled_rows_gets_an_answer(n):
    """A density that 5 rows of U must be worth is all there is: no number divides by zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10 + n, 2)) + np.where(np.arange(10 + n) < 10, 1, 0)[:, None]
    shift = ps.WitnessShift(0.5, random_state=0).fit(X, np.arange(10 + n) < 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        estimate = shift.estimate(rng.normal(size=(5, 2)))
    assert 0 < estimate.value < 1 and estimate.interval.low <= estimate.value <= estimate.interval.high


def test_few_positives_are_a_guess(sample):
    few = np.r_[:10, len(sample.positive) : len(sample.X)]
    with pytest.warns(FewPositivesWarning, match="10 positive rows"):
        shift = ps.WitnessShift(0.2, random_state=0).fit(sample.X[few], sample.y[few])
    estimate = shift.estimate(sample.target)
    assert estimate.status == "few positives" and str(estimate).endswith(", a guess from few positives)")
    assert 0.6 in estimate.interval


@pytest.mark.parametrize("side", [-1, 1])
def test_a_raw_estimate_outside_by_more_than_its_error_is_said(side):
    """Rows that are more negative than negatives, or more positive than positives: no label shift."""
    s = ps.simulate.gaussian(0.5, 0.9, 1000, 10, dimension=2, distance=0.5, shared=False, random_state=0)
    shift = ps.WitnessShift(0.5, random_state=0).fit(s.X, s.y)
    rows = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.warns(OutOfRangeWarning, match=r"raw estimate −?\d\.\d+"):
        estimate = shift.estimate(rows + 2 * side)
    assert side * (estimate.raw - 0.5) > 0.5
    assert estimate.value in (0, 1) and estimate.interval.low <= estimate.value <= estimate.interval.high
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shift.estimate(rows + 0.25)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize(("rows", "prior"), [(20, 0.05), (20, 0.95), (50, 0.97)])
def test_intervals_near_the_ends_are_never_of_no_width_and_cover(rows, prior):
    s = ps.simulate.gaussian(0.3, 0.5, 600, 10, distance=3, shared=False, random_state=1)
    shift = ps.WitnessShift(random_state=0).fit(s.X, s.y)
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(30):
        labels = rng.random(rows) < prior
        interval = shift.estimate(rng.normal(size=(rows, 10)) + 3 * labels[:, None]).interval
        assert interval.width > 0.05
        covered.append(prior in interval)
    assert np.mean(covered) >= 0.83  # at 95%, 25 of 30 or fewer happen once in a hundred times
    whole = shift.estimate(s.positive)
    assert whole.interval.low < 1 == whole.interval.high and np.isfinite(whole.standard_error)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_target_of_one_class_is_not_decided_alike(share):
    """The mean of what is possible lies inside [0, 1], so that no threshold is at an end."""
    s = ps.simulate.gaussian(0.4, 0.5, 400, 10, distance=0.8, shared=False, random_state=0)
    labels = np.full(60, share)
    target = np.random.default_rng(3).normal(size=(60, 10)) + 0.8 * labels[:, None]
    shifted = ps.ShiftedClassifier(LogisticRegression(), source_prior=0.4, random_state=0).fit(s.X, s.y).adapt(target)
    assert isinstance(shifted.prior_estimator_, ps.WitnessShift)
    assert 0 < shifted.target_prior_ == shifted.estimate_.details["mean"] < 1 and 0 < shifted.threshold_ < 1
    assert set(shifted.predict(np.concatenate([3 * s.X, -3 * s.X]))) == {0, 1}


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_rare_positives_are_counted_better_than_by_tcpu():
    errors = []
    for seed in range(4):
        s = ps.simulate.gaussian(0.01, 0.004, 6000, 6000, shared=False, random_state=seed)
        found = ps.WitnessShift(0.01, repeats=3, random_state=0).fit(s.X, s.y).estimate(s.target)
        other = ps.TCPU(0.01, interval=None).fit(s.X, s.y).estimate(s.target)
        assert 0.004 in found.interval and found.interval.high < 0.02
        errors.append([abs(estimate.value - 0.004) for estimate in (found, other)])
    witness_error, tcpu_error = np.mean(errors, axis=0)
    assert witness_error < 0.8 * tcpu_error and witness_error < 0.004


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_interval_covers_in_small_samples():
    """36 draws over the grid; experiments/studies/coverage_mixture.py has thousands."""
    covered = []
    for seed, (pi, target) in enumerate([(0.1, 0.8), (0.2, 0.4), (0.5, 0.2)] * 12):
        s = ps.simulate.gaussian(pi, target, 200, 200, random_state=seed)
        shift = ps.WitnessShift(repeats=2, random_state=seed).fit(s.X, s.y, shared=s.ids)
        covered.append(target in shift.estimate(s.target).interval)
    assert np.mean(covered) >= 0.83  # at 95%, 30 of 36 or fewer happen once in a hundred times


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
def test_any_classifier_can_give_the_scores(sample):
    shift = ps.WitnessShift(0.2, model=LogisticRegression(), repeats=2, random_state=0)
    estimate = shift.fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)
    assert estimate.value == pytest.approx(0.6, abs=0.08) and 0.6 in estimate.interval


def test_p_values_are_those_of_the_answer(given, sample):
    values = given.p_values(sample.target)
    assert values.shape == (5, 1000) and 0 < values.min() < values.max() < 1
    evidence = given.estimate(sample.target).evidence
    np.testing.assert_array_equal(evidence.target, np.stack([*map(mixture.histogram, values)]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": 3}, "model is 3, but it must be None or an estimator with fit, get_params, predict"),
        (
            {"source_prior": ps.KM2(scenario="censoring")},
            r"KM2 has scenario='censoring' but is used under",
        ),
        ({"source_prior": object()}, r"source_prior is .*object.*, but it must be a number"),
    ],
)
def test_settings_that_cannot_be_used(settings, message, sample):
    with pytest.raises(InputError, match=message):
        ps.WitnessShift(**settings).fit(sample.X, sample.y)


# ---- what rows do to the estimate


def test_influences_add_up_to_the_variance_of_the_test():
    rng = np.random.default_rng(0)
    m, n, t = 40, 120, 70
    ids = np.arange(m + n)
    ids[m : m + 15] = np.arange(15)  # of U, also in P
    copies = np.concatenate([np.arange(t - 20), np.arange(20)])
    known = np.where(np.arange(t) < 12, np.arange(t) // 2, -1)  # six groups that the source has too
    groups = np.where(known < 0, 100 + np.arange(t), known)
    for shared in (None, ids):
        made = of_scores(rng.normal(1, 1, (3, m)), rng.normal(0, 1, (3, n)), source_of(m, n, shared))
        values = rng.random((3, t))
        of_target = {
            "apart": target_of(t),
            "copies": target_of(t, observation=copies),
            "groups": target_of(t, observation=np.unique(groups, return_inverse=True)[1], of_source=known),
        }
        for kind, target in of_target.items():
            for ratio in (0.0, 0.4, 1.0, 1.7):
                moved = made.influence(ratio, values, target)
                tried = made._try_ratios(np.array([ratio]), made._sample(values, target))
                variance = float(tried.variance[0] / tried.denominator[0] ** 2)
                assert moved.source @ moved.source + moved.own_variance == pytest.approx(variance)
                assert moved.freedom == tried.freedom[0] and len(moved.source) == m + n - 15 * (shared is not None)
                assert (moved.target[:12] == 0).all() == (kind == "groups")
    for name in ("own_variance", "freedom"):
        assert getattr(made.influence(-0.1, values, target), name) == getattr(made.influence(0.0, values, target), name)


def test_the_influence_of_a_source_row_is_what_leaving_it_out_does():
    """With scores and ρ held: a row of U leaves a mean, a row of P moves the ranks of all others."""
    rng = np.random.default_rng(1)
    m, n, t, r = 80, 150, 4000, 0.6
    P, U, T = rng.normal(1, 1, (1, m)), rng.normal(0.3, 1, (1, n)), rng.normal(0.6, 1, (1, t))
    law = mixture.fit_one(np.stack([mixture.histogram(p_values(P[0], U[0]))]))

    def ratio(P, U):
        made = of_scores(P, U, source_of(P.shape[1], U.shape[1]), law=law)
        values = np.stack([p_values(P[0], T[0])])
        target = target_of(t)
        tried = made._try_ratios(np.array([r]), made._sample(values, target))
        return r + tried.difference[0] / tried.denominator[0], made.influence(r, values, target).source

    whole, influence = ratio(P, U)
    of_U = whole - np.array([ratio(P, np.delete(U, i, axis=1))[0] for i in range(n)])
    of_P = whole - np.array([ratio(np.delete(P, i, axis=1), U)[0] for i in range(m)])
    assert np.corrcoef(of_U, influence[m:])[0, 1] > 0.99
    assert np.polyfit(influence[m:], of_U, 1)[0] > 0  # the sign too; the size is larger by the noise of the scores
    assert np.corrcoef(of_P, influence[:m])[0, 1] > 0.9  # ranks move in steps, and h in bins
