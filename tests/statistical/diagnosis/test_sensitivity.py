"""What an estimate is sensitive to, against closed forms, refits without the rows, and violations that are put in."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from exact_problems import random_problem, stacked
from scipy import stats
from scipy.spatial.distance import cdist

import priorshift as ps
from priorshift.diagnosis.columns import Column, leading_columns
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.sensitivity import ShiftedRows, check_threshold, conclude, sensitivity, violation
from priorshift.diagnosis.variants import (
    Subsample,
    projection_variants,
    retest_without,
    row_variants,
)
from priorshift.embedding.gram import SourceEmbedding, ratio, separation
from priorshift.errors import InputError
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, RangePrior
from priorshift.kernels import Gaussian, bandwidth_from_gamma
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.scores.cross_fitting import scores_by_fold
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

NONE = np.empty(0, dtype=np.intp)


class Case:
    """A fitted witness and a tested target, as `diagnose` has them."""

    def __init__(self, X, y, T, *, shared=None, weights=None, groups=None, target_weights=None, target_groups=None):
        self.source = Source.from_labels(
            X, y, shared=shared, weights=weights, groups=groups, scenario="case-control", standardize=True
        )
        self.target = self.source.layout.read(T, weights=target_weights, groups=target_groups)
        scored = ScoredSource.fit(self.source, None, 3, 4, np.random.default_rng(0))
        self.witness = Witness.from_scores(scored, self.source.without_rows(), *scored.mixture)
        self.values = scored.target_p_values(self.target)
        self.test = self.witness.test(self.values, self.target)

    def inputs(self, prior=None, **settings):
        prior = prior or PointPrior(0.3)
        estimate = SimpleNamespace(source_prior=prior.value)
        fit = TargetFit(self.target, estimate, self.test, self.values, prior, self.witness)
        return DiagnosisInput(self.source, fit, **{"rng": np.random.default_rng(0), **settings})

    def sensitivity(self, prior=None, **settings):
        return sensitivity(self.inputs(prior, **settings))

    def shifted(self):
        return ShiftedRows.choose(self.inputs())


def rows(count, prior, rng, features=3, apart=1.5):
    return rng.normal(size=(count, features)) + apart * (rng.random(count) < prior)[:, None]


def case(seed=0, sizes=(300, 400, 350), priors=(0.3, 0.7), **settings):
    rng = np.random.default_rng(seed)
    P, U, T = (rows(n, p, rng) for n, p in zip(sizes, (1.0, *priors), strict=True))
    return Case(np.concatenate([P, U]), np.repeat([1, 0], sizes[:2]), T, **settings)


@pytest.fixture(scope="module")
def plain():
    return case()


def normal_curve(ratio, error):
    r = np.linspace(0, 4, 801)
    return TabulatedCurve.from_tests(r, (ratio - r) / error, np.full(801, np.inf))


def conclusion(ratio, curve, prior, threshold=None):
    fit = SimpleNamespace(
        test=SimpleNamespace(ratio=ratio, curve=curve, is_separable=True), prior=prior, target=SimpleNamespace(audit=None),
        estimate=SimpleNamespace(source_prior=prior.value),
    )  # fmt: skip
    return conclude(DiagnosisInput(None, fit, threshold=threshold))


def test_without_a_threshold_the_conclusion_is_that_of_the_ratio_against_one():
    z = stats.norm.ppf(0.975)
    for R, side in ((0.8, "above"), (1.02, "open"), (1.3, "below")):
        found = conclusion(R, normal_curve(R, 0.05), PointPrior(0.3))
        assert found.side == side and found.critical == 1.0
        if side == "open":
            assert found.to_turn is None and found.to_doubt is None
        else:
            end = R + z * 0.05 * (1 if side == "above" else -1)
            assert found.to_turn == pytest.approx(1 - R) and found.to_doubt == pytest.approx(1 - end, abs=1e-3)
        assert found.half_width == pytest.approx(z * 0.05, rel=0.01)


def test_with_a_threshold_it_is_that_of_the_interval_against_it_with_the_error_of_the_source_prior():
    curve = normal_curve(0.5, 0.05)  # π′ = 0.6 ± 0.078
    assert conclusion(0.5, curve, PointPrior(0.2), threshold=0.5).side == "above"
    assert conclusion(0.5, curve, PointPrior(0.2), threshold=0.7).side == "below"
    found = conclusion(0.5, curve, PointPrior(0.2), threshold=0.62)
    assert found.side == "open" and found.to_turn == pytest.approx(0.38 / 0.8 - 0.5) and found.to_doubt is None
    assert conclusion(0.5, curve, RangePrior(0.0, 0.4), threshold=0.5).side == "open"  # R̂ is as sure; π is not
    wide = conclusion(0.5, curve, DistributionPrior(stats.beta(4, 16)), threshold=0.5)
    assert wide.side == "open" and wide.half_width > conclusion(0.5, curve, PointPrior(0.2)).half_width


@pytest.mark.parametrize("threshold", [0, 1.0, "half", True, float("nan")])
def test_a_threshold_is_a_share(threshold):
    with pytest.raises(InputError, match=r"threshold .*between 0 and 1"):
        check_threshold(threshold)


def slowly_without(c, of_source, of_target, **known):
    """Ranks by counting, and everything else read again from the rows that are left."""
    stay = ~np.isin(c.source.observation, of_source)
    stay_T = ~np.isin(c.target.observation, of_target) & ~np.isin(c.target.source_observation, of_source)
    kept = {name: None if column is None else np.asarray(column)[stay] for name, column in known.items()}
    source = Source.from_labels(
        c.source.table.values[stay], c.source.labeled[stay].astype(int), shared=kept.get("shared"),
        weights=kept.get("weights"), groups=kept.get("groups"), scenario="case-control", standardize=True,
    )  # fmt: skip
    groups = None if c.target.groups is None else c.target.groups[stay_T]
    weights = None if c.target.weights is None else c.target.weights[stay_T]
    target = source.layout.read(c.target.table.values[stay_T], weights=weights, groups=groups)
    scored, (m, _) = c.witness.scored, (source.P.size, source.U.size)
    mass = source.P.mass
    own = None if scored.positive_mass is None else mass
    in_P, in_U = stay[c.source.positive], stay[c.source.population]

    def ranks(positive, scores):
        below = (positive[:, None] < scores) + (positive[:, None] == scores) / 2
        return ((below.sum(axis=0) if own is None else m * (mass @ below)) + 0.5) / (m + 1)

    rng = np.random.default_rng(scored.seed)
    prepared = scored.prepare(c.target.rows[:])
    all_T = [
        scores_by_fold(prepared, r.assign_folds(c.target.source_observation, rng), r.models) for r in scored.repetitions
    ]
    reps = [replace(r, positive=r.positive[in_P], population=r.population[in_U]) for r in scored.repetitions]
    of_U = np.stack([ranks(r.positive, r.population) for r in reps])
    of_T = np.stack([ranks(r.positive, t[stay_T]) for r, t in zip(reps, all_T, strict=True)])
    less = ScoredSource(
        scored.prepare, tuple(reps), of_U, scored.counts, source.sizes, scored.seed, own, m, scored.spread
    )
    return Witness.from_scores(less, source.without_rows(), *scored.mixture).test(of_T, target)


def told(kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "weights":
        return {"weights": rng.uniform(0.5, 2, 700)}, {"target_weights": rng.uniform(0.5, 2, 350)}
    if kind == "groups":
        return {"groups": rng.integers(0, 200, 700)}, {"target_groups": rng.integers(150, 350, 350)}
    if kind == "shared":
        return {"shared": np.concatenate([np.arange(300), np.arange(200, 600)])}, {}
    return {}, {}


@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "shared"])
def test_rows_left_out_give_the_test_of_the_rows_that_are_left(kind):
    known, of_target = told(kind)
    c = case(**known, **of_target)
    out_source = np.unique(c.source.observation[[3, 50, 299, 350, 600]])
    out_target = np.unique(c.target.observation[[0, 7, 349]])
    for out in ((out_source, NONE), (NONE, out_target), (out_source, out_target)):
        fast, slow = retest_without(c.inputs(), *out), slowly_without(c, *out, **known)
        assert fast.ratio == pytest.approx(slow.ratio, abs=1e-9)
        assert np.interp(0.7, fast.curve.ratios, fast.error) == pytest.approx(
            np.interp(0.7, slow.curve.ratios, slow.error), rel=1e-6
        )


def test_leaving_out_no_row_changes_nothing(plain):
    again = retest_without(plain.inputs(), NONE, NONE)
    assert again.ratio == pytest.approx(plain.test.ratio, abs=1e-12)
    assert retest_without(plain.inputs(), NONE, np.arange(349)) is None


def test_the_rows_that_are_left_out_are_those_that_move_the_ratio_most():
    c = case(sizes=(60, 80, 70))
    one_by_one = np.array([
        retest_without(c.inputs(), NONE, np.array([k])).ratio - c.test.ratio for k in range(70)
    ])  # fmt: skip
    first_order = c.witness.influence(c.test.ratio, c.values, c.target).target
    assert np.corrcoef(one_by_one, -first_order)[0, 1] > 0.98
    found = row_variants(c.inputs())
    by_name = {v.name: v for v in found}
    moved = by_name["without one target row"].ratio - c.test.ratio
    assert abs(moved) == pytest.approx(np.abs(one_by_one).max(), rel=0.1)


def test_a_column_or_a_bandwidth_is_left_to_the_projection_that_has_it_so(plain):
    inputs = plain.inputs()
    subsample = Subsample.draw(inputs)
    assert tuple(map(len, subsample.samples)) == (300, 400, 350)
    X, y, T = plain.source.table.values, plain.source.labeled.astype(int), plain.target.table.values
    bandwidths, found = projection_variants(inputs, subsample, [Column("column 1", np.array([1]))])
    for variant, columns in zip(found, ([0, 1, 2], [0, 2]), strict=True):
        theirs = ps.KernelRatio().fit(X[:, columns], y).negative_ratio(T[:, columns])
        assert variant.ratio == pytest.approx(theirs.value, abs=1e-9)
        assert 1 - 0.7 * theirs.interval.high == pytest.approx(variant.low, abs=1e-6)
    rule = bandwidth_from_gamma(1 / 3)
    for variant, factor in zip(bandwidths, (1, 0.25, 0.5, 2, 4), strict=True):
        theirs = ps.KernelRatio(bandwidth=factor * rule).fit(X, y).negative_ratio(T)
        assert variant.ratio == pytest.approx(theirs.value, abs=1e-9)


def test_the_error_of_a_difference_is_the_spread_of_differences():
    moved, errors = [], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rows(100, 1, rng), rows(150, 0.3, rng)])
        source = Source.from_labels(X, np.repeat([1, 0], [100, 150]), scenario="case-control", standardize=True)
        target = source.layout.read(rows(120, 0.7, rng))
        fit = SimpleNamespace(target=target, prior=PointPrior(0.3), estimate=SimpleNamespace(source_prior=0.3))
        inputs = DiagnosisInput(source, fit, rng=rng)
        subsample = Subsample.draw(inputs)
        variant = projection_variants(inputs, subsample, [Column("column 0", np.array([0]))])[1][1]
        moved.append(0.7 * (subsample.whole.ratio - variant.ratio))
        errors.append(variant.error)
    assert np.mean(errors) == pytest.approx(np.std(moved), rel=0.25)  # a spread of 80 is known to 8 %
    assert abs(np.mean(moved)) < 3 * np.std(moved) / 80**0.5


def test_the_kernel_distance_to_a_critical_ratio_is_that_of_a_target_which_has_it():
    """Stacked copies: targets of two priors, whose means lie on one line."""
    rng = np.random.default_rng(1)
    positives, negatives = rng.normal(size=(20, 3)) + 1, rng.normal(size=(20, 3))
    first, second = (stacked(positives, negatives, (1, 3, *copies)) for copies in ((3, 1), (2, 2)))
    kernel = Gaussian(bandwidth_from_gamma(1 / 3))

    def inner(A, B):
        return np.exp(-cdist(A, B, "sqeuclidean") / (2 * kernel.bandwidth**2)).mean()

    def distance(A, B):
        return np.sqrt(inner(A, A) - 2 * inner(A, B) + inner(B, B))

    R = [(1 - p.target_prior) / (1 - p.source_prior) for p in (first, second)]
    expected = abs(R[0] - R[1]) * distance(first.unlabeled, first.positive)
    assert distance(first.target, second.target) == pytest.approx(expected, rel=1e-9)


def test_no_violation_moves_the_projection_by_more_than_its_size_over_the_separation():
    problem = random_problem(3, features=2)
    rng = np.random.default_rng(0)
    ratios, lengths = [], []
    source = Source.from_labels(problem.X, problem.y, scenario="case-control", standardize=False)
    embedding = SourceEmbedding.from_source(source, Gaussian(1.5))
    targets = [problem.target, *(problem.target + rng.normal(scale=0.4, size=problem.target.shape) for _ in range(20))]
    kernel = Gaussian(1.5)
    for T in targets:
        made = embedding.embed(embedding.sample(source.layout.read(T)), "plug-in")
        ratios.append(ratio(made.gram))
        A, B = problem.target, T
        lengths.append(np.sqrt(max(kernel(A, A).mean() - 2 * kernel(A, B).mean() + kernel(B, B).mean(), 0)))
    a = np.sqrt(separation(made.gram))
    assert ratios[0] == pytest.approx((1 - problem.target_prior) / (1 - problem.source_prior), abs=1e-12)
    moved = np.abs(np.array(ratios) - ratios[0])
    assert (moved <= np.array(lengths) / a + 1e-12).all() and moved.max() > 0.05


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_shift_of_that_size_carries_the_estimate_where_it_is_said_to(plain, threshold):
    found = plain.sensitivity(threshold=threshold)
    assert found.conclusion.side == "above"
    shifted = plain.shifted()
    move = found.violation.decisive
    assert move is found.violation.to_doubt and move.ratio == found.conclusion.to_doubt
    slopes = shifted.slopes(plain.test.ratio)
    direction = slopes / np.linalg.norm(slopes)  # h rises, and with it the ratio
    spread = plain.source.table.values[plain.source.population].std(axis=0)
    T = plain.target.table.values + move.shift * direction * spread
    target = plain.source.layout.read(T)
    again = plain.witness.test(plain.witness.scored.target_p_values(target), target)
    assert again.ratio - plain.test.ratio == pytest.approx(move.reached, abs=1e-9)
    assert move.reached == pytest.approx(move.ratio, rel=0.1)
    turned = found.violation.to_turn
    assert turned.shift > move.shift and turned.distance > move.distance
    assert move.shift_distance > 0.95 * move.distance  # no direction is shorter than the line, but for noise


def test_a_column_alone_does_it_too_and_needs_a_longer_shift(plain):
    found = plain.sensitivity(threshold=0.55)
    move = found.violation.decisive
    assert [c.column for c in found.violation.columns] and len(found.violation.columns) == 3
    for column in found.violation.columns:
        assert abs(column.deviations) > move.shift
        k = int(column.column.split()[-1])
        T = plain.target.table.values.copy()
        T[:, k] += column.deviations * plain.source.table.values[plain.source.population, k].std()
        target = plain.source.layout.read(T)
        again = plain.witness.test(plain.witness.scored.target_p_values(target), target)
        assert again.ratio - plain.test.ratio == pytest.approx(move.ratio, rel=0.15)


def test_a_score_that_is_not_monotone_is_shifted_where_it_moves():
    """Positives inside, negatives on both sides of them: any shift makes the target look more negative."""
    rng = np.random.default_rng(6)

    def sample(count, prior):
        positive = rng.random(count) < prior
        return np.where(positive, rng.normal(size=count), rng.choice([-4, 4], count) + rng.normal(size=count))[:, None]

    c = Case(np.concatenate([sample(300, 1), sample(400, 0.3)]), np.repeat([1, 0], [300, 400]), sample(350, 0.7))
    found = c.sensitivity().violation
    (column,) = found.columns
    T = c.target.table.values + column.deviations * c.source.table.values[c.source.population].std()
    target = c.source.layout.read(T)
    again = c.witness.test(c.witness.scored.target_p_values(target), target).ratio
    assert again - c.test.ratio == pytest.approx(found.decisive.ratio, rel=0.15)


def test_the_slope_of_a_normal_target_is_the_derivative_of_the_mean_of_h():
    """Stein's identity, with a target of negatives alone."""
    c = case(sizes=(600, 800, 4000), priors=(0.3, 0.0))
    shifted = c.shifted()
    slopes = shifted.slopes(1.2)
    h = c.witness.function(np.array([1.2]), c.target.size)

    def mean(shift):
        moved = replace(c.target, rows=replace(c.target.rows, shift=c.target.rows.shift - shift))
        values = c.witness.scored.target_p_values(moved)
        return np.mean([h[k, 0][np.minimum((v * 200).astype(int), 199)].mean() for k, v in enumerate(values)])

    for column in range(3):
        step = np.zeros(3)
        step[column] = 0.2 * c.source.table.values[c.source.population, column].std()
        assert slopes[column] == pytest.approx((mean(step) - mean(-step)) / 0.4, rel=0.15)


def test_over_assumed_priors_the_estimate_is_a_line_and_turns_where_it_is_said_to(plain):
    found = plain.sensitivity(threshold=0.65)
    pi = np.array([p.source_prior for p in found.source_priors])
    value = np.array([p.value for p in found.source_priors])
    inside = (value > 0.15) & (value < 0.85)
    assert 0.3 in pi and inside.sum() > 4
    assert value[inside] == pytest.approx(1 - (1 - pi[inside]) * plain.test.ratio, abs=3e-3)
    assert 1 - (1 - found.turning_prior) * plain.test.ratio == pytest.approx(0.65, abs=1e-9)
    low, high = found.sure_priors
    assert low < found.turning_prior < high
    for at, side in ((low - 0.01, "below"), (high + 0.01, "above"), ((low + high) / 2, "open")):
        assert conclusion(plain.test.ratio, plain.test.curve, PointPrior(at), threshold=0.65).side == side
    assert plain.sensitivity().turning_prior is None


def test_a_column_that_breaks_label_shift_is_seen_where_it_is_left_out():
    rng = np.random.default_rng(5)
    P, U, T = rows(600, 1, rng), rows(800, 0.3, rng), rows(700, 0.7, rng)
    T[:, 1] -= 1.0
    c = Case(np.concatenate([P, U]), np.repeat([1, 0], [600, 800]), T)
    found = c.sensitivity()
    clear = [v.name for v in found.columns[1:] if v.is_clear]
    assert "without column 1" in clear and "label shift may not hold" in found.text
    assert len(found.table().splitlines()) == 1 + 4 + len(found.variants) + len(found.label_errors[1:])
    fine = case(5, sizes=(600, 800, 700)).sensitivity()
    assert not [v.name for v in (*fine.columns, *fine.bandwidths, *fine.scores) if v.is_clear]


def test_leading_columns_are_those_that_tell_the_classes_apart():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(700, 14))
    y = np.repeat([1, 0], [300, 400])
    positive = np.concatenate([np.ones(300), rng.random(400) < 0.3])
    X[:, [4, 9]] += 1.5 * positive[:, None]
    T = rng.normal(size=(300, 14))
    T[:, [4, 9]] += 1.5 * (rng.random(300) < 0.7)[:, None]
    c = Case(X, y, T)
    columns = leading_columns(c.source, c.shifted().slopes(c.test.ratio))
    assert len(columns) == 10 and {c.name for c in columns[:2]} == {"column 4", "column 9"}


def odd_tables():
    rng = np.random.default_rng(0)
    P, U, T = rows(30, 1, rng), rows(40, 0.3, rng), rows(35, 0.7, rng)
    constant = [np.column_stack([X, np.ones(len(X))]) for X in (P, U, T)]
    return {
        "two rows of T": (P, U, T[:2]),
        "three positives": (P[:3], U, T),
        "one column": (P[:, :1], U[:, :1], T[:, :1]),
        "a constant column": tuple(constant),
        "T is U": (P, U, U),
        "P is U": (U, U, T),
        "T is P": (P, U, P),
        "huge values": tuple(1e60 * X for X in (P, U, T)),
        "a far value": (P, U, np.concatenate([T, np.full((1, 3), 1e9)])),
        "two values": tuple((X[:, :1] > 0.5).astype(float) for X in (P, U, T)),
    }


@pytest.mark.parametrize("kind", odd_tables())
@pytest.mark.parametrize("threshold", [None, 0.6])
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_odd_tables_are_answered_or_said_to_have_no_answer(kind, threshold):
    P, U, T = odd_tables()[kind]
    c = Case(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]), T)
    found = c.sensitivity(threshold=threshold)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["conclusion"]["side"] in ("above", "below", "open") and str(found)
    assert (plain["violation"]["half_width"] is None) == (not c.test.is_separable)
    assert bool(found.reasons) == (not c.test.is_separable)


@pytest.mark.parametrize("kind", ["weights", "groups", "shared"])
def test_weights_groups_and_shared_rows_are_answered(kind):
    known, of_target = told(kind)
    found = case(**known, **of_target).sensitivity()
    assert found.conclusion.side == "above" and len(found.rows) >= 6
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_scale_of_weights_means_nothing(plain):
    same = case(weights=np.full(700, 3.0), target_weights=np.full(350, 0.5)).sensitivity()
    mine = plain.sensitivity()
    assert [v.ratio for v in same.variants] == pytest.approx([v.ratio for v in mine.variants], abs=1e-6)
    assert same.violation.decisive.shift == pytest.approx(mine.violation.decisive.shift, rel=0.02)


def test_large_tables_are_subsampled_and_say_so():
    c = case(sizes=(1300, 1400, 1500))
    assert c.sensitivity().kernel_rows == (1000, 1000, 1000)


def test_no_conclusion_no_turning_but_still_half_a_width():
    c = case(3, priors=(0.4, 0.4))
    found = c.sensitivity(PointPrior(0.4))
    assert found.conclusion.side == "open" and found.violation.to_turn is None and found.violation.to_doubt is None
    half = found.violation.half_width
    assert found.violation.decisive is half and abs(half.ratio) == pytest.approx(found.conclusion.half_width)
    assert half.distance == pytest.approx(abs(half.ratio) * 0.6 * found.violation.class_distance)


def test_a_violation_without_a_kernel_has_its_shifts_alone(plain):
    found = conclusion(plain.test.ratio, plain.test.curve, PointPrior(0.3))
    made = violation(found, plain.shifted(), None, ())
    assert np.isnan(made.decisive.distance) and made.decisive.shift > 0


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_an_audit_of_the_target_decides_the_conclusion():
    """The target's negatives have moved towards the positives: the tables say more than 0.5, and 150 labels less."""
    s = ps.simulate.gaussian(0.3, 0.2, 600, 600, dimension=2, distance=1.5, shared=False, random_state=0)
    target = s.target + 1.2 * (1 - s.target_labels)[:, None]
    audit = np.where(np.arange(len(target)) < 150, s.target_labels, np.nan)
    settings = dict(source_prior=0.3, threshold=0.5, random_state=0)
    by_tables = ps.diagnose(s.positive, s.unlabeled, target, **settings)
    audited = ps.diagnose(s.positive, s.unlabeled, target, audit={"target": audit}, **settings)
    assert by_tables.sensitivity.conclusion.side == "above"
    conclusion = audited.sensitivity.conclusion
    assert conclusion.side == "below" and conclusion.to_turn is None and conclusion.to_doubt is None
    assert (conclusion.value, conclusion.low) == (audited.estimate.value, audited.estimate.interval.low)
    assert 0.2 in audited.estimate.interval
