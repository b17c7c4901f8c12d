"""Measure the coverage of TCPU's intervals with a known source prior, on synthetic data."""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

SOURCE_PRIORS = (0.1, 0.2, 0.5)
TARGET_PRIORS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
_BOOTSTRAP_ROWS = 200  # the bootstrap is measured at this size only, since it takes most of the time
_BOOTSTRAP_REPLICATES = 200
_SEED = 2026


def measure(source_prior: float, target_prior: float, rows: int, shared_rows: bool, repetitions: int) -> list[Line]:
    """Return how often each interval covers the true target prior, and the bias of the estimates."""
    setting = (source_prior, target_prior, rows, shared_rows)
    rng = np.random.default_rng([_SEED, *(round(1000 * float(value)) for value in setting)])
    draws = []
    for _ in range(repetitions):
        s = ps.simulate.gaussian(source_prior, target_prior, rows, rows, shared=shared_rows, random_state=rng)
        tcpu = ps.TCPU(source_prior, standardize=False, n_bootstrap=_BOOTSTRAP_REPLICATES, random_state=rng)
        estimate = tcpu.fit(s.X, s.y, shared=s.ids).estimate(s.target)
        draw = {
            "bias": estimate.raw - target_prior,
            "standard_error": estimate.standard_error,
            "coverage": target_prior in estimate.interval,
            "width": estimate.interval.width,
        }
        for bound in ("paper-bound", "sharp-bound"):
            interval = tcpu.set_params(interval=bound).estimate(s.target).interval
            draw[f"coverage_{bound}"] = target_prior in interval
            draw[f"width_{bound}"] = interval.width
        if rows == _BOOTSTRAP_ROWS:
            interval = tcpu.set_params(interval="bootstrap").estimate(s.target).interval
            draw["coverage_bootstrap"] = target_prior in interval
        plug_in = tcpu.set_params(interval="delta", statistic="plug-in").estimate(s.target)
        draw |= {"bias_plug-in": plug_in.raw - target_prior, "coverage_plug-in": target_prior in plug_in.interval}
        draws.append(draw)
    column = {name: np.array([draw[name] for draw in draws], dtype=float) for name in draws[0]}
    there = np.isfinite(column["bias"])
    line = {"no_estimate": int((~there).sum()), "sd": round(float(column["bias"][there].std(ddof=1)), 4)}
    line |= {name: round(float(values[np.isfinite(values)].mean()), 4) for name, values in column.items()}
    return [line]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    covers = {
        name: 100 * np.array([line[f"coverage{end}"] for line in lines if f"coverage{end}" in line])
        for name, end in (
            ("`delta`", ""),
            ("`bootstrap`, 200 rows", "_bootstrap"),
            ("`delta` around the plug-in", "_plug-in"),
            ("`sharp-bound`", "_sharp-bound"),
            ("`paper-bound`", "_paper-bound"),
        )
    }
    few = [line for line in lines if (line["source_prior"], line["target_prior"], line["rows"]) == (0.1, 0.8, 200)]
    delta, plug_in = covers["`delta`"], covers["`delta` around the plug-in"]
    return {
        "coverage": markdown_table(
            ("interval", "mean", "lowest", "highest"),
            [(name, f"{v.mean():.1f}%", f"{v.min():.1f}%", f"{v.max():.1f}%") for name, v in covers.items()],
        ),
        "plug-in": markdown_table(
            ("P and U", "statistic", "bias of π̂′", "coverage of the 95% interval"),
            [
                (
                    "shared" if line["shared_rows"] else "separate",
                    name,
                    f"{line[f'bias{end}']:+.3f}",
                    f"{100 * line[f'coverage{end}']:.1f}%",
                )
                for line in few
                for name, end in (("unbiased", ""), ("plug-in", "_plug-in"))
            ],
        ),
        "covers": f"has a mean coverage of {delta.mean():.1f}% and a lowest coverage of {delta.min():.1f}%",
        "falls": f"falls to {plug_in.min():.1f}%",
    }


_GRID = tuple(
    {"source_prior": pi, "target_prior": target, "rows": rows, "shared_rows": shared, "repetitions": 500}
    for rows, shared, pi, target in product((200, 2000), (False, True), SOURCE_PRIORS, TARGET_PRIORS)
)
_UNIT = ("source_prior", "target_prior", "rows", "shared_rows", "repetitions")
TRIAL = Trial(
    "coverage",
    "Coverage of the intervals, source prior known",
    _GRID,
    _UNIT,
    measure,
    texts,
    quotes=("coverage", "plug-in", "covers", "falls"),
)
