"""How good are the decisions? nnPU beside the best possible and a supervised classifier, adapted or not.

    PRIORSHIFT_DATA=folder python -m experiments.classifier [--output experiments/results/classifier.csv] [--seeds 5]

Source and target are those of the paper's experiments, c = 0.5, but for one thing: both are standardised by the
source, as a user must. For every (data set, π, seed): accuracy in the source population (a fresh sample of prior π)
of nnPU with the true prior and of logistic regression and boosting fitted to true labels of as many rows; then, for
every π′, target accuracy of nnPU without adapting, adapted to TCPU's estimate (true π), to the true prior, and by the
rule as the paper prints it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from experiments.draws import load
from experiments.grids import PRIORS, TARGETS
from priorshift import simulate
from priorshift.datasets import OPENML

SETS = ("Synthetic", *OPENML)


def problem(name: str, pi: float, seed: int) -> tuple[Any, ...]:
    """Source rows, their true classes, and what targets are drawn from."""
    rng = np.random.default_rng((seed, round(1000 * pi), SETS.index(name)))
    if name == "Synthetic":
        y = rng.random(2000) < pi
        X = rng.normal(size=(2000, 10)) + y[:, None]
        classes = rng.random(20_000) < 0.5
        pool = rng.normal(size=(20_000, 10)) + classes[:, None]
    else:
        data = load(name)
        order = rng.permutation(len(data.X))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        kept = first[simulate.downsample(data.y[first], pi, random_state=rng)]
        spread = data.X[kept].std(axis=0)
        Z = (data.X - data.X[kept].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        X, y, pool, classes = Z[kept], data.y[kept], Z[second], data.y[second]
    positives = int(y.sum())
    m, _ = simulate.sample_sizes(len(X), pi, 0.5)
    if m > positives:  # a synthetic pool may hold fewer than the scheme labels
        pi = positives / len(X)
    some = simulate.label_some(X, y, pi, 0.5, random_state=rng)
    return X, y, pool, classes, some, rng


def posterior(X: np.ndarray, prior: float) -> np.ndarray:
    """The best possible, for synthetic data."""
    return np.asarray(1 / (1 + (1 - prior) / prior * np.exp(5 - X.sum(axis=1))))


def run(job: tuple[str, float, int]) -> list[dict[str, Any]]:
    name, pi, seed = job
    warnings.simplefilter("ignore")
    X, y, pool, classes, some, rng = problem(name, pi, seed)
    rows = np.concatenate([some.positive, some.unlabeled])
    labels = np.repeat([1, 0], [len(some.positive), len(some.unlabeled)])
    ids = np.concatenate([some.positive_ids, some.unlabeled_ids])
    nnpu = ps.NNPUClassifier(pi, random_state=seed)
    shifted = ps.ShiftedClassifier(nnpu, ps.TCPU(pi), random_state=seed).fit(rows, labels, shared=ids)
    supervised = {
        "logistic": LogisticRegression(max_iter=1000).fit(X, y),
        "boosting": HistGradientBoostingClassifier(random_state=0).fit(X, y),
    }
    same = simulate.downsample(classes, pi, random_state=rng)

    def accuracy(decided: np.ndarray, truth: np.ndarray) -> str:
        return f"{np.mean(decided == truth):.4f}"

    base = {"dataset": name, "source_prior": pi, "seed": seed}
    line = {**base, "target_prior": pi, "nnPU": accuracy(shifted.predict(pool[same]), classes[same])}
    line |= {key: accuracy(model.predict(pool[same]), classes[same]) for key, model in supervised.items()}
    if name == "Synthetic":
        line["best"] = accuracy(posterior(pool[same], pi) > 0.5, classes[same])
    lines = [line]
    for target in TARGETS:
        at = simulate.downsample(classes, target, random_state=rng)
        T, truth = pool[at], classes[at]
        line = {**base, "target_prior": target, "nnPU": accuracy(shifted.adapt_to(pi).predict(T), truth)}
        line["adapted"] = accuracy(shifted.adapt(T).predict(T), truth)
        line["estimate"] = f"{shifted.target_prior_:.4f}"
        line["adapted_to_truth"] = accuracy(shifted.adapt_to(target).predict(T), truth)
        printed = (1 - pi) * target / ((1 - target) * pi + (1 - pi) * target)
        source = ps.adapt.shifted_posterior(shifted.predict_proba(T)[:, 1], target, pi)
        line["as_printed"] = accuracy(source > printed, truth)
        if name == "Synthetic":
            line["best"] = accuracy(posterior(T, target) > 0.5, truth)
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "classifier.csv")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    jobs = [(name, pi, seed) for name in SETS for pi in PRIORS for seed in range(args.seeds)]
    try:
        load("Diabetes")
    except ps.errors.InputError as error:
        sys.exit(str(error))
    with ProcessPoolExecutor() as pool:
        lines = [line for lines in pool.map(run, jobs) for line in lines]
    names = ("dataset", "source_prior", "seed", "target_prior", "best", "nnPU", "logistic", "boosting", "adapted",
             "estimate", "adapted_to_truth", "as_printed")  # fmt: skip
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(lines)
    for kind, of in (("Synthetic", ("Synthetic",)), ("UCI", tuple(OPENML))):
        for group in (("nnPU", "logistic", "boosting"), ("nnPU", "adapted", "adapted_to_truth", "as_printed")):
            some = [line for line in lines if line["dataset"] in of and group[1] in line]
            print(kind, {name: f"{np.mean([float(line[name]) for line in some]):.4f}" for name in group})


if __name__ == "__main__":
    main()
