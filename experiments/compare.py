"""The page that sets our figures beside the published ones: ``python -m experiments compare``.

Every cell that differs by more than three standard errors is listed with its reason; the paper's claims are stated with
a verdict whose numbers come from the lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.grids import EXPERIMENTS
from experiments.tables import lines_of, summary, summary_words, table

Rows = list[dict[str, Any]]
_FAR = 3.0
REASONS = {
    "images": "other features: ours are a stand-in for ResNet18 with ImageNet weights, under which the classes overlap more "
    "(MNIST, CIFAR) or less (Fashion) than in the paper; with overlap KM2's source prior grows, and TCPU's error with it",
    "zero": "the authors' DRPU answers 0 where ε leaves no threshold (their error is then π′); ours says so and takes "
    "thresholds with half of the positives above them",
    "training": "DRPU is trained here: gradients are cleared in each step, it stops at the smallest held-out divergence, and "
    "the network sees no copy of a held-out row",
    "km2": "KM2 is searched here in the prior, to 1e-3 and beyond the authors' limit of λ ≤ 8 (a prior of 0.875), by exact "
    "projections, and does not shuffle the caller's arrays; which of these explains how much cannot be told from the paper",
    "draws": "no difference of method is known, so other draws: halves, thinning and labels are random, and 20 repetitions of a set of 768 to 4601 rows share "
    "most of their rows, so that repetitions spread less than draws do",
}


def reason(row: dict[str, Any]) -> str:
    """Why this cell differs, by what is known of the authors' code (see the guide) and of our data."""
    if row["experiment"] == "images":
        return REASONS["images"]
    if row["method"] == "DRPU":
        return REASONS["zero" if abs(row["published"] - row["target_prior"]) < 0.02 else "training"]
    return REASONS["km2" if row["method"] == "KM2-LS" else "draws"]


def page(results: Path) -> str:
    """The whole page, in Markdown."""
    tables = {name: table(EXPERIMENTS[name], results) for name in ("synthetic", "uci", "images", "size")}
    parts = [
        "# Our figures beside the published ones",
        "Made by `priorshift experiment compare` from the lines in `experiments/results/paper`; made again, it is the same "
        "text. Published: mean absolute error over 20 repetitions.",
        "## Summary",
        *("- " + summary_words(entry) + f"; {entry['repetitions']} repetitions" for name in ("uci", "images")
          for entry in summary(tables[name])),
        "Images: the features are resnet18ft stand-ins (see `priorshift.datasets`), not the paper's; `python -m experiments "
        "features` makes the paper's where weights can be downloaded.",
        "## The paper's claims, and what we find",
        *(f"{number}. {text}" for number, text in enumerate(_claims(tables, results), 1)),
        "## Cells that differ by more than three standard errors",
        *_differences(tables["uci"] + tables["images"]),
    ]  # fmt: skip
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _differences(rows: Rows) -> list[str]:
    """A table for each reason."""
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if "published" in row and abs(row["difference_in_standard_errors"]) > _FAR:
            groups[reason(row)].append(row)
    parts = []
    for why, cells in groups.items():
        lines = [
            "| data set | c | π | π′ | method | ours | published | standard errors |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {r['dataset']} | {r['label_frequency']:g} | {r['source_prior']:g} | {r['target_prior']:g} | {r['method']} "
            f"| {r['mean_abs_error']:.3f} ± {r['sd']:.3f} | {r['published']:.3f} ± {r['published_sd']:.3f} "
            f"| {r['difference_in_standard_errors']:+.1f} |"
            for r in cells
        ]
        parts += [f"**{len(cells)} cells: {why}.**", "\n".join(lines)]
    return parts


def _claims(tables: dict[str, Rows], results: Path) -> list[str]:
    return [claim(tables, results) for claim in (_best, _km2_ls, _drpu, _violation, _prior, _tau)]


def _mean(cells: Rows, **wanted: Any) -> float:
    some = [row["mean_abs_error"] for row in cells if all(row[name] == value for name, value in wanted.items())]
    return float(np.mean(some)) if some else float("nan")


def _best(tables: dict[str, Rows], results: Path) -> str:
    said = []
    for name in ("uci", "images"):
        cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
        for row in tables[name]:
            if row["method"] in ("TCPU", "KM2-LS", "DRPU"):
                cell = (row["dataset"], row["label_frequency"], row["source_prior"], row["target_prior"])
                cells[cell][row["method"]] = row["mean_abs_error"]
        whole = [errors for errors in cells.values() if len(errors) == 3]
        close = sum(errors["TCPU"] <= min(errors.values()) + 0.01 for errors in whole)
        said.append(f"{close} of {len(whole)} cells ({name})")
    return (
        "*TCPU is best or within 0.01 of the best of the three methods in most cells.* It is in "
        + " and ".join(said)
        + ". "
        "Against a DRPU that is trained properly it wins less often than the paper says, and least where KM2's source prior "
        "is off; `Mixture`, which is ours, is left out of this count."
    )


def _signed(lines: Rows, method: str, target: float) -> float:
    return float(np.mean([x["estimate"] - target for x in lines
                          if x["method"] == method and x["target_prior"] == target and "estimate" in x]))  # fmt: skip


def _km2_ls(tables: dict[str, Rows], results: Path) -> str:
    lines = lines_of(EXPERIMENTS["uci"], results)
    low, high = _signed(lines, "KM2-LS", 0.2), _signed(lines, "KM2-LS", 0.8)
    return (
        f"*KM2-LS underestimates large π′.* Yes: on UCI data its bias is {low:+.3f} at π′ = 0.2 and {high:+.3f} at π′ = 0.8, "
        "though less than published."
    )


def _drpu(tables: dict[str, Rows], results: Path) -> str:
    few = _mean(tables["size"], method="DRPU", rows=100), _mean(tables["size"], method="TCPU", rows=100)
    many = _mean(tables["size"], method="DRPU", rows=2000), _mean(tables["size"], method="TCPU", rows=2000)
    return (
        "*DRPU returns values close to zero for small samples.* That is the rule's ε, not the method: with the fallback its "
        f"mean error at 100 rows is {few[0]:.3f} (TCPU {few[1]:.3f}), at 2000 rows {many[0]:.3f} (TCPU {many[1]:.3f}), on "
        "synthetic data."
    )


def _by_setting(name: str, results: Path, method: str) -> Callable[[float], float]:
    rows = table(EXPERIMENTS[name], results)
    return lambda setting: _mean(rows, setting=setting, method=method)


def _violation(tables: dict[str, Rows], results: Path) -> str:
    at = _by_setting("violation", results, "TCPU")
    said = ", ".join(f"{at(g):.3f} at {g:+g}" for g in (-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5))
    return (
        "*TCPU is robust to small violations g of label shift, less so to negative ones.* Yes for ±0.1; beyond, errors grow: "
        f"{said}."
    )


def _prior(tables: dict[str, Rows], results: Path) -> str:
    rows = table(EXPERIMENTS["prior"], results)
    parts = []
    for pi in (0.1, 0.2, 0.5):
        errors = [_mean(rows, setting=e, method="TCPU-given", source_prior=pi) for e in (-0.09, 0.0, 0.09)]
        parts.append(f"{errors[0]:.3f}, {errors[1]:.3f}, {errors[2]:.3f} (π = {pi:g})")
    return (
        "*The error is smallest with the true π, and grows with the error of π̂, more so at π = 0.5.* Yes: with π̂ − π = −0.09, "
        "0 and +0.09 it is " + "; ".join(parts) + "."
    )


def _tau(tables: dict[str, Rows], results: Path) -> str:
    rows = table(EXPERIMENTS["tau"], results)
    parts = []
    for name in ("Synthetic", "MNIST", "CIFAR", "Fashion"):
        errors = [_mean(rows, setting=f, dataset=name) for f in (0.5, 1.0, 2.0)]
        parts.append(f"{name} {errors[0]:.3f}, {errors[1]:.3f}, {errors[2]:.3f}")
    return (
        "*τ = 1/p is a reasonable bandwidth.* Yes: at τ·p = 0.5, 1 and 2 the mean errors are "
        + "; ".join(parts)
        + " (c = 0.5, "
        "KM2's source prior); differences between bandwidths are small beside those between data sets."
    )
