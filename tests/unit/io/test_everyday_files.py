"""Files and tables as people have them: from Excel and R, with their dates, codes, row names and missing values."""

import json
import re
import time
import warnings
import zipfile
from datetime import date, datetime

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.cells import as_date, find_date_orders, object_cells
from priorshift.io.chunks import Chunks
from priorshift.io.column_checks import numbers_persons
from priorshift.io.readers import read_table
from priorshift.io.tables import CellRules, ColumnSelection
from priorshift.io.workbook_writer import write_workbook
from priorshift.io.workbooks import add_workbook_columns


def tables(n=400, prior=0.6, seed=0):
    """Positives, unlabelled rows and a target, as data frames, with a prior of 0.3 in the source."""
    rng = np.random.default_rng(seed)

    def draw(n, prior):
        y = rng.random(n) < prior
        pain = np.where(rng.random(n) < 0.3 + 0.4 * y, "none", rng.choice(["mild", "severe"], n))
        return pd.DataFrame({"x": rng.normal(size=n) + 2 * y, "z": rng.normal(size=n), "pain": pain})

    return draw(n // 2, 1.0), draw(n, 0.3), draw(n, prior)


def save(folder, frames, write, ending="csv"):
    """Write three tables by `write(frame, path)`; return the options that name them."""
    options = []
    for role, frame in zip(("positive", "unlabeled", "target"), frames, strict=True):
        path = folder / f"{role}.{ending}"
        write(frame, path)
        options += [f"--{role}", str(path)]
    return options


def estimate(frames, **options):
    return ps.estimate_prior(*frames, source_prior=0.3, random_state=0, **options)


def shell(capsys, *words):
    """Exit code of a command, its JSON and its messages."""
    code = main(["estimate", *words, "--source-prior", "0.3", "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if captured.out else None, captured.err


def write_xlsx(frame, path):
    frame.to_excel(path, index=False, engine="openpyxl")


@pytest.mark.parametrize(
    ("write", "ending", "has_row_names"),
    [
        (lambda frame, path: frame.to_csv(path, index=False), "csv", False),
        (lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","), "csv", False),
        (lambda frame, path: frame.to_csv(path), "csv", True),
        (write_xlsx, "xlsx", False),
    ],
)
def test_a_file_gives_what_its_data_frame_gives(write, ending, has_row_names, tmp_path, capsys):
    frames = tables()
    words = save(tmp_path, frames, write, ending)
    code, result, err = shell(capsys, *words)
    assert code == 0 and result["value"] == pytest.approx(estimate(frames).value, abs=1e-9)
    assert err.count("row names") == has_row_names  # one notice for three tables


def test_none_is_a_level_among_words_and_a_gap_among_numbers(tmp_path):
    """A small table that has only "none" follows the others."""
    rng = np.random.default_rng(0)
    U = pd.DataFrame(
        {"x": rng.normal(size=60), "pain": ["none", "mild", "severe"] * 20, "drinks": ["none", "1", "2"] * 20}
    )
    T = pd.DataFrame({"x": rng.normal(size=12), "pain": ["none"] * 12, "drinks": ["none"] * 12})
    U.to_csv(tmp_path / "u.csv", index=False)
    T.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(ColumnWarning, match="'none' in column 'drinks' was read as a missing value"):
        encoder = ps.TableEncoder(min_frequency=1).fit(tmp_path / "u.csv")
    kinds = {column.name: column.kind for column in encoder.summary_.columns}
    assert kinds == {"x": "number", "pain": "category", "drinks": "number"}
    encoded = dict(zip(encoder.get_feature_names_out(), encoder.transform(tmp_path / "t.csv").T, strict=True))
    assert (encoded["pain = none"] == 1).all() and (encoded["drinks (missing)"] == 1).all()


def test_missing_values_and_categories_are_as_the_user_states_them():
    frames = [frame.assign(code=np.tile([1, 2, 3, 40], 200)[: len(frame)], band=frame["z"] + 50) for frame in tables()]
    for frame in frames:
        frame.loc[frame.index % 10 == 3, "band"] = -9999
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = estimate(frames, missing=[-9999], columns={"code": "category"})
    uses = result.details["columns"]
    assert uses["code"]["kind"] == "category" and uses["band"]["missing"] == pytest.approx(0.1, abs=0.01)
    as_nan = [
        frame.assign(band=frame["band"].replace(-9999, np.nan), code=frame["code"].astype(str)) for frame in frames
    ]
    assert result.value == estimate(as_nan).value
    with pytest.raises(InputError, match="no table has a column 'cod' whose kind is stated"):
        estimate(frames, columns={"cod": "category"})
    with pytest.raises(InputError, match="'text' for column 'code', but it must be one of 'category'"):
        estimate(frames, columns={"code": "text"})


def test_the_shell_takes_missing_values_and_categories(tmp_path, capsys):
    frames = [frame.assign(zip=np.tile(["01", "02", "30"], 200)[: len(frame)]) for frame in tables()]
    for frame in frames:
        frame.loc[frame.index % 10 == 3, "z"] = -9999
    words = save(tmp_path, frames, lambda frame, path: frame.to_csv(path, index=False))
    code, result, err = shell(capsys, *words, "--missing", "-9999", "--category", "zip")
    assert code == 0 and "2 categories (pain, zip)" in err and "-9999" not in err
    assert result["value"] == estimate([frame.replace(-9999, np.nan) for frame in frames]).value


@pytest.mark.parametrize(
    ("texts", "orders"),
    [
        (["2020-06-15", "2020-01-02"], ["year-first"]),
        (["2020/06/15", "2020/1/2 13:05"], ["year-first"]),
        (["15.06.2020", "1.2.2020"], ["day-first"]),
        (["1.2.2020", "3.4.2020"], ["day-first"]),  # points put the day first
        (["06/15/2020", "01/02/2020"], ["month-first"]),
        (["15/06/2020 23:59:01", "01/02/2020"], ["day-first"]),
        (["01-02-2020", "03-04-2020"], ["day-first", "month-first"]),
        (["15/06/2020", "06/15/2020"], []),
        (["31.06.2020"], []),
        (["none", "?"], []),
        (["12.5.1"], []),
    ],
)  # fmt: skip
def test_dates_as_people_write_them(texts, orders):
    assert find_date_orders(object_cells([*texts, None])) == orders
    for order in orders[:1]:
        for text in texts:
            separator = next(mark for mark in "-/." if mark in text)
            parts = [int(part) for part in text.split(" ")[0].split(separator)]
            if order == "day-first":
                parts = parts[::-1]
            elif order == "month-first":
                parts = [parts[2], parts[0], parts[1]]
            assert as_date(text, order).astype("datetime64[D]").item() == date(*parts)


def test_the_time_of_a_date_may_have_twelve_hours():
    assert as_date("6/15/2020 12:30 AM", "month-first").item() == datetime(2020, 6, 15, 0, 30)
    assert as_date("6/15/2020 2:30 pm", "month-first").item() == datetime(2020, 6, 15, 14, 30)


def with_dates(write, days=300):
    rng = np.random.default_rng(1)
    frames = []
    for frame in tables():
        when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, days, len(frame)), "D")
        frames.append(frame.assign(when=[write(day) for day in when]))
    return frames


@pytest.mark.parametrize("pattern", ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y"])
def test_a_date_is_the_same_however_it_is_written(pattern):
    expected = estimate(with_dates(lambda day: day))
    assert estimate(with_dates(lambda day: day.strftime(pattern))).value == expected.value


def test_an_ambiguous_order_of_day_and_month_is_asked_for():
    frames = with_dates(lambda day: day.replace(day=1 + day.day % 12).strftime("%d/%m/%Y"))
    with pytest.raises(InputError, match=r"'day-first'} or 'month-first' \(--day-first when or --month-first when\)"):
        estimate(frames)
    values = {order: estimate(frames, columns={"when": order}).value for order in ("day-first", "month-first")}
    assert values["day-first"] != values["month-first"]
    with pytest.raises(InputError, match="is not a month-first date"):
        estimate(with_dates(lambda day: day.strftime("%d/%m/%Y")), columns={"when": "month-first"})


def test_a_target_with_another_order_than_the_source_is_refused():
    P, U, _ = with_dates(lambda day: day.strftime("%d/%m/%Y"))
    _, _, T = with_dates(lambda day: day.strftime("%m/%d/%Y"))
    with pytest.raises(InputError, match=r"has dates such as 31\.03\.2024"):
        estimate([P, U, T])


@pytest.mark.parametrize(
    ("name", "is_reported"), [("patient", True), ("income", False), ("patient_id", True), ("grid", False)]
)
def test_a_forgotten_id_of_persons_is_reported(name, is_reported):
    rng = np.random.default_rng(3)
    frames = tables(n=2814)
    sizes = [len(frame) for frame in frames]
    ids = rng.permutation(np.concatenate([np.arange(5000), rng.choice(5000, sum(sizes) - 5000)])) + 1000
    persons = np.split(ids, np.cumsum(sizes)[:2])  # each has one or several visits
    if name != "patient":
        persons = [np.round(40_000 * np.exp(rng.normal(size=len(frame)))) for frame in frames]
    frames = [frame.assign(**{name: column}) for frame, column in zip(frames, persons, strict=True)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate(frames)
    reported = [str(warning.message) for warning in caught if "looks like an id" in str(warning.message)]
    assert bool(reported) == is_reported
    if is_reported:
        assert "--group-column" in reported[0] and f"--drop {name}" in reported[0]


def test_a_workbook_with_several_sheets_needs_the_name_of_one(tmp_path, capsys):
    frames, book = tables(), tmp_path / "book.xlsx"
    with pd.ExcelWriter(book, engine="openpyxl") as writer:
        for name, frame in zip(("cases", "survey", "new"), frames, strict=True):
            frame.to_excel(writer, sheet_name=name, index=False)
    words = ["--positive", str(book), "--unlabeled", str(book), "--target", str(book)]
    code, _, err = shell(capsys, *words)
    assert code == 2 and "has the sheets 'cases', 'survey', 'new'" in err
    code, result, _ = shell(
        capsys, *words, "--sheet", "positive=cases", "--sheet", "unlabeled=survey", "--sheet", "target=new"
    )
    expected = estimate(frames).value
    assert code == 0 and result["value"] == pytest.approx(expected)
    sheets = {"positive": "cases", "unlabeled": "survey", "target": "new"}
    assert estimate([book] * 3, sheet=sheets).value == pytest.approx(expected)
    with pytest.raises(InputError, match="has no sheet 'old'; its sheets are"):
        estimate([book] * 3, sheet="old")


def test_cells_of_a_workbook(tmp_path):
    book = openpyxl.Workbook()
    for row in (
        [None, None, None, None, None],
        ["when", "x", "typed", "code", None],
        [datetime(2020, 6, 15), 1, "0,5", "A", None],
        [datetime(2020, 6, 16), "#DIV/0!", "1,25", "=1+1", None],
        [None, None, None, None, None],
        [None, 2.5, "NA", "none", None],
    ):
        book.active.append(row)
    for cell in (book.active["D4"],):
        cell.data_type = "s"
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", "t")
    assert table.columns == ("when", "x", "typed", "code")
    when, x, typed, code = table.cells
    assert when.dtype.kind == "M" and np.isnat(when[2])
    np.testing.assert_array_equal(x, [1, np.nan, 2.5])
    np.testing.assert_array_equal(typed, [0.5, 1.25, np.nan])
    assert code.tolist() == ["A", "=1+1", "none"]


def test_decisions_and_series_are_written_as_the_input_is(tmp_path, capsys):
    P, U, T = tables()
    T = T.assign(month=np.where(np.arange(len(T)) % 2, "jan", "feb"))
    words = save(tmp_path, (P, U, T), lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","))
    common = [*words, "--by", "month", "--source-prior", "0.3"]
    assert main(["estimate", *common, "--output", str(tmp_path / "series.csv")]) == 0
    series = pd.read_csv(tmp_path / "series.csv", sep=";", decimal=",")
    assert 0.4 < series["estimate"].mean() < 0.8
    assert main(["estimate", *common, "--output", str(tmp_path / "series.xlsx")]) == 0
    np.testing.assert_allclose(pd.read_excel(tmp_path / "series.xlsx")["estimate"], series["estimate"], rtol=1e-4)
    words = save(tmp_path, (P, U, T), write_xlsx, "xlsx")
    common = [*words, "--by", "month", "--source-prior", "0.3", "--classifier", "logistic"]
    assert main(["adapt", *common, "--output", str(tmp_path / "decided.xlsx")]) == 0
    decided = pd.read_excel(tmp_path / "decided.xlsx")
    pd.testing.assert_frame_equal(decided[list(T)], T)
    assert decided["posterior"].between(0, 1).all() and set(decided["decision"]) == {0, 1}
    assert decided.loc[decided["decision"] == 1, "x"].mean() > decided.loc[decided["decision"] == 0, "x"].mean()
    capsys.readouterr()


def test_windows_text_is_read_with_one_notice(tmp_path, capsys):
    frames = [frame.assign(ort=np.where(frame.index % 2, "Köln", "Zürich")) for frame in tables()]
    words = save(tmp_path, frames, lambda frame, path: frame.to_csv(path, index=False, encoding="cp1252"))
    code, result, err = shell(capsys, *words)
    assert code == 0 and result["value"] == estimate(frames).value and "Windows-1252" in err
    with pytest.warns(ColumnWarning, match="Windows-1252"):
        assert "Köln" in read_table(tmp_path / "target.csv", "t").cells[3]


def test_row_names_of_r(tmp_path):
    """write.csv leaves the name above row names empty; write.table leaves it out."""
    (tmp_path / "csv.csv").write_text('"","x","pain"\n"1",1.5,"none"\n"2",2,"mild"\n')
    (tmp_path / "table.csv").write_text('"x","pain"\n"1",1.5,"none"\n"2",2,"mild"\n')
    for name in ("csv.csv", "table.csv"):
        with pytest.warns(ColumnWarning, match=r"row names, which R \(row.names = TRUE\)"):
            table = read_table(tmp_path / name, "t")
        assert table.columns == ("x", "pain") and table.cells[1].tolist() == ["none", "mild"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("line", ['""', '" "', "NA"])
def test_an_empty_cell_in_quotation_marks_is_a_missing_value_and_no_blank_line(tmp_path, line, stream):
    """pandas writes a missing value of a table with one column in this way."""
    (tmp_path / "t.csv").write_text(f'a\n1\n{line}\n\n3\n"5"\n')
    [table] = Chunks.from_source(tmp_path / "t.csv", "t") if stream else [read_table(tmp_path / "t.csv", "t")]
    [cells] = table.cells
    assert [None if np.isnan(cell) else cell for cell in cells.tolist()] == [1, None, 3, 5]


def test_lazy_frames_and_relations_are_collected():
    frames = tables()
    expected = estimate(frames).value
    assert estimate([pl.from_pandas(frame).lazy() for frame in frames]).value == pytest.approx(expected)
    connection = duckdb.connect()
    relations = [connection.from_df(frame) for frame in frames]
    assert estimate(relations).value == pytest.approx(expected)


def test_all_differences_of_columns_are_named_at_once():
    P, U, T = tables()
    frames = P.assign(weight=1.0).drop(columns="z"), U, T.assign(month="jan")
    with pytest.raises(InputError) as error:
        estimate(frames)
    message = str(error.value)
    assert "positive lacks 'z' and also has 'weight'; target also has 'month'" in message
    assert "--drop" in message and "--weight-column" in message and "--by" in message


def test_rasters_have_a_way_in():
    with pytest.raises(InputError, match=r"reshape\(len\(X\), -1\).T"):
        ps.estimate_prior(np.zeros((3, 4, 5)), np.zeros((3, 4, 5)), np.zeros((3, 4, 5)))
    masked = np.ma.masked_equal(np.array([[1.0, -9999.0], [2.0, 3.0]]), -9999.0)
    assert np.isnan(read_table(masked, "t").cells[1][0])


def test_rules_about_cells_do_not_change_the_table_of_the_caller():
    values = np.array([[1.0, -9999.0], [2.0, 3.0]])
    read_table(values, "t", ColumnSelection(rules=CellRules(("-9999",))))
    assert values[0, 1] == -9999


@pytest.mark.parametrize("rows", [150, 400, 1500])
def test_whole_numbers_that_are_measured_are_no_ids(rows):
    """Such as an aspect in degrees, or an elevation."""
    rng = np.random.default_rng(0)
    for largest in (360, 1000):
        samples = [rng.integers(0, largest, n).astype(float) for n in (rows, rows // 3, rows)]
        assert not numbers_persons("aspect", samples)


def rewrite(path, part, change):
    """Replace one file of an archive by what `change` returns for its text."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[part] = change(files[part].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


SHEET = "xl/worksheets/sheet1.xml"


def test_a_sheet_is_read_whole_whatever_size_it_states(tmp_path):
    frame, path = tables()[2], tmp_path / "t.xlsx"
    write_xlsx(frame, path)
    for stated in ('<dimension ref="A1:B50"/>', '<dimension ref="A1"/>', ""):
        rewrite(path, SHEET, lambda text, stated=stated: re.sub(r"<dimension[^>]*/>", stated, text))
        table = read_table(path, "t")
        assert len(table) == len(frame) and table.columns == ("x", "z", "pain")
        np.testing.assert_allclose(table.cells[0], frame["x"])


def test_rows_of_a_sheet_may_end_early(tmp_path):
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3], [5, 6]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    rewrite(tmp_path / "t.xlsx", SHEET, lambda text: re.sub(r"<dimension[^>]*/>", "", text))
    np.testing.assert_array_equal(read_table(tmp_path / "t.xlsx", "t").cells[1], [2, np.nan, 6])
    columns = {"posterior": [0.1, 0.2, 0.3]}
    add_workbook_columns(tmp_path / "t.xlsx", tmp_path / "o.xlsx", columns, None)
    assert pd.read_excel(tmp_path / "o.xlsx")["posterior"].tolist() == [0.1, 0.2, 0.3]


def test_a_damaged_sheet_and_formulas_without_values_are_refused(tmp_path):
    write_xlsx(tables()[2], tmp_path / "cut.xlsx")
    rewrite(tmp_path / "cut.xlsx", SHEET, lambda text: text[: len(text) // 2])
    with pytest.raises(InputError, match="is damaged"):
        read_table(tmp_path / "cut.xlsx", "t")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "=A2+1"], [2, "=A3+1"]):
        book.active.append(row)
    book.save(tmp_path / "f.xlsx")
    with pytest.raises(InputError, match="formulas without values"):
        read_table(tmp_path / "f.xlsx", "t")


def test_numbers_as_text_in_a_sheet_are_checked_as_in_a_csv_file(tmp_path):
    for cells in (["1,234", "2,500", 999, 1000.5], ["1,234", "2,500"], ["1,000,000", "3"]):
        book = openpyxl.Workbook()
        for row in (["income"], *([cell] for cell in cells)):
            book.active.append(row)
        book.save(tmp_path / "t.xlsx")
        with pytest.raises(InputError, match=r"decimal|thousands"):
            read_table(tmp_path / "t.xlsx", "t")


def test_writing_a_sheet_takes_time_in_proportion_to_its_rows(tmp_path):
    seconds = {}
    for rows in (500, 4000):
        start = time.process_time()
        write_workbook(tmp_path / "t.xlsx", [["a", "b"], *[[1.5, "=1+1"]] * rows])
        seconds[rows] = time.process_time() - start
    assert seconds[4000] < 24 * seconds[500]
    assert openpyxl.load_workbook(tmp_path / "t.xlsx").active["B2"].data_type == "s"


def test_a_separator_at_the_end_of_each_row_is_no_row_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1.2,3.4,\n5.6,7.8,\n")
    with pytest.raises(InputError, match="3 cells in line 2"):
        read_table(tmp_path / "t.csv", "t")


def test_the_advised_missing_value_is_found_in_single_precision():
    nodata = np.float32(-3.4028234663852886e38)
    rules = CellRules.from_arguments([-3.4028234663852886e38, -9999.9], None)
    column = np.array([nodata, np.float32(-9999.9), 1.0], dtype=np.float32).astype(float)
    assert rules.is_missing(column).tolist() == [True, True, False]


def test_a_time_after_the_last_year_is_no_date():
    assert as_date("9999-12-31T23:59:59-05:00") is None
