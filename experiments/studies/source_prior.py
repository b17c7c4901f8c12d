"""Measure the error of KM1 and KM2 on real data: 63 source draws of 7 UCI sets, three priors and three seeds.

As in the paper's experiments, the whole set is standardised; one half is the source, subsampled to its prior and
labelled by the sampling scheme with c = 0.5.
"""

from __future__ import annotations

import os
import time
from itertools import product
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments.grids import PRIORS
from experiments.sampling import split_halves, stack_samples, standardize
from experiments.study import Line, Trial
from priorshift.errors import InputError

_SETS = ("Diabetes", "Spambase", "Segment", "Waveform-5000", "Yeast", "Vehicle", "Banknote-authentication")
_MOST = 2000  # source rows, as in the paper


def _draw(name: str, prior: float, seed: int) -> ps.simulate.LabeledSource:
    """Draw from NAME.npz with the arrays X, y and sel30, the 30 features that the paper's authors used."""
    path = Path(os.environ.get("PRIORSHIFT_DATA", ".")) / f"{name}.npz"
    if not path.exists():
        raise InputError(f"{path} does not exist. Set PRIORSHIFT_DATA to the folder of the paper's data sets.")
    with np.load(path, allow_pickle=False) as data:
        X, y = data["X"][:, data["sel30"]], data["y"]
    X = standardize(X)
    rng = np.random.default_rng([seed, round(100 * prior)])
    half, _ = split_halves(len(X), rng)
    source = half[ps.simulate.downsample(y[half], prior, random_state=rng)]
    source = rng.permutation(source)[:_MOST]
    return ps.simulate.label_some(X[source], y[source], prior, 0.5, random_state=rng)


def measure(dataset: str, source_prior: float, seed: int) -> list[Line]:
    """Return the lines of one unit."""
    X, y, _ = stack_samples(_draw(dataset, source_prior, seed))
    start = time.perf_counter()
    km2 = ps.KM2(standardize=False).fit(X, y)
    seconds = time.perf_counter() - start
    line = {"rows": len(X), "positives": int(y.sum())}
    line |= {"KM1": round(float(ps.KM1(standardize=False).fit(X, y).prior_), 4), "KM2": round(float(km2.prior_), 4)}
    line |= {"KM2_standard_error": round(float(km2.standard_error_), 4), "converged": bool(km2.converged_)}
    return [line | {"KM2_seconds": round(seconds, 3)}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    errors = {rule: np.mean([abs(line[rule] - line["source_prior"]) for line in lines]) for rule in ("KM1", "KM2")}
    text = "; ".join(f"{rule}: mean absolute error {error:.4f}" for rule, error in errors.items())
    return {"source_prior": f"{text}, over {len(lines)} draws."}


_GRID = tuple({"dataset": d, "source_prior": pi, "seed": seed} for d, pi, seed in product(_SETS, PRIORS, range(3)))
_UNIT = ("dataset", "source_prior", "seed")
TRIAL = Trial("source_prior", "Error of KM1 and KM2 on real draws", _GRID, _UNIT, measure, texts)
