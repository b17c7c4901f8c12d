"""Many targets of one source: estimates, their joint error, what is refused, and strata."""

import datetime
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift import result_tables
from priorshift.errors import (
    DuplicateRowsWarning,
    EstimatedPriorWarning,
    InputError,
    MissingExtraError,
    OutOfRangeWarning,
)
from priorshift.inference import intervals
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.inference.joint import JointRatios, RatioInfluence, holm, largest_normal, pooled
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, RangePrior
from priorshift.io.readers import read_table
from priorshift.io.tables import ColumnSelection
from priorshift.io.targets import rows_by_value, target_name
from priorshift.scores.scored_source import ScoredSource

KNOWN = PointPrior(0.2)
PRIORS = {"jan": 0.2, "feb": 0.2, "mar": 0.6}


def gaussian(rows, prior, rng, dimension=4):
    return rng.normal(size=(rows, dimension)) + 1.6 * (rng.random(rows) < prior)[:, None]


@pytest.fixture(scope="module")
def source():
    rng = np.random.default_rng(0)
    return gaussian(150, 1.0, rng), gaussian(500, 0.3, rng)


@pytest.fixture(scope="module")
def targets():
    rng = np.random.default_rng(1)
    return {
        name: gaussian(rows, prior, rng) for rows, (name, prior) in zip((200, 300, 400), PRIORS.items(), strict=True)
    }


@pytest.fixture(scope="module")
def estimates(source, targets):
    return ps.estimate_priors(*source, targets, source_prior=0.3, random_state=0)


# ---- one fit, one estimate each


@pytest.mark.parametrize("settings", [{"source_prior": 0.3}, {}, {"method": "tcpu", "source_prior": (0.2, 0.4)}])
def test_each_estimate_is_that_of_the_target_alone(settings, source, targets):
    many = ps.estimate_priors(*source, targets, random_state=0, **settings)
    for name, target in targets.items():
        assert many[name] == ps.estimate_prior(*source, target, random_state=0, **settings)


def test_the_source_is_fitted_once_and_each_target_is_scored_once(source, targets, monkeypatch):
    counts = {"fit": 0, "score": 0}
    fit, score = ps.WitnessShift._fit, ScoredSource.score
    monkeypatch.setattr(ps.WitnessShift, "_fit", lambda *a: counts.update(fit=counts["fit"] + 1) or fit(*a))
    monkeypatch.setattr(ScoredSource, "score", lambda *a: counts.update(score=counts["score"] + 1) or score(*a))
    made = ps.estimate_priors(*source, targets, source_prior=0.3, random_state=0)
    made.differences(), made.equality_test(), made.band
    assert counts == {"fit": 1, "score": 3}


def test_the_answer_is_a_mapping_in_the_targets_order(estimates):
    assert list(estimates) == list(PRIORS) and len(estimates) == 3
    assert "feb" in estimates and "dec" not in estimates and estimates.get("dec") is None
    assert dict(estimates.items())["mar"] is estimates["mar"]
    with pytest.raises(KeyError, match=r"'dec'.*'jan'"):
        estimates["dec"]
    again = pickle.loads(pickle.dumps(estimates))
    assert str(again) == str(estimates) and again.differences()[0] == estimates.differences()[0]


def test_tables_of_every_kind_give_the_same(source, targets, estimates, tmp_path):
    P, U = (pd.DataFrame(X, columns=list("abcd")) for X in source)
    frames = {name: pd.DataFrame(X, columns=list("abcd")) for name, X in targets.items()}
    column = [name for name, X in targets.items() for _ in X]
    stacked = pd.concat(frames.values()).assign(month=column)
    order = np.random.default_rng(0).permutation(len(stacked))
    raw = [e.raw for e in estimates.values()]
    settings = {"source_prior": 0.3, "random_state": 0}

    by = ps.estimate_priors(P, U, stacked, by="month", **settings)
    assert list(by) == ["jan", "feb", "mar"] and by.by == "month"  # text in the order of its first row
    np.testing.assert_allclose([e.raw for e in by.values()], raw, rtol=1e-9)
    mixed = ps.estimate_priors(P.assign(month=0), U.assign(month=0), stacked.iloc[order], by="month", **settings)
    assert {name: e.sizes[2] for name, e in mixed.items()} == {"jan": 200, "feb": 300, "mar": 400}

    files = []
    for name, frame in frames.items():
        files.append(tmp_path / f"{name}.csv")
        frame.to_csv(files[-1], index=False)
    P.to_csv(tmp_path / "p.csv", index=False)
    U.to_csv(tmp_path / "u.csv", index=False)
    from_files = ps.estimate_priors(str(tmp_path / "p.csv"), tmp_path / "u.csv", files, **settings)
    assert list(from_files) == ["jan", "feb", "mar"]
    np.testing.assert_allclose([e.raw for e in from_files.values()], raw, rtol=1e-9)
    assert isinstance(from_files.to_frame(), pd.DataFrame)

    numbered = ps.estimate_priors(*source, list(targets.values()), **settings)
    assert list(numbered) == ["0", "1", "2"] and numbered[2] is numbered["2"]
    assert [e.raw for e in numbered.values()] == raw

    polars = ps.estimate_priors(pl.DataFrame(P), pl.DataFrame(U), pl.DataFrame(stacked), by="month", **settings)
    frame = polars.to_frame()
    assert isinstance(frame, pl.DataFrame) and frame["rows"].to_list() == [200, 300, 400]
    assert frame["estimate"].to_list() == [e.value for e in polars.values()]
    assert isinstance(polars.differences().to_frame(), pl.DataFrame)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([10, 9, 10, 2], ["2", "9", "10"]),
        ([1.5, 1.0, 1.5, 1.0], ["1", "1.5"]),
        (["10", "9", "10", "2"], ["2", "9", "10"]),
        (["b", "a", "b", "c"], ["b", "a", "c"]),
        (["2024-02", "2024-01", "2023-12", "2024-02"], ["2023-12", "2024-01", "2024-02"]),
        (pd.to_datetime(["2024-02-01", "2024-01-01", "2024-02-01", "2024-01-01"]), ["2024-01-01", "2024-02-01"]),
        ([datetime.date(2024, 2, 1), datetime.date(2024, 1, 1)] * 2, ["2024-01-01", "2024-02-01"]),
        (pd.PeriodIndex(["2024-02", "2024-01"] * 2, freq="M"), ["2024-01", "2024-02"]),
        (pd.Categorical(["y", "x"] * 2), ["y", "x"]),
        ([True, False] * 2, ["True", "False"]),
    ],
)
def test_values_of_a_column_name_the_targets_in_their_order(values, names):
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "by": values})
    table = read_table(frame, "t", ColumnSelection(extra=("by",)))
    found = rows_by_value(table, "by")
    assert list(found) == names
    assert sorted(np.concatenate(list(found.values()))) == [0, 1, 2, 3]
    for name, rows in found.items():
        assert all(target_name(value) == name for value in frame["by"].iloc[rows])


# ---- the joint error


def test_the_variance_of_each_is_that_of_its_own_test(source, targets):
    shared = {"shared": np.r_[np.arange(150), np.arange(40), np.arange(1000, 1460)]}  # 40 rows of U are rows of P
    X, y = np.concatenate([source[0], source[0][:40], source[1][:460]]), np.repeat([1, 0], [150, 500])
    for estimator in (ps.WitnessShift(0.3, random_state=0), ps.TCPU(0.3)):
        for told in ({}, shared):
            estimator.fit(X, y, **told)
            for target in targets.values():
                estimate, part = estimator.estimate_jointly(estimator.read_target(target))
                assert estimate == estimator.estimate(target)
                variance = part.source_influence @ part.source_influence + part.own_variance
                # the witness's own error is read between the ratios that were tested
                assert 0.7 * np.sqrt(variance) == pytest.approx(estimate.standard_error, rel=1e-3)
                interval = part.interval(0.95, estimate.value)
                assert (interval.low, interval.high) == pytest.approx(
                    (estimate.interval.low, estimate.interval.high), abs=1e-9
                )


def test_the_influence_of_a_row_is_what_leaving_it_out_does():
    """Of TCPU, whose kernel sums are a smooth function of the rows' weights: R without row i against −ψ_i."""
    rng = np.random.default_rng(3)
    P, U, T = gaussian(60, 1.0, rng), gaussian(90, 0.3, rng), gaussian(80, 0.6, rng)
    settings = {"standardize": False, "statistic": "plug-in", "bandwidth": 3.0}

    def ratio(P, U, T):
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        estimator = ps.TCPU(0.3, **settings).fit(X, y)
        return estimator.estimate_jointly(estimator.read_target(T))

    whole, part = ratio(P, U, T)
    left_out = [ratio(np.delete(P, i, 0), U, T)[0].negative_ratio for i in range(0, 60, 2)]
    left_out += [ratio(P, np.delete(U, i, 0), T)[0].negative_ratio for i in range(0, 90, 2)]
    moved, told = whole.negative_ratio - np.array(left_out), part.source_influence[::2]
    assert np.corrcoef(moved, told)[0, 1] > 0.999
    np.testing.assert_allclose(moved, told, atol=0.06 * np.abs(moved).max())
    own = [whole.negative_ratio - ratio(P, U, np.delete(T, i, 0))[0].negative_ratio for i in range(80)]
    assert np.sum(np.square(own)) == pytest.approx(part.own_variance, rel=0.05)


def test_what_the_source_does_to_two_targets_is_in_their_covariance():
    """Covariances of R̂ over new sources and targets, against the mean of those that were computed."""
    found, told = [], []
    for seed in range(60):
        rng = np.random.default_rng((7, seed))
        P, U = gaussian(100, 1.0, rng), gaussian(300, 0.4, rng)
        T = [gaussian(2000, p, rng) for p in (0.1, 0.15, 0.9)]
        made = ps.estimate_priors(P, U, T, method="tcpu", source_prior=0.4)
        found.append(made.joint.ratios)
        told.append(made.joint.covariance)
    seen, computed = np.cov(np.array(found).T), np.mean(told, axis=0)
    correlation = computed / np.sqrt(np.outer(np.diag(computed), np.diag(computed)))
    assert correlation[0, 1] > 0.9 and correlation[0, 2] < 0.2  # large targets of like priors share almost all
    # 60 draws know a variance to 18 %
    np.testing.assert_allclose(np.diag(computed), np.diag(seen), rtol=0.6)
    np.testing.assert_allclose(correlation, np.corrcoef(np.array(found).T), atol=0.35)
    gap = [1, -1, 0] @ seen @ [1, -1, 0]
    assert [1, -1, 0] @ computed @ [1, -1, 0] == pytest.approx(gap, rel=0.6)
    assert gap < 0.3 * seen[0, 0]  # and it cancels


def joint_of(priors, covariance, prior=KNOWN, moves=None, freedom=np.inf):
    """Targets of given ratios and errors: the common part by a root of the covariance."""
    ratios = (1 - np.asarray(priors)) / (1 - prior.value)
    root = np.linalg.cholesky(np.asarray(covariance, dtype=float))
    parts = [
        RatioInfluence(r, FiellerCurve(r, float(s @ s)), prior, s, 0.0, freedom, moves)
        for r, s in zip(ratios, root, strict=True)
    ]
    return JointRatios.from_influences(parts, prior.value)


def test_a_difference_by_hand():
    covariance = np.array([[0.04, 0.03], [0.03, 0.05]]) ** 1 * 0.01
    joint = joint_of([0.5, 0.6], covariance)
    estimate, interval, error, p = joint.difference(0, 1, 0.9)
    by_hand = 0.8 * np.sqrt(0.01 * (0.04 + 0.05 - 2 * 0.03))
    assert estimate == pytest.approx(0.1) and error == pytest.approx(by_hand)
    z = stats.norm.ppf(0.95)
    assert (interval.low, interval.high) == pytest.approx((0.1 - z * by_hand, 0.1 + z * by_hand))
    assert p == pytest.approx(2 * stats.norm.sf(0.1 / by_hand))
    back = joint.difference(1, 0, 0.9)
    assert back[0] == pytest.approx(-0.1) and back[1].low == pytest.approx(-interval.high) and back[3] == p


def test_a_difference_with_a_range_holds_at_both_ends():
    covariance = np.diag([0.0004, 0.0009])
    ranged = joint_of([0.5, 0.6], covariance, RangePrior(0.1, 0.3))
    gap, error = float(ranged.ratios @ [1, -1]), np.sqrt(0.0013)
    z = stats.norm.ppf(0.975)
    ends = [(1 - pi) * (gap + sign * z * error) for pi in (0.1, 0.3) for sign in (-1, 1)]
    interval = ranged.difference(0, 1, 0.95)[1]
    assert (interval.low, interval.high) == pytest.approx((min(ends), max(ends)))


@pytest.mark.parametrize("priors", [(0.2, 0.8), (0.5, 0.5)])
def test_a_difference_with_a_distribution_has_the_quantiles_of_the_product(priors):
    covariance = np.diag([0.0004, 0.0009])
    joint = joint_of(priors, covariance, DistributionPrior(stats.beta(8, 24)))
    estimate, interval, error, _ = joint.difference(0, 1, 0.95)
    rng = np.random.default_rng(0)
    gap = float(joint.ratios @ [1, -1])
    draws = (1 - rng.beta(8, 24, 400_000)) * rng.normal(gap, np.sqrt(0.0013), 400_000)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=2e-3)
    assert error == pytest.approx(draws.std(), rel=0.02) and estimate == pytest.approx(draws.mean(), abs=1e-3)


def test_an_estimated_prior_errs_in_all_targets_at_once():
    """(1−π)R is what is drawn: π̂ and R̂ from normal errors that are correlated as the influences say."""
    rng = np.random.default_rng(0)
    moves = np.array([0.02, 0.01])
    joint = joint_of([0.3, 0.7], [[0.0009, 0.0003], [0.0003, 0.0006]], moves=moves)
    root = np.linalg.cholesky(np.array([[0.0009, 0.0003], [0.0003, 0.0006]]))
    z = rng.normal(size=(400_000, 2))
    raw = 1 - (1 - 0.2 - z @ moves)[:, None] * (joint.ratios + z @ root.T)
    np.testing.assert_allclose(joint.raw_covariance(0.2), np.cov(raw.T), rtol=0.02, atol=2e-6)
    assert joint.difference(0, 1, 0.95)[2] == pytest.approx(float((raw[:, 1] - raw[:, 0]).std()), rel=0.02)


def test_tcpu_with_an_estimated_prior_has_the_covariance_of_its_own_standard_error(source, targets):
    with pytest.warns(EstimatedPriorWarning):
        made = ps.estimate_priors(*source, targets, method="tcpu", random_state=0)
    pi = made["jan"].source_prior
    errors = [e.standard_error for e in made.values()]
    np.testing.assert_allclose(np.sqrt(np.diag(made.joint.raw_covariance(pi))), errors, rtol=1e-9)


def test_the_equality_statistic_is_that_of_any_contrasts(estimates):
    joint = estimates.joint
    contrasts = np.array([[1.0, -1, 0], [0.5, 0.5, -1]])
    n, own = joint.observations, joint.own_variance
    of_row = (n - 1) @ (n * own) / (n - 1).sum()
    covariance = joint.covariance + np.diag(of_row / n - own)
    gaps, error = contrasts @ joint.ratios, contrasts @ covariance @ contrasts.T
    test = estimates.equality_test()
    assert test.statistic == pytest.approx(gaps @ np.linalg.solve(error, gaps))
    assert test.freedom == 2 and test.p_value == pytest.approx(stats.f.sf(test.statistic / 2, 2, (n - 1).sum()))
    assert "p < 0.0001" in str(test)
    two = JointRatios.from_influences(
        [RatioInfluence(r, None, PointPrior(0.2), np.zeros(1), v, np.inf) for r, v in ((1.0, 0.01), (1.3, 0.03))], 0.2
    )
    assert two.equality().statistic == pytest.approx(0.3**2 / 0.04)


def test_many_small_targets_of_one_prior_do_not_seem_to_differ():
    """With a variance of nine rows each, three tests in four would say so."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(400):
        rows = rng.normal(1.0, 0.5, size=(60, 9))
        parts = [
            RatioInfluence(r.mean(), None, PointPrior(0.2), np.zeros(1), r.var(ddof=1) / 9, 8.0, observations=9.0)
            for r in rows
        ]
        p_values.append(JointRatios.from_influences(parts, 0.2).equality().p_value)
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=0.033)  # three standard errors of 400 draws


def test_the_largest_of_normal_errors():
    assert largest_normal(np.ones((5, 5)), 0.95) == pytest.approx(stats.norm.ppf(0.975), abs=0.02)
    for count in (3, 36):  # independent: Šidák's
        sidak = stats.norm.ppf((1 + 0.95 ** (1 / count)) / 2)
        assert largest_normal(np.diag(np.arange(1.0, count + 1)), 0.95) == pytest.approx(sidak, abs=0.03)
    assert largest_normal(np.array([[1, 0.8], [0.8, 1]]), 0.9) == largest_normal(np.array([[4, 1.6], [1.6, 1]]), 0.9)


def test_holms_rule_by_hand():
    assert holm([0.02, 0.01, 0.5, 0.03]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_band_is_wider_than_each_interval_and_within_the_unit_interval(source, targets):
    rare = targets | {"rare": gaussian(200, 0.0, np.random.default_rng(5))}
    made = ps.estimate_priors(*source, rare, source_prior=0.3, random_state=0, confidence=0.9)
    for name, estimate in made.items():
        band = made.band[name]
        assert 0 <= band.low <= estimate.interval.low <= estimate.value <= estimate.interval.high <= band.high <= 1
        assert band.confidence == 0.9 and band.method == "simultaneous"
    one = ps.estimate_priors(*source, {"jan": targets["jan"]}, source_prior=0.3, random_state=0)
    assert one.band["jan"].low == pytest.approx(one["jan"].interval.low, abs=2e-3)


def test_differences_that_are_asked_for(estimates):
    every = estimates.differences()
    assert [(d.first, d.second) for d in every] == [("jan", "feb"), ("jan", "mar"), ("feb", "mar")]
    assert every[1].estimate == pytest.approx(estimates["mar"].raw - estimates["jan"].raw)
    against = estimates.differences("feb")
    assert [(d.first, d.second) for d in against] == [("feb", "jan"), ("feb", "mar")]
    assert against[0].estimate == pytest.approx(-every[0].estimate)
    steps = estimates.differences(consecutive=True, confidence=0.5)
    assert [(d.first, d.second) for d in steps] == [("jan", "feb"), ("feb", "mar")]
    assert steps[0].interval.width < every[0].interval.width
    assert 0.6 - 0.2 in every[1].interval and 0.0 in every[0].interval
    assert [d.adjusted_p_value for d in every] == holm([d.p_value for d in every])
    assert str(steps).splitlines()[0].split() == ["difference", "estimate", "50%", "interval", "p", "adjusted", "p"]
    assert len(steps.to_frame()) == 2 and len(steps[:1]) == 1
    told = json.loads(json.dumps(steps.to_dict(), allow_nan=False))["differences"]
    assert told[0]["difference"] == steps[0].estimate


def test_the_answer_as_table_frame_text_and_json(estimates):
    lines = str(estimates).splitlines()
    assert lines[0].split() == ["target", "rows", "estimate", "95%", "interval", "all", "at", "once"]
    assert lines[1].split()[:3] == ["jan", "200", f"{estimates['jan'].value:.3f}"]
    assert len({len(line) for line in lines}) == 1
    frame = estimates.to_frame()
    assert isinstance(frame, pd.DataFrame) and list(frame["target"]) == list(PRIORS)
    told = json.loads(json.dumps(estimates.to_dict(), allow_nan=False))
    assert told["targets"]["mar"]["value"] == estimates["mar"].value
    assert told["targets"]["mar"]["band"] == [estimates.band["mar"].low, estimates.band["mar"].high]
    assert told["equality"]["freedom"] == 2 and told["pooled"] is None and told["by"] is None
    text = estimates.to_csv().splitlines()
    assert text[0].startswith("target,rows,estimate,low,high,band_low") and text[2].startswith("feb,300,0.")


def test_without_a_data_frame_library_the_message_says_so(estimates, monkeypatch):
    monkeypatch.setattr(result_tables, "_LIBRARIES", ("no_such_library",))
    with pytest.raises(MissingExtraError, match=r"pandas or polars"):
        estimates.to_frame()


def test_a_series_is_drawn_in_the_order_of_time(source, targets):
    import matplotlib.pyplot as plt

    months = dict(zip(("2024-03", "2024-01", "2024-02"), targets.values(), strict=True))
    made = ps.estimate_priors(*source, months, source_prior=0.3, random_state=0)
    ax = made.plot()
    line = ax.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [made[name].value for name in sorted(months)])
    assert list(line.get_xdata()) == sorted(line.get_xdata())
    assert [label.get_text() for label in ax.get_xticklabels()] == sorted(months)
    words = ps.estimate_priors(*source, targets, source_prior=0.3, method="tcpu")
    drawn = ps.plots.series(words, plt.figure().subplots())
    assert [label.get_text() for label in drawn.get_yticklabels()] == list(targets)  # names, not dates
    assert len(drawn.collections) == 3  # intervals, band and source prior
    plt.close("all")


def test_methods_that_tell_no_error_give_estimates_alone(source, targets):
    with pytest.warns(EstimatedPriorWarning):
        made = ps.estimate_priors(*source, targets, method="km2-ls", random_state=0)
    assert made.band is None and 0 < made["jan"].value < 1
    for ask in (made.differences, made.equality_test):
        with pytest.raises(InputError, match=r"joint error.*KM2-LS"):
            ask()
    assert json.dumps(made.to_dict(), allow_nan=False)
    pairs = ps.estimate_priors(*source, targets, method=ps.TCPU(0.3, pairs=2000, random_state=0))
    assert pairs.joint is None and pairs.band is None
    none = ps.estimate_priors(*source, targets, method=ps.TCPU(0.3, interval=None))
    assert none.joint is None and "interval" not in str(none) and np.isnan(none.confidence)


def test_an_estimator_keeps_its_settings_and_is_not_fitted(source, targets):
    witness = ps.WitnessShift(0.3, model=LogisticRegression(), confidence=0.8, random_state=0)
    made = ps.estimate_priors(*source, targets, method=witness)
    assert made.confidence == 0.8 and not hasattr(witness, "scored_")
    assert made.differences()[0].interval.confidence == 0.8


def test_an_audit_of_some_targets(source, targets):
    rng = np.random.default_rng(2)
    P, U = (pd.DataFrame(X, columns=list("abcd")) for X in source)
    frames = {name: pd.DataFrame(X, columns=list("abcd")) for name, X in targets.items()}
    audit = np.where(np.arange(300) < 60, (rng.random(300) < 0.2).astype(float), np.nan)
    frames["feb"] = frames["feb"].assign(seen=audit)
    made = ps.estimate_priors(P, U, frames, audit="seen", source_prior=0.3, random_state=0)
    assert made["jan"] == ps.estimate_prior(P, U, frames["jan"], source_prior=0.3, random_state=0)
    assert list(made["feb"].details["audit"]) == ["target"] and "and audit" in str(made["feb"])
    with pytest.raises(InputError, match=r"joint error"):
        made.differences()


def test_warnings_name_their_targets_and_are_said_once(source, targets):
    beyond = targets | {"far": gaussian(300, 0.0, np.random.default_rng(0))}
    with pytest.warns(OutOfRangeWarning) as caught:  # far too small a source prior: negative priors
        ps.estimate_priors(*source, beyond, source_prior=0.02, random_state=0)
    assert len(caught) == len({str(one.message) for one in caught}) <= 4
    assert any(str(one.message).startswith("target 'far': The raw estimate") for one in caught)
    assert all(one.filename == __file__ for one in caught)
    with pytest.warns(EstimatedPriorWarning) as caught:
        ps.estimate_priors(*source, targets, method="tcpu", random_state=0)
    assert len(caught) == 1 and str(caught[0].message).startswith("The interval")


def test_nothing_of_the_callers_is_changed(source, targets):
    frame = pd.concat([pd.DataFrame(X, columns=list("abcd")) for X in targets.values()]).assign(k=1)
    kept = frame.copy()
    P, U = (pd.DataFrame(X, columns=list("abcd")) for X in source)
    ps.estimate_priors(P, U, frame, by="k", source_prior=0.3, method="tcpu")
    pd.testing.assert_frame_equal(frame, kept)


# ---- strata


@pytest.fixture(scope="module")
def regions():
    """P, U and T of two regions whose classes lie elsewhere and whose priors differ."""
    rng = np.random.default_rng(4)

    def frame(sizes, priors):
        parts = [gaussian(n, p, rng) + 5 * k for k, (n, p) in enumerate(zip(sizes, priors, strict=True))]
        return pd.DataFrame(np.concatenate(parts), columns=list("abcd")).assign(
            region=np.repeat(["north", "south"], sizes)
        )

    return frame((100, 120), (1, 1)), frame((300, 300), (0.2, 0.5)), frame((150, 350), (0.6, 0.3))


def test_each_stratum_is_estimated_by_itself_and_the_whole_from_all(regions):
    made = ps.estimate_priors(*regions, stratify="region", source_prior={"north": 0.2, "south": 0.5}, random_state=0)
    alone = {}
    for name, prior in (("north", 0.2), ("south", 0.5)):
        tables = [t[t["region"] == name].drop(columns="region") for t in regions]
        alone[name] = ps.estimate_prior(*tables, source_prior=prior, random_state=0)
        assert made[name] == alone[name]
    value = 0.3 * alone["north"].value + 0.7 * alone["south"].value
    assert made.pooled.value == pytest.approx(value) and made.pooled.sizes == (220, 600, 500)
    between = (0.3 * (alone["north"].value - value) ** 2 + 0.7 * (alone["south"].value - value) ** 2) / 500
    square = between + sum((w * e.standard_error) ** 2 for w, e in zip((0.3, 0.7), alone.values(), strict=True))
    assert made.pooled.standard_error == pytest.approx(np.sqrt(square))
    low = sum((w * (e.value - e.interval.low)) ** 2 for w, e in zip((0.3, 0.7), alone.values(), strict=True))
    assert made.pooled.interval.low == pytest.approx(value - np.sqrt(low + stats.norm.ppf(0.975) ** 2 * between))
    assert 0.39 in made.pooled.interval and str(made).splitlines()[-1].split()[:2] == ["all", "500"]
    assert made.by == "region" and made.band["north"].width > made["north"].interval.width
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False))["pooled"]["method"] == "Witness, 2 strata"
    with pytest.raises(InputError, match=r"stratum"):
        made.differences()


def shares_of(estimates):
    rows = np.array([estimate.sizes[2] for estimate in estimates])
    return rows / rows.sum(), float(rows.sum())


def strata_of(prior, values=(0.5, 0.3), ratios=(0.6, 0.9), error=0.02):
    made = []
    for value, ratio in zip(values, ratios, strict=True):
        curve = FiellerCurve(ratio, error**2)
        low, high = prior.interval(curve, 0.95)
        e = ps.PriorEstimate(
            value, value, ps.Interval(low, high, 0.95, "x"), 0.1, prior.value, ratio, 1.0, "x", (10, 10, 100),
            source_prior_by=prior.by,
        )  # fmt: skip
        made.append((e, RatioInfluence(ratio, curve, prior, np.zeros(1), error**2, np.inf)))
    return made


def test_a_range_of_one_prior_is_taken_at_one_end_in_all_strata():
    estimates, parts = zip(*strata_of(RangePrior(0.1, 0.3), (1 - 0.8 * 0.6, 1 - 0.8 * 0.9)), strict=True)
    interval = pooled(estimates, parts, 0.95, *shares_of(estimates)).interval
    z, between = stats.norm.ppf(0.975), 0.12**2 / 200
    ends = []
    for pi, sign in ((0.1, -1), (0.3, 1)):
        values = [1 - (1 - pi) * r for r in (0.6, 0.9)]
        half = np.sqrt(2 * (0.5 * z * (1 - pi) * 0.02) ** 2 + z**2 * between)
        ends.append(np.mean(values) + sign * half)
    assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=1e-6)


def test_the_spread_of_one_distribution_adds_up_over_strata_and_that_of_several_does_not():
    prior = DistributionPrior(stats.beta(20, 80))
    estimates, parts = zip(*strata_of(prior, (1 - 0.8 * 0.6, 1 - 0.8 * 0.9)), strict=True)
    shares = shares_of(estimates)
    common, apart = (pooled(estimates, parts, 0.95, *shares, common_prior=flag).interval for flag in (True, False))
    z, between = stats.norm.ppf(0.975), 0.12**2 / 200
    sampling = 2 * (0.5 * 0.8 * 0.02) ** 2 + between
    assert common.width == pytest.approx(2 * z * np.sqrt(sampling + (0.75 * prior.error) ** 2), rel=1e-3)
    each = sampling + prior.error**2 * (0.3**2 + 0.45**2)
    assert apart.width == pytest.approx(2 * z * np.sqrt(each), rel=0.01)  # quantiles of a skew law


def wards(overlap, rng, count=2, rows=(60, 200, 150)):
    """P, U and T of wards; that share of the patients of the first stands in all others, with the same values."""
    made = []
    for name, n, prior in zip("PUT", rows, (1, 0.3, 0.5), strict=True):
        first = pd.DataFrame(gaussian(n, prior, rng), columns=list("abcd")).assign(pat=[f"{name}{k}" for k in range(n)])
        parts = [first.assign(ward="w0")]
        for k in range(1, count):
            other = pd.DataFrame(gaussian(n, prior, rng), columns=list("abcd"))
            other = other.assign(pat=[f"{name}{k} {i}" for i in range(n)])
            same = round(overlap * n)
            other.iloc[:same] = first.iloc[:same]
            parts.append(other.assign(ward=f"w{k}"))
        frame = pd.concat(parts, ignore_index=True)
        frame[list("abcd")] += 1e-6 * rng.normal(size=(len(frame), 4))
        made.append(frame)
    return made


def pooled_wards(tables, **settings):
    return ps.estimate_priors(
        *tables, stratify="ward", **{"groups": "pat", "source_prior": 0.3, "random_state": 0} | settings
    )


def test_the_standard_error_too_adds_up_what_is_common():
    tables, prior = wards(0.0, np.random.default_rng(0)), stats.beta(15, 35)
    made, of_each, known = (
        pooled_wards(tables, method="tcpu", source_prior=pi, groups=None, drop=["pat"])
        for pi in (prior, {"w0": prior, "w1": prior}, 0.3)
    )
    moved = np.array([e.negative_ratio for e in made.values()]) * prior.std() / 2
    error = known.pooled.standard_error
    assert made.pooled.standard_error == pytest.approx(np.hypot(error, moved.sum()), rel=1e-3)
    assert of_each.pooled.standard_error == pytest.approx(np.sqrt(error**2 + moved @ moved), rel=1e-3)
    half = made.pooled.interval.width / 2 / stats.norm.ppf(0.975)
    assert made.pooled.standard_error == pytest.approx(half, rel=0.05)


@pytest.mark.parametrize("method", ["tcpu", "auto"])
def test_wards_with_the_same_patients_are_as_sure_as_one(method):
    made = pooled_wards(wards(1.0, np.random.default_rng(0), 4), method=method)
    errors = [e.standard_error for e in made.values()]
    halves = [e.interval.width for e in made.values()]
    assert made.pooled.standard_error == pytest.approx(np.mean(errors), rel=0.02)
    assert made.pooled.interval.width == pytest.approx(np.mean(halves), rel=0.02)


@pytest.mark.parametrize("method", ["tcpu", "auto"])
def test_wards_with_other_patients_are_independent(method):
    tables = wards(0.0, np.random.default_rng(0), 3)
    told, untold = pooled_wards(tables, method=method), pooled_wards(tables, method=method, groups=None, drop=["pat"])
    square = sum((e.standard_error / 3) ** 2 for e in told.values())
    between = np.var([e.value for e in told.values()]) / 450
    assert told.pooled.standard_error == pytest.approx(np.sqrt(square + between))
    assert told.pooled.standard_error == pytest.approx(untold.pooled.standard_error, rel=0.05)


def test_patients_that_stand_in_two_wards_count_as_far_as_they_move_both():
    estimates, errors = [], []
    for seed in range(100):  # which know a spread to 7 %
        made = pooled_wards(wards(0.5, np.random.default_rng(seed), rows=(30, 60, 60)), method="tcpu")
        estimates.append(made.pooled.raw)
        errors.append(made.pooled.standard_error)
    apart = np.mean([e.standard_error for e in made.values()]) / np.sqrt(2)
    spread = np.std(estimates)
    assert np.mean(errors) == pytest.approx(spread, rel=0.15)
    assert 1.1 * apart < np.mean(errors) < 1.35 * apart  # √1.5 times as large as if they were independent


def test_what_is_not_known_of_common_patients_is_taken_as_common_to_all():
    rng = np.random.default_rng(0)
    tables = wards(0.1, rng)
    with pytest.warns(EstimatedPriorWarning):
        made = pooled_wards(tables, method="km2-ls", source_prior=None)
    halves = [e.value - e.interval.low for e in made.values()]
    between = stats.norm.ppf(0.975) ** 2 * np.var([e.value for e in made.values()]) / 285
    low = np.sqrt(np.mean(halves) ** 2 + between)
    assert made.pooled.value - made.pooled.interval.low == pytest.approx(low, rel=1e-3)


def test_an_id_that_stands_in_two_wards_is_a_group():
    tables = wards(0.5, np.random.default_rng(0))
    with pytest.warns(DuplicateRowsWarning, match=r"id is in both"):
        ids = pooled_wards(tables, method="tcpu", groups=None, shared="pat")
    assert ids.to_dict() == pooled_wards(tables, method="tcpu").to_dict()


class Foreign(BaseEstimator):
    """The mean of a column, without an error; it knows nothing of groups."""

    def fit(self, X, y):
        self.sizes_ = int(np.sum(y)), int(np.sum(1 - y))
        return self

    def estimate(self, X):
        value, nan = float(X[:, 0].mean()), float("nan")
        return ps.PriorEstimate(value, value, None, 0.0, nan, nan, nan, "foreign", (*self.sizes_, len(X)))


def test_groups_that_nobody_passed_are_for_estimators_that_take_them():
    P, U, T = wards(0.0, np.random.default_rng(0))
    P["pat"], T["pat"] = np.arange(len(P)) // 2, np.arange(len(T)) // 2
    T["a"] = np.where(T["ward"] == "w0", 0.2, 0.8)
    by_ward = {"stratify": "ward", "method": Foreign()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateRowsWarning)  # that no id stands in both
        made = ps.estimate_priors(P, U, T, shared="pat", **by_ward)
        one = ps.estimate_prior(P, U, T, shared="pat", drop=["ward"], method=Foreign())
    assert one.value == pytest.approx(0.5) and made.pooled.value == pytest.approx(0.5)
    # the strata have no error of their own: what is left is that of their shares, which 150 patients know
    assert made.pooled.standard_error == pytest.approx(0.3 / np.sqrt(150))
    apart = ps.estimate_priors(P, U, T, drop=["pat"], **by_ward)
    assert apart.pooled.standard_error == pytest.approx(0.3 / np.sqrt(300))
    with pytest.raises(InputError, match=r"Foreign.*groups"):
        ps.estimate_priors(P, U, T, groups="pat", **by_ward)


def test_a_stratum_without_an_interval_leaves_the_whole_without(regions):
    with pytest.warns(EstimatedPriorWarning):
        made = ps.estimate_priors(*regions, stratify="region", method="km2-ls", random_state=0)
    assert made.band is None and made.pooled.interval is not None  # KM2-LS has intervals, if no joint error
    none = ps.estimate_priors(*regions, stratify="region", method=ps.TCPU(0.3, interval=None))
    assert none.pooled.interval is None and 0 < none.pooled.value < 1


# ---- what is refused


def refuse(message, *arguments, **settings):
    with pytest.raises(InputError, match=message):
        ps.estimate_priors(*arguments, **{"source_prior": 0.3, "method": "tcpu"} | settings)


@pytest.fixture(scope="module")
def frames(source, targets):
    P, U = (pd.DataFrame(X, columns=list("abcd")) for X in source)
    T = pd.concat([pd.DataFrame(X, columns=list("abcd")).assign(month=name) for name, X in targets.items()])
    return P, U, T.reset_index(drop=True)


def test_targets_that_cannot_be_told_apart_are_refused(source, targets, frames, tmp_path):
    X = targets["jan"]
    refuse("targets is of type ndarray, but several tables are expected", *source, X)
    refuse("targets is of type DataFrame, .* or one table and by=", *frames)
    refuse("targets is of type str", *source, "jan.csv")
    refuse("targets is empty, but at least one table is expected; pass some", *source, {})
    refuse("targets is empty", *source, [])
    refuse("by='month' names a column of one table, but targets holds 3; pass one table", *source, targets, by="month")
    refuse(r"two targets are called '1'; pass a mapping of distinct names", *source, {1: X, "1": X})
    refuse("a target's name is empty; give every target a name", *source, {"": X})
    files = [tmp_path / folder / "jan.csv" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        pd.DataFrame(X).add_prefix("x").to_csv(file, index=False)
    refuse("two targets are called 'jan'", *source, files)
    refuse(r"target 'feb' \(feb.csv\) does not exist; check the path", *source, {"feb": "feb.csv"})


def test_a_target_that_cannot_be_read_is_named(source, targets, frames):
    refuse("target 'b' has 1 row, but at least 2 are needed", *source, {"a": targets["jan"], "b": targets["jan"][:1]})
    refuse(r"target 'b' has 0 row\(s\)", *source, {"a": targets["jan"], "b": targets["jan"][:0]})
    refuse("target 'b' has 3 features but unlabeled has 4", *source, {"a": targets["jan"], "b": targets["feb"][:, :3]})
    refuse("target '1' has 1 dimension", *source, [targets["jan"], targets["jan"][0]])
    far = targets["feb"].copy()
    far[3, 1] = np.inf
    refuse(r"target 'b' contains infinity \(inf\) in row 3", *source, {"a": targets["jan"], "b": far})
    P, U, T = frames
    lonely = T.copy()
    lonely.loc[7, "month"] = "apr"
    refuse("target 'apr' has 1 row, but at least 2 are needed", P, U, lonely, by="month")


def test_columns_that_cannot_be_used_are_refused(frames):
    P, U, T = frames
    gap = T.astype({"month": object}).copy()
    for missing in (None, np.nan, "", pd.NaT):
        gap.loc[5, "month"] = missing
        refuse("target has no value in row 5 .*column 'month'", P, U, gap, by="month")
    refuse("target has no column 'week'; its columns are", P, U, T, by="week")
    refuse(
        "target is an array without column names, so it has no column 'month'",
        P,
        U,
        T[["a", "b"]].to_numpy(),
        by="month",
    )
    refuse("by is list, but it must be the name of a column", P, U, T, by=["month"])
    refuse("the column 'month' is both by and dropped; it must be one of them", P, U, T, by="month", drop="month")
    refuse("the column 'month' is both by and shared", P, U, T, by="month", shared="month")
    refuse("the column 'month' is both by and audit", P, U, T, by="month", audit="month")
    refuse("no table has a column 'week' to drop", P, U, T, by="month", drop=["week"])
    refuse("source_prior is a mapping", P, U, T, by="month", source_prior={"jan": 0.2})
    audits = {"target": np.ones(len(T))}
    refuse(
        "audit holds values of 'target', but there are several; put them in a column",
        P,
        U,
        T,
        by="month",
        audit=audits,
    )
    audited = T.assign(seen=np.where(np.arange(len(T)) < 3, 1.0, np.nan))
    refuse(
        "target 'jan': audit has 3 rows with a class, but at least 10 are needed", P, U, audited,
        by="month", audit="seen", method="witness",
    )  # fmt: skip


def test_questions_that_have_no_answer_are_refused(source, targets, estimates):
    def ask(message, **settings):
        with pytest.raises(InputError, match=message):
            estimates.differences(**settings)

    ask("reference is 'dec', but the targets are 'jan', 'feb', 'mar'; pass one of them", reference="dec")
    ask("reference and consecutive exclude each other", reference="jan", consecutive=True)
    ask("confidence is 1.5", confidence=1.5)
    one = ps.estimate_priors(*source, {"jan": targets["jan"]}, source_prior=0.3, method="tcpu")
    for question in (one.differences, one.equality_test):
        with pytest.raises(InputError, match=r"two targets"):
            question()


def test_strata_that_cannot_be_used_are_refused(regions):
    P, U, T = regions

    def strata(message, *tables, **settings):
        refuse(message, *tables, **{"stratify": "region"} | settings)

    strata(
        "positive has no row of stratum 'south' .column 'region'., which another table has",
        P[P.region == "north"],
        U,
        T,
    )
    strata("target has no row of stratum 'north'", P, U, T[T.region == "south"])
    strata("target, stratum 'north' has 1 row, but at least 2", P, U, T.iloc[149:])
    strata("unlabeled has no column 'region'", P, U.drop(columns="region"), T)
    strata("by and stratify cannot be combined", P, U, T, by="month")
    strata("the column 'region' is both stratify and by", P, U, T, by="region")
    strata("audit and stratify cannot be combined", P, U, T, audit="seen")
    strata("stratify='region' is for one target, but targets holds 2; pass one table", P, U, [T, T])
    strata("the column 'region' is both stratify and dropped", P, U, T, drop=["region"])
    strata(
        "source_prior lacks 'south'; pass one prior for each stratum: 'north', 'south'",
        P,
        U,
        T,
        source_prior={"north": 0.2},
    )
    known = {"north": 0.2, "south": 0.5, "west": 0.1}
    strata("source_prior has 'west' besides", P, U, T, source_prior=known)
    strata(
        "source_prior was passed",
        P,
        U,
        T,
        method=ps.TCPU(),
        source_prior={"north": 0.2, "south": 0.5},
    )
    strata("stratum 'north': source_prior is 2, but it must be", P, U, T, source_prior={"north": 2, "south": 0.5})


def test_the_curve_with_an_estimated_prior_is_that_of_the_interval(source, targets):
    tcpu = ps.TCPU(random_state=0).fit(np.concatenate(source), np.repeat([1, 0], [150, 500]))
    with pytest.warns(EstimatedPriorWarning):
        estimate = tcpu.estimate(targets["mar"])
    target = tcpu.read_target(targets["mar"])
    embeddings = tcpu._kernel_fit.embed(target, "unbiased", None, prior=tcpu._estimated.influence)
    for confidence in (0.5, 0.95, 0.999):
        curve = intervals.curve_with_prior(embeddings, estimate.source_prior)
        delta, _ = intervals.delta(embeddings, estimate.source_prior, confidence)
        assert curve.interval(estimate.source_prior, confidence) == pytest.approx((delta.low, delta.high), abs=1e-9)


def test_the_doors_take_a_scenario(source, targets):
    positive, unlabeled = source
    target = targets["jan"]
    by_name = ps.estimate_prior(positive, unlabeled, target, source_prior=0.3, scenario="censoring", random_state=0)
    estimator = ps.WitnessShift(0.3, scenario="censoring", random_state=0)
    assert by_name == ps.estimate_prior(positive, unlabeled, target, method=estimator)
    several = ps.estimate_priors(positive, unlabeled, targets, source_prior=0.3, scenario="censoring", random_state=0)
    assert several["jan"].details["scenario"] == "censoring"
    with pytest.raises(InputError, match=r"'km2-ls'.*scenario"):
        ps.estimate_prior(positive, unlabeled, target, method="km2-ls", scenario="censoring")
