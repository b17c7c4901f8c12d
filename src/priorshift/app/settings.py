"""The settings of the form, and the library's messages in the terms of the page.

Messages name files as the user does, and form fields in place of Python parameters and shell options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.formatting import shell_option
from priorshift.inference.prior_knowledge import read_prior, survey_prior
from priorshift.io.parameters import CHOICES
from priorshift.loading import InputOptions
from priorshift.methods.witness_shift import WitnessShift

_WHO = {"positive": "known positives", "unlabeled": "old population", "target": "new population"}
_BY = (
    "; a month or a region, which the new population alone has, can be chosen there under “Several new populations, "
    "distinguished by”"
)
PHRASES = {  # phrases of the library for Python, and what the page has in their place
    ", or pass what pandas.read_excel returns": "",
    "positive rows are also in the unlabeled table": "known positives are also in the old population’s file",
    "pass shared='identical' or the name of an id column": "say so under “Columns with a meaning”",
    "pass the same columns, or drop those that are not features": (
        "the three files need the same columns (their order does not matter), so leave out those that only some have, "
        "under “Columns with a meaning”"
    ),
    "pass the same columns in the same order": "the three files need the same columns in the same order",
    "write the file without its index (index=False), or name the column": (
        "name the column, or write the file without row numbers"
    ),
    "drop the column": "leave the column out",
    "column was made, or drop it": "column was made, or leave it out",
    "drop or fill it": "leave it out, or fill it",
    "pass it as groups (--group-column) if it identifies groups, or pass an encoder that reads text, such as skrub's "
    "TableVectorizer()": (
        "choose it under “Rows that belong together have the same” if it identifies groups, or merge similar texts"
    ),
    "positive and unlabeled are the same": "the known positives and the old population are the same",
    "pass the labelled positives and a sample of the whole population": (
        "choose a file with the known positives alone, and one with a sample of the whole old population"
    ),
    "pass a sample of the new population as target": "choose a sample of the new population",
    "shared='identical' finds": "taking rows with the same values for the same finds",
    "pass ids, or leave shared out": "choose another answer to “Who is in both of the first two files?”",
    "or leave shared out": "or choose another answer to “Who is in both of the first two files?”",
    "does not exist; check the path": "is no longer there; choose it again",
}
_USES = {
    "shared": "an id", "groups": "a group", "audit": "one of checked rows", "weights": "a weight",
    "by": "what distinguishes the new populations", "dropped": "left out",
}  # fmt: skip
_TWO_USES = re.compile(rf"is both ({'|'.join(_USES)}) and ({'|'.join(_USES)});")
_PYTHON = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""  # a name as repr writes it
_SHELL = r"""(?:'[^']*'|"'"|[\w@%+=:,./-])+"""  # and as shlex.quote does
_OPTIONS = re.compile(rf" \(drop=\[{_PYTHON}\], --drop[ =]{_SHELL}\)")
_PASS = re.compile(r"(?<=; )pass (?=an? |the )|(?<=, or )pass (?=an? |the )")


def with_file_names(message: str, paths: Mapping[str, Path], names: Mapping[str, str]) -> str:
    """Name files as the user does, and hide where they are stored."""
    for role, path in paths.items():
        shown = "this file" if len(paths) == 1 else f"{names[role]} ({_WHO[role]})"
        for name in (role, "targets"):
            message = message.replace(f"{name} ({path})", shown)
        message = message.replace(str(path), names[role])
    return message


def translate_message(message: str, paths: Mapping[str, Path], names: Mapping[str, str]) -> str:
    """Translate a message of the library into the terms of the page; a single file is called "this file"."""
    of_target_alone = message.startswith(f"target ({paths.get('target')}) ") and " also has " in message
    message = with_file_names(message, paths, names)
    message = _OPTIONS.sub("", message)
    for phrase, plain in PHRASES.items():
        message = message.replace(phrase, plain)
    message = _TWO_USES.sub(lambda found: f"is both {_USES[found[1]]} and {_USES[found[2]]};", message)
    message = _PASS.sub("choose ", message)
    if of_target_alone:
        message = f"{message.removesuffix('.')}{_BY}."
    return message if message.startswith(tuple(names.values())) else message[:1].upper() + message[1:]


ROLES = ("positive", "unlabeled", "target")
IDENTICAL = {"identical": True}  # in place of the name of an id column
_NAMES = {"confidence": "confidence of the interval", "threshold": "share that matters"}  # on the page
_COLUMNS = {"weights": "--weight-column", "groups": "--group-column", "audit": "--audit-column", "by": "--by"}


@dataclass(frozen=True)
class Settings:
    """The settings of the form."""

    scenario: str = "case-control"
    prior: Any = None  # of the source: None, a number, two numbers, or a mapping of "positives" and "rows"
    shared: str | None = None  # "identical" or the name of an id column
    weights: str | None = None
    groups: str | None = None
    audit: str | None = None
    by: str | None = None
    drop: tuple[str, ...] = ()
    confidence: float = 0.95
    threshold: float | None = None
    seed: int = 0

    @classmethod
    def from_json(cls, content: Any) -> Settings:
        """Read and check what the page sent."""
        if not isinstance(content, Mapping):
            raise InputError("the settings are not a JSON object; reload the page.")
        unknown = set(content) - {*cls.__dataclass_fields__}
        if unknown:
            raise InputError(f"the settings have {sorted(unknown)[0]!r}, which is not a setting; reload the page.")
        shared = "identical" if content.get("shared") == IDENTICAL else _text(content, "shared")
        if content.get("shared") == "identical":
            raise InputError("an id column cannot be called 'identical' here; rename it.")
        drop = content.get("drop", [])
        if not isinstance(drop, list) or not all(isinstance(name, str) for name in drop):
            raise InputError("the columns to leave out are not a list of names; reload the page.")
        scenario = content.get("scenario", cls.scenario)
        if scenario not in CHOICES["scenario"]:
            raise InputError("choose where the unlabelled rows come from.")
        if scenario == "censoring" and shared is not None:
            raise InputError(
                "if one table was divided, no row is in both files; remove the id column, or choose “Separately”."
            )
        seed = content.get("seed", cls.seed)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise InputError("the seed must be a whole number from 0 to 4,294,967,295.")
        settings = cls(
            scenario=scenario,
            prior=_prior(content.get("prior")),
            shared=shared,
            weights=_text(content, "weights"),
            groups=_text(content, "groups"),
            audit=_text(content, "audit"),
            by=_text(content, "by"),
            drop=tuple(drop),
            confidence=_share(content, "confidence", cls.confidence),
            threshold=_share(content, "threshold", None),
            seed=seed,
        )
        settings.input_options()  # refuses a column with two uses
        return settings

    def input_options(self) -> InputOptions:
        """Return how the files are read."""
        return InputOptions.from_arguments(
            shared=self.shared, audit=self.audit, weights=self.weights, groups=self.groups, drop=self.drop, by=self.by,
            stream=False,
        )  # fmt: skip

    @property
    def source_prior(self) -> Any:
        """The source prior as estimators take it."""
        if isinstance(self.prior, Mapping):
            return survey_prior(**self.prior)
        return self.prior

    @property
    def known_prior(self) -> float | None:
        """The source prior as one number, for a classifier."""
        return None if self.prior is None else read_prior(self.source_prior).value

    def estimator(self) -> WitnessShift:
        """Return a new estimator of the target prior."""
        return WitnessShift(
            self.source_prior,
            scenario=self.scenario,  # type: ignore[arg-type]
            confidence=self.confidence,
            random_state=self.seed,
        )

    def command(self, names: Mapping[str, str]) -> str:
        """Return the shell command that writes the same report of files with these names."""
        options: list[tuple[str, str | None]] = [(f"--{role}", names[role]) for role in ROLES]
        if self.scenario != Settings.scenario:
            options.append(("--scenario", self.scenario))
        if isinstance(self.prior, Mapping):
            options.append(("--source-prior-counts", f"{self.prior['positives']}/{self.prior['rows']}"))
        elif self.prior is not None:
            ends = self.prior if isinstance(self.prior, tuple) else (self.prior,)
            options.append(("--source-prior", "-".join(map(repr, ends))))
        if self.shared is not None:
            options.append(("--identical-rows", None) if self.shared == "identical" else ("--id-column", self.shared))
        options += [(option, getattr(self, use)) for use, option in _COLUMNS.items() if getattr(self, use) is not None]
        options += [("--drop", column) for column in self.drop]
        if self.confidence != Settings.confidence:
            options.append(("--confidence", repr(self.confidence)))
        if self.threshold is not None:
            options.append(("--threshold", repr(self.threshold)))
        if self.seed != Settings.seed:
            options.append(("--random-state", str(self.seed)))
        words = (option if value is None else shell_option(option, value) for option, value in options)
        return " ".join(["priorshift report", *words, "-o report.html"])


def _text(content: Mapping[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is None or isinstance(value, str):
        return value or None
    raise InputError(f"the setting {name!r} is not the name of a column; reload the page.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _share(content: Mapping[str, Any], name: str, default: float | None) -> Any:
    value = content.get(name, default)
    if value is None and default is None:
        return None
    if not _is_number(value) or not 0 < value < 1:
        such = f"{100 * (default or 0.1):g}"
        raise InputError(f"the {_NAMES[name]} must be a number between 0 and 100%, such as {such}.")
    return float(value)


def _prior(content: Any) -> Any:
    """Read a number, a range or counts."""
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise InputError("choose what is known about the share of positives in the old population.")
    if content.keys() == {"value"} and _is_number(content["value"]):
        known: Any = float(content["value"])
        if not 0 < known < 1:
            raise InputError(
                "the share of the old population that has it must be between 0 and 100%, such as 20; if you do not "
                "know it, choose “I do not know”."
            )
    elif content.keys() == {"low", "high"} and _is_number(content["low"]) and _is_number(content["high"]):
        known = float(content["low"]), float(content["high"])
        if not 0 < known[0] < known[1] < 1:
            raise InputError(
                "the range that the share of the old population lies in must have its ends between 0 and 100%, the "
                "lower one first, such as 10 to 30."
            )
    elif content.keys() == {"positives", "rows"} and all(isinstance(count, int) for count in content.values()):
        if not 0 <= content["positives"] <= content["rows"] or content["rows"] == 0:
            raise InputError("the number that had it cannot be larger than the number examined.")
        return dict(content)
    else:
        raise InputError(
            "the share of positives in the old population is not complete; fill it in, or choose “I do not know”."
        )
    read_prior(known)
    return known
