"""Level and power of the test of label shift, of whichever library is on the path: two of its tests on the same draws.

    python -m experiments.label_shift_levels --test landmarks --repetitions 68 >> experiments/results/seeds_level.jsonl

The draws are made as those of the studies `type_one` and `power`. Lines with "random features" were made with the
library as it was at commit f983483; `repetitions` differ between cells, since time ran out.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict

import numpy as np

import priorshift as ps
from experiments.diagnosed import Fitted, p_values, rejected
from experiments.draws import by_chance, gaussian, halves, load
from experiments.study import Line

_SYNTHETIC = "Synthetic"

# data, rows, π, and every π′; then rows, π, and every (π′, g)
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
    rng = np.random.default_rng((2032, rows, False, round(1000 * prior), seed))
    if dataset == _SYNTHETIC:
        s = ps.simulate.gaussian(prior, 0.5, rows, 2, shared=False, random_state=rng)
        fitted = Fitted.of(s.X, s.y, s.ids, seed)
    else:
        data = load(dataset)
        first, second = halves(len(data.X), rng)
        P, rest = np.split(first[data.y[first]], [int(data.y[first].sum()) // 3])
        U = by_chance(rest, first[~data.y[first]], prior, rows, rng)
        ids = np.concatenate([P, U])
        fitted = Fitted.of(data.X[ids], np.repeat([1, 0], [len(P), len(U)]), ids, seed)
    found = {}
    for target in targets:
        if dataset == _SYNTHETIC:
            T = gaussian(rows, target, rng)
        else:
            T = data.X[by_chance(second[data.y[second]], second[~data.y[second]], target, rows, rng)]
        found[dataset, rows, False, prior, target, 0] = p_values(*fitted.tests(T, seed))
    return found


def _power(rows: int, prior: float, cases: tuple[tuple[float, float], ...], seed: int) -> dict[tuple, Line]:
    rng = np.random.default_rng((2033, rows, round(1000 * prior), seed))
    s = ps.simulate.gaussian(prior, 0.5, rows, 2, random_state=rng)
    fitted, found = Fitted.of(s.X, s.y, s.ids, seed), {}
    for target, g in cases:
        labels = rng.random(rows) < target
        T = rng.normal(size=(rows, 10)) + (1 + g) * labels[:, None]
        found[_SYNTHETIC, rows, True, prior, target, g] = p_values(*fitted.tests(T, seed))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", required=True, help="the name that its lines have")
    parser.add_argument("--repetitions", type=int, default=100)
    args = parser.parse_args()
    found = defaultdict(list)
    for seed in range(args.repetitions):
        for made in (*(_level(*cell, seed) for cell in _LEVEL), *(_power(*cell, seed) for cell in _POWER)):
            for cell, p in made.items():
                found[cell].append(p)
    names = ("dataset", "rows", "shared_rows", "source_prior", "target_prior", "violation")
    for cell, p in found.items():
        line = {"experiment": "seeds_level", "test": args.test} | dict(zip(names, cell, strict=True))
        shares = {name: share for name, share in rejected(p).items() if name != "shift"}
        print(json.dumps(line | {"repetitions": len(p)} | shares, separators=(",", ":")))


if __name__ == "__main__":
    main()
