"""Weights, groups and copies of rows in the kernel estimators: TCPU, KernelRatio, KM1, KM2 and KM2-LS."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.errors import (
    DuplicateRowsWarning,
    EstimatedPriorWarning,
    FewPositivesWarning,
    InputError,
    IntervalWarning,
)

S = ps.simulate.gaussian(0.2, 0.6, 200, 150, dimension=3, shared=False, random_state=0)
SHARED = ps.simulate.gaussian(0.2, 0.6, 200, 150, dimension=3, random_state=1)
GROUPS = np.arange(len(S.X)) // 4  # one of them has rows of P and of U
ESTIMATED = pytest.mark.filterwarnings("ignore::priorshift.errors.EstimatedPriorWarning")
INTERVALS = [{}, {"interval": "bootstrap", "n_bootstrap": 60, "random_state": 0}, {"pairs": 4000, "random_state": 0}]


def numbers(estimate):
    return [estimate.raw, estimate.interval.low, estimate.interval.high, estimate.standard_error, estimate.separation]


def repeated(X, times=4):
    return np.concatenate([X] * times)


@pytest.mark.parametrize(
    "options",
    [*INTERVALS[:2], {"statistic": "plug-in"}, {"bandwidth": "median", "kernel": "laplace"}, {"bandwidth": "variance"}],
)
@pytest.mark.parametrize("s", [S, SHARED], ids=["apart", "shared"])
def test_a_table_exported_four_times_says_no_more_than_once(s, options):
    ids = None if s is S else s.ids
    once = ps.TCPU(0.2, **options).fit(s.X, s.y, shared=ids).estimate(s.target)
    with pytest.warns(DuplicateRowsWarning, match=r"600 of 800"):
        tcpu = ps.TCPU(0.2, **options).fit(repeated(s.X), repeated(s.y), shared=None if ids is None else repeated(ids))
    with pytest.warns(DuplicateRowsWarning, match=r"450 of 600"):
        again = tcpu.estimate(repeated(s.target))
    np.testing.assert_allclose(numbers(again), numbers(once), rtol=1e-9)


@pytest.mark.parametrize("rule", [ps.KM1, ps.KM2])
def test_a_source_exported_four_times_has_the_same_prior_and_error(rule):
    once = rule().fit(S.X, S.y)
    with pytest.warns(DuplicateRowsWarning):
        again = rule().fit(repeated(S.X), repeated(S.y))
    assert again.prior_ == pytest.approx(once.prior_, rel=1e-9)
    assert again.standard_error_ == pytest.approx(once.standard_error_, rel=1e-9)
    assert len(again.prior_influence_) == 800 and np.count_nonzero(again.prior_influence_) == 200


@pytest.mark.parametrize("options", INTERVALS)
def test_weights_that_are_all_the_same_and_groups_of_one_row_change_nothing(options):
    tcpu = ps.TCPU(0.2, **options)
    plain = tcpu.fit(S.X, S.y).estimate(S.target)
    ids = np.arange(500)
    told = tcpu.fit(S.X, S.y, weights=np.full(200, 7.0), groups=ids[:200])
    told = told.estimate(S.target, weights=np.full(150, 0.1), groups=ids[300:450])
    np.testing.assert_allclose(numbers(told), numbers(plain), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "energy"])
def test_a_row_of_weight_three_is_three_equal_rows(kernel):
    """Rows of a grid, where equal ones may be chance: the means are the same, and so is the plug-in estimate."""
    rng = np.random.default_rng(0)
    X, T = (rng.integers(0, 4, (n, 2)) + np.arange(n)[:, None] % 2 for n in (60, 50))
    y, w, w_T = np.arange(60) % 3 == 0, rng.integers(1, 4, 60), rng.integers(1, 4, 50)
    X[np.arange(60) % 3 < 2] += 4
    tcpu = ps.KernelRatio(kernel=kernel, statistic="plug-in")
    by_weights = tcpu.fit(X, y, weights=w).negative_ratio(T, weights=w_T)
    by_rows = tcpu.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).negative_ratio(np.repeat(T, w_T, axis=0))
    assert by_weights.value == pytest.approx(by_rows.value, rel=1e-10)
    assert by_weights.separation == pytest.approx(by_rows.separation, rel=1e-10)
    asked = ps.TCPU(0.3, kernel=kernel, statistic="plug-in")
    curve = asked.fit(X, y, weights=w).objective(T, [0.2, 0.7], weights=w_T)
    rows = asked.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).objective(np.repeat(T, w_T, axis=0), [0.2, 0.7])
    np.testing.assert_allclose(curve, rows, rtol=1e-9)


@pytest.mark.parametrize("options", INTERVALS)
def test_groups_of_two_tell_shared_rows_as_ids_do(options):
    """An observation in P and in U by its id, and the same by a group."""
    tcpu = ps.TCPU(0.2, **options)
    by_id = tcpu.fit(SHARED.X, SHARED.y, shared=SHARED.ids).estimate(SHARED.target)
    by_group = tcpu.fit(SHARED.X, SHARED.y, groups=SHARED.ids).estimate(SHARED.target)
    np.testing.assert_allclose(numbers(by_group), numbers(by_id), rtol=1e-12)


def test_what_source_and_target_do_to_the_ratio_adds_up_to_its_error():
    """With groups in P, U and T, and weights: as several targets of one source ask for it."""
    rng = np.random.default_rng(0)
    w, w_T = rng.uniform(1, 3, 200), rng.uniform(1, 3, 150)
    of_T = np.arange(150) // 2  # fifty of them are groups of the source
    tcpu = ps.TCPU(0.2).fit(S.X, S.y, weights=w, groups=GROUPS)
    estimate, influence = tcpu.estimate_jointly(tcpu.read_target(S.target, weights=w_T, groups=of_T))
    variance = influence.source_influence @ influence.source_influence + influence.own_variance
    assert estimate.standard_error == pytest.approx(0.8 * np.sqrt(variance), rel=1e-9)
    assert influence.source_influence[influence.source_influence != 0].shape == (50,)


def test_the_same_rows_in_source_and_target_are_certain_of_no_shift():
    """With the groups told, U and T are one sample: R is 1, and nothing in it is left to chance."""
    ids = np.arange(len(S.X))
    target = S.unlabeled
    tcpu = ps.KernelRatio().fit(S.X, S.y, groups=ids)
    together, apart = tcpu.negative_ratio(target, groups=ids[S.y == 0]), tcpu.negative_ratio(target)
    assert together.value == pytest.approx(1, abs=1e-12)
    assert together.standard_error < 1e-6 < apart.standard_error


def test_a_target_of_one_group_of_the_source_is_refused():
    """Groups 0 and 1 are two in the target; an id that stands in both makes them one in the source."""
    ids = np.arange(200)
    ids[4] = 0
    tcpu = ps.TCPU(0.2).fit(S.X, S.y, groups=GROUPS, shared=ids)
    refused = pytest.raises(InputError, match=r"4 rows of target")
    with pytest.warns(IntervalWarning), refused:
        tcpu.estimate(S.target[:4], groups=[0, 0, 1, 1])


@pytest.mark.parametrize("method", ["paper-bound", "sharp-bound"])
def test_bounds_are_for_independent_rows_of_equal_weight(method):
    message = f"interval='{method}' needs independent rows of equal weight"
    for told in ({"weights": np.arange(200) + 1}, {"groups": GROUPS}):
        with pytest.raises(InputError, match=message):
            ps.TCPU(0.2, interval=method).fit(S.X, S.y, **told)
    tcpu = ps.TCPU(0.2, interval=method).fit(S.X, S.y)
    for told in ({"weights": np.arange(150) + 1}, {"groups": np.arange(150) // 2}):
        with pytest.raises(InputError, match=message):
            tcpu.estimate(S.target, **told)


# ---- the source prior


def test_km2_minds_weights_as_repeated_rows():
    """On a grid, whose equal rows may be chance: the same means, the same points, the same prior."""
    rng = np.random.default_rng(0)
    truth = rng.random(160) < 0.5
    X = rng.integers(0, 6, (160, 2)) + 3 * truth[:, None]
    y, w = truth & (np.arange(160) % 2 == 0), rng.integers(1, 4, 160)
    for rule in (ps.KM1, ps.KM2):
        by_weights = rule(bandwidth=1.0, standardize=False).fit(X, y, weights=w)
        by_rows = rule(bandwidth=1.0, standardize=False).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        assert by_weights.separation_ == pytest.approx(by_rows.separation_, rel=1e-6)
        assert by_weights.thresholds_["KM2"] == pytest.approx(by_rows.thresholds_["KM2"], rel=1e-3)
        if rule is ps.KM2:
            assert by_weights.prior_ == pytest.approx(by_rows.prior_, abs=1e-3)
            assert by_rows.prior_ != pytest.approx(rule(bandwidth=1.0, standardize=False).fit(X, y).prior_, abs=1e-3)


def test_influence_on_km2_is_the_change_when_a_row_weighs_more():
    rng = np.random.default_rng(0)
    w = rng.uniform(0.5, 2, len(S.X))
    base = ps.KM2(standardize=False).fit(S.X, S.y, weights=w)
    for row in range(0, len(w), 45):
        moved = []
        step = 0.3 if S.y[row] else 1.0
        for sign in (1, -0.5):
            more = w.copy()
            more[row] *= 1 + sign * step
            moved.append(ps.KM2(standardize=False, bandwidth=base.bandwidth_).fit(S.X, S.y, weights=more).prior_)
        # s·w more on a row moves its sample's mean by s·mass of it; the factor √(n/(n−1)) is 1.5 % for P
        quotient = (moved[0] - moved[1]) / (1.5 * step)
        # priors are exact to 1e-4; a step this large bends a little
        assert base.prior_influence_[row] == pytest.approx(quotient, abs=4e-4, rel=0.25)


def test_standard_error_of_km2_adds_up_over_groups():
    alone, grouped = ps.KM2().fit(S.X, S.y), ps.KM2().fit(S.X, S.y, groups=GROUPS)
    assert grouped.prior_ == alone.prior_
    m, n = (S.y == 1).sum(), (S.y == 0).sum()
    sizes = np.where(S.y == 1, m, n)
    worth = []
    for of in (1, 0):
        counts = np.unique(GROUPS[S.y == of], return_counts=True)[1] / (S.y == of).sum()
        worth.append(1 / (counts**2).sum())
    worth = np.where(S.y == 1, *worth)
    q = alone.prior_influence_ * np.sqrt((sizes - 1) / sizes * worth / (worth - 1))
    np.testing.assert_allclose(grouped.prior_influence_, q, rtol=1e-9)
    expected = sum(q[g == GROUPS].sum() ** 2 for g in set(GROUPS.tolist()))
    assert grouped.standard_error_ == pytest.approx(np.sqrt(expected), rel=1e-9)


def test_positives_of_few_patients_are_few_for_km2():
    with pytest.warns(FewPositivesWarning, match=r"KM2.* \d+ .*positive rows"):
        ps.KM2().fit(S.X, S.y, groups=np.where(S.y == 1, np.arange(200) // 12, 100 + np.arange(200)))


class Taking(ps.KM2):
    """Remembers what it was told."""

    def fit(self, X, y, shared=None, weights=None, groups=None):
        self.told = (shared, weights, groups)
        return super().fit(X, y, shared, None, weights, groups)


class Plain:
    """Takes rows and labels, and nothing else."""

    def fit(self, X, y):
        self.prior_ = 0.25
        self.prior_influence_ = np.linspace(-1, 1, len(y)) / len(y)


@ESTIMATED
def test_an_estimator_of_the_prior_is_told_of_weights_and_groups():
    w = np.arange(200) + 100.0
    tcpu = ps.TCPU(Taking()).fit(S.X, S.y, weights=w, groups=GROUPS)
    shared, weights, groups = tcpu.prior_estimator_.told
    assert shared is None and groups.tolist() == [str(g) for g in GROUPS]
    np.testing.assert_array_equal(weights, w)
    direct = ps.KM2().fit(S.X, S.y, weights=w, groups=GROUPS)
    assert tcpu.source_prior_ == pytest.approx(direct.prior_, abs=1e-6)
    found = tcpu.estimate(S.target)
    assert found.details["source_prior_standard_error"] == pytest.approx(direct.standard_error_, rel=1e-4)


def test_an_estimator_that_takes_no_weights_is_asked_without_and_that_is_said():
    with pytest.warns(EstimatedPriorWarning, match=r"Plain.*weights"):
        tcpu = ps.TCPU(Plain()).fit(S.X, S.y, weights=np.arange(200) + 1, groups=GROUPS)
    assert tcpu.source_prior_ == 0.25
    q = np.linspace(-1, 1, 200) / 200
    expected = sum(q[g == GROUPS].sum() ** 2 for g in set(GROUPS.tolist()))
    error = tcpu.estimate(S.target).details["source_prior_standard_error"]
    assert error == pytest.approx(np.sqrt(expected))


@ESTIMATED
def test_copies_are_said_once_though_the_estimator_of_the_prior_sees_them_too():
    with pytest.warns(DuplicateRowsWarning) as said:
        tcpu = ps.TCPU().fit(repeated(S.X), repeated(S.y))
    assert [warning.category for warning in said] == [DuplicateRowsWarning]
    once = ps.TCPU().fit(S.X, S.y).estimate(S.target)
    np.testing.assert_allclose(numbers(tcpu.estimate(S.target)), numbers(once), rtol=1e-6)


@ESTIMATED
def test_km2_ls_minds_weights_groups_and_copies():
    w, w_T = np.arange(200) + 100.0, np.arange(150) + 100.0
    of_T = 1000 + np.arange(150) // 5
    of_T[:3] = GROUPS[0]
    told = ps.KM2LS(standardize=False).fit(S.X, S.y, weights=w, groups=GROUPS)
    told = told.estimate(S.target, weights=w_T, groups=of_T)
    positive = S.y == 1
    X, y = np.concatenate([S.positive, S.target]), np.repeat([1, 0], [positive.sum(), 150])
    groups = np.concatenate([GROUPS[positive], of_T])
    direct = ps.KM2(standardize=False).fit(X, y, weights=np.concatenate([w[positive], w_T]), groups=groups)
    assert told.value == pytest.approx(direct.prior_, abs=1e-6)
    assert told.standard_error == pytest.approx(direct.standard_error_, rel=1e-4)
    once = ps.KM2LS().fit(S.X, S.y).estimate(S.target)
    with pytest.warns(DuplicateRowsWarning) as said:
        again = ps.KM2LS().fit(repeated(S.X), repeated(S.y)).estimate(repeated(S.target))
    assert [w.category for w in said if w.category is DuplicateRowsWarning] == [DuplicateRowsWarning] * 2
    np.testing.assert_allclose([again.value, again.standard_error], [once.value, once.standard_error], rtol=1e-6)


# ---- simulations with a known answer


def patients(rng, rows, size, prior, correlation):
    """Rows of `size` to a patient, who are all of one class and alike: E = class mean, correlation within a patient."""
    count = rows // size
    positive = np.repeat(rng.random(count) < prior, size)
    own = np.repeat(rng.normal(size=(count, 2)), size, axis=0)
    noise = rng.normal(size=(count * size, 2))
    X = 2.0 * positive[:, None] + np.sqrt(correlation) * own + np.sqrt(1 - correlation) * noise
    return X, np.repeat(np.arange(count), size)


@pytest.mark.slow
def test_with_groups_the_interval_covers_and_without_it_does_not():
    rng = np.random.default_rng(0)
    found = {"grouped": [], "alone": []}
    for _ in range(120):
        P, g_P = patients(rng, 240, 6, 1.0, 0.8)
        U, g_U = patients(rng, 480, 6, 0.3, 0.8)
        T, g_T = patients(rng, 480, 6, 0.6, 0.8)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        groups = np.concatenate([g_P, 1000 + g_U])
        found["grouped"].append(ps.TCPU(0.3).fit(X, y, groups=groups).estimate(T, groups=2000 + g_T))
        found["alone"].append(ps.TCPU(0.3).fit(X, y).estimate(T))
    covers = {name: np.mean([0.6 in e.interval for e in made]) for name, made in found.items()}
    # 120 draws of 0.95 have a standard error of 0.02
    assert covers["grouped"] > 0.9 and covers["alone"] < 0.75
    raw = np.array([e.raw for e in found["grouped"]])
    assert abs(raw.mean() - 0.6) < 4 * raw.std() / np.sqrt(120)
    # 120 draws know a spread to 6.5 %
    assert np.mean([e.standard_error for e in found["grouped"]]) == pytest.approx(raw.std(ddof=1), rel=0.2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::priorshift.errors.OutOfRangeWarning")  # without the weights
def test_weights_undo_a_draw_with_unequal_probabilities():
    """Rows with a large first column are drawn more often into U, and less often into T: weights undo it."""
    rng = np.random.default_rng(0)
    weighted, plain = [], []

    def draw(rows, prior, tilt):
        X = rng.normal(size=(8 * rows, 2)) + 2.0 * (rng.random(8 * rows) < prior)[:, None]
        chance = np.minimum(np.exp(tilt * X[:, 0]) / 20, 1)
        kept = rng.random(len(X)) < chance
        return X[kept], 1 / chance[kept]

    for _ in range(120):
        P = rng.normal(size=(150, 2)) + 2
        (U, w_U), (T, w_T) = draw(200, 0.3, 0.7), draw(500, 0.6, -0.7)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        weights = np.concatenate([np.ones(len(P)), w_U])
        weighted.append(ps.TCPU(0.3).fit(X, y, weights=weights).estimate(T, weights=w_T))
        plain.append(ps.TCPU(0.3).fit(X, y).estimate(T))
    raw = np.array([e.raw for e in weighted])
    assert abs(raw.mean() - 0.6) < 4 * raw.std() / np.sqrt(120)
    assert abs(np.mean([e.raw for e in plain]) - 0.6) > 0.03
    # 120 draws of 0.95 have a standard error of 0.02, and know a spread to 6 %
    assert np.mean([0.6 in e.interval for e in weighted]) > 0.9
    assert np.mean([e.standard_error for e in weighted]) == pytest.approx(raw.std(ddof=1), rel=0.2)
