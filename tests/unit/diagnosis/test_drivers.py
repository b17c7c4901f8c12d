"""Which columns tell positives from the population."""

import numpy as np
import pandas as pd
import pytest

import priorshift as ps


def samples(shifts, rows=3000, prior=0.3, target_prior=0.5, seed=0):
    """Independent columns of unit variance; positives lie `shifts` away from negatives."""
    rng = np.random.default_rng(seed)

    def sample(n, share):
        ill = rng.random(n) < share
        made = rng.normal(size=(n, len(shifts))) + ill[:, None] * np.array(shifts)
        return pd.DataFrame(made, columns=[f"x{k}" for k in range(len(shifts))])

    return [sample(rows // 3, 1.0), sample(rows, prior), sample(rows, target_prior)]


def diagnosed(tables, **settings):
    return ps.diagnose(*tables, source_prior=0.3, random_state=0, **settings)


@pytest.mark.slow
def test_a_column_that_separates_is_all_and_one_that_does_not_is_nothing():
    d, prior = 2.0, 0.3
    first, second = diagnosed(samples([d, 0.0])).drivers
    assert (first.name, second.name) == ("x0", "x1")
    assert first.importance > 0.98 and second.importance < 0.02
    # the population is a mixture: its mean lies πd from the negatives, its variance is 1 + π(1−π)d²
    expected = d * (1 - prior) / np.sqrt(1 + prior * (1 - prior) * d**2)
    assert first.difference == pytest.approx(expected, abs=0.06)
    assert second.difference == pytest.approx(0.0, abs=0.06)
    assert first.level is None


@pytest.mark.slow
def test_columns_that_separate_alike_share_what_the_score_rests_on():
    found = diagnosed(samples([1.5, 1.5, 0.0])).drivers
    share = {driver.name: driver.importance for driver in found}
    assert share["x0"] == pytest.approx(0.5, abs=0.12) and share["x1"] == pytest.approx(0.5, abs=0.12)
    assert sum(share.values()) == pytest.approx(1.0) and share["x2"] < 0.02


def test_the_direction_is_that_of_the_positives():
    below, above = sorted(diagnosed(samples([1.5, -1.5])).drivers, key=lambda driver: driver.difference)
    assert (below.name, above.name) == ("x1", "x0") and below.difference < -0.5 < 0.5 < above.difference


@pytest.mark.slow
def test_levels_of_a_category_are_one_column_with_the_level_that_differs_most():
    tables = samples([0.0, 0.0], rows=1500)
    rng = np.random.default_rng(1)
    for table, share in zip(tables, (1.0, 0.3, 0.5), strict=True):
        ill = rng.random(len(table)) < share
        table["ward"] = np.where(
            ill, rng.choice(["a", "b"], len(table), p=[0.9, 0.1]), rng.choice(["b", "c"], len(table))
        )
    drivers = diagnosed(tables).drivers
    assert [driver.name for driver in drivers].count("ward") == 1
    assert drivers[0].name == "ward" and drivers[0].level == "a" and drivers[0].importance > 0.9
    u, p = ((table["ward"] == "a").to_numpy() for table in (tables[1], tables[0]))
    assert drivers[0].difference == pytest.approx((p.mean() - u.mean()) / u.std(), rel=1e-6)


def test_weights_count():
    tables = samples([2.0, 0.0], rows=1200)
    rng = np.random.default_rng(0)
    for table in tables:
        table["w"] = rng.choice([1.0, 3.0], len(table))
    first = diagnosed(tables, weights="w").drivers[0]
    P, U = tables[0], tables[1]
    means = [np.average(table["x0"], weights=table["w"]) for table in (P, U)]
    spread = np.sqrt(np.average((U["x0"] - means[1]) ** 2, weights=U["w"]))
    assert first.difference == pytest.approx((means[0] - means[1]) / spread, rel=1e-6)


def test_a_constant_column_and_classes_that_are_alike_drive_nothing():
    tables = samples([2.0, 0.0], rows=300)
    for table in tables:
        table["one"] = 1.0
    assert {driver.name for driver in diagnosed(tables).drivers} == {"x0", "x1"}
    rng = np.random.default_rng(0)
    with pytest.warns(ps.errors.WeakSeparationWarning):
        nothing = ps.diagnose(*(rng.normal(size=(n, 3)) for n in (20, 40, 40)), source_prior=0.3, random_state=3)
    assert nothing.drivers == ()


def test_of_many_columns_ten_are_named():
    found = diagnosed(samples([1.0] * 14, rows=400)).drivers
    assert len(found) == 10 and sum(driver.importance for driver in found) < 1
    assert [d.importance for d in found] == sorted((d.importance for d in found), reverse=True)
    assert str(found[0]).startswith(f"{found[0].name}: ")
