"""What commands print as JSON, and the exit codes they end with: as the schemas and the help say."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.cli.options import SCHEMAS as NAMES
from priorshift.cli.small_commands import schema
from priorshift.diagnosis.columns import Driver
from priorshift.diagnosis.sensitivity import Move, Violation
from priorshift.diagnosis.shift_tests import LabelShiftTest
from priorshift.io.column_checks import ColumnUse
from priorshift.monitoring import Alarm, MonitorPoint

jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")


def validator(name):
    return jsonschema.Draft202012Validator(schema(name))


def errors(name, output):
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(output)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small tables: three samples, with a category, a date and gaps in some, weights, audits, months."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)

    def rows(count, prior):
        ill = rng.random(count) < prior
        frame = pd.DataFrame(rng.normal(size=(count, 2)) + 2 * ill[:, None], columns=["a", "b"])
        frame["month"] = np.where(np.arange(count) % 2, "jan", "=feb")
        frame["w"] = rng.random(count) + 0.5
        frame["seen"] = np.where(np.arange(count) < 30, ill.astype(int).astype(str), "")
        frame["ward"] = np.where(rng.random(count) < 0.3 + 0.4 * ill, "north", "south")
        frame.loc[::9, "ward"] = None
        return frame

    for name, count, prior in (("p", 60, 1.0), ("u", 200, 0.3), ("t", 200, 0.6)):
        rows(count, prior).to_csv(folder / f"{name}.csv", index=False)
    named = {"1": "sick", "0": "rest"}  # the audit with the names of classes
    audited = pd.read_csv(folder / "t.csv", dtype={"seen": str})
    audited.assign(truth=audited["seen"].map(named)).to_csv(folder / "named.csv", index=False)
    (rows(60, 0.0).assign(a=lambda frame: frame["a"] - 4)).to_csv(folder / "q.csv", index=False)
    same = rng.normal(size=(25, 2))
    for name, X in (("p0", same[::-1]), ("u0", same), ("t0", rng.normal(size=(9, 2)))):
        pd.DataFrame(X, columns=["a", "b"]).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def printed():
    """What the commands below printed, so that each is run once."""
    return {}


@pytest.fixture
def run(folder, printed, monkeypatch, capsys):
    """A command, run in the folder of the tables; what it printed as JSON."""

    def _run(words):
        if words not in printed:
            monkeypatch.chdir(folder)
            assert main(words.split()) == 0, capsys.readouterr().err
            printed[words] = capsys.readouterr().out
        return json.loads(printed[words])

    return _run


THREE = "--positive p.csv --unlabeled u.csv --target t.csv"
CLASSES = "--positive sick=p.csv --positive cold=q.csv --unlabeled u.csv"
PLAIN = "--drop month --drop w --drop seen --drop ward --json"
REST_OF_PLAIN = "--drop w --drop seen --drop ward --json"
SHARES = "--source-prior sick=0.3 --source-prior cold=0.05-0.1"
NONE = "--positive p0.csv --unlabeled u0.csv --target t0.csv --json"
COMMANDS = {
    "witness": f"estimate {THREE} {PLAIN}",
    "witness, prior given": f"estimate {THREE} {PLAIN} --source-prior 0.3",
    "witness, range": f"estimate {THREE} {PLAIN} --source-prior 0.2-0.4",
    "witness, survey": f"estimate {THREE} {PLAIN} --source-prior-counts 30/100",
    "witness, nothing told": f"estimate {NONE} --source-prior 0.2",
    "tcpu": f"estimate {THREE} {PLAIN} --method tcpu",
    "tcpu, prior given": f"estimate {THREE} {PLAIN} --method tcpu --source-prior 0.3 --interval bootstrap",
    "tcpu, energy": f"estimate {THREE} {PLAIN} --method tcpu --source-prior 0.3 --kernel energy",
    "tcpu, no estimate": f"estimate {NONE} --method tcpu --source-prior 0.2",
    "km2-ls": f"estimate {THREE} {PLAIN} --method km2-ls",
    "audits": f"estimate {THREE} --drop month --drop w --drop ward --audit-column seen --json",
    "weights": f"estimate {THREE} --drop month --drop seen --drop ward --weight-column w --source-prior 0.3 --json",
    "encoded columns": f"estimate {THREE} --drop seen --drop w --source-prior 0.3 --json",
    "several targets": f"estimate {THREE} --by month --drop w --drop seen --drop ward --source-prior 0.3 --json",
    "several files": f"estimate --positive p.csv --unlabeled u.csv --target t.csv u.csv {PLAIN} --method tcpu",
    "several by km2-ls": f"estimate {THREE} --by month --drop w --drop seen --drop ward --json --method km2-ls",
    "strata": f"estimate {THREE} --stratify month --drop w --drop seen --drop ward --source-prior 0.3 --json",
    "classes": f"estimate {CLASSES} --target t.csv {PLAIN} --source-prior sick=0.3 --source-prior cold=0.05-0.1",
    "classes, tcpu": f"estimate {CLASSES} --target t.csv --drop seen --drop w --method tcpu --json",
    "classes, several": f"estimate {CLASSES} --target t.csv --by month --drop w --drop seen --drop ward --json",
    "classes, audits": f"estimate {CLASSES} --target named.csv {PLAIN} --audit-column truth --source-prior sick=0.3 "
    "--source-prior cold=0.05-0.1",
    "classes, no rest": f"estimate --positive sick=p.csv --positive cold=q.csv --no-rest --target t.csv {PLAIN}",
    "one class": f"estimate --positive sick=p.csv --unlabeled u.csv --target t.csv {PLAIN} --source-prior 0.3",
    "one class, several": f"estimate --positive sick=p.csv --unlabeled u.csv --target t.csv u.csv {PLAIN}",
    "streamed": f"estimate {THREE} {PLAIN} --stream --source-prior 0.3",
    "demo": "demo --json",
    "adapt": f"adapt {THREE} {PLAIN} --classifier logistic --source-prior 0.3 -o decided.csv",
    "adapt, prior given": f"adapt {THREE} {PLAIN} --classifier logistic --target-prior 0.5 --source-prior 0.3 -o d.csv",
    "adapt, classes": f"adapt {CLASSES} --target t.csv {PLAIN} {SHARES} -o decided.csv",
    "adapt, classes by month": f"adapt {CLASSES} --target t.csv --by month {SHARES} {REST_OF_PLAIN} -o decided.csv",
    "diagnose, classes": f"diagnose {CLASSES} --target t.csv {PLAIN} {SHARES}",
    "diagnose, classes by month": f"diagnose {CLASSES} --target t.csv --by month {SHARES} {REST_OF_PLAIN}",
    "diagnose, no rest": f"diagnose --positive sick=p.csv --positive cold=q.csv --no-rest --target t.csv {PLAIN}",
    "report, classes": f"report {CLASSES} --target t.csv {PLAIN} {SHARES} -o page.html",
    "diagnose": f"diagnose {THREE} {PLAIN}",
    "diagnose, threshold": f"diagnose {THREE} --drop seen --drop w --source-prior 0.3 --threshold 0.5 --json",
    "diagnose, nothing told": f"diagnose {NONE} --source-prior 0.2",
    "report": f"report {THREE} {PLAIN} --source-prior 0.3 --title Wards -o page.html",
    "report, streamed": f"report {THREE} {PLAIN} --stream --source-prior 0.3 -o page.html",
    "diagnose, several": f"diagnose {THREE} --by month --drop w --drop seen --drop ward --source-prior 0.3 --json",
}


@pytest.mark.parametrize("what", COMMANDS)
def test_what_a_command_prints_is_as_its_schema_says(what, run):
    assert errors(COMMANDS[what].split()[0], run(COMMANDS[what])) == []


def test_the_cases_are_what_they_are_called(run):
    """So that a schema is tried on what it is to allow: nothing, audits, encoded columns, a band, a whole."""
    assert run(COMMANDS["tcpu, no estimate"])["value"] is None
    assert set(run(COMMANDS["audits"])["details"]["audit"]) == {"source", "target"}
    assert run(COMMANDS["encoded columns"])["details"]["columns"]["ward"]["missing"] > 0
    several, strata = run(COMMANDS["several targets"]), run(COMMANDS["strata"])
    assert set(several["targets"]) == {"jan", "=feb"} and several["targets"]["jan"]["band"] and several["equality"]
    assert strata["pooled"] and strata["by"] == "month"
    assert run(COMMANDS["several by km2-ls"])["equality"] is None
    classes, by_month = run(COMMANDS["classes"]), run(COMMANDS["classes, several"])
    assert list(classes["classes"]) == ["sick", "cold", "rest"] and classes["classes"]["sick"]["band"]
    assert set(by_month["targets"]) == {"jan", "=feb"} and len(by_month["differences"]) == 3 and by_month["equality"]
    assert run(COMMANDS["one class"])["classes"]["rest"]["band"] is None
    assert set(run(COMMANDS["classes, audits"])["classes"]["sick"]["details"]["audit"]) == {"target"}


def test_drpu_prints_as_the_schema_says(run, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(ps.DRPU.__init__, "__kwdefaults__", {**ps.DRPU.__init__.__kwdefaults__, "max_epochs": 3})
    output = run(f"estimate {THREE} {PLAIN} --method drpu --source-prior 0.3")
    assert output["method"] == "DRPU" and errors("estimate", output) == []


def test_sketches_and_estimates_from_them_print_as_their_schemas_say(run):
    drop = "--drop month --drop w --drop seen --drop ward"
    made = [
        run(f"sketch u.csv {drop} --features 16 -o u.sketch"),
        *(run(f"sketch {name}.csv --like u.sketch -o {name}.sketch") for name in "pt"),
        run(f"sketch --positive p.csv --unlabeled u.csv {drop} -o s.model"),
        *(run(f"sketch {name}.csv --like s.model -o {name}.counts") for name in "put"),
    ]
    assert [one["kind"] for one in made] == ["sketch"] * 3 + ["score model"] + ["histogram"] * 3
    for one in made:
        assert errors("sketch", one) == []
    for kind in ("sketch", "counts"):
        output = run(f"estimate --positive p.{kind} --unlabeled u.{kind} --target t.{kind} --source-prior 0.3 --json")
        assert errors("estimate", output) == []
    assert output["details"]["fitted_rows"] > 0 and "private" not in output["details"]
    run("sketch t.csv --like s.model --epsilon 5 --delta 1e-6 -o hidden.counts")
    output = run("estimate --positive p.counts --unlabeled u.counts --target hidden.counts --source-prior 0.3 --json")
    assert output["details"]["private"] == {"target": {"epsilon": 5, "delta": 1e-6}}
    assert errors("estimate", output) == []


def test_a_monitor_prints_as_its_schema_says(run, folder, monkeypatch, capsys):
    drop = "--drop w --drop seen --drop ward"
    model = run(f"watch --model fitted --positive p.csv --unlabeled u.csv --source-prior 0.3 --by month {drop} --json")
    batch = run("watch --model fitted --state state.json --target u.csv --json")
    (folder / "none.csv").write_text((folder / "t.csv").read_text().partition("\n")[0] + "\n")
    empty = run("watch --model fitted --state state.json --target none.csv --time noon --json")
    assert main(["watch", "--model", "fitted", "--state", "state.json", "--target", "t.csv", "--json"]) in (3, 4)
    alarm = json.loads(capsys.readouterr().out)
    acknowledged = run("watch --model fitted --state state.json --acknowledge --json")
    outputs = [model, batch, empty, alarm, acknowledged]
    assert [one["kind"] for one in outputs] == ["model", "batch", "batch", "batch", "acknowledgement"]
    assert {point["series"] for point in batch["points"]} == {"jan", "=feb"} and empty["points"][0]["value"] is None
    assert any(point["alarms"] for point in alarm["points"])
    for one in outputs:
        assert errors("watch", one) == []
    point = batch["points"][0]
    for key in point:
        assert errors("watch", {**batch, "points": [{**point, key: {"no": ["such"]}}]}), key
        assert errors("watch", {**batch, "points": [{other: point[other] for other in point if other != key}]}), key


def places(output, path=()):
    """Paths of all that a JSON value holds; of a list and of what users named, in the first item alone."""
    items = [*output.items()] if isinstance(output, dict) else [*enumerate(output)] if isinstance(output, list) else []
    alike = isinstance(output, list) or is_named_by_users((*path, ""))
    for key, value in items[:1] if alike else items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(output, path):
    for key in path:
        output = output[key]
    return output


@contextmanager
def changed(output, path, change):
    """The output with another object at a path, until the end of the block."""
    inner, key = at(output, path[:-1]), path[-1]
    before = dict(inner)
    change(inner, key)
    yield output
    inner.clear()
    inner.update(before)


def is_named_by_users(path):
    names = ("targets", "estimators", "classes", "coefficients", "gains")
    in_gains, in_columns = path[-3:-2] == ("gains",), path[-3:-1] == ("details", "columns")
    by_class = path[-3:-1] in [("settings", "source_prior"), ("settings", "label_error")]
    return path[-2:-1] in [(name,) for name in names] or in_gains or in_columns or by_class


OPTIONAL = {
    "details": ("mixture_prior", "km2_prior", "overlap", "audit", "columns", "fitted_rows", "private", "strata"),
    "audit": ("source", "target"),
    "settings": ("source_prior", "shared", "audit", "weights", "groups", "drop", "threshold", "by", "rest"),
}


@pytest.mark.parametrize(
    "what",
    [
        "witness", "tcpu", "km2-ls", "audits", "strata", "classes", "classes, several", "adapt", "demo",
        "diagnose, several", "diagnose, classes", "diagnose, classes by month", "adapt, classes",
    ],
)  # fmt: skip
def test_outputs_that_lack_a_key_have_one_more_or_a_wrong_type_are_refused(what, run):
    output, judge = run(COMMANDS[what]), validator(COMMANDS[what].split()[0])
    tried = {"lack": 0, "type": 0, "more": 0}
    for path in [*places(output)]:
        if isinstance(path[-1], str) and not is_named_by_users(path):
            if path[-1] not in OPTIONAL.get(path[-2] if len(path) > 1 else "", ()):
                with changed(output, path, lambda inner, key: inner.pop(key)) as lacking:
                    assert not judge.is_valid(lacking), f"{path} may be missing"
                tried["lack"] += 1
            with changed(output, path, lambda inner, key: inner.__setitem__(key, {"no": ["such"]})) as wrong:
                assert not judge.is_valid(wrong), f"{path} may be an object"
            tried["type"] += 1
    for path in [(), *places(output)]:
        if isinstance(at(output, path), dict) and not is_named_by_users((*path, "a stranger")):
            with changed(output, (*path, "a stranger"), lambda inner, key: inner.__setitem__(key, 1)) as more:
                assert not judge.is_valid(more), f"{path} may hold a stranger"
            tried["more"] += 1
    assert tried["lack"] >= 6 and tried["type"] >= 6 and tried["more"] >= 1


def objects(part):
    if isinstance(part, dict):
        yield part
        for inner in part.values():
            yield from objects(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from objects(inner)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_stands_alone_and_describes_every_field(name):
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["$schema"].endswith("2020-12/schema") and made["$id"] == f"urn:priorshift:schema:{name}"
    inside = {made["$id"], *(part["$id"] for part in objects(made) if "$id" in part)}
    for part in objects(made):
        assert part.get("$ref", "#").partition("#")[0] in {"", *inside}
        if "type" in part and part["type"] == "object" and "properties" in part:
            for field, said in part["properties"].items():
                assert len(said["description"]) > 8, field


def test_every_attribute_of_a_result_is_a_field_of_its_schema():
    estimate, diagnose = schema("estimate")["$defs"], schema("diagnose")["$defs"]
    of_diagnosis = diagnose["diagnosis"]["properties"]
    parts = diagnose["diagnosis"]["properties"] | diagnose["of_source"]["properties"]
    assert set(parts) == {field.name for field in fields(ps.Diagnosis)} | {"next_steps"}
    of_classes = diagnose["class_diagnosis"]["properties"] | diagnose["of_class_source"]["properties"]
    assert set(of_classes) == {field.name for field in fields(ps.ClassDiagnosis)}
    assert set(ps.MulticlassShift().get_params()) - {"verbose"} <= set(of_classes["settings"]["properties"])
    settings = parts["settings"]["properties"]
    assert set(ps.WitnessShift().get_params()) - {"device", "keep_rows", "verbose"} <= set(settings)
    for said, result in (
        (parts["drivers"]["items"], Driver),
        (parts["columns"]["items"], ColumnUse),
        (estimate["estimate"], ps.PriorEstimate),
        (estimate["interval"], ps.Interval),
        (schema("watch")["$defs"]["interval"], ps.Interval),
        (schema("watch")["$defs"]["point"], MonitorPoint),
        (schema("watch")["$defs"]["alarm"], Alarm),
        (of_diagnosis["label_shift_test"], LabelShiftTest),
        (of_diagnosis["sensitivity"]["properties"]["violation"], Violation),
        (diagnose["move"], Move),
    ):
        names = {field.name for field in fields(result)}
        assert set(said["properties"]) == (names if result is MonitorPoint else names - {"evidence"})


@pytest.mark.parametrize("name", NAMES)
def test_the_command_prints_the_schema(name, capsys):
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == schema(name)


# ---- exit codes


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ["--version"]),
        (0, ["estimate", "--help"]),
        (0, ["schema", "estimate"]),
        (2, []),
        (2, ["estimat"]),
        (2, ["estimate", "--tarket", "t.csv"]),
        (2, ["estimate", "--positive", "nowhere.csv", "--unlabeled", "nowhere.csv", "--target", "nowhere.csv"]),
    ],
    ids=["version", "help", "schema", "nothing", "no command", "no option", "no file"],
)
def test_exit_codes(code, words, capsys):
    try:
        ended = main(words)
    except SystemExit as stop:
        ended = stop.code
    said = capsys.readouterr()
    assert ended == code
    if code:
        assert said.out == "" and said.err.startswith("priorshift: ") and said.err.count("\n") == 1
    else:
        assert said.err == "" and said.out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_output_that_cannot_be_written_is_told_by_the_exit_code():
    code = "import sys; from priorshift.cli import main; sys.exit(main())"
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-c", code, "schema", "demo"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert run.returncode == 2 and run.stderr == "priorshift: cannot write the output: No space left on device.\n"
