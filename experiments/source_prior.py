"""How far is KM off on real data? 63 source draws: 7 UCI sets, three priors, three seeds.

    PRIORSHIFT_DATA=folder python experiments/source_prior.py [--output experiments/results/source_prior.csv]

The folder holds the UCI sets as .npz files with keys X, y and sel30 (the paper's 30 features). As in the paper's
experiments, the whole set is standardised, one half is the source, thinned to its prior and labelled by the sampling
scheme with c = 0.5.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import priorshift as ps

SETS = ("Diabetes", "Spambase", "Segment", "Waveform-5000", "Yeast", "Vehicle", "Banknote-authentication")
PRIORS = (0.1, 0.2, 0.5)
SEEDS = (0, 1, 2)
MOST = 2000  # source rows, as in the paper


def draw(folder: Path, name: str, prior: float, seed: int) -> ps.simulate.LabeledSource:
    data = np.load(folder / f"{name}.npz", allow_pickle=False)
    X, y = data["X"][:, data["sel30"]], data["y"]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    rng = np.random.default_rng([seed, round(100 * prior)])
    half = rng.permutation(len(X))[: len(X) // 2]
    kept = half[ps.simulate.downsample(y[half], prior, random_state=rng)][:]
    kept = rng.permutation(kept)[:MOST]
    return ps.simulate.label_some(X[kept], y[kept], prior, 0.5, random_state=rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "source_prior.csv")
    args = parser.parse_args()
    folder = Path(os.environ.get("PRIORSHIFT_DATA", "."))
    if not (folder / f"{SETS[0]}.npz").exists():
        sys.exit(f"{folder} has no {SETS[0]}.npz; set PRIORSHIFT_DATA to the folder of the paper's data sets.")
    warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
    lines = []
    for name in SETS:
        for prior in PRIORS:
            for seed in SEEDS:
                source = draw(folder, name, prior, seed)
                X = np.concatenate([source.positive, source.unlabeled])
                y = np.repeat([1, 0], [len(source.positive), len(source.unlabeled)])
                start = time.perf_counter()
                km2 = ps.KM2().fit(X, y)
                taken = time.perf_counter() - start
                line = {"dataset": name, "source_prior": prior, "seed": seed, "rows": len(X), "positives": int(y.sum())}
                line |= {"KM1": f"{ps.KM1().fit(X, y).prior_:.4f}", "KM2": f"{km2.prior_:.4f}"}
                line |= {"KM2_standard_error": f"{km2.standard_error_:.4f}", "converged": km2.converged_}
                lines.append(line | {"KM2_seconds": f"{taken:.3f}"})
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    for rule in ("KM1", "KM2"):
        error = [abs(float(line[rule]) - line["source_prior"]) for line in lines]
        print(f"{rule}: mean absolute error {np.mean(error):.4f} over {len(lines)} draws")


if __name__ == "__main__":
    main()
