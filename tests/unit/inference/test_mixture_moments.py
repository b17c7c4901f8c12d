"""The mixture from moments of h is the mixture from the values of h."""

import numpy as np
import pytest

from priorshift.embedding.moments import FeatureMoments
from priorshift.inference.affine_mixture import AffineMixture, SampleValues
from priorshift.inference.mixture_moments import mixture_from_moments, parts_of_samples

ROWS, FUNCTIONS = (30, 50, 80), 2


def values(rng, rows, weighted):
    h = rng.normal(size=(rows, FUNCTIONS)) + 3 * rng.normal(size=FUNCTIONS)
    return h, rng.uniform(0.2, 3, rows) if weighted else None


def sample_values(h, weights, first):
    """Values of rows that are each an observation of their own, numbered from `first` on."""
    w = np.ones(len(h)) if weights is None else weights
    return SampleValues(h, w / w.sum(), first + np.arange(len(h)), float(w.sum() ** 2 / (w @ w)))


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("censoring", [False, True], ids=["case-control", "censoring"])
def test_moments_give_what_values_give(censoring, weighted):
    rng = np.random.default_rng(0)
    parts = [values(rng, rows, weighted) for rows in ROWS]
    target = values(rng, 40, weighted)
    starts = np.cumsum([0, *ROWS])
    samples = [sample_values(*part, start) for part, start in zip(parts, starts[:-1], strict=True)]
    if censoring:  # the base consists of all parts
        h = np.concatenate([h for h, _ in parts])
        samples[-1] = sample_values(h, np.concatenate([w for _, w in parts]) if weighted else None, 0)
    # the share of noise depends on second moments, in which the squares of weights count
    noise = None if weighted else np.diag([0.1, 0.2])
    expected = AffineMixture.from_values(samples, sample_values(*target, starts[-1]), noise)
    found = mixture_from_moments(
        [FeatureMoments.from_values(*part) for part in parts],
        parts_of_samples(2, rest=True, censoring=censoring),
        FeatureMoments.from_values(*target),
        noise,
    )
    names = ["coefficients", "means", "target_mean", "target_variance", "source_covariance", "sizes", "covariance"]
    for name in names if weighted else [*names, "second_moments"]:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12, err_msg=name)
    b = np.array([0.3, 0.2, 0.5])
    assert found.p_value(b) == pytest.approx(expected.p_value(b), rel=1e-9)


def test_moments_of_affine_functions_are_those_of_their_values():
    rng = np.random.default_rng(1)
    z, w = rng.normal(size=(20, 4)), rng.uniform(1, 2, 20)
    A, c = rng.normal(size=(3, 4)), rng.normal(size=3)
    found, expected = FeatureMoments.from_values(z, w).affine(A, c), FeatureMoments.from_values(z @ A.T + c, w)
    for name in ("rows", "weight", "squares", "total", "squared_total", "product"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)
