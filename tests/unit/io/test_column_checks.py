"""Columns and samples that should not be there are told, with their numbers; others never."""

import warnings

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import ColumnWarning, InconsistentInputWarning, InputError, PriorShiftWarning
from priorshift.io.column_checks import encode_tables, is_beyond, numbers_rows
from priorshift.io.readers import read_table
from priorshift.problem import Source
from priorshift.scores.scored_source import ScoredSource, inclusion, warn_if_swapped


def population(n, prior, rng):
    """Columns as tables have them: a continuous, a small count, an amount in whole euros, a rare flag, an age."""
    y = rng.random(n) < prior
    amount = np.round(50_000 * np.exp(rng.normal(size=n) + y))
    return pd.DataFrame({"x": rng.normal(size=n) + y, "count": rng.poisson(3 + 2 * y), "amount": amount,
                         "rare": rng.random(n) < 0.02 + 0.1 * y, "age": rng.integers(18, 90, n),
                         "region": rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.3, 0.09, 0.01])})  # fmt: skip


def said(positive, unlabeled, target):
    """What is told of three tables before they are used."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tables = (positive, "positive"), (unlabeled, "unlabeled"), (target, "target")
        P, U, T = (read_table(table, name) for table, name in tables)
        encode_tables([P], U, [T], [], "auto")
    return [w for w in told if issubclass(w.category, PriorShiftWarning)]


def three(rng, n=300, pi=0.3, target=0.6):
    return [population(size, prior, rng) for size, prior in ((n // 2, 1.0), (n, pi), (n, target))]


@pytest.mark.slow
def test_nothing_is_said_of_ordinary_tables_whatever_their_priors():
    """120 draws, of all sizes and priors; each check allows itself one false alarm in ten thousand."""
    rng = np.random.default_rng(1)
    told = []
    for _ in range(120):
        told += said(*three(rng, int(rng.integers(10, 250)), *rng.random(2)))
    assert len(told) <= 1, [str(w.message) for w in told]


@pytest.mark.parametrize("kind", ["counted", "shuffled", "drawn from a register", "ordered"])
def test_a_column_that_numbers_rows_is_told(kind):
    rng = np.random.default_rng(2)
    tables, begin = three(rng), 1000
    for table in tables:
        n = len(table)
        ids = {"counted": begin + np.arange(n), "shuffled": begin + rng.permutation(n),
               "drawn from a register": begin + rng.choice(3000, n, replace=False),
               "ordered": np.sort(rng.choice(10**9, n, replace=False))}[kind]  # fmt: skip
        table["patient"] = ids
        begin += 5000
    told = said(*tables)
    assert [w.category for w in told] == [ColumnWarning]
    words = str(told[0].message)
    assert words.startswith("Column 'patient' looks like an id: whole numbers, from ")
    assert "leave it out (drop=['patient'], --drop patient)" in words
    # without names there is nothing to drop by name
    (told,) = said(*(table.drop(columns="region").to_numpy(dtype=float) for table in tables))
    assert str(told.message).startswith("Column 5 looks like an id")


def test_how_often_whole_numbers_that_are_no_ids_never_repeat_is_bounded_by_the_formula():
    """Independent draws: the check is wrong with a probability of at most 1e-4, whatever the distribution."""
    rng = np.random.default_rng(3)
    for high in (50, 1000, 20_000, 10**6):
        assert not any(numbers_rows([rng.integers(high, size=200)]) for _ in range(200))
    # n²/2r just below ln(1e4): no repetition happens now and then, and is not told
    quiet = [numbers_rows([rng.choice(2500, 200, replace=False)]) for _ in range(50)]
    assert not any(quiet)
    assert all(numbers_rows([rng.choice(2000, 200, replace=False)]) for _ in range(50))
    assert not numbers_rows([rng.choice(2000, 200, replace=False) + 0.5])


def test_an_id_spoils_an_estimate_and_dropping_it_as_told_mends_it():
    rng = np.random.default_rng(4)
    s = ps.simulate.gaussian(0.2, 0.5, n_source=600, n_target=600, shared=False, random_state=4)
    tables = {"positive": s.positive, "unlabeled": s.unlabeled, "target": s.target}
    begin, frames = 0, {}
    for key, X in tables.items():
        frames[key] = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(
            id=begin + rng.permutation(len(X))
        )
        begin += len(X)
    with pytest.warns(ColumnWarning, match=r"'id' looks like an id"):
        ps.estimate_prior(**frames, source_prior=0.2, random_state=0)
    mended = ps.estimate_prior(**frames, source_prior=0.2, random_state=0, drop="id")
    assert mended == ps.estimate_prior(**tables, source_prior=0.2, random_state=0)


def test_ranges_without_a_common_value_and_a_constant_are_told():
    rng = np.random.default_rng(5)
    P, U, T = three(rng)
    with pytest.raises(InputError, match=r"runs from 0\.18 to 0\.89 in target and from 18 to 89 in the source"):
        said(P, U, T.assign(age=T["age"] / 100))
    dates = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 300), unit="D")
    later = [P.assign(when=dates[:150]), U.assign(when=dates), T.assign(when=dates + pd.Timedelta(days=400))]
    with pytest.raises(InputError, match="column 'when' runs from 2021-0"):
        said(*later)
    half = np.where(np.arange(len(T)) % 2, dates[: len(T)], dates[: len(T)] + pd.Timedelta(days=400))
    (told,) = said(*later[:2], T.assign(when=half))
    assert "has dates outside of the source's" in str(told.message) and "50.0% of the rows" in str(told.message)
    (told,) = said(P, U, T.assign(age=40))
    assert "Column 'age' is 40 in every row of the target but in only" in str(told.message)
    assert not said(P, U, T.assign(rare=False))  # which a target of negatives may be


def test_a_column_that_is_constant_in_the_source_is_left_out_and_not_refused():
    P, U, T = three(np.random.default_rng(5))
    for old, new in ((2019, 2020), ("old", "new")):
        period = [P.assign(period=old), U.assign(period=old), T.assign(period=new)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimate = ps.estimate_prior(*period, source_prior=0.3, random_state=0)
        assert any("period" in str(warning.message) for warning in caught)
        expected = ps.estimate_prior(P, U, T, source_prior=0.3, random_state=0).value
        assert estimate.value == pytest.approx(expected, abs=0.01)  # other random numbers


def test_a_category_that_is_constant_in_the_target_alone_is_told():
    P, U, T = three(np.random.default_rng(11))
    (told,) = said(P, U, T.assign(region="b"))
    share = [f"{(table['region'] == 'b').mean():.1%}" for table in (U, P)]
    assert str(told.message) == (
        f"100.0% of the rows of target have 'b' in column 'region', but {share[0]} of the unlabelled source rows and "
        f"{share[1]} of the positives, which label shift allows only where most of the source is positive; leave it "
        "out (drop=['region'], --drop region), or check how it was made."
    )
    assert told.category is ColumnWarning
    with pytest.raises(InputError, match="no value that target has in column 'region', such as 'abroad', occurs in"):
        said(P, U, T.assign(region="abroad"))
    assert not said(*(table.assign(region="b") for table in (P, U, T)))
    # negatives are all of one level, and the target is of negatives
    P, U = P.assign(region="a"), U.assign(region=np.where(np.arange(300) % 2, "a", "b"))
    assert not said(P, U, T.assign(region="b"))


@pytest.mark.parametrize("column", ["region", "age", "when"])
def test_cells_that_are_missing_in_the_target_far_beyond_the_source_are_told(column):
    rng = np.random.default_rng(12)
    tables = [table.assign(when=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(table)), "D"))
              for table in three(rng)]  # fmt: skip
    for table, share in zip(tables, (0.1, 0.2, 0.95), strict=True):
        table[column] = table[column].where(rng.random(len(table)) > share)
    P, U, T = tables
    shares = [f"{table[column].isna().mean():.1%}" for table in (T, U, P)]
    for target, share in ((T, shares[0]), (T.assign(**{column: None}), "100.0%")):
        (told,) = said(P, U, target)
        assert str(told.message).startswith(
            f"{share} of the rows of target have no value in column '{column}', but {shares[1]} of the unlabelled "
            f"source rows and {shares[2]} of the positives"
        )
        assert f"leave it out (drop=['{column}'], --drop {column})" in str(told.message)
    assert not said(P, U, U.sample(300, replace=True, random_state=0).assign(x=T["x"].to_numpy()))


def test_shares_of_label_shift_are_never_beyond():
    """400 draws: any shares of the two classes, any source prior up to a half, any target prior, any sizes."""
    rng = np.random.default_rng(13)
    alarms = 0
    for _ in range(400):
        of_positive, of_negative = rng.choice([0, 1, *rng.random(4)], 2)
        priors = 1.0, rng.choice([0.5, rng.uniform(0, 0.5)]), rng.choice([0, 1, rng.random()])
        P, U, T = (
            rng.random(n) < np.where(rng.random(n) < prior, of_positive, of_negative)
            for n, prior in zip(rng.integers(10, 400, 3), priors, strict=True)
        )
        alarms += is_beyond(U, P, T)
    assert alarms == 0


def test_levels_that_only_the_target_or_only_the_positives_have_are_told():
    rng = np.random.default_rng(6)
    P, U, T = three(rng)
    moved = T["region"].where(rng.random(300) > 0.2, "abroad")
    (told,) = said(P, U, T.assign(region=moved))
    rows = int((moved == "abroad").sum())
    assert f"{rows} of 300 rows ({rows / 300:.1%}) of target have 'abroad' in column 'region', and none" in str(
        told.message
    )
    assert not said(P, U, T.assign(region=T["region"].where(np.arange(300) > 5, "abroad")))  # six rows may be chance
    (told,) = said(P, U, T.assign(region=T["region"].where(np.arange(300) > 50)))
    assert "51 of 300 rows (17.0%) of target have no value in column 'region'" in str(told.message)
    (told,) = said(P, U, T.assign(age=T["age"].where(np.arange(300) > 50)))
    assert "51 of 300 rows (17.0%) of target have no value in column 'age'" in str(told.message)
    P, U, T = three(rng, 2000)
    (told,) = said(P.assign(region="clinic"), U, T)
    assert "1000 of 1000 rows (100.0%) of positive have 'clinic' in column 'region', but none of the 2000" in str(
        told.message
    )
    # what positives have as well is no news in the target
    both = [table["region"].where(rng.random(len(table)) > 0.02, "clinic") for table in (P, T)]
    assert not said(P.assign(region=both[0]), U, T.assign(region=both[1]))


def test_a_target_that_is_the_unlabelled_sample_is_told(tmp_path, capsys):
    rng = np.random.default_rng(7)
    P, U, T = three(rng)
    for same in (U, U.sample(frac=1, random_state=0), pd.concat([U[:200], T[:50]])):
        (told,) = said(P, U, same)
        assert told.category is InconsistentInputWarning and "rows of target are also in unlabeled" in str(told.message)
    discrete = [table[["count", "rare"]] for table in (P, U, T)]
    assert not said(*discrete)  # equal rows by chance
    for name, table in (("p", P), ("u", U)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [f"--{key}={tmp_path / name}.csv" for key, name in (("positive", "p"), ("unlabeled", "u"), ("target", "u"))]
    assert main(["estimate", *files, "--source-prior", "0.3"]) == 0
    assert "priorshift: warning: 300 of 300 rows of --target" in capsys.readouterr().err


def scored(P, U, seed=0):
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    source = Source.from_labels(X, y, scenario="case-control", standardize=True)
    return ScoredSource.fit(source, None, 1, 5, np.random.default_rng(seed))


def drawn(rng, pi, shift=1.0, n=1200, m=500):
    return rng.normal(size=(m, 8)) + shift, rng.normal(size=(n, 8)) + shift * (rng.random((n, 1)) < pi)


@pytest.mark.slow
def test_swapped_tables_are_asked_about_and_others_are_not():
    """Of 18 sources none is asked about; swapped, with classes well apart, most are."""
    rng = np.random.default_rng(8)
    false, power = [], []
    for seed in range(6):
        for pi in (0.05, 0.2, 0.5):
            P, U = drawn(rng, pi)
            false.append(inclusion(scored(P, U, seed)).looks_swapped)
            if pi > 0.1:
                power.append(inclusion(scored(U, P, seed)).looks_swapped)
    assert sum(false) == 0
    assert np.mean(power) > 0.6


def test_the_bound_of_the_inclusion_is_near_the_truth():
    """U holds the share π of P; the bound is the least of five, whose sets P's own rows decide."""
    rng = np.random.default_rng(9)
    most = np.array([inclusion(scored(*drawn(rng, 0.3, shift=1.5), seed)).upper for seed in range(10)])
    assert np.mean(most > 0.3) >= 0.6
    assert 0.3 < most.mean() < 0.4


def test_the_witness_asks_whether_tables_are_swapped():
    P, U = drawn(np.random.default_rng(10), 0.3, 1.5)
    with pytest.warns(InconsistentInputWarning, match=r"swapped"):
        warn_if_swapped(scored(U, P))
    with pytest.warns(InconsistentInputWarning, match=r"which table"):
        ps.WitnessShift(0.3, random_state=0).fit(np.concatenate([U, P]), np.repeat([1, 0], [len(U), len(P)]))
