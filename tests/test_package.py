import subprocess
import sys

import numpy as np

import priorshift as ps


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_light():
    """No plotting, data-frame library or torch beyond what scikit-learn itself imports, and little more time."""
    code = (
        "import sys, time, sklearn.base; before = set(sys.modules); t = time.perf_counter(); import priorshift;"
        "heavy = {'matplotlib', 'torch', 'pandas', 'polars', 'pyarrow', 'dask', 'IPython'};"
        "print(time.perf_counter() - t, heavy & (set(sys.modules) - before))"
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


def test_public_names_are_there():
    for name in ps.__all__:
        assert getattr(ps, name) is not None


def test_a_result_is_plain_json():
    import json

    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    estimate = ps.TCPU(np.float64(0.2)).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert plain["value"] == estimate.value
    assert plain["interval"]["method"] == "delta"
    assert plain["sizes"] == [17, 83, 100]
