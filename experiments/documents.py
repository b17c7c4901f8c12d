"""Figures that documents quote, written into them from the lines.

A place is ``<!-- table: NAME -->``, the text, ``<!-- end -->``; what stands between is a table or a part of a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments import honest
from experiments.columns import markdown
from experiments.grids import EXPERIMENTS
from experiments.limit import LIMIT
from experiments.methods import GIVEN, LABEL
from experiments.studies import TRIALS
from priorshift.errors import InputError

_PLACE = re.compile(r"(<!-- table: (\S+) -->\s*)(.*?)(\s*<!-- end -->)", re.DOTALL)


def renew(path: Path, made: dict[str, str], *, write: bool) -> list[str]:
    """Names of the tables of a document that differ from those `made`; `write` mends those that are there."""
    text = path.read_text(encoding="utf-8")
    there = names()
    places = _PLACE.findall(text)
    unclear = [name for _, name, content, _ in places if name not in there or "<!-- table:" in content]
    if unclear or len(places) != text.count("<!-- table:"):
        name = unclear[0] if unclear else "at the end"
        raise InputError(
            f"{path.name}: the table {name} has no <!-- end -->, or no study makes it; there are {', '.join(there)}."
        )
    if write:
        replace_text(path, _PLACE.sub(lambda place: place[1] + made.get(place[2], place[3]) + place[4], text))
    return [name for _, name, content, _ in places if content != made.get(name)]


def replace_text(path: Path, text: str) -> None:
    """Beside the file, then renamed: all of it or nothing."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def names() -> list[str]:
    """What documents may quote, whether its study is finished or not."""
    return ["default", *honest.QUOTED, *(name for trial in TRIALS.values() for name in trial.quoted)]


def texts(results: Path) -> dict[str, str]:
    """What each finished study gives documents to quote, by name; experiments give what is there of them."""
    made = {"default": _default(results)} | honest.texts(results)
    for trial in TRIALS.values():
        lines = trial.lines(results)
        if len(lines) == len(trial.grid):
            made |= trial.texts(lines)
    return made


def _default(results: Path) -> str:
    """Mean errors of the default beside the paper's methods; empty where a method lacks a cell of an experiment."""
    methods = {
        "TCPU": "TCPU (π by KM2, the paper)",
        LABEL[ps.KM2LS]: LABEL[ps.KM2LS],
        LABEL[ps.WitnessShift]: LABEL[ps.WitnessShift],
        "TCPU-true": "TCPU, π known",
        GIVEN: f"{LABEL[ps.WitnessShift]}, π known",
        LIMIT: "the limit, π known",
    }
    rows = []
    for words, name in (
        ("synthetic, the paper's protocol", "synthetic"),
        ("UCI, the paper's protocol", "uci"),
        ("UCI, P and U disjoint, standardised by the source", "disjoint"),
        ("ten KEEL sets, the same", "keel"),
        ("thirteen further KEEL sets, the same", "unseen"),
        ("synthetic and UCI data at π = 0.7 and 0.9, the same", "high"),
        ("synthetic, UCI and KEEL data at π from 0.01 to 0.95", "wide"),
    ):
        experiment = EXPERIMENTS[name]
        whole = len(experiment.sources) * len(experiment.targets)
        cells = experiment.table(results)
        errors = [[cell["mean_abs_error"] for cell in cells if cell["method"] == method] for method in methods]
        rows.append((words, *(f"{np.mean(e):.4f}" if len(e) == whole else "" for e in errors)))
    return markdown(("", *methods.values()), rows)
