"""Define the experiments of the paper: grids of sources, each with its targets and methods.

A source is drawn and fitted once: a data set, its prior, its label frequency and its size. A cell is a source, one of
its targets and a method; with a seed it is one line of results.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import priorshift as ps
from experiments import error_tables
from experiments.efficiency_limit import LIMIT
from experiments.methods import LABEL, LIBRARY, TRAINED, WITNESS_TRUE, Fits, verdict
from experiments.sampling import KEEL, UNSEEN, Source, Target, draw
from experiments.study import Line, Study, Unit
from priorshift.datasets import IMAGES, OPENML
from priorshift.errors import InputError

PRIORS = (0.1, 0.2, 0.5)
TARGETS = (0.2, 0.4, 0.6, 0.8)
WIDE = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
WIDE_TARGETS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
SIZES = (100, 200, 500, 1000, 1500, 2000)
REPETITIONS = 20
# All methods but the one that trains a network, which takes hours.
QUICK = ("TCPU", "TCPU-true", "TCPU-unbiased", WITNESS_TRUE, *(label for label in LIBRARY if label != TRAINED))


@dataclass(frozen=True)
class Experiment(Study):
    """A grid of sources, targets, methods and seeds; each combination is a line."""

    name: str
    title: str
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    methods: tuple[str, ...]
    varies: str | None = None  # the quantity whose value is `setting`
    repetitions: int = REPETITIONS
    timed: bool = False
    # "paper"; "disjoint": P and U have no common row and all samples are standardised by the source; "wide": as
    # "disjoint", and the size of P does not depend on the prior
    protocol: str = "paper"
    # not a field: the same for every experiment
    keys = ("dataset", "label_frequency", "source_prior", "rows", "target_prior", "setting", "method", "seed")

    def units(self, methods: tuple[str, ...] | None = None, repetitions: int | None = None) -> Iterator[Unit]:
        """Yield the units seed by seed, so that an unfinished run has complete repetitions.

        The method that trains a network has units of its own.
        """
        selected = self.methods if methods is None else methods
        groups = [tuple(m for m in selected if (m == TRAINED) == trained) for trained in (False, True)]
        for seed in range(repetitions or self.repetitions):
            for s in self.sources:
                for group in filter(None, groups):
                    wanted = frozenset(
                        (s.dataset, s.label_frequency, s.source_prior, s.rows, t.target_prior, t.setting, m, seed)
                        for t in self.targets
                        for m in group
                    )
                    yield Unit(wanted, partial(run_source, self, s, seed, group))

    def small(self, dataset: str = "Synthetic") -> Experiment:
        """Return the experiment with one source of few rows and one repetition; synthetic data need no download."""
        first = replace(self.sources[0], dataset=dataset, rows=min(self.sources[0].rows, 200))
        return replace(self, sources=(first,), repetitions=1)

    def select_lines(self, lines: list[Line]) -> list[Line]:
        """Return the lines of the grid's sources and targets, of any method and seed.

        A file may hold more repetitions than the experiment has, and lines of a user's method.
        """
        sources, targets = set(self.sources), set(self.targets)
        return [
            line
            for line in lines
            if Source(line["dataset"], line["label_frequency"], line["source_prior"], line["rows"]) in sources
            and Target(line["target_prior"], line.get("setting")) in targets
        ]

    def table(self, results: Path) -> list[Line]:
        return error_tables.error_table(self.name, self.lines(results))

    def format_table(self, rows: list[Line]) -> str:
        return error_tables.format_errors(rows, self.varies)


def run_source(experiment: Experiment, source: Source, seed: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Draw a source and estimate every target by each method; return a line for each target and method."""
    drawn = draw(source, seed, experiment.protocol)
    together = Fits(drawn, source, seed)
    lines = []
    for method in methods:
        fits = Fits(drawn, source, seed) if experiment.timed else together
        for target in experiment.targets:
            violation = target.setting if experiment.varies == "g" else None
            rows = drawn.target(target.target_prior, violation or 0.0)
            start = time.perf_counter()
            estimate = fits.estimate(method, rows, target, experiment.varies)
            seconds = time.perf_counter() - start
            interval = getattr(estimate, "interval", None)
            details = getattr(estimate, "details", None) or {}
            lines.append(
                {
                    "dataset": source.dataset,
                    "label_frequency": source.label_frequency,
                    "source_prior": source.source_prior,
                    "rows": source.rows,
                    "target_prior": target.target_prior,
                    "setting": target.setting,
                    "method": method,
                    "seed": seed,
                    "estimate": _rounded(getattr(estimate, "value", estimate), method),
                    "mean": _rounded(details.get("mean", np.nan), method),
                    "interval": interval and [_rounded(interval.low, method), _rounded(interval.high, method)],
                    "source_estimate": _rounded(getattr(estimate, "source_prior", np.nan), method),
                    "verdict": verdict(estimate),
                    "overlap": _rounded(details.get("overlap", np.nan), method),
                    "seconds": round(seconds, 4),
                }
            )
    return lines


def _rounded(value: Any, method: str) -> float | None:
    """Round to five decimals; None if the value is not finite."""
    try:
        return round(float(value), 5) if np.isfinite(float(value)) else None
    except (TypeError, ValueError):
        raise InputError(
            f"{method} estimates a {type(value).__name__}, but a number or a PriorEstimate is expected."
        ) from None


def _grid(
    datasets: tuple[str, ...],
    frequencies: tuple[float, ...],
    rows: tuple[int, ...] = (2000,),
    priors: tuple[float, ...] = PRIORS,
) -> tuple[Source, ...]:
    return tuple(Source(d, c, pi, n) for d in datasets for c in frequencies for pi in priors for n in rows)


def _with_settings(*settings: float) -> tuple[Target, ...]:
    return tuple(Target(prior, setting) for prior in TARGETS for setting in settings)


_TARGETS = tuple(Target(prior) for prior in TARGETS)
_ALL = (*QUICK, TRAINED)
EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment("synthetic", "Distribution of the estimates", _grid(("Synthetic",), (0.25, 0.5)), _TARGETS,
                   (*_ALL, LIMIT)),
        Experiment("uci", "Errors on UCI data, c = 0.5", _grid(tuple(OPENML), (0.5,)), _TARGETS, _ALL),
        Experiment("images", "Errors on image data, c = 0.25 and 0.5", _grid(IMAGES, (0.25, 0.5)), _TARGETS, _ALL),
        Experiment("size", "Error against the number of rows", _grid(("Synthetic",), (0.5,), SIZES), _TARGETS, _ALL),
        Experiment("disjoint", "UCI data, P and U disjoint, standardised by the source", _grid(tuple(OPENML), (0.5,)),
                   _TARGETS, QUICK, repetitions=6, protocol="disjoint"),
        Experiment("keel", "Ten KEEL sets, P and U disjoint, standardised by the source", _grid(KEEL, (0.5,)),
                   _TARGETS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment("unseen", "Thirteen further KEEL sets, as before", _grid(UNSEEN, (0.5,)),
                   _TARGETS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment("high", "Synthetic and UCI data at high source priors, as before",
                   _grid(("Synthetic", *OPENML), (0.5,), priors=(0.7, 0.9)),
                   tuple(Target(prior) for prior in (0.1, 0.5, 0.9)), QUICK, repetitions=3, protocol="disjoint"),
        Experiment("wide", "Synthetic, UCI and KEEL data over all priors, as many labelled rows at each",
                   _grid(("Synthetic", *OPENML, *KEEL), (0.5,), priors=WIDE),
                   tuple(Target(prior) for prior in WIDE_TARGETS), QUICK, repetitions=2, protocol="wide"),
        Experiment("prior", "TCPU with a wrong source prior", _grid(("Synthetic",), (0.5,)),
                   _with_settings(-0.09, -0.06, -0.03, 0.0, 0.03, 0.06, 0.09), ("TCPU-given", "TCPU-given-unbiased"),
                   varies="error of the source prior"),
        Experiment("violation", "TCPU where label shift does not hold: target positives moved by g",
                   _grid(("Synthetic",), (0.5,)), _with_settings(-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5),
                   ("TCPU", "TCPU-true", "TCPU-unbiased"), varies="g"),
        Experiment("tau", "TCPU with other bandwidths, τ in units of 1/p", _grid((*IMAGES, "Synthetic"), (0.5,)),
                   _with_settings(0.5, 1.0, 2.0), ("TCPU",), varies="τ·p"),
        Experiment("times", "Seconds by data set, π = 0.2, π′ = 0.6",
                   tuple(Source(d, 0.5, 0.2) for d in ("Synthetic", *IMAGES, *OPENML)), (Target(0.6),),
                   ("TCPU", LABEL[ps.KM2LS], TRAINED), repetitions=3, timed=True),
        Experiment("times-by-size", "Seconds by rows of source and target, synthetic data",
                   tuple(Source("Synthetic", 0.5, 0.2, n) for n in (500, 1000, 2000, 5000, 10_000)), (Target(0.6),),
                   ("TCPU", "TCPU-true"), repetitions=3, timed=True),
    )
}  # fmt: skip
