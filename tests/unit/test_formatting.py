"""Numbers, options and paragraphs as people read them."""

import pytest

from priorshift.formatting import (
    decimals,
    format_fixed,
    format_p,
    format_p_cell,
    format_percent,
    format_short,
    range_decimals,
    wrap_lines,
)
from priorshift.result_tables import csv_line, escape_formula, to_plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_fixed(-0.25, 2), "−0.25"),
        (format_fixed(0.25, 1, "+"), "+0.2"),
        (format_fixed(-0.0001, 3), "0.000"),
        (format_short(-0.2871), "−0.29"),
        (format_short(0.2871, 3, "+"), "+0.287"),
        (format_short(-0.000012), "−1.2e-05"),
        (format_percent(0.514), "51%"),
        (format_percent(0.0042), "0.4%"),
        (format_percent(0.0), "0%"),
        (format_p(0.0312), "p = 0.031"),
        (format_p(0.00012), "p = 0.00012"),
        (format_p(1e-9), "p < 0.0001"),
        (format_p_cell(0.0312), "0.031"),
        (format_p_cell(0.0312, 4), "0.0312"),
        (format_p_cell(1e-9), "< 0.001"),
        (format_p_cell(float("nan")), "none"),
    ],
)
def test_a_number_is_written_with_the_digits_it_needs(text, expected):
    assert text == expected


def test_decimals_show_two_digits_of_a_width():
    assert (decimals(0.12), decimals(0.00083)) == (3, 5)
    assert (range_decimals(0.13, 0.29), range_decimals(0.0008, 0.0031)) == (2, 4)


def test_list_items_are_indented_where_they_are_wrapped():
    first, second, third = wrap_lines("Why?\n- " + "because " * 12 + "of that", indent="  ").split("\n")
    assert (first, second[:6], third) == ("  Why?", "  - be", "    of that")


def test_csv_cells_are_quoted_and_never_formulas():
    assert csv_line(["a,b", 'say "no" to it', "c"], end="") == '"a,b","say ""no"" to it",c'
    cells = [escape_formula(cell) for cell in ("=cmd()", "-0.5", "-north", "2024-01")]
    assert cells == ["'=cmd()", "-0.5", "'-north", "2024-01"]


def test_missing_numbers_become_none():
    assert to_plain({"a": float("nan"), "b": (1.5, float("inf"))}) == {"a": None, "b": [1.5, None]}
