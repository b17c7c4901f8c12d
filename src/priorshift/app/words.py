"""The library's sentences as the page says them: with the user's names of files, and without what is for a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_WHO = {"positive": "known positives", "unlabeled": "old population", "target": "new population"}
PHRASES = {  # what the library says to those who write Python, and what the page has for it
    ", or pass the data frame that pandas.read_excel makes of it": "",
    "pass shared='identical' or the name of an id column": "say so under “Columns with a meaning”",
    "pass the same columns (their order does not matter), or drop those that are not features": (
        "the three files need the same columns (their order does not matter), so leave out those that only some have, "
        "under “Columns with a meaning”"
    ),
    "write the file without its index (index=False), or name the column": (
        "name the column, or write the file without row numbers"
    ),
}
_OPTIONS = re.compile(r" \(drop=\[.*?\], --drop .*?\)")


def for_the_page(sentence: str, paths: Mapping[str, Path], names: Mapping[str, str]) -> str:
    """Say it of files by their roles; of one alone, which the page has named, it says "this file"."""
    for role, path in paths.items():
        said = "this file" if len(paths) == 1 else f"{names[role]} ({_WHO[role]})"
        for name in (role, "targets"):
            sentence = sentence.replace(f"{name} ({path})", said)
        sentence = sentence.replace(str(path), names[role])
    for phrase, plain in PHRASES.items():
        sentence = sentence.replace(phrase, plain)
    sentence = _OPTIONS.sub("", sentence)
    return sentence if sentence.startswith(tuple(names.values())) else sentence[:1].upper() + sentence[1:]
