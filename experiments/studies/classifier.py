"""Measure the accuracy of nnPU, with and without adaptation, compared with supervised and optimal classifiers.

Source and target are those of the paper's experiments with c = 0.5, except that both are standardised by the source, as
a user must do. For every data set, π and seed, the first line has the accuracy in the source population (a new sample
with prior π) of nnPU with the true prior, and of logistic regression and boosting fitted to the true labels of as many
rows. For every π′, a further line has the target accuracy of nnPU without adaptation, adapted to TCPU's estimate (true
π), adapted to the true prior, and by the rule as printed in the paper.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from experiments.grids import PRIORS, TARGETS
from experiments.sampling import load_dataset, split_halves, stack_samples, standardize
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift import simulate
from priorshift.datasets import OPENML

SETS = ("Synthetic", *OPENML)
_IN_SOURCE = ("nnPU", "logistic", "boosting", "best")
_IN_TARGET = ("nnPU", "adapted", "adapted_to_truth", "as_printed")


def problem(name: str, pi: float, seed: int) -> tuple[Any, ...]:
    """Draw source rows, their true classes, the rows that targets are drawn from, and the labelled source."""
    rng = np.random.default_rng((seed, round(1000 * pi), SETS.index(name)))
    if name == "Synthetic":
        y = rng.random(2000) < pi
        X = rng.normal(size=(2000, 10)) + y[:, None]
        classes = rng.random(20_000) < 0.5
        pool = rng.normal(size=(20_000, 10)) + classes[:, None]
    else:
        data = load_dataset(name)
        first, second = split_halves(len(data.X), rng)
        kept = first[simulate.downsample(data.y[first], pi, random_state=rng)]
        Z = standardize(data.X, data.X[kept])
        X, y, pool, classes = Z[kept], data.y[kept], Z[second], data.y[second]
    positives = int(y.sum())
    m, _ = simulate.sample_sizes(len(X), pi, 0.5)
    if m > positives:  # a synthetic sample may have fewer positives than the scheme labels
        pi = positives / len(X)
    some = simulate.label_some(X, y, pi, 0.5, random_state=rng)
    return X, y, pool, classes, some, rng


def posterior(X: np.ndarray, prior: float) -> np.ndarray:
    """Return the true posterior of the synthetic data, which gives the optimal classifier."""
    return np.asarray(1 / (1 + (1 - prior) / prior * np.exp(5 - X.sum(axis=1))))


def _accuracy(decisions: np.ndarray, truth: np.ndarray) -> float:
    return round(float(np.mean(decisions == truth)), 4)


def measure(dataset: str, source_prior: float, seed: int) -> list[Line]:
    """Return the lines of one unit."""
    warnings.simplefilter("ignore")  # logistic regression may not converge; the filter ends with the unit
    name, pi = dataset, source_prior
    X, y, pool, classes, some, rng = problem(name, pi, seed)
    rows, labels, ids = stack_samples(some)
    nnpu = ps.NNPUClassifier(pi, random_state=seed)
    tcpu = ps.TCPU(pi, standardize=False)
    shifted = ps.ShiftedClassifier(nnpu, tcpu, random_state=seed).fit(rows, labels, shared=ids)
    supervised = {
        "logistic": LogisticRegression(max_iter=1000).fit(X, y),
        "boosting": HistGradientBoostingClassifier(random_state=0).fit(X, y),
    }
    same = simulate.downsample(classes, pi, random_state=rng)
    T, truth = pool[same], classes[same]
    line = {"population": "source", "target_prior": pi, "nnPU": _accuracy(shifted.predict(T), truth)}
    line |= {key: _accuracy(model.predict(T), truth) for key, model in supervised.items()}
    if name == "Synthetic":
        line["best"] = _accuracy(posterior(T, pi) > 0.5, truth)
    lines = [line]
    for target in TARGETS:
        at = simulate.downsample(classes, target, random_state=rng)
        T, truth = pool[at], classes[at]
        line = {"population": "target", "target_prior": target}
        line["nnPU"] = _accuracy(shifted.adapt_to(pi).predict(T), truth)
        line["adapted"] = _accuracy(shifted.adapt(T).predict(T), truth)
        line["estimate"] = round(float(shifted.target_prior_), 4)
        line["adapted_to_truth"] = _accuracy(shifted.adapt_to(target).predict(T), truth)
        printed = (1 - pi) * target / ((1 - target) * pi + (1 - pi) * target)
        source = ps.adapt.shifted_posterior(shifted.predict_proba(T)[:, 1], target, pi)
        line["as_printed"] = _accuracy(source > printed, truth)
        if name == "Synthetic":
            line["best"] = _accuracy(posterior(T, target) > 0.5, truth)
        lines.append(line)
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""

    def rows(population: str, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        table = []
        for words, synthetic in (("synthetic", True), ("seven UCI sets", False)):
            some = [x for x in lines if x["population"] == population and (x["dataset"] == "Synthetic") == synthetic]
            means = (f"{np.mean([line[n] for line in some]):.4f}" if n in some[0] else "" for n in names)
            table.append((words, *means))
        return table

    in_target = ("in the target", "nnPU, not adapted", "adapted to the estimate", "adapted to the true π′")
    return {
        "classifier-source": markdown_table(
            ("in the source population", "nnPU", "logistic", "boosting", "best possible"), rows("source", _IN_SOURCE)
        ),
        "classifier-target": markdown_table((*in_target, "by the rule as printed"), rows("target", _IN_TARGET)),
    }


_GRID = tuple(
    {"dataset": d, "source_prior": pi, "seed": seed, "population": population, "target_prior": target}
    for d, pi, seed in product(SETS, PRIORS, range(5))
    for population, target in (("source", pi), *(("target", t) for t in TARGETS))
)
_UNIT = ("dataset", "source_prior", "seed")
_QUOTES = ("classifier-source", "classifier-target")
TRIAL = Trial("classifier", "Accuracy of decisions, adapted or not", _GRID, _UNIT, measure, texts, quotes=_QUOTES)
