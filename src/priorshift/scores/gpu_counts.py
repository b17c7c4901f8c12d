"""Counts of scores on a GPU, equal to those of the CPU up to rounding.

A histogram of a sample consists of counts, so everything from the transfer of the rows on happens on the GPU: the hash
that decides the fold of a row, its scores, their ranks among those of the positives, and the counts of these. Ranks are
whole numbers, so few that the bin of each is looked up in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.embedding.gpu_sums import import_cuda
from priorshift.io.row_hashes import INCREMENT, LAST_SHIFT, STEPS, Codes, mix_bits
from priorshift.scores import mixture
from priorshift.scores.counts import ScoreCounts
from priorshift.scores.cross_fitting import STEPS_PER_UNIT, scores_on_device
from priorshift.scores.posterior import posterior_bins, posterior_levels
from priorshift.scores.scored_source import Preparation


def gpu_counts(
    parts: Sequence[NDArray[Any]],
    scale: tuple[Floats, Floats],
    codes: Codes | None,
    prepare: Preparation,
    seeds: NDArray[Any],
    models: tuple[Floats, Floats, Floats, Floats],
    positive: Floats,
    *,
    single: bool,
    device: str,
) -> ScoreCounts:
    """Count rows by the bins of their p-values, from scores in single or in double precision.

    `parts` are arrays of rows, which are shifted and multiplied by the `scale`. The fold of a row follows from its
    code, or from its values if `codes` is None, and from the seed of the repetition. `models` are ω/2, φ/2, 2r and the
    constant of `Ridge`: the first of shape (repeats, columns, frequencies), the next two (repeats, folds, frequencies),
    the last (repeats, folds). `positive` are the sorted scores of the positives, shape (repeats, positives).
    """
    torch = import_cuda(device)
    shift, factor = (torch.as_tensor(array, device=device) for array in scale)
    # torch accepts neither arrays that are read-only nor those with negative strides
    usable = [np.require(part, requirements=["C", "W"]) for part in parts]
    x = torch.cat([torch.as_tensor(part, device=device).double() for part in usable]).sub_(shift).mul_(factor)
    x += 0.0  # makes −0.0 and 0.0 equal
    code = _content_codes(torch, x) if codes is None else torch.as_tensor(codes.view(np.int64), device=device)
    used = torch.as_tensor(prepare.used, device=device)
    prepared = (x[:, used] / prepare.spread).clamp_(-prepare.far, prepare.far)
    precision = torch.float32 if single else torch.float64
    prepared = prepared.to(precision)
    half, phase, twice, constant, ranked = (
        torch.as_tensor(array, dtype=precision, device=device) for array in (*models, positive)
    )
    repeats, positives = positive.shape
    seed = torch.as_tensor(mix_bits(seeds.astype(np.uint64)).view(np.int64), device=device)
    fold = _remainder(_mix(code ^ seed[:, None]), phase.shape[1])  # shape (repeats, rows)
    scores = torch.stack([
        scores_on_device(torch, fold[k], prepared, half[k], phase[k], twice[k], constant[k]) for k in range(repeats)
    ])  # fmt: skip
    if not single:  # as `scores_by_fold` does
        scores = torch.round(scores * STEPS_PER_UNIT) / STEPS_PER_UNIT
    # twice the rank of each row among the positives, of which ties count half, shape (repeats, rows)
    ranks = torch.searchsorted(ranked, scores, out_int32=True)
    ranks += torch.searchsorted(ranked, scores, right=True, out_int32=True)
    p_values = (np.arange(2 * positives + 1) / 2 + 0.5) / (positives + 1)  # of each rank
    bin_of_rank, level_of_rank = mixture.bins(p_values), posterior_bins(p_values, positives)
    bins = torch.as_tensor(bin_of_rank, dtype=torch.int32, device=device)[ranks]
    # the repetition k with each one after it, as `combinations` orders them; all at once could exceed the memory
    pairs = [_count(torch, bins[k] * mixture.BINS + bins[k + 1 :], mixture.BINS**2) for k in range(repeats - 1)]
    of_rank = _count(torch, ranks, len(p_values)).cpu().numpy()
    counts = np.stack([np.bincount(bin_of_rank, count, mixture.BINS) for count in of_rank]).astype(float)
    size = posterior_levels(positives)
    levels = np.stack([np.bincount(level_of_rank, count, size) for count in of_rank]).astype(float)
    of_pairs = torch.cat(pairs).cpu().numpy() if pairs else np.empty((0, mixture.BINS**2))
    return ScoreCounts(len(x), counts, of_pairs.reshape(-1, mixture.BINS, mixture.BINS).astype(float), levels)


_COPIES = 8  # of the counters: many rows have the same rank, and their additions to one counter wait for each other


def _count(torch: Any, numbers: Any, size: int) -> Any:
    """Count how often each of the numbers 0 to `size` − 1 occurs in each line, of shape (lines, rows).

    Unlike `bincount`, this does not wait for the GPU.
    """
    counts = torch.zeros(len(numbers), _COPIES * size, dtype=torch.int32, device=numbers.device)
    copy = torch.arange(numbers.shape[1], device=numbers.device) % _COPIES  # consecutive rows use different counters
    counts.scatter_add_(1, numbers + size * copy, torch.ones_like(numbers))
    return counts.view(-1, _COPIES, size).sum(dim=1, dtype=torch.int32)


def _content_codes(torch: Any, x: Any) -> Any:
    """Return the hash of each row's values, as `content_codes` does."""
    code = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    for column in x.T:
        code = _mix(code ^ column.contiguous().view(torch.int64))
    return code


def _signed(number: Any) -> int:
    """Return the signed number of 64 bits that has the bits of an unsigned one: torch has no unsigned arithmetic."""
    return int(np.uint64(number).view(np.int64))


def _mix(code: Any) -> Any:
    """Hash signed numbers of 64 bits as `mix_bits` does; products of the GPU overflow in the same way."""
    code = code + _signed(INCREMENT)
    for shift, factor in STEPS:
        code = (code ^ _shift_right(code, int(shift))) * _signed(factor)
    return code ^ _shift_right(code, int(LAST_SHIFT))


def _shift_right(code: Any, bits: int) -> Any:
    """Shift the bits of signed numbers to the right, and zeros in."""
    return (code >> bits) & ((1 << (64 - bits)) - 1)


def _remainder(code: Any, divisor: int) -> Any:
    """Return the remainder of signed numbers that stand for unsigned ones."""
    return ((_shift_right(code, 1) % divisor) * 2 + (code & 1)) % divisor
