from importlib.util import find_spec

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import priorshift as ps

# as by default, but for the time that training and cross-fitting take
QUICK = dict(max_epochs=3, hidden=(10,), random_state=0)
SCORES = dict(repeats=2, folds=2, random_state=0)
TRAINED = (
    [
        ps.DRPU(**QUICK),
        ps.NNPUClassifier(**QUICK, folds=2),
        ps.ShiftedClassifier(ps.NNPUClassifier(max_epochs=3, hidden=(10,), folds=2), ps.WitnessShift(**SCORES)),
    ]
    if find_spec("torch")
    else []
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # array API input, off by default
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")  # the checks' data are noise
@parametrize_with_checks(
    [
        ps.TCPU(),
        ps.TCPU(0.3, standardize=True),
        ps.TCPU(0.3, scenario="censoring"),
        ps.KM1(),
        ps.KM2(),
        ps.KM2(scenario="censoring", standardize=True),
        ps.KM2LS(),
        ps.DRPU(model=LogisticRegression(), random_state=0),
        ps.MixturePrior(**SCORES),
        ps.WitnessShift(**SCORES),
        ps.ShiftedClassifier(LogisticRegression(), random_state=0),
        *TRAINED,
    ]
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)
