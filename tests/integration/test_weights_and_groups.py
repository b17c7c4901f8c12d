"""Weights of rows and groups of rows: what is read, what is refused, and what they do to an estimate.

That the witness sums them up rightly is checked against a slow implementation in test_witness; here are the doors, exact
identities, and simulations with a known answer.
"""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.audit import Audit, audited_share
from priorshift.cli import main
from priorshift.errors import DuplicateRowsWarning, InputError, IntervalWarning
from priorshift.io.sample_size import design_effect, effective_size, read_weights
from priorshift.problem import Source
from priorshift.scores.calibration import calibrate

QUICK = {"repeats": 2, "folds": 3, "random_state": 0}


def problem(seed=0, m=80, n=200, t=150, prior=0.3, target=0.6):
    rng = np.random.default_rng(seed)
    P, U, T = (
        rng.normal(size=(k, 3)) + 2 * (rng.random(k) < share)[:, None] for k, share in ((m, 1), (n, prior), (t, target))
    )
    return P, U, T


@pytest.fixture(scope="module")
def samples():
    return problem()


def source_of(samples, **known):
    P, U, _ = samples
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    return Source.from_labels(X, y, **known, scenario="case-control", standardize=True)


# ---- what is read


def test_a_scale_of_weights_means_nothing(samples):
    P, U, T = samples
    rng = np.random.default_rng(1)
    of_source, of_target = rng.uniform(0.5, 2, len(P) + len(U)), rng.uniform(0.5, 2, len(T))
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    one, other = (
        ps.WitnessShift(0.3, **QUICK).fit(X, y, weights=k * of_source).estimate(T, weights=9 * k * of_target)
        for k in (1, 250)
    )
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.interval.low == pytest.approx(other.interval.low, rel=1e-9)


def test_equal_weights_and_groups_of_one_change_nothing(samples):
    P, U, T = samples
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    plain = ps.WitnessShift(**QUICK).fit(X, y).estimate(T)
    told = ps.WitnessShift(**QUICK).fit(X, y, weights=np.full(len(X), 3), groups=np.arange(len(X)))
    told = told.estimate(T, weights=np.full(len(T), 0.1), groups=[f"t{k}" for k in range(len(T))])
    assert told.value == pytest.approx(plain.value, rel=1e-9)
    assert told.interval.width == pytest.approx(plain.interval.width, rel=1e-9)


def test_the_three_doors_agree(samples, tmp_path, capsys):
    """Arrays, a column of each table, and the shell."""
    P, U, T = samples
    rng = np.random.default_rng(2)
    weights = {name: rng.uniform(1, 3, k) for name, k in (("positive", 80), ("unlabeled", 200), ("target", 150))}
    groups = {
        name: start + np.arange(len(w)) // 2 for (name, w), start in zip(weights.items(), (0, 500, 900), strict=True)
    }
    tables = {
        name: pd.DataFrame(X, columns=list("abc")).assign(w=weights[name], patient=groups[name])
        for name, X in (("positive", P), ("unlabeled", U), ("target", T))
    }
    settings = {"source_prior": 0.3, "random_state": 0}
    arrays = ps.estimate_prior(P, U, T, weights=weights, groups=groups, **settings)
    frames = ps.estimate_prior(**tables, weights="w", groups="patient", **settings)
    assert frames.to_dict() == arrays.to_dict()
    assert arrays.value != ps.estimate_prior(P, U, T, **settings).value
    options = []
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        options += [f"--{name}", str(tmp_path / f"{name}.csv")]
    words = ["--source-prior", "0.3", "--weight-column", "w", "--group-column", "patient"]
    assert main(["estimate", *options, *words]) == 0
    assert capsys.readouterr().out.strip() == str(arrays)
    # one column can be the id of shared rows and the group
    assert main(["estimate", *options, "--source-prior", "0.3", "--drop", "w", "--id-column", "patient",
                 "--group-column", "patient"]) == 0  # fmt: skip


def test_weights_of_one_table_alone(samples):
    P, U, T = samples
    weights = np.random.default_rng(3).uniform(1, 3, len(T))
    settings = {"source_prior": 0.3, "random_state": 0}
    told = ps.estimate_prior(P, U, T, weights={"target": weights}, **settings)
    fitted = ps.WitnessShift(**settings).fit(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]))
    assert told.value == fitted.estimate(T, weights=weights).value


def test_a_repeated_id_is_a_group_and_its_identical_rows_are_shared(samples):
    P, U, _ = samples
    again = np.concatenate([U[:6], P[:4]])  # four of the positives stand among the unlabelled rows
    X = np.concatenate([P, again, U[6:]])
    y = np.repeat([1, 0], [len(P), len(X) - len(P)])
    ids = np.r_[np.arange(len(P)) // 2, np.arange(1000, 1006), 0, 0, 1, 1, np.arange(2000, 2000 + len(U) - 6)]
    source = Source.from_labels(X, y, shared=ids, scenario="case-control", standardize=True)
    np.testing.assert_array_equal(source.shared, [[0, 6], [1, 7], [2, 8], [3, 9]])
    assert len(set(source.observation[:4])) == 2 and len(np.unique(source.observation)) == len(P) // 2 + len(U)


def test_a_row_of_a_known_group_is_scored_by_the_model_that_has_not_seen_it(samples):
    P, U, _ = samples
    groups = np.r_[np.arange(len(P)), 1000 + np.arange(len(U)) // 4]
    source = source_of(samples, groups=groups)
    with pytest.warns(IntervalWarning, match=r"groups .*target.* 10"):
        target = source.layout.read(U[:40], groups=groups[len(P) : len(P) + 40])
    np.testing.assert_array_equal(target.source_observation, source.observation[len(P) : len(P) + 40])
    stranger = source.layout.read(U[:40], groups=np.arange(5000, 5040))
    assert (stranger.source_observation == -1).all()


def test_the_same_groups_in_source_and_target_are_compared_within_themselves(samples):
    """A target of the very rows of U is no shift, and hardly uncertain, if it is told that they are the same."""
    P, U, _ = samples
    groups = {"positive": np.arange(80), "unlabeled": np.arange(1000, 1200), "target": np.arange(1000, 1200)}
    T = U + 1e-3 * np.random.default_rng(0).normal(size=U.shape)
    same = ps.estimate_prior(P, U, T, source_prior=0.3, groups=groups, random_state=0)
    other = ps.estimate_prior(
        P, U, T, source_prior=0.3, groups=groups | {"target": np.arange(5000, 5200)}, random_state=0
    )
    assert same.value == pytest.approx(0.3, abs=0.01)
    assert same.interval.width < 0.2 * other.interval.width


# ---- sizes


def test_what_weighted_rows_are_worth():
    assert effective_size(np.array([1.0, 1, 1, 1])) == 4
    assert effective_size(np.array([3.0, 1])) == pytest.approx(16 / 10)
    assert effective_size(np.ones(12), np.arange(12) // 4) == 3
    influence = np.random.default_rng(0).normal(size=12)
    assert design_effect(influence, np.arange(12), np.ones(12, dtype=int)) == pytest.approx(1)
    assert design_effect(np.ones(12), np.arange(12) // 4, np.ones(12, dtype=int)) == pytest.approx(4)


def test_copies_count_once(samples):
    source = source_of(samples)
    P, U, _ = samples
    tripled = np.repeat(P, 3, axis=0), np.concatenate([U, U[:100]]), None
    copied = source_of(tripled)
    assert (copied.P.size, copied.U.size) == pytest.approx((source.P.size, source.U.size)) == (80, 200)
    assert copied.P.observations == pytest.approx(80) and copied.U.observations == pytest.approx(200)
    assert copied.U.mass[:100].sum() == pytest.approx(0.25) and copied.U.mass.sum() == pytest.approx(1)
    np.testing.assert_allclose(copied.scaling.shift, source.scaling.shift, atol=0.3)


@pytest.mark.parametrize("estimator", [ps.WitnessShift(0.3, **QUICK), ps.TCPU(0.3)])
def test_a_target_of_copies_of_one_row_is_refused(samples, estimator):
    P, U, T = samples
    fitted = estimator.fit(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]))
    with pytest.raises(InputError, match=r"one observation"):
        fitted.estimate(np.repeat(T[:1], 50, axis=0))
    with pytest.warns(DuplicateRowsWarning, match=r"98 of 100 target"):
        fitted.estimate(np.repeat(T[:2], 50, axis=0))


# ---- simulations with a known answer


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_weights_undo_how_rows_were_drawn():
    """Rows with a large first feature, and so positives, are drawn four times as often."""
    errors, plain = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)

        def drawn(rows, share, rng=rng):
            X = rng.normal(size=(8 * rows, 3)) + 2 * (rng.random(8 * rows) < share)[:, None]
            probability = np.where(X[:, 0] > 1, 0.8, 0.2)
            kept = np.flatnonzero(rng.random(len(X)) < probability)[:rows]
            return X[kept], 1 / probability[kept]

        (U, w_U), (T, w_T) = drawn(500, 0.3), drawn(500, 0.6)
        P = rng.normal(size=(200, 3)) + 2
        for told, found in (({"unlabeled": w_U, "target": w_T}, errors), (None, plain)):
            found.append(ps.estimate_prior(P, U, T, source_prior=0.3, weights=told, random_state=0).value - 0.6)
    assert abs(np.mean(errors)) < 0.025  # three standard errors of eight draws, each of a standard deviation of 0.025
    assert abs(np.mean(plain)) > 0.05


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_interval_is_as_wide_as_groups_ask():
    """Twelve rows a patient that hardly differ are worth hardly more than one: the interval is √12 times as wide."""
    rng = np.random.default_rng(0)
    P, U, T = problem(m=40, n=60, t=60)

    def repeated(X):
        return np.repeat(X, 12, axis=0) + 0.05 * rng.normal(size=(12 * len(X), 3))

    groups = {
        "positive": np.arange(480) // 12,
        "unlabeled": 100 + np.arange(720) // 12,
        "target": 900 + np.arange(720) // 12,
    }
    tables = [repeated(X) for X in (P, U, T)]
    alone = ps.estimate_prior(*tables, source_prior=0.3, random_state=0).interval.width
    together = ps.estimate_prior(*tables, source_prior=0.3, groups=groups, random_state=0).interval.width
    patients = ps.estimate_prior(P, U, T, source_prior=0.3, random_state=0).interval.width
    assert together > 2 * alone
    assert together == pytest.approx(patients, rel=0.35)  # scores are fitted anew


def test_calibration_with_weights_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(1, 1, 60), rng.normal(-0.5, 1.5, 90)
    times = rng.integers(1, 4, 90)
    weighted = calibrate(positive, unlabeled, 0.3, np.full(60, 2.0), times.astype(float))
    repeated = calibrate(np.repeat(positive, 2), np.repeat(unlabeled, times), 0.3)
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(weighted(x), repeated(x), rtol=1e-3)


def test_a_classifier_is_fitted_and_adapted_with_weights_and_groups(samples):
    P, U, T = samples
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    rng = np.random.default_rng(0)
    weights, of_target = rng.uniform(0.2, 3, len(X)), rng.uniform(0.2, 3, len(T))
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.WitnessShift(0.3, **QUICK)).fit(X, y, weights=weights)
    np.testing.assert_allclose(
        shifted.classifier_.coef_, LogisticRegression().fit(X, y, sample_weight=weights).coef_, rtol=1e-6
    )
    shifted.adapt(T, weights=of_target, groups=np.arange(len(T)) // 2)
    alone = ps.WitnessShift(0.3, **QUICK).fit(X, y, weights=weights)
    assert shifted.estimate_.value == alone.estimate(T, weights=of_target, groups=np.arange(len(T)) // 2).value


def test_weights_that_go_with_the_class_make_an_audit_less_sure():
    """One row in twenty stands for ten, and half of those are positive: the truth is 5/29."""
    values, errors = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        heavy = rng.random(800) < 0.05
        positive = heavy & (rng.random(800) < 0.5)
        audit = Audit(np.arange(250), positive[:250])
        share = audited_share(audit, np.zeros(800), weights=np.where(heavy, 10.0, 1.0))
        values.append(share.value)
        errors.append(share.standard_error)
    assert np.mean(values) == pytest.approx(5 / 29, abs=0.012)  # three standard errors of 200 draws
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)  # Kish's number of rows would make it 0.7


def test_few_groups_are_told_of_and_have_few_degrees_of_freedom():
    P, U, T = problem(m=60, n=120, t=120)
    groups = {"positive": np.arange(60), "unlabeled": 100 + np.arange(120), "target": 900 + np.arange(120) // 30}
    with pytest.warns(IntervalWarning, match=r"groups .*target.* 4\.0"):
        few = ps.estimate_prior(P, U, T, source_prior=0.3, groups=groups, random_state=0)
    assert few.interval.width > 4.5 * few.standard_error  # of a normal law 3.9
    with pytest.warns(IntervalWarning, match=r"groups .*unlabelled.* 6\.0"):
        ps.WitnessShift(0.3, **QUICK).fit(
            np.concatenate([P, U]), np.repeat([1, 0], [60, 120]), groups=np.r_[:60, 100 + np.arange(120) // 20]
        )


@pytest.mark.parametrize("estimator", [ps.WitnessShift(0.3, **QUICK), ps.TCPU(0.3)])
def test_a_fit_keeps_no_name_of_a_group(samples, estimator):
    P, U, T = samples
    names = [f"patient {k // 2}" for k in range(len(P) + len(U))]
    fitted = estimator.fit(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]), groups=names)
    assert b"patient" not in pickle.dumps(fitted)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.estimate(T, groups=names[-len(T) :]) == fitted.estimate(T, groups=names[-len(T) :])
    assert again.estimate(T, groups=names[-len(T) :]) != fitted.estimate(T, groups=np.arange(len(T)))


def test_a_repeated_id_is_a_group_in_the_target_too(samples):
    tables = {}
    for start, (name, X) in enumerate(zip(("positive", "unlabeled", "target"), samples, strict=True)):
        tables[name] = pd.DataFrame(X, columns=list("abc")).assign(patient=1000 * start + np.arange(len(X)) // 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateRowsWarning)  # that no id stands in both
        ids = ps.estimate_prior(**tables, source_prior=0.3, shared="patient", random_state=0)
    groups = ps.estimate_prior(**tables, source_prior=0.3, groups="patient", random_state=0)
    assert ids.to_dict() == groups.to_dict()


# ---- refusals

BAD_WEIGHTS = [
    ([1, 2, -1], "-1 in row 2"),
    ([1, 1e300, 1], "1e.300 in row 1 .*1e-70"),
    ([1e-300, 1e-300, 1e-300], "1e-300 in row 0 .*1e-70"),
    ([1, 0, 1], "0 in row 1"),
    ([1, np.nan, 1], "nan in row 1"),
    ([1, np.inf, 1], "inf in row 1"),
    ([1, None, 1], "None in row 1"),
    (["1", "", "2"], "'' in row 1"),
    (["1", "much", "2"], "'much' in row 1"),
    ([1, 2], r"shape \(2,\).* 3 rows"),
    ([[1, 2], [1, 2], [3, 4]], r"shape \(3, 2\).* 3 rows"),
    ([[1], [1, 2], [3]], "different lengths"),
    ([1e12, 1, 1], "range from 1 to 1e.12"),
    ([1e6, 1, 1], "effective sample size is 1.00 of 3 rows"),
    (np.ma.masked_array([1.0, 2, 3], [0, 1, 0]), "nan in row 1"),
]


@pytest.mark.parametrize(("values", "message"), BAD_WEIGHTS)
def test_weights_that_cannot_be_used_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        read_weights(values, 3)


BAD = [
    ({"weights": 3}, "weights is of type int"),
    ({"weights": {}}, "weights holds nothing"),
    ({"weights": {"source": [1]}}, "weights holds 'source'"),
    ({"groups": {"all": [1]}}, "groups holds 'all'"),
    ({"groups": {"target": [1, 2]}}, r"the groups of target has shape \(2,\) but the sample has 150 rows"),
    ({"weights": {"target": np.zeros(150)}}, "the weights of target holds 0.0 in row 0"),
    ({"weights": {"positive": np.ones(79)}}, r"the weights of positive has shape \(79,\) but the sample has 80 rows"),
    ({"groups": {"target": [None] * 150}}, r"the groups of target has no group in row 0 .*; give every row one"),
    (
        {"groups": {"target": [1] * 150}},
        r"the 150 rows of target are one observation \(copies of one row, or one group\)",
    ),
    ({"groups": {"unlabeled": [7] * 200}}, "the 200 rows of unlabeled are one observation"),
    ({"groups": {"positive": [7] * 80}}, "the 80 rows of positive are one observation"),
    ({"weights": "w"}, "no table has a column 'w'|is an array without column names"),
    ({"groups": "g"}, "is an array without column names, so it has no column 'g'"),
    ({"method": "drpu", "weights": {"target": np.ones(150)}}, "DRPU takes no weights; leave them out"),
]


@pytest.mark.parametrize(("told", "message"), BAD)
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_what_cannot_be_told_of_rows_is_refused(samples, told, message):
    if "DRPU" in message:
        pytest.importorskip("torch")
    P, U, T = samples
    settings = {} if "method" in told else {"source_prior": 0.3}
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(P, U, T, **settings, **told)


BAD_COLUMNS = [
    (["--weight-column", "w", "--drop", "w"], "--weight-column and --drop name the same column, 'w'"),
    (
        ["--weight-column", "patient", "--group-column", "patient"],
        "--weight-column and --group-column name the same column",
    ),
    (["--audit-column", "w", "--weight-column", "w"], "--weight-column and --audit-column name the same column, 'w'"),
    (["--group-column", "nurse"], "has no column 'nurse'; its columns are"),
    (
        ["--weight-column", "heavy", "--drop", "w", "--drop", "patient"],
        "no table has a column 'heavy'; name the column",
    ),
    (["--weight-column", "minus", "--drop", "w", "--drop", "patient"], "holds '-1' in row 0"),
    (["--group-column", "empty", "--drop", "w", "--drop", "patient"], "has no group in row 0"),
    (["--method", "drpu", "--weight-column", "w", "--drop", "patient"], "DRPU takes no weights; leave them out"),
]


@pytest.mark.parametrize(("options", "message"), BAD_COLUMNS)
def test_columns_that_cannot_be_used_are_refused_by_the_command(samples, tmp_path, capsys, options, message):
    if "DRPU" in message:
        pytest.importorskip("torch")
    files = []
    extra = {"w": 1.0, "patient": 7, "minus": -1, "empty": ""}
    wanted = [name for name in extra if name in options]
    for name, X in zip(("positive", "unlabeled", "target"), samples, strict=True):
        table = pd.DataFrame(X, columns=list("abc"))
        for column in {"w", "patient", *wanted}:
            table[column] = extra[column]
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        files += [f"--{name}", str(tmp_path / f"{name}.csv")]
    assert main(["estimate", *files, *options]) == 2
    said = capsys.readouterr()
    assert not said.out and re.search(message, said.err), said.err


def test_frames_with_columns_of_two_uses_are_refused(samples):
    P, U, T = (pd.DataFrame(X, columns=list("abc")).assign(w=1.0) for X in samples)
    with pytest.raises(InputError, match=r"'w'.*weights.*groups"):
        ps.estimate_prior(P, U, T, weights="w", groups="w")
    with pytest.raises(InputError, match=r"'w'.*weights.*dropped"):
        ps.estimate_prior(P, U, T, weights="w", drop=["w"])
    with pytest.raises(InputError, match=r"'w'.*audit.*shared"):
        ps.estimate_prior(P, U, T, shared="w", audit="w")


def test_callers_weights_are_left_alone(samples):
    P, U, T = samples
    weights = {"unlabeled": np.arange(1.0, 201.0), "target": np.arange(1.0, 151.0)}
    before = {name: w.copy() for name, w in weights.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ps.estimate_prior(P, U, T, source_prior=0.3, weights=weights, random_state=0)
    for name, w in weights.items():
        np.testing.assert_array_equal(w, before[name])


# ---- several targets


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_patients_that_stand_in_two_months_make_them_dependent(method):
    """February's rows are January's with a little noise: if it is told, their difference is known to be nothing."""
    P, U, jan = problem(m=100, n=300, t=200)
    feb = jan + 0.05 * np.random.default_rng(0).normal(size=jan.shape)
    groups = {"positive": np.arange(100), "unlabeled": np.arange(1000, 1300)}
    tables = {
        name: pd.DataFrame(X, columns=list("abc")).assign(patient=ids)
        for name, X, ids in (
            ("positive", P, groups["positive"]), ("unlabeled", U, groups["unlabeled"]),
            ("jan", jan, np.arange(5000, 5200)), ("feb", feb, np.arange(5000, 5200)),
        )
    }  # fmt: skip
    source = tables["positive"], tables["unlabeled"]
    settings = {"method": method, "source_prior": 0.3, "random_state": 0}
    targets = {"jan": tables["jan"], "feb": tables["feb"]}
    same = ps.estimate_priors(*source, targets, groups="patient", **settings).differences()[0]
    targets["feb"] = tables["feb"].assign(patient=np.arange(7000, 7200))
    other = ps.estimate_priors(*source, targets, groups="patient", **settings).differences()[0]
    assert same.estimate == pytest.approx(other.estimate, abs=1e-9)
    assert same.standard_error < 0.4 * other.standard_error


def test_strata_are_pooled_by_their_weights():
    frames = {}
    for k, (name, size) in enumerate((("positive", 160), ("unlabeled", 400), ("target", 300))):
        rows = [problem(seed, m=size // 2, n=size // 2, t=size // 2)[k] for seed in (0, 1)]
        frames[name] = pd.DataFrame(np.concatenate(rows), columns=list("abc"))
        frames[name]["region"] = np.repeat(["north", "south"], size // 2)
        frames[name]["w"] = np.repeat([3.0, 1.0], size // 2)
    made = ps.estimate_priors(**{"targets" if k == "target" else k: v for k, v in frames.items()}, stratify="region",
                              weights="w", source_prior=0.3, random_state=0)  # fmt: skip
    assert made.pooled.value == pytest.approx(0.75 * made["north"].value + 0.25 * made["south"].value)


def test_a_target_without_the_column_counts_rows_alike(samples):
    P, U, T = samples
    frames = [pd.DataFrame(X, columns=list("abc")) for X in (P, U, T[:80], T[80:])]
    targets = {"a": frames[2].assign(w=np.arange(1, 81), who=np.arange(80) // 2), "b": frames[3]}
    source = frames[0].assign(who=np.arange(80)), frames[1].assign(who=np.arange(1000, 1200))
    settings = {"source_prior": 0.3, "random_state": 0}
    made = ps.estimate_priors(
        *frames[:2], {"a": targets["a"].drop(columns="who"), "b": targets["b"]}, weights="w", **settings
    )
    for name, table in targets.items():
        alone = table.drop(columns="who", errors="ignore")
        weights = "w" if name == "a" else None
        assert made[name].to_dict() == ps.estimate_prior(*frames[:2], alone, weights=weights, **settings).to_dict()
    bad = targets | {"b": targets["b"].assign(w=[1.0] * 3 + [None] + [1.0] * 66)}
    with pytest.raises(InputError, match=r"'w'.*'b'.*row 3"):
        ps.estimate_priors(*source, {k: t.drop(columns="who", errors="ignore") for k, t in bad.items()}, weights="w",
                           drop=["who"], **settings)  # fmt: skip


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_months_are_those_of_the_clock_on_the_wall(samples, library):
    P, U, T = (pd.DataFrame(X, columns=list("abc")) for X in samples)
    T["month"] = pd.to_datetime(["2024-01-01"] * 75 + ["2024-02-01"] * 75).tz_localize("Europe/Berlin")
    tables = (P, U, T) if library == "pandas" else map(pytest.importorskip("polars").from_pandas, (P, U, T))
    made = ps.estimate_priors(*tables, by="month", source_prior=0.3, random_state=0)
    assert list(made) == ["2024-01-01", "2024-02-01"]
