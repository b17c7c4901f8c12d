"""The library's warnings: recorded, suppressed, and issued once for several parts."""

import warnings

import pytest

from priorshift.errors import ColumnWarning, FewPositivesWarning, InputError
from priorshift.warning_records import WarningsByName, record_warnings, suppress_warnings, warn


@pytest.mark.parametrize("show", [True, False])
def test_recorded_warnings_are_shown_only_if_asked(show):
    with warnings.catch_warnings(record=True) as shown, record_warnings(FewPositivesWarning, show=show) as records:
        warnings.simplefilter("always")
        warn("Only 3 positives.", FewPositivesWarning)
    assert records == [(FewPositivesWarning, "Only 3 positives.")]
    assert len(shown) == show


def test_other_categories_are_not_recorded():
    with pytest.warns(ColumnWarning), record_warnings(FewPositivesWarning, show=False) as records:
        warn("An id.", ColumnWarning)
    assert records == []


def test_suppressed_warnings_are_not_shown():
    with suppress_warnings(FewPositivesWarning):
        warn("Only 3 positives.", FewPositivesWarning)


def test_a_warning_points_to_the_line_outside_the_library():
    with pytest.warns(FewPositivesWarning) as caught:
        warn("Only 3 positives.", FewPositivesWarning)
    assert caught[0].filename == __file__


def collected(*parts):
    by_name = WarningsByName("target")
    for name, message in parts:
        with by_name.collect(name):
            if message:
                warn(message, FewPositivesWarning)
    with record_warnings(FewPositivesWarning, show=False) as records:
        by_name.issue()
    return [message for _, message in records]


def test_a_warning_of_some_parts_names_them():
    assert collected(("May", "few rows."), ("June", "")) == ["target 'May': few rows."]
    names = [(f"{k}", "few rows.") for k in range(10)]
    assert collected(*names, ("last", ""))[0].endswith("'7' and 2 more: few rows.")


def test_a_warning_of_all_parts_is_issued_once():
    assert collected(("May", "few rows."), ("June", "few rows.")) == ["few rows."]


def test_an_error_names_its_part():
    with pytest.raises(InputError, match=r"'May'"), WarningsByName("target").collect("May"):
        raise InputError("no rows")
