"""Errors by cell, beside the published ones."""

from __future__ import annotations

import csv
from collections import defaultdict
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from experiments.grids import KEYS, Experiment, Source, Target, key, units, wanted
from experiments.store import read_lines
from priorshift.errors import InputError

PUBLISHED = Path(__file__).parent / "published"
PUBLISHED_REPETITIONS = 20
_NAMES = {"FASHION": "Fashion"}
_CELL = ("dataset", "label_frequency", "source_prior", "rows", "target_prior", "setting", "method")


def lines_of(experiment: Experiment, results: Path) -> list[dict[str, Any]]:
    """The lines of the experiment's own grid; a file may hold more repetitions than asked."""
    path = results / f"{experiment.name}.jsonl"
    lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        if not set(KEYS) - {"setting"} <= set(line):
            raise InputError(f"{path} holds a line that is no result, line {number}; remove it.")
    sources = set(experiment.sources)
    return [
        line
        for line in lines
        if Source(line["dataset"], line["label_frequency"], line["source_prior"], line["rows"]) in sources
        and Target(line["target_prior"], line.get("setting")) in experiment.targets
    ]


def progress(experiment: Experiment, results: Path) -> dict[str, float]:
    """The share of lines that are there, for each method."""
    path = results / f"{experiment.name}.jsonl"
    done = {key(line) for line in read_lines(path)} if path.exists() else set()
    shares = {}
    for method in experiment.methods:
        asked = [k for unit in units(experiment, (method,), experiment.repetitions) for k in wanted(unit)]
        shares[method] = sum(k in done for k in asked) / len(asked)
    return shares


def published() -> dict[tuple[Any, ...], tuple[float, float]]:
    """Mean absolute error and its standard deviation, by data set, c, π, π′ and method."""
    with (PUBLISHED / "published_errors.csv").open(newline="") as file:
        return {
            (
                _NAMES.get(row["dataset"], row["dataset"]),
                float(row["label_frequency"]),
                float(row["source_prior"]),
                float(row["target_prior"]),
                row["method"],
            ): (float(row["mean_abs_error"]), float(row["sd"]))
            for row in csv.DictReader(file)
        }


def published_seconds() -> dict[tuple[str, int, str], float]:
    """By data set, rows and method; times by size are of synthetic data."""
    found = {}
    with (PUBLISHED / "published_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["dataset"], 2000, row["method"]] = float(row["seconds"])
    with (PUBLISHED / "published_times_by_size.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found["Synthetic", int(row["n"]), row["method"]] = float(row["seconds"])
    return found


def table(experiment: Experiment, results: Path) -> list[dict[str, Any]]:
    """A row for each cell that has lines; a missing estimate counts as an error of 1, which it cannot exceed."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines_of(experiment, results):
        cells[tuple(line.get(name) for name in _CELL)].append(line)
    known = published()
    rows = []
    for cell, lines in cells.items():
        row = dict(zip(_CELL, cell, strict=True))
        errors = [abs(line["estimate"] - line["target_prior"]) if "estimate" in line else 1.0 for line in lines]
        n, sd = len(errors), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
        row |= {"experiment": experiment.name, "mean_abs_error": round(float(np.mean(errors)), 5), "sd": round(sd, 5)}
        row |= {"repetitions": n, "mean_seconds": round(float(np.mean([line["seconds"] for line in lines])), 4)}
        ends = [line["interval"] for line in lines if "interval" in line and None not in line["interval"]]
        covers = [low <= row["target_prior"] <= high for low, high in ends]
        row["coverage"] = round(float(np.mean(covers)), 4) if covers else None
        there = known.get(
            (row["dataset"], row["label_frequency"], row["source_prior"], row["target_prior"], row["method"])
        )
        if there is not None and experiment.name in ("uci", "images"):
            error = sqrt(sd**2 / n + there[1] ** 2 / PUBLISHED_REPETITIONS)
            row |= {"published": there[0], "published_sd": there[1]}
            row["difference_in_standard_errors"] = round((row["mean_abs_error"] - there[0]) / max(error, 1e-12), 2)
        if experiment.name.startswith("times"):
            row["published_seconds"] = published_seconds().get((row["dataset"], row["rows"], row["method"]))
        rows.append(row)
    return sorted(rows, key=lambda r: tuple(str(r[name]) for name in _CELL))


def words(rows: list[dict[str, Any]]) -> str:
    """The rows as text, with a summary for each experiment and method."""
    said = []
    for row in rows:
        setting = "" if row["setting"] is None else f" [{row['setting']:g}]"
        text = (
            f"{row['dataset']:10} c={row['label_frequency']:<4} π={row['source_prior']:<3} π′={row['target_prior']:<3} "
            f"n={row['rows']}{setting} {row['method']:14} {row['mean_abs_error']:.3f} ± {row['sd']:.3f}"
        )
        if "published_seconds" in row:
            text = text.rsplit(" ", 3)[0] + f" {row['mean_seconds']:.3f} s"
            text += f"   published {row['published_seconds']:.3f} s" if row["published_seconds"] else ""
        if "published" in row:
            text += f"   published {row['published']:.3f} ± {row['published_sd']:.3f}"
            text += f" ({row['difference_in_standard_errors']:+.1f})"
        said.append(text)
    return "\n".join([*said, "", *(summary_words(s) for s in summary(rows))])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over all cells of an experiment and method: mean error, and how it compares with the published figures."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["experiment"], row["method"]].append(row)
    found = []
    for (experiment, method), cells in groups.items():
        entry = {"experiment": experiment, "method": method, "cells": len(cells)}
        entry["repetitions"] = min(row["repetitions"] for row in cells)
        entry["mean_abs_error"] = round(float(np.mean([row["mean_abs_error"] for row in cells])), 5)
        beside = [row for row in cells if "published" in row]
        if beside:
            entry["published"] = round(float(np.mean([row["published"] for row in beside])), 5)
            gaps = [abs(row["difference_in_standard_errors"]) for row in beside]
            entry["within_three_standard_errors"] = int(np.sum(np.array(gaps) <= 3))
            entry["lower_than_published"] = sum(row["mean_abs_error"] < row["published"] for row in beside)
        found.append(entry)
    return found


def summary_words(entry: dict[str, Any]) -> str:
    said = (
        f"{entry['experiment']} {entry['method']}: mean error {entry['mean_abs_error']:.4f} over {entry['cells']} cells"
    )
    if "published" in entry:
        said += (
            f", published {entry['published']:.4f}; within three standard errors in "
            f"{entry['within_three_standard_errors']}, lower in {entry['lower_than_published']}"
        )
    return said
