"""What pictures are drawn from, against direct computation."""

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.experimental import release
from priorshift.plots.samples import ScoresDisplay
from priorshift.scores.cross_fitting import scores_by_fold
from priorshift.scores.scored_source import ScoreCells
from priorshift.sketch import Histogram, ScoreModel


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 400, 300, shared=False, random_state=0)


def direct(edges, scores, mass=None):
    """Shares in cells; what lies beyond them counts in the outermost."""
    inside = np.clip(scores, edges[0] + 1e-9, edges[-1] - 1e-9)
    held = np.histogram(inside, edges, weights=mass)[0].astype(float)
    return held / held.sum()


def target_scores(witness, rows):
    scored, target = witness.scored_, witness.read_target(rows)
    rng, prepared = np.random.default_rng(scored.seed), scored.prepare(target.rows[:])
    return [
        scores_by_fold(prepared, one.assign_folds(target.source_observation, rng), one.models)
        for one in scored.repetitions
    ]


@pytest.mark.parametrize("model", [None, LogisticRegression()])
def test_shares_of_the_score_are_those_of_its_rows(sample, model):
    witness = ps.WitnessShift(0.2, model=model, repeats=2, random_state=0).fit(sample.X, sample.y)
    seen, scored = witness.estimate(sample.target).evidence.scores, witness.scored_
    for name in ("positive", "population"):
        expected = np.mean([direct(seen.edges, getattr(one, name)) for one in scored.repetitions], axis=0)
        np.testing.assert_allclose(getattr(seen, name), expected, atol=1e-12)
    expected = np.mean([direct(seen.edges, scores) for scores in target_scores(witness, sample.target)], axis=0)
    np.testing.assert_allclose(seen.target, expected, atol=1e-12)


def test_shares_follow_the_weights(sample):
    rng = np.random.default_rng(0)
    weights, of_target = rng.uniform(0.1, 3, len(sample.y)), rng.uniform(0.1, 3, len(sample.target))
    witness = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(sample.X, sample.y, weights=weights)
    seen = witness.estimate(sample.target, weights=of_target).evidence.scores
    one, labelled = witness.scored_.repetitions[0], np.asarray(sample.y) == 1
    np.testing.assert_allclose(seen.positive, direct(seen.edges, one.positive, weights[labelled]), atol=1e-12)
    np.testing.assert_allclose(seen.population, direct(seen.edges, one.population, weights[~labelled]), atol=1e-12)
    scores = target_scores(witness, sample.target)[0]
    np.testing.assert_allclose(seen.target, direct(seen.edges, scores, of_target), atol=1e-12)
    assert np.abs(seen.target - direct(seen.edges, scores)).max() > 1e-3


def test_the_mixture_is_that_of_the_estimator(sample):
    witness = ps.WitnessShift(0.2, repeats=2, random_state=0).fit(sample.X, sample.y)
    seen = witness.estimate(sample.target).evidence
    np.testing.assert_array_equal(seen.source, witness.scored_.counts)
    for found, expected in zip((seen.priors, seen.weights), witness.scored_.mixture, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert seen.target.sum() == pytest.approx(2 * len(sample.target))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_a_far_row_does_not_squeeze_all_others_into_one_cell(scale):
    rng = np.random.default_rng(0)
    P, U = scale * rng.normal(1, 1, 500), scale * rng.normal(-1, 1, 2000)
    cells = ScoreCells.from_scores(np.append(P, 1e6 * scale), np.append(U, -1e9 * scale))
    assert cells.edges[0] > -6 * scale and cells.edges[-1] < 6 * scale
    shares = cells.shares(np.append(U, -1e9 * scale))
    assert shares.sum() == pytest.approx(1) and shares.max() < 0.2 and 15 <= cells.count <= 32


@pytest.mark.parametrize("value", [0.0, 0.3, -1e6])
def test_scores_that_are_all_alike_have_cells_too(value):
    cells = ScoreCells.from_scores(np.full(10, value), np.full(20, value))
    assert np.diff(cells.edges).min() > 0 and cells.edges[0] < value < cells.edges[-1]
    assert sorted(cells.shares(np.full(5, value)))[-1] == 1


def test_no_score_of_a_row_is_an_edge_and_nothing_is_as_long_as_a_sample(sample):
    witness = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(sample.X, sample.y)
    evidence = witness.estimate(sample.target).evidence
    one = witness.scored_.repetitions[0]
    assert not np.intersect1d(evidence.scores.edges, np.concatenate([one.positive, one.population])).size
    assert not {len(sample.target), *witness.scored_.sizes} & {len(v) for v in vars(evidence.scores).values()}
    assert len(pickle.dumps(evidence)) < 20_000


def test_rows_that_were_counted_are_drawn_by_their_ranks(sample):
    model = ScoreModel.fit(sample.positive, sample.unlabeled, random_state=0)
    counted = [Histogram.from_sample(rows, model) for rows in (sample.positive, sample.unlabeled, sample.target)]
    estimate = ps.estimate_prior(*counted, source_prior=0.2)
    display = ScoresDisplay.from_estimate(estimate)
    assert display.is_rank and "rank among the positives" in display.plot().ax_.get_xlabel()
    np.testing.assert_allclose(display.positive, 1 / 25)
    counts = counted[2].counted.counts.sum(axis=0).reshape(25, 8).sum(axis=1)
    np.testing.assert_allclose(display.target, counts / counts.sum())
    assert list(ps.plots.displays_of(estimate)) == ["scores", "mixture"]


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_noise_that_hides_rows_leaves_shares_that_can_be_drawn(sample):
    model = ScoreModel.fit(sample.positive, sample.unlabeled, random_state=0)
    counted = [Histogram.from_sample(rows, model) for rows in (sample.positive, sample.unlabeled, sample.target)]
    released = [release(one, epsilon=0.5, delta=1e-5, random_state=k) for k, one in enumerate(counted)]
    assert (released[2].counted.counts < 0).any()
    for display in ps.plots.displays_of(ps.estimate_prior(*released, source_prior=0.2)).values():
        assert (display.target >= 0).all() and display.plot().ax_ is not None


def test_many_scores_are_counted_in_little_memory():
    rng = np.random.default_rng(0)
    scores, mass = rng.normal(size=500_000), rng.random(500_000)
    cells = ScoreCells.from_scores(scores[:1000] + 1, scores)
    np.testing.assert_allclose(cells.shares(scores, mass), direct(cells.edges, scores, mass), atol=1e-9)
    tracemalloc.start()
    try:
        cells.shares(scores, mass)
        assert tracemalloc.get_traced_memory()[1] < scores.nbytes / 2
    finally:
        tracemalloc.stop()
