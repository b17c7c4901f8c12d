import dataclasses
import json
import subprocess
import sys

import numpy as np

import priorshift as ps


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_light():
    """No plotting, data-frame library or torch beyond what scikit-learn itself imports, and little more time."""
    code = (
        "import sys, time, sklearn.base; before = set(sys.modules); t = time.process_time(); import priorshift;"
        "heavy = {'matplotlib', 'torch', 'pandas', 'polars', 'pyarrow', 'dask', 'IPython'};"
        "print(time.process_time() - t, heavy & (set(sys.modules) - before))"
    )
    runs = [run(code).split(maxsplit=1) for _ in range(3)]
    assert runs[0][1].strip() == "set()"
    assert min(float(seconds) for seconds, _ in runs) < 0.5


def test_import_touches_no_random_state_and_sets_no_variables():
    code = (
        "import os, numpy as np; a = np.random.get_state()[1].copy(); e = dict(os.environ); import priorshift;"
        "print((a == np.random.get_state()[1]).all() and e == dict(os.environ))"
    )
    assert run(code).strip() == "True"


ESTIMATORS = [
    "KernelRatio",
    "TCPU",
    "KM1",
    "KM2",
    "KM2LS",
    "DRPU",
    "NNPUClassifier",
    "ShiftedClassifier",
    "TableEncoder",
    "MixturePrior",
    "WitnessShift",
]
RESULTS = ["PriorEstimate", "NegativeRatio", "Interval", "estimate_prior", "required_sample_size"]
RESULTS += ["PriorEstimates", "TableEncoder", "estimate_priors"]
RESULTS += ["Diagnosis", "Diagnoses", "diagnose", "diagnose_targets"]
ROOMS = ["adapt", "audit", "datasets", "errors", "intervals", "kernels", "methods", "plots", "simulate", "storage"]
ROOMS += ["distributed", "sketch"]


def test_public_names_are_those_of_the_design():
    """Names are added, with a line here, and never taken away."""
    assert set(ps.__all__) == {*ESTIMATORS, *RESULTS, *ROOMS}
    assert len(ps.__all__) == len(set(ps.__all__))
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    for name in ESTIMATORS:
        assert isinstance(getattr(ps, name), type) and hasattr(getattr(ps, name), "fit")
    for name in ROOMS:
        assert getattr(ps, name).__name__ == f"priorshift.{name}"
    for name in ("shifted_threshold", "shifted_posterior"):
        assert callable(getattr(ps.adapt, name))


def test_status_and_who_knew_the_prior_are_fields_of_an_estimate():
    s = ps.simulate.gaussian(0.2, 0.6, 200, 100, shared=False, random_state=0)
    names = [field.name for field in dataclasses.fields(ps.PriorEstimate)]
    assert {"status", "source_prior_by", "evidence"} < set(names)
    shift = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(s.X, s.y).estimate(s.target)
    told = shift.to_dict()
    assert set(told) == set(names) - {"evidence"} and shift.evidence is not None
    assert (told["status"], told["source_prior_by"]) == ("ok", "given") == (shift.status, shift.source_prior_by)
    assert not {"status", "source_prior_by"} & set(told["details"])
    tcpu = ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target)
    assert (tcpu.status, tcpu.source_prior_by) == (None, "given")
    assert tcpu.to_dict()["status"] is None
    json.dumps([told, tcpu.to_dict()], allow_nan=False)
    assert shift == dataclasses.replace(shift, evidence=None)  # what a picture needs is no part of the answer
    assert "evidence" not in repr(shift)
    again = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(s.X, s.y).estimate(s.target)
    assert np.isnan(shift.separation) and again == shift != tcpu and shift != told


def test_a_result_is_plain_json():
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    estimate = ps.TCPU(np.float64(0.2)).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert plain["value"] == estimate.value
    assert plain["interval"]["method"] == "delta"
    assert plain["sizes"] == [17, 83, 100]
