"""Codes for missing values among numbers are named; heavy tails are not taken for them."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.errors import ColumnWarning
from priorshift.io.column_checks import warn_of_far_values
from priorshift.io.tables import Table

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(50, 3, 1667)


def said(column, name="X", columns=("x",)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_far_values(Table(name, np.asarray(column, dtype=float).reshape(len(column), -1), columns))
    assert all(issubclass(w.category, ColumnWarning) and issubclass(w.category, ColumnWarning) for w in caught)
    return [str(w.message) for w in caught]


def with_code(code, rows, column=NORMAL):
    return np.where(np.arange(len(column)) % (len(column) // rows) == 1, code, column)


@pytest.mark.parametrize(("code", "rows"), [(9999, 5), (-999, 5), (9999, 1), (-99999, 300), (99999.0, 20), (1234, 40)])
def test_a_code_is_named_with_its_column_its_value_and_its_rows(code, rows):
    column = with_code(code, rows)
    rows = int((column == code).sum())
    rest = np.sort(column[column != code])
    cut = int(0.005 * len(rest))
    spreads = abs(code - np.median(rest)) / rest[cut : len(rest) - cut].std()
    (message,) = said(column)
    found = re.fullmatch(
        r"In X, column 'x' holds (\S+) in (\d+) rows?, (\d+) standard deviations from the rest. If it is a code for a missing "
        r"value, pass missing=\[(\S+)\] \(--missing[= ](\S+)\)\.", message)  # fmt: skip
    assert (float(found[1]), int(found[2])) == (code, rows) == (float(found[4]), int(found[2]))
    assert float(found[5]) == code
    assert int(found[3]) == pytest.approx(spreads, abs=1)


def test_one_code_in_many_bands_is_one_warning():
    rng = np.random.default_rng(1)
    bands = np.where(np.arange(500)[:, None] % 50 == 1, -9999, rng.normal(50, 3, (500, 19)))
    (message,) = said(bands, columns=tuple(f"bio{k}" for k in range(19)))
    assert "19 columns ('bio0', 'bio1'" in message and "hold -9999 in 10 rows" in message


def test_two_codes_are_both_named_and_columns_have_numbers_without_names():
    both = np.column_stack([NORMAL, with_code(9999, 5, with_code(-999, 4))])
    messages = said(both, columns=None)
    assert [re.search("column (.) holds (-?9+)", message).groups() for message in messages] == [
        ("1", "9999"),
        ("1", "-999"),
    ]


TAILS = {
    "log-normal": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "rounded Cauchy": lambda rng, n: rng.standard_cauchy(n).round(),
    "rounded Pareto": lambda rng, n: rng.pareto(1, n).round(),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.99, 0, np.exp(2 * rng.normal(size=n)).round()),
    "rare indicator": lambda rng, n: rng.random(n) < 0.01,
    "share": lambda rng, n: np.where(rng.random(n) < 0.01, 1, rng.beta(1, 200, n)),
    "levels": lambda rng, n: rng.choice([0, 1, 2, 100], n, p=[0.5, 0.3, 0.19, 0.01]),
    "one value twice": lambda rng, n: np.repeat([3.0, 3.1], n // 2),
}


@pytest.mark.parametrize("kind", TAILS)
@pytest.mark.parametrize("rows", [4, 60, 500, 5000])
def test_heavy_tails_and_levels_are_no_codes(kind, rows):
    rng = np.random.default_rng(1)
    assert not any(said(TAILS[kind](rng, rows)) for _ in range(30))


def test_the_columns_of_real_tables_hold_no_codes():
    from sklearn import datasets

    for name in ("breast_cancer", "wine", "diabetes", "digits", "iris"):
        assert said(getattr(datasets, f"load_{name}")().data, columns=None) == []


S = ps.simulate.gaussian(0.3, 0.6, 800, 400, dimension=3, distance=2.0, shared=False, random_state=0)


def coded(rows, count):
    frame = pd.DataFrame(rows.copy(), columns=["a", "b", "c"])
    frame.loc[frame.index[:count], "b"] = 9999.0
    return frame


def messages_of(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if issubclass(w.category, ColumnWarning)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "tcpu", "km2-ls"])
def test_the_front_door_says_it_once_of_each_table(method):
    tables = S.positive, coded(S.unlabeled, 5), coded(S.target, 3)
    found = messages_of(lambda: ps.estimate_prior(*tables, method=method, random_state=0))
    assert len(found) == 2
    assert found[0].startswith("In the positive and unlabeled rows, column 'b' holds 9999 in 5 rows, ")
    assert found[1].startswith("In target, column 'b' holds 9999 in 3 rows, ")
    assert not messages_of(lambda: ps.estimate_prior(S.positive, S.unlabeled, S.target, method=method, random_state=0))


def test_a_classifier_with_parts_says_it_once():
    X, y = (
        pd.concat([pd.DataFrame(S.positive, columns=["a", "b", "c"]), coded(S.unlabeled, 5)]),
        np.repeat([1, 0], [len(S.positive), len(S.unlabeled)]),
    )
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(), random_state=0)
    assert len(messages_of(lambda: shifted.fit(X, y))) == 1
    assert len(messages_of(lambda: shifted.adapt(coded(S.target, 3)))) == 1
    assert messages_of(lambda: shifted.predict(coded(S.target, 3))) == []  # rows, and no sample
