"""Scores of rows in one kernel of the GPU, written in Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_ROWS = 64  # rows of one program


@triton.jit
def _score_rows(
    X, fold, frequencies, phase, amplitude, constant, scores, n, columns, inner: tl.constexpr, rows: tl.constexpr
):  # fmt: skip
    """Write Σ_d amplitude(d)·cos(x·frequency(d) − phase(d)) + constant, by the model of the row's fold, for each row x.

    `inner` is the padded number of frequencies.
    """
    at = tl.program_id(0) * rows + tl.arange(0, rows)
    d = tl.arange(0, inner)
    is_row = at < n
    angle = tl.zeros([rows, inner], X.dtype.element_ty)
    for j in range(columns):
        x = tl.load(X + at.to(tl.int64) * columns + j, mask=is_row, other=0.0)
        angle += x[:, None] * tl.load(frequencies + j * inner + d)[None, :]
    model = tl.load(fold + at, mask=is_row, other=0)
    place = model[:, None] * inner + d[None, :]
    waves = tl.load(amplitude + place) * tl.cos(angle - tl.load(phase + place))
    tl.store(scores + at, tl.sum(waves, 1) + tl.load(constant + model), mask=is_row)


def fused_scores(fold: Any, rows: Any, half: Any, phase: Any, twice: Any, constant: Any) -> Any:
    """Compute the score Σ 2r/(1 + tan²((ω·x − φ)/2)) + constant of each row x, by the model of its fold.

    All are tensors on one GPU, with ω/2, φ/2 and 2r as in `Ridge`; `phase`, `twice` and `constant` have a first axis of
    models. As 2/(1 + tan²(a/2)) = 1 + cos a, a score is Σ r cos(ω·x − φ) + Σ r + constant.
    """
    inner = triton.next_power_of_2(half.shape[1])
    frequencies, angle, amplitude = (
        torch.nn.functional.pad(tensor, (0, inner - half.shape[1])).contiguous()
        for tensor in (2 * half, 2 * phase, twice / 2)
    )
    scores = torch.empty(len(rows), dtype=rows.dtype, device=rows.device)
    with torch.cuda.device(rows.device):
        _score_rows[(triton.cdiv(len(rows), _ROWS),)](
            rows.contiguous(), fold, frequencies, angle, amplitude, constant + twice.sum(dim=1) / 2, scores,
            len(rows), rows.shape[1], inner=inner, rows=_ROWS,
        )  # fmt: skip
    return scores
