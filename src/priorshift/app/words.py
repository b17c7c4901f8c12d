"""The library's sentences as the page says them: with the user's names of files, and without what is for a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_WHO = {"positive": "known positives", "unlabeled": "old population", "target": "new population"}
_BY = (
    "; a month or a region, which the new population alone has, can be chosen there under “Several new populations, "
    "told apart by”"
)
PHRASES = {  # what the library says to those who write Python, and what the page has for it
    ", or pass the data frame that pandas.read_excel makes of it": "",
    "positive rows also stand in the unlabeled table": "known positives also stand in the old population’s file",
    "pass shared='identical' or the name of an id column": "say so under “Columns with a meaning”",
    "pass the same columns (their order does not matter), or drop those that are not features": (
        "the three files need the same columns (their order does not matter), so leave out those that only some have, "
        "under “Columns with a meaning”"
    ),
    "pass the same columns in the same order": "the three files need the same columns in the same order",
    "write the file without its index (index=False), or name the column": (
        "name the column, or write the file without row numbers"
    ),
    "drop the column": "leave the column out",
    "column was made, or drop it": "column was made, or leave it out",
    "encoded; drop it, or find out": "encoded; leave it out, or find out",
    "pass it as groups (--group-column) if it says which rows belong together, join its texts to fewer, or pass an "
    "encoder that reads text, such as skrub's TableVectorizer()": (
        "choose it under “Rows that belong together have the same” if it says which do, or join its texts to fewer"
    ),
    "positive and unlabeled are the same": "the known positives and the old population are the same",
    "pass the labelled positives and a sample of the whole population": (
        "choose a file with the known positives alone, and one with a sample of the whole old population"
    ),
    "pass a sample of the new one as target": "choose a sample of the new one",
    "shared='identical' finds": "taking rows with the same values for the same finds",
    "pass ids, or leave shared out": "choose another answer to “Who stands in both of the first two files?”",
    "or leave shared out": "or choose another answer to “Who stands in both of the first two files?”",
    "does not exist; check the path": "is no longer there; choose it again",
}
_USES = {
    "shared": "an id", "groups": "a group", "audit": "one of rows that were looked up", "weights": "a weight",
    "by": "what tells the new populations apart", "dropped": "left out",
}  # fmt: skip
_TWO_USES = re.compile(rf"is both ({'|'.join(_USES)}) and ({'|'.join(_USES)});")
_PYTHON = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""  # a name as repr writes it
_SHELL = r"""(?:'[^']*'|"'"|[\w@%+=:,./-])+"""  # and as shlex.quote does
_OPTIONS = re.compile(rf" \(drop=\[{_PYTHON}\], --drop[ =]{_SHELL}\)")
_PASS = re.compile(r"(?<=; )pass (?=an? |the )|(?<=, or )pass (?=an? |the )")


def with_file_names(sentence: str, paths: Mapping[str, Path], names: Mapping[str, str]) -> str:
    """Name files as the user does: where they lie here is nobody's to know."""
    for role, path in paths.items():
        said = "this file" if len(paths) == 1 else f"{names[role]} ({_WHO[role]})"
        for name in (role, "targets"):
            sentence = sentence.replace(f"{name} ({path})", said)
        sentence = sentence.replace(str(path), names[role])
    return sentence


def for_the_page(sentence: str, paths: Mapping[str, Path], names: Mapping[str, str]) -> str:
    """Say it of files by their roles; of one alone, which the page has named, it says "this file"."""
    of_target_alone = sentence.startswith(f"target ({paths.get('target')}) ") and " besides, compared" in sentence
    sentence = with_file_names(sentence, paths, names)
    sentence = _OPTIONS.sub("", sentence)
    for phrase, plain in PHRASES.items():
        sentence = sentence.replace(phrase, plain)
    sentence = _TWO_USES.sub(lambda found: f"is both {_USES[found[1]]} and {_USES[found[2]]};", sentence)
    sentence = _PASS.sub("choose ", sentence)
    if of_target_alone:
        sentence = f"{sentence.removesuffix('.')}{_BY}."
    return sentence if sentence.startswith(tuple(names.values())) else sentence[:1].upper() + sentence[1:]
