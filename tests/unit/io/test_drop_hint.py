"""Advice that can be pasted into a shell or a program as it stands."""

import ast
import re
import shlex

import pytest

from priorshift.cli.parser import parser
from priorshift.formatting import drop_hint

NAMES = [
    "visit_date",
    "visit date",
    "it's; rm -rf *",
    "-v",
    "--drop",
    "$HOME",
    "a)b], c",
    'say "so"',
    "zwei\nZeilen",
    "é",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_advice_to_drop_a_column_is_read_as_it_was_meant(name):
    said = drop_hint(name)
    python, shell = re.fullmatch(r"\(drop=(\[.*\]), (--drop.*)\)", said, re.DOTALL).groups()
    assert ast.literal_eval(python) == [name]
    given = ["estimate", "--positive", "p.csv", "--unlabeled", "u.csv", "--target", "t.csv", *shlex.split(shell)]
    assert parser().parse_args(given).drop == [name]
