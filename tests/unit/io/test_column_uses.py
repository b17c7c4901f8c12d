"""What was done with each column, of every use."""

import json

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.io.column_checks import column_uses
from priorshift.loading import InputOptions, load_problem


def mixed(n, share, rng, sample):
    ill = rng.random(n) < share
    return pd.DataFrame({
        "age": rng.normal(size=n) + 2 * ill,
        "dose": np.where(rng.random(n) < 0.25, np.nan, rng.normal(size=n)),
        "ward": rng.choice(["north", "south"], n),
        "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        "same": 1.0,
        "weight": rng.choice([1.0, 2.0], n),
        "patient": [f"{sample}{k // 2}" for k in range(n)],
        "note": "text",
        "truth": np.where(rng.random(n) < 0.3, ill.astype(float), np.nan),
    })  # fmt: skip


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return [mixed(n, share, rng, name) for n, share, name in ((100, 1.0, "p"), (300, 0.3, "u"), (300, 0.5, "t"))]


def uses_of(positive, unlabeled, target, **stated):
    options = InputOptions.from_arguments(**stated)
    problem = load_problem(positive=positive, unlabeled=unlabeled, target=target, options=options)
    return column_uses([problem.positive.data], problem.unlabeled.data, [problem.target.data], problem.columns)


def test_every_use_of_a_column(samples):
    positive, unlabeled, target = samples
    positive, unlabeled = (table.drop(columns="truth") for table in (positive, unlabeled))
    stated = {"audit": "truth", "weights": "weight", "groups": "patient", "drop": ["note"]}
    found = {c.name: c for c in uses_of(positive, unlabeled, target, **stated)}
    uses = {name: column.use for name, column in found.items()}
    assert uses == {
        "age": "feature", "dose": "feature", "ward": "feature", "seen": "feature", "same": "constant",
        "weight": "weight", "patient": "group", "truth": "audit", "note": "dropped",
    }  # fmt: skip
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds["ward"] == "category" and kinds["seen"] == "date" and kinds["patient"] == "text"
    assert found["ward"].became == "2 levels" and found["dose"].became.startswith("itself, median")
    assert found["dose"].missing == pytest.approx(unlabeled["dose"].isna().mean(), abs=1e-4)
    assert found["truth"].missing == pytest.approx(target["truth"].isna().mean())
    assert np.isnan(found["note"].missing) and found["note"].to_dict()["missing"] is None


def test_an_id_may_be_a_group_too(samples):
    positive, unlabeled, target = (table[["age", "patient"]] for table in samples)
    (_, column) = uses_of(positive, unlabeled, target, shared="patient", groups="patient")
    assert column.use == "id"
    assert column.became == "identifies observations, and identifies groups of rows"


def test_numbers_without_names_have_their_places(samples):
    arrays = [table[["age", "same"]].to_numpy() for table in samples]
    with_names = uses_of(*arrays)
    assert [(c.name, c.use) for c in with_names] == [("0", "feature"), ("1", "constant")]


def test_a_diagnosis_has_them_and_what_it_was_asked_with(samples):
    positive, unlabeled, target = (table[["age", "ward", "weight"]] for table in samples)
    known = {"source_prior": (0.2, 0.4), "random_state": 5, "confidence": 0.9}
    found = ps.diagnose(positive, unlabeled, target, weights="weight", threshold=0.4, **known)
    assert [column.use for column in found.columns] == ["feature", "feature", "weight"]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["settings"] == {"source_prior": [0.2, 0.4], "random_state": 5, "confidence": 0.9, "weights": "weight",
                                 "threshold": 0.4}  # fmt: skip
    assert plain["columns"][1]["name"] == "ward"


@pytest.mark.slow
def test_several_targets_say_what_is_common_once_and_have_a_band(samples):
    positive, unlabeled, target = (table[["age", "dose"]].fillna(0.0) for table in samples)
    months = target.assign(month=np.where(np.arange(len(target)) % 2, "may", "june"))
    known = {"source_prior": 0.3, "random_state": 0}
    found = ps.diagnose_targets(positive, unlabeled, months, by="month", **known)
    alone = ps.estimate_priors(positive, unlabeled, months, by="month", **known)
    assert found.estimates.band == alone.band and dict(found.estimates) == dict(alone)
    assert found.estimates.equality_test() == alone.equality_test()
    assert found.estimates.differences().records() == alone.differences().records()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["equality"] == alone.to_dict()["equality"]
    assert plain["targets"]["may"]["band"] == alone.to_dict()["targets"]["may"]["band"]
    assert {c["name"]: c["use"] for c in plain["columns"]}["month"] == "target"
    assert plain["settings"]["by"] == "month" and "drop" not in plain["settings"]
    assert "columns" not in plain["targets"]["may"] and plain["drivers"][0]["name"] == "age"
