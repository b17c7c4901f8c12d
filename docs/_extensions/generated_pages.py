"""What is made when the site is built: the paper's cells from the lines of studies, the benchmarks, some pictures.

It is written to ``docs/_generated`` as Markdown and HTML, which pages include.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.document_tables import write_atomically
from experiments.grids import EXPERIMENTS
from experiments.text_tables import markdown_table

import priorshift as ps

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
BENCHMARKS = ROOT / "benchmarks" / "results"
_ERRORS = ("synthetic", "uci", "images", "size", "violation", "prior", "tau")
_TIMES = ("times", "times-by-size")
_NO_BENCHMARK = ("peers", "class_peers")  # have tables of their own
# what a field is called in a table
_WORDS = {
    "rows_each": "rows of each sample",
    "sklearn_totals_seconds": "scikit-learn, totals: seconds",
    "sklearn_margins_seconds": "scikit-learn, margins: seconds",
    "ratio_totals": "times faster, totals",
    "ratio_margins": "times faster, margins",
    "ratio": "ratio",
    "off_tight_solve": "off a tight solve",
    "peak_mb": "peak MB",
    "peak_megabytes": "peak MB",
    "old_megabytes": "old MB",
    "new_megabytes": "new MB",
    "source_prior": "π",
    "over_all_pairs": "seconds over those of all pairs",
    "binary_peak_mb": "binary peak MB",
    "binary_input_mb": "binary input MB",
    "classes_peak_mb": "classes peak MB",
    "classes_input_mb": "classes input MB",
    "here_s": "here, s",
    "there_s": "two workers, s",
}


def write_tables(folder: Path) -> list[Path]:
    """Write every table; those that are as they were keep their time, so that no page is built again for them."""
    made = {f"paper-{name}": errors(name) for name in _ERRORS} | {f"paper-{name}": seconds(name) for name in _TIMES}
    for path in sorted(BENCHMARKS.glob("*.*")):
        if path.stem not in _NO_BENCHMARK:
            made[f"benchmark-{path.stem}"] = benchmark(path)
    made["benchmark-peers"] = peers()
    made["benchmark-class_peers"] = class_peers()
    return [_write(folder / f"{name}.md", text) for name, text in made.items()]


def write_pictures(folder: Path) -> list[Path]:
    """Draw what the page of pictures shows, by the lines that it tells to type."""
    s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    estimate = ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0)
    paths = []
    for name, display in ps.plots.displays_of(estimate).items():
        drawn = f'<figure class="picture">\n{ps.plots.svg(display, name=name)}\n</figure>'
        paths.append(_write(folder / f"picture-{name}.html", drawn))
    return paths


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text + "\n":
        write_atomically(path, text + "\n")
    return path


def errors(name: str) -> str:
    """A row for each cell, a column for each method: its mean error, and the published one beside it."""

    def said(row: dict[str, Any]) -> str:
        ours = f"{row['mean_abs_error']:.3f}"
        return f"{ours} ({row['published']:.3f})" if row.get("published") is not None else ours

    return _cells(name, said)


def seconds(name: str) -> str:
    """The same of times."""

    def said(row: dict[str, Any]) -> str:
        ours, theirs = row["mean_seconds"], row.get("published_seconds")
        return f"{ours:.3f} ({theirs:.2f})" if theirs is not None else f"{ours:.3f}"

    return _cells(name, said)


def _cells(name: str, said: Any) -> str:
    experiment = EXPERIMENTS[name]
    rows = experiment.table(RESULTS)
    methods = sorted({row["method"] for row in rows}, key=lambda method: (method not in experiment.methods, method))
    named = {"data set": "dataset", "c": "label_frequency", "π": "source_prior", "π′": "target_prior", "rows": "rows"}
    if experiment.varies:
        named[experiment.varies] = "setting"
    named = {word: field for word, field in named.items() if len({row[field] for row in rows}) > 1}
    cells: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        cells.setdefault(tuple(row[field] for field in named.values()), {})[row["method"]] = said(row)
    table = [
        (*(_short(part) for part in cell), *(cells[cell].get(method, "") for method in methods))
        for cell in sorted(cells, key=lambda cell: tuple(map(_order, cell)))
    ]
    return markdown_table((*named, *methods), table)


def benchmark(path: Path) -> str:
    """Lines of one kind as one table; JSON lines of several tasks as one table each."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            lines: list[dict[str, Any]] = list(csv.DictReader(file))
        return _table(lines)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kinds: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        kinds.setdefault(tuple(line), []).append(line)
    return "\n\n".join(map(_table, kinds.values()))


def peers() -> str:
    """Estimators of the source prior beside those of others."""
    path = BENCHMARKS / "peers.jsonl"
    if not path.exists():
        return "There are no lines yet: `make peers` makes them."
    from benchmarks.peers.tables import tables

    return tables([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]).strip()


def class_peers() -> str:
    """Quantifiers with labels of every class beside those of others."""
    from benchmarks.class_peers import read_lines, table

    return table(read_lines(BENCHMARKS / "class_peers.csv"))


def _table(lines: list[dict[str, Any]]) -> str:
    names = [name for name in lines[0] if any(line.get(name) not in (None, "") for line in lines)]
    return markdown_table(
        [_words(name) for name in names], [[_short(line.get(name, "")) for name in names] for line in lines]
    )


def _words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.2e}"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value if value is not None else "")
    return f"{int(text):,}" if text.isdigit() and len(text) > 4 else text


def _order(value: Any) -> tuple[bool, Any]:
    return (False, value) if isinstance(value, str) else (True, -1.0 if value is None else float(value))


def _make(app: Any) -> None:
    folder = Path(app.srcdir) / "_generated"
    write_tables(folder)
    write_pictures(folder)


def _depends(app: Any, env: Any, added: Iterable[str], changed: Iterable[str], removed: Iterable[str]) -> list[str]:
    """Pages that include what was made."""
    return [name for name in ("paper", "benchmarks", "peers", "pictures") if name in env.found_docs]


def setup(app: Any) -> dict[str, bool]:
    """Make all of it before pages are read."""
    app.connect("builder-inited", _make)
    app.connect("env-get-outdated", _depends)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
