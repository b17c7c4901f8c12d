"""The posterior of the source prior, and the estimator that is made of it."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

import priorshift as ps
from priorshift.errors import FewPositivesWarning, InputError, WeakSeparationWarning
from priorshift.inference.prior_knowledge import PiecewiseUniform
from priorshift.scores import posterior
from priorshift.scores.mixture import p_values
from priorshift.scores.posterior import PopulationCounts, TargetEvidence, allow_hidden_negatives, posterior_counts
from priorshift.source_prior.mixture_prior import _km2_log_likelihood

# ---- the posterior


def prior_posterior(values, m, weights):
    return posterior.prior_posterior(PopulationCounts(posterior_counts(values, m, weights), m, m))


def models():
    """How negatives may look, as the module's first lines say it: (probability below an edge, prior weight, 1 − AUC)."""
    d = [*(k / 5 for k in range(1, 15)), 3.0, 3.5, 4.0, 4.5, 5.0]
    step = [d[1] - d[0], *((d[k + 1] - d[k - 1]) / 2 for k in range(1, len(d) - 1)), d[-1] - d[-2]]
    even = [s * min(x, 1) for x, s in zip(d, step, strict=True)]
    even = [e / sum(even) for e in even]
    spreads = [(x, stats.norm.pdf(x, scale=0.1)) for x in (-0.2, -0.1, 0.0, 0.1, 0.2)]
    total = sum(weight for _, weight in spreads)
    for x, weight in zip(d, even, strict=True):
        for log_s, of_s in spreads:
            s = np.exp(log_s)
            yield (
                (lambda v, x=x, s=s: ndtr((ndtri(v) + x) / s)),
                weight * of_s / total / 2,
                ndtr(-x / np.sqrt(1 + s**2)),
            )
    pairs = [(i, j, share) for i in range(len(d)) for j in range(i) for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    total = sum(even[i] * even[j] for i, j, _ in pairs)
    for i, j, share in pairs:
        yield (
            lambda v, a=d[i], b=d[j], share=share: share * ndtr(ndtri(v) + a) + (1 - share) * ndtr(ndtri(v) + b),
            even[i] * even[j] / total / 2,
            share * ndtr(-d[i] / np.sqrt(2)) + (1 - share) * ndtr(-d[j] / np.sqrt(2)),
        )


def test_posterior_is_that_of_a_loop_over_models_and_priors():
    rng = np.random.default_rng(0)
    values = np.stack([np.concatenate([rng.random(12), rng.beta(1, 12, 18)]) for _ in range(2)])
    m, edges = 25, np.array([0.0, 0.3, 0.9, 1.0])
    bins = np.unique(np.round(posterior._EDGES * (m + 1))) / (m + 1)  # whole ranks among 25
    counts = np.stack([np.histogram(v, bins)[0] for v in values]).astype(float)
    found, overlap = posterior._posterior_on_steps(edges, PopulationCounts(counts, m, m))
    of_prior = np.diff(stats.beta(0.5, 0.5).cdf(edges))
    of_steps, of_overlap, shapes = np.zeros(3), 0.0, [*models()]
    for count in counts:
        mass, overlaps = np.zeros(3), 0.0
        for below, weight, its_overlap in shapes:
            g = np.diff(below(bins)) / np.diff(bins)
            for k in range(3):
                pi = (edges[k] + edges[k + 1]) / 2
                n, r = count.sum(), np.maximum(pi + (1 - pi) * g, 1e-12)
                likelihood = np.prod((n * r / (m + n * r)) ** count * (m / (m + n * r)) ** (m * np.diff(bins)))
                one = likelihood * weight * of_prior[k]
                mass[k] += one
                overlaps += one * its_overlap
        of_steps += mass / mass.sum() / len(counts)
        of_overlap += overlaps / mass.sum() / len(counts)
    np.testing.assert_allclose(found.probabilities, of_steps, rtol=1e-6)
    assert overlap == pytest.approx(of_overlap, rel=1e-6)


def drawn(m, n, rng):
    """π from Jeffreys' prior, the negatives' law from its own, and the p-values of a population."""
    shapes = posterior._shapes(10_000)  # all but continuous
    g, log_prior, edges = shapes.density, shapes.log_prior, shapes.edges
    pi = rng.beta(0.5, 0.5)
    mass = g[rng.choice(len(g), p=np.exp(log_prior) / np.exp(log_prior).sum())] * shapes.widths
    u, negative = rng.random(n), rng.random(n) >= pi
    at = rng.choice(len(mass), size=negative.sum(), p=mass / mass.sum())
    u[negative] = edges[at] + shapes.widths[at] * rng.random(negative.sum())
    return pi, p_values(rng.random(m), u)


@pytest.mark.parametrize(("m", "n"), [(20, 200), (200, 800)])
def test_intervals_of_the_posterior_cover_what_its_own_prior_draws(m, n):
    rng = np.random.default_rng((m, n))
    below, above = 0, 0
    for _ in range(90):
        pi, v = drawn(m, n, rng)
        low, high = prior_posterior(v[None], m, np.ones(n))[0].ppf([0.05, 0.95])
        below, above = below + (pi < low), above + (pi > high)
    # of 90, 5 % on either side: at most 12 but for once in a thousand times, and together 1 to 19
    assert max(below, above) <= 12 and 1 <= below + above <= 19


@pytest.mark.parametrize("pi", [0.02, 0.3, 0.9])
def test_many_rows_know_the_prior(pi):
    rng = np.random.default_rng(0)
    n, m = 20_000, 20_000
    u = np.where(rng.random(n) < pi, rng.random(n), stats.norm.cdf(rng.normal(-3, 1, n)))
    found, overlap = prior_posterior(p_values(rng.random(m), u)[None], m, np.ones(n))
    assert found.std() < 0.012 and abs(found.mean() - pi) < 3.5 * found.std()
    # at π = 0.9, 2000 negatives tell how they overlap; the 1 − AUC of N(−3, 1) is Φ(−3/√2) = 0.017
    assert overlap == pytest.approx(stats.norm.cdf(-3 / np.sqrt(2)), abs=0.015)


@pytest.mark.parametrize("pi", [0.2042, 0.2048])
def test_no_end_of_a_narrow_posterior_is_cut_off(pi):
    """Two million rows know π to 0.0004, and steps of 0.01 end at 0.205."""
    edges = posterior._shapes(2_000_000).edges
    expected = pi * np.diff(edges) + (1 - pi) * np.diff(stats.norm.cdf(stats.norm.ppf(edges), -4))
    found = prior_posterior(((edges[1:] + edges[:-1]) / 2)[None], 2_000_000, 2_000_000 * expected)[0]
    low, high = found.ppf([0.025, 0.975])
    assert found.mean() == pytest.approx(pi, abs=1e-4)
    # a binomial share of n rows alone has the error 0.00028; m positives of the same number add to it
    assert 0.00028 < found.std() < 0.0006
    assert (high - found.mean()) / (found.mean() - low) == pytest.approx(1, abs=0.1)
    assert (high - low) / found.std() == pytest.approx(2 * 1.96, rel=0.03)


def test_copies_of_half_the_weight_are_the_rows_themselves():
    rng = np.random.default_rng(0)
    v = np.concatenate([rng.random(60), rng.beta(1, 12, 90)])[None]
    once = prior_posterior(v, 80, np.ones(150))
    twice = prior_posterior(np.repeat(v, 2, axis=1), 80, np.full(300, 0.5))
    np.testing.assert_allclose(once[0].probabilities, twice[0].probabilities, rtol=1e-9)
    assert once[1] == pytest.approx(twice[1])
    surer = prior_posterior(np.repeat(v, 2, axis=1), 160, np.ones(300))[0]
    assert surer.std() < 0.85 * once[0].std()  # told apart, they would make it surer by 1/√2


def test_copies_of_positives_are_ranked_among_but_count_once():
    v = p_values(np.repeat(np.arange(20.0), 3), np.linspace(-2, 22, 100))[None]
    counts = PopulationCounts(posterior_counts(v, 60, np.ones(100)), 60, 20)
    # every edge lies halfway between two of the 61 values that ranks among 60 can have
    np.testing.assert_allclose(counts.shapes.edges * 61, np.round(counts.shapes.edges * 61), atol=1e-9)
    surer = posterior.prior_posterior(PopulationCounts(posterior_counts(v, 60, np.ones(100)), 60, 60))[0]
    assert posterior.prior_posterior(counts)[0].std() > surer.std()


def test_what_a_target_tells_is_that_of_a_loop_over_models():
    rng = np.random.default_rng(1)
    m, ratio = 30, 0.7
    source, target = (np.concatenate([rng.random(a), rng.beta(1, 9, b)]) for a, b in ((20, 40), (30, 25)))
    counts = PopulationCounts(posterior_counts(source[None], m, np.ones(60)), m, m)
    evidence = TargetEvidence(counts, posterior.prior_posterior(counts)[0])
    priors = evidence.priors[[3, 15, 28]]
    found = evidence.log_likelihood(posterior_counts(target[None], m, np.ones(55)), ratio, priors)
    bins = posterior._shapes(m).edges
    u, t = (np.histogram(v, bins)[0] for v in (source, target))
    p = m * np.diff(bins)
    expected = []
    for pi in priors:
        new, alone, both = 1 - (1 - pi) * ratio, 0.0, 0.0
        for below, weight, _ in models():
            g = np.diff(below(bins)) / np.diff(bins)
            r, q = pi + (1 - pi) * g, new + (1 - new) * g
            alone += weight * np.prod((60 * r / (m + 60 * r)) ** u * (m / (m + 60 * r)) ** p)
            total = m + 60 * r + 55 * q
            both += weight * np.prod((60 * r / total) ** u * (m / total) ** p * (55 * q / total) ** t)
        expected.append(np.log(both / alone))
    # models of weight below 1e-4 are left out
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=0.02)


# ---- the estimator


def problem(pi, m, n, distance, columns=10, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < pi
    X = np.concatenate(
        [rng.normal(size=(m, columns)) + distance, rng.normal(size=(n, columns)) + distance * labels[:, None]]
    )
    return X, np.arange(m + n) < m


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
@pytest.mark.parametrize("seed", range(3))
def test_frequent_positives_are_found(seed):
    """Means 0.6 apart in ten columns, 1.9 in all: the posterior leaves a standard deviation of 0.08 to 0.15."""
    found = ps.MixturePrior(random_state=seed).fit(*problem(0.9, 500, 1500, 0.6, seed=seed))
    low, high = found.interval_
    assert abs(found.prior_ - 0.9) < 0.12 and low <= 0.9 <= high
    assert found.standard_error_ < 0.2
    assert found.prior_ == pytest.approx(float(found.prior_distribution_.ppf(0.5)))
    assert (low, high) == pytest.approx(found.prior_distribution_.ppf([0.025, 0.975]))


@pytest.mark.parametrize("pi", [0.1, 0.5, 0.9])
def test_where_classes_are_apart_the_prior_is_that_of_the_sample(pi):
    X, y = problem(pi, 300, 1000, 3.0)
    found = ps.MixturePrior(random_state=0).fit(X, y)
    low, high = found.interval_
    # three standard errors of a share of 1000 rows, 0.0095 to 0.016, and as much again of 300 positives' p-values
    # (at 0.9 the 100 negatives leave more open: some others, hidden among the positives)
    assert abs(found.prior_ - pi) < 0.07 and low <= pi <= high and high - low < (0.3 if pi == 0.9 else 0.18)
    assert found.overlap_ < 0.05 and not found.few_positives_ and not found.is_uninformative_


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
def test_few_positives_are_said():
    X, y = problem(0.4, 12, 300, 2.0)
    with pytest.warns(FewPositivesWarning, match="12 positive rows"):
        found = ps.MixturePrior(random_state=0).fit(X, y)
    assert found.few_positives_ and found.interval_[0] <= 0.4 <= found.interval_[1]
    many = ps.MixturePrior(random_state=0).fit(*problem(0.4, 300, 300, 2.0))
    assert np.diff(found.interval_) > 1.2 * np.diff(many.interval_)


def test_overlap_leaves_the_prior_open_and_says_so():
    X, y = problem(0.4, 400, 800, 0.45)
    with pytest.warns(WeakSeparationWarning) as said:
        found = ps.MixturePrior(random_state=0).fit(X, y)
    low, high = found.interval_
    message = str(said[0].message)
    assert f"one negative in {1 / found.overlap_:.0f}" in message and f"{low:.2f} to {high:.2f}" in message
    assert 0.1 < found.overlap_ <= 0.5 and low <= 0.4 <= high
    assert high - low > 0.2


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
@pytest.mark.parametrize("seed", range(6))
def test_positives_like_the_population_may_be_all_of_it(seed):
    """The same law: π can be anything up to 1, and no interval may leave out what is close to 1."""
    X, y = problem(0.0, 100, 200, 0.0, columns=3, seed=seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ps.MixturePrior(random_state=0).fit(X, y)
    low, high = found.interval_
    assert high > 0.95 and high - low > 0.15 and 0 <= found.overlap_ <= 0.5
    assert (
        found.is_uninformative_
        == (high - low > 0.9)
        == any(w.category is WeakSeparationWarning and "overlap" not in str(w.message) for w in said)
    )


def test_an_interval_that_says_nothing_is_said():
    X, y = problem(0.0, 100, 200, 0.0, columns=3, seed=0)
    with pytest.warns(
        WeakSeparationWarning,
        match=r"100 positive.*200 unlabelled.*\(0\.\d\d to \d\.\d\d\)",
    ):
        assert ps.MixturePrior(random_state=0).fit(X, y).is_uninformative_


def test_km2_is_evidence_against_larger_priors_alone():
    shares = np.linspace(0, 1, 201)
    for km2 in (0.0, 0.1, 0.3, 0.39, 0.5, 0.9):
        log = _km2_log_likelihood(shares, km2)
        assert (np.diff(log) <= 0).all()
        np.testing.assert_array_equal(log[shares <= km2], log[0])
        np.testing.assert_array_equal(log[shares >= 0.4], log[-1])
    # Student's density of 4 degrees of freedom, 0.14 above KM2's answer of scale 0.07; beside it, that it says nothing
    ratio = np.exp(_km2_log_likelihood(np.array([0.24, 0.05]), 0.1))
    assert ratio[0] / ratio[1] == pytest.approx((stats.t(4).pdf(2) / stats.t(4).pdf(0) + 0.05) / 1.05)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_few_positives_of_a_high_prior_are_not_talked_down_by_km2():
    """KM2 answers little to 25 positives, whatever the prior; what the scores tell outweighs it."""
    told = []
    for seed in range(8):
        X, y = problem(0.95, 25, 1000, 1.0, seed=seed)
        fitted = ps.MixturePrior(random_state=0).fit(X, y)
        told.append((fitted.km2_prior_, fitted.prior_, fitted.interval_[0] <= 0.95 <= fitted.interval_[1]))
    km2, prior, covers = np.array(told).T
    assert np.median(km2) < 0.5 and np.mean(prior) > 0.75 and covers.all()


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize(("pi", "distance"), [(0.1, 0.4), (0.2, 0.6), (0.9, 0.6)])
def test_asking_km2_never_raises_the_prior(pi, distance):
    X, y = problem(pi, 150, 400, distance)
    alone, asked = (ps.MixturePrior(use_km2=ask, random_state=0).fit(X, y) for ask in (False, True))
    assert np.isnan(alone.km2_prior_) and np.isfinite(asked.km2_prior_)
    np.testing.assert_array_equal(alone.p_values_, asked.p_values_)
    assert asked.prior_ <= alone.prior_ + 1e-12
    levels = np.linspace(0.01, 0.99, 50)
    assert (asked.prior_distribution_.ppf(levels) <= alone.prior_distribution_.ppf(levels) + 1e-12).all()
    model = alone._model_posterior
    again = allow_hidden_negatives(model.times(_km2_log_likelihood(model.middles, asked.km2_prior_)), alone.overlap_)
    assert float(again.ppf(0.5)) == pytest.approx(asked.prior_, rel=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_rows_that_km2_cannot_use_leave_the_p_values_alone():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random(100) < 0.9, rng.random(300) < 0.3])[:, None].astype(float)
    found = ps.MixturePrior(random_state=0).fit(X, np.repeat([1, 0], [100, 300]))
    assert np.isnan(found.km2_prior_) and 0 <= found.prior_ <= 1


def test_censoring_counts_the_labelled_rows_in_the_population():
    rng = np.random.default_rng(0)
    truth = rng.random(1500) < 0.4
    X = rng.normal(size=(1500, 3)) + 3 * truth[:, None]
    labeled = truth & (rng.random(1500) < 0.5)
    found = ps.MixturePrior(scenario="censoring", random_state=0).fit(X, labeled)
    assert found.prior_ == pytest.approx(0.4, abs=0.04)  # without them it would be 0.25


def test_scores_that_were_made_before_give_the_same_prior():
    X, y = problem(0.4, 100, 300, 2.0)
    witness = ps.WitnessShift(random_state=0).fit(X, y)
    found = witness.prior_estimator_
    assert isinstance(found, ps.MixturePrior) and found.scored_ is witness.scored_
    assert witness.source_prior_ == found.prior_
    alone = ps.MixturePrior(random_state=0).fit(X, y)
    np.testing.assert_array_equal(alone.p_values_, found.p_values_)
    # KM2's rows are not thinned here, so that its answer is the same without the same draws
    assert alone.prior_ == pytest.approx(found.prior_, rel=1e-12)


def test_copies_of_every_row_leave_the_prior_where_it_is():
    X, y = problem(0.4, 100, 300, 1.0)
    once = ps.MixturePrior(random_state=0).fit(X, y)
    with pytest.warns(ps.errors.DuplicateRowsWarning, match=r"1200 of 1600"):
        four = ps.MixturePrior(random_state=0).fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    # folds and features are drawn anew for other rows, which moves a p-value by its noise
    assert abs(four.prior_ - once.prior_) < once.standard_error_
    assert four.standard_error_ == pytest.approx(once.standard_error_, rel=0.25)


def test_it_is_asked_by_tcpu_with_all_that_it_leaves_open():
    X, y = problem(0.4, 200, 600, 1.0)
    target = problem(0.7, 2, 500, 1.0, seed=5)[0][2:]
    asked = ps.TCPU(ps.MixturePrior(random_state=0, standardize=False), random_state=0).fit(X, y)
    estimate = asked.estimate(target)
    found = asked.prior_estimator_.prior_distribution_
    told = asked.set_params(source_prior=found).estimate(target)
    assert estimate.interval == told.interval
    # the point is the median of what was estimated, and the mean of a distribution that was given
    assert (estimate.source_prior, told.source_prior) == pytest.approx((float(found.ppf(0.5)), found.mean()))
    # the variance is (1−π)²Var(R̂) + R̂²Var(π), with the same Var(R̂)
    ratio_errors = []
    for one in (estimate, told):
        from_prior = one.negative_ratio * one.details["source_prior_standard_error"]
        ratio_errors.append(np.sqrt(one.standard_error**2 - from_prior**2) / (1 - one.source_prior))
    assert ratio_errors[0] == pytest.approx(ratio_errors[1], rel=1e-9)
    assert (estimate.source_prior_by, told.source_prior_by) == ("MixturePrior", "distribution")
    narrow = asked.set_params(source_prior=float(found.mean())).estimate(target)
    assert estimate.interval.width > 1.1 * narrow.interval.width


def test_a_wrong_flag_is_refused():
    with pytest.raises(InputError, match=r"use_km2 is 'no'"):
        ps.MixturePrior(use_km2="no").fit(*problem(0.4, 20, 40, 1.0))


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.MixturePrior(random_state=0).fit(*problem(0.3, 100, 300, 3.0))


def slowly_shifted(posterior, overlap, shares):
    """Density of π up to a factor, by numerical integration over δ."""
    hidden = 0.5 / (1 + (0.07 / (overlap + 0.005)) ** 3)

    def likelihood(share):
        k = np.clip(np.searchsorted(posterior.edges, share, "right") - 1, 0, len(posterior.probabilities) - 1)
        mass = np.diff(stats.beta.cdf(posterior.edges, 0.5, 0.5))
        return np.where((share >= 0) & (share <= 1), (posterior.probabilities / mass)[k], 0.0)

    delta = np.linspace(0, 12, 120_001)[:-1] + 5e-5
    total = np.zeros(len(shares))
    for i, share in enumerate(shares):
        later = likelihood(1 - (1 - share) * np.exp(-delta))
        more = np.sum(later * np.exp(-delta / 0.25) / 0.25) * 1e-4
        before = np.sum(likelihood(1 - (1 - share) * np.exp(delta)) * np.exp(-delta / 0.02) / 0.02) * 1e-4
        total[i] = 0.9 * ((1 - hidden) * likelihood(share) + hidden * more) + 0.1 * before
    return total * stats.beta.pdf(shares, 0.5, 0.5)


@pytest.mark.parametrize("overlap", [0.0, 0.03, 0.2])
def test_hidden_negatives_shift_the_posterior_by_an_exponential_distance(overlap):
    edges = np.linspace(0, 1, 201)
    posterior = PiecewiseUniform.from_cdf(stats.beta.cdf(edges, 30, 70), edges)
    found = allow_hidden_negatives(posterior, overlap)
    middles, width = found.middles, np.diff(found.edges)
    inside = (middles > 0.02) & (middles < 0.6)
    slow = slowly_shifted(posterior, overlap, middles[inside])
    density = found.probabilities[inside] / width[inside]
    np.testing.assert_allclose(density / density.sum(), slow / slow.sum(), rtol=0.05, atol=2e-4)


def test_the_interval_does_not_shrink_to_a_point_where_classes_overlap():
    """However narrow the model's posterior is, the lower end stays far below; where they are separated it does not."""
    edges = np.concatenate([[0.0], np.linspace(0.2999, 0.3001, 41), [1.0]])
    narrow = PiecewiseUniform(edges, np.concatenate([[0.0], np.full(40, 1 / 40), [0.0]]))
    low, high = allow_hidden_negatives(narrow, 0.2).ppf([0.025, 0.975])
    assert low < 0.05 and 0.3 < high < 0.4
    low, high = allow_hidden_negatives(narrow, 0.0).ppf([0.025, 0.975])
    assert low > 0.27
