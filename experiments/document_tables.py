"""Write the tables and figures that documents quote into them, from the committed lines.

A document marks the place by ``<!-- table: NAME -->`` and ``<!-- end -->``; the text between them is a table or a part
of a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

from experiments import default_tables
from experiments.studies import TRIALS
from priorshift.errors import InputError

_PLACE = re.compile(r"(<!-- table: (\S+) -->\s*)(.*?)(\s*<!-- end -->)", re.DOTALL)


def update_tables(path: Path, tables: dict[str, str], *, write: bool) -> list[str]:
    """Return the names of a document's tables that differ from `tables`, and replace those if `write`."""
    text = path.read_text(encoding="utf-8")
    known = table_names()
    places = _PLACE.findall(text)
    unclear = [name for _, name, content, _ in places if name not in known or "<!-- table:" in content]
    if unclear or len(places) != text.count("<!-- table:"):
        name = unclear[0] if unclear else "at the end"
        raise InputError(
            f"{path.name}: the table {name} has no <!-- end -->, or is unknown. Known tables are {', '.join(known)}."
        )
    if write:
        write_atomically(path, _PLACE.sub(lambda place: place[1] + tables.get(place[2], place[3]) + place[4], text))
    return [name for _, name, content, _ in places if content != tables.get(name)]


def write_atomically(path: Path, text: str) -> None:
    """Write a draft next to the file and rename it, so that the file is replaced completely or not at all."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def table_names() -> list[str]:
    """Return the names of all texts that documents may quote, whether their studies are complete or not."""
    return [*default_tables.QUOTED, *(name for trial in TRIALS.values() for name in trial.quoted)]


def table_texts(results: Path) -> dict[str, str]:
    """Return the texts that documents may quote, by name: of complete trials, and of the experiments' present lines."""
    texts = default_tables.texts(results)
    for trial in TRIALS.values():
        lines = trial.lines(results)
        if len(lines) == len(trial.grid):
            texts |= trial.texts(lines)
    return texts
