"""Figures that documents quote, written into them from the lines.

A place is ``<!-- table: NAME -->``, the text, ``<!-- end -->``; what stands between is a table or a part of a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments.columns import markdown
from experiments.grids import EXPERIMENTS
from experiments.methods import LABEL
from experiments.studies import TRIALS
from priorshift.errors import InputError

_PLACE = re.compile(r"(<!-- table: (\S+) -->\s*)(.*?)(\s*<!-- end -->)", re.DOTALL)


def renew(path: Path, results: Path, *, write: bool) -> list[str]:
    """Names of the tables of a document that differ from the lines; `write` mends them."""
    text = path.read_text(encoding="utf-8")
    made = texts(results)
    places = _PLACE.findall(text)
    unclear = [name for _, name, content, _ in places if name not in made or "<!-- table:" in content]
    if unclear or len(places) != text.count("<!-- table:"):
        name = unclear[0] if unclear else "at the end"
        raise InputError(
            f"{path.name}: the table {name} has no <!-- end -->, or no finished study makes it; "
            f"there are {', '.join(made)}."
        )
    if write:
        replace_text(path, _PLACE.sub(lambda place: place[1] + made[place[2]] + place[4], text))
    return [name for _, name, content, _ in places if content != made[name]]


def replace_text(path: Path, text: str) -> None:
    """Beside the file, then renamed: all of it or nothing."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def texts(results: Path) -> dict[str, str]:
    """What each finished study gives documents to quote, by name."""
    made = {"default": _default(results)}
    for trial in TRIALS.values():
        lines = trial.lines(results)
        if len(lines) == len(trial.grid):
            made |= trial.texts(lines)
    return made


def _default(results: Path) -> str:
    """Mean errors of the default beside the paper's method, over the cells of five experiments."""
    methods = ("TCPU", "TCPU-unbiased", LABEL[ps.MixtureShift], "TCPU-true")
    header = ("", "TCPU + KM2 (the paper)", "unbiased TCPU + KM2", LABEL[ps.MixtureShift], "TCPU with the true π")
    rows = []
    for words, name in (
        ("UCI, the paper's protocol", "uci"),
        ("UCI, P and U disjoint, standardised by the source", "disjoint"),
        ("ten KEEL sets, the same", "keel"),
        ("thirteen KEEL sets never looked at, the same", "unseen"),
        ("synthetic and UCI data at π = 0.7 and 0.9, the same", "high"),
    ):
        cells = EXPERIMENTS[name].table(results)
        errors = [[cell["mean_abs_error"] for cell in cells if cell["method"] == method] for method in methods]
        rows.append((words, *(f"{np.mean(e):.4f}" if e else "" for e in errors)))
    return markdown(header, rows)
