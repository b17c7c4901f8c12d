"""The page on monitoring: its queries, units and commands do what it says."""

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import priorshift as ps

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
LINE = {  # of the log
    "series": "", "batch": "", "time": None, "rows": 400, "status": "ok", "value": 0.1, "low": 0.05, "high": 0.15,
    "all_time_low": 0.0, "all_time_high": 0.3, "evidence_above": 0.1, "evidence_below": None, "evidence_change": 0.5,
    "evidence_assumption": 0.5, "alarms": [], "messages": [], "change": None, "change_low": None, "change_high": None,
    "change_since": None, "digest": "a", "replaced": False,
}  # fmt: skip


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def log(folder, changes):
    lines = [json.dumps(LINE | change) for change in changes]
    (folder / "series.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_queries_run_and_a_corrected_batch_counts_once(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    messages = ["It has changed.", "It is above."]
    alarmed = {"alarms": ["change", "level"], "messages": messages, "change_since": "2026-11-02"}
    log(tmp_path, [
        {"batch": "2026-11-01"}, {"batch": "2026-11-02"}, {"batch": "2026-11-03", **alarmed},
        {"batch": "2026-11-02", "value": 0.4, "replaced": True}, {"batch": "2026-11-01", "series": "north"},
    ])  # fmt: skip
    latest, alarms = (duckdb.sql(query).fetchall() for query in blocks("sql"))
    assert sorted((str(batch), share) for batch, _, share, *_ in latest) == [
        ("2026-11-01", 0.1), ("2026-11-02", 0.4), ("2026-11-03", 0.1),
    ]  # fmt: skip
    assert str({str(batch): since for batch, *_, since in latest}["2026-11-03"]) == "2026-11-02"
    assert [line[2:] for line in alarms] == [("change", "It has changed."), ("level", "It is above.")]
    log(tmp_path, [{"batch": "week 1"}, {"batch": "week 2"}])  # names that are no dates, and no alarm
    latest, alarms = (duckdb.sql(query).fetchall() for query in blocks("sql"))
    assert [batch for batch, *_ in latest] == ["week 2", "week 1"] and alarms == []


def test_the_log_has_the_columns_of_the_queries():
    outputs = pytest.importorskip("priorshift.monitoring.outputs")
    values = outputs._log_values(ps.MonitorPoint("a", 3)) | {"replaced": False}
    assert list(values) == list(LINE)


def test_the_units_of_systemd_are_complete():
    units = []
    for text in blocks("ini"):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str
        unit.read_string(text)
        units.append(unit)
    service, timer, alarm = units
    assert service["Unit"]["OnFailure"] == "share-watch-alarm.service" and service["Service"]["Type"] == "oneshot"
    assert timer["Timer"]["OnCalendar"] and timer["Install"]["WantedBy"] == "timers.target"
    assert "share-watch.service" in alarm["Service"]["ExecStart"]
    assert service["Service"]["ExecStart"] in PAGE.split("A script for both")[1].split("```")[0]


@pytest.mark.parametrize(("code", "words"), [(0, ""), (3, "act on the share"), (4, "not to be trusted"), (2, "again")])
def test_the_script_says_what_to_do_for_each_exit_code(tmp_path, code, words):
    (script,) = (text for text in blocks("sh") if text.startswith("#!"))
    (tmp_path / "priorshift").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "priorshift").chmod(0o755)
    script = script.replace("/opt/priorshift/bin", str(tmp_path)).replace("/var/lib/share-watch", str(tmp_path))
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == code and words in ran.stdout and bool(ran.stdout) == bool(code)


def test_the_commands_run_as_they_stand(tmp_path, monkeypatch, capsys):
    pytest.importorskip("priorshift.cli.watch")
    from priorshift.cli import main

    monkeypatch.chdir(tmp_path)
    s = ps.simulate.gaussian(0.1, 0.1, n_source=2000, n_target=300, shared=False, random_state=0)
    for name, rows in (("positive", s.positive), ("unlabeled", s.unlabeled), ("2026-11-16", s.target)):
        header = ",".join(f"x{k}" for k in range(rows.shape[1]))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=header, comments="")
    for line in blocks("sh")[0].splitlines():
        program, *arguments = shlex.split(line)
        assert program == "priorshift" and main(arguments) == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert {"fitted", "state.json", "series.jsonl", "share.prom", "chart.svg", "page.html"} <= written
