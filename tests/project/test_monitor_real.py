"""The study of real series: its control reorders whole rows, and its test sees a class that changed, not its share."""

import numpy as np
import pytest
from experiments.dated_tables import MADE, DatedTable, load_dated
from experiments.studies.monitor_real import _compare_classes


def test_a_random_order_keeps_the_class_of_each_row_and_the_sizes_of_batches():
    table = load_dated(MADE)
    reordered = table.reorder(np.random.default_rng(0))
    positive_of = dict(zip(table.frame.index, table.positive, strict=True))
    assert [positive_of[row] for row in reordered.frame.index] == reordered.positive.tolist()
    assert list(reordered.frame.index) != list(table.frame.index)
    np.testing.assert_array_equal(reordered.batch, table.batch)


@pytest.mark.parametrize(("changed", "rejected"), [("share", False), ("positives", True), ("negatives", True)])
def test_classes_are_compared_within_each_class(changed, rejected):
    table, frame = load_dated(MADE), load_dated(MADE).frame.copy()
    later = table.batch != ""
    rows = np.flatnonzero(later)
    if changed == "share":  # 1 of 5 positives
        rows = rows[~table.positive[rows] | (np.arange(len(rows)) % 5 == 0)]
    else:
        frame.loc[later & (table.positive == (changed == "positives")), 0] += 0.7
    p_value = _compare_classes(DatedTable(frame, table.positive, table.batch), rows)
    assert (p_value < 0.001) == rejected
