"""Tabulate errors by cell, and compare them with the published ones.

The paper calls the ± of its tables a standard deviation, but it has the size of a standard error (`compare` explains
why). Differences are therefore given under both readings, each in standard errors of the difference.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from contextlib import suppress
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from experiments.text_tables import align_columns

PUBLISHED = Path(__file__).parent / "published"
PUBLISHED_REPETITIONS = 20
_NAMES = {"FASHION": "Fashion"}
_CELL = ("dataset", "label_frequency", "source_prior", "rows", "target_prior", "setting", "method")
_PUBLISHED_CELL = ("dataset", "label_frequency", "source_prior", "target_prior", "method")
# The two readings of the published ±, and the divisor that makes its square the variance of the mean.
READINGS = {"as_sd": PUBLISHED_REPETITIONS, "as_standard_error": 1}
FAR = 3.0  # standard errors


def published() -> dict[tuple[Any, ...], tuple[float, float]]:
    """Read the published mean absolute errors and their ±, by data set, c, π, π′ and method."""
    with (PUBLISHED / "published_errors.csv").open(newline="") as file:
        rows = [row | {"dataset": _NAMES.get(row["dataset"], row["dataset"])} for row in csv.DictReader(file)]
    cells = [(row["dataset"], *(float(row[name]) for name in _PUBLISHED_CELL[1:4]), row["method"]) for row in rows]
    return {cell: (float(row["mean_abs_error"]), float(row["sd"])) for cell, row in zip(cells, rows, strict=True)}


def published_seconds() -> dict[tuple[str, int, str], float]:
    """Read the published times, by data set, rows and method; times by size are those of synthetic data."""
    seconds = {}
    with (PUBLISHED / "published_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            seconds[row["dataset"], 2000, row["method"]] = float(row["seconds"])
    with (PUBLISHED / "published_times_by_size.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            seconds["Synthetic", int(row["n"]), row["method"]] = float(row["seconds"])
    return seconds


def error_table(experiment: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each cell that has lines; a missing estimate counts as an error of 1, the largest possible."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        cells[tuple(line.get(name) for name in _CELL)].append(line)
    known = published()
    seconds = published_seconds()
    rows = []
    for cell, some in cells.items():
        row = {"experiment": experiment, **dict(zip(_CELL, cell, strict=True))}
        errors = [abs(line["estimate"] - line["target_prior"]) if "estimate" in line else 1.0 for line in some]
        n, sd = len(errors), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
        row |= {"mean_abs_error": round(float(np.mean(errors)), 5), "sd": round(sd, 5) if n > 1 else None}
        row |= {"repetitions": n, "mean_seconds": round(float(np.mean([line["seconds"] for line in some])), 4)}
        ends = [line["interval"] for line in some if "interval" in line and None not in line["interval"]]
        covers = [low <= row["target_prior"] <= high for low, high in ends]
        row["coverage"] = round(float(np.mean(covers)), 4) if covers else None
        theirs = known.get(tuple(row[name] for name in _PUBLISHED_CELL))
        if theirs is not None and experiment in ("uci", "images"):
            row |= {"published": theirs[0], "published_sd": theirs[1]}
            for reading, runs in READINGS.items():
                error = sqrt(sd**2 / n + theirs[1] ** 2 / runs)
                row[f"difference_{reading}"] = round((row["mean_abs_error"] - theirs[0]) / max(error, 1e-12), 2)
        if experiment.startswith("times"):
            row["published_seconds"] = seconds.get((row["dataset"], row["rows"], row["method"]))
        rows.append(row)
    return sorted(rows, key=lambda r: tuple(str(r[name]) for name in _CELL))


def format_errors(rows: list[dict[str, Any]], varies: str | None = None) -> str:
    """Return the rows as text under a header, with a summary for each method."""
    columns = {"data set": "{dataset}", "c": "{label_frequency:g}", "π": "{source_prior:g}", "π′": "{target_prior:g}"}
    columns |= {"rows": "{rows}"} | ({varies: "{setting:g}"} if varies else {})
    columns |= {"method": "{method}", "runs": "{repetitions}"}
    notes = []
    if any("published_seconds" in row for row in rows):
        columns |= {"seconds": "{mean_seconds:.3f}", "published": "{published_seconds:.3f}"}
    else:
        columns |= {"mean error": "{mean_abs_error:.3f} ± {sd:.3f}"}
        notes.append("mean error: of |π̂′ − π′| over the runs, ± their standard deviation.")
    if any("published" in row for row in rows):
        columns |= {
            "published": "{published:.3f} ± {published_sd:.3f}",
            "difference, ± as sd": "({difference_as_sd:+.1f})",
        }
        columns |= {"difference, ± as standard error": "({difference_as_standard_error:+.1f})"}
        notes.append("difference: ours less published, in standard errors, the published ± read in two ways.")
    text = align_columns(list(columns), [[fill_format(form, row) for form in columns.values()] for row in rows])
    return "\n".join([text, "", *notes, *(summary_text(s) for s in summary(rows))])


def fill_format(form: str, row: dict[str, Any]) -> str:
    """Fill in the format; leave out the ± if the row has none, since one run has no standard deviation."""
    for part in (form, form.split(" ± ")[0]):
        with suppress(KeyError, TypeError):
            return part.format_map(row)
    return ""


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Summarise each experiment and method over its cells: the mean error, and how it compares with the published."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["experiment"], row["method"]].append(row)
    entries = []
    for (experiment, method), cells in groups.items():
        entry = {"experiment": experiment, "method": method, "cells": len(cells)}
        entry["repetitions"] = min(row["repetitions"] for row in cells)
        entry["mean_abs_error"] = round(float(np.mean([row["mean_abs_error"] for row in cells])), 5)
        comparable = [row for row in cells if "published" in row]
        if comparable:
            entry["published"] = round(float(np.mean([row["published"] for row in comparable])), 5)
            for reading in READINGS:
                entry[f"near_{reading}"] = sum(abs(row[f"difference_{reading}"]) <= FAR for row in comparable)
            entry["lower_than_published"] = sum(row["mean_abs_error"] < row["published"] for row in comparable)
        entries.append(entry)
    return entries


def summary_text(entry: dict[str, Any]) -> str:
    """Return the summary of a method as a sentence."""
    text = (
        f"{entry['experiment']} {entry['method']}: mean error {entry['mean_abs_error']:.4f} over {entry['cells']} cells"
    )
    if "published" in entry:
        text += (
            f", published {entry['published']:.4f}, lower in {entry['lower_than_published']}; within three standard "
            f"errors in {entry['near_as_sd']} (± as sd) or {entry['near_as_standard_error']} (± as standard error)"
        )
    return text
