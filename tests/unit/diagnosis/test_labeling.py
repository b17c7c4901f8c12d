"""What labelling that is not at random changes: bounds by closed forms, linear programs and known populations."""

import numpy as np
import pytest
from scipy.optimize import linprog

import priorshift as ps
from priorshift.diagnosis.labeling import _Reweighted


def _by_linear_program(h, mass, factor, sign):
    """max sign·Σ m v h, with Σ m v = 1 and c ≤ v ≤ Γc; the variables are v and c."""
    n = len(h)
    objective = np.append(-sign * mass * h, 0.0)
    above = np.hstack([-np.eye(n), np.ones((n, 1))])  # c − v ≤ 0
    below = np.hstack([np.eye(n), np.full((n, 1), -factor)])  # v − Γc ≤ 0
    found = linprog(
        objective, A_ub=np.vstack([above, below]), b_ub=np.zeros(2 * n), A_eq=[np.append(mass, 0.0)], b_eq=[1.0]
    )
    return -sign * found.fun


@pytest.mark.parametrize("factor", [1.0, 1.3, 2.0, 7.0])
def test_bounds_of_a_mean_are_those_of_a_linear_program(factor):
    rng = np.random.default_rng(0)
    h, mass = rng.normal(size=25), rng.dirichlet(np.ones(25))
    positives = _Reweighted(h, mass)
    low, high = positives.mean_range(factor)
    centred = h - h @ mass
    assert low == pytest.approx(_by_linear_program(centred, mass, factor, -1), abs=1e-9)
    assert high == pytest.approx(_by_linear_program(centred, mass, factor, 1), abs=1e-9)


def test_the_factor_of_a_mean_inverts_the_bounds():
    rng = np.random.default_rng(1)
    positives = _Reweighted(rng.normal(size=200), np.full(200, 1 / 200))
    for end, factor in ((0, 1.7), (1, 3.0)):
        assert positives.odds_factor(positives.mean_range(factor)[end]) == pytest.approx(factor, rel=1e-6)
    assert positives.odds_factor(100.0) is None and positives.odds_factor(0.0) == 1.0


def _biased_problem(factor, rng, audited=0):
    """Positives with x > 0.8 are labelled with `factor` times the odds of others; true priors 0.3 and 0.6."""

    def draw(positive):
        return rng.normal(size=(len(positive), 2)) + 1.6 * positive[:, None] * np.array([1.0, 0.0])

    pool = draw(np.ones(40_000, dtype=bool))
    probability = np.where(pool[:, 0] > 1.6, factor, 1.0)
    P = pool[rng.random(len(pool)) < 0.04 * probability / probability.max()]
    U_classes = rng.random(6000) < 0.3
    U, T = draw(U_classes), draw(rng.random(6000) < 0.6)
    audit = None
    if audited:
        audit = {"unlabeled": np.where(np.arange(6000) < audited, U_classes.astype(float), np.nan)}
    return dict(positive=P, unlabeled=U, target=T, audit=audit)


@pytest.mark.slow
def test_the_bounds_contain_the_truth_if_labelling_is_biased_by_the_factor():
    problem = _biased_problem(3.0, np.random.default_rng(0))
    diagnosis = ps.diagnose(**problem, source_prior=0.3, random_state=0)
    truth, labeling = 0.4 / 0.7, diagnosis.sensitivity.labeling
    assert abs(diagnosis.identification.ratio - truth) > 0.04  # the estimate itself is wrong
    by_factor = {bound.odds_factor: bound for bound in labeling.bounds}
    bound = by_factor[3.0]
    assert bound.ratio_low <= truth <= bound.ratio_high and bound.value_low <= 0.6 <= bound.value_high
    assert bound.low <= bound.value_low <= bound.value_high <= bound.high
    widths = [bound.value_high - bound.value_low for bound in labeling.bounds]
    assert widths == sorted(widths)
    assert "twice the odds" in diagnosis.sensitivity.text


@pytest.mark.slow
def test_factors_at_which_a_conclusion_changes():
    problem = _biased_problem(1.0, np.random.default_rng(1))
    labeling = ps.diagnose(**problem, source_prior=0.3, threshold=0.5, random_state=0).sensitivity.labeling
    assert 1 < labeling.to_doubt < labeling.to_turn
    for bound in labeling.bounds:
        assert (bound.value_low < 0.5) == (bound.odds_factor > labeling.to_turn)
    # whether the prior rose does not depend on which positives were labelled
    without = ps.diagnose(**problem, source_prior=0.3, random_state=0).sensitivity.labeling
    assert without.to_turn is None and without.to_doubt is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The audit of 900:priorshift.errors.InconsistentInputWarning")
@pytest.mark.parametrize(("factor", "atypical"), [(1.0, False), (6.0, True)])
def test_audited_positives_show_whether_the_labelled_ones_are_typical(factor, atypical):
    problem = _biased_problem(factor, np.random.default_rng(2), audited=900)
    diagnosis = ps.diagnose(**problem, random_state=0)
    labeling = diagnosis.sensitivity.labeling
    assert labeling.audited.count == int(np.nansum(problem["audit"]["unlabeled"]))
    assert labeling.is_atypical == atypical
    assert (f"{labeling.audited.count} audited positives differ" in diagnosis.sensitivity.text) == atypical
    if atypical:  # with the audited positives R is nearer to the truth
        truth = 0.4 / 0.7
        assert abs(labeling.audited.ratio - truth) < abs(diagnosis.identification.ratio - truth)
        assert any("not a random sample" in reason for reason in diagnosis.verdict.reasons)
