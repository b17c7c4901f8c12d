"""Advice on several targets follows their adjusted p-values, as their verdicts do."""

import priorshift as ps
from priorshift.diagnosis.verdict import judge, next_steps


def test_advice_against_label_shift_follows_the_adjusted_p_value():
    s = ps.simulate.gaussian(0.3, 0.5, n_source=400, n_target=400, dimension=3, shared=False, random_state=0)
    drifted = s.target.copy()
    drifted[:, 0] += 0.8
    found = ps.diagnose(s.positive, s.unlabeled, drifted, source_prior=0.3, random_state=0)
    assert found.verdict.doubts_label_shift and any(step.startswith("Check ") for step in found.next_steps)
    adjusted = judge(found, [], p_value=0.2, targets=12)
    assert not adjusted.doubts_label_shift
    clearly_moved = found.label_shift_test.clearly_moved_columns
    assert any(step.startswith("Check ") for step in next_steps(adjusted, found)) == bool(clearly_moved)
