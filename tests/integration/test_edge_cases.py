"""Unusual data that are no mistake: the answer must be right, and nothing must be cried over."""

import numpy as np
import pytest
from exact_problems import random_problem

import priorshift as ps
from priorshift.errors import InputError
from priorshift.io.scaling import Scaling

PROBLEM = random_problem(copies=(2, 3, 2, 1))
GOOD = {"positive": PROBLEM.positive, "unlabeled": PROBLEM.unlabeled, "target": PROBLEM.target}


def test_duplicated_rows_are_no_error():
    doubled = {k: np.repeat(v, 2, axis=0) for k, v in GOOD.items()}
    method = ps.TCPU(PROBLEM.source_prior, statistic="plug-in")
    assert ps.estimate_prior(**doubled, method=method).raw == pytest.approx(PROBLEM.target_prior, abs=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_pandas_names_that_are_not_text_are_matched():
    import pandas as pd

    frames = {k: pd.DataFrame(v) for k, v in GOOD.items()}  # columns 0, 1, 2
    frames["target"] = frames["target"][[2, 0, 1]]
    method = ps.TCPU(PROBLEM.source_prior, statistic="plug-in")
    assert ps.estimate_prior(**frames, method=method).raw == pytest.approx(PROBLEM.target_prior, abs=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_record_batches_keep_their_names():
    import pyarrow as pa

    def batch(X, names):
        return pa.RecordBatch.from_arrays([pa.array(X[:, "abc".index(c)]) for c in names], names=list(names))

    method = ps.TCPU(PROBLEM.source_prior, statistic="plug-in")
    tables = [batch(GOOD["positive"], "abc"), batch(GOOD["unlabeled"], "abc"), batch(GOOD["target"], "cab")]
    assert ps.estimate_prior(*tables, method=method).raw == pytest.approx(PROBLEM.target_prior, abs=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_rounding_noise_is_no_spread():
    """A column of 0.3 and 0.1 + 0.2 is constant; scaling its noise up would drown everything else."""
    noisy = {k: np.column_stack([v, np.where(np.arange(len(v)) % 2, 0.3, 0.1 + 0.2)]) for k, v in GOOD.items()}
    method = ps.TCPU(PROBLEM.source_prior, statistic="plug-in", standardize=True)
    plain = ps.estimate_prior(**GOOD, method=method)
    assert ps.estimate_prior(**noisy, method=method).raw == pytest.approx(plain.raw, rel=1e-12)
    assert ps.estimate_prior(**noisy, method=method).details["bandwidth"] == plain.details["bandwidth"]


def test_ids_are_compared_as_what_they_mean():
    import pandas as pd

    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, dimension=3, random_state=0)
    T = pd.DataFrame(s.target, columns=list("abc"))
    estimates = []
    for of_positive, of_unlabeled in ((int, int), (float, int), (str, float), (str, np.uint64)):
        P = pd.DataFrame(s.positive, columns=list("abc")).assign(id=s.positive_ids.astype(of_positive))
        U = pd.DataFrame(s.unlabeled, columns=list("abc")).assign(id=s.unlabeled_ids.astype(of_unlabeled))
        estimates.append(ps.estimate_prior(P, U, T, method="tcpu", source_prior=0.2, shared="id"))
    assert estimates[0].details["shared_rows"] > 0
    assert len(estimates) == 4 and all(estimate == estimates[0] for estimate in estimates)
    with pytest.raises(InputError, match=r"id in row 0"):
        ps.estimate_prior(P.assign(id=[None, *range(len(P) - 1)]), U, T, source_prior=0.2, shared="id")
    with pytest.warns(ps.errors.DuplicateRowsWarning, match=r"id is in both"):
        ps.estimate_prior(
            P.assign(id=[f"x{k}" for k in range(len(P))]), U, T, method="tcpu", source_prior=0.2, shared="id"
        )


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_degenerate_variances_give_neither_a_point_nor_a_false_alarm():
    X, y = np.array([[0.0], [1], [2], [0], [0], [1]]), [1, 1, 1, 0, 0, 0]
    one = ps.TCPU(0.2, standardize=False).fit(X, y, shared="identical").estimate([[0.0], [1], [0.5]])
    assert one.interval.width > 0.1
    sure = ps.TCPU(0.2, confidence=0.9999999999999999).fit(PROBLEM.X, PROBLEM.y).estimate(PROBLEM.target).interval
    assert (sure.low, sure.high) == (0, 1)
    X, y = np.repeat([[1.0], [0.0]], 5, axis=0), np.repeat([1, 0], 5)
    exact = (
        ps.TCPU(0.2, standardize=False).fit(X, y).estimate(np.full((5, 1), 0.3))
    )  # no warning: the estimate is inside
    assert 0 < exact.raw < 1


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60, 1e100])
def test_energy_kernel_does_not_care_for_units(unit):
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, dimension=2, shared=False, random_state=0)
    plain, scaled = (ps.TCPU(0.2, kernel="energy").fit(s.X * u, s.y).estimate(s.target * u) for u in (1.0, unit))
    assert scaled.raw == pytest.approx(plain.raw, rel=1e-9)
    assert scaled.interval.low == pytest.approx(plain.interval.low, rel=1e-9)


def test_a_constant_column_is_left_out_however_its_mean_is_rounded():
    """The mean of 400 equal numbers may differ from them by rounding; scaled by that, another value would be 1e15."""
    rng = np.random.default_rng(0)
    for value in (-0.09028939, 0.1, 1 / 3, 1e5 / 7):
        X = np.column_stack([rng.normal(size=(421, 2)), np.full(421, value)])
        scaling = Scaling.from_rows(X, np.arange(421), standardize=True)
        assert scaling.factor[2] == 0 and scaling.features == 2
