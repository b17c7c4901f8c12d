"""Tests of label shift and of a new class for several classes, against exact mixtures, derivatives and simulations."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.class_source import ClassSource
from priorshift.diagnosis.class_tests import (
    ClassTestInput,
    _halve,
    _Residual,
    _test_excess,
    class_label_shift_test,
    new_class_test,
)
from priorshift.inference.affine_mixture import SampleValues

SOURCE = {"a": 0.2, "b": 0.2, "c": 0.2}
TARGET = {"a": 0.4, "b": 0.1, "c": 0.2}


def make_inputs(share=0.0, drift=0.0, rows=2000, labeled=200, seed=0, **settings):
    """Return the input of the tests for three normal classes, a rest and a new class of this share, and the labels."""
    shares = {name: (1 - share) * value for name, value in TARGET.items()}
    s = ps.simulate.gaussian_classes(
        {**SOURCE, "new": 0.0}, {**shares, "new": share}, n_class=labeled, n_source=rows, n_target=rows,
        random_state=seed,
    )  # fmt: skip
    X = np.concatenate([*(s.classes[name] for name in SOURCE), s.unlabeled])
    y = np.repeat([*SOURCE, ""], [labeled] * 3 + [rows])
    shift = ps.MulticlassShift(SOURCE, random_state=seed, **settings)
    source = ClassSource.from_labels(X, y, scenario="case-control", standardize=True, rest=True)
    target = shift.fit_classes(source).read_target(s.target + drift * np.eye(10)[3])
    return ClassTestInput.build(shift, source, target), s.target_labels


def random_samples(rng, counts=(12, 15, 20)):
    """Return values of a feature and of two functions h in three samples, and in a target that is their mixture."""
    samples, start = [], 0
    for count in counts:
        mass = rng.dirichlet(np.ones(count))
        h = rng.normal(size=(count, 3)) + rng.normal(size=3)
        samples.append(SampleValues(h, mass, np.arange(start, start + count), float(count)))
        start += count
    b = np.array([0.7, -0.4, 0.7])
    h = np.concatenate([sample.h for sample in samples])
    mass = np.concatenate([share * sample.mass for share, sample in zip(b, samples, strict=True)])
    target = SampleValues(h, mass, np.arange(start, start + len(h)), float(len(h)))
    return [*samples, target], b


def residual_of(masses, samples):
    """Return E_T φ − Σ b̂_s E_s φ with b̂ from h, for these masses, by a direct solution."""
    means = np.stack([mass @ sample.h / mass.sum() for mass, sample in zip(masses, samples, strict=True)])
    phi, h = means[:, 0], means[:, 1:]
    b = np.linalg.solve((h[:-2] - h[-2]).T, h[-1] - h[-2])
    return phi[-1] - np.append(b, 1 - b.sum()) @ phi[:-1]


def test_an_exact_mixture_has_no_residual_for_any_function():
    samples, b = random_samples(np.random.default_rng(0))
    means = np.stack([sample.mass @ sample.h for sample in samples])
    residual = _Residual.fit(means, 2)
    np.testing.assert_allclose(residual.coefficients, [*-b, 1], atol=1e-12)
    projected = residual.project(means)
    np.testing.assert_allclose(projected, projected[0, 0], atol=1e-12)  # φ⊥ has one mean in all samples


def test_the_contributions_of_observations_are_the_derivatives_of_the_residual():
    """The residual is computed again, with its mixture, after a small change of the mass of one observation."""
    rng = np.random.default_rng(1)
    samples, _ = random_samples(rng)
    h = samples[-1].h + rng.normal(size=samples[-1].h.shape)  # no exact mixture
    mass = rng.dirichlet(np.ones(len(h)))
    samples[-1] = SampleValues(h, mass, samples[-1].observation, float(len(h)))
    means = np.stack([sample.mass @ sample.h for sample in samples])
    residual = _Residual.fit(means, 2)
    masses = [sample.mass for sample in samples]
    assert residual.coefficients @ residual.project(means)[:, 0] == pytest.approx(residual_of(masses, samples))
    for s, sample in enumerate(samples):
        bessel = np.sqrt(sample.size / (sample.size - 1))
        contributions = residual.coefficients[s] * residual.project(sample.influence()[1])[:, 0] / bessel
        step = 1e-6
        for i in (0, 5):
            ends = []
            for sign in (1, -1):
                changed = [mass.copy() for mass in masses]
                changed[s][i] *= 1 + sign * step
                ends.append(residual_of(changed, samples))
            assert contributions[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-9)


def test_repeated_rows_of_one_observation_change_nothing():
    samples, _ = random_samples(np.random.default_rng(2), (40, 40, 40))
    samples[-1] = SampleValues(samples[0].h + 0.1, samples[0].mass, samples[-1].observation[:40], 40.0)
    functions = [np.clip(sample.h[:, 0], 0, 1) for sample in samples]
    values = [SampleValues(s.h[:, 1:], s.mass, s.observation, s.size) for s in samples]
    twice = [
        SampleValues(np.repeat(s.h, 2, axis=0), np.repeat(s.mass / 2, 2), np.repeat(s.observation, 2), s.size)
        for s in values
    ]
    masks = [np.arange(len(s.mass)) % 2 == 0 for s in values]
    once = _test_excess(functions, values, masks)
    repeated = _test_excess([np.repeat(f, 2) for f in functions], twice, [np.repeat(mask, 2) for mask in masks])
    np.testing.assert_allclose(repeated, once, rtol=1e-9)


def test_the_excess_includes_the_error_of_one_more_row_in_each_sample():
    """The same samples with a large stated size, in which one row does not count, have an error without it."""
    samples, b = random_samples(np.random.default_rng(4), (30, 30, 40))
    masks = [np.ones(len(sample.mass), dtype=bool) for sample in samples]
    functions = [np.zeros(len(sample.mass)) for sample in samples]
    functions[-1][::5] = 1.0
    large = [SampleValues(s.h, s.mass, s.observation, 1e9) for s in samples]
    error, without = (_test_excess(functions, values, masks).error for values in (samples, large))
    one_row = np.sum((np.append(b, 1) / [30, 30, 40, 100]) ** 2)  # relative to the largest value of the function
    assert one_row <= error**2 - without**2 <= 1.2 * one_row  # and Bessel's correction


def test_a_split_keeps_observations_together_and_halves_every_sample():
    rng = np.random.default_rng(3)
    first = SampleValues(np.zeros((30, 1)), np.full(30, 1 / 30), np.arange(30) // 3, 10.0)
    second = SampleValues(np.zeros((41, 1)), np.full(41, 1 / 41), np.arange(5, 46), 41.0)
    masks = _halve([first, second], rng)
    assert masks[0].sum() == 15 and (masks[0].reshape(10, 3).std(axis=1) == 0).all()
    assert (masks[1][:5] == masks[0][15::3]).all()  # observations 5 to 9 are in both samples


@pytest.fixture(scope="module")
def with_new_class():
    return make_inputs(share=0.1)


def test_a_new_class_is_detected_and_said_in_words(with_new_class):
    inputs, labels = with_new_class
    test = new_class_test(inputs)
    assert test.is_detected and test.p_value < 0.01 and 0.01 < test.least_share < 0.1
    assert (labels[list(test.rows)] == "new").mean() > 0.7
    assert "none of the labelled classes nor like the source's rest" in test.text and "at least" in test.text
    assert class_label_shift_test(inputs).p_value < 0.01


def test_without_a_new_class_none_is_detected():
    inputs, _ = make_inputs()
    test, label_shift = new_class_test(inputs), class_label_shift_test(inputs)
    assert test.p_value > 0.05 and test.least_share == 0 and test.rows == ()
    assert "no evidence" in test.text
    assert label_shift.p_value > 0.05 and "not contradicted" in label_shift.text


def test_a_drift_of_all_rows_contradicts_label_shift():
    inputs, _ = make_inputs(drift=0.5, rows=1000)
    test = class_label_shift_test(inputs)
    assert test.p_value < 0.01 and "does not hold" in test.text and test.resamples > 999


def test_the_kernel_method_has_the_same_tests():
    null, _ = make_inputs(rows=500, method="tcpu")
    new, _ = make_inputs(rows=1000, share=0.15, method="tcpu")
    assert new_class_test(null).p_value > 0.05 and class_label_shift_test(null).p_value > 0.05
    assert new_class_test(new).is_detected


def test_the_tests_are_the_same_each_time(with_new_class):
    inputs, _ = with_new_class
    assert new_class_test(inputs) == new_class_test(inputs)
    assert class_label_shift_test(inputs) == class_label_shift_test(inputs)


@pytest.mark.filterwarnings("ignore::priorshift.errors.FewPositivesWarning")
def test_few_observations_are_not_tested():
    inputs, _ = make_inputs(rows=300, labeled=6)
    for test in (new_class_test(inputs), class_label_shift_test(inputs)):
        assert np.isnan(test.p_value) and "observations" in test.reason and "cannot be tested" in test.text
    assert not new_class_test(inputs).is_detected


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "labeled"), [(500, 50), (500, 200)])
def test_the_level_is_right(rows, labeled):
    """With level 5% and 100 draws, more than 11 rejections have probability 0.4%."""
    rejected = np.zeros(2)
    for seed in range(100):
        inputs, _ = make_inputs(rows=rows, labeled=labeled, seed=1000 + seed)
        label_shift = class_label_shift_test(inputs, resamples=199, retest_resamples=0)
        rejected += [new_class_test(inputs).p_value <= 0.05, label_shift.p_value <= 0.05]
    assert (rejected <= 11).all(), rejected
