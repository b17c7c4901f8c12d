"""Draw the paper's figures in its layout, with a colour-blind safe palette and the truth as a red line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import priorshift as ps
from experiments.efficiency_limit import LIMIT
from experiments.grids import Experiment
from experiments.methods import LABEL, WITNESS_TRUE
from priorshift import simulate
from priorshift.errors import InputError
from priorshift.plots import BLUE, GREY, ORANGE

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

# The palette of Okabe and Ito; custom methods are black.
COLOURS = {
    "TCPU": BLUE,
    "TCPU-true": "#56B4E9",
    "TCPU-unbiased": "#009E73",
    LABEL[ps.WitnessShift]: "#E69F00",
    WITNESS_TRUE: "#F0E442",
    LABEL[ps.KM2LS]: ORANGE,
    LABEL[ps.DRPU]: "#CC79A7",
    LIMIT: GREY,
}
TRUTH = "#C00000"


def draw_experiment(experiment: Experiment, results: Path, folder: Path) -> list[Path]:
    """Draw one figure for each data set and label frequency, or one for the whole experiment; return the paths."""
    lines = experiment.lines(results)
    if not lines:
        raise InputError(f"{experiment.name} has no results yet. Run 'priorshift experiment run {experiment.name}'.")
    if experiment.name.startswith("times"):
        return [_save(_times(experiment, lines), folder, experiment.name)]
    if experiment.name == "size":
        return [_save(_by_size(lines), folder, "size")]
    if experiment.varies:
        names = sorted({line["dataset"] for line in lines})
        return [_save(_by_setting(experiment, _of(lines, dataset=d)), folder, f"{experiment.name}-{d}") for d in names]
    kinds = sorted({(line["dataset"], line["label_frequency"]) for line in lines})
    return [
        _save(
            _boxes(_of(lines, dataset=d, label_frequency=c), f"{d}, c = {c:g}"), folder, f"{experiment.name}-{d}-{c:g}"
        )
        for d, c in kinds
    ]


def _boxes(lines: list[dict[str, Any]], title: str) -> Figure:
    """Draw the estimates by target prior, with a panel for each source prior and a box for each method."""
    priors = sorted({line["source_prior"] for line in lines})
    methods = _methods(lines)
    figure, axes = plt.subplots(1, len(priors), figsize=(4.2 * len(priors), 3.4), sharey=True, squeeze=False)
    for ax, prior in zip(axes[0], priors, strict=True):
        targets = sorted({line["target_prior"] for line in lines})
        for k, target in enumerate(targets):
            ax.plot([k - 0.45, k + 0.45], [target, target], color=TRUTH, linewidth=1.2, zorder=3)
            for j, method in enumerate(methods):
                values = [x["estimate"] for x in _of(lines, source_prior=prior, target_prior=target, method=method)
                          if "estimate" in x]  # fmt: skip
                if values:
                    at = k + (j - (len(methods) - 1) / 2) * 0.8 / len(methods)
                    _box(ax, values, at, 0.6 / len(methods), COLOURS.get(method, "black"))
        ax.set_xticks(range(len(targets)), [f"{t:g}" for t in targets])
        ax.set_xlabel("target prior π′")
        ax.set_title(f"{title}, π = {prior:g}", fontsize=10)
        ax.set_ylim(0, 1)
    axes[0][0].set_ylabel("estimate")
    _legend(figure, methods)
    return figure


def _panels(lines: list[dict[str, Any]], x: str, y: str) -> tuple[Figure, list[tuple[Any, list[dict[str, Any]]]]]:
    """Return the figure, and a panel with its lines for each source prior (rows) and target prior (columns)."""
    priors, targets = (sorted({line[name] for line in lines}) for name in ("source_prior", "target_prior"))
    figure, axes = plt.subplots(len(priors), len(targets), figsize=(3 * len(targets), 2.4 * len(priors)), sharex=True,
                                sharey=True, squeeze=False)  # fmt: skip
    panels = []
    for row, prior in zip(axes, priors, strict=True):
        row[0].set_ylabel(y)
        for ax, target in zip(row, targets, strict=True):
            ax.set_title(f"π = {prior:g}, π′ = {target:g}", fontsize=9)
            panels.append((ax, _of(lines, source_prior=prior, target_prior=target)))
    for ax in axes[-1]:
        ax.set_xlabel(x)
    return figure, panels


def _by_setting(experiment: Experiment, lines: list[dict[str, Any]]) -> Figure:
    """Draw absolute errors by setting; the dashed line is the setting at which the method's assumptions hold."""
    settings = sorted({line["setting"] for line in lines})
    method = experiment.methods[0]
    valid = {"τ·p": 1.0}.get(experiment.varies or "", 0.0)
    figure, panels = _panels(lines, experiment.varies or "", "absolute error")
    for ax, some in panels:
        for k, setting in enumerate(settings):
            errors = [abs(x["estimate"] - x["target_prior"]) for x in _of(some, setting=setting, method=method)
                      if "estimate" in x]  # fmt: skip
            _box(ax, errors, k, 0.5, BLUE)
        if valid in settings:
            ax.axvline(settings.index(valid), color=GREY, linestyle="--", linewidth=1, zorder=0)
        ax.set_xticks(range(len(settings)), [f"{s:g}" for s in settings], fontsize=8)
    figure.suptitle(f"{method}: {lines[0]['dataset']}", fontsize=10)
    figure.tight_layout()
    return figure


def _by_size(lines: list[dict[str, Any]]) -> Figure:
    """Draw the mean error by number of rows."""
    methods = _methods(lines)
    figure, panels = _panels(lines, "rows", "mean absolute error")
    for ax, some in panels:
        for method in methods:
            errors: dict[int, list[float]] = {}
            for x in _of(some, method=method):
                error = abs(x["estimate"] - x["target_prior"]) if "estimate" in x else 1.0
                errors.setdefault(x["rows"], []).append(error)
            means = [np.mean(errors[n]) for n in sorted(errors)]
            ax.plot(sorted(errors), means, marker="o", markersize=3, color=COLOURS.get(method, "black"))
    _legend(figure, methods)
    return figure


def _times(experiment: Experiment, lines: list[dict[str, Any]]) -> Figure:
    """Draw seconds by data set or number of rows."""
    by = "rows" if experiment.name.endswith("size") else "dataset"
    values = sorted({line[by] for line in lines}, key=lambda v: (isinstance(v, str), v))
    figure, ax = plt.subplots(figsize=(7, 3.4))
    for j, method in enumerate(_methods(lines)):
        means = [np.mean([x["seconds"] for x in _of(lines, method=method, **{by: v})] or [np.nan]) for v in values]
        ax.plot(range(len(values)), means, "os^Dv"[j % 5], color=COLOURS.get(method, "black"), label=method)
    ax.set_yscale("log")
    ax.set_xticks(range(len(values)), [str(v) for v in values], rotation=0 if by == "rows" else 30)
    ax.set_ylabel("seconds")
    ax.set_title(experiment.title, fontsize=10)
    ax.legend(frameon=False)
    figure.tight_layout()
    return figure


def figure_1(folder: Path) -> Path:
    """Draw source and target under label shift, π = 0.2 and π′ = 0.8, in two dimensions."""
    s = simulate.gaussian(0.2, 0.8, 500, 500, dimension=2, distance=3, random_state=0)
    axes = ps.plots.label_shift(s.positive, s.unlabeled, s.target)
    return _save(np.ravel(axes)[0].figure, folder, "figure-1")


def figure_2(folder: Path) -> Path:
    """Draw the objective of 20 runs for π′ = 0.2, 0.5 and 0.8 (a = 3, 1000 rows); estimates lie in the grey band."""
    gamma = np.linspace(0, 1, 201)
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.2))
    for ax, target in zip(axes, (0.2, 0.5, 0.8), strict=True):
        curves, estimates = [], []
        for seed in range(20):
            s = simulate.gaussian(0.2, target, 1000, 1000, distance=3, random_state=seed)
            tcpu = ps.TCPU(0.2, statistic="plug-in", standardize=False).fit(s.X, s.y)
            curves.append(tcpu.objective(s.target, gamma))
            estimates.append(tcpu.estimate(s.target).raw)
        ax.axvspan(min(estimates), max(estimates), color=GREY, alpha=0.4, linewidth=0)
        ax.plot(gamma, np.transpose(curves), color=BLUE, linewidth=0.5, alpha=0.5)
        ax.axvline(target, color=TRUTH, linewidth=1.2)
        ax.set_title(f"π = 0.2, π′ = {target:g}", fontsize=10)
        ax.set_xlabel("γ")
    axes[0].set_ylabel("objective")
    figure.tight_layout()
    return _save(figure, folder, "figure-2")


PAPER: dict[str, Callable[[Path], Path]] = {"1": figure_1, "2": figure_2}


def _box(ax: Any, values: Sequence[float], position: float, width: float, colour: str) -> None:
    thin = {"linewidth": 0.6}
    ax.boxplot(values, positions=[position], widths=width, manage_ticks=False, patch_artist=True,
               boxprops={"facecolor": colour, "alpha": 0.6, **thin}, medianprops={"color": "black", "linewidth": 1},
               whiskerprops=thin, capprops=thin, flierprops={"marker": ".", "markersize": 2})  # fmt: skip


def _legend(figure: Figure, methods: Sequence[str]) -> None:
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS.get(m, "black"), alpha=0.6) for m in methods]
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    figure.legend(handles, methods, loc="upper center", ncols=len(methods), frameon=False)


def _methods(lines: list[dict[str, Any]]) -> list[str]:
    """Return the methods that have lines, in the order of their colours, custom methods last."""
    return [m for m in dict.fromkeys([*COLOURS, *(x["method"] for x in lines)]) if _of(lines, method=m)]


def _of(lines: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]


def _save(figure: Any, folder: Path, name: str) -> Path:
    """Write a draft and rename it, so that the file is replaced completely or not at all."""
    path, draft = folder / f"{name}.png", folder / f".{name}.png"
    figure.savefig(draft, dpi=90)
    plt.close(figure)
    draft.replace(path)
    return path
