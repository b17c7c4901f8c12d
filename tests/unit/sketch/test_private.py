"""Private releases: how much noise a budget asks for, that it is added, and that intervals know of it."""

import re
import warnings
from dataclasses import replace
from functools import cache
from itertools import product
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import priorshift as ps
from priorshift.embedding.moments import embed_moments
from priorshift.errors import InputError, PrivacyWarning
from priorshift.scores import counts as counted
from priorshift.scores import mixture
from priorshift.scores.counts import GROUPS, STARTS, ScoreCounts, SourceCounts
from priorshift.scores.posterior import prior_posterior
from priorshift.sketch import Histogram, ScoreModel, Sketch, load, private
from priorshift.sketch.private import release
from priorshift.sketch.sketch import estimate_from_sketches

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "sharing.md").read_text(encoding="utf-8").split())
BUDGETS = list(product((0.1, 1.0, 5.0), (1e-3, 1e-6)))


@cache
def samples(n=2000, seed=0):
    return ps.simulate.gaussian(0.2, 0.6, n_source=n, n_target=n, shared=False, random_state=seed)


@cache
def model():
    s = samples(seed=9)
    return ScoreModel.fit(s.positive, s.unlabeled, random_state=0)


@cache
def histograms():
    s = samples()
    return tuple(Histogram.from_sample(rows, model()) for rows in (s.positive, s.unlabeled, s.target))


@cache
def sketches(features=64):
    s = samples()
    public = Sketch.from_sample(samples(seed=9).unlabeled, features=features)
    return tuple(Sketch.from_sample(rows, like=public) for rows in (s.positive, s.unlabeled, s.target))


@pytest.fixture
def quick_noise(monkeypatch):
    """Draw noise from a generator of normal numbers, for simulations of thousands of releases."""
    rng = np.random.default_rng(6)
    monkeypatch.setattr(
        private, "discrete_normal", lambda count, scale, draw: np.rint(rng.normal(0, scale, count)).astype(np.int64)
    )


# ---- the mechanism


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_delta_is_what_two_normal_laws_differ_by_beyond_epsilon(epsilon, delta):
    sigma = private.gaussian_noise(3.0, epsilon, delta)  # the two lie 3 apart
    p, q = stats.norm(0, sigma), stats.norm(3, sigma)
    # δ = ∫ max(p − e^ε q, 0), the definition, which p alone decides left of where the two are equal
    ends = -12 * sigma, 1.5 - epsilon * sigma**2 / 3
    found, _ = integrate.quad(
        lambda x: max(p.pdf(x) - exp(epsilon) * q.pdf(x), 0.0), *ends, epsabs=1e-14, epsrel=1e-10, limit=500
    )
    assert found == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [b for b in BUDGETS if b[0] < 1])
def test_noise_is_less_than_the_classical_bound(epsilon, delta):
    assert private.gaussian_noise(1.0, epsilon, delta) < sqrt(2 * log(1.25 / delta)) / epsilon


@settings(max_examples=50, deadline=None)
@given(epsilon=st.floats(1e-6, 1e3), delta=st.floats(1e-15, 0.999), less=st.floats(0.5, 0.99))
def test_noise_is_the_least_that_keeps_the_budget(epsilon, delta, less):
    sigma = private.gaussian_noise(1.0, epsilon, delta)
    assert private.privacy_loss(sigma, epsilon) <= delta < private.privacy_loss(less * sigma, epsilon)
    assert private.gaussian_noise(7.0, epsilon, delta) == pytest.approx(7 * sigma)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_an_epsilon_that_cannot_be_is_refused(epsilon):
    for one in (histograms()[2], sketches()[2]):
        with pytest.raises(InputError, match=r"epsilon"):
            release(one, epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-6, float("nan"), "1e-6", None])
def test_a_delta_that_cannot_be_is_refused(delta):
    for one in (histograms()[2], sketches()[2]):
        with pytest.raises(InputError, match=r"delta"):
            release(one, 1.0, delta)


@pytest.mark.parametrize("random_state", ["1", -1, True])
def test_a_random_state_that_cannot_be_is_refused(random_state):
    for one in (histograms()[2], sketches()[2]):
        with pytest.raises(InputError, match=r"random_state"):
            release(one, 1.0, 1e-6, random_state)


# ---- how far a row moves what is released


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), at=st.integers(0, 49))
def test_a_row_moves_counts_no_farther_than_noise_is_made_for(seed, at):
    rng = np.random.default_rng(seed)
    values = rng.random((5, 50))
    other = values.copy()
    other[:, at] = rng.random(5) ** 6
    moved = ScoreCounts.from_p_values(values, 99).grouped - ScoreCounts.from_p_values(other, 99).grouped
    assert np.linalg.norm(moved) <= sqrt(2 * 5) + 1e-12


def test_the_bound_on_how_far_a_row_moves_moments_is_reached_and_never_passed():
    # of lengths 1 and every angle: the bound is 2, at opposite ones
    for c in np.linspace(-1, 1, 41):
        z, w = np.array([1.0, 0.0]), np.array([c, sqrt(1 - c**2)])
        second = np.outer(z, z) - np.outer(w, w)
        moved = np.concatenate([z - w, np.diag(second) / sqrt(2), second[np.triu_indices(2, 1)]])
        assert np.linalg.norm(moved) <= 2 + 1e-12
        assert np.linalg.norm(moved) ** 2 == pytest.approx(4 - (1 + c) ** 2)
    rng = np.random.default_rng(0)
    rows = sketches()[0].design.features.map(rng.normal(size=(100, 10)) * 5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-12)


# ---- noise


def test_noise_of_counts_has_the_spread_that_is_stated():
    target = histograms()[2]
    rng = np.random.default_rng(1)
    made = [release(target, 1.0, 1e-6, rng) for _ in range(200)]
    sigma = private.gaussian_noise(sqrt(2 * 5), 1.0, 1e-6)
    assert made[0].counted.noise == sigma
    noise = np.array([one.counted.grouped - target.counted.grouped for one in made])
    np.testing.assert_allclose(noise.sum(axis=2), 0, atol=1e-9)  # so that of nine each repetition has eight
    freedom = 200 * 5 * (GROUPS - 1)
    chi2 = (noise**2).sum() / sigma**2
    assert 1e-4 < stats.chi2.cdf(chi2, freedom) < 1 - 1e-4
    each = (noise**2).sum(axis=0) / (sigma**2 * (1 - 1 / GROUPS))  # no cell has less
    assert stats.chi2.cdf(each, 200).min() > 1e-6 and stats.chi2.sf(each, 200).min() > 1e-6


def test_noise_of_moments_has_the_spread_that_is_stated():
    target = sketches()[2]
    rng = np.random.default_rng(1)
    sigma, _ = private.moments_noise(64, 1.0, 1e-6)
    assert 0 < sigma / private.gaussian_noise(2.0, 1.0, 1e-6) - 1 < 1e-6  # for rounding
    plain, upper = target.moments, np.triu_indices(64, 1)
    found = {"total": [], "beside": [], "diagonal": []}
    for _ in range(30):
        made = release(target, 1.0, 1e-6, rng).moments
        assert made.noise == sigma
        np.testing.assert_array_equal(made.product, made.product.T)
        off = made.product - plain.product
        found["total"].append((made.total - plain.total) / sigma)
        found["beside"].append(off[upper] / sigma)
        found["diagonal"].append(np.diag(off) / (sqrt(2) * sigma))
    for name, parts in found.items():
        values = np.concatenate(parts)
        assert 1e-4 < stats.chi2.cdf(values @ values, len(values)) < 1 - 1e-4, name
        assert stats.kstest(values, "norm").pvalue > 1e-4, name


def test_noise_of_the_system_is_normal_and_never_the_same():
    system = private.integer_source(None)
    first, second = (private.add_discrete_noise(np.zeros(20_000), 2.0, 2.0**-27, system) for _ in range(2))
    assert stats.kstest(first / 2, "norm").pvalue > 1e-4
    assert not np.array_equal(first, second)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / sqrt(20_000)


def test_what_is_released_lies_on_a_grid_far_finer_than_the_noise():
    assert private.grid_of(3.0) == 2.0**-27  # 2 ≤ 3 < 4: steps of 2 · 2⁻²⁸
    values = np.random.default_rng(0).random(1000)
    made = private.add_discrete_noise(values, 3.0, 2.0**-27, private.integer_source(0))
    assert (made * 2.0**27 == np.round(made * 2.0**27)).all()
    # also the largest noise of counts, which is as coarse as counts are, and of moments fits into 64 bits
    for sigma, grid in ((private.gaussian_noise(10.0, 1e-6, 1e-15), 1.0), private.moments_noise(64, 1e-5, 1e-15)):
        noise = private.add_discrete_noise(np.zeros(2000), sqrt(2) * sigma, grid, private.integer_source(0))
        assert stats.kstest(noise / (sqrt(2) * sigma), "norm").pvalue > 1e-4


@pytest.mark.parametrize("source", [None, 0])
@pytest.mark.parametrize("scale", [1, 2, 7])
def test_discrete_noise_has_the_probabilities_of_its_definition(scale, source):
    drawn = private.discrete_normal(200_000, scale, private.integer_source(source))
    x = np.arange(-9 * scale, 9 * scale + 1)
    share = np.exp(-(x**2) / (2 * scale**2))
    share /= share.sum()
    expected = 200_000 * share
    observed = np.bincount(drawn + 9 * scale, minlength=len(x))
    often = expected > 5
    apart = ((observed - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(apart, often.sum() - 1) > 1e-5
    assert observed[~often].sum() < expected[~often].sum() + 6 * sqrt(expected[~often].sum()) + 3


@pytest.mark.parametrize("k", [0, 3, 9, 20])
def test_noise_is_exact_in_its_far_tails(k, monkeypatch):
    # of numbers from k to k + 1 standard deviations, which a probability of 1e-88 hides from any sample
    scale, count = 50, 40_000
    monkeypatch.setattr(private, "_draw_multiples", lambda number, draw: np.full(number, k))
    drawn = np.abs(private.discrete_normal(count, scale, private.integer_source(1)))
    assert drawn.min() >= k * scale and drawn.max() < (k + 1) * scale
    j = np.arange(scale)
    share = np.exp(-j * (2 * k * scale + j) / (2 * scale**2))
    share[0] *= 0.5 if k == 0 else 1  # zero has one sign only
    expected = count * share / share.sum()
    observed = np.bincount(drawn - k * scale, minlength=scale)
    often = expected > 5
    apart = ((observed - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(apart, often.sum() - 1) > 1e-5


def test_noise_beyond_eight_standard_deviations_takes_every_value_of_the_grid(monkeypatch):
    # noise from 63 random bits leaves gaps there: 2⁻⁶⁴ is a step of more than the grid
    monkeypatch.setattr(private, "_draw_multiples", lambda number, draw: np.full(number, 8))
    drawn = private.discrete_normal(20_000, 2**28, private.integer_source(2))
    assert len(np.unique(drawn % 4)) == 4 and len(np.unique(drawn)) > 19_990
    assert np.bincount(drawn % 4).max() < 5000 + 6 * sqrt(20_000 * 3 / 16)


def test_multiples_of_the_standard_deviation_have_their_probabilities():
    k = private._draw_multiples(400_000, private.integer_source(3))
    share = np.exp(-(np.arange(6) ** 2) / 2)
    expected = len(k) * share / np.exp(-(np.arange(40) ** 2) / 2).sum()
    apart = ((np.bincount(k, minlength=6)[:6] - expected) ** 2 / np.maximum(expected, 1)).sum()
    assert stats.chi2.sf(apart, 5) > 1e-5


@pytest.mark.parametrize("gamma", [(0, 3), (1, 3), (1, 1), (2**59, 2**60)])
def test_a_trial_succeeds_with_the_exponential_of_a_fraction(gamma):
    numerator, denominator = gamma
    made = private.bernoulli_exp(np.full(200_000, numerator, dtype=np.uint64), denominator, private.integer_source(4))
    expected = exp(-numerator / denominator)
    assert abs(made.mean() - expected) <= 5 * sqrt(expected * (1 - expected) / 200_000)


def test_integers_of_the_system_are_uniform_and_words_with_unequal_remainders_are_drawn_again(monkeypatch):
    for bound in (3, 200, 1000):
        counts = np.bincount(private._system_integers(bound, 100_000).astype(np.int64), minlength=bound)
        assert len(counts) == bound and stats.chisquare(counts).pvalue > 1e-5
    words = iter([np.array([2**64 - 1, 7], np.uint64).tobytes(), np.array([9], np.uint64).tobytes()])
    monkeypatch.setattr(private.os, "urandom", lambda size: next(words))
    np.testing.assert_array_equal(private._system_integers(1000, 2), [9, 7])  # 2⁶⁴ − 1 is above the last multiple


@pytest.mark.parametrize("shift", [(28,), (12, 16), (8, 8, 8)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 1e-6), (5, 1e-9), (10, 1e-3)])
def test_delta_of_discrete_noise_is_that_of_normal_noise_up_to_the_square_of_the_grid(epsilon, delta, shift):
    length = sqrt(sum(step**2 for step in shift))
    scale = int(np.ceil(private.gaussian_noise(length, epsilon, delta)))
    x = np.arange(-12 * scale, 12 * scale + 1)
    share = np.exp(-(x**2) / (2 * scale**2))
    share /= share.sum()
    sums = np.ones(1)  # probabilities of ⟨shift, noise⟩
    for step in shift:
        spread = np.zeros(len(x) * step - step + 1)
        spread[::step] = share
        sums = np.convolve(sums, spread)
    inner = np.arange(len(sums)) - len(sums) // 2
    loss = (2 * inner + length**2) / (2 * scale**2)  # log of the likelihood ratio of two samples that lie `shift` apart
    found = (sums * -np.expm1(np.minimum(epsilon - loss, 0))).sum()
    assert found == pytest.approx(private.privacy_loss(scale / length, epsilon), rel=3 / scale**2)


def test_a_seed_gives_the_same_release_and_the_sample_stays_as_it_was():
    for one in (histograms()[2], sketches()[2]):
        a, b, c = release(one, 1, 1e-6, 3), release(one, 1, 1e-6, 3), release(one, 1, 1e-6, 4)
        arrays = [x.counted.counts if isinstance(x, Histogram) else x.moments.total for x in (a, b, c, one)]
        np.testing.assert_array_equal(arrays[0], arrays[1])
        assert not np.array_equal(arrays[0], arrays[2])
        assert one.epsilon is None and (a.epsilon, a.delta) == (1.0, 1e-6)
        assert "private" not in str(one) and str(release(one, 1, 1e-6)).endswith(", private (epsilon 1, delta 1e-06)")


def test_a_release_from_a_seed_does_not_call_itself_private_and_is_not_saved(tmp_path):
    for one in (histograms()[2], sketches()[2]):
        for seed in (0, np.random.default_rng(0)):
            made = release(one, 1, 1e-6, seed)
            assert re.search(r"not private, .* seed \(epsilon 1, delta 1e-06\)$", str(made))
            for seeded in (made, made.merge(release(one, 1, 1e-6)), release(one, 1, 1e-6).merge(made)):
                with pytest.raises(InputError, match=r"seed.*random_state"):
                    seeded.save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_copy_of_a_release_does_not_count_twice(tmp_path):
    for one, other in ((histograms()[1], histograms()[2]), (sketches()[1], sketches()[2])):
        made = release(one, 1, 1e-6)
        made.save(tmp_path / "a")
        copy, again = load(tmp_path / "a"), release(one, 1, 1e-6)
        both = made.merge(release(other, 1, 1e-6))
        both.save(tmp_path / "b")
        loaded = load(tmp_path / "b")
        assert len(made.merge(again)) == 2 * len(made)  # another release of the rows cannot be told from other rows
        for two in ((made, made), (made, copy), (both, copy), (copy, loaded), (loaded.merge(again), both)):
            with pytest.raises(InputError, match=r"same private release"):
                two[0].merge(two[1])


def test_a_budget_that_the_grid_does_not_allow_is_refused():
    with pytest.raises(InputError, match=r"epsilon is 1e-06.*features"):
        private.moments_noise(512, 1e-6, 1e-15)
    rounded = private.moments_noise(512, 1.0, 1e-6)[0] / private.gaussian_noise(2.0, 1.0, 1e-6)
    assert f"a share of {1e6 * (rounded - 1):.0f}·10⁻⁶ for ε = 1 and 512 features" in PAGE


# ---- what is refused, and what is warned of


def test_what_is_private_is_not_released_again():
    for one, what in ((histograms()[2], "histogram"), (sketches()[2], "sketch")):
        with pytest.raises(InputError, match=f"{what} is private"):
            release(release(one, 1, 1e-6), 1, 1e-6)


def test_a_sketch_whose_rows_fixed_the_design_is_not_released():
    s = samples()
    first = Sketch.from_sample(s.unlabeled[:300], features=16)
    with pytest.raises(InputError, match=r"fixed its columns"):
        release(first, 1, 1e-6)
    like = Sketch.from_sample(s.target[:300], like=first)
    assert not like.own_design and like.merge(first).own_design and first.own_design
    with pytest.raises(InputError, match=r"public rows"):
        release(like.merge(first), 1, 1e-6)


def test_a_sketch_with_weights_is_not_released():
    s, public = samples(), Sketch.from_sample(samples(seed=9).unlabeled[:300], features=16)
    weighted = Sketch.from_sample(s.target[:300], like=public, weights=np.arange(1.0, 301))
    with pytest.raises(InputError, match=r"weights"):
        release(weighted, 1, 1e-6)


def test_parts_that_are_private_merge_and_others_not_with_them():
    s = samples()
    a, b = (Histogram.from_sample(rows, model()) for rows in (s.target[:900], s.target[900:]))
    both = release(a, 1, 1e-7, 0).merge(release(b, 0.5, 1e-6, 1))
    assert (both.epsilon, both.delta, len(both)) == (1.0, 1e-6, 2000)
    noises = [private.gaussian_noise(sqrt(10), *budget) for budget in ((1, 1e-7), (0.5, 1e-6))]
    assert both.counted.noise == pytest.approx(np.hypot(*noises))
    _, u, t = sketches()
    two = [release(t, 1, 1e-7, 0), release(u, 0.5, 1e-6, 1)]
    merged = two[0].merge(two[1])
    assert (merged.epsilon, merged.delta) == (1.0, 1e-6)
    assert merged.moments.noise == pytest.approx(np.hypot(*(one.moments.noise for one in two)))
    for one, other in ((release(a, 1, 1e-6), b), (b, release(a, 1, 1e-6)), (two[0], u)):
        with pytest.raises(InputError, match=r"private and the other is not"):
            one.merge(other)


def test_a_budget_that_hides_nothing_or_leaves_nothing_is_warned_of():
    s, public = samples(), sketches()[0]
    few = Histogram.from_sample(s.target[:60], model()), Sketch.from_sample(s.target[:60], like=public)
    with pytest.warns(PrivacyWarning, match=r"60 rows"):
        release(few[0], 0.5, 1e-6, 0)
    with pytest.warns(PrivacyWarning, match=r"60 rows"):
        release(few[1], 0.5, 1e-6, 0)
    for one in (histograms()[2], sketches()[2]):
        with pytest.warns(PrivacyWarning, match=r"delta is 0\.001.*2000 rows"):
            release(one, 1, 1e-3, 0)
        release(one, 1, 1e-6, 0)  # without a word


def test_bounds_that_know_no_noise_are_refused():
    P, U, T = sketches()
    tcpu = ps.TCPU(source_prior=0.2, interval="sharp-bound")
    with pytest.raises(InputError, match=r"'sharp-bound'.*private"):
        estimate_from_sketches(tcpu, positive=P, unlabeled=U, target=release(T, 1, 1e-6))


# ---- files


def test_private_files_come_back_as_they_were_and_hold_no_more_than_they_should(tmp_path):
    for k, one in enumerate((release(histograms()[2], 1, 1e-6), release(sketches()[2], 2, 1e-7))):
        one.save(tmp_path / str(k))
        back = load(tmp_path / str(k))
        assert (back.epsilon, back.delta, str(back)) == (one.epsilon, one.delta, str(one))
        if isinstance(back, Histogram):
            np.testing.assert_allclose(back.counted.counts, one.counted.counts, rtol=1e-12)
            assert back.counted.noise == one.counted.noise and back.counted.pairs is None
            _, arrays = one.to_contents()
            assert {name: a.shape for name, a in arrays.items()} == {"counts": (5, GROUPS)}
        else:
            np.testing.assert_array_equal(back.moments.product, one.moments.product)
            assert back.moments.noise == one.moments.noise and not back.own_design
    with pytest.raises(InputError, match=r"fixed"):
        release(Sketch.from_sample(samples().target, features=16), 1, 1e-6)


def test_plain_sketches_come_back_with_whose_design_they_have(tmp_path):
    first = Sketch.from_sample(samples().target[:100], features=16)
    first.save(tmp_path / "a")
    Sketch.from_sample(samples().target[:100], like=first).save(tmp_path / "b")
    assert Sketch.load(tmp_path / "a").own_design and not Sketch.load(tmp_path / "b").own_design


def test_files_whose_numbers_no_noise_explains_are_refused(tmp_path):
    made = release(histograms()[2], 1, 1e-6)
    grouped, noise = made.counted.grouped, made.counted.noise
    low = grouped.copy()
    low[0] = [-11 * noise, 2000 + 11 * noise, 0, 0, 0, 0, 0, 0, 0]
    for wrong in (grouped + 1, low):
        counted = ScoreCounts.from_groups(2000, wrong, noise)
        replace(made, counted=counted).save(tmp_path / "a")
        with pytest.raises(InputError, match=r"add up"):
            load(tmp_path / "a")
    replace(made, counted=replace(made.counted, noise=0.0)).save(tmp_path / "a")
    with pytest.raises(InputError, match=r"add up"):
        load(tmp_path / "a")
    one = release(sketches()[2], 1, 1e-6)
    moments, D = one.moments, 64
    for part, wrong, why in (
        ("total", moments.total + 2000, "its mean is longer than 1"),
        ("product", moments.product + 30 * moments.noise * np.eye(D), "the trace of its second moment"),
        ("product", moments.product - 2000 * (1 - np.eye(D)), "its covariance"),
    ):
        changed = replace(moments, **{part: wrong})
        replace(one, moments=replace(changed, squared_total=changed.total)).save(tmp_path / "a")
        with pytest.raises(InputError, match=why):
            load(tmp_path / "a")
    replace(one, privacy=None).save(tmp_path / "a")
    with pytest.raises(InputError, match=r"budget"):
        load(tmp_path / "a")


@pytest.mark.parametrize("times", [0.1, 0.999, 1e8, 1e300])
def test_files_whose_noise_is_not_that_of_their_budget_are_refused(times, tmp_path):
    histogram, sketch = (release(one[2], 1, 1e-6) for one in (histograms(), sketches()))
    counted = replace(histogram.counted, noise=times * histogram.counted.noise)
    moments = replace(sketch.moments, noise=times * sketch.moments.noise)
    for changed in (replace(histogram, counted=counted), replace(sketch, moments=moments)):
        changed.save(tmp_path / "a")
        with pytest.raises(InputError, match=r"its noise is .*budget|damaged"):
            load(tmp_path / "a")


IDENTIFIER = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "releases",
    [
        [], None, {}, IDENTIFIER, [IDENTIFIER] * 2, [IDENTIFIER.upper()], [IDENTIFIER[1:]], [IDENTIFIER + "0"], [1], [""],
        [IDENTIFIER, IDENTIFIER[::-1]],  # the noise is that of one release
        [f"{k:032x}" for k in range(2001)],  # more than rows
    ],
)  # fmt: skip
def test_files_whose_identifiers_are_not_those_of_releases_are_refused(releases):
    for one in (histograms()[2], sketches()[2]):
        header, arrays = release(one, 1, 1e-6).to_contents()
        assert len(header["releases"]) == 1 and type(one).from_contents(header, arrays).epsilon == 1
        with pytest.raises(InputError, match=r"damaged or was changed"):
            type(one).from_contents(header | {"releases": releases}, arrays)
        plain, arrays = one.to_contents()
        assert plain["releases"] == []
        with pytest.raises(InputError, match=r"damaged or was changed"):
            type(one).from_contents(plain | {"releases": [IDENTIFIER]}, arrays)


@pytest.mark.parametrize("value", [None, True, -1, 0, 1e-7, 0.5, 1e4, 1e300, 2**70, "1", [], {}])
def test_private_files_with_another_header_are_refused_or_read_without_an_error(value):
    for one in (histograms()[2], sketches()[2]):
        header, arrays = release(one, 1, 1e-6).to_contents()
        for key in header:
            try:
                back = type(one).from_contents(header | {key: value}, arrays)
            except InputError:
                continue
            assert back.privacy is not None and str(back)  # what has noise never loses its budget


def test_files_of_private_parts_that_were_merged_are_read(tmp_path):
    for made, rows in ((histograms()[2], 3 * 2000), (sketches()[2], 3 * 2000)):
        parts = [release(made, epsilon, delta) for epsilon, delta in ((1, 1e-6), (0.3, 1e-7), (1, 1e-8))]
        parts[0].merge(parts[1]).merge(parts[2]).save(tmp_path / "a")
        back = load(tmp_path / "a")
        assert (len(back), back.epsilon, back.delta) == (rows, 1, 1e-6)


# ---- what the noise does to an answer


def test_the_noise_of_a_mean_of_counts_is_what_simulation_says(quick_noise):
    target = histograms()[2].counted
    rng = np.random.default_rng(2)
    h = np.repeat(rng.normal(size=(5, 4, GROUPS)), np.diff([*STARTS, mixture.BINS]), axis=2)
    made = [private.add_noise_to_counts(target, 1.0, 1e-6, rng).moments(h) for _ in range(2000)]
    found = np.var([one.mean for one in made], axis=0)
    np.testing.assert_allclose(made[0].privacy_variance, found, rtol=0.15)  # 2000 draws know a variance to 3 %
    plain = target.moments(h)
    np.testing.assert_allclose(
        np.mean([one.mean for one in made], axis=0), plain.mean, atol=5 * np.sqrt(found / 2000).max()
    )
    # variances come out right on average too: noise of a mean is squared in them, and is small beside them
    each = np.mean([one.single_variance for one in made], axis=0)
    np.testing.assert_allclose(each, plain.single_variance, rtol=0.02)


@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
def test_the_noise_of_a_tested_ratio_is_what_simulation_says(scenario, quick_noise):
    P, U, T = (one.counted for one in histograms())
    source = SourceCounts(P, U, P.rows + 1, 5, np.nan, scenario)  # other positives than the model's
    witness = source.witness
    r, rng, found = np.array([0.5, 2.0]), np.random.default_rng(4), []
    for _ in range(800):
        p, u, t = (private.add_noise_to_counts(one, 1.0, 1e-6, rng) for one in (P, U, T))
        noisy = replace(source, positive=p, unlabeled=u)
        same_function = replace(witness, positive=p, population=noisy.population)
        tried = same_function._try_ratios(r, t)
        found.append((tried.difference, tried.variance))
    off, variance = np.array(found).transpose(1, 2, 0)
    # all of the variance but what is left of it with hardly any noise
    still = replace(source, **{
        name: ScoreCounts.from_groups(one.rows, one.grouped, 1e-6) for name, one in (("positive", P), ("unlabeled", U))
    })  # fmt: skip
    rest = replace(witness, positive=still.positive, population=still.population)._try_ratios(r, T).variance
    np.testing.assert_allclose(variance.mean(axis=1) - rest, off.var(axis=1), rtol=0.2)  # 800 draws: 5 %


def test_functions_are_made_even_in_groups_for_all_samples_if_one_is_noisy():
    _, U, T = (one.counted for one in histograms())
    P = Histogram.from_sample(samples(seed=9).positive, model()).counted  # the positives that the model ranks
    witness = SourceCounts(P, U, model().ranked, 5, np.nan).witness
    # counts in groups, with so little noise that it does not show: the same as all three in groups
    nearly = [ScoreCounts.from_groups(one.rows, one.grouped, 1e-6) for one in (P, U, T)]
    one, exact = witness.test(nearly[2]), witness.test(T)
    assert one.ratio == pytest.approx(exact.ratio, abs=0.2 * exact.ratio_error)
    assert exact.ratio_error < one.ratio_error < 1.1 * exact.ratio_error
    again = replace(witness, positive=nearly[0], population=nearly[1]).test(nearly[2])
    assert again.ratio == pytest.approx(one.ratio, abs=1e-6)


def _errors(apart):
    """Standard errors of R without noise over those with a private target: of no noise, of groups and of all bins."""
    rng = np.random.default_rng(0)
    drawn = [
        rng.normal(size=(n, 2)) + apart * (rng.random(n) < share)[:, None] / sqrt(2)
        for n, share in ((600, 1.0), (2000, 0.2), (2000, 0.5))
    ]
    by = ScoreModel.fit(*drawn[:2], use_km2=False, random_state=0)
    P, U, T = (Histogram.from_sample(rows, model=by).counted for rows in drawn)
    witness = SourceCounts(P, U, by.ranked, 5, np.nan).witness
    sigma = private.gaussian_noise(sqrt(2 * len(T.counts)), 1.0, 1e-6)

    def error(noise):  # of counts as they are, that are known to be noisy
        return witness.test(T if noise is None else ScoreCounts.from_groups(2000, T.grouped, noise)).ratio_error

    found = [error(1e-6), error(sigma)]
    with pytest.MonkeyPatch.context() as patch:
        every = {"STARTS": np.arange(mixture.BINS), "GROUPS": mixture.BINS, "_WIDTHS": np.ones(mixture.BINS, dtype=int)}
        for name, value in every.items():
            patch.setattr(counted, name, value)
        found.append(error(sigma))
    return np.array(found) / error(None)


def test_the_page_says_what_groups_and_noise_cost():
    more = 100 * (np.array([_errors(apart) for apart in (1, 2, 3, 4)]) - 1)
    said = re.search(
        r"at ε = 1 makes the standard error of R (\d+) to (\d+)% larger with nine groups, and (\d+) to (\d+)% with all "
        r"bins; without noise, nine groups would cost (\d+) to (\d+)%",
        PAGE,
    )
    of_nine, of_all, of_groups = np.array(said.groups(), dtype=float).reshape(3, 2)
    for column, ends in enumerate((of_groups, of_nine, of_all)):
        np.testing.assert_allclose([more[:, column].min(), more[:, column].max()], ends, atol=1)
    least, classical = re.search(
        r"bisection: (\S+) Δ for ε = 1 and δ = 10⁻⁶, where .* is (\S+)\. Whatever", PAGE
    ).groups()
    assert least == f"{private.gaussian_noise(1.0, 1.0, 1e-6):.2f}" and classical == f"{sqrt(2 * log(1.25e6)):.2f}"
    assert re.search(r"noise is σ = 2 · (\S+) for every entry", PAGE).group(1) == least


@pytest.mark.parametrize("censoring", [False, True])
def test_noise_of_sketches_moves_no_inner_product_on_average_and_by_as_much_as_is_said(censoring, quick_noise):
    P, U, T = sketches(32)
    features = P.design.features
    plain = embed_moments(features, P.moments, U.moments, T.moments, censoring=censoring)
    rng, made = np.random.default_rng(3), []
    for _ in range(400):
        noisy = [private.add_noise_to_moments(one.moments, 1.0, 1e-6, rng) for one in (P, U, T)]
        made.append(embed_moments(features, *noisy, censoring=censoring))
    grams = np.array([one.gram for one in made]).reshape(-1, 9)
    said = np.mean([one.parts[-1] for one in made], axis=0).reshape(9, 9)
    np.testing.assert_allclose(grams.var(axis=0), np.diag(said), rtol=0.3)  # 400 draws know a variance to 7 %
    off = (grams.mean(axis=0) - plain.gram.ravel()) / np.sqrt(np.diag(said) / 400)
    assert np.abs(off).max() < 4.5
    # and so do sums of entries, such as N and D
    for A in (np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 0.0]]), np.array([[2, -1, -1], [-1, 0, 1], [-1, 1, 0.0]])):
        spread = (grams @ A.ravel()).var()
        assert spread == pytest.approx(A.ravel() @ said @ A.ravel(), rel=0.3)
        # what rows move is estimated with noise too: never much too little, and larger on average
        own = [max(A.ravel() @ one.parts[:-1].sum(axis=0).reshape(9, 9) @ A.ravel(), 0) for one in made]
        true = A.ravel() @ plain.parts.sum(axis=0).reshape(9, 9) @ A.ravel()
        assert np.mean(own) > true and np.quantile(own, 0.1) > 0.7 * true


def test_the_noise_that_the_mean_embeddings_norm_holds_is_of_the_second_order_too():
    # so much noise that Dσ² is larger than the norm itself
    rng, D = np.random.default_rng(0), 32
    P, U, T = sketches(32)
    noisy = replace(P.moments, noise=100.0)
    norms, said = [], []
    for _ in range(1000):
        total = P.moments.total + rng.normal(0, 100.0, D)
        one = embed_moments(
            P.design.features, replace(noisy, total=total, squared_total=total), U.moments, T.moments, "plug-in"
        )
        norms.append(one.gram[0, 0])
        said.append(one.parts[-1][0, 0, 0, 0])
    v, mu = (100.0 / len(P)) ** 2, P.moments.mean
    assert np.mean(norms) == pytest.approx(mu @ mu, abs=5 * np.std(norms) / sqrt(1000))
    assert np.var(norms) == pytest.approx(4 * v * (mu @ mu) + 2 * D * v**2, rel=0.25)  # 1000 draws: 5 %
    # an estimated norm is not taken below zero, so that it is too large on average, on the safe side
    assert 1 < np.mean(said) / (4 * v * (mu @ mu) + 2 * D * v**2) < 1.3
    assert 2 * D * v**2 > 4 * v * (mu @ mu)


def test_a_posterior_of_noisy_counts_is_that_of_the_counts_but_wider():
    U = histograms()[1].counted
    source = SourceCounts(U, U, model().ranked, 5, np.nan)
    exact, _ = prior_posterior(source.posterior_counts)
    rng, spreads = np.random.default_rng(0), []
    for epsilon in (10.0, 0.3, 0.1):
        inside, means = 0, []
        for _ in range(10):
            noisy = replace(source, unlabeled=private.add_noise_to_counts(U, epsilon, 1e-6, rng))
            found, _ = prior_posterior(noisy.posterior_counts)
            low, high = found.ppf([0.025, 0.975])
            inside += low < 0.2 < high
            means.append(found.std())
        assert inside >= 8
        spreads.append(np.mean(means))
    assert spreads[0] == pytest.approx(exact.std(), rel=0.25)
    assert spreads[0] < spreads[1] < spreads[2]


def covered_and_widths(seeds, of, cases, **settings):
    """How often intervals hold the truth, and how wide they are on average, with those of `cases` noisy."""
    rng = np.random.default_rng(5)
    covered, widths = np.zeros((2, len(cases)))
    for seed in range(seeds):
        s = samples(seed=100 + seed)
        plain = [of(rows) for rows in (s.positive, s.unlabeled, s.target)]
        for k, (which, epsilon) in enumerate(cases):
            three = [
                release(one, epsilon, 1e-6, rng) if j in which else one for j, one in zip("PUT", plain, strict=True)
            ]
            found = ps.estimate_prior(*three, source_prior=0.2, **settings).interval
            covered[k] += found.low <= 0.6 <= found.high
            widths[k] += (found.high - found.low) / seeds
    return covered, widths


def test_intervals_of_private_histograms_widen_and_cover():
    cases = [("", None), ("T", 3.0), ("T", 0.3), ("UT", 0.3)]
    covered, widths = covered_and_widths(12, lambda rows: Histogram.from_sample(rows, model()), cases)
    assert (covered >= 9).all()  # of 12: fewer have a chance of 0.2 %
    assert (np.diff(widths) > 0).all() and widths[2] > 1.2 * widths[0]


def test_intervals_of_private_sketches_widen_and_cover():
    cases = [("", None), ("T", 3.0), ("T", 1.0), ("PUT", 3.0), ("PUT", 1.0)]
    public = sketches()[0]
    covered, widths = covered_and_widths(20, lambda rows: Sketch.from_sample(rows, like=public), cases, method="tcpu")
    assert (covered >= 16).all()  # of 20: fewer have a chance of 0.3 %
    assert (np.diff(widths) > 0).all() and widths[2] > 1.1 * widths[0]


@pytest.mark.parametrize(("made", "method"), [(histograms, None), (sketches, "tcpu")])
def test_an_estimate_tells_the_budgets_of_private_samples(made, method):
    P, U, T = made()
    settings = {"source_prior": 0.2} | ({} if method is None else {"method": method})
    assert "private" not in ps.estimate_prior(P, U, T, **settings).details
    private = release(U, 5, 1e-6), release(T, 3, 1e-5)
    assert ps.estimate_prior(P, *private, **settings).details["private"] == {
        "unlabeled": {"epsilon": 5, "delta": 1e-6},
        "target": {"epsilon": 3, "delta": 1e-5},
    }
    seeded = release(U, 5, 1e-6, random_state=0), release(T, 3, 1e-5, random_state=0)
    assert "private" not in ps.estimate_prior(P, *seeded, **settings).details
    assert list(ps.estimate_prior(P, seeded[0], private[1], **settings).details["private"]) == ["target"]


def test_an_unknown_source_prior_is_not_told_by_noise():
    P, U, T = histograms()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = ps.estimate_prior(P, U, T)
        noisy_target = ps.estimate_prior(P, U, release(T, 1, 1e-6, 0))
        noisy = ps.estimate_prior(P, release(U, 1, 1e-6, 1), release(T, 1, 1e-6, 0))
    # the target's noisy counts say nothing of π; the source's own posterior stays as it is
    assert noisy_target.details["source_prior_range"] == plain.details["source_prior_range"]
    assert noisy.source_prior == pytest.approx(plain.source_prior, abs=0.1)
    for found in (noisy_target, noisy):
        assert found.interval.low < 0.6 < found.interval.high
