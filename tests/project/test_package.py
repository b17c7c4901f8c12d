import dataclasses
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import priorshift as ps


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_all_public_names_together_load_no_optional_library():
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import priorshift as ps; [getattr(ps, n) for n in ps.__all__];"
        "heavy = {'matplotlib', 'torch', 'pandas', 'polars', 'pyarrow', 'dask', 'IPython'};"
        "print(heavy & (set(sys.modules) - before))"
    )
    assert run(code) == "set()\n"


def test_lazy_names_are_listed_and_known_to_type_checkers():
    assert set(ps.__all__) <= set(dir(ps))
    source = Path(ps.__file__).read_text(encoding="utf-8")
    lines = re.findall(r"^    from (priorshift[\w.]*) import (\w+) as \2$", source, re.M)
    typed = {name: module for module, name in lines}
    assert set(typed) == set(ps.__all__)
    for name, module in typed.items():
        assert getattr(import_module(module), name, None) is getattr(ps, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ps.nothing  # noqa: B018


def test_import_touches_no_random_state_and_sets_no_variables():
    code = (
        "import os, numpy as np; a = np.random.get_state()[1].copy(); e = dict(os.environ); import priorshift;"
        "print((a == np.random.get_state()[1]).all() and e == dict(os.environ))"
    )
    assert run(code).strip() == "True"


ESTIMATORS = [
    "KernelRatio",
    "MulticlassShift",
    "TCPU",
    "KM1",
    "KM2",
    "KM2LS",
    "DRPU",
    "Monitor",
    "NNPUClassifier",
    "ShiftedClassifier",
    "TableEncoder",
    "MixturePrior",
    "WitnessShift",
]
RESULTS = ["PriorEstimate", "NegativeRatio", "Interval", "estimate_prior", "required_sample_size"]
RESULTS += ["PriorEstimates", "ClassPriors", "ClassPriorsByTarget", "TableEncoder", "estimate_priors"]
RESULTS += ["MonitorPoint", "Alarm"]
RESULTS += ["Diagnosis", "Diagnoses", "diagnose", "diagnose_targets", "ClassDiagnosis"]
MODULES = [
    "adapt", "audit", "datasets", "distributed", "errors", "experimental", "kernels", "plots", "simulate", "sketch",
    "storage",
]  # fmt: skip


def test_public_names_are_those_of_the_design():
    """A name that is added or taken away changes a line here."""
    assert set(ps.__all__) == {*ESTIMATORS, *RESULTS, *MODULES}
    assert len(ps.__all__) == len(set(ps.__all__))
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    for name in ESTIMATORS:
        assert isinstance(getattr(ps, name), type) and hasattr(getattr(ps, name), "fit")
    for name in MODULES:
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
