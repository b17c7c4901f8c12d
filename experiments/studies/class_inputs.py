"""Measure the joint estimate of several classes with wrong labels, looked-up rows, streams and sketches.

A tenth of the labelled rows of each class are wrong, half of them of the next class and half of the rest. Known of
these errors are nothing, their shares, or what a check of 50 labelled rows of each class found. In audits 100 rows of
the target, or of the source whose priors are not known, are looked up. Streams fit their scores to at most 1000 rows.
Targets have shares that are uniform on the simplex. No setting was chosen on this study.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import priorshift as ps
from experiments.class_samples import ClassDraw, draw, draw_rows
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.sketch import Sketch
from priorshift.warning_records import suppress_warnings

_SEED = 2712
_WRONG = 0.1  # share of the labelled rows
_CHECKED, _AUDITED, _FIT_ROWS = 50, 100, 1000
_KINDS = {
    "plain": "right labels, source priors known",
    "ignored": "10% wrong labels, not known",
    "matrix": "10% wrong labels, shares known",
    "checked": "10% wrong labels, 50 of each class checked",
    "target": "100 rows of the target looked up",
    "source": "100 rows of the source looked up, its priors not known",
    "stream": "streamed",
    "sketch": "sketches, TCPU",
}


def measure(data: str, classes: int, labeled: int, rows: int, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, zlib.crc32(data.encode()), classes, rows, seed))
        sample = draw(data, classes, labeled, rows, rng)
        for kind, estimate in _estimates(sample, data, rng, seed).items():
            with suppress_warnings(ps.errors.PriorShiftWarning):
                estimates = estimate()
            truth = sample.target_shares
            value, low, high = np.array([(e.value, e.interval.low, e.interval.high) for e in estimates.values()]).T
            in_region = estimates.contains(dict(zip(estimates, truth.tolist(), strict=True)))
            found[kind].append((value - truth, (low <= truth) & (truth <= high), high - low, in_region))
    lines = []
    for kind, answers in found.items():
        deviation, covered, width, in_region = (np.array(part) for part in zip(*answers, strict=True))
        lines.append({
            "kind": kind,
            "bias": round(float(np.abs(deviation.mean(axis=0)).max()), 5),
            "error": round(float(np.abs(deviation[:, :classes]).mean()), 5),
            "coverage": round(float(covered.mean()), 4),
            "lowest_coverage": round(float(covered.mean(axis=0).min()), 4),
            "region_coverage": round(float(in_region.mean()), 4),
            "width": round(float(width.mean()), 5),
        })  # fmt: skip
    return lines


def _estimates(sample: ClassDraw, data: str, rng: np.random.Generator, seed: int) -> dict[str, Callable[[], Any]]:
    """Return a function that estimates the shares of the target for each kind of input."""
    wrong, true_class = _with_wrong_labels(sample, data, rng)
    counted = [np.bincount(rng.choice(true, _CHECKED, replace=False), minlength=len(true_class) + 1)
               for true in true_class]  # fmt: skip
    errors: dict[str, dict[str, dict[str, Any]]] = {"matrix": {}, "checked": {}}
    names = [*sample.classes, "rest"]
    for k, name in enumerate(sample.classes):
        others = [(k + 1) % len(sample.classes), len(sample.classes)]
        errors["matrix"][name] = {names[j]: _WRONG / 2 for j in others}
        errors["checked"][name] = {names[j]: stats.beta(counted[k][j] + 0.5, _CHECKED - counted[k][j] + 0.5)
                                   for j in others}  # fmt: skip
    fit = partial(_fit, sample.classes, sample, seed)
    fit_wrong = partial(_fit, wrong, sample, seed)
    return {
        "plain": lambda: fit(sample.priors).estimate(sample.target),
        "ignored": lambda: fit_wrong(sample.priors).estimate(sample.target),
        "matrix": lambda: fit_wrong(sample.priors, label_error=errors["matrix"]).estimate(sample.target),
        "checked": lambda: fit_wrong(sample.priors, label_error=errors["checked"]).estimate(sample.target),
        "target": lambda: fit(sample.priors).estimate(sample.target, audit=_looked_up(sample.target_classes, names)),
        "source": lambda: fit(
            stats.dirichlet(np.full(len(names), 0.5)), audit=_looked_up(sample.unlabeled_classes, names)
        ).estimate(sample.target),
        "stream": lambda: ps.estimate_prior(
            sample.classes, sample.unlabeled, sample.target, stream=True,
            method=ps.MulticlassShift(sample.priors, fit_rows=_FIT_ROWS, random_state=seed),
        ),
        "sketch": lambda: _sketched(sample),
    }  # fmt: skip


def _fit(classes: dict[str, Any], sample: ClassDraw, seed: int, priors: Any, audit: Any = None, **settings: Any) -> Any:
    """Fit the joint estimate to labelled rows of the classes and the population, some of which are looked up."""
    X = np.concatenate([*classes.values(), sample.unlabeled])
    y = np.repeat([*classes, ""], [*map(len, classes.values()), len(sample.unlabeled)])
    if audit is not None:
        audit = np.concatenate([np.repeat("", len(y) - len(audit)), audit])
    return ps.MulticlassShift(priors, random_state=seed, **settings).fit(X, y, audit=audit)


def _looked_up(classes: Any, names: list[str]) -> Any:
    """Return the names of the classes of the first rows, which are in random order; empty for others."""
    return np.where(np.arange(len(classes)) < _AUDITED, np.array(names)[classes], "")


def _with_wrong_labels(sample: ClassDraw, data: str, rng: np.random.Generator) -> tuple[dict[str, Any], list[Any]]:
    """Return labelled rows of which some are of other classes, and the true class of each."""
    count = len(sample.classes)
    tables, true_class = {}, []
    for k, (name, rows) in enumerate(sample.classes.items()):
        true = rng.choice([k, (k + 1) % count, count], size=len(rows), p=[1 - _WRONG, _WRONG / 2, _WRONG / 2])
        tables[name] = np.where((true == k)[:, None], rows, draw_rows(data, count, true, rng))
        true_class.append(true)
    return tables, true_class


def _sketched(sample: ClassDraw) -> Any:
    """Return the estimate from sketches alone."""
    unlabeled = Sketch.from_sample(sample.unlabeled)
    classes, target = (
        {name: Sketch.from_sample(rows, like=unlabeled) for name, rows in tables.items()}
        for tables in (sample.classes, {"": sample.target})
    )
    return ps.estimate_prior(classes, unlabeled, target[""], source_prior=sample.priors, method="tcpu")


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the table that documents quote."""
    rows = [
        ("normal classes" if line["data"] == "gaussian" else line["data"], _KINDS[line["kind"]],
         f"{line['bias']:.3f}", f"{line['error']:.3f}", f"{line['coverage']:.1%}", f"{line['lowest_coverage']:.1%}",
         f"{line['region_coverage']:.1%}", f"{line['width']:.3f}")
        for line in lines
    ]  # fmt: skip
    header = ("data", "input", "largest bias of a class", "mean error", "coverage", "of the lowest class",
              "of the region", "mean width")  # fmt: skip
    return {"class-inputs": markdown_table(header, rows)}


_UNIT = ("data", "classes", "labeled", "rows", "repetitions")
TRIAL = Trial(
    "class_inputs",
    "Several classes with wrong labels, looked-up rows, streams and sketches",
    tuple(
        dict(zip(_UNIT, unit, strict=True)) | {"kind": kind}
        for unit in (("gaussian", 3, 200, 1000, 100), ("Segment", 3, 200, 1000, 60))
        for kind in _KINDS
    ),
    _UNIT,
    measure,
    texts,
    quotes=("class-inputs",),
    small_values={"rows": 200, "labeled": 60},
)
