"""Measure differences between many targets of one source, the simultaneous band, and the test of equality.

The data are the paper's synthetic populations, P of 500 and U of 2000 rows, disjoint, π = 0.3; the targets have 1500
rows and priors from 0.02 to 0.95, some of them equal. The level of the test is measured on as many targets with one
prior, and only with π known, since the test does not depend on π.
"""

from __future__ import annotations

import warnings

import numpy as np

import priorshift as ps
from experiments.sampling import gaussian_sample, gaussian_source
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.errors import PriorShiftWarning

_SOURCE_PRIOR, _POSITIVES, _UNLABELED, _ROWS = 0.3, 500, 2000, 1500
_PRIORS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 0.7, 0.8, 0.9, 0.95)
_SETTINGS = (
    ("witness", 12, True, 200),
    ("witness", 36, True, 50),
    ("witness", 12, False, 60),
    ("witness", 36, False, 20),
    ("tcpu", 12, True, 100),
)
_SEED = 2031


def measure(method: str, targets: int, prior_known: bool, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    priors = np.resize(_PRIORS, targets)
    each, differences, widths, apart, band, rejected, equal = [], [], [], [], [], [], []
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, targets, seed))
        X, y = gaussian_source(_POSITIVES, _UNLABELED, _SOURCE_PRIOR, rng)
        given_prior = _SOURCE_PRIOR if prior_known else None
        settings = {"method": method, "source_prior": given_prior, "random_state": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorShiftWarning)
            estimates = ps.estimate_priors(
                X[y == 1], X[y == 0], [gaussian_sample(_ROWS, p, rng) for p in priors], **settings
            )
            if prior_known:
                equal_targets = [gaussian_sample(_ROWS, _SOURCE_PRIOR, rng) for _ in priors]
                test = ps.estimate_priors(X[y == 1], X[y == 0], equal_targets, **settings).equality_test()
                equal.append(test.p_value < 0.05)
        intervals = [e.interval for e in estimates.values()]
        each.append([p in i for p, i in zip(priors, intervals, strict=True)])
        band.append(all(p in estimates.band[name] for p, name in zip(priors, estimates, strict=True)))
        found = estimates.differences()
        truth = [(priors[int(d.first)], priors[int(d.second)]) for d in found]
        differences.append([second - first in d.interval for d, (first, second) in zip(found, truth, strict=True)])
        rejected += [d.p_value < 0.05 for d, (first, second) in zip(found, truth, strict=True) if first == second]
        widths += [d.interval.width for d in found]
        apart += [np.hypot(intervals[int(d.first)].width, intervals[int(d.second)].width) for d in found]
    covered = np.mean(differences, axis=0)
    return [
        {
            "coverage": round(float(np.mean(each)), 6),
            "coverage_differences": round(float(covered.mean()), 6),
            "lowest_difference": round(float(covered.min()), 6),
            "width_differences": round(float(np.mean(widths)), 6),
            "width_as_if_independent": round(float(np.mean(apart)), 6),
            "coverage_band": round(float(np.mean(band)), 6),
            "level_pairs": round(float(np.mean(rejected)), 6),
            **({"level_equality": round(float(np.mean(equal)), 6)} if equal else {}),
        }
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = [
        (
            line["method"], f"{line['targets']}", "known" if line["prior_known"] else "unknown",
            f"{line['repetitions']}",
            f"{100 * line['coverage']:.1f}%", f"{100 * line['coverage_differences']:.1f}%",
            f"{line['width_differences']:.3f}", f"{line['width_as_if_independent']:.3f}",
            f"{100 * line['coverage_band']:.1f}%", f"{100 * line['level_pairs']:.1f}%",
            f"{100 * line['level_equality']:.1f}%" if line["prior_known"] else "",
        )
        for line in lines
    ]  # fmt: skip
    header = ("method", "targets", "π", "draws", "coverage of π′", "of differences", "their width")
    more = (
        "if errors were independent",
        "band holds all",
        "equal pairs found different at 5%",
        "equal targets found different at 5%",
    )
    return {"months": markdown_table((*header, *more), rows)}


_NAMES = ("method", "targets", "prior_known", "repetitions")
_GRID = tuple(dict(zip(_NAMES, setting, strict=True)) for setting in _SETTINGS)
TRIAL = Trial("months", "Many targets: differences, the band for all at once, the test of equality", _GRID, _NAMES,
              measure, texts, slow=True)  # fmt: skip
