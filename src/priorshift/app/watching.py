"""The job that adds a batch to a monitored series: from the files of "Add this month's file" to its page and state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorshift.app.fields import FieldError, read_share, read_value
from priorshift.app.settings import translate_message
from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.formatting import format_percent, shell_option
from priorshift.monitoring import Monitor, MonitorPoint

MODEL, STATE, PAGE = "model.priorshift", "state.json", "report.html"  # files of the result
FILES = ("positive", "unlabeled", "model", "state", "target")  # roles of the files
_NEEDED = ({"model", "target"}, {"model", "state", "target"}, {"positive", "unlabeled", "target"})  # one of these
_TABLES = ("positive", "unlabeled", "target")
_LONGEST_NAME = 200  # letters of the name of a batch
_PHRASES = {  # of the library for Python and the shell, and what the page has in their place
    "replace the old one (replace=True)": "choose “This file corrects the one of the same name”",
    "pass the file that watch --state wrote": "choose the file state.json of last time",
    "pass the model that it was started with": "choose the model with which it was started",
    "pass a file that save() or priorshift sketch wrote": "choose the file model.priorshift of last time",
}
# tone, mark and words of the latest batch
_STATES = (
    ("yes", "✓", "No alarm"),
    ("care", "!", "Alarm"),
    ("no", "✕", "Do not trust the number"),
)


@dataclass(frozen=True)
class WatchSettings:
    """The settings of the form."""

    name: str = ""  # of the batch; empty: that of its file
    prior: Any = None  # share in the old population: None, a number or a range
    level: float | None = None  # share above which there is an alarm
    replace: bool = False

    @classmethod
    def from_json(cls, content: Any) -> WatchSettings:
        """Check the settings that the page sent as JSON values; empty values are defaults."""
        if not isinstance(content, Mapping) or not set(content) <= set(cls.__dataclass_fields__):
            raise InputError("the settings are not those of this page; reload it.")
        values = {name: value for name, value in content.items() if value not in (None, "")}
        name, replace = values.get("name", ""), values.get("replace", False)
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable():
            raise FieldError("name", f"the name must be a text of up to {_LONGEST_NAME} letters, such as 2026-11.")
        if not isinstance(replace, bool):
            raise InputError("the settings are not those of this page; reload it.")
        prior = read_value(values["prior"]) if "prior" in values else None
        level = read_share("level", values["level"]) if "level" in values else None
        return cls(name.strip(), prior, level, replace)


def check_files(roles: set[str]) -> None:
    """Refuse a choice of files from which no batch can be added."""
    if roles not in _NEEDED:
        raise InputError(
            "choose this month’s file, and either the model of last time, with the state unless a new series starts, "
            "or the known positives and the old population, from which the model is fitted."
        )


@dataclass(frozen=True)
class WatchOrder:
    """The input of the job: files by role, settings, and the folder of the results."""

    paths: dict[str, Path]  # where the uploads are stored
    names: dict[str, str]  # what the user calls them
    settings: WatchSettings
    folder: Path

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> WatchOrder:
        """Read an order from JSON values: {"files": {role: {"path", "name"}}, "settings", "folder"}."""
        paths = {role: Path(file["path"]) for role, file in content["files"].items()}
        names = {role: file["name"] for role, file in content["files"].items()}
        return cls(paths, names, WatchSettings.from_json(content.get("settings", {})), Path(content["folder"]))

    def translate(self, message: str) -> str:
        """Rewrite a message of the library in the terms of the page, with the user's names of the files."""
        message = message.replace(f"{self.folder}{os.sep}", "")
        for role, path in self.paths.items():
            for called in (f"{role} ({path})", str(path)):
                message = message.replace(called, self.names[role])
        for phrase, translation in _PHRASES.items():
            message = message.replace(phrase, translation)
        return translate_message(message, {}, self.names)

    @property
    def batch_name(self) -> str:
        """Name of the batch: as entered, or that of its file without the ending."""
        return self.settings.name or self.names["target"].split(".")[0]

    def monitor(self) -> Monitor:
        """Load the monitor with its state, or fit it and start a series."""
        settings, paths = self.settings, self.paths
        if "model" not in paths:
            monitor = Monitor(settings.prior, level=settings.level)
            monitor.fit_samples(paths["positive"], paths["unlabeled"])
            monitor.save(self.folder / MODEL)
            return monitor
        if settings.prior is not None:
            raise FieldError("prior", "the share in the old population is part of the model; leave this field empty.")
        if "state" not in paths:
            return Monitor.load(paths["model"]).restart(level=settings.level)
        monitor = Monitor.load(paths["model"], state=paths["state"])
        if settings.level is not None and settings.level != monitor.level:
            stated = monitor.level if isinstance(monitor.level, float) else None
            began = "without a level" if stated is None else f"with a level of {format_percent(stated)}"
            raise FieldError(
                "level", f"the series began {began}; leave this field empty, or start a new series without the state."
            )
        return monitor

    @property
    def command(self) -> str:
        """The same for a shell."""
        first = ["priorshift watch", shell_option("--model", self.names.get("model", MODEL))]
        lines = []
        if "model" not in self.names:
            fit = [shell_option(f"--{role}", self.names[role]) for role in ("positive", "unlabeled")]
            prior = self.settings.prior
            if prior is not None:
                text = "-".join(f"{end:.15g}" for end in (prior if isinstance(prior, tuple) else (prior,)))
                fit.append(shell_option("--source-prior", text))
            lines.append(" ".join([*first, *fit]))
        add = [shell_option("--state", self.names.get("state", STATE)), shell_option("--target", self.names["target"])]
        add.append(shell_option("--name", self.batch_name))
        if self.settings.level is not None:
            add.append(shell_option("--level", f"{self.settings.level:.15g}"))
        if self.settings.replace:
            add.append("--replace")
        return "\n".join([*lines, " ".join([*first, *add, f"--report {PAGE}"])])


def watch(order: WatchOrder, limits: Limits) -> dict[str, Any]:
    """Add a batch; write the page, the state and a new model to the order's folder; return what the page shows."""
    for role in _TABLES:
        if role in order.paths:
            limits.check_file(order.paths[role], f"{role} ({order.paths[role]})")
    monitor = order.monitor()
    added = monitor.update(order.paths["target"], name=order.batch_name, replace=order.settings.replace)
    points = list(added.values()) if isinstance(added, dict) else [added]
    monitor.save_state(order.folder / STATE)
    monitor.report(order.folder / PAGE, command=order.command)
    tone, mark, words = _STATES[max(map(_severity, points))]
    return {
        "tone": tone, "mark": mark, "words": words, "lines": [line for point in points for line in _lines(point)],
        "batches": len({point.name for point in monitor.points}), "command": order.command,
        "files": [name for name in (PAGE, STATE, MODEL) if (order.folder / name).exists()],
    }  # fmt: skip


def _severity(point: MonitorPoint) -> int:
    """Return 0 for a quiet batch, 1 for one with an alarm, 2 if its estimate is not to be trusted."""
    return 2 if point.broke_assumption else int(bool(point.alarms))


def _lines(point: MonitorPoint) -> list[str]:
    """Return the estimate of a batch and its alarms as sentences."""
    first, *alarms = str(point).splitlines()
    return [f"{first}.", *(alarm.removeprefix("ALARM: ") for alarm in alarms)]
