import authors
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from exact_problems import random_problem, stacked
from hypothesis import given, settings
from hypothesis import strategies as st

import priorshift as ps
from priorshift.embedding.gram import objective, target_prior
from priorshift.errors import ColumnWarning, DuplicateRowsWarning, InputError, OutOfRangeWarning, WeakSeparationWarning
from priorshift.kernels import bandwidth_from_gamma
from priorshift.kernels.kernel import KERNELS


@pytest.mark.parametrize(("P", "U", "T", "answer"), authors.answered("tcpu_known_prior"))
def test_plug_in_estimate_is_the_authors(P, U, T, answer):
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    scales = {"tcpu_known_prior": 1, "tcpu_known_prior_tau_0.5_over_p": 0.5, "tcpu_known_prior_tau_2_over_p": 2}
    for name, factor in scales.items():
        bandwidth = bandwidth_from_gamma(factor / P.shape[1])
        tcpu = ps.TCPU(answer["source_prior"], bandwidth=bandwidth, statistic="plug-in", standardize=False).fit(X, y)
        assert tcpu.estimate(T).raw == pytest.approx(answer[name], abs=1e-10)


@st.composite
def exact_problems(draw):
    features = draw(st.integers(1, 4))
    # a grid of 1/8, so that no two points are closer than rounding can tell
    cells = st.integers(-40, 40).map(lambda k: k / 8)
    sizes = draw(st.integers(2, 6)), draw(st.integers(1, 6))
    rows = st.lists(st.tuples(*[cells] * features), min_size=sum(sizes), max_size=sum(sizes), unique=True)
    positives, negatives = np.split(np.array(draw(rows)), [sizes[0]])
    times = tuple(draw(st.integers(1, 4)) for _ in range(4))
    return stacked(positives, negatives, times), positives, negatives, times


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("standardize", [False, True])
@given(drawn=exact_problems())
@settings(max_examples=60)
def test_exact_problems_return_the_target_prior(kernel, standardize, drawn):
    """The same points in P, U and T, with weights in place of copies."""
    problem, positives, negatives, (i, j, s, t) = drawn
    sizes = len(positives), len(negatives)
    both = np.concatenate([positives, negatives])
    X, y = np.concatenate([positives, both]), np.repeat([1, 0], [sizes[0], sum(sizes)])
    weights = np.concatenate([np.full(sizes[0], 3.0), np.repeat([i, j], sizes)])
    tcpu = ps.TCPU(problem.source_prior, kernel=kernel, standardize=standardize, statistic="plug-in")
    estimate = tcpu.fit(X, y, weights=weights).estimate(both, weights=np.repeat([s, t], sizes))
    if np.isnan(estimate.raw):  # positives and negatives have one mean: nothing to estimate
        assert estimate.separation < 1e-9
        return
    # the Gram matrix is exact to 1e-15 of the kernel's scale, and the projection divides by the separation
    scale = 1.0 if kernel != "energy" else 20.0
    assert estimate.raw == pytest.approx(problem.target_prior, abs=max(1e-12, 1e-13 * scale / estimate.separation))


TABLES = {
    "array": lambda X, _: X,
    "float32 array": lambda X, _: X.astype(np.float32),
    "list": lambda X, _: X.tolist(),
    "pandas": lambda X, _: pd.DataFrame(X, columns=list("abc")),
    "polars": lambda X, _: pl.DataFrame(X, schema=list("abc")),
    "pyarrow": lambda X, _: pa.table(dict(zip("abc", X.T, strict=True))),
    "csv": lambda X, path: _csv(X, path),
    "parquet": lambda X, path: _parquet(X, path),
}


def _csv(X, path):
    pd.DataFrame(X, columns=list("abc")).to_csv(path.with_suffix(".csv"), index=False, float_format="%.17g")
    return path.with_suffix(".csv")


def _parquet(X, path):
    pa.parquet.write_table(pa.table(dict(zip("abc", X.T, strict=True))), path.with_suffix(".parquet"))
    return str(path.with_suffix(".parquet"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_returns_the_target_prior(kind, kernel, tmp_path):
    problem = random_problem()
    make = TABLES[kind]
    tables = [make(getattr(problem, name), tmp_path / name) for name in ("positive", "unlabeled", "target")]
    method = ps.TCPU(problem.source_prior, kernel=kernel, statistic="plug-in", standardize=True)
    estimate = ps.estimate_prior(*tables, method=method, shared="identical")
    assert estimate.raw == pytest.approx(problem.target_prior, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_target_equal_to_the_source_returns_the_source_prior(kernel):
    problem = random_problem()
    tcpu = ps.TCPU(0.3, kernel=kernel, statistic="plug-in").fit(problem.X, problem.y)
    assert tcpu.estimate(problem.unlabeled).raw == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_target_equal_to_the_positives_returns_one(kernel):
    problem = random_problem()
    tcpu = ps.TCPU(0.3, kernel=kernel, statistic="plug-in").fit(problem.X, problem.y)
    assert tcpu.estimate(problem.positive).raw == pytest.approx(1, abs=1e-12)


def test_projection_is_the_papers_first_formula():
    """π̂′ = ⟨a, Δ⟩/⟨a, a⟩ with explicit vectors in place of embeddings."""
    P, U, T = np.random.default_rng(0).normal(size=(3, 5))
    pi = 0.3
    a, delta = U - P, U - pi * P - (1 - pi) * T
    means = np.array([P, U, T])
    assert target_prior(means @ means.T, pi) == pytest.approx(a @ delta / (a @ a), rel=1e-12)


def test_objective_is_the_papers_squared_distance_and_the_estimate_its_minimiser():
    P, U, T = np.random.default_rng(1).normal(size=(3, 5))
    pi, gamma = 0.3, np.linspace(-1, 2, 31)
    means = np.array([P, U, T])
    values = objective(means @ means.T, pi, gamma)
    direct = [np.sum(((1 - g) * (U - pi * P) - (1 - pi) * (T - g * P)) ** 2) for g in gamma]
    np.testing.assert_allclose(values, direct, rtol=1e-12)
    raw = target_prior(means @ means.T, pi)
    lowest = objective(means @ means.T, pi, raw)
    assert lowest < objective(means @ means.T, pi, [raw - 1e-3, raw + 1e-3]).min()


def test_excess_of_a_result_is_the_objective_above_its_minimum():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, random_state=0)
    tcpu = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids)
    estimate = tcpu.estimate(s.target)
    gamma = np.linspace(0, 1, 5)
    curve = tcpu.objective(s.target, gamma) - tcpu.objective(s.target, estimate.raw)
    np.testing.assert_allclose(estimate.excess(gamma), curve, atol=1e-14)


def test_ratio_of_negatives_does_not_depend_on_the_source_prior():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, shared=False, random_state=0)
    tcpu = ps.TCPU(0.2).fit(s.X, s.y)
    low = tcpu.estimate(s.target)
    high = tcpu.set_params(source_prior=0.7).estimate(s.target)
    assert low.negative_ratio == high.negative_ratio
    assert (1 - low.raw) / 0.8 == pytest.approx((1 - high.raw) / 0.3)


def test_censoring_is_case_control_with_the_labelled_rows_shared():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, shared=False, random_state=0)
    censored = ps.TCPU(0.2, scenario="censoring").fit(s.X, s.y).estimate(s.target)
    m = len(s.positive)
    X, y = np.concatenate([s.positive, s.X]), np.repeat([1, 0], [m, len(s.X)])
    ids = np.concatenate([np.arange(m), np.arange(len(s.X))])
    told = ps.TCPU(0.2).fit(X, y, shared=ids).estimate(s.target)
    assert censored.raw == pytest.approx(told.raw, rel=1e-12)
    assert censored.interval.low == pytest.approx(told.interval.low, rel=1e-9)
    assert censored.standard_error == pytest.approx(told.standard_error, rel=1e-9)


def test_identical_rows_and_ids_tell_the_same_shared_rows():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, random_state=0)
    ids = np.array([f"patient {i}" for i in s.ids], dtype=object)
    by = [ps.TCPU(0.2).fit(s.X, s.y, shared=told).estimate(s.target) for told in (s.ids, ids, "identical")]
    assert by[0] == by[1] == by[2]
    assert by[0].details["shared_rows"] == len(np.intersect1d(s.positive_ids, s.unlabeled_ids)) > 0


def test_shared_pairs_matter_and_are_never_guessed():
    s = ps.simulate.gaussian(0.1, 0.6, 200, 200, random_state=3)
    told = ps.TCPU(0.1).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    untold = ps.TCPU(0.1).fit(s.X, s.y).estimate(s.target)
    assert untold.details["shared_rows"] == 0
    assert abs(told.raw - untold.raw) > 0.01
    with pytest.warns(DuplicateRowsWarning, match=r"of 18 positive"):
        ps.estimate_prior(s.positive, s.unlabeled, s.target, method="tcpu", source_prior=0.1)


def test_discrete_data_raise_no_suspicion_of_shared_rows():
    rng = np.random.default_rng(0)
    P, U, T = (rng.integers(0, 3, (n, 2)) + np.array([shift, 0]) for n, shift in ((40, 1), (200, 0), (100, 0)))
    ps.estimate_prior(P, U, T, source_prior=0.2)  # a warning would be an error here


def test_fitting_once_serves_many_targets_without_touching_the_source_again(monkeypatch):
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, random_state=0)
    tcpu = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids)
    pairs = []
    real = ps.embedding.gram.kernel_sums

    def counting(kernel, X, Y=None, **rest):
        pairs.append(Y is None)
        return real(kernel, X, Y, **rest)

    monkeypatch.setattr("priorshift.embedding.gram.kernel_sums", counting)
    first, second = tcpu.estimate(s.target), tcpu.estimate(s.target)
    assert pairs == [False] * 4  # P and U against the target, twice; nothing among source rows
    assert first == second


def test_standardizing_uses_the_source_only_and_makes_units_irrelevant():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, shared=False, random_state=0)
    units = np.logspace(-8, 8, 10)
    fit = ps.TCPU(0.2, standardize=True).fit
    plain = fit(s.X, s.y).estimate(s.target)
    scaled = fit(s.X * units + 5 * units, s.y).estimate(s.target * units + 5 * units)
    assert scaled.raw == pytest.approx(plain.raw, rel=1e-9)
    by_hand = (s.unlabeled.mean(axis=0), s.unlabeled.std(axis=0))
    hand = ps.TCPU(0.2).fit((s.X - by_hand[0]) / by_hand[1], s.y).estimate((s.target - by_hand[0]) / by_hand[1])
    assert hand.raw == pytest.approx(plain.raw, rel=1e-12)


def test_a_column_that_is_constant_in_the_source_is_left_out():
    problem = random_problem()

    def with_constant(X):
        return np.column_stack([X, np.full(len(X), 7.0)])

    fit = ps.TCPU(problem.source_prior, standardize=True, bandwidth=1.0, statistic="plug-in").fit
    plain = fit(problem.X, problem.y).estimate(problem.target)
    tcpu = fit(with_constant(problem.X), problem.y)
    assert tcpu.estimate(with_constant(problem.target)).raw == pytest.approx(plain.raw, rel=1e-12)
    varying = with_constant(problem.target)
    varying[0, 3] = 8
    with pytest.warns(ColumnWarning, match=r"column 3.*target"):
        assert tcpu.estimate(varying).raw == pytest.approx(plain.raw, rel=1e-12)


def test_incomplete_statistic_estimates_the_same():
    s = ps.simulate.gaussian(0.2, 0.6, 500, 500, random_state=0)
    exact = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    some = ps.TCPU(0.2, pairs=200_000, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    few = ps.TCPU(0.2, pairs=2_000, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    # 200,000 pairs are two and a half times the largest block, so drawing them adds little to the error of the rows
    assert abs(some.raw - exact.raw) < 0.2 * exact.standard_error
    assert some.standard_error == pytest.approx(exact.standard_error, rel=0.1)
    assert few.standard_error > 1.15 * exact.standard_error  # fewer pairs than rows buy less


def test_single_precision_agrees_to_a_millionth():
    s = ps.simulate.gaussian(0.2, 0.6, 2000, 2000, random_state=0)
    one, two = (
        ps.TCPU(0.2, precision=p).fit(s.X, s.y, shared=s.ids).estimate(s.target) for p in ("float64", "float32")
    )
    assert two.raw == pytest.approx(one.raw, rel=1e-6)
    assert two.standard_error == pytest.approx(one.standard_error, rel=1e-6)


def test_without_separation_there_is_no_estimate_and_the_interval_says_everything():
    rng = np.random.default_rng(0)
    X, y, T = rng.normal(size=(60, 3)), np.repeat([1, 0], 30), rng.normal(size=(40, 3))
    X[30:] = X[:30]  # P equal to U
    tcpu = ps.TCPU(0.4).fit(X, y)
    with pytest.warns(WeakSeparationWarning, match=r"30 positive.* 30 unlabeled"):
        estimate = tcpu.estimate(T)
    assert np.isnan(estimate.value)
    assert (estimate.interval.low, estimate.interval.high) == (0, 1)
    assert estimate.to_dict()["value"] is None
    assert "no estimate of the target prior" in str(estimate)


def test_little_separation_is_said_with_its_numbers():
    rng = np.random.default_rng(1)
    P, U, T = rng.normal(size=(20, 3)) + 0.2, rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    with pytest.warns(WeakSeparationWarning, match=r"20 positive, 60 unlabeled"):
        ps.TCPU(0.4).fit(np.concatenate([P, U]), np.repeat([1, 0], [20, 60])).estimate(T)


def test_an_estimate_far_outside_the_unit_interval_is_said_and_kept_raw():
    s = ps.simulate.gaussian(0.5, 0.1, 600, 600, shared=False, random_state=0)
    tcpu = ps.TCPU(0.05).fit(s.X, s.y)  # a wrong source prior
    with pytest.warns(OutOfRangeWarning, match=r"raw estimate −0\.\d+"):
        estimate = tcpu.estimate(s.target)
    assert estimate.value == 0 > estimate.raw
    assert estimate.interval.low == 0 < estimate.interval.high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "biased"}, "statistic is 'biased', but it must be one of 'unbiased', 'plug-in'"),
        ({"interval": "wald"}, "interval is 'wald', but it must be one of 'delta', 'bootstrap'"),
        ({"precision": "float16"}, "precision is 'float16', but it must be one of 'float64', 'float32'"),
        ({"pairs": 5}, "pairs is 5, but it must be a whole number of at least 100"),
        ({"pairs": 500, "statistic": "plug-in"}, "pairs gives an incomplete U-statistic, which is unbiased"),
        ({"pairs": 500, "interval": "bootstrap"}, "interval='bootstrap' needs all pairs of rows"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_fit(options, message):
    problem = random_problem()
    with pytest.raises(InputError, match=message):
        ps.TCPU(**({"source_prior": 0.2} | options)).fit(problem.X, problem.y)


def test_identical_rows_that_are_too_many_to_be_the_same_are_refused():
    X = np.repeat([[0.0, 1], [1, 0]], 100, axis=0)
    with pytest.raises(InputError, match=r"identical.*50 positive and 150 unlabeled"):
        ps.TCPU(0.2).fit(X, np.repeat([1, 0], [50, 150]), shared="identical")


@pytest.mark.parametrize("method", ["km", None, 3])
def test_an_unknown_method_is_refused(method):
    problem = random_problem()
    with pytest.raises(InputError, match=r"'auto', 'witness', 'tcpu', 'km2-ls'"):
        ps.estimate_prior(problem.positive, problem.unlabeled, problem.target, source_prior=0.2, method=method)


def test_an_estimator_as_method_has_its_own_source_prior():
    problem = random_problem()
    with pytest.raises(InputError, match="source_prior was passed"):
        ps.estimate_prior(problem.positive, problem.unlabeled, problem.target, source_prior=0.2, method=ps.TCPU(0.3))


def test_front_door_takes_an_id_column_and_columns_to_drop():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, dimension=3, random_state=0)
    names = list("abc")
    P = pd.DataFrame(s.positive, columns=names).assign(id=s.positive_ids, note="x")
    U = pd.DataFrame(s.unlabeled, columns=names).assign(id=s.unlabeled_ids, note="y")
    T = pd.DataFrame(s.target, columns=names)
    by_id = ps.estimate_prior(P, U, T, method="tcpu", source_prior=0.2, shared="id", drop=["note"])
    told = ps.TCPU(0.2, standardize=True).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    assert by_id.raw == pytest.approx(told.raw, rel=1e-12)
    with pytest.raises(InputError, match=r"'nota'"):
        ps.estimate_prior(P, U, T, source_prior=0.2, shared="id", drop=["note", "nota"])
    with pytest.raises(InputError, match=r"'ID'"):
        ps.estimate_prior(P, U, T, source_prior=0.2, shared="ID", drop=["note"])
