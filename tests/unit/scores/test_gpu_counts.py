"""Counts by torch are those of the CPU; here on torch's own CPU, where there may be no GPU."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.io.row_hashes import content_codes, fold_of, mix_bits, place_codes

torch = pytest.importorskip("torch")
from priorshift.scores import gpu_counts as module


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("distinct", [True, False])
def test_counts_are_those_of_the_cpu(columns, distinct):
    rng = np.random.default_rng(columns)
    P, U, X = (rng.normal(m, 1, size=(n, columns)) for n, m in ((300, 1), (500, 0), (2000, 0)))
    if not distinct:  # few values: ties among ranks, and folds by position
        P, U, X = np.round(P), np.round(U), np.round(X)
    model = ps.sketch.ScoreModel.fit(P, U, use_km2=False, repeats=3, random_state=0)
    assert model.by_place != distinct or columns == 4
    parts = [model.reader.read(part, "sample") for part in np.split(X, [700])]
    scale = model.reader.shift, model.reader.factor
    codes = place_codes(0, len(X)) if model.by_place else None
    arrays = model.half, model.phase, model.twice, model.constant
    single = model._is_single
    counted = module.gpu_counts(
        parts, scale, codes, model.prepare, model.seeds, arrays, model.positive, single=single, device="cpu"
    )
    expected = model.count(parts)
    assert counted.rows == expected.rows == 2000 and counted.adds_up
    assert single == distinct
    for name in ("counts", "pairs", "levels"):
        moved = np.abs(getattr(counted, name) - getattr(expected, name)).sum()
        assert moved <= (4 if single else 0)  # in single precision a rank may move by rounding


def test_hashes_and_folds_are_those_of_the_cpu():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 3))
    rows[::7] = -0.0
    codes = content_codes(rows)
    there = module._content_codes(torch, torch.as_tensor(rows) + 0.0)
    np.testing.assert_array_equal(there.numpy().view(np.uint64), codes)
    for folds, seed in ((5, 0), (3, 2**52 + 1), (7, 12345)):
        folded = module._remainder(
            module._mix(there ^ module._signed(mix_bits(np.array([seed], dtype=np.uint64))[0])), folds
        )
        np.testing.assert_array_equal(folded.numpy(), fold_of(codes, folds, seed))
