"""bandwidth="variance": the bandwidth under which R is expected to err least, found from the source alone."""

import json
from itertools import product

import numpy as np
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.embedding import samples as bandwidth
from priorshift.errors import InputError
from priorshift.kernels import Gaussian, Laplace

S = ps.simulate.gaussian(0.3, 0.6, 150, 60, dimension=3, distance=2.0, random_state=0)
RATIOS = (0.25, 0.5, 0.75, 1.0)


WEAK = pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")


def chosen(X, y, *, kernel="gaussian", standardize=False, **fit):
    return ps.KernelRatio(kernel=kernel, bandwidth="variance", standardize=standardize).fit(X, y, **fit)


def slowly(X, y, weights, groups, kernel):
    """The standard error by loops over pairs of rows, of which no two are of one group."""
    side = {s: np.flatnonzero(y == s) for s in (1, 0)}
    mass = {s: weights[at] / weights[at].sum() for s, at in side.items()}
    K = kernel(X, X)

    def mean_at(i, s):
        others = [(q, j) for q, j in zip(mass[s], side[s], strict=True) if groups[j] != groups[i]]
        return sum(q * K[i, j] for q, j in others) / sum(q for q, _ in others)

    def mean_of_pairs(s, r):
        pairs = [
            (p * q, K[i, j])
            for (p, i), (q, j) in product(zip(mass[s], side[s], strict=True), zip(mass[r], side[r], strict=True))
            if groups[i] != groups[j]
        ]
        return sum(w * k for w, k in pairs) / sum(w for w, _ in pairs)

    D = mean_of_pairs(0, 0) - 2 * mean_of_pairs(0, 1) + mean_of_pairs(1, 1)
    w = np.array([mean_at(i, 0) - mean_at(i, 1) for i in range(len(X))])
    size, by_group = {}, {}
    for s in (1, 0):
        totals = [mass[s][groups[side[s]] == g].sum() for g in set(groups[side[s]])]
        size[s] = 1 / sum(t**2 for t in totals)
        centred = mass[s] * (w[side[s]] - mass[s] @ w[side[s]]) * np.sqrt(size[s] / (size[s] - 1))
        by_group[s] = {g: centred[groups[side[s]] == g].sum() for g in set(groups)}

    def source_variance(of_P, of_U):
        return sum((of_P * by_group[1][g] + of_U * by_group[0][g]) ** 2 for g in set(groups))

    variances = []
    for R in RATIOS:
        in_T = np.zeros(len(X))
        in_T[side[1]], in_T[side[0]] = (1 - R) * mass[1], R * mass[0]
        of_T = in_T @ (w - in_T @ w) ** 2 / size[0]
        variances.append((source_variance(1 - R, R) + of_T) / D**2)
    return np.sqrt(np.mean(variances) * (1 + 3 * source_variance(2, -2) / D**2))


@pytest.mark.filterwarnings("ignore::priorshift.errors.IntervalWarning")
@pytest.mark.parametrize("kernel", [Gaussian, Laplace])
@pytest.mark.parametrize("told", ["nothing", "weights and groups"])
def test_the_predicted_error_is_that_of_a_slow_sum_over_pairs(kernel, told):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 2)) + 2 * (np.arange(45) < 25)[:, None]
    y = (np.arange(45) < 15).astype(int)
    if told == "nothing":
        weights, groups = np.ones(45), np.arange(45)
    else:
        weights, groups = rng.uniform(1, 3, 45), np.arange(45) * 7 % 22  # groups of two and three, some in P and U
    found = chosen(X, y, kernel=kernel.name, weights=weights, groups=groups)
    curve = found.bandwidths_
    expected = [slowly(X, y, weights, groups, kernel(h)) for h in curve.bandwidths]
    np.testing.assert_allclose(curve.standard_errors, expected, rtol=1e-9)
    assert curve.chosen == found.kernel_.bandwidth == curve.bandwidths[np.argmin(expected)]


def test_the_error_predicted_for_the_choice_is_the_error_that_it_has():
    """100 draws, four targets each, which err together: the spread is known to 5 %, and the expansion is not exact."""
    rng, positives, rows = np.random.default_rng(5), 80, 250
    errors, predicted = [], []

    def draw(n, prior):
        return rng.normal(size=(n, 4)) + 1.5 * (rng.random(n) < prior)[:, None]

    for _ in range(100):
        X = np.concatenate([draw(positives, 1), draw(rows, 0.5)])
        found = chosen(X, np.repeat([1, 0], [positives, rows]))
        predicted.append(found.bandwidths_.standard_errors.min())
        errors += [found.negative_ratio(draw(rows, 1 - R / 2)).value - R for R in RATIOS]
    seen = np.sqrt(np.mean(np.square(errors)))
    assert np.median(predicted) == pytest.approx(seen, rel=0.15)
    assert abs(np.mean(errors)) < 0.15 * seen


@WEAK
def test_fine_structure_asks_for_a_narrow_kernel_and_a_shift_for_a_wide_one():
    """Stripes of the classes, as wide as an eighth of the median distance; two bells one apart; both beside "dimension"."""
    rng = np.random.default_rng(1)

    def stripes(n, prior):
        """Positives where the whole part of 4x is even."""
        x = np.stack([2 * rng.integers(0, 4, n) + rng.random(n) + (rng.random(n) >= prior), 8 * rng.random(n)], axis=1)
        return x / 4

    def bells(n, prior):
        return rng.normal(size=(n, 2)) + (rng.random(n) < prior)[:, None]

    factors, errors = {}, {}
    for name, draw in (("stripes", stripes), ("bells", bells)):
        X, y = np.concatenate([draw(200, 1), draw(400, 0.4)]), np.repeat([1, 0], [200, 400])
        by = {rule: ps.KernelRatio(bandwidth=rule, standardize=False).fit(X, y) for rule in ("variance", "median", 1.0)}
        factors[name] = by["variance"].kernel_.bandwidth / by["median"].kernel_.bandwidth
        targets = [draw(400, 0.7) for _ in range(10)]
        errors[name] = {
            rule: np.mean([(r.negative_ratio(T).value - 0.5) ** 2 for T in targets]) for rule, r in by.items()
        }
    assert factors["stripes"] < 0.25 and factors["bells"] > 0.5
    assert 4 * errors["stripes"]["variance"] < min(errors["stripes"]["median"], errors["stripes"][1.0])
    assert errors["bells"]["variance"] < 1.5 * errors["bells"]["median"]


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_a_change_of_unit_changes_the_bandwidth_with_it(kernel):
    once, again = (chosen(unit * S.X, S.y, kernel=kernel, shared=S.ids) for unit in (1.0, 10.0))
    assert again.kernel_.bandwidth == pytest.approx(10 * once.kernel_.bandwidth, rel=1e-12)
    np.testing.assert_allclose(again.bandwidths_.standard_errors, once.bandwidths_.standard_errors, rtol=1e-8)


def test_the_choice_rests_on_the_source_alone_and_nothing_in_it_is_random():
    first, second = (
        ps.TCPU(0.3, bandwidth="variance", random_state=seed).fit(S.X, S.y, shared=S.ids) for seed in (0, 1)
    )
    assert first.estimate(S.target) == second.estimate(S.target)
    by_number = ps.TCPU(0.3, bandwidth=first.kernel_.bandwidth).fit(S.X, S.y, shared=S.ids)
    for statistic, T in product(("unbiased", "plug-in"), (S.target, S.target[:20])):
        one, other = (tcpu.set_params(statistic=statistic).estimate(T) for tcpu in (first, by_number))
        assert one.raw == other.raw and one.interval == other.interval


def test_rows_of_one_patient_are_fewer_observations():
    """Rows said six times over, each a little elsewhere, are as good as one of them."""
    rng = np.random.default_rng(3)
    X, y, groups = (np.repeat(a, 6, axis=0) for a in (S.X, S.y, np.arange(len(S.X))))
    X = X + 1e-6 * rng.normal(size=X.shape)
    once, told, untold = chosen(S.X, S.y), chosen(X, y, groups=groups), chosen(X, y)
    scale = once.bandwidths_.bandwidths[0] / told.bandwidths_.bandwidths[0]
    assert scale == pytest.approx(1, abs=0.01)  # the median of distances, of which some are within a patient
    wide = slice(4, None)
    errors = [found.bandwidths_.standard_errors[wide] for found in (once, told, untold)]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.01)
    assert (errors[2] < 0.6 * errors[0]).all()


@pytest.mark.parametrize("shared", [False, True])
def test_some_rows_of_a_large_sample_predict_the_error_of_all(shared, monkeypatch):
    """A quarter of the rows: the variance is that of four times as many, known to some 10 %."""
    s = ps.simulate.gaussian(0.4, 0.6, 1200, 2, shared=shared, random_state=0)
    fit = {"shared": s.ids} if shared else {}
    whole = chosen(s.X, s.y, **fit).bandwidths_
    monkeypatch.setattr(bandwidth, "_CHOICE_ROWS", 200)
    some = chosen(s.X, s.y, **fit).bandwidths_
    assert (some.standard_errors != whole.standard_errors).all()
    wide = whole.bandwidths > 0.5 * whole.chosen  # a witness of few rows is noisier where the kernel is narrow
    np.testing.assert_allclose(some.standard_errors[wide], whole.standard_errors[wide], rtol=0.15)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0], [2.0], [3.0]], [1, 1, 0, 0]),
        ([[0.0], [0.0], [0.0], [0.0], [1.0]], [1, 1, 0, 0, 0]),
        (np.repeat([[0.0, 1.0], [1.0, 1.0]], [10, 30], axis=0), np.arange(40) % 2),
        (np.concatenate([np.arange(12.0)] * 2)[:, None], np.repeat([1, 0], 12)),
        ([[1e60], [3e60], [2e60], [-1e60], [0.0]], [1, 1, 0, 0, 0]),
        ([[1e-60], [3e-60], [2e-60], [-1e-60], [0.0]], [1, 1, 0, 0, 0]),
    ],
    ids=["four rows", "ties", "two values", "P equals U", "huge", "minute"],
)
def test_odd_data_get_a_bandwidth(X, y, kernel):
    X = np.asarray(X)
    for standardize in (True, False):
        found = ps.TCPU(0.3, kernel=kernel, bandwidth="variance", standardize=standardize).fit(X, y)
        assert found.kernel_.bandwidth in found.bandwidths_.bandwidths
        assert 0 <= found.estimate(X[-3:]).interval.low <= 1


def test_copies_of_one_row_have_no_distance_to_go_by():
    X = np.array([[0.0], [1.0], [2.0], [2.0], [2.0], [2.0]])
    with pytest.raises(InputError, match=r"'variance'.* 0"):
        ps.TCPU(0.3, bandwidth="variance", standardize=False).fit(X, [1, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("energy", "bandwidth is 'variance', but the kernel 'energy' has none; leave it out"),
        (Laplace(3.0), "bandwidth is 'variance', but a kernel object has its own"),
        (lambda X, Y: X @ Y.T, "bandwidth is 'variance', but a kernel object has its own"),
    ],
)
def test_kernels_without_a_bandwidth_to_choose_refuse_it(kernel, message):
    for rule in (ps.KernelRatio, ps.TCPU):
        with pytest.raises(InputError, match=message):
            rule(kernel=kernel, bandwidth="variance").fit(S.X, S.y)


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(2.5)])
def test_the_next_narrower_kernel_is_the_square(kernel):
    X, Y = S.X[:5], S.target[:4]
    np.testing.assert_allclose(kernel.squared()(X, Y), kernel(X, Y) ** 2, rtol=1e-13)


def test_results_say_which_rule_chose_the_bandwidth():
    found = {}
    for rule in ("variance", "dimension", "median", 2.0):
        tcpu = ps.TCPU(0.3, bandwidth=rule).fit(S.X, S.y)
        found[rule] = tcpu.estimate(S.target).details["bandwidth_by"]
        assert (tcpu.bandwidths_ is not None) == (rule == "variance")
    assert found == {"variance": "variance", "dimension": "dimension", "median": "median", 2.0: None}
    assert ps.TCPU(0.3, kernel="energy").fit(S.X, S.y).estimate(S.target).details["bandwidth_by"] is None
    assert ps.TCPU(0.3, kernel=Laplace(3.0)).fit(S.X, S.y).estimate(S.target).details["bandwidth_by"] is None


def test_the_shell_takes_the_rule(tmp_path, capsys):
    files = []
    for name, rows in (("positive", S.positive), ("unlabeled", S.unlabeled), ("target", S.target)):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, rows, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
        files += [f"--{name}", str(path)]
    options = ["--method", "tcpu", "--source-prior", "0.3", "--bandwidth", "variance", "--json"]
    assert main(["estimate", *files, *options]) == 0
    said = json.loads(capsys.readouterr().out)
    X, y = np.concatenate([S.positive, S.unlabeled]), np.repeat([1, 0], [len(S.positive), len(S.unlabeled)])
    assert said["details"]["bandwidth"] == chosen(X, y, standardize=True).kernel_.bandwidth
    assert said["details"]["bandwidth_by"] == "variance"
    assert main(["estimate", *files, *options, "--kernel", "energy"]) == 2
    assert "the kernel 'energy' has none" in capsys.readouterr().err
