"""Widths that are foreseen: against simulation, against the test itself, and what must hold of any plan."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.planning import planning
from priorshift.diagnosis.width_model import WidthModel
from priorshift.errors import InputError
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import Case, DistributionPrior, PointPrior, RangePrior
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.scores.posterior import PopulationCounts, expected_spreads, posterior_counts, prior_posterior
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

SAMPLES = ("positive", "unlabeled", "target")


class Pilot:
    def __init__(self, P, U, T, **told):
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        groups, weights, shared = (told.get(name) for name in ("groups", "weights", "shared"))
        self.source = Source.from_labels(
            X, y, shared=shared, weights=weights, groups=groups, scenario="case-control", standardize=True
        )
        self.target = self.source.layout.read(T)
        scored = ScoredSource.fit(self.source, None, 3, 4, np.random.default_rng(0))
        self.witness = Witness.from_scores(scored, self.source.without_rows(), *scored.mixture)
        self.values = scored.target_p_values(self.target)
        self.test = self.witness.test(self.values, self.target)

    def fit(self, prior=None):
        prior = prior or PointPrior(0.3)
        estimate = SimpleNamespace(source_prior=prior.value)
        return TargetFit(self.target, estimate, self.test, self.values, prior, self.witness)

    def plan(self, prior=None, **settings):
        return planning(DiagnosisInput(self.source, self.fit(prior), **settings))


def rows(count, prior, rng, apart=1.0):
    return rng.normal(size=(count, 4)) + apart * (rng.random(count) < prior)[:, None]


def pilot(seed=0, sizes=(300, 400, 350), priors=(0.3, 0.7), **told):
    rng = np.random.default_rng(seed)
    return Pilot(*(rows(n, p, rng) for n, p in zip(sizes, (1.0, *priors), strict=True)), **told)


@pytest.fixture(scope="module")
def plain():
    return pilot()


@pytest.fixture(scope="module")
def plan(plain):
    return plain.plan()


def test_the_parts_of_the_variance_add_up_to_that_of_the_test(plain):
    parts = plain.witness.variance_parts(plain.test.ratio, plain.values, plain.target)
    assert parts.positive + parts.unlabeled + parts.target == pytest.approx(parts.total, rel=1e-9)
    error = np.interp(plain.test.ratio, plain.test.curve.ratios, plain.test.error)
    assert parts.total == pytest.approx(error**2, rel=1e-3)  # which is read between ratios
    moved = plain.witness.influence(plain.test.ratio, plain.values, plain.target)
    in_P = plain.source.observation[plain.source.positive]
    assert parts.positive == pytest.approx((moved.source[in_P] ** 2).sum(), rel=1e-9)
    assert 0 <= parts.noise <= 1


def test_components_are_the_shares_of_the_variance(plain, plan):
    parts = plain.witness.variance_parts(plain.test.ratio, plain.values, plain.target)
    for name in SAMPLES:
        assert plan.components[name] == pytest.approx(getattr(parts, name) / parts.total, abs=0.01)
    assert plan.components["source_prior"] == 0 and sum(plan.components.values()) == pytest.approx(1)
    uncertain = plain.plan(DistributionPrior(stats.beta(30, 70))).components
    of_prior = plain.test.ratio**2 * stats.beta(30, 70).var()
    assert uncertain["source_prior"] == pytest.approx(of_prior / (of_prior + 0.7**2 * parts.total), rel=0.02)


def test_the_pilots_own_width_is_foreseen(plain, plan):
    low, high = plain.test.curve.interval(0.3, 0.95)
    assert plan.width == pytest.approx(high - low)
    assert plan.predict() == plan.expected_width == pytest.approx(plan.width, rel=0.05)


def test_more_rows_never_make_it_wider(plan):
    for name in SAMPLES:
        widths = [plan.predict(**{name: int(plan.sizes[name] * times)}) for times in (0.1, 0.5, 1, 2, 8, 100)]
        assert (np.diff(widths) < 1e-4).all() and widths[0] > widths[-1]
    widths = [plan.predict(**{n: int(k * plan.sizes[n]) for n in SAMPLES}) for k in (0.25, 1, 4, 16, 64)]
    assert (np.diff(widths) < 0).all()
    assert widths[4] == pytest.approx(widths[3] / 2, rel=0.03)  # all that is left is sampling


def test_the_variance_of_the_ratio_is_that_of_simulated_bins():
    """P, U and T drawn by their bins, with the witness of the model itself and no noise of scores."""
    rng = np.random.default_rng(0)
    middles = (np.arange(200) + 0.5) / 200
    f = 0.3 + 0.7 * stats.beta(1, 6).pdf(middles)
    f /= f.mean()
    R, sizes = 0.6, (150.0, 400.0, 250.0)
    model = WidthModel(f[None], R, sizes, sizes, noise=0.0)
    rho, (m, n, t) = 1 / f, sizes
    h = (1 - rho) / (((1 - R) * rho + R) / t + (1 - R) ** 2 / m * rho + R**2 / n)
    densities = np.ones(200), f, (1 - R) + R * f
    of_P, of_U, of_T = (
        rng.multinomial(int(size), d / d.sum(), 8_000) @ h / size for size, d in zip(sizes, densities, strict=True)
    )
    parts = model.variances(sizes)
    D = (of_U - of_P).mean()
    for part, spread in zip(parts, ((1 - R) * of_P, R * of_U, of_T), strict=True):
        assert part == pytest.approx(spread.var() / D**2, rel=0.05)
    # no other h does better
    for other in (middles, -np.log(middles), (middles < 0.2).astype(float)):
        p, u, _ = (other @ d / 200 for d in densities)
        variances = [other**2 @ d / 200 - (other @ d / 200) ** 2 for d in densities]
        its = ((1 - R) ** 2 * variances[0] / m + R**2 * variances[1] / n + variances[2] / t) / (u - p) ** 2
        assert sum(parts) < its * (1 + 1e-9)


@pytest.mark.parametrize("times", [(2, 2, 2), (1, 1, 6)])
def test_widths_at_other_sizes_are_those_that_are_foreseen(times):
    """The study has the figures; here 15 % are the margin."""
    sizes = (150, 200, 150)
    there = tuple(k * n for k, n in zip(times, sizes, strict=True))
    foreseen, found = [], []
    for seed in range(8):
        plan = pilot(seed, sizes).plan()
        foreseen.append(plan.predict(positive=there[0], unlabeled=there[1], target=there[2]))
        low, high = pilot(100 + seed, there).test.curve.interval(0.3, 0.95)
        found.append(high - low)
    assert np.mean(foreseen) == pytest.approx(np.mean(found), rel=0.15)


@pytest.mark.parametrize("target_prior", [0.02, 0.5, 0.97])
def test_a_width_is_the_mean_of_intervals_that_are_cut_off_at_zero_and_one(target_prior):
    """Beside the curve's own interval, of estimates drawn at random."""
    middles = (np.arange(200) + 0.5) / 200
    f = 0.4 + 0.6 * stats.beta(1, 8).pdf(middles)
    R, sizes = (1 - target_prior) / 0.6, (300.0, 400.0, 200.0)
    model = WidthModel(f[None] / f.mean(), R, sizes, sizes, noise=0.1)
    rng, error, widths = np.random.default_rng(0), np.sqrt(sum(model.variances(sizes))), []
    r = np.unique(np.concatenate([np.linspace(0, 4, 81), R + error * np.linspace(-6, 6, 61)]))
    r = r[r >= 0]
    spread = np.sqrt(model.parts(r, sizes, model.moments(r, sizes), R).sum(axis=0))
    for estimate in R + error * rng.normal(size=150):
        curve = TabulatedCurve.from_tests(r, (estimate - r) / spread, np.full(len(r), 300.0))
        low, high = curve.interval(0.4, 0.95)
        widths.append(high - low)
    # T's variance is that of R here, and of R̂ there; degrees of freedom differ a little
    assert model.width(sizes, [Case(np.array([0.4]), np.ones(1))], 0.95) == pytest.approx(np.mean(widths), rel=0.06)


def test_what_is_required_gives_the_width_and_a_little_less_does_not(plan):
    width = 0.9 * plan.expected_width
    needed = plan.required(width)
    for name in SAMPLES:
        size = getattr(needed, name)
        if size is not None:
            assert plan.predict(**{name: size}) <= width * 1.001
            assert plan.predict(**{name: int(0.98 * size)}) > width
        else:
            assert plan.predict(**{name: 1000 * plan.sizes[name]}) > width
    assert needed.target is not None and needed.unlabeled is None
    assert plan.predict(**dict(zip(SAMPLES, needed.all, strict=True))) <= width * 1.001
    assert plan.predict(**{n: int(0.97 * k) for n, k in zip(SAMPLES, needed.all, strict=True)}) > width
    assert needed.audited_source is None  # π is known
    assert "one of" in str(needed) and "not reachable" in str(needed)
    json.dumps(needed.to_dict())


def test_fewer_rows_than_there_are_may_be_enough(plan):
    needed = plan.required(min(2 * plan.expected_width, 0.9))
    assert all(getattr(needed, name) < plan.sizes[name] for name in SAMPLES)


def test_audited_labels_narrow_what_the_tables_leave_open(plain):
    open_prior = plain.plan(RangePrior(0.05, 0.85))
    known = plain.plan()
    width = 1.2 * known.width
    needed = open_prior.required(width)
    assert needed.positive is None and needed.unlabeled is None and needed.target is None and needed.all is None
    assert 0 < needed.audited_target <= 350 and 0 < needed.audited_source <= 400
    narrower = open_prior.required(0.9 * width)
    assert narrower.audited_target > needed.audited_target and narrower.audited_source > needed.audited_source


def test_an_audit_of_the_target_is_foreseen_as_it_turns_out():
    """Labels that the classes really have; their share is the luck of the draw, and so is the width a little."""
    rng = np.random.default_rng(4)
    labels = rng.random(400) < 0.6
    P, U = rows(300, 1, rng), rows(400, 0.3, rng)
    T = rng.normal(size=(400, 4)) + labels[:, None]
    from priorshift import WitnessShift

    fitted = WitnessShift((0.1, 0.5), random_state=0).fit(np.concatenate([P, U]), np.repeat([1, 0], [300, 400]))
    plan = Pilot(P, U, T).plan(RangePrior(0.1, 0.5))
    needed = plan.required(0.16)
    audit = np.where(np.arange(400) < needed.audited_target, labels, np.nan)
    interval = fitted.estimate(T, audit=audit).interval
    assert interval.high - interval.low == pytest.approx(0.16, rel=0.15)


def test_a_survey_stays_as_wide_and_a_belief_from_the_rows_narrows(plain):
    belief = DistributionPrior(stats.beta(30, 70))
    survey, from_rows = plain.plan(belief), plain.plan(belief, prior_from_rows=True)
    many = {name: 200 * survey.sizes[name] for name in SAMPLES}
    limit = np.diff(stats.beta(30, 70).ppf([0.025, 0.975]))[0] * plain.test.ratio
    assert survey.predict(**many) == pytest.approx(limit, rel=0.05)
    assert from_rows.predict(**many) < 0.6 * limit
    assert from_rows.predict() == pytest.approx(survey.predict(), rel=1e-6)
    assert "source prior" in survey.next_step or survey.components["source_prior"] < 0.5


def test_where_classes_overlap_rows_tell_less_of_the_source_prior():
    """Foreseen at four times the rows, beside the posterior of as many rows."""
    rng = np.random.default_rng(0)
    shrunk = []
    for distance in (3.0, 0.7):

        def counts(size, at=distance):
            z = rng.normal(size=size) - at * (rng.random(size) < 0.6)
            return PopulationCounts(posterior_counts(stats.norm.cdf(z)[None], size, np.ones(size)), size, float(size))

        small = counts(600)
        now, then, far = expected_spreads(small, prior_posterior(small)[0], [(1, 1), (4, 4), (16, 16)])
        shrunk.append(then / now)
        assert far < then < now
        real = np.mean([prior_posterior(counts(2400))[0].std() for _ in range(3)])
        assert then == pytest.approx(real, rel=0.3)  # one small sample does not know the overlap well
    assert shrunk[0] == pytest.approx(0.5, abs=0.05) and shrunk[1] > 0.65


def test_the_next_step_is_the_sample_whose_doubling_buys_most(plan):
    best = min(SAMPLES, key=lambda name: plan.doubled[name])
    name = {"positive": "labelled positives", "unlabeled": "unlabelled rows", "target": "target rows"}[best]
    assert f"Add {name} first" in plan.next_step and f"{plan.doubled[best]:.3g}" in plan.next_step
    assert plan.doubled["all"] < min(plan.doubled[n] for n in SAMPLES)
    assert plan.text == f"{plan.composition}\n{plan.next_step}" and "target rows" in str(plan)


def test_widths_that_come_are_compared_with_the_one_that_is_expected(plan):
    assert f"{plan.width:.3g} wide" in plan.composition and f"{plan.expected_width:.3g} is expected" in plan.composition
    assert f"instead of {plan.expected_width:.3g}" in plan.next_step
    said = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert said["sizes"] == {"positive": 300, "unlabeled": 400, "target": 350}


def test_where_the_source_prior_is_all_that_is_open_rows_are_not_advised(plain):
    assert "More rows hardly help" in plain.plan(DistributionPrior(stats.beta(1.2, 1.2))).next_step


def test_groups_cost_what_they_cost_the_pilot():
    rng = np.random.default_rng(1)
    centre = np.repeat(rng.normal(size=(60, 4)), 10, axis=0)
    P, U, T = rows(200, 1, rng), rows(600, 0.3, rng) + 0.8 * centre, rows(300, 0.6, rng)
    groups = np.concatenate([np.arange(200), 200 + np.repeat(np.arange(60), 10)])
    plan = Pilot(P, U, T, groups=groups).plan()
    alone = Pilot(P, U, T).plan()
    assert plan.expected_width == pytest.approx(plan.width, rel=0.1)
    assert plan.width > alone.width and plan.components["unlabeled"] > alone.components["unlabeled"]


def test_rows_that_are_in_both_source_samples_count_as_the_test_counts_them():
    rng = np.random.default_rng(2)
    U, T = rows(600, 0.5, rng), rows(300, 0.8, rng)
    P = rows(150, 1, rng)
    U[:150] = P
    plan = Pilot(P, U, T, shared=np.concatenate([np.arange(150), np.arange(600)])).plan(PointPrior(0.5))
    assert plan.expected_width == pytest.approx(plan.width, rel=0.1)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("kind", ["two of T", "three positives", "T is U", "T is P", "P is U", "one column"])
def test_odd_tables_are_planned_from_or_said_to_be_of_no_use(kind):
    rng = np.random.default_rng(0)
    P, U, T = rows(30, 1, rng), rows(40, 0.3, rng), rows(35, 0.7, rng)
    P, U, T = {
        "two of T": (P, U, T[:2]), "three positives": (P[:3], U, T), "T is U": (P, U, U), "T is P": (P, U, P),
        "P is U": (U, U, T), "one column": (P[:, :1], U[:, :1], T[:, :1]),
    }[kind]  # fmt: skip
    made = Pilot(P, U, T)
    for prior in (PointPrior(0.3), RangePrior(0.2, 0.4)):
        plan = made.plan(prior)
        json.dumps(plan.to_dict(), allow_nan=False)
        assert str(plan) and plan.required(0.5).width == 0.5
        assert (plan.reason is None) == made.test.is_separable
        assert 0 <= plan.width <= 1 and (plan.reason or 0 <= plan.predict(target=100) <= 1)


@pytest.mark.parametrize("width", [0, 1, -0.1, "narrow", float("nan")])
def test_a_width_lies_between_zero_and_one(plan, width):
    with pytest.raises(InputError, match=r"width .*between 0 and 1"):
        plan.required(width)


@pytest.mark.parametrize("size", [1, -5, "many", float("inf")])
def test_sizes_are_numbers_of_rows(plan, size):
    with pytest.raises(InputError, match=r"target .*2"):
        plan.predict(target=size)
