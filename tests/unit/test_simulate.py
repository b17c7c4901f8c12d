import numpy as np
import pytest

from priorshift import simulate
from priorshift.errors import InputError


@pytest.mark.parametrize("c", [0.25, 0.5])
@pytest.mark.parametrize("pi", [0.1, 0.2, 0.5])
def test_scheme_gives_the_rows_and_the_labelling_frequency_it_promises(pi, c):
    m, n = simulate.sample_sizes(100_000, pi, c)
    assert m + n == pytest.approx(100_000, abs=1)
    assert m / (m + pi * n) == pytest.approx(c, abs=1e-4)


def test_gaussian_population_has_the_moments_of_the_paper():
    s = simulate.gaussian(0.2, 0.6, 20_000, 20_000, random_state=0)
    assert s.target_labels.mean() == pytest.approx(0.6, abs=0.02)
    assert s.unlabeled_labels.mean() == pytest.approx(0.2, abs=0.02)
    for rows, mean in (
        (s.positive, 1),
        (s.unlabeled[s.unlabeled_labels], 1),
        (s.unlabeled[~s.unlabeled_labels], 0),
        (s.target[s.target_labels], 1),
        (s.target[~s.target_labels], 0),
    ):
        np.testing.assert_allclose(rows.mean(axis=0), mean, atol=0.08)  # five standard errors of 4000 rows
        np.testing.assert_allclose(np.cov(rows.T), np.eye(10), atol=0.12)


def test_violation_moves_the_target_positives_only():
    s = simulate.gaussian(0.2, 0.6, 5000, 5000, violation=0.7, random_state=0)
    assert s.target[s.target_labels].mean() == pytest.approx(1.7, abs=0.03)
    assert s.target[~s.target_labels].mean() == pytest.approx(0, abs=0.03)
    assert s.positive.mean() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(("pi", "share"), [(0.1, 0.909), (0.5, 0.667)])
def test_the_papers_scheme_shares_most_positives(pi, share):
    s = simulate.gaussian(pi, 0.6, 20_000, 10, random_state=0)
    inside = np.isin(s.positive_ids, s.unlabeled_ids)
    assert inside.mean() == pytest.approx(share, abs=0.03)
    assert inside.sum() > 50
    at = {i: k for k, i in enumerate(s.unlabeled_ids)}
    for row, i in zip(s.positive[inside][:50], s.positive_ids[inside][:50], strict=True):
        np.testing.assert_array_equal(row, s.unlabeled[at[i]])


def test_separate_pools_share_nothing():
    s = simulate.gaussian(0.2, 0.6, 300, 300, shared=False, random_state=0)
    assert not np.isin(s.positive_ids, s.unlabeled_ids).any()
    assert len(s.ids) == len(s.X) == len(s.y)


def test_seeds_decide_the_draws_and_the_global_state_is_left_alone():
    state = np.random.get_state()[1].copy()
    one, two, other = (simulate.gaussian(0.2, 0.6, 50, 50, random_state=k) for k in (1, 1, 2))
    np.testing.assert_array_equal(one.target, two.target)
    np.testing.assert_array_equal(one.X, two.X)
    assert not np.array_equal(one.target, other.target)
    np.testing.assert_array_equal(state, np.random.get_state()[1])


@pytest.mark.parametrize("prior", [0.05, 0.35, 0.5, 0.9])
def test_downsampling_reaches_the_prior_and_keeps_one_class_whole(prior):
    y = np.random.default_rng(0).permutation(np.repeat([1, 0], [350, 650]))
    kept = simulate.downsample(y, prior, random_state=0)
    assert y[kept].mean() == pytest.approx(prior, abs=0.5 / len(kept) + 1e-9)
    assert 350 in (y[kept].sum(),) or (1 - y[kept]).sum() == 650
    assert len(np.unique(kept)) == len(kept)


def test_shifted_real_data_have_their_priors_and_disjoint_halves():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.4
    X = np.arange(2000.0)[:, None]  # each row is its own number
    s = simulate.shift_labels(X, y, 0.2, 0.7, random_state=1)
    assert s.target_labels.mean() == pytest.approx(0.7, abs=0.01)
    assert s.unlabeled_labels.mean() == pytest.approx(0.2, abs=0.05)
    assert not np.isin(s.target, s.X).any()
    np.testing.assert_array_equal(s.X[:, 0], s.ids)
    assert y[s.positive_ids].all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.gaussian(0.2, 1.0), "target_prior is 1.0, but it must be a number strictly between 0 and 1"),
        (lambda: simulate.gaussian(0.0, 0.5), "source_prior is 0.0, but"),
        (lambda: simulate.gaussian(0.2, 0.5, label_frequency=1), "label_frequency is 1, but"),
        (lambda: simulate.gaussian(0.2, 0.5, 3), "n_source is 3, but it must be a whole number of at least 10"),
        (lambda: simulate.gaussian(0.2, 0.5, 50, 0), "n_target is 0, but it must be a whole number of at least 2"),
        (lambda: simulate.gaussian(0.2, 0.5, dimension=0), "dimension is 0, but it must be a whole number"),
        (lambda: simulate.downsample(np.array([1, 0]), 0.01), "a prior of 0.01 leaves only one class"),
        (lambda: simulate.downsample(np.array([1, 1]), 0.5), r"y has shape \(2,\) and 1 values"),
        (
            lambda: simulate.label_some(np.eye(20), np.repeat([1, 0], [1, 19]), 0.5, 0.5),
            "7 rows are to be labelled, but only 1 are positive",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
