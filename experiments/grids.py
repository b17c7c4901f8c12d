"""What is run: every experiment of the paper is a frozen grid of sources, each with its targets and methods.

A source is what is fitted once: a data set, its prior, its label frequency, its size. A cell is a source, one of its
targets and a method; with a seed it is one line of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import priorshift as ps
from experiments import tables
from experiments.cells import run_source
from experiments.draws import KEEL, UNSEEN, Source, Target
from experiments.limit import LIMIT
from experiments.methods import GIVEN, LABEL, LIBRARY, TRAINED
from experiments.study import Line, Study, Unit
from priorshift.datasets import IMAGES, OPENML

PRIORS = (0.1, 0.2, 0.5)
TARGETS = (0.2, 0.4, 0.6, 0.8)
WIDE = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
WIDE_TARGETS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
SIZES = (100, 200, 500, 1000, 1500, 2000)
REPETITIONS = 20
# what trains a network has a command of its own; the rest is what `make paper` runs
QUICK = ("TCPU", "TCPU-true", "TCPU-unbiased", GIVEN, *(label for label in LIBRARY if label != TRAINED))


@dataclass(frozen=True)
class Experiment(Study):
    """A frozen grid."""

    name: str
    title: str
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    methods: tuple[str, ...]
    varies: str | None = None  # what `setting` is
    repetitions: int = REPETITIONS
    alone: bool = False
    # or "disjoint": P outside of U, all standardised by the source; "wide": so, and P of one size whatever the prior
    protocol: str = "paper"
    # no field: the same for every experiment
    keys = ("dataset", "label_frequency", "source_prior", "rows", "target_prior", "setting", "method", "seed")

    def units(self, methods: tuple[str, ...] | None = None, repetitions: int | None = None) -> Iterator[Unit]:
        """Seed by seed, so that an unfinished run has whole repetitions; what is trained apart from what is quick."""
        asked = self.methods if methods is None else methods
        groups = [tuple(m for m in asked if (m == TRAINED) == trained) for trained in (False, True)]
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
        """One source of few rows, one repetition; synthetic data by default, which everybody has."""
        first = replace(self.sources[0], dataset=dataset, rows=min(self.sources[0].rows, 200))
        return replace(self, sources=(first,), repetitions=1)

    def own(self, lines: list[Line]) -> list[Line]:
        """Whatever their method and seed: a file may hold more repetitions than asked, and a researcher's method."""
        sources, targets = set(self.sources), set(self.targets)
        return [
            line
            for line in lines
            if Source(line["dataset"], line["label_frequency"], line["source_prior"], line["rows"]) in sources
            and Target(line["target_prior"], line.get("setting")) in targets
        ]

    def table(self, results: Path) -> list[Line]:
        return tables.table(self.name, self.lines(results))

    def words(self, rows: list[Line]) -> str:
        return tables.words(rows, self.varies)


def _grid(
    datasets: tuple[str, ...],
    frequencies: tuple[float, ...],
    rows: tuple[int, ...] = (2000,),
    priors: tuple[float, ...] = PRIORS,
) -> tuple[Source, ...]:
    return tuple(Source(d, c, pi, n) for d in datasets for c in frequencies for pi in priors for n in rows)


def _varied(*settings: float) -> tuple[Target, ...]:
    return tuple(Target(prior, setting) for prior in TARGETS for setting in settings)


_SHIFTS = tuple(Target(prior) for prior in TARGETS)
_ALL = (*QUICK, TRAINED)
EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment("synthetic", "Distribution of the estimates", _grid(("Synthetic",), (0.25, 0.5)), _SHIFTS,
                   (*_ALL, LIMIT)),
        Experiment("uci", "Errors on UCI data, c = 0.5", _grid(tuple(OPENML), (0.5,)), _SHIFTS, _ALL),
        Experiment("images", "Errors on image data, c = 0.25 and 0.5", _grid(IMAGES, (0.25, 0.5)), _SHIFTS, _ALL),
        Experiment("size", "Error against the number of rows", _grid(("Synthetic",), (0.5,), SIZES), _SHIFTS, _ALL),
        Experiment("disjoint", "UCI data, P and U disjoint, standardised by the source", _grid(tuple(OPENML), (0.5,)),
                   _SHIFTS, QUICK, repetitions=6, protocol="disjoint"),
        Experiment("keel", "Ten KEEL sets, P and U disjoint, standardised by the source", _grid(KEEL, (0.5,)),
                   _SHIFTS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment("unseen", "Thirteen further KEEL sets, as before", _grid(UNSEEN, (0.5,)),
                   _SHIFTS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment("high", "Synthetic and UCI data at high source priors, as before",
                   _grid(("Synthetic", *OPENML), (0.5,), priors=(0.7, 0.9)),
                   tuple(Target(prior) for prior in (0.1, 0.5, 0.9)), QUICK, repetitions=3, protocol="disjoint"),
        Experiment("wide", "Synthetic, UCI and KEEL data over all priors, as many labelled rows at each",
                   _grid(("Synthetic", *OPENML, *KEEL), (0.5,), priors=WIDE),
                   tuple(Target(prior) for prior in WIDE_TARGETS), QUICK, repetitions=2, protocol="wide"),
        Experiment("prior", "TCPU with a wrong source prior", _grid(("Synthetic",), (0.5,)),
                   _varied(-0.09, -0.06, -0.03, 0.0, 0.03, 0.06, 0.09), ("TCPU-given", "TCPU-given-unbiased"),
                   varies="error of the source prior"),
        Experiment("violation", "TCPU where label shift does not hold: target positives moved by g",
                   _grid(("Synthetic",), (0.5,)), _varied(-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5),
                   ("TCPU", "TCPU-true", "TCPU-unbiased"), varies="g"),
        Experiment("tau", "TCPU with other bandwidths, τ in units of 1/p", _grid((*IMAGES, "Synthetic"), (0.5,)),
                   _varied(0.5, 1.0, 2.0), ("TCPU",), varies="τ·p"),
        Experiment("times", "Seconds by data set, π = 0.2, π′ = 0.6",
                   tuple(Source(d, 0.5, 0.2) for d in ("Synthetic", *IMAGES, *OPENML)), (Target(0.6),),
                   ("TCPU", LABEL[ps.KM2LS], TRAINED), repetitions=3, alone=True),
        Experiment("times-by-size", "Seconds by rows of source and target, synthetic data",
                   tuple(Source("Synthetic", 0.5, 0.2, n) for n in (500, 1000, 2000, 5000, 10_000)), (Target(0.6),),
                   ("TCPU", "TCPU-true"), repetitions=3, alone=True),
    )
}  # fmt: skip
