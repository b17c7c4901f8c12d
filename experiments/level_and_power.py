"""Measure level and power of the label shift test of the installed library, to compare two versions on the same draws.

    python -m experiments.level_and_power --test landmarks --repetitions 68 >> experiments/results/seeds_level.jsonl

The draws are those of the studies `type_one` and `power`. Lines with the test "random features" come from the library
at commit f983483. `repetitions` differ between cells because the computing time was limited.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict

import numpy as np

import priorshift as ps
from experiments.diagnosis_tests import FittedDiagnosis, p_values, rejection_rates
from experiments.sampling import binomial_sample, gaussian_sample, load_dataset, split_halves
from experiments.study import Line

_SYNTHETIC = "Synthetic"

# _LEVEL: data, rows, π, and every π′. _POWER: rows, π, and every (π′, g).
_LEVEL = (
    (_SYNTHETIC, 200, 0.05, (0.05, 0.5)),
    (_SYNTHETIC, 200, 0.2, (0.2, 0.95)),
    (_SYNTHETIC, 200, 0.5, (0.5, 0.95)),
    (_SYNTHETIC, 200, 0.8, (0.8, 0.5)),
    (_SYNTHETIC, 200, 0.9, (0.9, 0.5)),
    (_SYNTHETIC, 2000, 0.05, (0.05,)),
    (_SYNTHETIC, 2000, 0.2, (0.2, 0.6)),
    (_SYNTHETIC, 2000, 0.9, (0.9,)),
    ("Spambase", 1000, 0.5, (0.5, 0.8)),
    ("Yeast", 1000, 0.5, (0.5, 0.8)),
)
_POWER = ((200, 0.2, ((0.2, 0.2), (0.2, 0.5), (0.5, 0.2), (0.5, 0.5))), (2000, 0.5, ((0.2, 0.2), (0.2, 0.5))))


def _level(dataset: str, rows: int, prior: float, targets: tuple[float, ...], seed: int) -> dict[tuple, Line]:
    """Return the p-values of targets under label shift, by cell."""
    rng = np.random.default_rng((2032, rows, False, round(1000 * prior), seed))
    if dataset == _SYNTHETIC:
        s = ps.simulate.gaussian(prior, 0.5, rows, 2, shared=False, random_state=rng)
        fitted = FittedDiagnosis.fit(s.X, s.y, s.ids, seed)
    else:
        data = load_dataset(dataset)
        first, second = split_halves(len(data.X), rng)
        P, rest = np.split(first[data.y[first]], [int(data.y[first].sum()) // 3])
        U = binomial_sample(rest, first[~data.y[first]], prior, rows, rng)
        ids = np.concatenate([P, U])
        fitted = FittedDiagnosis.fit(data.X[ids], np.repeat([1, 0], [len(P), len(U)]), ids, seed)
    found = {}
    for target in targets:
        if dataset == _SYNTHETIC:
            T = gaussian_sample(rows, target, rng)
        else:
            T = data.X[binomial_sample(second[data.y[second]], second[~data.y[second]], target, rows, rng)]
        found[dataset, rows, False, prior, target, 0] = p_values(*fitted.tests(T, seed))
    return found


def _power(rows: int, prior: float, cases: tuple[tuple[float, float], ...], seed: int) -> dict[tuple, Line]:
    """Return the p-values of targets whose positives moved by g, by cell."""
    rng = np.random.default_rng((2033, rows, round(1000 * prior), seed))
    s = ps.simulate.gaussian(prior, 0.5, rows, 2, random_state=rng)
    fitted, found = FittedDiagnosis.fit(s.X, s.y, s.ids, seed), {}
    for target, g in cases:
        labels = rng.random(rows) < target
        T = rng.normal(size=(rows, 10)) + (1 + g) * labels[:, None]
        found[_SYNTHETIC, rows, True, prior, target, g] = p_values(*fitted.tests(T, seed))
    return found


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", required=True, help="name of the test in the lines")
    parser.add_argument("--repetitions", type=int, default=100)
    args = parser.parse_args()
    found = defaultdict(list)
    for seed in range(args.repetitions):
        for tested in (*(_level(*cell, seed) for cell in _LEVEL), *(_power(*cell, seed) for cell in _POWER)):
            for cell, p in tested.items():
                found[cell].append(p)
    names = ("dataset", "rows", "shared_rows", "source_prior", "target_prior", "violation")
    for cell, p in found.items():
        line = {"experiment": "seeds_level", "test": args.test} | dict(zip(names, cell, strict=True))
        shares = {name: share for name, share in rejection_rates(p).items() if name != "shift"}
        print(json.dumps(line | {"repetitions": len(p)} | shares, separators=(",", ":")))


if __name__ == "__main__":
    main()
