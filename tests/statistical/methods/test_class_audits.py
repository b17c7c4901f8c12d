"""Coverage with audits of several classes: by simulation with known shares, also where label shift does not hold."""

import warnings

import numpy as np
import pytest
from scipy import stats

import priorshift as ps

SOURCE, TARGET = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1, "rest": 0.4}
DRAWS, ROWS, AUDITED = 40, 400, 60
LEAST = 0.85  # of 40 draws at 95%, at least 34 cover with a probability of 0.997


def draw(seed):
    return ps.simulate.gaussian_classes(
        SOURCE, {"a": 0.5, "b": 0.1}, n_class=100, n_source=ROWS, n_target=ROWS, random_state=seed
    )


def looked_up(labels, before=0):
    return np.concatenate([np.repeat("", before), np.where(np.arange(len(labels)) < AUDITED, labels, "")])


def coverage(estimates):
    """Shares of intervals that contain the share of their class, of regions that contain all, and the mean width."""
    single = np.mean([TARGET[name] in found[name].interval for found in estimates for name in TARGET])
    region = np.mean([found.contains(TARGET) for found in estimates])
    return single, region, np.mean([found[name].interval.width for found in estimates for name in TARGET])


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("moved", [0.0, 0.35], ids=["label shift", "moved columns"])
def test_intervals_of_an_audited_target_rely_on_its_labels(moved):
    """Columns of the target that moved make the tables wrong, but not the labels."""
    audited, tables = [], []
    for seed in range(DRAWS):
        s = draw(seed)
        shift = ps.MulticlassShift(SOURCE, method="tcpu", random_state=0).fit(s.X, s.y)
        audited.append(shift.estimate(s.target + moved, audit=looked_up(s.target_labels)))
        tables.append(shift.estimate(s.target + moved))
    single, region, width = coverage(audited)
    assert single >= LEAST and region >= LEAST
    labels_alone = np.mean([2 * 1.96 * np.sqrt(p * (1 - p) / AUDITED) for p in TARGET.values()])
    assert width < 0.9 * labels_alone  # predictions help, also where they are biased
    if moved:
        assert coverage(tables)[0] < 0.8


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_an_audited_source_covers_the_shares_of_the_target():
    flat, known = [], []
    for seed in range(DRAWS):
        s = draw(seed)
        column = looked_up(s.unlabeled_labels, before=len(s.y) - ROWS)
        shift = ps.MulticlassShift(stats.dirichlet([0.5, 0.5, 0.5]), method="tcpu", random_state=0)
        flat.append(shift.fit(s.X, s.y, audit=column).estimate(s.target))
        known.append(ps.MulticlassShift(SOURCE, method="tcpu", random_state=0).fit(s.X, s.y).estimate(s.target))
    single, region, width = coverage(flat)
    assert single >= LEAST and region >= LEAST
    assert coverage(known)[2] < width < 2 * coverage(known)[2]


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_an_audit_of_the_source_joins_what_the_tables_tell_of_it():
    estimates = []
    for seed in range(20):
        s = draw(seed)
        column = looked_up(s.unlabeled_labels, before=len(s.y) - ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shift = ps.MulticlassShift(method="tcpu", repeats=2, random_state=0).fit(s.X, s.y, audit=column)
        estimates.append(shift.estimate(s.target))
    assert coverage(estimates)[0] >= 0.85  # of 60 intervals at 95%, with a probability of 0.998


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_differences_and_ratios_of_classes_cover_the_true_ones():
    covered = []
    for seed in range(DRAWS):
        s = draw(seed)
        found = ps.MulticlassShift(SOURCE, method="tcpu", random_state=0).fit(s.X, s.y).estimate(s.target)
        for pair in found.differences():
            first, second = TARGET[pair.first], TARGET[pair.second]
            covered.append((first - second in pair.interval, first / second in pair.ratio_interval))
    assert (np.mean(covered, axis=0) >= LEAST).all()
