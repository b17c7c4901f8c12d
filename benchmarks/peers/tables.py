"""The tables of the committed lines, in Markdown: peers from the smallest error to the largest."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.peers.draws import FEW, GAUSSIANS, GROUPS, MANY

Line = dict[str, Any]


def tables(lines: list[Line]) -> str:
    """All of them, with headings."""
    parts = {}
    for name, sets in GROUPS.items():
        own = [line for line in lines if line["dataset"] in sets]
        if own:
            parts[f"{name}, {_draws(own)} draws"] = _overall(own)
    real = [line for line in lines if line["dataset"] not in GAUSSIANS]
    parts["UCI tables and image features by source prior: mean error (bias)"] = _by(real, {
        "low, 0.01 and 0.05": lambda line: line["source_prior"] < 0.1,
        "middle, 0.2 and 0.5": lambda line: 0.1 <= line["source_prior"] <= 0.5,
        "high, 0.8 and 0.95": lambda line: line["source_prior"] > 0.5,
    })  # fmt: skip
    parts["The same by labelled positives: mean error (bias)"] = _by(real, {
        f"{MANY}, or half of a table's": lambda line: line["labels"] == MANY,
        f"{FEW}": lambda line: line["labels"] == FEW,
    })  # fmt: skip
    return "\n\n".join(f"**{heading}**\n\n{table}" for heading, table in parts.items()) + "\n"


def _draws(lines: list[Line]) -> int:
    return len({(line["dataset"], line["source_prior"], line["labels"], line["seed"]) for line in lines})


def _by_peer(lines: list[Line]) -> dict[str, list[Line]]:
    """From the smallest mean error to the largest; peers without an answer last."""
    found = {peer: [line for line in lines if line["peer"] == peer] for peer in PEERS}
    present = {peer: own for peer, own in found.items() if own}
    return dict(sorted(present.items(), key=lambda item: mean(map(abs, _errors(item[1]) or [9.0]))))


def _errors(lines: list[Line]) -> list[float]:
    return [line["value"] - line["share"] for line in lines if line["value"] is not None]


def _overall(lines: list[Line]) -> str:
    text = ["| | mean error | bias | largest error | median seconds | failures |", "|---|---|---|---|---|---|"]
    for peer, own in _by_peer(lines).items():
        errors = _errors(own)
        failures = sum(line["value"] is None for line in own) / len(own)
        times = [line["seconds"] for line in own if line["seconds"] is not None]
        cells = ["–"] * 4
        if errors:
            sizes = [abs(error) for error in errors]
            cells = [f"{mean(sizes):.3f}", f"{mean(errors):+.3f}", f"{max(sizes):.2f}", f"{median(times):.2f}"]
        text.append(f"| {peer} | {' | '.join(cells)} | {failures:.0%} |".replace("-", "−"))
    return "\n".join(text)


def _by(lines: list[Line], groups: dict[str, Callable[[Line], bool]]) -> str:
    text = [f"| | {' | '.join(groups)} |", f"|---|{'---|' * len(groups)}"]
    for peer, own in _by_peer(lines).items():
        cells = [_cell(_errors([line for line in own if belongs(line)])) for belongs in groups.values()]
        text.append(f"| {peer} | {' | '.join(cells)} |")
    return "\n".join(text)


def _cell(errors: list[float]) -> str:
    return f"{mean(map(abs, errors)):.3f} ({mean(errors):+.3f})".replace("-", "−") if errors else "–"
