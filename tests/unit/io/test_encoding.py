"""Mixed columns: what becomes of them, that it is fitted on the unlabelled sample alone, and what is refused."""

import datetime
import decimal
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.column_checks import encode_tables
from priorshift.io.readers import read_table
from priorshift.io.scaling import Scaling
from priorshift.io.tables import ColumnSelection, Table
from priorshift.problem import Source


def made(n, prior, rng, gaps=0.1):
    """A population of two classes with a number, a category, a date and a truth value."""
    y = rng.random(n) < prior
    x = np.where(rng.random(n) < gaps, np.nan, rng.normal(size=n) + 1.5 * y)
    group = np.where(rng.random(n) < 0.6, np.where(y, "north", "south"), rng.choice(["north", "south", "east"], n))
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 300, n) + 50 * y, unit="D")
    return pd.DataFrame({"x": x, "group": group, "when": when, "flag": rng.random(n) < 0.3 + 0.3 * y})


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    sizes = {"positive": (150, 1.0), "unlabeled": (400, 0.3), "target": (400, 0.6)}
    return {name: made(n, prior, rng) for name, (n, prior) in sizes.items()}


def test_what_becomes_of_each_kind_of_column_is_what_the_formulas_say():
    when = ["2024-01-01", None, "2024-07-01T12:00:00"]
    table = pd.DataFrame(
        {"x": [1.0, np.nan, 4.0], "c": ["b", None, "a"], "d": when, "t": pd.to_timedelta([1, 2, 3], "h")}
    )
    encoder = ps.TableEncoder(min_frequency=1).fit(table)
    days = [19723.0, (19723.0 + 19905.5) / 2, 19905.5]  # of 2024-01-01 since 1970 by the calendar
    angle = 2 * np.pi * np.array([0.0, np.nan, 182.5]) / 365.2425
    expected = {
        "x": [1, 2.5, 4], "d (days)": days, "t": np.array([1, 2, 3]) / 24, "x (missing)": [0, 1, 0],
        "d (missing)": [0, 1, 0], "d (sine of the year)": np.nan_to_num(np.sin(angle)),
        "d (cosine of the year)": np.nan_to_num(np.cos(angle)),
        "c = (missing)": [0, 1, 0], "c = a": [0, 0, 1], "c = b": [1, 0, 0],
    }  # fmt: skip
    assert encoder.get_feature_names_out().tolist() == list(expected)
    np.testing.assert_allclose(encoder.transform(table), np.column_stack(list(expected.values())), atol=1e-12)
    assert [c.kind for c in encoder.summary_.columns] == ["number", "category", "date", "number"]
    assert encoder.summary_.line() == "2 numbers, 1 category (c), 1 date (d)"
    assert encoder.summary_.to_dict()["x"]["missing"] == 0.3333


def test_rare_levels_and_levels_that_were_not_there_are_one():
    encoder = ps.TableEncoder(min_frequency=2).fit(pd.DataFrame({"c": ["a", "a", "b", "b", "c", "d"]}))
    assert encoder.get_feature_names_out().tolist() == ["c = a", "c = b", "c = (rare)"]
    rows = encoder.transform(pd.DataFrame({"c": ["a", "c", "d", "never", None]}))
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    assert encoder.summary_.columns[0].became == "2 levels and 2 rare ones together"


def test_without_rare_levels_a_new_one_is_none_of_them():
    encoder = ps.TableEncoder(min_frequency=1).fit(pd.DataFrame({"c": ["a", "b"]}))
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"c": ["b", "never"]})), [[0, 1], [0, 0]])


def test_frames_of_every_library_and_arrays_of_objects_are_encoded_alike(samples):
    frame = samples["unlabeled"]
    polars = pl.from_pandas(frame)
    expected = ps.TableEncoder().fit_transform(frame)
    for same in (polars, polars.to_arrow(), polars.with_columns(pl.col("group").cast(pl.Categorical))):
        np.testing.assert_array_equal(ps.TableEncoder().fit_transform(same), expected)
    np.testing.assert_array_equal(ps.TableEncoder().fit_transform(frame.to_numpy()), expected)
    np.testing.assert_array_equal(ps.TableEncoder().fit_transform(frame.astype(object)), expected)
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], [[0, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(ps.TableEncoder().fit_transform(masked), [[1, 2, 0], [3, 5.5, 1], [5, 9, 0]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.array([1, None, 4], dtype="Int64"), [1, 2.5, 4]),
        (pd.array([True, None, False], dtype="boolean"), [1, 0.5, 0]),
        (np.array([True, None, False], dtype=object), [1, 0.5, 0]),
        (np.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], dtype=object), [1.5, 2, 2.5]),
        (pl.Series([1.5, None, 2.5], dtype=pl.Decimal(10, 2)), [1.5, 2, 2.5]),
        (pl.Series([datetime.time(6), None, datetime.time(12)]), [0.25, 0.375, 0.5]),
        (pl.Series([datetime.timedelta(1), None, datetime.timedelta(3)]), [1, 2, 3]),
        (np.array([datetime.timedelta(1), None, datetime.timedelta(3)], dtype=object), [1, 2, 3]),
    ],
)
def test_numbers_of_every_type_may_be_missing(column, expected):
    frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    np.testing.assert_allclose(ps.TableEncoder().fit_transform(frame), np.column_stack([expected, [0, 1, 0]]))


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2024-03-01T12:00", "2024-03-02T12:00"]).tz_localize("UTC").tz_convert("Asia/Tokyo"),
        pl.Series([datetime.datetime(2024, 3, 1, 12), datetime.datetime(2024, 3, 2, 12)]).dt.replace_time_zone("UTC")
        .dt.convert_time_zone("America/New_York"),
        np.array([pd.Timestamp("2024-03-01T12:00", tz="UTC"), datetime.datetime(2024, 3, 2, 12)], dtype=object),
        np.array(["2024-03-01T14:00:00+02:00", "2024-03-02T12:00:00Z"], dtype=object),
        np.array(["2024-03-01 12:00", "2024-03-02 12:00:00"], dtype=object),
        np.array(["2024-03-01T12", "2024-03-02T12"], dtype="datetime64[h]"),
    ],
)  # fmt: skip
def test_a_moment_is_the_same_in_every_time_zone(column):
    frame = pl.DataFrame({"d": column}) if isinstance(column, pl.Series) else pd.DataFrame({"d": column})
    np.testing.assert_allclose(ps.TableEncoder().fit_transform(frame)[:, 0], [19783.5, 19784.5])


def test_days_without_a_time_are_dates_too():
    for column in (pl.Series([datetime.date(1970, 1, 2), None]), pl.Series(["1970-01-02", None])):
        np.testing.assert_allclose(ps.TableEncoder().fit_transform(pl.DataFrame({"d": column}))[:, 0], [1, 1])


def test_levels_are_known_by_their_names_whatever_type_a_table_gives_them():
    encoder = ps.TableEncoder(min_frequency=1).fit(pd.DataFrame({"c": pd.Categorical([1, 2, 2])}))
    for column in ([1, 2], [1.0, 2.0], ["1", "2"], pd.Categorical([1, 2], categories=[2, 1, 7])):
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"c": column})), [[1, 0], [0, 1]])
    codes = ps.TableEncoder(min_frequency=1).fit(pd.DataFrame({"c": ["01", "02", "B"]}))
    np.testing.assert_array_equal(codes.transform(pd.DataFrame({"c": [1.0, np.nan]})), [[1, 0, 0], [0, 0, 0]])


def test_other_samples_may_have_other_types():
    encoder = ps.TableEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, np.nan], "d": ["2024-01-01", "2024-01-02", None]}))
    text = pd.DataFrame({"x": ["1", "2.5"], "d": pd.to_datetime(["2024-01-01", None])})
    np.testing.assert_array_equal(encoder.transform(text)[:, :4], [[1, 19723, 0, 0], [2.5, 19723.5, 0, 1]])
    empty = pd.DataFrame({"x": np.array([None, None], dtype=object), "d": [np.nan, np.nan]})
    np.testing.assert_array_equal(encoder.transform(empty)[:, :4], [[1.5, 19723.5, 1, 1]] * 2)
    whole = pd.DataFrame({"d": ["2024-01-03"], "x": [7]})  # and in another order
    np.testing.assert_array_equal(encoder.transform(whole)[:, :4], [[7, 19725, 0, 0]])


def test_the_encoder_keeps_to_scikit_learns_contract(samples):
    encoder = ps.TableEncoder(min_frequency=3)
    assert clone(encoder).min_frequency == 3
    before = samples["unlabeled"].copy(deep=True)
    fitted = encoder.fit(samples["unlabeled"])
    pd.testing.assert_frame_equal(samples["unlabeled"], before)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(samples["target"]), fitted.transform(samples["target"]))
    assert fitted.n_features_in_ == 4 and fitted.feature_names_in_.tolist() == ["x", "group", "when", "flag"]
    framed = clone(encoder).set_output(transform="pandas").fit(samples["unlabeled"]).transform(samples["target"])
    assert framed.columns.tolist() == fitted.get_feature_names_out().tolist()
    piped = make_pipeline(ps.TableEncoder(), StandardScaler()).fit_transform(samples["unlabeled"])
    np.testing.assert_allclose(piped.std(axis=0), 1)
    assert str(again.summary_).splitlines()[0].split() == ["column", "kind", "missing", "became"]
    fitted.fit(samples["unlabeled"].to_numpy())
    assert not hasattr(fitted, "feature_names_in_")


def test_tables_of_numbers_give_the_same_answer_bit_by_bit_with_and_without_an_encoder(tmp_path):
    s = ps.simulate.gaussian(0.2, 0.6, n_source=150, n_target=120, shared=False, random_state=1)
    tables = {"positive": s.positive, "unlabeled": s.unlabeled, "target": s.target}
    names = [f"x{k}" for k in range(s.target.shape[1])]
    frames = {key: pd.DataFrame(X, columns=names) for key, X in tables.items()}
    for key, frame in frames.items():
        frame.to_csv(tmp_path / f"{key}.csv", index=False)
    some = [
        tables,
        frames,
        {key: frame.astype(np.float32) for key, frame in frames.items()},
        {key: pl.from_pandas(frame) for key, frame in frames.items()},
        {key: tmp_path / f"{key}.csv" for key in tables},
    ]
    for given in some:
        answers = [ps.estimate_prior(**given, source_prior=0.2, random_state=0, encoder=e) for e in ("auto", None)]
        assert answers[0] == answers[1] and "columns" not in answers[0].details


def test_an_encoded_category_gives_the_ratio_in_closed_form():
    """With two levels every kernel's means lie on one line, so R = (q_T − q_P)/(q_U − q_P), q the share of a level."""
    share = {"positive": 0.8, "unlabeled": 0.35, "target": 0.6}
    tables = {name: pd.DataFrame({"sex": np.repeat(["f", "m"], [round(100 * q), round(100 - 100 * q)])})
              for name, q in share.items()}  # fmt: skip
    R = (share["target"] - share["positive"]) / (share["unlabeled"] - share["positive"])
    answer = ps.estimate_prior(**tables, method=ps.TCPU(0.3, statistic="plug-in", interval=None))
    assert answer.negative_ratio == pytest.approx(R)
    assert answer.raw == pytest.approx(1 - 0.7 * R)


def test_the_prior_of_mixed_tables_is_estimated_and_says_what_was_done(samples):
    answer = ps.estimate_prior(**samples, source_prior=0.3, random_state=0)
    assert answer.interval.low <= 0.6 <= answer.interval.high and answer.interval.high - answer.interval.low < 0.3
    assert {name: told["kind"] for name, told in answer.details["columns"].items()} == {
        "x": "number", "group": "category", "when": "date", "flag": "number"}  # fmt: skip
    assert answer.to_dict()["details"]["columns"]["group"]["became"] == "3 levels"
    numbers = {key: frame[["x", "flag"]].fillna(0.0) for key, frame in samples.items()}
    alone = ps.estimate_prior(**numbers, source_prior=0.3, random_state=0)
    assert answer.standard_error < alone.standard_error


def test_the_encoding_does_not_know_the_target(samples):
    """The same source, with another target beside it, is encoded alike."""
    other = samples["target"].assign(x=np.nan)
    other["group"] = np.where(np.arange(len(other)) % 2, "elsewhere", other["group"])
    tables = []
    for target in (samples["target"], other):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ColumnWarning)
            P, U = read_table(samples["positive"], "P"), read_table(samples["unlabeled"], "U")
            tables.append(encode_tables([P], U, [read_table(target, "T")], [], "auto"))
    ([P], U, _), ([other_P], other_U, _) = tables
    np.testing.assert_array_equal(P.values, other_P.values)
    np.testing.assert_array_equal(U.values, other_U.values)


def test_levels_keep_their_scale_and_a_column_counts_once(samples):
    P, U, T = (read_table(samples[n], n) for n in ("positive", "unlabeled", "target"))
    _, U, _ = encode_tables([P], U, [T], [], "auto")
    scaling = Scaling.from_rows(U.values, np.arange(len(U.values)), True, U.origin)
    spread = U.values.std(axis=0)
    np.testing.assert_allclose(scaling.factor, np.where(U.origin.own_scale, 1.0, 1 / spread))
    assert scaling.features == 4 < U.width == 9
    own = dict(zip(U.columns, U.origin.own_scale, strict=True))
    assert not own["x"] and not own["when (days)"] and not own["flag"] and own["x (missing)"] and own["group = east"]
    assert Scaling.from_rows(U.values, np.arange(len(U.values)), False, U.origin).factor.tolist() == [1.0] * 9
    # a level that one sample lacks is left out as other constants
    constant = U.values.copy()
    constant[:, -1] = 0.0
    assert Scaling.from_rows(constant, np.arange(len(constant)), True, U.origin).factor[-1] == 0
    source = Source.from_labels(U, np.arange(len(U.values)) < 50, scenario="case-control", standardize=True)
    assert source.scaling.origin is U.origin


def test_numbers_beside_many_levels_are_cut_off_far_outside_only():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=600), "c": rng.choice([f"level {k}" for k in range(30)], 600)})
    other = frame[300:].assign(x=rng.normal(size=300))
    P, U, T = read_table(frame[:300], "P"), read_table(frame, "U"), read_table(other, "T")
    [P], U, _ = encode_tables([P], U, [T], [], "auto")
    y = np.repeat([1, 0], [300, 600])
    X = Table("X", np.concatenate([P.values, U.values]), U.columns, origin=U.origin)
    fitted = ps.WitnessShift(0.3, repeats=1, random_state=0).fit(X, y)
    prepared = fitted.scored_.prepare(np.array([[3.0, *np.zeros(30)], [4.0, *np.zeros(30)]]))
    assert prepared[1, 0] > prepared[0, 0]


# ---- transformers that users bring


def _numbers(frame):
    x = frame["x"].fillna(0.0).to_numpy()
    return np.column_stack([x, frame["flag"]])


class Recorder(TransformerMixin, BaseEstimator):
    """Keeps what it was fitted on and what it was asked for."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        Recorder.seen = [X]
        return self

    def transform(self, X):
        Recorder.seen.append(X)
        return _numbers(X)


def test_a_transformer_is_fitted_on_the_unlabelled_rows_as_they_were_passed(samples):
    with_more = {key: frame.assign(id=np.arange(len(frame)), note="n") for key, frame in samples.items()}
    with_more["target"] = with_more["target"][["note", "when", "x", "flag", "group", "id"]]
    answer = ps.estimate_prior(
        **with_more, source_prior=0.3, random_state=0, encoder=Recorder(), drop="note", shared="id"
    )
    seen = Recorder.seen
    assert [len(frame) for frame in seen] == [400, 400, 150, 400]
    assert all(list(frame.columns) == ["x", "group", "when", "flag"] for frame in seen)
    pd.testing.assert_frame_equal(seen[0], samples["unlabeled"])
    numbers = {key: _numbers(frame) for key, frame in samples.items()}
    ids = np.concatenate([np.arange(150), np.arange(400)])
    X, y = np.concatenate([numbers["positive"], numbers["unlabeled"]]), np.repeat([1, 0], [150, 400])
    direct = ps.WitnessShift(0.3, random_state=0).fit(X, y, shared=ids).estimate(numbers["target"])
    assert answer.value == direct.value


def test_what_a_transformer_gives_may_be_sparse_dense_or_a_frame(samples):
    one_hot = OneHotEncoder(handle_unknown="ignore")
    answers = []
    for sparse, output in ((True, "default"), (False, "default"), (False, "pandas")):
        encoder = make_column_transformer(
            (clone(one_hot).set_params(sparse_output=sparse), ["group"]), sparse_threshold=1.0
        ).set_output(transform=output)
        answers.append(ps.estimate_prior(**samples, source_prior=0.3, random_state=0, encoder=encoder).value)
    assert answers[0] == answers[1] == answers[2]


def test_skrubs_vectorizer_is_a_transformer(samples, tmp_path):
    skrub = pytest.importorskip("skrub")
    encoder = make_pipeline(skrub.TableVectorizer(), SimpleImputer())
    answer = ps.estimate_prior(**samples, source_prior=0.3, random_state=0, encoder=encoder)
    assert answer.interval.low <= 0.6 <= answer.interval.high
    for key, frame in samples.items():
        frame.to_csv(tmp_path / f"{key}.csv", index=False)
        pl.from_pandas(frame).write_parquet(tmp_path / f"{key}.parquet")
    for suffix in ("csv", "parquet"):
        files = {key: tmp_path / f"{key}.{suffix}" for key in samples}
        by_file = ps.estimate_prior(**files, source_prior=0.3, random_state=0, encoder=encoder)
        assert by_file.value == pytest.approx(answer.value, abs=0.02)
    with pytest.raises(InputError, match=r"make_pipeline"):
        ps.estimate_prior(**samples, source_prior=0.3, encoder=skrub.TableVectorizer())


def test_transformers_that_cannot_be_used_are_named(samples):
    cases = [
        ("all", "encoder is 'all', but it must be 'auto', None or a transformer"),
        (5, "encoder is 5, but it must be 'auto', None or a transformer with fit, get_params, transform"),
        (StandardScaler, "encoder is the class StandardScaler, but 'auto', None or a transformer is expected"),
        (StandardScaler(), "StandardScaler .*unlabeled"),
        (FunctionTransformer(lambda X: X[["x"]]), "output of FunctionTransformer for unlabeled contains NaN"),
        (FunctionTransformer(lambda X: X[["group"]]), "output of FunctionTransformer for unlabeled holds '"),
        (
            FunctionTransformer(lambda X: X[["flag"]][:3]),
            "3 rows for the 400 of unlabeled",
        ),
    ]
    for encoder, message in cases:
        with pytest.raises(InputError, match=message):
            ps.estimate_prior(**samples, source_prior=0.3, encoder=encoder)


def test_a_transformer_of_a_file_needs_a_library_of_frames(samples, tmp_path, monkeypatch):
    import builtins

    usual = builtins.__import__

    def without(name, *rest, **named):
        if name in ("pandas", "polars"):
            raise ImportError(name)
        return usual(name, *rest, **named)

    for key, frame in samples.items():
        frame.to_csv(tmp_path / f"{key}.csv", index=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pandas or polars"):
        ps.estimate_prior(**{key: tmp_path / f"{key}.csv" for key in samples}, encoder=Recorder())


# ---- files and the command line


def write(samples, folder, kind):
    arguments = []
    for key, frame in samples.items():
        path = folder / f"{key}.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        else:
            pl.from_pandas(frame).write_parquet(path)
        arguments += [f"--{key}", str(path)]
    return arguments


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_command_reads_mixed_files_and_says_what_it_did(samples, kind, tmp_path, capsys):
    arguments = write(samples, tmp_path, kind)
    assert main(["estimate", *arguments, "--source-prior", "0.3", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == "priorshift: columns: 2 numbers, 1 category (group), 1 date (when)\n"
    direct = ps.estimate_prior(**samples, source_prior=0.3, random_state=0)
    assert f'"value": {direct.value!r}' in said.out and '"columns": {"x": {"kind": "number"' in said.out
    assert main(["estimate", *arguments, "--source-prior", "0.3", "--encoder", "none"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_splits_a_mixed_table_and_adapts_to_a_mixed_target(samples, tmp_path, capsys):
    source = pd.concat([samples["positive"].assign(label="yes"), samples["unlabeled"].assign(label="no")])
    source.to_csv(tmp_path / "source.csv", index=False)
    samples["target"].to_csv(tmp_path / "target.csv", index=False)
    tables = ["--source", str(tmp_path / "source.csv"), "--target", str(tmp_path / "target.csv")]
    source.assign(label=(source["label"] == "yes").astype(int)).to_csv(tmp_path / "source.csv", index=False)
    output = tmp_path / "out.csv"
    arguments = [*tables, "--label-column", "label", "--source-prior", "0.3"]
    assert main(["adapt", *arguments, "--classifier", "logistic", "--output", str(output)]) == 0
    assert "columns: 2 numbers" in capsys.readouterr().err
    decided = pd.read_csv(output)
    assert decided.columns.tolist() == ["x", "group", "when", "flag", "posterior", "decision"]
    assert decided["posterior"].between(0, 1).all()
    assert main(["estimate", *arguments]) == 0
    # the names that are added must be new, also where a column was encoded
    for path in ("source.csv", "target.csv"):
        pd.read_csv(tmp_path / path).rename(columns={"group": "decision"}).to_csv(tmp_path / path, index=False)
    capsys.readouterr()
    assert main(["adapt", *arguments, "--classifier", "logistic", "--output", str(output)]) == 2
    assert "has a column 'decision' already; rename it" in capsys.readouterr().err


def test_a_parquet_file_is_split_too(samples, tmp_path, capsys):
    source = pd.concat([samples["positive"].assign(label=1), samples["unlabeled"].assign(label=0)])
    arguments = write({"source": source, "target": samples["target"]}, tmp_path, "parquet")
    assert main(["estimate", *arguments, "--label-column", "label", "--source-prior", "0.3"]) == 0
    said = capsys.readouterr().out
    assert said == f"{ps.estimate_prior(**samples, source_prior=0.3, random_state=0)}\n"


# ---- what is left out, and what is refused

U = pd.DataFrame({"x": np.arange(40) % 7 + 0.5, "c": ["a", "b"] * 20, "d": pd.date_range("2024-01-01", periods=40)})


def with_cell(column, value):
    table = U.astype(object)
    table.loc[3, column] = value
    return table


def test_columns_without_a_value_are_left_out():
    for empty in (np.full(40, np.nan), np.array([None] * 40, dtype=object), pd.Categorical([None] * 40), [""] * 40,
                  pd.to_datetime([None] * 40)):  # fmt: skip
        with pytest.warns(ColumnWarning, match=r"column 'gone'"):
            encoder = ps.TableEncoder().fit(U.assign(gone=empty))
        assert "gone" not in " ".join(encoder.get_feature_names_out())
        assert encoder.summary_.columns[3].kind == "left out" and "1 left out (gone)" in encoder.summary_.line()
        # whatever another sample has there
        np.testing.assert_array_equal(encoder.transform(U.assign(gone="text")), ps.TableEncoder().fit(U).transform(U))


BAD_CELLS = [
    ("x", "tall", r"target holds 'tall' in row 3 \(counting from 0\), column 'x', but the unlabelled source sample has "
     "numbers"),
    ("x", "3,5", "holds '3,5' in row 3 .* has numbers, with a decimal point"),
    ("x", "1_000", "holds '1_000' in row 3"),
    ("x", "inf", "holds 'inf' in row 3"),
    ("x", pd.Timestamp("2024-01-01"), "holds '2024-01-01 00:00:00' in row 3 .*, column 'x'"),
    ("d", "2024-13-45", "holds '2024-13-45' in row 3 .*, column 'd', .* has dates such as 2024-03-31"),
    ("d", "31.12.2024", "holds '31.12.2024' in row 3"),
    ("d", "soon", "holds 'soon' in row 3"),
    ("d", 20240101, "holds '20240101' in row 3"),
    ("c", ["a", "b"], r"column 'c' of target holds \['a', 'b'\] \(type list\)"),
    ("c", {"a": 1}, r"column 'c' of target holds \{'a': 1\} \(type dict\)"),
    ("c", b"bytes", r"column 'c' of target holds b'bytes' \(type bytes\)"),
    ("c", (1, 2), r"holds \(1, 2\) \(type tuple\)"),
    ("c", 1 + 2j, r"holds \(1\+2j\) \(type complex\)"),
    ("x", np.inf, r"target contains infinity \(inf\) in row 3 \(counting from 0\), column 'x'; replace it by a number"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "message"), BAD_CELLS)
def test_cells_that_do_not_fit_are_refused(column, value, message):
    table = U.astype(object)
    table.at[3, column] = value
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(U[:20], U[5:], table, source_prior=0.2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pl.DataFrame({"a": [[1, 2], [3]]}), r"column 'a' of .* holds cells of type List\(Int64\)"),
        (pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}), "holds cells of type Struct"),
        (pl.DataFrame({"a": [b"x", b"y"]}), "holds cells of type Binary"),
        (pd.DataFrame({"a": [None, None], "b": [np.nan, np.nan]}), "no column of the table has a value; pass columns"),
        (pd.DataFrame([["a", 1], ["b", 2]], columns=["x", "x"]), "more than one column named 'x'"),
        (pd.DataFrame({"a": [1, 2], "": ["a", "b"]}), "has no name for column 2"),
        (pd.DataFrame({"a": []}, dtype=object), r"has 0 row\(s\)"),
        (pd.DataFrame(index=range(3)), r"has 0 feature\(s\)"),
        ([["a", 1], ["b"]], "has rows of different lengths"),
        (["a", "b"], "has 1 dimension, but rows and columns are expected"),
        (np.array([[10**400, "a"], [1, "b"]], dtype=object), "column 0 of .* too large for a float"),
        (pd.DataFrame({"a": [f"name {k}" for k in range(50)]}),
         r"50 different texts in column 'a', such as 'name 0'.*\(drop=\['a'\], --drop a\).*--group-column"),
        ("nowhere.csv", "does not exist; check the path"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_encoded_are_refused(table, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        with pytest.raises(InputError, match=message):
            ps.TableEncoder().fit(table)


def test_many_levels_are_a_category_where_they_repeat():
    levels = pd.DataFrame({"c": ["a"] * 30 + [f"name {k}" for k in range(25)]})
    assert ps.TableEncoder().fit_transform(levels).shape == (55, 2)
    few = pd.DataFrame({"c": [f"name {k % 20}" for k in range(30)]})  # no more than twenty are never too many
    assert ps.TableEncoder().fit_transform(few).shape == (30, 1)
    regions = pd.DataFrame({"c": [f"region {k % 50}" for k in range(150)]})  # three rows each
    assert ps.TableEncoder().fit_transform(regions).shape == (150, 1)
    with pytest.raises(InputError, match=r"50 different"):
        ps.TableEncoder().fit(regions[:100])


@pytest.mark.parametrize("wrong", [0, 0.5, True, "all", None])
def test_a_frequency_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match=r"min_frequency"):
        ps.TableEncoder(min_frequency=wrong).fit(U)


def test_other_columns_are_refused():
    encoder = ps.TableEncoder().fit(U)
    with pytest.raises(InputError, match=r"'c'.*'e'"):
        encoder.transform(U.rename(columns={"c": "e"}))
    with pytest.raises(InputError, match=r"2 features.* 3"):
        encoder.transform(U.to_numpy()[:, :2])
    with pytest.raises(InputError, match=r"'z'"):
        ps.estimate_prior(U[:20], U, U[3:], drop=["z"])
    with pytest.raises(InputError, match=r"column 'id'"):
        ps.estimate_prior(U.to_numpy()[:20], U.to_numpy(), U.to_numpy()[3:], shared="id")


def test_a_file_with_decimal_commas_beside_one_with_points_is_refused_or_read(tmp_path):
    (tmp_path / "u.csv").write_text("x,c\n" + "".join(f"{k / 7:.3f},{'ab'[k % 2]}\n" for k in range(30)))
    (tmp_path / "t.csv").write_text("x,c\n" + "".join(f'"{k},5 cm",{"ab"[k % 2]}\n' for k in range(30)))
    with pytest.raises(InputError, match=r"'0,5 cm' in row 0"):
        ps.estimate_prior(tmp_path / "u.csv", tmp_path / "u.csv", tmp_path / "t.csv")


def test_reading_mixed_tables_keeps_what_is_set_aside_and_says_what_was_dropped():
    table = read_table(
        U.assign(id=range(40), note="n"), "U", ColumnSelection(extra=["id"], drop=["note"], optional=["audit"])
    )
    assert (
        table.columns == ("x", "c", "d") and table.dropped == ("note",) and table.extra["id"].tolist() == [*range(40)]
    )
    assert list(table.native.columns) == ["x", "c", "d"]
    assert read_table(table, "again").as_cells() is table
    assert isinstance(read_table(U[["x"]], "U"), Table)


def test_a_named_pipe_of_mixed_cells_is_read_once(samples, tmp_path):
    import os
    import threading

    pipe = tmp_path / "target"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(samples["target"].to_csv(index=False)))
    writer.start()
    table = read_table(pipe, "target")
    writer.join()
    np.testing.assert_array_equal(table.cells[0], samples["target"]["x"])
    assert table.columns == ("x", "group", "when", "flag")
