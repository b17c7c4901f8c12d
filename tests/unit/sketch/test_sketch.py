import copy
import tracemalloc
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorshift as ps
from priorshift.embedding.moments import embed_moments
from priorshift.errors import ColumnWarning, InconsistentInputWarning, InputError
from priorshift.io.chunks import Chunks
from priorshift.sketch import Sketch, container
from priorshift.sketch.estimation import estimate_from_sketches, sketch_like_first

pytestmark = pytest.mark.filterwarnings("ignore:The samples are sketches")  # by which "auto" is TCPU

S = ps.simulate.gaussian(0.3, 0.6, 300, 200, dimension=3, shared=False, random_state=3)
FIRST = Sketch.from_sample(S.unlabeled, features=32)


def sketched(s=S, first=FIRST):
    return tuple(Sketch.from_sample(rows, like=first) for rows in (s.positive, s.unlabeled, s.target))


def from_sketches(positive, unlabeled, target, estimator):
    return estimate_from_sketches(estimator, positive=positive, unlabeled=unlabeled, target=target)


def merged(parts, tree):
    """Parts that are merged in the order of a tree: each number says with which neighbour the next one is."""
    parts = list(parts)
    while len(parts) > 1:
        k = tree.pop() % (len(parts) - 1) if tree else 0
        parts[k : k + 2] = [parts[k].merge(parts[k + 1])]
    return parts[0]


@st.composite
def sketches_and_rows(draw):
    """Three samples in memory, with weights or without, and their sketches of parts in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weighted = draw(st.booleans())
    rows, weights, made = [], [], []
    for shift in (1.5, 0.3, 0.8):
        n = draw(st.integers(12, 40))
        X = rng.normal(size=(n, 3)) + shift
        w = rng.uniform(0.2, 3.0, n) if weighted else None
        order = rng.permutation(n)
        cuts = sorted(draw(st.lists(st.integers(1, n - 1), max_size=4, unique=True)))
        parts = [
            Sketch.from_sample(X[part], like=FIRST, weights=None if w is None else w[part])
            for part in np.split(order, cuts)
        ]
        made.append(merged(parts, draw(st.lists(st.integers(0, 5), min_size=4, max_size=4))))
        rows.append(X)
        weights.append(w)
    return rows, weights, made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
@given(drawn=sketches_and_rows())
@settings(max_examples=40)
def test_sketches_answer_as_the_rows_do_whatever_the_parts(drawn, scenario, statistic):
    (P, U, T), weights, sketches = drawn
    settings = {"statistic": statistic, "scenario": scenario}
    P, U, T = (FIRST.design.reader(X, "rows") for X in (P, U, T))
    told = {} if weights[0] is None else {"weights": np.concatenate(weights[:2])}
    tcpu = ps.TCPU(0.3, kernel=FIRST.design.features, standardize=False, **settings)
    tcpu.fit(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]), **told)
    by_rows = tcpu.estimate(T, weights=weights[2])
    made = from_sketches(*sketches, ps.TCPU(0.3, **settings))
    assert made.separation == pytest.approx(by_rows.separation, abs=1e-12)
    if np.isnan(by_rows.raw):
        assert np.isnan(made.raw)
        return
    scale = 1 / min(1.0, by_rows.separation)  # what rounding in the Gram matrix becomes of it in a ratio
    close = {"rel": 1e-10 * scale, "abs": 1e-12 * scale}
    assert made.raw == pytest.approx(by_rows.raw, **close)
    assert made.value == pytest.approx(by_rows.value, **close)
    assert made.standard_error == pytest.approx(by_rows.standard_error, **close)
    for end in ("low", "high"):
        assert getattr(made.interval, end) == pytest.approx(getattr(by_rows.interval, end), **close)
    assert made.sizes == by_rows.sizes and made.details["shared_rows"] == by_rows.details["shared_rows"]
    assert made.details.keys() == by_rows.details.keys()
    assert made.details["embedding"] == by_rows.details["embedding"] == "32 random features"


def test_sketches_answer_as_tcpu_with_random_features():
    """From tables to the line that is printed, with nothing but the same settings."""
    first = Sketch.from_sample(S.unlabeled, features=64)
    made = from_sketches(*sketched(first=first), ps.TCPU(0.3))
    tcpu = ps.TCPU(0.3, embedding="random-features", features=64, random_state=0).fit(S.X, S.y)
    by_rows = tcpu.estimate(S.target)
    assert str(made) == str(by_rows)
    assert made.raw == pytest.approx(by_rows.raw, abs=1e-12)
    assert made.standard_error == pytest.approx(by_rows.standard_error, rel=1e-10)
    different = {key for key in made.details if made.details[key] != by_rows.details[key]}
    assert not different


@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
def test_two_points_have_a_closed_form(statistic):
    """Positives at one point, negatives at the other: each mean is a share, and z(x)·z(y) is the one number needed."""
    x, y, n, m, n_target = [0.0, 1.0], [2.0, 0.0], 50, 20, 40
    pi, target_prior = 0.4, 0.7

    def sample(size, share):
        count = round(size * share)
        return np.array([x] * count + [y] * (size - count))

    first = Sketch.from_sample(sample(n, pi), features=32)
    P, U, T = (Sketch.from_sample(sample(*of), like=first) for of in ((m, 1.0), (n, pi), (n_target, target_prior)))
    z, reader = first.design.features, first.design.reader
    k = float(z.paired(reader([x], "x"), reader([y], "y"))[0])

    def inner(share, other):
        return share * other + (1 - share) * (1 - other) + (share * (1 - other) + (1 - share) * other) * k

    own = (
        (lambda value, size: (value - 1 / size) / (1 - 1 / size)) if statistic == "unbiased" else lambda value, _: value
    )
    PP, UU = own(inner(1, 1), m), own(inner(pi, pi), n)
    PU, PT, UT = inner(1, pi), inner(1, target_prior), inner(pi, target_prior)
    N, D = UT - PU - PT + PP, UU - 2 * PU + PP
    made = from_sketches(P, U, T, ps.TCPU(pi, statistic=statistic))
    assert made.negative_ratio == pytest.approx(N / D, abs=1e-12)
    assert made.separation == pytest.approx(D, abs=1e-12)
    if statistic == "plug-in":
        assert made.raw == pytest.approx(target_prior, abs=1e-12)
        # R moves by (1−R)… of U and T alone, since P has no spread: Var R̂ = (R² π(1−π)/(n−1) + π′(1−π′)/(n′−1))/(1−π)²
        R = (1 - target_prior) / (1 - pi)
        variance = (R**2 * pi * (1 - pi) / (n - 1) + target_prior * (1 - target_prior) / (n_target - 1)) / (1 - pi) ** 2
        assert made.standard_error == pytest.approx((1 - pi) * np.sqrt(variance), rel=1e-9)


def test_the_covariance_is_that_of_every_row():
    """Σ over rows of what each moves, by a loop, for the population under censoring with weights."""
    rng = np.random.default_rng(0)
    weights = [rng.uniform(0.5, 2, len(X)) for X in (S.positive, S.unlabeled, S.target)]
    P, U, T = (
        Sketch.from_sample(X, like=FIRST, weights=w)
        for X, w in zip((S.positive, S.unlabeled, S.target), weights, strict=True)
    )
    made = embed_moments(FIRST.design.features, P.moments, U.moments, T.moments, "plug-in", censoring=True)
    z = [FIRST.design.features.map(FIRST.design.reader(X, "X")) for X in (S.positive, S.unlabeled, S.target)]
    z, w = [z[0], np.concatenate([z[0], z[1]]), z[2]], [weights[0], np.concatenate(weights[:2]), weights[2]]
    mass = [one / one.sum() for one in w]
    means = np.array([m @ one for m, one in zip(mass, z, strict=True)])
    A = np.array([[1.0, -1.0, 0.5], [-1.0, 1.0, -0.5], [0.5, -0.5, 0.2]])  # any symmetric combination
    moves = []
    for k in range(3):
        n = 1 / (mass[k] ** 2).sum()
        centred = (z[k] - means[k]) @ means.T @ A[k] * 2
        moves.append(mass[k] * centred * np.sqrt(n / (n - 1)))
    moves[1][: len(moves[0])] += moves[0]  # rows of P are rows of U
    variance = sum(float((one**2).sum()) for one in moves[1:])
    assert made.variance(A)[0] == pytest.approx(variance, rel=1e-10)
    np.testing.assert_allclose(made.gram, means @ means.T, atol=1e-13)


def test_intervals_hold_the_truth():
    """A nominal 95 % in 100 samples, the first of which fixed the design; 85 is five standard errors below."""
    held = 0
    first = Sketch.from_sample(
        ps.simulate.gaussian(0.3, 0.6, 400, 300, dimension=3, shared=False, random_state=999).unlabeled, features=64
    )
    for seed in range(100):
        s = ps.simulate.gaussian(0.3, 0.6, 400, 300, dimension=3, shared=False, random_state=seed)
        held += 0.6 in from_sketches(*sketched(s, first), ps.TCPU(0.3)).interval
    assert held >= 85


def test_what_is_known_roughly_of_the_source_prior():
    made = from_sketches(*sketched(), ps.TCPU((0.2, 0.4)))
    at = [from_sketches(*sketched(), ps.TCPU(pi)).interval for pi in (0.2, 0.4)]
    assert (made.interval.low, made.interval.high) == (min(i.low for i in at), max(i.high for i in at))
    assert made.source_prior_by == "range"


# ---- how samples come


def frame(X):
    return pd.DataFrame(X, columns=["a", "b", "c"])


def test_every_way_to_pass_rows_gives_the_same_sums(tmp_path):
    table = frame(S.target).assign(w=np.linspace(1, 2, len(S.target)))
    table.to_csv(tmp_path / "t.csv", index=False, float_format="%.17g")
    table.to_parquet(tmp_path / "t.parquet")
    first = Sketch.from_sample(frame(S.unlabeled), features=32)
    told = Sketch.from_sample(frame(S.target), like=first, weights=table["w"])
    ways = {
        "frame": table,
        "csv": tmp_path / "t.csv",
        "parquet": str(tmp_path / "t.parquet"),
        "batches": Chunks.from_source(table, "t", extra=["w"], rows_per_chunk=30),
        "generator": (table[k : k + 50] for k in range(0, len(table), 50)),
        "list": [table[:70], table[70:]],
        "another order": table[["c", "w", "b", "a"]],
    }
    for name, sample in ways.items():
        made = Sketch.from_sample(sample, like=first, weights="w")
        np.testing.assert_allclose(made.moments.total, told.moments.total, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(made.moments.product, told.moments.product, atol=1e-11, err_msg=name)
        assert len(made) == 200
        assert made.moments.weight == pytest.approx(table["w"].sum(), rel=1e-13)


def test_a_stream_fixes_a_design_too():
    parts = [S.unlabeled[k : k + 40] for k in range(0, len(S.unlabeled), 40)]
    made = Sketch.from_sample(iter(parts), features=32)
    assert made.design.fingerprint == FIRST.design.fingerprint
    np.testing.assert_allclose(made.moments.product, FIRST.moments.product, atol=1e-12)


def test_large_samples_fix_a_design_by_some_of_their_rows(monkeypatch):
    monkeypatch.setattr("priorshift.sketch.sketch._DESIGN_ROWS", 100)
    some = Sketch.from_sample(S.unlabeled, features=32)
    assert some.design.fingerprint != FIRST.design.fingerprint and len(some) == len(S.unlabeled)
    assert some.design.fingerprint == Sketch.from_sample(S.unlabeled, features=32).design.fingerprint


def test_mixed_columns_are_encoded_as_the_first_sample_says():
    rng = np.random.default_rng(0)

    def table(n, share):
        levels = np.where(rng.random(n) < share, "yes", "no")
        return pd.DataFrame({"level": levels, "x": rng.normal(size=n) + (levels == "yes"), "id": np.arange(n)})

    U, P, T = table(300, 0.3), table(200, 1.0), table(200, 0.6)
    first = Sketch.from_sample(U, features=64, drop=["id"])
    assert first.design.reader.columns == ("level", "x")
    made = from_sketches(Sketch.from_sample(P, like=first), first, Sketch.from_sample(T, like=first), ps.TCPU(0.3))
    assert made.interval.low < 0.6 < made.interval.high
    assert made.details["bandwidth"] == pytest.approx(1.0)  # two columns: 1/√(2/2)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    monkeypatch.setattr("priorshift.embedding.random_features._CELLS", 32 * 16)
    made = []
    for count in (1, 3):
        monkeypatch.setattr("priorshift.threads.available", lambda count=count: count)
        made.append(Sketch.from_sample(S.target, like=FIRST).moments)
    assert made[0].rows == made[1].rows == 200
    np.testing.assert_allclose(made[0].product, made[1].product, atol=1e-12)
    np.testing.assert_allclose(made[0].total, made[1].total, atol=1e-12)


def test_memory_does_not_grow_with_the_sample():
    """A million rows are 24 MB in 100 tables, of which few are there at a time; blocks of features take 12 MB."""
    table, peaks = np.random.default_rng(0).normal(size=(10_000, 3)), []
    for count in (5, 100):
        tracemalloc.start()
        made = Sketch.from_sample((table.copy() for _ in range(count)), like=FIRST)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert len(made) == 1_000_000
    assert peaks[1] < peaks[0] + 2**20


def test_what_a_thread_refuses_is_said(monkeypatch):
    def tables():
        yield S.target[:50]
        yield np.full((20, 3), np.nan)

    with pytest.raises(InputError, match=r"NaN|no value"):
        Sketch.from_sample(tables(), like=FIRST)


def test_update_adds_rows_and_leaves_the_sketch_as_it_is():
    begun = Sketch.from_sample(S.target[:80], like=FIRST)
    whole = begun.update(S.target[80:])
    assert (len(begun), len(whole)) == (80, 200)
    np.testing.assert_allclose(
        whole.moments.product, Sketch.from_sample(S.target, like=FIRST).moments.product, atol=1e-12
    )


def test_one_line():
    assert str(FIRST) == "sketch of 231 rows: 32 random features of a gaussian kernel, bandwidth 1.22, 3 columns"
    assert (
        FIRST.design.features.kernel.name,
        FIRST.design.features.size,
        FIRST.design.seed,
        FIRST.design.reader.columns,
    ) == ("gaussian", 32, 0, None)
    assert FIRST.design.features.bandwidth == pytest.approx(np.sqrt(1.5))
    weighted = Sketch.from_sample(S.target, like=FIRST, weights=np.linspace(1, 3, 200))
    assert str(weighted).startswith("sketch of 200 rows (effective sample size 184): ")


# ---- files


def test_a_file_gives_back_every_bit(tmp_path):
    for k, made in enumerate((FIRST, Sketch.from_sample(S.target, like=FIRST, weights=np.linspace(1, 2, 200)))):
        made.save(tmp_path / f"{k}.sketch")
        loaded = Sketch.load(tmp_path / f"{k}.sketch")
        for name in ("rows", "weight", "squares", "total", "squared_total", "product"):
            np.testing.assert_array_equal(getattr(loaded.moments, name), getattr(made.moments, name))
        np.testing.assert_array_equal(loaded.design.features.frequencies, made.design.features.frequencies)
        assert loaded.design.fingerprint == made.design.fingerprint and str(loaded) == str(made)
    loaded.merge(FIRST)


def test_loaded_sketches_answer_alike(tmp_path):
    told = from_sketches(*sketched(), ps.TCPU(0.3))
    for sketch, name in zip(sketched(), "put", strict=True):
        sketch.save(tmp_path / name)
    made = ps.estimate_prior(tmp_path / "p", str(tmp_path / "u"), tmp_path / "t", method=ps.TCPU(0.3))
    assert made == told


@pytest.mark.filterwarnings("ignore::priorshift.errors.OutOfRangeWarning")  # of what is swapped
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.6])
def test_swapped_sketches_are_asked_about_and_others_are_not(prior):
    """Twelve draws of classes that are four standard deviations apart: each is asked about where it is swapped."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        P, U, T = (
            rng.normal(size=(n, 3)) + 4 / np.sqrt(3) * (rng.random(n) < share)[:, None]
            for n, share in ((300, 1.0), (1000, prior), (500, 0.5))
        )
        first = Sketch.from_sample(U, features=64)
        made = [Sketch.from_sample(rows, like=first) for rows in (P, U, T)]
        ps.estimate_prior(*made, method="tcpu", source_prior=prior)  # a warning would be an error
        ps.estimate_prior(*made, method="tcpu", source_prior=(prior / 2, prior))
        with pytest.warns(InconsistentInputWarning, match=f"swapped.* {prior} "):
            ps.estimate_prior(made[1], made[0], made[2], method="tcpu", source_prior=prior)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
def test_sketches_that_cannot_tell_are_not_asked_about():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.5, 1.0):
        U = rng.normal(size=(1000, 3))
        P = rng.normal(size=(300, 3)) + shift
        first = Sketch.from_sample(U, features=64)
        positive, target = Sketch.from_sample(P, like=first), Sketch.from_sample(U, like=first)
        ps.estimate_prior(positive, first, target, method="tcpu", source_prior=0.3)


def test_tables_beside_sketches_are_sketched_like_them():
    rows = {"positive": S.positive, "unlabeled": S.unlabeled, "target": S.target}
    expected = from_sketches(*sketched(), ps.TCPU(0.3))
    for name, sketch in (("unlabeled", FIRST), ("target", sketched()[2])):
        assert estimate_from_sketches(ps.TCPU(0.3), **sketch_like_first(rows | {name: sketch})) == expected
    weights = np.linspace(1, 2, 200)
    weighted = sketch_like_first(rows | {"unlabeled": FIRST}, {"target": weights})["target"]
    assert weighted.moments.weight == pytest.approx(weights.sum())
    with pytest.raises(InputError, match=r"weights.*unlabeled"):
        sketch_like_first(rows | {"unlabeled": FIRST}, {"unlabeled": weights})


def _header(*path, to):
    def change(header, arrays):
        place = reduce(lambda at, key: at[key], path[:-1], header)
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to

    return change


def _array(name, to):
    def change(header, arrays):
        arrays[name] = np.asarray(to(arrays[name].copy()))

    return change


def _at(index, to):
    def put(array):
        array[index] = to(array[index])
        return array

    return put


def _moved(index, by):
    """A pair of cosine and sine whose part of the trace stays, so that only the spread can tell."""

    def put(array):
        array[index] += by
        return array

    return put


def _diagonal(k, size=32):
    return k * size - k * (k - 1) // 2  # of the upper triangle, row by row


def _dropped(name):
    def change(header, arrays):
        del arrays[name]

    return change


def _without(*path):
    def change(header, arrays):
        del reduce(lambda at, key: at[key], path[:-1], header)[path[-1]]

    return change


DESIGN, SUMS = ("design",), ("moments",)
MUTATIONS = {
    # the design: any change is another fingerprint
    **{f"seed {k}": _header(*DESIGN, "seed", to=k) for k in (1, -1, 2**64, 0.5, "0", None, True)},
    **{f"features {k}": _header(*DESIGN, "features", to=k) for k in (30, 34, 33, 0, -2, 2**40, 32.0, None)},
    **{f"kernel {k}": _header(*DESIGN, "kernel", to=k) for k in ("laplace", "energy", "", 1, None)},
    **{f"bandwidth {k}": _header(*DESIGN, "bandwidth", to=k) for k in (1.0, 0.0, -1.0, "wide", None, 1e300)},
    **{f"rule {k}": _header(*DESIGN, "bandwidth_by", to=k) for k in ("median", "variance", None, 3)},
    "standardize": _header(*DESIGN, "standardize", to=False),
    "standardize is no flag": _header(*DESIGN, "standardize", to=1),
    "fingerprint": _header(*DESIGN, "fingerprint", to="0" * 64),
    "columns": _header(*DESIGN, "reader", "columns", to=["a", "b", "c"]),
    "more columns": _header(*DESIGN, "reader", "width", to=4),
    "drop": _header(*DESIGN, "reader", "drop", to=["x"]),
    "shift": _header(*DESIGN, "reader", "shift", to=lambda shift: [0.0, *shift[1:]]),
    "factor": _header(*DESIGN, "reader", "factor", to=lambda factor: [2.0, *factor[1:]]),
    "a column left out": _header(*DESIGN, "reader", "factor", to=lambda factor: [0.0, *factor[1:]]),
    "no design": _without("design"),
    "no seed": _without(*DESIGN, "seed"),
    "something besides": lambda header, arrays: header.update(more=1),
    "frequencies": _array("frequencies", lambda f: f * (1 + 1e-12)),
    "frequencies in another order": _array("frequencies", lambda f: f[:, ::-1]),
    "fewer frequencies": _array("frequencies", lambda f: f[:, 1:]),
    "frequencies of more columns": _array("frequencies", lambda f: np.vstack([f, f[:1]])),
    "whole frequencies": _array("frequencies", lambda f: f.astype(np.int64)),
    "no frequencies": _dropped("frequencies"),
    # the counts
    **{f"rows {k}": _header(*SUMS, "rows", to=k) for k in (0, -1, 1, 230, 232, 10**9, 231.0, None, True)},
    "weighted": _header(*SUMS, "weighted", to=True),
    "weight": _array("weights", _at(0, lambda w: w + 1)),
    "less weight": _array("weights", _at(0, lambda w: w / 2)),
    "no weight": _array("weights", lambda w: 0 * w),
    "weights whose squares overflow": _array("weights", lambda w: np.array([1e200, 1e300])),
    "negative weight": _array("weights", lambda w: -w),
    "more squares": _array("weights", _at(1, lambda w: w * w * w)),
    "fewer squares": _array("weights", _at(1, lambda w: w / 2)),
    "three sums": _array("weights", lambda w: np.append(w, 1.0)),
    # the sums
    "a long mean": _array("total", lambda t: t * 300 / np.linalg.norm(t)),
    "another mean": _array("total", lambda t: -t),
    "another mean of squares": _array("squared_total", lambda t: t / 2),
    "a short mean": _array("total", lambda t: t[1:]),
    "no mean": _dropped("total"),
    "a large second moment": _array("product", lambda q: 2 * q),
    "a huge mean": _array("total", lambda t: 0 * t + 1e308),
    "a huge mean of squares": _array("squared_total", lambda t: 0 * t + 1e308),
    "a huge second moment": _array("product", lambda q: 0 * q + 1e308),
    "no second moment": _array("product", lambda q: 0 * q),
    "a negative second moment": _array("product", lambda q: -q),
    "a part of the trace moved": _array("product", lambda q: _moved(_diagonal(0), 5.0)(_moved(_diagonal(1), -5.0)(q))),
    "an entry off the diagonal": _array("product", _moved(3, 100.0)),
    "the spread is negative": _array("product", lambda q: _moved(_diagonal(0), -7.0)(_moved(_diagonal(16), 7.0)(q))),
    "the whole second moment": _array("product", lambda q: np.append(q, q)),
    "an array besides": lambda header, arrays: arrays.update(more=np.zeros(3)),
    "no sums": _without("moments"),
    "no rows": _without(*SUMS, "rows"),
}  # fmt: skip


@pytest.mark.parametrize("change", MUTATIONS)
def test_what_cannot_be_a_sketch_is_refused(change, tmp_path):
    """The checksum is right: it is what the file says that cannot be."""
    path = tmp_path / "a.sketch"
    FIRST.save(path)
    contents = container.read(path, ["sketch"])
    header, arrays = copy.deepcopy(contents.header), dict(contents.arrays)
    MUTATIONS[change](header, arrays)
    container.write(path, "sketch", header, arrays)
    with pytest.raises(InputError, match=r"a\.sketch: .*damaged"):
        Sketch.load(path)


def test_there_are_sixty_of_them():
    assert len(MUTATIONS) >= 60


def test_of_weighted_sketches_too(tmp_path):
    path, weights = tmp_path / "a.sketch", np.linspace(1, 2, 200)
    Sketch.from_sample(S.target, like=FIRST, weights=weights).save(path)
    contents = container.read(path, ["sketch"])
    header = contents.header | {"moments": contents.header["moments"] | {"rows": 100}}
    container.write(path, "sketch", header, contents.arrays)
    with pytest.raises(InputError, match=r"100 rows"):
        Sketch.load(path)


def test_another_kind_of_file(tmp_path):
    container.write(tmp_path / "h", "histogram", {}, {})
    with pytest.raises(InputError, match=r"histogram.*sketch"):
        Sketch.load(tmp_path / "h")


# ---- wrong use


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"features": 64}, "features: 32 and 64"),
        ({"random_state": 1}, "seed: 0 and 1"),
        ({"kernel": "laplace"}, "kernel: gaussian and laplace"),
        ({"bandwidth": 2.0}, r"bandwidth: 1\.22.* and 2\.0"),
        ({"standardize": False}, "standardize: True and False"),
    ],
)
def test_sketches_of_two_designs_do_not_add_up(settings, said):
    other = Sketch.from_sample(S.unlabeled, **({"features": 32} | settings))
    with pytest.raises(InputError, match=rf"designs.*\({said}\)"):
        FIRST.merge(other)
    P, U, _ = sketched()
    with pytest.raises(InputError, match=f"unlabeled and target.*designs.*{said}"):
        from_sketches(P, U, other, ps.TCPU(0.3))


def test_other_columns_and_another_scale_are_another_design():
    with pytest.raises(InputError, match=r"columns: 3 .*'a', 'b', 'c'"):
        FIRST.merge(Sketch.from_sample(frame(S.unlabeled), features=32))
    with pytest.raises(InputError, match="encoding and scale of the columns"):
        FIRST.merge(Sketch.from_sample(S.target, features=32))
    with pytest.raises(InputError, match=r"2 features"):
        FIRST.update(S.target[:, :2])


def test_a_column_that_was_left_out_is_spoken_of():
    flat = np.insert(S.unlabeled, 1, 5.0, axis=1)
    first = Sketch.from_sample(flat, features=32)
    with pytest.warns(ColumnWarning, match=r"column 1"):
        first.update(np.insert(S.target, 1, 6.0, axis=1))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"features": 15}, "at least 16"),
        ({"features": 33}, "pass an even number"),
        ({"features": 10_000}, "pass at most 8192"),
        ({"features": "many"}, "features is 'many'"),
        ({"kernel": "energy"}, "kernel is 'energy', but it must be one of 'gaussian', 'laplace'"),
        ({"kernel": np.dot}, "a sketch supports 'gaussian' and 'laplace'"),
        ({"bandwidth": "variance"}, "a positive number or one of 'dimension' or 'median'"),
        ({"bandwidth": -1.0}, "bandwidth is -1.0"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "a"}, "random_state is 'a'"),
        ({"drop": "z"}, "column 'z' to drop"),
        ({"drop": ["a"], "weights": "a"}, "the column 'a' is both weights and dropped"),
        ({"weights": "z"}, "no column 'z'"),
        ({"weights": [1.0, 2.0]}, r"weights has shape \(2,\) but the sample has 231 rows"),
        ({"weights": np.zeros(231)}, "weights holds 0 in row 0"),
        ({"like": 3}, "like is of type int, but it must be a Sketch"),
        ({"like": FIRST, "features": 32}, "features was passed together with like"),
        ({"like": FIRST, "drop": ["a"]}, "drop was passed together with like"),
    ],
)
def test_what_cannot_be_sketched_is_said(settings, match):
    with pytest.raises(InputError, match=match):
        Sketch.from_sample(frame(S.unlabeled) if settings.keys() & {"drop", "weights"} else S.unlabeled, **settings)


def test_streams_have_weights_in_a_column():
    with pytest.raises(InputError, match=r"column"):
        Sketch.from_sample(iter([S.target]), like=FIRST, weights=np.ones(200))
    named = Sketch.from_sample(frame(S.unlabeled), features=32)
    with pytest.raises(InputError, match=r"column 'w'"):
        Sketch.from_sample(Chunks.from_source(frame(S.target), "t"), like=named, weights="w")


def test_merge_takes_sketches():
    with pytest.raises(InputError, match=r"ndarray"):
        FIRST.merge(S.target)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (ps.TCPU(), "cannot estimate the source prior"),
        (ps.TCPU(ps.KM2()), "cannot estimate the source prior"),
        (ps.TCPU(0.3, interval="bootstrap"), "interval='bootstrap' draws rows, which sketches do not have"),
        (ps.TCPU(0.3, interval="sharp-bound"), "proved for kernels without negative values"),
        (ps.TCPU(0.3, pairs=100), "pairs=100 needs rows, which sketches do not have"),
        (ps.TCPU(0.3, embedding="exact"), "embedding='exact' needs rows"),
        (ps.TCPU(1.3), "source_prior is 1.3"),
        (ps.WitnessShift(0.3), "sketches are for TCPU"),
    ],
)
def test_what_sketches_cannot_answer_is_said(estimator, match):
    with pytest.raises(InputError, match=match):
        from_sketches(*sketched(), estimator)


def test_samples_of_one_row_or_its_worth():
    P, U, _ = sketched()
    with pytest.raises(InputError, match=r"target has 1 row"):
        from_sketches(P, U, Sketch.from_sample(S.target[:1], like=FIRST), ps.TCPU(0.3))
    heavy = Sketch.from_sample(S.target[:2], like=FIRST, weights=[1.0, 100.0])
    with pytest.raises(InputError, match=r"effective sample size is 1\.02"):
        from_sketches(P, U, heavy, ps.TCPU(0.3))
    with pytest.raises(InputError, match=r"ndarray.*Sketch"):
        from_sketches(P, U, S.target, ps.TCPU(0.3))
