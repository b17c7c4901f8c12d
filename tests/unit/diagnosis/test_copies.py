"""Identical rows of P, U and T get identical scores in the label-shift test."""

import numpy as np

from priorshift.diagnosis.residuals import _held_out_scores


def test_identical_rows_have_identical_scores_in_every_sample():
    """The features depend on how many rows are computed together, as rounding errors do, only more."""
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 2, size=(rows, 2)).astype(float) for rows in (30, 70, 50)]
    folds = [rng.integers(0, 3, size=(2, len(rows))) for rows in samples]
    beta = rng.normal(size=(2, 3, 2))
    scores = _held_out_scores(samples, folds, lambda block: (block + len(block)).astype(np.float32), beta)
    by_row = {}
    for rows, fold, found in zip(samples, folds, scores, strict=True):
        for repeat in range(2):
            for row, k, score in zip(rows, fold[repeat], found[repeat], strict=True):
                by_row.setdefault((repeat, int(k), *row), set()).add(float(score))
    assert len(by_row) == 24 and all(len(values) == 1 for values in by_row.values())
