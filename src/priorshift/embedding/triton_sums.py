"""The sums of a Gaussian kernel matrix in one kernel of the GPU, written in Triton.

With rows scaled by √(log₂e)/h and centred, k(x, y) = 2^(x·y − |x|²/2 − |y|²/2). A program keeps a block of rows and
walks over a strip of columns: products on the matrix units, one exponential a pair, the sum of each row in registers,
and the sum of each column of the tile written out once. Partial sums are added up afterwards in double precision, in an
order that does not depend on chance, so that the answer is the same each time.

The matrix units multiply half precision. x = x_h + x_l in two halves each, and x·y ≈ x_h·y_h + x_h·y_l + x_l·y_h. Where
they fit, the three products are side by side in the inner dimension of one, rows as [x_h, x_h, x_l] and columns
as [y_h, y_l, y_h]; else they are three products of what is read once.

Of few columns the other units set the pace, so little is left to them: −|y|²/2 is a part of the product, in two halves
beside two ones, and 2^(−|x|²/2) multiplies the sum of a row when it is done, and the terms of the sum of a column, in a
multiply-add. A pair then costs an exponential, an addition and a multiply-add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

_SPLITS = 16  # strips of columns, which fill the machine
_FEW_BLOCKS = 64  # whose column sums are added up in single precision
_NOTHING = -6e4  # the exponent of a column that is not there, which half precision can hold
_ONES = 2  # ones in a row of the product, which the exponent of a column is multiplied by
# bytes that are free, and the rows and columns of one launch then
_CHUNKS = ((2**35, 262_144), (2**33, 131_072), (0, 32_768))


class Tile(NamedTuple):
    """How a program works."""

    beside: bool  # whether the three products are side by side in one
    inner: int  # inner dimension of the product
    piece: int  # part of it that is read at once
    rows: int
    columns: int
    warps: int
    stages: int


def tile_of(p: int) -> Tile:
    """Return the fastest settings for rows of `p` columns, measured on an H200."""
    for beside, inner in ((True, 32), (False, 16), (True, 64), (False, 32), (True, 128), (False, 64)):
        if (3 * p if beside else p) + _ONES <= inner:
            columns, warps = (32, 2) if beside and inner == 32 else (64, 4)
            return Tile(beside, inner, inner, 256, columns, warps, 3)
    inner = -(-p // 32) * 32
    return Tile(False, inner, 32, 128, 128, 4, 3) if p <= 256 else Tile(False, inner, 32, 128, 256, 8, 3)


@triton.jit
def _exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _kept(
    X_high, X_low, Y_high, Y_low, factor, exponent, by_row, by_column, M, N, strip,
    beside: tl.constexpr, inner: tl.constexpr, piece: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    both: tl.constexpr,
):  # fmt: skip
    """Sum a strip while the block's rows stay in registers."""
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)
    each = tl.arange(0, inner)
    x = tl.load(X_high + at[:, None] * inner + each[None, :])
    if not beside:
        x_low = tl.load(X_low + at[:, None] * inner + each[None, :])
    w = tl.load(factor + at)
    total = tl.zeros([rows], tl.float32)
    out = by_column + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)
        y = tl.load(Y_high + to[None, :] * inner + each[:, None])
        d = tl.dot(x, y)
        if not beside:
            d = tl.dot(x, tl.load(Y_low + to[None, :] * inner + each[:, None]), d)
            d = tl.dot(x_low, y, d)
        k = _exp2(d)
        total += tl.sum(k, 1)
        if both:
            tl.store(out + to, tl.sum(k * w[:, None], 0))
    tl.store(by_row + part.to(tl.int64) * M + at, total)


@triton.jit
def _loaded(
    X_high, X_low, Y_high, Y_low, factor, exponent, by_row, by_column, M, N, strip,
    beside: tl.constexpr, inner: tl.constexpr, piece: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    both: tl.constexpr,
):  # fmt: skip
    """Sum a strip with an inner dimension that is too long to keep, and is read in pieces."""
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)
    each = tl.arange(0, piece)
    w = tl.load(factor + at)
    total = tl.zeros([rows], tl.float32)
    out = by_column + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)
        d = tl.zeros([rows, columns], tl.float32)
        for q in range(0, inner, piece):
            x = tl.load(X_high + at[:, None] * inner + (q + each)[None, :])
            x_low = tl.load(X_low + at[:, None] * inner + (q + each)[None, :])
            y = tl.load(Y_high + to[None, :] * inner + (q + each)[:, None])
            y_low = tl.load(Y_low + to[None, :] * inner + (q + each)[:, None])
            d = tl.dot(x, y, d)
            d = tl.dot(x, y_low, d)
            d = tl.dot(x_low, y, d)
        k = _exp2(d + tl.load(exponent + to)[None, :])
        total += tl.sum(k, 1)
        if both:
            tl.store(out + to, tl.sum(k * w[:, None], 0))
    tl.store(by_row + part.to(tl.int64) * M + at, total)


def fused_sums(X: Any, Y: Any | None, of_x: Any, of_y: Any | None) -> tuple[Any, Any]:
    """Compute row and column sums of 2^(x·y + of_x + of_y) in double precision; without `Y`, of the symmetric matrix.

    `X` and `Y` are centred and scaled, in double precision on one GPU; `of_x` is −|x|²/2 and log₂ of the row's weight.
    """
    tile = tile_of(X.shape[1])
    free = torch.cuda.mem_get_info(X.device)[0]
    chunk = next(size for least, size in _CHUNKS if free >= least)
    left = [_Block.from_rows(X[k : k + chunk], of_x[k : k + chunk], tile) for k in range(0, len(X), chunk)]
    symmetric = Y is None
    if Y is None or of_y is None:
        Y, of_y = X, of_x
    right = [_Strip.from_rows(Y[k : k + chunk], of_y[k : k + chunk], tile) for k in range(0, len(Y), chunk)]
    rows = [torch.zeros(block.size, dtype=torch.float64, device=X.device) for block in left]
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


class _Block(NamedTuple):
    """Prepared rows, padded with rows of factor 0 to fill the last tile."""

    high: Any
    low: Any
    factor: Any
    exact: Any  # the factor in double precision, for the row's own sum
    size: int

    @classmethod
    def from_rows(cls, X: Any, exponent: Any, tile: Tile) -> _Block:
        high, low = _halves(X)
        n, size = len(X), -(-len(X) // tile.rows) * tile.rows
        ones = [torch.ones(n, _ONES, dtype=torch.half, device=X.device)] if tile.piece == tile.inner else []
        exact = torch.exp2(exponent)
        factor = torch.zeros(size, dtype=torch.float32, device=X.device)
        factor[:n] = exact
        if tile.beside:
            made = _padded([high, high, low, *ones], size, tile.inner)
            return cls(made, made, factor, exact, n)
        return cls(_padded([high, *ones], size, tile.inner), _padded([low], size, tile.inner), factor, exact, n)


class _Strip(NamedTuple):
    """Prepared columns, padded with columns whose exponent makes them vanish."""

    high: Any
    low: Any
    exponent: Any
    common: Any  # factor of all columns, kept out of their exponents, so that these are small and rounded little
    exact: Any  # and what rounding takes from a column's own, both of which its own sum is multiplied by
    size: int

    @classmethod
    def from_rows(cls, Y: Any, exponent: Any, tile: Tile) -> _Strip:
        high, low = _halves(Y)
        n, size = len(Y), -(-len(Y) // tile.columns) * tile.columns
        padded = torch.full((size,), _NOTHING, dtype=torch.float64, device=Y.device)
        middle = exponent.median()
        padded[:n] = exponent - middle
        two = torch.stack(_halves(padded), dim=1)
        single = padded.float()
        within = tile.piece == tile.inner
        rounded = (two.double().sum(dim=1) if within else single.double())[:n]
        exact = torch.exp2(exponent - rounded)
        parts = [high, low, high] if tile.beside else [high]
        made = _padded(parts, size, tile.inner)
        if within:
            place = sum(part.shape[1] for part in parts)
            made[:, place : place + _ONES] = two
        rest = made if tile.beside else _padded([low], size, tile.inner)
        return cls(made, rest, single, torch.exp2(middle), exact, n)


def _halves(values: Any) -> tuple[Any, Any]:
    high = values.half()
    return high, (values - high).half()


def _padded(parts: list[Any], size: int, inner: int) -> Any:
    """Put the parts side by side, with zeros below and beside them."""
    n, place = len(parts[0]), 0
    made = torch.zeros(size, inner, dtype=torch.half, device=parts[0].device)
    for part in parts:
        made[:n, place : place + part.shape[1]] = part
        place += part.shape[1]
    return made


def _launch(A: _Block, B: _Strip, tile: Tile, both: bool) -> tuple[Any, Any]:
    M, N = len(A.high), len(B.high)
    blocks = M // tile.rows
    strip = -(-N // (_SPLITS * tile.columns)) * tile.columns
    by_row = torch.empty(_SPLITS, M, dtype=torch.float32, device=A.high.device)
    by_column = torch.empty(blocks if both else 1, N, dtype=torch.float32, device=A.high.device)
    kernel = _kept if tile.piece == tile.inner else _loaded
    kernel[(blocks, _SPLITS)](
        A.high, A.low, B.high, B.low, A.factor, B.exponent, by_row, by_column, M, N, strip,
        beside=tile.beside, inner=tile.inner, piece=tile.piece, rows=tile.rows, columns=tile.columns, both=both,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    rows = by_row.sum(dim=0, dtype=torch.float64)[: A.size] * (A.exact * B.common)
    # a few in single precision, and these in double: a sum of all in double takes six times as long
    few = torch.stack([part.sum(dim=0) for part in by_column.split(_FEW_BLOCKS)])
    return rows, few.sum(dim=0, dtype=torch.float64)[: B.size] * B.exact
