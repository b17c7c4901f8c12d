"""The same answers from rows in many places: any cut, any scheduler, and a worker lost on the way."""

import os
import pickle
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift import threads
from priorshift.embedding.tiles import Rows
from priorshift.embedding.tiles import kernel_sums as sums_here
from priorshift.errors import ColumnWarning, DuplicateRowsWarning, InputError, InputTypeError, MissingExtraError
from priorshift.kernels import Energy, Gaussian, Laplace
from priorshift.sketch import Histogram, ScoreModel, Sketch
from priorshift.warning_records import record_warnings, warn

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
from dask import delayed

from priorshift import estimate_prior
from priorshift.distributed import exact as exact_sums
from priorshift.distributed import histogram, sketch
from priorshift.distributed.collections import Outcome, compute, tree
from priorshift.distributed.exact import kernel_sums

_SAMPLES = ps.simulate.gaussian(
    0.2, 0.6, n_source=300, n_target=250, dimension=3, distance=2.0, shared=False, random_state=0
)
P, U, T = _SAMPLES.positive, _SAMPLES.unlabeled, _SAMPLES.target
SIZES = st.lists(st.integers(0, 120), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def model():
    return ScoreModel.fit(P, U, repeats=2, max_rows=200)


@pytest.fixture(scope="module")
def model_by_place():
    """Of rows of which most are copies by chance, which it deals to folds by their place."""
    made = ScoreModel.fit(np.sign(P[:60, :2]), np.sign(U[:200, :2]), repeats=2, use_km2=False)
    assert made.by_place
    return made


@pytest.fixture(autouse=True)
def _one_thread():
    """Where a test names no client, tasks run one after the other, here."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def client():
    """Two processes; one that is lost is started again."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def cut(X, sizes):
    """Slices of these sizes, some of them empty, and the rest."""
    edges = np.minimum(np.cumsum([0, *sizes]), len(X))
    return [X[a:b] for a, b in zip(edges, [*edges[1:], len(X)], strict=True)]


def as_array(X, sizes, columns=2):
    """As Dask has it, also with columns in two chunks."""
    return da.from_array(X, chunks=(tuple(len(piece) for piece in cut(X, sizes)), columns))


def as_frame(X, sizes):
    pieces = cut(X, sizes)
    return dd.from_delayed([delayed(piece) for piece in pieces], meta=X.iloc[:0], verify_meta=False)


def frame(X, seed=0):
    """Numbers, text, an id and weights."""
    rng = np.random.default_rng([seed, len(X)])
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["colour"] = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-X[:, 0])), "red", "blue")
    table["id"] = np.arange(len(X))
    table["w"] = rng.uniform(0.5, 2, len(X))
    return table


def same_sketch(a, b):
    assert a.design.fingerprint == b.design.fingerprint
    assert len(a) == len(b)
    for name in ("total", "squared_total", "product"):
        of_a, of_b = (getattr(one.moments, name) / len(one) for one in (a, b))
        np.testing.assert_allclose(of_a, of_b, rtol=0, atol=1e-10)


def same_histogram(a, b):
    assert a.model == b.model
    assert len(a) == len(b)
    for name in ("counts", "pairs", "levels"):
        np.testing.assert_allclose(getattr(a.counted, name), getattr(b.counted, name), rtol=0, atol=1e-10)


def same_estimate(a, b):
    for x, y in (
        (a.value, b.value),
        (a.standard_error, b.standard_error),
        (a.interval.low, b.interval.low),
        (a.interval.high, b.interval.high),
    ):
        assert abs(x - y) < 1e-10
    assert a.sizes == b.sizes


# --- the tree


def reduce_parts(parts, merge, fan_in=8):
    return compute([tree([delayed(Outcome)(part) for part in parts], merge, fan_in)])[0]


@pytest.mark.parametrize("fan_in", [2, 3, 8])
@pytest.mark.parametrize("parts", [1, 2, 7, 9, 70])
def test_a_tree_merges_all_parts_once_in_their_order(parts, fan_in):
    letters = [chr(64 + k) for k in range(parts)]
    assert reduce_parts([delayed(a) for a in letters], str.__add__, fan_in=fan_in) == "".join(letters)


def test_a_tree_is_flat():
    def merge(a, b):
        return a[0] + b[0], max(a[1], b[1]) + 1

    total, depth = reduce_parts([delayed((1, 0)) for _ in range(512)], merge, fan_in=8)
    assert total == 512
    assert depth == 3 * 7  # three levels, each of seven merges one after the other; a chain would be 511


def test_parts_without_rows_are_passed_over():
    assert reduce_parts([delayed(one) for one in (None, 3, None, 4)], int.__add__) == 7
    assert reduce_parts([delayed(None), delayed(None)], int.__add__) is None


def test_work_of_a_task_stays_on_its_thread_and_says_nothing_there():
    def work():
        warn("a column", ColumnWarning)
        warn("a column", ColumnWarning)
        return threads.available()

    assert sys.getsizeof(Outcome(Sketch.from_sample(U, features=32).moments)) > 8 * 32**2  # what a scheduler goes by
    outcome = pickle.loads(pickle.dumps(Outcome.run(work)))
    assert outcome == Outcome(1, None, ((ColumnWarning, "a column"),))
    with pytest.warns(ColumnWarning, match="a column"):
        assert compute([delayed(outcome)]) == [1]
    with record_warnings(ColumnWarning, show=False) as outer, record_warnings(ColumnWarning, show=False) as inner:
        warn("a column", ColumnWarning)
    assert (len(outer), len(inner)) == (0, 1)


def test_without_dask_a_sentence_says_what_to_install(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "dask", None)
    for ask in (lambda: sketch(U), lambda: histogram(U, model)):
        with pytest.raises(MissingExtraError, match=r"dask.*pip install"):
            ask()


# --- any cut of the rows


@settings(max_examples=8)
@given(SIZES, SIZES)
def test_sketches_are_those_of_the_whole_for_any_cut(sizes, others):
    whole = Sketch.from_sample(U, features=32)
    same_sketch(sketch(as_array(U, sizes), features=32), whole)
    same_sketch(sketch(as_array(T, others), like=whole), Sketch.from_sample(T, like=whole))
    how = {"features": 32, "drop": "id", "weights": "w", "random_state": 3, "bandwidth": "median"}
    same_sketch(sketch(as_frame(frame(U), sizes), **how), Sketch.from_sample(frame(U), **how))


@settings(max_examples=6)
@given(SIZES)
def test_histograms_are_those_of_the_whole_for_any_cut(model, model_by_place, sizes):
    same_histogram(histogram(as_array(T, sizes), model), Histogram.from_sample(T, model))
    copies = np.sign(np.repeat(T[:9, :2], 20, axis=0))
    same_histogram(histogram(as_array(copies, sizes), model_by_place), Histogram.from_sample(copies, model_by_place))


def test_estimates_are_those_of_tables_here(monkeypatch):
    monkeypatch.setattr(exact_sums, "BLOCK", 100)
    arrays = as_array(P, [20]), as_array(U, [90, 0, 70]), as_array(T, [7])
    tables = [frame(X) for X in (P, U, T)]
    frames = tables[0], as_frame(tables[1], [101, 30]), as_frame(tables[2], [50])
    tcpu = {"method": "tcpu", "source_prior": 0.2}
    for how in (tcpu, {"source_prior": 0.2, "random_state": 0}):
        same_estimate(estimate_prior(*arrays, **how), ps.estimate_prior(P, U, T, stream=True, **how))
    # with text; of the default also without a prior, of the other with weights
    for how in (tcpu | {"weights": "w", "drop": "id"}, {"random_state": 0, "drop": ["id", "w"]}):
        same_estimate(estimate_prior(*frames, **how), ps.estimate_prior(*tables, stream=True, **how))
    by_pairs = ps.TCPU(0.2, embedding="exact")
    same_estimate(estimate_prior(*arrays, method=by_pairs), ps.estimate_prior(P, U, T, **tcpu))
    for how in ({"drop": ["id", "w"]}, {"drop": ["id"], "weights": "w"}):
        same_estimate(estimate_prior(*frames, method=by_pairs, **how), ps.estimate_prior(*tables, **tcpu, **how))
    assert estimate_prior(*frames, method=by_pairs, **how).details["columns"]["a"]["kind"] == "number"
    censored = ps.TCPU(0.2, scenario="censoring", kernel="laplace", embedding="exact", standardize=False)
    same_estimate(estimate_prior(*arrays, method=censored), ps.estimate_prior(P, U, T, method=censored))


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_several_classes_are_those_of_tables_here(method):
    priors = {"a": 0.2, "b": 0.3}
    s = ps.simulate.gaussian_classes(
        priors, {"a": 0.5, "b": 0.1}, n_class=60, n_source=150, n_target=120, dimension=3, random_state=0
    )
    shift = ps.MulticlassShift(priors, method=method, model=LogisticRegression(), repeats=1, random_state=0)
    here = ps.estimate_prior(s.classes, s.unlabeled, s.target, method=shift, stream=True)
    classes = {**s.classes, "a": da.from_array(s.classes["a"], chunks=(25, 3))}
    unlabeled, target = (da.from_array(X, chunks=(70, 3)) for X in (s.unlabeled, s.target))
    found = ps.estimate_prior(classes, unlabeled, target, method=shift)
    for name, estimate in here.items():
        assert found[name].raw == pytest.approx(estimate.raw, rel=1e-9)
        assert found[name].standard_error == pytest.approx(estimate.standard_error, rel=1e-9)


def test_weights_and_columns_to_drop_may_stand_in_one_table():
    of_P, of_U, of_T = (frame(X).drop(columns=["id", "w"]) for X in (P, U, T))
    of_T = of_T.assign(w=1.0 + np.arange(len(T)) % 2, id="a")
    there = as_frame(of_P, [20]), as_frame(of_U, [101, 30]), as_frame(of_T, [50])
    for how in (
        {"method": "tcpu", "source_prior": 0.2, "weights": "w", "drop": ["id"]},
        {"source_prior": 0.2, "random_state": 0, "drop": ["id", "w"]},
    ):
        same_estimate(estimate_prior(*there, **how), ps.estimate_prior(of_P, of_U, of_T, stream=True, **how))
        with pytest.raises(InputError, match=r"'ID'"):
            estimate_prior(*there, **how | {"drop": ["ID"]})


def test_copies_count_as_one_on_a_cluster_too(monkeypatch):
    """Rows that count differently have weights in the kernel sums."""
    monkeypatch.setattr(exact_sums, "BLOCK", 100)
    copied, how = np.concatenate([U, U[:30]]), {"method": "tcpu", "source_prior": 0.2}
    with pytest.warns(DuplicateRowsWarning, match="30 of"):
        here = ps.estimate_prior(P, copied, T, **how)
    collections = as_array(copied, [120]), as_array(T, [60])
    with pytest.warns(DuplicateRowsWarning, match="30 of"):
        there = estimate_prior(P, *collections, method=ps.TCPU(0.2, embedding="exact"))
    same_estimate(there, here)


def test_a_sample_of_rows_is_the_one_of_a_table():
    """Of more rows than fix a design, the same ones are drawn; the scale tells."""
    X = np.random.default_rng(0).normal(size=(70_000, 2))
    made, whole = sketch(as_array(X, [30_000, 500]), features=16), Sketch.from_sample(X, features=16)
    assert not np.allclose(whole.design.reader.scaling.shift, X.mean(axis=0), rtol=0, atol=1e-12)
    same_sketch(made, whole)


def test_every_kind_of_collection_has_the_same_rows():
    table = frame(T).drop(columns=["id"])
    first = Sketch.from_sample(table, features=32)
    pieces = cut(table, [40, 0, 99])
    turned = [piece[piece.columns[::-1]] if k % 2 else piece for k, piece in enumerate(pieces)]
    unknown = dd.from_pandas(table, npartitions=3)
    for made in (
        sketch(as_frame(table, [40, 0, 99]), like=first),
        sketch([delayed(piece) for piece in turned], features=32),  # columns in another order
        sketch(db.from_sequence(table.to_dict("records"), npartitions=4), like=first),
        sketch(delayed(table), like=first),
        sketch(unknown[unknown.a < 99], like=first),  # divisions are known, lengths are not
    ):
        same_sketch(made, first)
    numbers = Sketch.from_sample(T, features=32)
    of_unknown_length = as_array(T, [40, 99])[as_array(T, [40, 99])[:, 0] < 99]
    assert np.isnan(of_unknown_length.shape[0])
    same_sketch(sketch(of_unknown_length, features=32), numbers)
    same_sketch(sketch(db.from_sequence(T.tolist(), npartitions=4), features=32), numbers)
    np.testing.assert_allclose(*(kernel_sums(Gaussian(1.0), X)[0] for X in (of_unknown_length, T)), rtol=1e-12)


def test_parts_of_files_may_be_read_together(tmp_path):
    """Of Parquet files of which few columns are asked for, Dask reads several as one part where it can."""
    table = frame(T)
    for start in range(0, len(table), 45):
        table.iloc[start : start + 45].to_parquet(tmp_path / f"{start:03}.parquet")
    some = dd.read_parquet(tmp_path)
    for made in (some[["a", "b"]], some[some.a < 99][["a", "b"]]):
        same_sketch(sketch(made, features=32), Sketch.from_sample(table[["a", "b"]], features=32))
        np.testing.assert_allclose(
            kernel_sums(Gaussian(1.0), made)[0], kernel_sums(Gaussian(1.0), T[:, :2])[0], rtol=1e-12
        )


def test_threads_give_the_same_answer():
    with dask.config.set(scheduler="threads"):
        same_sketch(sketch(as_array(U, [9] * 20), features=32), Sketch.from_sample(U, features=32))


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplace(2.0), Energy()], ids=lambda k: k.name)
@settings(max_examples=4)
@given(SIZES, st.integers(37, 110))
def test_kernel_sums_are_those_of_memory_for_any_cut(kernel, sizes, block):
    x, y = (Rows(Z, np.zeros(3), np.ones(3)) for Z in (U, T))
    v, w = (np.random.default_rng(len(Z)).uniform(0.5, 2, len(Z)) for Z in (U, T))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sums, "BLOCK", block)
        for made, there in (
            (kernel_sums(kernel, as_array(U, sizes), as_array(T, [150])), sums_here(kernel, x, y)),
            (kernel_sums(kernel, as_array(U, sizes), T, weights=(v, w)), sums_here(kernel, x, y, weights=(v, w))),
            (kernel_sums(kernel, as_array(U, sizes), weights=(v, None)), sums_here(kernel, x, weights=(v, v))),
        ):
            for a, b in zip(made, there, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


# --- a cluster of two processes


def slow_reader(notes):
    """Who reads a table slowly, and leaves a note; made here, so that workers need not import this file."""

    def read(table):
        Path(notes, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(0.1)
        return table

    return delayed(read)


def readers(notes):
    return [int(note.name.split("-")[0]) for note in notes.iterdir()]


def test_a_cluster_gives_the_same_answers(client, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_sums, "BLOCK", 100)
    first, table = Sketch.from_sample(U, features=32), frame(T)
    futures = client.map(np.asarray, cut(T, [50, 0, 120]))
    same_sketch(sketch(futures, like=first, client=client), Sketch.from_sample(T, like=first))
    samples = frame(P), as_frame(frame(U), [120]), as_frame(table, [99, 99])
    tables, how = (frame(P), frame(U), table), {"source_prior": 0.2, "random_state": 0, "drop": ["id", "w"]}
    with dask.config.set(scheduler=None), client.as_current():
        counted = estimate_prior(*samples, **how)
        by_pairs = estimate_prior(*samples, method=ps.TCPU(0.2, embedding="exact"), drop=["id", "w"])
        from_futures = estimate_prior(P, U, futures, source_prior=0.2, random_state=0)
    same_estimate(counted, ps.estimate_prior(*tables, stream=True, **how))
    same_estimate(by_pairs, ps.estimate_prior(*tables, method="tcpu", **how))
    same_estimate(from_futures, ps.estimate_prior(P, U, T, source_prior=0.2, random_state=0, stream=True))
    with dask.config.set(scheduler=None), client.as_current():
        assert reduce_parts([slow_reader(tmp_path)(k) for k in range(3)], int.__add__) == 3
    assert os.getpid() not in readers(tmp_path)


def test_summaries_travel_and_rows_do_not(client):
    def sent(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    def read(seed):
        return pd.DataFrame(np.random.default_rng(seed).normal(size=(10_000, 3)), columns=list("abc"))

    made_there = dd.from_map(read, range(20), meta=read(0).iloc[:0])
    first = Sketch.from_sample(read(0), features=32)
    before = sum(client.run(sent).values())
    made = sketch(made_there, like=first, client=client)
    travelled = sum(client.run(sent).values()) - before
    assert 0 < travelled < read(0).to_numpy().nbytes  # not one part of twenty
    same_sketch(made, Sketch.from_sample([read(k) for k in range(20)], like=first))


def test_a_worker_killed_on_the_way_changes_nothing(client, tmp_path):
    first = Sketch.from_sample(U, features=32)
    parts = [slow_reader(tmp_path)(piece) for piece in np.array_split(T, 24)]
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(sketch, parts, like=first, client=client)
        while len(readers(tmp_path)) < 8 and not made.done():
            time.sleep(0.01)
        assert not made.done()
        lost = readers(tmp_path)[0]
        os.kill(lost, signal.SIGKILL)
        same_sketch(made.result(timeout=60), Sketch.from_sample(T, like=first))
    assert len(readers(tmp_path)) > len(parts)  # what was lost was read again,
    assert len(readers(tmp_path)) < 2 * len(parts)  # and nothing else


def test_bad_rows_on_a_cluster_get_a_sentence(client):
    first = Sketch.from_sample(U, features=32)
    bad = T.copy()
    bad[100, 1] = np.nan
    with pytest.raises(InputError, match=r"partition 1: .*row 10 .*column 1"):
        sketch(as_array(bad, [90]), like=first, client=client)


# --- what is refused, and what is said


def test_what_is_wrong_is_said_of_its_partition(model):
    first = Sketch.from_sample(frame(U), features=32, drop=["id", "w"])
    wrong = frame(T).drop(columns="b")
    with pytest.raises(InputError, match=r"partition 0: .*'b'"):
        sketch(as_frame(wrong, [50]), like=first)
    with pytest.raises(InputError, match=r"partition 0: .*2 features"):
        histogram(as_array(T[:, :2], [50]), model)
    bad = T.copy()
    bad[77, 2] = np.inf
    with pytest.raises(InputError, match=r"partition 1: target .*inf.*row 27"):
        estimate_prior(P, U, as_array(bad, [50]), source_prior=0.2, random_state=0)
    with pytest.raises(InputError, match=r"partition 1: X .*inf.*row 27"):
        kernel_sums(Gaussian(1.0), as_array(bad, [50]))
    with pytest.raises(InputError, match=r"2 features .* 3"):
        kernel_sums(Gaussian(1.0), T, as_array(T[:, :2], [50]))


def test_samples_without_rows_are_refused(model):
    nothing = [delayed(T[:0]), delayed(T[:0])]
    first = Sketch.from_sample(U, features=32)
    for ask in (
        lambda: sketch(nothing, like=first),
        lambda: histogram(nothing, model),
        lambda: kernel_sums(Gaussian(1.0), nothing),
        lambda: estimate_prior(P, U, nothing, method="tcpu", source_prior=0.2),
        lambda: estimate_prior(P, U, nothing, method=ps.TCPU(0.2, embedding="exact")),
    ):
        with pytest.raises(InputError, match=r"2 partitions"):
            ask()
    with pytest.raises(InputError, match="has no rows"):
        sketch(nothing)


def test_settings_that_cannot_be_are_refused():
    array = as_array(T, [50])
    first = Sketch.from_sample(U, features=32)
    with pytest.raises(InputTypeError, match=r"ndarray.*Dask"):
        sketch(T, like=first)
    with pytest.raises(InputTypeError, match=r"Series"):
        sketch(as_frame(frame(T), [50]).a, like=first)
    with pytest.raises(InputError, match=r"1 dimension"):
        sketch(array[:, 0], like=first)
    with pytest.raises(InputError, match=r"features.*like"):
        sketch(array, like=first, features=64)
    with pytest.raises(InputError, match=r"weights.*ndarray"):
        sketch(array, weights=T[:, 0])
    with pytest.raises(InputError, match=r"ScoreModel"):
        histogram(array, first)
    with pytest.raises(InputError, match=r"kernel.*'gaussian'"):
        kernel_sums("gaussian", array)
    with pytest.raises(InputError, match=r"KM2LS.*memory"):
        estimate_prior(P, U, array, method="km2-ls")
    with pytest.raises(InputError, match=r"weighted"):
        estimate_prior(P, U, array, weights="w")
    with pytest.raises(InputError, match=r"client.*str"):
        sketch(array, like=first, client="tcp://somewhere")
    with pytest.raises(InputTypeError, match="Dask DataFrame"):
        estimate_prior(P, U, as_frame(frame(T), [50]), source_prior=0.2, stream=False)
    with pytest.raises(InputError, match=r"source prior"):
        estimate_prior(P, U, array, method="tcpu")


def test_a_warning_of_many_partitions_is_given_once():
    still = U.copy()
    still[:, 2] = 1.0
    first = Sketch.from_sample(still, features=32)
    with pytest.warns(ColumnWarning, match=r"column 2") as said:
        sketch(as_array(T, [20] * 9), like=first)
    assert len(said) == 1
