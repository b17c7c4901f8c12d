"""Several labelled classes: how their tables are read, and what `estimate_prior` and `estimate_priors` return."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import priorshift as ps
from priorshift.class_source import ClassSource
from priorshift.errors import ColumnWarning, FewPositivesWarning, InputError
from priorshift.loading import InputOptions, LabeledTable, load_problem
from priorshift.problem import Sample

SOURCE, TARGET = {"flu": 0.2, "covid": 0.3}, {"flu": 0.5, "covid": 0.1}
COLUMNS = list("abcdefghij")


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(SOURCE, TARGET, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return ps.simulate.gaussian(0.2, 0.6, n_source=400, n_target=400, dimension=3, shared=False, random_state=1)


def frame(X, **more):
    return pd.DataFrame(X, columns=COLUMNS[: X.shape[1]]).assign(**more)


def load(**arguments):
    options = InputOptions.from_arguments(**arguments.pop("options", {}))
    return load_problem(options=options, **arguments)


def numbers(estimate):
    return [estimate.value, estimate.raw, estimate.standard_error, estimate.interval.low, estimate.interval.high]


# ---- several classes


@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_a_mapping_of_classes_is_estimated_by_multiclass_shift(sample, method):
    found = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method=method, random_state=0
    )
    source = ClassSource.from_samples(
        {name: Sample(table.data) for name, table in load(
            positive=sample.classes, unlabeled=sample.unlabeled, target=sample.target).classes.items()},
        load(positive=sample.classes, unlabeled=sample.unlabeled, target=sample.target).unlabeled,
        scenario="case-control", standardize=True, rest=True,
    )  # fmt: skip
    shift = ps.MulticlassShift(SOURCE, method=method, random_state=0).fit_classes(source)
    expected = shift.estimate(sample.target)
    assert list(found) == ["flu", "covid", "rest"]
    for name in found:
        np.testing.assert_allclose(numbers(found[name]), numbers(expected[name]), rtol=1e-12)
    auto = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, random_state=0)
    assert (auto["flu"].value == found["flu"].value) == (method == "witness")


def test_arrays_frames_and_files_give_the_same(sample, tmp_path):
    kinds = {"arrays": (sample.classes, sample.unlabeled, sample.target)}
    frames = {name: frame(X) for name, X in sample.classes.items()}
    kinds["frames"] = (frames, frame(sample.unlabeled), frame(sample.target)[COLUMNS[::-1]])
    paths = {}
    for name, table in {**frames, "u": frame(sample.unlabeled), "t": frame(sample.target)}.items():
        paths[name] = tmp_path / f"{name}.csv"
        table.to_csv(paths[name], index=False)
    kinds["files"] = ({name: paths[name] for name in frames}, paths["u"], str(paths["t"]))
    results = {kind: ps.estimate_prior(*tables, source_prior=SOURCE, method="tcpu") for kind, tables in kinds.items()}
    for result in results.values():
        np.testing.assert_allclose(numbers(result["flu"]), numbers(results["arrays"]["flu"]), rtol=1e-9)
    assert isinstance(results["frames"].to_frame(), pd.DataFrame)


def test_settings_reach_the_estimator(sample):
    given = ps.MulticlassShift(SOURCE, method="tcpu", label_error=0.1, confidence=0.8)
    expected = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, method=given)
    found = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method="tcpu", label_error=0.1,
        confidence=0.8,
    )  # fmt: skip
    assert numbers(found["flu"]) == numbers(expected["flu"]) and found.confidence == 0.8
    assert not hasattr(given, "classes_")  # a clone was fitted
    uncertain = {"flu": stats.beta(20, 80), "covid": (0.2, 0.4)}
    wide = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, source_prior=uncertain, method="tcpu")
    known = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method="tcpu")
    assert wide["covid"].interval.width > known["covid"].interval.width


def test_without_a_rest_no_unlabelled_rows_are_needed(sample):
    found = ps.estimate_prior(sample.classes, None, sample.target, rest=False, method="tcpu")
    y = np.repeat(list(sample.classes), [len(X) for X in sample.classes.values()])
    shift = ps.MulticlassShift(rest=False, method="tcpu").fit(np.concatenate([*sample.classes.values()]), y)
    assert list(found) == list(sample.classes)
    assert found["flu"].raw == pytest.approx(shift.estimate(sample.target)["flu"].raw, abs=1e-9)


def categorical(rng, rows, sick, shift=0.0):
    mark = np.where(rng.random(rows) < (0.9 if sick else 0.1), "rash", "well")
    return pd.DataFrame({"x": rng.normal(size=rows) + 2 * sick + shift, "mark": mark})


def test_classes_are_encoded_once_with_the_other_tables():
    rng = np.random.default_rng(0)
    classes = {"a": categorical(rng, 80, True), "b": categorical(rng, 90, False)}
    unlabeled = pd.concat([categorical(rng, 100, sick, shift) for sick, shift in ((1, 0), (0, 0), (0, 8))])
    problem = load(positive=classes, unlabeled=unlabeled, target=categorical(rng, 120, True))
    columns = problem.unlabeled.data.columns
    assert "mark = rash" in columns
    for name, rows in (("a", 80), ("b", 90)):
        table = problem.classes[name].data
        assert table.columns == columns and len(table) == rows
    is_rash = problem.classes["a"].data.values[:, columns.index("mark = rash")]
    np.testing.assert_array_equal(is_rash, classes["a"]["mark"] == "rash")
    found = ps.estimate_prior(
        classes, unlabeled, categorical(rng, 120, True), source_prior={"a": 0.3, "b": 0.3}, method="tcpu"
    )
    assert found["a"].details["columns"]["mark"]["kind"] == found["rest"].details["columns"]["mark"]["kind"]


def test_without_a_rest_all_classes_decide_the_encoding():
    """A level that only the first class has is no news, also where the estimator encodes by itself."""
    rng = np.random.default_rng(0)
    classes = {"a": categorical(rng, 80, True).assign(mark="rash"), "b": categorical(rng, 90, False)}
    classes["b"]["mark"] = "well"
    target = pd.concat(classes.values())[::2]
    found = ps.estimate_prior(classes, None, target.assign(x=target["x"] + 0.1), rest=False, method="tcpu")
    assert found["a"].details["columns"]["mark"]["became"] == "2 levels"
    y = np.repeat(["a", "b"], [80, 90])
    shift = ps.MulticlassShift(rest=False, method="tcpu").fit(pd.concat(classes.values()), y)
    assert shift.estimate(target.assign(x=target["x"] + 0.1))["a"].raw == pytest.approx(found["a"].raw, abs=1e-9)


def test_a_cell_that_is_common_in_one_class_is_no_reason_to_warn(recwarn):
    """The target may consist of the one class in which it is common, however rare it is in the others."""
    rng = np.random.default_rng(0)
    classes = {"a": categorical(rng, 300, True), "b": categorical(rng, 300, False)}
    unlabeled = pd.concat([categorical(rng, 40, True), categorical(rng, 400, False)])
    load(positive=classes, unlabeled=unlabeled, target=categorical(rng, 300, True).assign(mark="rash"))
    assert not [w for w in recwarn if issubclass(w.category, ColumnWarning)]
    lacking = {"b": classes["b"], "c": categorical(rng, 300, False)}
    with pytest.warns(ColumnWarning, match="any labelled class"):
        load(positive=lacking, unlabeled=unlabeled, target=categorical(rng, 300, True).assign(mark="rash"))


def test_metadata_columns_of_classes(sample):
    rng = np.random.default_rng(0)

    def more(X, first):
        return frame(X, w=rng.random(len(X)) + 0.5, who=np.arange(first, first + len(X)) // 2)

    classes = {name: more(X, 1000 * k) for k, (name, X) in enumerate(sample.classes.items())}
    unlabeled, target = more(sample.unlabeled, 5000), more(sample.target, 9000)
    problem = load(
        positive=classes, unlabeled=unlabeled, target=target, options={"weights": "w", "groups": "who", "drop": []}
    )
    np.testing.assert_allclose(problem.classes["covid"].metadata.weights, classes["covid"]["w"])
    assert problem.classes["flu"].metadata.groups.tolist() == classes["flu"]["who"].astype(str).tolist()
    by_name = ps.estimate_prior(
        classes, unlabeled, target, weights="w", groups="who", source_prior=SOURCE, method="tcpu"
    )
    tables = {name: table.drop(columns=["w", "who"]) for name, table in classes.items()}

    def values(column):
        positive = {name: table[column] for name, table in classes.items()}
        return {"positive": positive, "unlabeled": unlabeled[column], "target": target[column]}

    by_value = ps.estimate_prior(
        tables, unlabeled.drop(columns=["w", "who"]), target.drop(columns=["w", "who"]), weights=values("w"),
        groups=values("who"), source_prior=SOURCE, method="tcpu",
    )  # fmt: skip
    assert numbers(by_name["flu"]) == pytest.approx(numbers(by_value["flu"]), abs=1e-12)
    plain = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method="tcpu")
    assert by_name["flu"].raw != plain["flu"].raw


def test_an_id_column_links_the_classes_with_the_unlabelled_rows(sample):
    copies = frame(sample.classes["flu"], id=[f"p{k}" for k in range(len(sample.classes["flu"]))])
    other = frame(sample.classes["covid"], id=[f"c{k}" for k in range(len(sample.classes["covid"]))])
    unlabeled = frame(sample.unlabeled, id=[f"u{k}" for k in range(len(sample.unlabeled))])
    unlabeled = pd.concat([unlabeled, copies[:50]])
    problem = load(
        positive={"flu": copies, "covid": other}, unlabeled=unlabeled, target=frame(sample.target),
        options={"shared": "id"},
    )  # fmt: skip
    source = ps.MulticlassShift(SOURCE).class_source_of(problem)
    shared = np.intersect1d(source.source.observation[source.rows[0]], source.source.observation[source.rows[-1]])
    assert len(shared) == 50


# ---- one class


@pytest.mark.parametrize("method", ["auto", "tcpu"])
def test_one_class_is_the_problem_of_positives_and_unlabelled_rows(binary, method):
    settings = {"method": method, "random_state": 0}
    expected = ps.estimate_prior(binary.positive, binary.unlabeled, binary.target, source_prior=0.2, **settings)
    for prior in (0.2, {"flu": 0.2}):
        found = ps.estimate_prior(
            {"flu": binary.positive}, binary.unlabeled, binary.target, source_prior=prior, **settings
        )
        assert list(found) == ["flu", "rest"]
        np.testing.assert_allclose(numbers(found["flu"]), numbers(expected), rtol=0, atol=1e-12)
        rest = found["rest"]
        assert rest.value == 1 - expected.value and rest.raw == 1 - expected.raw
        assert (rest.interval.low, rest.interval.high) == (1 - expected.interval.high, 1 - expected.interval.low)
        assert rest.standard_error == expected.standard_error and rest.source_prior == pytest.approx(0.8)
        assert found.covariance[0, 1] == pytest.approx(-(expected.standard_error**2))
    assert found.to_dict()["coefficients"] is None and "flu" in str(found)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")
def test_one_class_with_an_unknown_source_prior(binary):
    expected = ps.estimate_prior(binary.positive, binary.unlabeled, binary.target, random_state=0)
    found = ps.estimate_prior({"flu": binary.positive}, binary.unlabeled, binary.target, random_state=0)
    assert numbers(found["flu"]) == numbers(expected)
    by_target = ps.estimate_priors(
        {"flu": binary.positive}, binary.unlabeled, {"x": binary.target}, source_prior=0.2, random_state=0
    )
    assert list(by_target["x"]) == ["flu", "rest"] and by_target.to_dict()["differences"] is None


def with_columns(X, rng, labels=None):
    """A table with columns of weights, groups and, where labels are given, audited classes of the first 60 rows."""
    more = {"w": rng.random(len(X)) + 0.5, "who": rng.permutation(len(X)) // 2 + rng.integers(10**6) * 1000}
    if labels is not None:
        more["truth"] = np.where(np.arange(len(X)) < 60, labels, np.nan)
    return pd.DataFrame(X, columns=COLUMNS[: X.shape[1]]).assign(**more)


EQUAL = {
    "audit": ({"audit": "truth", "drop": ["w", "who"]}, {}),
    "audit of the source prior": ({"audit": "truth", "drop": ["w", "who"], "source_prior": stats.beta(20, 80)}, {}),
    "weights": ({"weights": "w", "drop": ["who", "truth"], "source_prior": 0.2}, {}),
    "groups": ({"groups": "who", "drop": ["w", "truth"], "source_prior": 0.2}, {}),
    "label error": (
        {"label_error": (0.0, 0.1), "drop": ["w", "who", "truth"], "source_prior": 0.2},
        {"label_error": {"flu": {"rest": (0.0, 0.1)}}, "source_prior": {"flu": 0.2}},
    ),
    "counts": (
        {"source_prior": stats.beta(20.5, 80.5), "drop": ["w", "who", "truth"]},
        {"source_prior": {"flu": 20, "rest": 80}},
    ),
    "dirichlet": (
        {"source_prior": stats.beta(20, 80), "drop": ["w", "who", "truth"]},
        {"source_prior": stats.dirichlet([20, 80])},
    ),
}


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("what", EQUAL)
def test_one_class_has_the_numbers_of_the_binary_problem(binary, what):
    settings, named = EQUAL[what]
    rng = np.random.default_rng(0)
    positive, unlabeled = (
        with_columns(binary.positive, rng),
        with_columns(binary.unlabeled, rng, binary.unlabeled_labels),
    )
    target = with_columns(binary.target, rng, binary.target_labels)
    expected = ps.estimate_prior(positive, unlabeled, target, random_state=0, **settings)
    found = ps.estimate_prior({"flu": positive}, unlabeled, target, random_state=0, **settings | named)
    np.testing.assert_allclose(numbers(found["flu"]), numbers(expected), rtol=0, atol=1e-12)
    assert found["rest"].value == 1 - expected.value
    halves = {"first": target[::2], "second": target[1::2]}
    several = ps.estimate_priors(positive, unlabeled, halves, random_state=0, **settings)
    by_class = ps.estimate_priors({"flu": positive}, unlabeled, halves, random_state=0, **settings | named)
    for name in halves:
        np.testing.assert_allclose(numbers(by_class[name]["flu"]), numbers(several[name]), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_one_class_has_the_diagnosis_of_the_binary_problem(binary):
    samples = binary.unlabeled, binary.target
    expected = ps.diagnose(binary.positive, *samples, source_prior=0.2, random_state=0)
    found = ps.diagnose({"flu": binary.positive}, *samples, source_prior={"flu": 0.2}, random_state=0)
    assert found.to_dict() == expected.to_dict()


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_audit_of_one_named_class_may_have_its_name(binary):
    column = np.where(np.arange(len(binary.target)) < 60, binary.target_labels, np.nan)
    named = np.select([column == 1, column == 0], ["flu", "rest"], "")
    settings = {"source_prior": 0.2, "random_state": 0}
    samples = {"flu": binary.positive}, binary.unlabeled, binary.target
    expected = ps.estimate_prior(*samples, audit={"target": column}, **settings)
    found = ps.estimate_prior(*samples, audit={"target": named}, **settings)
    assert numbers(found["flu"]) == numbers(expected["flu"])
    with pytest.raises(InputError, match="'strep'"):
        ps.estimate_prior(*samples, audit={"target": np.where(named == "rest", "strep", named)}, **settings)


# ---- audits of several classes


def test_an_audit_column_of_one_or_both_tables(sample):
    truth = {"unlabeled": sample.unlabeled_labels, "target": sample.target_labels}
    column = {name: np.where(np.arange(len(labels)) < 100, labels, "") for name, labels in truth.items()}
    classes = {name: frame(X) for name, X in sample.classes.items()}
    plain, tables = (frame(sample.unlabeled), frame(sample.target)), {}
    for name, table in zip(truth, plain, strict=True):
        tables[name] = table.assign(truth=column[name])
    settings = {"source_prior": stats.dirichlet([2, 3, 5]), "method": "tcpu", "random_state": 0}
    for audited in (["target"], ["unlabeled"], ["unlabeled", "target"]):
        chosen = [tables[name] if name in audited else table for name, table in zip(truth, plain, strict=True)]
        found = ps.estimate_prior(classes, *chosen, audit="truth", **settings)
        by_value = ps.estimate_prior(classes, *plain, audit={name: column[name] for name in audited}, **settings)
        assert numbers(found["flu"]) == numbers(by_value["flu"])
        assert list(found["flu"].details["audit"]) == [{"unlabeled": "source"}.get(name, name) for name in audited]
    rows = np.concatenate([*sample.classes.values(), sample.unlabeled])
    y = np.repeat([*sample.classes, ""], [200, 200, len(sample.unlabeled)])
    whole = np.concatenate([np.repeat("", 400), column["unlabeled"]])
    counted = {"covid": 3, "flu": 2, "rest": 5}
    assert list(ps.MulticlassShift(counted, method="tcpu").fit(rows, y, audit=whole).classes_) == [
        "covid",
        "flu",
        "rest",
    ]


def test_audited_targets_have_no_joint_error(sample):
    half = len(sample.target) // 2
    targets = {"jan": frame(sample.target[:half]), "feb": frame(sample.target[half:])}
    targets["jan"]["truth"] = np.where(np.arange(half) < 100, sample.target_labels[:half], "")
    targets["feb"]["truth"] = ""
    classes = {name: frame(X) for name, X in sample.classes.items()}
    found = ps.estimate_priors(
        classes, frame(sample.unlabeled), targets, audit="truth", source_prior=SOURCE, method="tcpu"
    )
    assert found["jan"].audited is not None and found["feb"].audited is None
    assert found.to_dict()["differences"] is None
    with pytest.raises(InputError, match="audited"):
        found.differences()


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_a_diagnosis_of_an_audited_target(sample):
    column = np.where(np.arange(len(sample.target)) < 100, sample.target_labels, "")
    settings = {"source_prior": {"flu": stats.beta(4, 16), "covid": stats.beta(6, 14)}, "method": "tcpu"}
    found = ps.diagnose(sample.classes, sample.unlabeled, sample.target, audit={"target": column}, **settings)
    plain = ps.diagnose(sample.classes, sample.unlabeled, sample.target, **settings)
    assert found.estimate["flu"].interval.method == "mixture and audit"
    assert any("source priors" in reason for reason in plain.verdict.reasons)
    assert not any("source priors" in reason for reason in found.verdict.reasons)
    assert found.confusion.to_dict() == plain.confusion.to_dict()  # what the tables tell


# ---- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": {}}, "at least one"),
        ({"positive": {"": 0}}, "empty"),
        ({"positive": {"nan": 0}}, "means no value"),
        ({"positive": {"rest": 0, "flu": 1}}, "'rest'"),
        ({"positive": {1: 0, "1": 1}}, "two labelled classes"),
        ({"method": "drpu"}, "one labelled class"),
        ({"method": ps.TCPU(0.2)}, "TCPU, which is for one"),
        ({"method": ps.MulticlassShift(), "source_prior": SOURCE}, "set it in the estimator"),
        ({"source_prior": 0.2}, "a mapping of classes"),
        ({"source_prior": {"strep": 0.2}}, "'strep'"),
        ({"label_error": {"strep": 0.2}}, "'strep'"),
        ({"source_prior": {"flu": 0.7, "covid": 0.7}}, "adds up to 1.4 .*--no-rest"),
        ({"rest": False}, "not used"),
        ({"rest": "no"}, "True or False"),
        ({"unlabeled": None}, "rest=False"),
        ({"stream": True, "groups": "g"}, "groups"),
        ({"target": ["a.csv", "b.csv"]}, "a.csv"),
        ({"audit": {"target": [1]}}, "one entry for each row"),
        ({"audit": {"target": np.full(1000, 1)}}, "'flu', 'covid', 'rest' or an empty cell"),
        ({"label_error": {"flu": {"strep": 0.2}}}, "'strep'"),
        ({"weights": {"positive": [1, 2]}}, "mapping of classes"),
        ({"weights": {"positive": {"strep": [1]}}}, "'strep'"),
    ],
)
def test_wrong_use_with_several_classes_is_a_sentence(sample, changes, message):
    arguments = {"positive": sample.classes, "unlabeled": sample.unlabeled, "target": sample.target, **changes}
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rest": False}, "at least two labelled classes"),
        ({"positive": "one class", "rest": False}, "at least two labelled classes"),
        ({"method": ps.MulticlassShift()}, "at least two labelled classes"),
        ({"positive": "one class", "source_prior": {"covid": 0.1}}, "'flu'"),
        ({"positive": "one class", "source_prior": {}}, "no class"),
    ],
)
def test_wrong_use_with_one_class_is_a_sentence(binary, changes, message):
    arguments = {"positive": binary.positive, "unlabeled": binary.unlabeled, "target": binary.target, **changes}
    if isinstance(arguments["positive"], str):
        arguments["positive"] = {"flu": binary.positive}
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**arguments)


def test_the_same_table_for_two_samples_is_refused(sample):
    classes = {"flu": sample.classes["flu"], "covid": sample.classes["flu"]}
    with pytest.raises(InputError, match="the same 200 rows"):
        ps.estimate_prior(classes, sample.unlabeled, sample.target, source_prior=SOURCE)


def test_a_diagnosis_of_several_targets_refuses_a_threshold_and_another_method(sample):
    tables = sample.classes, sample.unlabeled, {"x": sample.target}
    with pytest.raises(InputError, match="threshold"):
        ps.diagnose_targets(*tables, threshold=0.2)
    with pytest.raises(InputError, match="km2-ls"):
        ps.diagnose_targets(*tables, method="km2-ls")


def test_a_diagnosis_of_classes_needs_rows(sample):
    sketch = ps.sketch.Sketch.from_sample(sample.classes["flu"], features=16, random_state=0)
    with pytest.raises(InputError, match="needs the rows"):
        ps.diagnose({**sample.classes, "flu": sketch}, sample.unlabeled, sample.target)


# ---- a table with a column of labels


def labeled(sample, unlabeled, **labels):
    """All rows of the source in one table, with a column y of the classes."""
    named = [frame(X, y=labels.get(name, name)) for name, X in sample.classes.items()]
    return pd.concat([*named, frame(sample.unlabeled, y=unlabeled)], ignore_index=True)


@pytest.mark.parametrize(
    ("unlabeled", "labels", "settings", "names"),
    [
        (None, {}, {}, ["covid", "flu"]),
        ("", {}, {}, ["covid", "flu"]),
        ("unknown", {}, {"unlabeled_label": "unknown"}, ["covid", "flu"]),
        (0, {"flu": 1, "covid": 2}, {}, ["1", "2"]),
        (9, {"flu": 1, "covid": 2}, {"unlabeled_label": "9"}, ["1", "2"]),
    ],
)
def test_a_column_of_classes_gives_a_table_of_each(sample, unlabeled, labels, settings, names):
    table = labeled(sample, unlabeled, **labels)
    source = LabeledTable(table, "y", takes_classes=True, **settings)
    problem = load(source=source, target=frame(sample.target))
    assert list(problem.classes) == names and len(problem.unlabeled.data) == len(sample.unlabeled)
    flu = problem.classes[str(labels.get("flu", "flu"))]
    np.testing.assert_allclose(flu.data.values, sample.classes["flu"])


def test_two_values_and_wrong_columns_are_read_as_before(sample):
    table = labeled(sample, 0, flu=1, covid=1)
    problem = load(source=LabeledTable(table, "y", takes_classes=True), target=frame(sample.target))
    assert list(problem.classes) == [""] and problem.class_names == ()
    three = LabeledTable(labeled(sample, None), "y")  # of a command that has no classes
    with pytest.raises(InputError, match="two numbers are expected"):
        load(source=three, target=frame(sample.target))
    with pytest.raises(InputError, match="continuous values"):
        load(source=LabeledTable(table, "a", takes_classes=True), target=frame(sample.target).drop(columns="a"))
    one = LabeledTable(labeled(sample, "unknown", covid="unknown"), "y", unlabeled_label="unknown", takes_classes=True)
    assert load(source=one, target=frame(sample.target)).class_names == ("flu",)


def test_every_row_has_a_class_without_a_rest(sample):
    table = labeled(sample, None).dropna()
    problem = load(source=LabeledTable(table, "y", takes_classes=True), target=frame(sample.target), rest=False)
    assert list(problem.classes) == ["covid", "flu"] and not problem.rest and len(problem.unlabeled.data) == 0
    gap = LabeledTable(labeled(sample, None), "y", takes_classes=True)
    with pytest.raises(InputError, match="every row needs one"):
        load(source=gap, target=frame(sample.target), rest=False)
    with pytest.raises(InputError, match="--unlabeled-label"):
        load(source=LabeledTable(labeled(sample, "x"), "y", takes_classes=True), target=frame(sample.target))


# ---- several targets


@pytest.fixture(scope="module")
def by_target(sample):
    half = len(sample.target) // 2
    targets = {"jan": sample.target[:half], "feb": sample.target[half:], "old": sample.unlabeled[:300]}
    return ps.estimate_priors(
        sample.classes, sample.unlabeled[300:], targets, source_prior=SOURCE, method="tcpu", random_state=0
    )


def test_several_targets_are_those_one_by_one_in_one_table(sample, by_target):
    assert list(by_target) == ["jan", "feb", "old"]
    half = len(sample.target) // 2
    alone = ps.estimate_prior(
        sample.classes, sample.unlabeled[300:], sample.target[:half], source_prior=SOURCE, method="tcpu"
    )
    assert numbers(by_target["jan"]["flu"]) == pytest.approx(numbers(alone["flu"]), rel=1e-12)
    lines = str(by_target).splitlines()
    assert len(lines) == 10 and lines[0].split()[:3] == ["target", "class", "estimate"]
    records = by_target.records()
    assert [(row["target"], row["class"]) for row in records[:4]] == [
        ("jan", "flu"), ("jan", "covid"), ("jan", "rest"), ("feb", "flu"),
    ]  # fmt: skip
    assert records[0]["estimate"] == by_target["jan"]["flu"].value and records[0]["target_rows"] == half
    assert len(by_target.to_csv().splitlines()) == 10 and len(by_target.to_frame()) == 9
    assert set(by_target.to_dict()) == {"by", "targets", "equality", "differences"}


def test_differences_between_targets_by_class(by_target):
    pairs = by_target.differences()
    assert len(pairs) == 9 and (pairs[0].name, pairs[0].first, pairs[0].second) == ("flu", "jan", "feb")
    expected = by_target["feb"]["flu"].raw - by_target["jan"]["flu"].raw
    assert pairs[0].estimate == pytest.approx(expected, abs=1e-12) and pairs[0].estimate in pairs[0].interval
    assert sum(pair.estimate for pair in pairs[:3]) == pytest.approx(0, abs=1e-12)
    separate = np.hypot(by_target["jan"]["flu"].standard_error, by_target["feb"]["flu"].standard_error)
    assert pairs[0].standard_error < 0.95 * separate  # the common error of the source cancels
    assert all(pair.adjusted_p_value >= pair.p_value for pair in pairs)
    assert [pair.second for pair in by_target.differences("old")] == ["jan"] * 3 + ["feb"] * 3
    assert len(by_target.differences(consecutive=True)) == 6
    assert len(pairs.to_frame()) == 9 and "feb − jan" in str(pairs)
    assert pairs[0].ratio == pytest.approx(by_target["feb"]["flu"].raw / by_target["jan"]["flu"].raw)
    assert pairs[0].ratio in pairs[0].ratio_interval
    for pair in pairs:  # both tests are of equal shares, here without an error of the source priors
        assert (1 in pair.ratio_interval) == (0 in pair.interval) and pair.ratio_interval.low >= 0
    assert {"ratio", "ratio_low", "ratio_high"} <= set(pairs.records()[0])
    with pytest.raises(InputError, match="reference"):
        by_target.differences("mar")
    with pytest.raises(InputError, match="exclude each other"):
        by_target.differences("old", consecutive=True)


def test_the_test_of_equality_sees_the_target_that_differs(sample, by_target):
    assert by_target.equality_test().p_value < 1e-6 and by_target.equality_test().freedom == 4
    half = len(sample.target) // 2
    same = ps.estimate_priors(
        sample.classes, sample.unlabeled, [sample.target[:half], sample.target[half:]], source_prior=SOURCE,
        method="tcpu",
    )  # fmt: skip
    assert same.equality_test().p_value > 0.001 and list(same) == ["0", "1"]


def test_a_column_of_the_target_names_the_targets(sample):
    target = frame(sample.target, month=np.where(np.arange(len(sample.target)) % 2, "feb", "jan"))
    classes = {name: frame(X) for name, X in sample.classes.items()}
    found = ps.estimate_priors(classes, frame(sample.unlabeled), target, by="month", source_prior=SOURCE, method="tcpu")
    assert set(found) == {"jan", "feb"} and found.by == "month" and str(found).startswith("month")
    with pytest.raises(InputError, match="stratify"):
        ps.estimate_priors(classes, frame(sample.unlabeled), target, stratify="month", source_prior=SOURCE)
    one = ps.estimate_priors(classes, frame(sample.unlabeled), {"x": frame(sample.target)}, source_prior=SOURCE)
    with pytest.raises(InputError, match="at least two targets"):
        one.differences()


def test_targets_with_the_same_groups_do_not_differ(sample):
    """All rows of both targets are the same observations, so nothing of their difference is random."""
    half = frame(sample.target[:300], who=[f"t{k}" for k in range(300)])
    classes = {name: frame(X, who=[f"{name}{k}" for k in range(len(X))]) for name, X in sample.classes.items()}
    unlabeled = frame(sample.unlabeled, who=[f"u{k}" for k in range(len(sample.unlabeled))])
    found = ps.estimate_priors(
        classes, unlabeled, {"x": half, "y": half}, groups="who", source_prior=SOURCE, method="tcpu"
    )
    assert max(pair.standard_error for pair in found.differences()) < 1e-7
    other = ps.estimate_priors(
        classes, unlabeled, {"x": half, "y": half.assign(who=[f"s{k}" for k in range(300)])}, groups="who",
        source_prior=SOURCE, method="tcpu",
    )  # fmt: skip
    assert min(pair.standard_error for pair in other.differences()) > 0.01


def _normal_classes(seed, rows=(150, 600, 600), shares=((0.2, 0.15), (0.1, 0.45))):
    """Two classes and a rest in three columns: labelled rows, unlabelled rows and target, with the target's shares."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.eye(3)[[0, 1]]

    def draw(n, of_a, of_b):
        kind = rng.choice(3, n, p=[of_a, of_b, 1 - of_a - of_b])
        return rng.normal(size=(n, 3)) + np.concatenate([means, np.zeros((1, 3))])[kind]

    classes = {"a": draw(rows[0], 1.0, 0.0), "b": draw(rows[0], 0.0, 1.0)}
    return classes, draw(rows[1], *shares[0]), draw(rows[2], *shares[1])


KNOWN = {"a": 0.2, "b": 0.15}


def test_groups_of_independent_rows_do_not_widen_intervals():
    classes, U, T = _normal_classes(0)
    widths = {}
    for size in (1, 5, 20):
        groups = {"target": np.arange(len(T)) // size}
        result = ps.estimate_prior(classes, U, T, source_prior=KNOWN, groups=groups, random_state=0)
        widths[size] = result["b"].interval.width
    assert widths[20] < 1.4 * widths[1] and widths[5] < 1.2 * widths[1]


def test_ranges_of_source_priors_that_add_up_to_too_much():
    classes, U, T = _normal_classes(1)
    with pytest.raises(InputError, match=r"at least 1\.01"):
        ps.estimate_prior(classes, U, T, source_prior={"a": (0.6, 0.9), "b": (0.41, 0.6)}, random_state=0)
    nearly_all = ps.MulticlassShift({"a": 0.6, "b": 0.3995}, random_state=0)
    nearly_all.fit(np.concatenate([*classes.values(), U]), np.repeat(["a", "b", ""], [150, 150, 600]))
    assert nearly_all.estimate(U)["a"].source_prior == pytest.approx(0.6, abs=0.001)  # a sum below 1 is not refused
    wide = ps.estimate_prior(classes, U, T, source_prior={"a": (0.1, 0.9), "b": (0.05, 0.9)}, random_state=0)
    used = {name: wide[name].source_prior for name in ("a", "b")}
    assert 0.1 <= used["a"] <= 0.9 and 0.05 <= used["b"] <= 0.9 and sum(used.values()) < 0.9
    assert wide["rest"].interval.low < 0.01 and wide["rest"].value > 0.05
    R = wide["a"].negative_ratio
    at_most = ps.estimate_prior(classes, U, T, source_prior={"a": 0.9, "b": 0.05}, random_state=0)
    assert wide["a"].interval.high >= at_most["a"].interval.high - 0.01 * R


def test_p_values_of_differences_agree_with_their_intervals():
    classes, U, T = _normal_classes(2)
    for prior in ({"a": (0.02, 0.45), "b": (0.02, 0.4)}, KNOWN, {"a": stats.beta(4, 16), "b": (0.1, 0.2)}):
        result = ps.estimate_prior(classes, U, T, source_prior=prior, random_state=0)
        for pair in result.differences():
            assert (pair.p_value < 0.05) == (not pair.interval.low <= 0 <= pair.interval.high)
    one = ps.estimate_prior({"a": classes["a"]}, U, T, source_prior={"a": (0.2, 0.4)}, random_state=0)
    [pair] = one.differences()
    low, high = one["a"].interval.low, one["a"].interval.high
    assert (pair.interval.low, pair.interval.high) == pytest.approx((2 * low - 1, 2 * high - 1))
    assert (pair.p_value < 0.05) == (not pair.interval.low <= 0 <= pair.interval.high)


def test_shares_of_a_hypothesis_are_checked():
    classes, U, T = _normal_classes(3)
    result = ps.estimate_prior(classes, U, T, source_prior=KNOWN, random_state=0)
    for shares in (
        0.3,
        {"a": "x", "b": 0.2},
        {"a": float("nan"), "b": 0.1},
        {"a": -0.1, "b": 0.1},
        {"a": 0.8, "b": 0.7},
    ):
        with pytest.raises(InputError, match="share"):
            result.p_value(shares)
    assert result.p_value({"a": 0.1, "b": 0.45}) > 0.01


def test_a_class_named_source_keeps_its_coefficient():
    classes, U, T = _normal_classes(4)
    named = {"source": classes["a"], "b": classes["b"]}
    result = ps.estimate_prior(named, U, T, source_prior={"source": 0.2, "b": 0.15}, random_state=0)
    assert list(result.coefficients) == ["source", "b", "source population"]
    assert sum(result.coefficients.values()) == pytest.approx(1)


def test_a_class_with_few_rows_is_warned_of():
    classes, U, T = _normal_classes(5)
    with pytest.warns(FewPositivesWarning, match="12"):
        ps.estimate_prior({"a": classes["a"][:12], "b": classes["b"]}, U, T, source_prior=KNOWN, random_state=0)


def test_label_errors_are_recorded():
    classes, U, T = _normal_classes(6)
    result = ps.estimate_prior(classes, U, T, source_prior=KNOWN, label_error={"a": {"b": 0.05}}, random_state=0)
    assert result["a"].details["label_error"] == {"a": {"b": 0.05}}
    assert "label_error" not in ps.estimate_prior(classes, U, T, source_prior=KNOWN, random_state=0)["a"].details


def test_a_stated_source_prior_above_the_bound_of_the_tables_is_contradicted():
    classes, U, T = _normal_classes(7, rows=(300, 1500, 1000))
    wrong = ps.diagnose(classes, U, T, source_prior={"a": 0.5, "b": 0.15}, random_state=0)
    assert wrong.verdict.answer == "no" and list(wrong.contradicted_priors) == ["a"]
    assert any("contradicts the tables" in reason for reason in wrong.verdict.reasons)
    right = ps.diagnose(classes, U, T, source_prior=KNOWN, random_state=0)
    assert right.contradicted_priors == {} and "contradicts the tables" not in str(right.verdict)
