"""One loader for all entry points: what becomes of each kind of sample, and where Python and the shell differed before."""

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift import loading
from priorshift.cli import main
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.loading import InputOptions, LabeledTable, load_problem
from priorshift.sketch import Histogram, ScoreModel, Sketch

COLUMNS = ["a", "b", "c"]
MISSING = ["n/a", "NA", "?", "", "null", "#N/A", "nan"]


@pytest.fixture(scope="module")
def samples():
    s = ps.simulate.gaussian(
        0.3, 0.6, n_source=300, n_target=250, dimension=3, distance=2.0, shared=False, random_state=0
    )
    tables = {"positive": s.positive, "unlabeled": s.unlabeled, "target": s.target}
    return {role: pd.DataFrame(rows, columns=COLUMNS) for role, rows in tables.items()}


@pytest.fixture
def files(samples, tmp_path):
    paths = {role: tmp_path / f"{role}.csv" for role in samples}
    for role, table in samples.items():
        table.to_csv(paths[role], index=False)
    return paths


def in_shell(paths, *more):
    return main(["estimate", *(f"--{role}={path}" for role, path in paths.items()), "--source-prior", "0.3", *more])


def load(options=None, **samples):
    return load_problem(options=options or InputOptions.from_arguments(), **samples)


# ---- what a sample is


def test_a_problem_says_what_its_samples_are(samples, files, monkeypatch):
    assert load(**samples).kind == load(**files).kind == "rows"
    assert load(**samples | {"target": iter([samples["target"]])}).kind == "chunks"
    assert load(**samples | {"target": Chunks.from_source(samples["target"], "target")}).kind == "chunks"
    assert load(**samples, options=InputOptions.from_arguments(stream=True)).kind == "chunks"
    sketch = Sketch.from_sample(samples["unlabeled"], features=16)
    assert load(**samples | {"unlabeled": sketch}).kind == "moments"
    model = ScoreModel.fit(samples["positive"], samples["unlabeled"], random_state=0)
    assert load(**{role: Histogram.from_sample(table, model) for role, table in samples.items()}).kind == "counts"
    monkeypatch.setattr(loading, "LARGE", 10)
    assert load(**files).kind == "chunks"
    assert load(**files, options=InputOptions.from_arguments(stream=False)).kind == "rows"


def test_two_tables_and_one_labelled_table_are_one_problem(samples):
    apart = load(**samples)
    joined = pd.concat([samples["positive"].assign(y="ill"), samples["unlabeled"].assign(y="unknown")])
    source = LabeledTable(joined, "y", "ill")
    together = load(source=source, target=samples["target"])
    for role in ("positive", "unlabeled", "target"):
        np.testing.assert_array_equal(getattr(apart, role).data.values, getattr(together, role).data.values)
        assert getattr(together, role).data.columns == tuple(COLUMNS)


def test_each_target_of_a_column_has_its_own_metadata(samples):
    months = np.where(np.arange(len(samples["target"])) % 3, "may", "june")
    weight = 1.0 + np.arange(len(samples["target"]))
    target = samples["target"].assign(month=months, w=weight)
    options = InputOptions.from_arguments(by="month", weights="w")
    problem = load(**samples | {"target": target}, several=True, options=options)
    assert list(problem.targets) == ["june", "may"] and problem.by == "month"
    for name, sample in problem.targets.items():
        np.testing.assert_array_equal(sample.metadata.weights, weight[months == name])
        assert len(sample.data) == (months == name).sum()
    assert problem.unlabeled.metadata.weights is None


# ---- one set of words for missing values


@pytest.mark.parametrize("word", MISSING)
def test_a_word_for_a_missing_value_is_missing_in_an_audit(word, samples, files, capsys):
    rng = np.random.default_rng(0)
    classes = rng.random(len(samples["target"])) < 0.6
    looked_up = np.arange(len(classes)) < 30
    column = np.where(looked_up, classes.astype(int).astype(str), word)
    empty = np.where(looked_up, classes.astype(float), np.nan)
    how = {"source_prior": 0.3, "random_state": 0, "audit": "truth"}
    expected = ps.estimate_prior(**samples | {"target": samples["target"].assign(truth=empty)}, **how)
    table = samples["target"].assign(truth=column)
    assert ps.estimate_prior(**samples | {"target": table}, **how) == expected
    table.to_csv(files["target"], index=False)
    assert str(ps.estimate_prior(**files, **how)) == str(expected)
    assert in_shell(files, "--audit-column", "truth", "--random-state", "0") == 0
    assert capsys.readouterr().out.strip() == str(expected)


@pytest.mark.parametrize("word", MISSING)
def test_a_word_for_a_missing_value_is_no_label_and_no_target(word, samples):
    table = pd.concat([samples["positive"].assign(y="ill"), samples["unlabeled"].assign(y=word)])
    problem = load(source=LabeledTable(table, "y", "ill"), target=samples["target"])
    assert len(problem.positive.data) == len(samples["positive"])
    named = samples["target"].assign(month=["may", word] + ["may"] * (len(samples["target"]) - 2))
    with pytest.raises(InputError, match="no value in row 1"):
        load(**samples | {"target": named}, several=True, options=InputOptions.from_arguments(by="month"))


# ---- a large file without an encoder


def test_a_large_file_without_an_encoder_is_read_at_once(samples, files, monkeypatch, capsys):
    how = {"source_prior": 0.3, "random_state": 0}
    expected = ps.estimate_prior(**files, encoder=None, **how)
    monkeypatch.setattr(loading, "LARGE", 10)
    assert loading.needs_streaming(files["target"])
    streamed = ps.estimate_prior(**files, **how)
    assert "fitted_rows" in streamed.details
    assert ps.estimate_prior(**files, encoder=None, **how) == expected
    assert in_shell(files, "--encoder", "none", "--random-state", "0") == 0
    assert capsys.readouterr().out.strip() == str(expected)
    samples["target"].assign(a="text").to_csv(files["target"], index=False)
    with pytest.raises(InputError, match="'text' in row 0"):
        ps.estimate_prior(**files, encoder=None, **how)
    assert in_shell(files, "--encoder", "none") == 2
    assert "'text' in row 0" in capsys.readouterr().err


# ---- what streaming cannot do


def test_what_needs_all_rows_is_refused_when_streaming(samples, files, capsys):
    for name, column in (("shared", "identical"), ("audit", "a"), ("groups", "a")):
        with pytest.raises(InputError, match=f"^{name} is not supported .*stream=False"):
            ps.estimate_prior(**samples, stream=True, **{name: column})
    with pytest.raises(InputError, match="encoder is not supported"):
        ps.estimate_prior(**samples, stream=True, encoder=None)
    assert in_shell(files, "--stream", "--identical-rows") == 2
    said = capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["estimate", "--help"])
    options = capsys.readouterr().out
    advised = [word.rstrip(".,;)") for word in said.split() if word.startswith("--")]
    assert all(option in options for option in advised), advised  # the shell has every option that it advises


@pytest.mark.parametrize("settings", [{"encoder": None}, {"stream": False}], ids=str)
def test_a_dask_array_is_never_brought_into_memory_unasked(settings):
    array = pytest.importorskip("dask.array")
    s = ps.simulate.gaussian(0.2, 0.6, n_source=100, n_target=60, shared=False, random_state=0)
    unlabeled = array.from_array(s.unlabeled, chunks=(20, s.unlabeled.shape[1]))
    with pytest.raises(InputError, match="Dask"):
        ps.estimate_prior(s.positive, unlabeled, s.target, source_prior=0.2, **settings)
    with pytest.raises(InputError, match="Dask"):
        ps.estimate_priors(s.positive, unlabeled, {"a": s.target}, source_prior=0.2)
