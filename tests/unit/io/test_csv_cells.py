"""Cells of the tables that are written: none is a formula, and every one is read back as the text that it was."""

import csv
import gzip
import io
import json
from itertools import permutations

import numpy as np
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.io.csv_text import add_columns
from priorshift.result_tables import align_columns, csv_line, escape_formula, is_formula, to_csv

MARKS = "=+-@\t\r\n＝＋－＠"
FORMULAS = (
    "cmd|' /C calc'!A0", "HYPERLINK(\"http://x\",\"y\")", "1+1", "SUM(A1:A9)", "north", "2;3", "a,b", 'say "no"',
    "two\nlines", "two\rlines", "\x00", "\u202egpj", "👩‍⚕️", "<script>alert(1)</script>", "x" * 10_000, " ",
)  # fmt: skip
HOSTILE = [
    *(mark + rest for mark in MARKS for rest in FORMULAS),
    *(before + "=1+1" for before in (" ", "\x00", "\ufeff", "\u200b", "\u202e", "\u00a0", "  \t")),
    *("'=1+1", '"=1+1"', ",", ";", "\t", '"', '""', "'", "a\x00b", "a,b", "a;b", 'a"b', "a\nb", "a\rb", "a\r\nb"),
    *(
        "\u202eabc",
        "\u2066abc\u2069",
        "é",
        "日本",
        "🙂",
        "%s",
        "{0}",
        "\\",
        "\\n",
        "NULL",
        "#REF!",
        "|",
        "&lt;",
        "--",
        "-",
    ),
    *("=" * 5000, "@", "+", "=", "a" * 10_000),
]
NUMBERS = ["-1", "+3.5", "-0,25", "1e-9", "-1.5E+3", "0", "-.5", "+7"]


def read(text, separator=","):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def starts_a_formula(cell):
    """Said once more, in other words than the library's: the first letter that is seen, of what is no number."""
    try:
        float(cell.replace(",", "."))
        return False
    except ValueError:
        seen = cell.lstrip(" \x00\ufeff\u200b\u202e\u00a0\t\r\n")
        return cell[:1] in "\t\r\n" if cell and not seen else cell[:1] in tuple("\t\r\n") or seen[:1] in tuple(MARKS)


def test_there_are_two_hundred_hostile_names_or_more_and_most_are_formulas():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 200
    assert 150 < sum(map(starts_a_formula, HOSTILE)) < len(HOSTILE)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_line_is_read_back_as_the_cells_that_it_was(separator):
    text = "".join(csv_line([name, "x", name], separator) for name in HOSTILE)
    assert read(text, separator) == [[name, "x", name] for name in HOSTILE]


def test_a_cell_that_is_a_formula_gets_an_apostrophe_and_no_other_does():
    for name in HOSTILE:
        assert is_formula(name) == starts_a_formula(name), repr(name)
        escaped = f"'{name}" if starts_a_formula(name) else name
        assert escape_formula(name) == escaped.replace("\t=", "\t'=")  # after a tab a spreadsheet may begin a cell
        assert not is_formula(escape_formula(name))
    for number in NUMBERS:
        assert escape_formula(number) == number


@pytest.mark.parametrize(("own", "other"), list(permutations([",", ";", "\t"], 2)))
def test_no_cell_is_a_formula_where_a_spreadsheet_splits_lines_elsewhere(own, other):
    """A spreadsheet splits at its own separator, also within quotes that a cell does not begin with, and at line ends."""
    names = [*HOSTILE, *(f"x{mark}{rest}" for mark in ",;\t\r\n" for rest in HOSTILE if len(rest) < 100)]
    names += ['x;"=cmd()"', "x; =cmd()", 'x; "" \u200b=cmd()', "x;-1", "a;b,=c;d\n@e", ";;=1", "x;'=1", ";=1,=2\t=3"]
    for name in names:
        line = csv_line(["a", escape_formula(name), "b"], own)
        pieces = [piece for part in line.splitlines() for piece in part.split(other)]
        for cell in (*pieces, *(cell for row in read(line, other) for cell in row)):
            begins = cell.lstrip('" \u200b\x00\ufeff\u202e\u00a0')
            assert begins[:1] not in tuple("=+-@＝＋－＠"), (name, line, cell)
        assert not is_formula(escape_formula(name)), name
    assert is_formula("x;=cmd()") and escape_formula("x;=cmd()") == "x;'=cmd()"
    assert escape_formula("5;3,2 a; b") == "5;3,2 a; b"


def test_a_composed_table_has_no_formula_in_its_header_or_its_rows():
    rows = read(to_csv([{name: -1.5, "=by": name, "-2": None, "n": 3} for name in HOSTILE][:1]))
    assert rows[0] == [escape_formula(HOSTILE[0]), "'=by", "-2", "n"] and rows[1][2:] == ["", "3"]
    rows = read(to_csv([{"target": name, "raw": -0.25} for name in HOSTILE]))
    assert [row[0] for row in rows[1:]] == [escape_formula(name) for name in HOSTILE]
    assert all(row[1] == "-0.25" for row in rows[1:])
    assert not any(starts_a_formula(cell) for row in rows for cell in row)


def test_a_cell_of_several_lines_does_not_break_a_printed_table():
    assert align_columns(["a", "b"], [["x\ny\r\nz", "1"]]) == "a      b\nx y z  1"


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 200, 2 * len(HOSTILE), dimension=2, shared=False, random_state=0)


def test_names_of_targets_and_of_their_column_are_no_formulas_in_csv_and_themselves_in_json(sample):
    names = [name for name in HOSTILE if name.strip()]
    few = {name: sample.target[k::20] for k, name in enumerate(names[:: len(names) // 15][:15])}
    estimates = ps.estimate_priors(sample.positive, sample.unlabeled, few, source_prior=0.2, method="tcpu")
    rows = read(estimates.to_csv())
    assert [row[0] for row in rows[1:]] == [escape_formula(name) for name in estimates]
    assert any(row[0].startswith("'") for row in rows) and not any(starts_a_formula(c) for row in rows for c in row)
    assert list(json.loads(json.dumps(estimates.to_dict()))["targets"]) == list(estimates)
    assert len(str(estimates).splitlines()) == 1 + len(estimates)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_table_of_diagnoses_has_no_formula(sample):
    estimates = ps.diagnose_targets(
        sample.positive, sample.unlabeled, {"=cmd()": sample.target[::2], "@x": sample.target[1::2]},
        source_prior=0.2, random_state=0,
    )  # fmt: skip
    rows = read(estimates.to_csv())
    assert [row[0] for row in rows] == ["target", "'=cmd()", "'@x"]
    by = ps.Diagnoses(dict(estimates), by="=SUM(1)")
    assert read(by.to_csv())[0][0] == "'=SUM(1)"


# ---- the copy that `adapt` writes


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_a_copy_are_those_of_the_file_with_cells_added(separator, end, packed, tmp_path):
    """Byte for byte, whoever wrote them: quotes that are not needed, spaces, an apostrophe, a formula."""
    rows = [f'" {k}"{separator} x{k}{separator}"=1+{k}"' for k in range(5)]
    lines = [separator.join(["id", '"name"', "cell"]), *rows]
    path, output = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_bytes((end.join(lines) + end).encode())
    assert add_columns(path, output, {"p": ["0.5"] * 5}, packed=packed) == 5
    made = output.read_bytes()
    made = (gzip.decompress(made) if packed else made).decode()
    assert made == "".join(f"{line}{separator}{'0.5' if k else 'p'}{end}" for k, line in enumerate(lines))


def test_hostile_cells_come_through_a_copy_and_are_no_formulas_in_a_safe_one(tmp_path):
    path, output, safe = tmp_path / "t.csv", tmp_path / "o.csv", tmp_path / "s.csv"
    rows = [["=id", "x"], *([name, str(k)] for k, name in enumerate(HOSTILE))]
    path.write_text("".join(map(csv_line, rows)), encoding="utf-8", newline="")
    added = {"p": [f"{k / 1000:g}" for k in range(len(HOSTILE))]}
    left = add_columns(path, output, added)
    assert left == sum(starts_a_formula(cell) for row in rows for cell in row) > 100
    wanted = ["p", *added["p"]]
    assert read(output.read_bytes().decode()) == [[*row, p] for row, p in zip(rows, wanted, strict=True)]
    assert add_columns(path, safe, added, safe=True) == 0
    made = read(safe.read_bytes().decode())
    read_as = [[cell.lstrip(" ") for cell in row] for row in rows]  # as tables are: spaces after a separator are none
    assert made == [[*map(escape_formula, row), p] for row, p in zip(read_as, wanted, strict=True)]
    assert not any(starts_a_formula(cell) for row in made for cell in row)


def test_a_quotation_mark_within_a_cell_does_not_swallow_the_added_cells(tmp_path):
    path, output = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text('id,x\na,1\nb,"2"')
    add_columns(path, output, {"p": ["0.5", "0.25"]})
    assert read(output.read_text()) == [["id", "x", "p"], ["a", "1", "0.5"], ["b", "2", "0.25"]]
    path.write_text('id,x\na,1\n5" pipe,2')
    add_columns(path, output, {"p": ["0.5", "0.25"]})
    assert output.read_text() == 'id,x,p\na,1,0.5\n5" pipe,2,0.25\n'


def test_adapt_says_that_formulas_are_left_and_makes_them_safe_if_asked(sample, tmp_path, capsys):
    files, names = [], [name for name in HOSTILE if "\x00" not in name]  # with which a file is binary, and refused
    for name, X in (("positive", sample.positive), ("unlabeled", sample.unlabeled), ("target", sample.target)):
        ids = names if name == "target" else []
        cells = [[ids[k % len(ids)] if ids else f"{name} {k}", *map(str, row)] for k, row in enumerate(X.tolist())]
        (tmp_path / f"{name}.csv").write_text(
            "".join(map(csv_line, [["who", "a", "b"], *cells])), encoding="utf-8", newline=""
        )
        files += [f"--{name}", str(tmp_path / f"{name}.csv")]
    output = tmp_path / "decided.csv"
    command = ["adapt", *files, "--drop", "who", "--source-prior", "0.2", "--target-prior", "0.5"]
    command += ["--classifier", "logistic", "-o", str(output)]
    assert main(command) == 0
    formulas = sum(starts_a_formula(names[k % len(names)].lstrip(" ")) for k in range(len(sample.target)))
    said = capsys.readouterr().err
    assert said.startswith(f"priorshift: {formulas} cells of {output}") and "--safe-csv" in said
    kept = read(output.read_bytes().decode())
    assert [row[0] for row in kept[1:]] == [names[k % len(names)] for k in range(len(sample.target))]
    assert main([*command, "--safe-csv"]) == 0
    assert capsys.readouterr().err == ""
    safe = read(output.read_bytes().decode())
    assert not any(starts_a_formula(cell) for row in safe for cell in row)
    np.testing.assert_array_equal([row[1:] for row in safe], [row[1:] for row in kept])
    assert main([*command[:-1], str(tmp_path / "decided.parquet"), "--safe-csv"]) == 2
