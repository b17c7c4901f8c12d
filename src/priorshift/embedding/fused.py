"""The sums of a Gaussian kernel matrix in one kernel of the GPU, written in Triton.

With rows scaled by √(log₂e)/h and centred, k(x, y) = 2^(x·y − |x|²/2 − |y|²/2). A program keeps a block of rows and
walks over a strip of columns: a product on the matrix units, one exponential a pair, the sum of each row in registers,
and the sum of each column of the tile written out once. Partial sums are added up afterwards in double precision, in an
order that does not depend on chance, so that the answer is the same each time.

The matrix units multiply half precision. x = x_h + x_l in two halves each, and x·y ≈ x_h·y_h + x_h·y_l + x_l·y_h: the
three products stand side by side in the inner dimension of one, rows as [x_h, x_h, x_l] and columns as [y_h, y_l, y_h].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

_SPLITS = 16  # strips of columns, which fill the machine
_FEW_BLOCKS = 64  # whose column sums are added up in single precision
_NOTHING = -1e30  # the exponent of a row that is not there
# bytes that are free, and the rows and columns of one launch then
_CHUNKS = ((2**35, 262_144), (2**33, 131_072), (0, 32_768))


class Tile(NamedTuple):
    """How a program works: rows and columns of a tile, inner pieces (a first of 0: none is kept), and Triton's own."""

    rows: int
    columns: int
    first: int
    second: int
    warps: int
    stages: int


def tile_of(inner: int) -> Tile:
    """Found by trying on an H200: what a matrix product of that inner size is fastest with."""
    if inner <= 32:
        return Tile(128, 32, 32, 0, 1, 4)
    if inner <= 64:
        return Tile(256, 64, 64, 0, 4, 3)
    if inner <= 96:
        return Tile(256, 64, 64, 32, 4, 4)
    if inner <= 768:
        return Tile(128, 128, 0, 64, 4, 3)
    return Tile(128, 256, 0, 64, 8, 3)


@triton.jit
def _exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _kept(
    X,
    Y,
    of_x,
    of_y,
    by_row,
    by_column,
    M,
    N,
    strip,
    first: tl.constexpr,
    second: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    both: tl.constexpr,
):
    """The rows' inner pieces stay where they are."""
    inner: tl.constexpr = first + second
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)
    one = tl.arange(0, first)
    x = tl.load(X + at[:, None] * inner + one[None, :])
    if second > 0:
        two = first + tl.arange(0, second)
        z = tl.load(X + at[:, None] * inner + two[None, :])
    a = tl.load(of_x + at)
    total = tl.zeros([rows], tl.float32)
    out = by_column + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)
        d = tl.dot(x, tl.load(Y + to[None, :] * inner + one[:, None]))
        if second > 0:
            d = tl.dot(z, tl.load(Y + to[None, :] * inner + two[:, None]), d)
        k = _exp2(d + (a[:, None] + tl.load(of_y + to)[None, :]))
        total += tl.sum(k, 1)
        if both:
            tl.store(out + to, tl.sum(k, 0))
    tl.store(by_row + part.to(tl.int64) * M + at, total)


@triton.jit
def _loaded(
    X,
    Y,
    of_x,
    of_y,
    by_row,
    by_column,
    M,
    N,
    strip,
    inner: tl.constexpr,
    piece: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    both: tl.constexpr,
):
    """The inner dimension is too long to keep, and is walked over in pieces."""
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)
    each = tl.arange(0, piece)
    a = tl.load(of_x + at)
    total = tl.zeros([rows], tl.float32)
    out = by_column + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)
        d = tl.zeros([rows, columns], tl.float32)
        for q in range(0, inner, piece):
            x = tl.load(X + at[:, None] * inner + (q + each)[None, :])
            y = tl.load(Y + to[None, :] * inner + (q + each)[:, None])
            d = tl.dot(x, y, d)
        k = _exp2(d + (a[:, None] + tl.load(of_y + to)[None, :]))
        total += tl.sum(k, 1)
        if both:
            tl.store(out + to, tl.sum(k, 0))
    tl.store(by_row + part.to(tl.int64) * M + at, total)


def fused_sums(X: Any, Y: Any | None, of_x: Any, of_y: Any | None) -> tuple[Any, Any]:
    """Row and column sums of 2^(x·y + of_x + of_y), the symmetric one where `Y` is left out, in double precision.

    `X` and `Y` are centred and scaled, in double precision on one GPU; `of_x` is −|x|²/2 and log₂ of the row's weight.
    """
    tile = tile_of(3 * X.shape[1])
    free = torch.cuda.mem_get_info(X.device)[0]
    chunk = next(size for least, size in _CHUNKS if free >= least)
    left = [_Strip.of(X[k : k + chunk], of_x[k : k + chunk], tile, left=True) for k in range(0, len(X), chunk)]
    symmetric = Y is None
    if Y is None or of_y is None:
        Y, of_y = X, of_x
    right = [_Strip.of(Y[k : k + chunk], of_y[k : k + chunk], tile, left=False) for k in range(0, len(Y), chunk)]
    rows = [torch.zeros(strip.size, dtype=torch.float64, device=X.device) for strip in left]
    columns = rows if symmetric else [torch.zeros(s.size, dtype=torch.float64, device=X.device) for s in right]
    for j, A in enumerate(left):
        for k, B in enumerate(right):
            if symmetric and k < j:
                continue
            both = not (symmetric and j == k)
            by_row, by_column = _launch(A, B, tile, both)
            rows[j] += by_row
            if both:
                columns[k] += by_column
    whole = torch.cat(rows)
    return whole, whole if symmetric else torch.cat(columns)


class _Strip(NamedTuple):
    """Rows made ready: padded with rows that are not there."""

    halves: Any
    exponent: Any
    rounded: Any  # what single precision takes from a row's factor, which is put back into its own sum
    size: int

    @classmethod
    def of(cls, X: Any, exponent: Any, tile: Tile, *, left: bool) -> _Strip:
        p = X.shape[1]
        kept = tile.first + tile.second
        inner = kept if tile.first else -(-3 * p // tile.second) * tile.second
        step = tile.rows if left else tile.columns
        size = -(-len(X) // step) * step
        n, high = len(X), X.half()
        low = (X - high).half()
        halves = torch.empty(size, inner, dtype=torch.half, device=X.device)
        for place, part in enumerate((high, high, low) if left else (high, low, high)):
            halves[:n, place * p : (place + 1) * p] = part
        halves[:n, 3 * p :] = 0
        halves[n:] = 0
        padded = torch.full((size,), _NOTHING, dtype=torch.float32, device=X.device)
        padded[: len(X)] = exponent
        return cls(halves, padded, torch.exp2(exponent - padded[: len(X)].double()), len(X))


def _launch(A: _Strip, B: _Strip, tile: Tile, both: bool) -> tuple[Any, Any]:
    M, N = len(A.halves), len(B.halves)
    blocks = M // tile.rows
    strip = -(-N // (_SPLITS * tile.columns)) * tile.columns
    by_row = torch.empty(_SPLITS, M, dtype=torch.float32, device=A.halves.device)
    by_column = torch.empty(blocks if both else 1, N, dtype=torch.float32, device=A.halves.device)
    common = (A.halves, B.halves, A.exponent, B.exponent, by_row, by_column, M, N, strip)
    shape = {"rows": tile.rows, "columns": tile.columns, "both": both}
    launch = {"num_warps": tile.warps, "num_stages": tile.stages}
    grid = (blocks, _SPLITS)
    if tile.first:
        _kept[grid](*common, first=tile.first, second=tile.second, **shape, **launch)
    else:
        _loaded[grid](*common, inner=A.halves.shape[1], piece=tile.second, **shape, **launch)
    rows = by_row.sum(dim=0, dtype=torch.float64)[: A.size] * A.rounded
    # a few in single precision, and these in double: a sum of all in double takes six times as long
    few = torch.stack([part.sum(dim=0) for part in by_column.split(_FEW_BLOCKS)])
    return rows, few.sum(dim=0, dtype=torch.float64)[: B.size] * B.rounded
