"""`priorshift watch`: a model, batches over time, and a state that survives what happens to processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.monitoring.outputs import SeriesLog, write_metrics
from priorshift.monitoring.state_file import locked, read_state

PRIOR = 0.2
SUPPORT = Path(__file__).parents[1] / "support"


def table(share, count, seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    frame = pd.DataFrame(rng.normal(size=(count, 3)) + 1.5 * positive[:, None], columns=["age", "pulse", "weight"])
    return frame.assign(region=np.where(np.arange(count) % 2, "north", "south"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The source, batches, and a model without and with series."""
    folder = tmp_path_factory.mktemp("tables")
    source = {"positive": table(1.0, 150, 0), "unlabeled": table(PRIOR, 600, 1)}
    labelled = [frame.assign(known=k) for frame, k in zip(source.values(), ("yes", "no"), strict=True)]
    drift = table(PRIOR, 600, 2).assign(pulse=lambda frame: 4 * frame["pulse"])
    batches = {"quiet": table(PRIOR, 200, 3), "changed": table(0.8, 300, 4), "drift": drift}
    frames = source | batches | {"source": pd.concat(labelled), "none": drift.iloc[:0]}
    frames |= {f"history/{k}": table(PRIOR, 100, 10 + k) for k in range(3)}
    (folder / "history").mkdir()
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "history" / "notes.txt.bak").write_text("not a table")
    samples = folder / "positive.csv", folder / "unlabeled.csv"
    ps.Monitor(PRIOR, level=0.5, drop=["region"]).fit_samples(*samples).save(folder / "fitted")
    ps.Monitor(PRIOR, level=0.5, by="region").fit_samples(*samples).save(folder / "regions")
    ps.Monitor(0.3, drop=["region"]).fit_samples(*samples).save(folder / "other")
    return folder


@pytest.fixture
def watch(tables, tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def watch(words, model="fitted"):
        code = main(["watch", "--model", str(tables / model), *words.replace("@", f"{tables}/").split()])
        said = capsys.readouterr()
        return code, said.out, said.err

    return watch


STATE = "--state state.json"


def test_a_quiet_batch_is_one_line_and_a_new_state_is_announced(watch, tmp_path):
    code, out, err = watch(f"{STATE} --target @quiet.csv --name monday")
    assert code == 0 and re.fullmatch(r"monday: [\d.]+% positive, 95% interval .* \(200 rows\)\n", out)
    assert "state.json did not exist" in err and (tmp_path / "state.json").exists()
    code, out, err = watch(f"{STATE} --target @history/0.csv")
    assert code == 0 and out.startswith("0: ") and err == ""


def test_exit_codes_say_alarm_and_broken_assumption_until_it_is_acknowledged(watch):
    code, out, _ = watch(f"{STATE} --target @changed.csv")
    assert code == 3 and out.count("\nALARM: ") == 2
    code, out, _ = watch(f"{STATE} --target @drift.csv --json")
    assert code == json.loads(out)["exit_code"] == 4
    assert watch(f"{STATE} --target @none.csv")[0] == 4
    code, out, err = watch(f"{STATE} --target @changed.csv")  # counted before it broke
    assert code == 4 and "counted before" in out and "--acknowledge" in err
    code, out, err = watch(f"{STATE} --acknowledge --json")
    assert code == 0 and json.loads(out)["since"] == {"": "drift"} and "'drift'" in err
    assert watch(f"{STATE} --target @none.csv --name later")[0] == 0
    assert "nothing to acknowledge" in watch(f"{STATE} --acknowledge")[2]


def test_the_same_batch_again_changes_nothing_and_has_the_same_exit_code(watch, tmp_path):
    assert watch(f"{STATE} --target @changed.csv")[0] == 3
    before = (tmp_path / "state.json").read_bytes()
    code, out, _ = watch(f"{STATE} --target @changed.csv")
    assert code == 3 and "counted before" in out and "ALARM" in out
    assert (tmp_path / "state.json").read_bytes() == before
    code, _, err = watch(f"{STATE} --target @quiet.csv --name changed")
    assert code == 2 and "--replace" in err and "replace=True" not in err
    assert (tmp_path / "state.json").read_bytes() == before
    assert watch(f"{STATE} --target @quiet.csv --name changed --replace")[0] == 0


def test_rules_are_those_of_the_first_run(watch):
    rules = "--level 0.1-0.9 --run-length 50 --false-alarm 1% --reference 2 --confidence 0.9"
    assert watch(f"{STATE} --target @quiet.csv {rules}")[0] == 0
    assert watch(f"{STATE} --target @history/0.csv {rules}")[0] == 0
    assert watch(f"{STATE} --target @history/1.csv")[0] == 0
    settings = read_state("state.json")["settings"]
    assert (settings["low"], settings["high"], settings["alpha"]) == (0.1, 0.9, 0.01)
    assert (settings["run_length"], settings["reference"], settings["confidence"]) == (50, 2, 0.9)
    for other in ("--level 0.9", "--run-length 51", "--false-alarm 0.05", "--reference source", "--confidence 0.95"):
        code, out, err = watch(f"{STATE} --target @history/2.csv {other}")
        assert code == 2 and out == "" and f"{other.split()[0]} is {other.split()[1]}, but" in err


@pytest.mark.parametrize(
    ("level", "low", "high"), [("5%", None, 0.05), ("0.02-0.05", 0.02, 0.05), ("0.02-1", 0.02, None)]
)
def test_a_level_is_an_upper_one_a_range_or_a_lower_one(level, low, high, watch):
    assert watch(f"{STATE} --target @none.csv --level {level}")[0] == 0
    settings = read_state("state.json")["settings"]
    assert (settings["low"], settings["high"]) == (low, high)


def test_a_replay_equals_the_batches_one_by_one_and_continues(watch, tmp_path, tables):
    for k in range(3):
        watch(f"--state single.json --target @history/{k}.csv")
    assert watch(f"{STATE} --target @history/0.csv")[0] == 0  # as if it was interrupted after one batch
    code, out, err = watch(f"{STATE} --replay @history --log log.jsonl")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3 and "counted before" in lines[0] and "counted" not in lines[1]
    assert "3 batches replayed" in err and len(Path("log.jsonl").read_text().splitlines()) == 3
    assert (tmp_path / "state.json").read_bytes() == (tmp_path / "single.json").read_bytes()
    code, out, _ = watch(f"{STATE} --replay @changed.csv @quiet.csv --json")
    codes = [json.loads(line)["exit_code"] for line in out.splitlines()]
    assert codes[0] == 3 and code == max(codes)


def test_a_replay_that_adds_nothing_leaves_the_state_alone(watch, tables):
    assert watch(f"{STATE} --target @quiet.csv")[0] == 0
    before = Path("state.json").stat().st_ino  # a state is written as a new file
    assert watch(f"{STATE} --replay @quiet.csv @nowhere.csv")[0] == 2
    assert Path("state.json").stat().st_ino == before


def test_a_replay_keeps_the_batches_before_a_file_that_cannot_be_read(watch, tables):
    code, out, err = watch(f"{STATE} --replay @quiet.csv @nowhere.csv")
    assert code == 2 and out.startswith("quiet: ") and "nowhere" in err
    assert [point.name for point in ps.Monitor.load(tables / "fitted", "state.json").points] == ["quiet"]


def test_a_log_has_each_batch_once_and_corrected_ones_again(watch, tmp_path):
    log = tmp_path / "series.jsonl"

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines()]

    watch(f"{STATE} --target @quiet.csv")  # without a log, as if the process was killed before
    watch(f"{STATE} --target @changed.csv --time noon --log series.jsonl")
    assert [line["batch"] for line in lines()] == ["quiet", "changed"]
    assert lines()[1]["time"] == "noon" and set(lines()[1]["alarms"]) == {"level", "change"}
    assert lines()[1]["change_low"] < lines()[1]["change"] < lines()[1]["change_high"]
    log.write_bytes(log.read_bytes() + b'{"series": "", "batch": "to')  # what a killed process may leave
    watch(f"{STATE} --target @changed.csv --log series.jsonl")
    watch(f"{STATE} --target @quiet.csv --log series.jsonl")
    assert [line["batch"] for line in lines()] == ["quiet", "changed"]
    watch(f"{STATE} --target @history/0.csv --name quiet --replace --log series.jsonl")
    watch(f"{STATE} --target @quiet.csv --replace --log series.jsonl")
    assert [(line["batch"], line["replaced"]) for line in lines()[2:]] == [("quiet", True)] * 2
    assert lines()[3]["value"] == lines()[0]["value"] != lines()[2]["value"]


def test_a_file_that_is_no_log_is_refused_before_the_batch_counts(watch, tmp_path, tables):
    for content in (b"precious", b'{"a": 1}\n', b"[1]\n"):
        (tmp_path / "mine").write_bytes(content)
        code, _, err = watch(f"{STATE} --target @quiet.csv --log mine")
        assert code == 2 and "not a log" in err and (tmp_path / "mine").read_bytes() == content
    assert not (tmp_path / "state.json").exists()


def samples(text):
    """Parse the text format of Prometheus: values by name and labels, for lines after their HELP and TYPE."""
    values, known = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            name, kind = line.split()[2:]
            assert kind == "gauge" and f"# HELP {name} " in text
            known.add(name)
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
            assert name in known
            values[name, labels] = float(value)
    return values


def test_metrics_are_those_of_the_last_batch_of_each_series(watch, tmp_path):
    watch(f"{STATE} --target @quiet.csv --metrics share.prom", model="regions")
    code, out, _ = watch(f"{STATE} --target @changed.csv --metrics share.prom --json", model="regions")
    assert code == 3
    values = samples((tmp_path / "share.prom").read_text())
    for point in json.loads(out)["points"]:
        labels = f'series="{point["series"]}"'
        assert values["priorshift_share", labels] == point["value"]
        assert values["priorshift_share_low", labels] == point["interval"]["low"]
        assert values["priorshift_share_all_time_high", labels] == point["all_time"]["high"]
        assert values["priorshift_rows", labels] == 150 and values["priorshift_batches", labels] == 2
        assert values["priorshift_evidence", f'{labels},rule="change"'] == point["evidence"]["change"]
        assert values["priorshift_evidence_limit", f'{labels},rule="change"'] == 2000
        raised = {alarm["rule"] for alarm in point["alarms"]}
        for rule in ("level", "change", "assumption"):
            assert values["priorshift_alarm", f'{labels},rule="{rule}"'] == (rule in raised)


def test_an_empty_batch_has_no_share_and_labels_are_escaped(tables, tmp_path):
    monitor = ps.Monitor.load(tables / "regions").restart(series=['a"\\\nb'])
    monitor.update(pd.read_csv(tables / "none.csv"), name="nothing")
    write_metrics(monitor, tmp_path / "share.prom")
    values = samples((tmp_path / "share.prom").read_text())
    assert values["priorshift_rows", 'series="a\\"\\\\\\nb"'] == 0
    assert not any(name == "priorshift_share" for name, _ in values)


def test_a_model_is_fitted_by_the_same_command_and_not_overwritten(watch, tmp_path, tables, capsys):
    fit = "watch --model own --source @source.csv --label-column known --positive-label yes --source-prior 0.2 --drop region"
    words = fit.replace("@", f"{tables}/").split()
    assert main(words) == 0 and "150 positive and 600 unlabelled rows" in capsys.readouterr().out
    own = ps.Monitor.load("own")
    fitted = ps.Monitor.load(tables / "fitted")
    quiet = tables / "quiet.csv"
    assert own.update(quiet, name="a").value == pytest.approx(fitted.update(quiet, name="a").value)
    assert main(words) == 2 and "--replace" in capsys.readouterr().err
    assert main([*words, "--replace", "--level", "0.1-0.4"]) == 0
    printed, shares = capsys.readouterr().out, ps.Monitor.load("own").alarm_shares
    assert shares["below"] < 0.1 and shares["above"] > 0.4
    for side, level, more in (("above", 40, "more"), ("below", 10, "less")):
        assert (
            f"An alarm {side} {level}% is possible for a share of about {100 * shares[side]:.3g}% or {more};" in printed
        )
    assert main([*words, "--replace", "--level", "0.4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alarm_shares"].keys() == {"above"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--target @quiet.csv", "--state is missing"),
        (STATE, "pass --target"),
        (f"{STATE} --target @quiet.csv --replay @history", "remove one of them"),
        (f"{STATE} --replay @history --name a", "--name is for one batch"),
        (f"{STATE} --replay @history @history/0.csv", "both named '0'"),
        (f"{STATE} --target @quiet.csv --source-prior 0.1", "--source-prior is a setting of the model"),
        (f"{STATE} --target @quiet.csv --log state.json", "name the same file"),
        (f"{STATE} --target @quiet.csv --metrics @quiet.csv", "is one of the tables"),
        (f"{STATE} --target @source.csv", "fit the model with --drop"),
        (f"{STATE} --target @quiet.csv --level 1.5", "share"),
        (f"{STATE} --target @quiet.csv --run-length 0", "--run-length is 0"),
        (f"{STATE} --target @positive.csv --positive @positive.csv", "is for batches"),
        ("--state @fitted.json/none --target @quiet.csv", "folder"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence_and_writes_nothing(words, message, watch, tmp_path, capsys):
    try:
        code, out, err = watch(words)
    except SystemExit as ended:  # of the parser
        code, (out, err) = ended.code, capsys.readouterr()
    assert code == 2 and out == "" and message in err
    assert [path.name for path in tmp_path.iterdir() if path.name != "state.json.lock"] == []


def test_a_state_of_another_model_or_a_damaged_one_is_refused(watch, tmp_path):
    watch(f"{STATE} --target @quiet.csv")
    code, _, err = watch(f"{STATE} --target @changed.csv", model="other")
    assert code == 2 and "another model" in err
    content = (tmp_path / "state.json").read_bytes()
    (tmp_path / "state.json").write_bytes(content.replace(b'"rows":[200]', b'"rows":[201]'))
    code, _, err = watch(f"{STATE} --target @changed.csv")
    assert code == 2 and "damaged" in err


# ---- processes


def command(tables, *words):
    return [sys.executable, "-m", "priorshift", "watch", "--model", str(tables / "fitted"), *map(str, words)]


def test_a_second_writer_is_refused(tables, tmp_path):
    state = tmp_path / "state.json"
    words = command(tables, "--state", state, "--target", tables / "quiet.csv")
    with locked(state):
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "another process" in refused.stderr and not state.exists()
    files = [tables / f"{name}.csv" for name in ("quiet", "changed")]
    both = [
        subprocess.Popen(
            command(tables, "--state", state, "--target", file), stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for file in files
    ]
    codes = [(process.communicate(), process.returncode)[1] for process in both]
    points = ps.Monitor.load(tables / "fitted", state).points
    assert len(points) == sum(code != 2 for code in codes) >= 1  # each was counted, or refused


def test_ctrl_c_in_a_replay_leaves_a_state_that_continues(tables, tmp_path):
    if os.name == "nt":
        pytest.skip("signals differ on Windows")
    many = tmp_path / "many"
    many.mkdir()
    for k in range(400):
        (many / f"{k:03d}.csv").write_bytes((tables / "history" / f"{k % 3}.csv").read_bytes())
    words = command(tables, "--state", tmp_path / "state.json", "--replay", many)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "state.json").exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "Run the same command" in err
    points = ps.Monitor.load(tables / "fitted", tmp_path / "state.json").points
    assert [point.name for point in points] == [f"{k:03d}" for k in range(len(points))] and 0 < len(points) < 400


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_process_leaves_the_state_before_or_after_its_batch(tmp_path):
    script = [sys.executable, str(SUPPORT / "watch_kills.py"), str(tmp_path), "--moments", "4"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(script, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["killed"] == 4


def test_a_log_without_new_batches_is_not_written(tables, tmp_path):
    monitor = ps.Monitor.load(tables / "fitted")
    monitor.update(tables / "quiet.csv", name="a")
    SeriesLog.read(tmp_path / "log").append(monitor)
    os.utime(tmp_path / "log", (1, 1))
    SeriesLog.read(tmp_path / "log").append(monitor)
    assert (tmp_path / "log").stat().st_mtime == 1


def test_a_command_that_adds_no_batch_starts_no_state(watch, tmp_path, tables):
    for words, reason in (
        ("--replay missing.csv", "missing.csv"), ("--acknowledge", "--acknowledge needs a state"),
        ("--target @none_such.csv", "none_such"),
    ):  # fmt: skip
        code, out, err = watch(f"{STATE} {words}")
        assert code == 2 and out == "" and reason in err and "Traceback" not in err and "new state" not in err
        assert not (tmp_path / "state.json").exists()


def test_a_lost_state_is_noticed_by_its_log(watch, tmp_path):
    assert watch(f"{STATE} --target @quiet.csv --log series.jsonl")[0] == 0
    (tmp_path / "state.json").unlink()
    code, out, err = watch(f"{STATE} --target @history/0.csv --log series.jsonl")
    assert code == 2 and out == "" and "restore the state" in err
    assert not (tmp_path / "state.json").exists()
    assert watch(f"{STATE} --target @history/0.csv --log other.jsonl")[0] == 0


def test_a_replay_tells_new_batches_from_repeated_ones(watch):
    assert "3 batches replayed;" in watch(f"{STATE} --replay @history")[2]
    assert "of which 3 had been counted before" in watch(f"{STATE} --replay @history")[2]


def test_page_and_metrics_after_an_acknowledgement(watch, tmp_path):
    pytest.importorskip("jinja2")
    outputs = "--report page.html --metrics share.prom"
    assert watch(f"{STATE} --target @drift.csv {outputs}")[0] == 4
    assert "do not trust the estimates" in (tmp_path / "page.html").read_text()
    assert 'priorshift_evidence{series="",rule="assumption"}' in (tmp_path / "share.prom").read_text()
    assert watch(f"{STATE} --acknowledge {outputs}")[0] == 0
    assert "<strong>do not trust the estimates</strong>" not in (tmp_path / "page.html").read_text()
    assert 'priorshift_evidence{series="",rule="assumption"}' not in (tmp_path / "share.prom").read_text()
