"""The settings of the form, and the library's messages in the terms of the page.

Messages name files as the user does, and form fields in place of Python parameters and shell options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from priorshift.app.fields import (
    FieldError,
    read_count,
    read_range,
    read_ratio,
    read_share,
    read_value,
    show_share,
)
from priorshift.class_source import REST
from priorshift.errors import InputError
from priorshift.formatting import shell_option
from priorshift.inference.prior_knowledge import survey_prior
from priorshift.io.files import PARQUET, kind
from priorshift.io.targets import target_name
from priorshift.loading import InputOptions
from priorshift.methods.multiclass import MulticlassShift
from priorshift.methods.witness_shift import WitnessShift

ROLES = ("positive", "unlabeled", "target")
_CLASS_ROLE = re.compile(r"positive(-([2-9]|1[0-9]|20))?")  # of the files of up to 20 classes
_POPULATIONS = dict(zip(ROLES, ("known positives", "old population", "new population"), strict=True))
_BY_HINT = "; a column that only the new population has can be chosen under “Several new populations, distinguished by”"
PHRASES = {  # phrases of the library for Python, and what the page has in their place
    "; name one (sheet=…, --sheet NAME or ROLE=NAME)": "; save the one to use in a file of its own",
    "positive rows are also in the unlabeled table": "known positives are also in the old population’s file",
    "pass shared='identical' or the name of an id column (--identical-rows, --id-column)": (
        "say so under “Columns with a meaning”"
    ),
    "pass it as groups (--group-column) if it identifies groups, or pass an encoder that reads text, such as "
    "skrub's TableVectorizer()": (
        "choose it under “Rows that belong together have the same” if it identifies groups, or shorten its texts"
    ),
    "pass it as groups (--group-column)": "choose it under “Rows that belong together have the same”",
    ", which R (row.names = TRUE) and pandas (index=True) write": ", which R and pandas write",
    "Pass the same columns, or say what the others are: not features (drop=[…], --drop), weights, groups, audited "
    "classes or ids (--weight-column, --group-column, --audit-column, --id-column), or names of targets (by=…, --by)": (
        "Choose files with the same columns, or leave out those that are not features, or say under “Columns with a "
        "meaning” what they are"
    ),
    "positive and unlabeled are the same": "the known positives and the old population are the same",
    "shared='identical' finds": "taking rows with the same values for the same finds",
    "leave shared out": "choose another answer to “Which rows are in both of the first two files?”",
    "does not exist; check the path": "is no longer there; choose it again",
}
_CLASS_PHRASES = {  # the same with several classes
    "source_prior adds up to": "the shares of the classes in the old population add up to",
    "; pass rest=False if there is none": "; tick “Every class has a file” if there is none",
    "over the labelled classes, but less than 1 is expected": "but less than 1, which is 100%, is expected",
    "the labelled classes nor like the source's rest": "the files of classes nor like other rows of the old population",
    " and unlabeled are the same": " and the old population are the same",
    "pass different samples": "choose different files",
    "pass tables that fit there": "choose smaller files",
    "State those that are known from elsewhere": "Enter those that are known from elsewhere",
    "source priors": "shares in the old population",
    "source prior": "share in the old population",
}
_USES = {
    "shared": "an id", "groups": "a group", "audit": "one of checked rows", "weights": "a weight",
    "by": "what distinguishes the new populations", "dropped": "left out",
}  # fmt: skip
_TWO_USES = re.compile(rf"is both ({'|'.join(_USES)}) and ({'|'.join(_USES)});")
_PYTHON = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""  # a name as repr writes it
_SHELL = r"""(?:'[^']*'|"'"|[\w@%+=:,./-])+"""  # and as shlex.quote does
_DROP_OPTIONS = re.compile(rf" \(drop=\[{_PYTHON}\], --drop[ =]{_SHELL}\)")
_MISSING_OPTIONS = re.compile(rf"pass missing=\[[^\]]*\] \(--missing[ =]{_SHELL}\)")
_DATE_OPTIONS = re.compile(rf"pass columns={{{_PYTHON}: 'day-first'}} or 'month-first' \(.*?\)(?=\.$)")
_VERB_PASS = re.compile(r"(?<=; )pass (?=an? |the |ids)|(?<=, or )pass (?=an? |the )")
_VERB_DROP = re.compile(r"\bdrop (?=the |those )")
_LONGEST = 5000  # letters of a message that are read: patterns would take long on more, which nobody reads


def is_role(role: str) -> bool:
    """Return whether a file can have this role: one of ROLES, or that of a further class, such as "positive-2"."""
    return role in ROLES or _CLASS_ROLE.fullmatch(role) is not None


def with_file_names(
    message: str, paths: Mapping[str, Path], names: Mapping[str, str], classes: Mapping[str, str] | None = None
) -> str:
    """Replace stored paths in a message by the user's file names, with the population or class that each file holds.

    `paths`, `names` and the names of `classes` are by role; a single file is called "this file".
    """
    for role, path in paths.items():
        of_class = (classes or {}).get(role)
        holds = f"class {of_class}" if of_class else _POPULATIONS.get(role, "a class")
        display_name = "this file" if len(paths) == 1 else f"{names[role]} ({holds})"
        for argument in (role, "targets", f"class {of_class!r}"):  # the library writes "target (path)"
            message = message.replace(f"{argument} ({path})", display_name)
        message = message.replace(str(path), names[role])
    return message


def translate_message(
    message: str, paths: Mapping[str, Path], names: Mapping[str, str], classes: Mapping[str, str] | None = None
) -> str:
    """Rewrite a message of the library in the terms of the page.

    Stored `paths`, the user's `names` of files and the names of `classes`, if there are several, are by role.
    """
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    # the target has a column more than the source: it may be what distinguishes several targets
    target = f"target ({paths.get('target')}) "
    only_in_target = f", {target}also has " in message and f"positive ({paths.get('positive')}) " not in message
    message = _DROP_OPTIONS.sub("", with_file_names(message, paths, names, classes))
    message = _MISSING_OPTIONS.sub("empty these cells", message)
    message = _DATE_OPTIONS.sub("write them as in 2024-03-31", message)
    for phrase, translation in (PHRASES | _CLASS_PHRASES if classes else PHRASES).items():
        message = message.replace(phrase, translation)
    message = _TWO_USES.sub(lambda match: f"is both {_USES[match[1]]} and {_USES[match[2]]};", message)
    message = _VERB_PASS.sub("choose ", message)
    message = _VERB_DROP.sub("leave out ", message).replace(" drop it", " leave it out")
    if only_in_target:
        message = f"{message.removesuffix('.')}{_BY_HINT}."
    starts_with_file = message.startswith(tuple(names.values()))
    return message if starts_with_file else message[:1].upper() + message[1:]


_COLUMNS = {"weights": "--weight-column", "groups": "--group-column", "audit": "--audit-column", "by": "--by"}
_SHELL_OPTIONS = {
    "scenario": "--scenario", **_COLUMNS, "confidence": "--confidence", "threshold": "--threshold",
    "seed": "--random-state",
}  # fmt: skip
_DECISION_RULES: dict[str, Callable[[Any], float]] = {
    "cost_ratio": read_ratio,
    "top": partial(read_count, "top"),
    "precision": partial(read_share, "precision"),
    "recall": partial(read_share, "recall"),
}


class ClassFile(NamedTuple):
    """A class that the user has labelled: its name, and its share of the old population, None if it is unknown."""

    name: str
    share: float | tuple[float, float] | None


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
    rule: Mapping[str, float] = field(default_factory=dict)  # of decisions, as ShiftedClassifier.decide takes it
    classes: Mapping[str, ClassFile] = field(default_factory=dict)  # by role, if there are several
    rest: bool = True  # whether there may be rows of other classes

    @classmethod
    def from_json(cls, content: Any) -> Settings:
        """Check the settings that the page sent as JSON values, and return them; empty values are defaults."""
        if not isinstance(content, Mapping):
            raise InputError("the settings are not a JSON object; reload the page.")
        values = {name: value for name, value in content.items() if value not in (None, "")}
        if values.get("shared") == "identical":
            raise InputError("an id column cannot be called 'identical' here; rename it.")
        if values.get("shared") == {"identical": True}:
            values["shared"] = "identical"
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise InputError(f"the settings have {name!r}, which is not a setting; reload the page.")
            if (name in _COLUMNS or name == "shared") and not isinstance(value, str):
                raise InputError(f"the setting {name!r} is not the name of a column; reload the page.")
            if name in ("confidence", "threshold"):
                values[name] = read_share(name, value)
        drop = values.setdefault("drop", [])
        if not isinstance(drop, list) or not all(isinstance(name, str) for name in drop):
            raise InputError("the columns to leave out are not a list of names; reload the page.")
        scenario = values.get("scenario", cls.scenario)
        if scenario not in ("case-control", "censoring"):
            raise InputError("choose where the unlabelled rows come from.")
        if scenario == "censoring" and "shared" in values:
            raise InputError("if one table was divided, no row is in both files; remove the id column.")
        values |= {
            "prior": _read_prior(values.get("prior")), "drop": tuple(drop), "rule": _read_rule(values.get("rule")),
            "seed": read_count("seed", values.get("seed", cls.seed)), "classes": _read_classes(values.get("classes")),
        }  # fmt: skip
        _check_class_settings(values)
        settings = cls(**values)
        settings.input_options()  # refuses a column with two uses
        return settings

    def input_options(self) -> InputOptions:
        """Return the options for reading the files; refuse a column with two uses."""
        return InputOptions.from_arguments(
            shared=self.shared, audit=self.audit, weights=self.weights, groups=self.groups, drop=self.drop, by=self.by,
            stream=False,
        )  # fmt: skip

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the files that are needed."""
        labeled = tuple(self.classes) or ("positive",)
        return (*labeled, "unlabeled", "target") if self.rest else (*labeled, "target")

    @property
    def class_names(self) -> dict[str, str]:
        """Names of the classes by role; empty if there is one."""
        return {role: one.name for role, one in self.classes.items()}

    def class_estimator(self) -> MulticlassShift:
        """Return a new, unfitted estimator of the shares of several classes with these settings."""
        shares = {one.name: one.share for one in self.classes.values() if one.share is not None}
        scenario: Any = self.scenario
        return MulticlassShift(
            shares or None, rest=self.rest, scenario=scenario, confidence=self.confidence, random_state=self.seed
        )

    @property
    def source_prior(self) -> Any:
        """The source prior as estimators take it: None, a number, a range or the distribution by a survey's counts."""
        return survey_prior(**self.prior) if isinstance(self.prior, Mapping) else self.prior

    def estimator(self) -> WitnessShift:
        """Return a new, unfitted estimator of the target prior with these settings."""
        settings: dict[str, Any] = {"scenario": self.scenario, "confidence": self.confidence, "random_state": self.seed}
        return WitnessShift(self.source_prior, **settings)

    @property
    def entered(self) -> list[str]:
        """The numbers of the form as they were read, for the page."""
        words = []
        for one in self.classes.values():
            if one.share is not None:
                words.append(f"share of {one.name} in the old population: {show_share(one.share)}")
        if isinstance(self.prior, Mapping):
            words.append(f"old population: {self.prior['positives']:,} of {self.prior['rows']:,} had it")
        elif self.prior is not None:
            words.append(f"share of the old population: {show_share(self.prior)}")
        words.append(f"confidence: {show_share(self.confidence)}")
        if self.threshold is not None:
            words.append(f"share that matters: {show_share(self.threshold)}")
        return words

    def command(self, names: Mapping[str, str], name: str = "report") -> str:
        """Return the command "report", or "adapt" for the decisions; `names` are the files' names by role."""
        classes = self.class_names
        files = [("--positive", f"{classes[role]}={names[role]}") for role in classes]
        options = files + [(f"--{role}", names[role]) for role in self.roles if role not in classes]
        for one in self.classes.values():
            if one.share is not None:
                options.append(("--source-prior", f"{one.name}={_shell_share(one.share)}"))
        if isinstance(self.prior, Mapping):
            options.append(("--source-prior-counts", f"{self.prior['positives']}/{self.prior['rows']}"))
        elif self.prior is not None:
            options.append(("--source-prior", _shell_share(self.prior)))
        if self.shared not in (None, "identical"):
            options.append(("--id-column", str(self.shared)))
        for setting, option in _SHELL_OPTIONS.items():
            # the decisions do not depend on the threshold of the share
            if getattr(self, setting) != getattr(Settings, setting) and (name, setting) != ("adapt", "threshold"):
                options.append((option, str(getattr(self, setting))))
        options += [("--drop", column) for column in self.drop]
        if name == "adapt":
            options += [(f"--{rule.replace('_', '-')}", f"{value:.15g}") for rule, value in self.rule.items()]
            options += [] if classes else [("--classifier", "logistic")]
        words = [shell_option(option, value) for option, value in options]
        if not self.rest:
            words.append("--no-rest")
        if self.shared == "identical":
            words.append("--identical-rows")
        output = "report.html"
        if name == "adapt":
            is_parquet = kind(names["target"]) == PARQUET
            output = "decisions.parquet" if is_parquet else "decisions.csv"  # the command keeps the format
            words += [] if is_parquet else ["--safe-csv"]
        return " ".join([f"priorshift {name}", *words, f"-o {output}"])


def _shell_share(share: float | tuple[float, float]) -> str:
    """Write a share or a range as an option of the shell."""
    return "-".join(map(repr, share)) if isinstance(share, tuple) else repr(share)


def _read_classes(content: Any) -> dict[str, ClassFile]:
    """Check the names and shares of several classes that the page sent, by role; none for a single class."""
    if content is None:
        return {}
    if not isinstance(content, Mapping) or len(content) < 2 or not all(map(_CLASS_ROLE.fullmatch, content)):
        raise InputError("the classes are not complete; reload the page.")
    classes: dict[str, ClassFile] = {}
    for role, one in content.items():
        name, share = (one.get(key) for key in ("name", "share")) if isinstance(one, Mapping) else (None, None)
        name = target_name(name.strip()) if isinstance(name, str) else ""
        if not name:
            raise FieldError(f"{role}-name", "each class needs a name, such as flu.")
        if name == REST or name in [other.name for other in classes.values()]:
            reason = "which is what all other rows are called" if name == REST else "as another class is"
            raise FieldError(f"{role}-name", f"a class is called {name!r}, {reason}; rename it.")
        read = None if share in (None, "") else read_value(share, f"{role}-share")
        classes[role] = ClassFile(name, read)
    return classes


def _check_class_settings(values: Mapping[str, Any]) -> None:
    """Refuse settings that are for one class with several, and the other way round."""
    classes, rest = values["classes"], values.get("rest", True)
    if not isinstance(rest, bool) or (not rest and not classes):
        raise InputError("that every class has a file is a setting for several classes; reload the page.")
    if not classes:
        return
    if any(values.get(name) for name in ("prior", "rule", "threshold", "audit")):
        raise InputError("some settings are for a single class; reload the page.")
    if not rest and any(one.share is not None for one in classes.values()):
        raise InputError("shares of the old population are not used if every class has a file; empty them.")


def _read_prior(content: Any) -> Any:
    """Check the source prior that the page sent: None, {"value"}, {"low", "high"}, or {"positives", "rows"}.

    Return None, a number, a range (low, high), or a mapping of the counts of a survey.
    """
    match content:
        case None:
            return None
        case {"value": value}:
            return read_value(value)
        case {"low": low, "high": high}:
            return read_range(low, high)
        case {"positives": positives, "rows": rows}:
            counts = {"positives": read_count("positives", positives), "rows": read_count("rows", rows)}
            if counts["positives"] <= counts["rows"]:
                return counts
            raise FieldError(
                "positives", "the number of people who had it must not be larger than the number examined."
            )
    raise InputError(
        "the share of positives in the old population is not complete; fill it in, or choose “I do not know”."
    )


def _read_rule(content: Any) -> dict[str, float]:
    """Check the rule of decisions that the page sent: None, or one of _DECISION_RULES with its number."""
    if content is None:
        return {}
    if not isinstance(content, Mapping) or len(content) != 1 or not set(content) <= set(_DECISION_RULES):
        raise InputError("choose one rule of decisions.")
    [(name, value)] = content.items()
    return {name: _DECISION_RULES[name](value)}
