"""The sums of a Gaussian kernel matrix in one kernel of the GPU, written in Triton.

With rows scaled by √(log₂e)/h and centred, k(x, y) = 2^(x·y − |x|²/2 − |y|²/2). A program keeps a block of rows and
goes through a strip of columns: products on the matrix units, one exponential a pair, the sum of each row in registers,
and the sum of each column of the tile written out once. Partial sums are added up afterwards in double precision, in an
order that does not depend on chance, so that the answer is the same each time.

The matrix units multiply numbers of half precision. Each x is the sum x_h + x_l of two such numbers, a high and a low
part, and x·y ≈ x_h·y_h + x_h·y_l + x_l·y_h. Where they fit, the three products are one product with a longer inner
dimension, of rows [x_h, x_h, x_l] and columns [y_h, y_l, y_h]; else they are three products of what is read once.

With few features, the units that are not matrix units limit the speed, so little is left to them: −|y|²/2 is a part of
the product, as two half-precision numbers that are multiplied by two ones, and 2^(−|x|²/2) multiplies the sum of a row
at the end, and the terms of the sum of a column, in a multiply-add. A pair then costs an exponential, an addition and a
multiply-add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

_STRIPS = 64  # strips of columns in one launch, enough to keep the GPU busy
_LANES = 8  # neighbouring columns whose sums stay apart until the end: threads then need not exchange them in each tile
_SINGLE_BLOCKS = 64  # blocks of rows whose column sums are added up in single precision
_MEDIAN_ROWS = 4096  # columns, evenly spaced, whose median exponent is computed: that of all takes longer
_NOTHING = -6e4  # exponent of a padding column, whose power of two is zero; half precision can hold it
_ONES = 2  # ones in each row of the product, which the two halves of a column's exponent are multiplied by
# (least free bytes of GPU memory, largest number of rows and of columns in one launch)
_CHUNKS = ((2**35, 262_144), (2**33, 131_072), (0, 32_768))


class Tile(NamedTuple):
    """Sizes of the tiles of the kernel matrix that one program computes, and settings of its launch."""

    is_joined: bool  # whether the three products of halves are joined to one
    inner: int  # inner dimension of the product
    piece: int  # part of the inner dimension that is read at once
    rows: int
    columns: int
    warps: int
    stages: int
    registers: int | None  # the most of a thread; fewer let more programs run at once


# (is_joined, inner, rows, columns, warps, registers) of tiles whose rows fit into registers, from the fastest on
_TILES = (
    (True, 32, 128, 32, 1, 144),
    (False, 16, 128, 32, 2, 128),
    (True, 64, 256, 64, 4, 128),
    (False, 32, 256, 64, 4, None),
    (True, 128, 256, 64, 4, None),
    (False, 64, 256, 64, 4, None),
)


def choose_tile(features: int) -> Tile:
    """Return the settings that were fastest on an H200 for rows with this number of features."""
    for is_joined, inner, rows, columns, warps, registers in _TILES:
        if (3 * features if is_joined else features) + _ONES <= inner:
            return Tile(is_joined, inner, inner, rows, columns, warps, 3, registers)
    inner = -(-features // 32) * 32  # rounded up
    columns, warps = (128, 4) if features <= 256 else (256, 8)
    return Tile(False, inner, 32, 128, columns, warps, 3, None)


@triton.jit
def _exp2(x):
    """Compute 2^x in single precision by the GPU's approximate instruction; very small results become zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _sum_from_registers(
    X_high, X_low, Y_high, Y_low, factor, exponent, row_sums, column_sums, M, N, strip,
    is_joined: tl.constexpr, inner: tl.constexpr, piece: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    sum_columns: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """Sum the kernel values of a block of rows and a strip of columns, while the rows stay in registers.

    A number is stored as the sum of a high and a low part of half precision; the product of two low parts is smaller
    than the rounding error, so it is left out. If `is_joined`, X_high and Y_high contain both parts, arranged so that
    one product is enough. Y_high also contains the exponents of the columns: `exponent` and `piece` are not used here,
    but `_sum_in_pieces`, which is called with the same arguments, uses them.

    Writes the sum over the columns y of 2^(<x, y> + exponent(y)) to row_sums[part, row], which the caller multiplies by
    the factor of the row, and, if `sum_columns`, the sum over the rows x of factor(x) * 2^(<x, y> + exponent(y)) to
    column_sums[block, column]. M and N are the padded numbers of rows and columns; `strip` is the number of columns in
    a part (program) of the launch.
    """
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)  # numbers of the block's rows
    inner_at = tl.arange(0, inner)
    x = tl.load(X_high + at[:, None] * inner + inner_at[None, :])
    if not is_joined:
        x_low = tl.load(X_low + at[:, None] * inner + inner_at[None, :])
    w = tl.load(factor + at)
    total = tl.zeros([rows, lanes], tl.float32)
    out = column_sums + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)  # numbers of the tile's columns
        y = tl.load(Y_high + to[None, :] * inner + inner_at[:, None])
        d = tl.dot(x, y)  # exponents of the kernel values
        if not is_joined:
            d = tl.dot(x, tl.load(Y_low + to[None, :] * inner + inner_at[:, None]), d)
            d = tl.dot(x_low, y, d)
        k = _exp2(d)
        total += tl.sum(tl.reshape(k, [rows, columns // lanes, lanes]), 1)
        if sum_columns:
            tl.store(out + to, tl.sum(k * w[:, None], 0))
    tl.store(row_sums + part.to(tl.int64) * M + at, tl.sum(total, 1))


@triton.jit
def _sum_in_pieces(
    X_high, X_low, Y_high, Y_low, factor, exponent, row_sums, column_sums, M, N, strip,
    is_joined: tl.constexpr, inner: tl.constexpr, piece: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    sum_columns: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """Sum the kernel values of a block of rows and a strip of columns, for rows that are too long for registers.

    Writes the sum over the columns y of 2^(<x, y> + exponent(y)) to row_sums[strip, row] and, if `sum_columns`, the sum
    over the rows x of factor(x) * 2^(<x, y> + exponent(y)) to column_sums[block, column]. The inner dimension is read
    in pieces. M and N are the padded numbers of rows and columns; `strip` is the number of columns in a strip.
    """
    block, part = tl.program_id(0), tl.program_id(1)
    at = block * rows + tl.arange(0, rows)  # numbers of the block's rows
    inner_at = tl.arange(0, piece)
    w = tl.load(factor + at)
    total = tl.zeros([rows, lanes], tl.float32)
    out = column_sums + block.to(tl.int64) * N
    for start in range(part * strip, tl.minimum((part + 1) * strip, N), columns):
        to = start + tl.arange(0, columns)  # numbers of the tile's columns
        d = tl.zeros([rows, columns], tl.float32)  # exponents of the kernel values
        for q in range(0, inner, piece):
            x = tl.load(X_high + at[:, None] * inner + (q + inner_at)[None, :])
            x_low = tl.load(X_low + at[:, None] * inner + (q + inner_at)[None, :])
            y = tl.load(Y_high + to[None, :] * inner + (q + inner_at)[:, None])
            y_low = tl.load(Y_low + to[None, :] * inner + (q + inner_at)[:, None])
            d = tl.dot(x, y, d)
            d = tl.dot(x, y_low, d)
            d = tl.dot(x_low, y, d)
        k = _exp2(d + tl.load(exponent + to)[None, :])
        total += tl.sum(tl.reshape(k, [rows, columns // lanes, lanes]), 1)
        if sum_columns:
            tl.store(out + to, tl.sum(k * w[:, None], 0))
    tl.store(row_sums + part.to(tl.int64) * M + at, tl.sum(total, 1))


def fused_sums(X: Any, Y: Any | None, x_exponents: Any, y_exponents: Any | None) -> tuple[Any, Any]:
    """Compute row and column sums of the matrix 2^(x·y + x_exponent + y_exponent) of all rows x of X and y of Y.

    `X` and `Y` are centred and scaled, in double precision on one GPU. The exponent of a row x is −‖x‖²/2 plus log₂ of
    its weight. Without `Y` it is X, and both sums are the same tensor. Sums are in double precision.
    """
    tile = choose_tile(X.shape[1])
    free = torch.cuda.mem_get_info(X.device)[0]
    chunk = next(size for least, size in _CHUNKS if free >= least)
    blocks = [_Rows.prepare(X[k : k + chunk], x_exponents[k : k + chunk], tile) for k in range(0, len(X), chunk)]
    symmetric = Y is None
    if Y is None or y_exponents is None:
        Y, y_exponents = X, x_exponents
    strips = [_Columns.prepare(Y[k : k + chunk], y_exponents[k : k + chunk], tile) for k in range(0, len(Y), chunk)]
    row_sums = [torch.zeros(block.size, dtype=torch.float64, device=X.device) for block in blocks]
    column_sums = row_sums if symmetric else [torch.zeros(s.size, dtype=torch.float64, device=X.device) for s in strips]
    for j, A in enumerate(blocks):
        for k, B in enumerate(strips):
            if symmetric and k < j:  # the mirror image of another pair of chunks, whose column sums are added
                continue
            sum_columns = not (symmetric and j == k)
            more_rows, more_columns = _launch(A, B, tile, sum_columns)
            row_sums[j] += more_rows
            if sum_columns:
                column_sums[k] += more_columns
    all_row_sums = torch.cat(row_sums)
    return all_row_sums, all_row_sums if symmetric else torch.cat(column_sums)


class _Rows(NamedTuple):
    """Rows of the kernel matrix as the GPU kernels read them, padded with rows of factor 0 to fill the last tile."""

    high: Any  # half-precision values, shape (padded rows, inner dimension); also the low parts, if joined
    low: Any  # what half precision leaves of them
    factor: Any  # 2^exponent, in single precision
    exact: Any  # the same in double precision, for the row's own sum
    size: int  # number of rows without padding

    @classmethod
    def prepare(cls, X: Any, exponent: Any, tile: Tile) -> _Rows:
        """Split scaled rows into halves, with a factor of 2^exponent for each row."""
        high, low = _split_halves(X)
        n, size = len(X), -(-len(X) // tile.rows) * tile.rows
        ones = [torch.ones(n, _ONES, dtype=torch.half, device=X.device)] if tile.piece == tile.inner else []
        exact = torch.exp2(exponent)
        factor = torch.zeros(size, dtype=torch.float32, device=X.device)
        factor[:n] = exact
        if tile.is_joined:
            matrix = _pad([high, high, low, *ones], size, tile.inner)
            return cls(matrix, matrix, factor, exact, n)
        return cls(_pad([high, *ones], size, tile.inner), _pad([low], size, tile.inner), factor, exact, n)


class _Columns(NamedTuple):
    """Columns of the kernel matrix as the GPU kernels read them, padded with columns whose exponent makes them zero."""

    high: Any  # half-precision values, shape (padded columns, inner dimension); also the low parts, if joined
    low: Any  # what half precision leaves of them
    exponent: Any  # less the median exponent of some columns, in single precision
    common: Any  # 2^(that median), a factor of all row sums: the exponents are small, and so are their errors
    exact: Any  # 2^(exponent − rounded exponent), by which a column's own sum is multiplied
    size: int  # number of columns without padding

    @classmethod
    def prepare(cls, Y: Any, exponent: Any, tile: Tile) -> _Columns:
        """Split scaled rows of Y into halves, with their exponents as a part of the product where these fit."""
        high, low = _split_halves(Y)
        n, size = len(Y), -(-len(Y) // tile.columns) * tile.columns
        padded = torch.full((size,), _NOTHING, dtype=torch.float64, device=Y.device)
        middle = exponent[:: -(-n // _MEDIAN_ROWS)].median()
        padded[:n] = exponent - middle
        exponent_halves = torch.stack(_split_halves(padded), dim=1)
        single = padded.float()
        is_in_product = tile.piece == tile.inner
        rounded = (exponent_halves.double().sum(dim=1) if is_in_product else single.double())[:n]
        exact = torch.exp2(exponent - rounded)
        parts = [high, low, high] if tile.is_joined else [high]
        matrix = _pad(parts, size, tile.inner)
        if is_in_product:
            place = sum(part.shape[1] for part in parts)
            matrix[:, place : place + _ONES] = exponent_halves
        low_matrix = matrix if tile.is_joined else _pad([low], size, tile.inner)
        return cls(matrix, low_matrix, single, torch.exp2(middle), exact, n)


def _split_halves(values: Any) -> tuple[Any, Any]:
    """Return two half-precision tensors whose sum is close to `values`: the rounded values, and the remainder."""
    high = values.half()
    return high, (values - high).half()


def _pad(parts: list[Any], size: int, inner: int) -> Any:
    """Join matrices of equally many rows side by side in a matrix of shape (size, inner), padded with zeros."""
    n, place = len(parts[0]), 0
    matrix = torch.zeros(size, inner, dtype=torch.half, device=parts[0].device)
    for part in parts:
        matrix[:n, place : place + part.shape[1]] = part
        place += part.shape[1]
    return matrix


def _launch(A: _Rows, B: _Columns, tile: Tile, sum_columns: bool) -> tuple[Any, Any]:
    """Run the GPU kernel for all pairs of rows in A and columns in B; return row sums, and column sums or None."""
    M, N = len(A.high), len(B.high)
    blocks = M // tile.rows
    strip = -(-N // (_STRIPS * tile.columns)) * tile.columns  # columns in a strip, a multiple of those of a tile
    row_sums = torch.empty(_STRIPS, M, dtype=torch.float32, device=A.high.device)
    padded_blocks = -(-blocks // _SINGLE_BLOCKS) * _SINGLE_BLOCKS if sum_columns else 1
    column_sums = torch.empty(padded_blocks, N, dtype=torch.float32, device=A.high.device)
    kernel = _sum_from_registers if tile.piece == tile.inner else _sum_in_pieces
    kernel[(blocks, _STRIPS)](
        A.high, A.low, B.high, B.low, A.factor, B.exponent, row_sums, column_sums, M, N, strip,
        is_joined=tile.is_joined, inner=tile.inner, piece=tile.piece, rows=tile.rows, columns=tile.columns,
        sum_columns=sum_columns, lanes=_LANES, num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip
    rows = row_sums.sum(dim=0, dtype=torch.float64)[: A.size] * (A.exact * B.common)
    if not sum_columns:
        return rows, None
    column_sums[blocks:] = 0
    # first in single precision over a few blocks, then in double: all in double takes six times as long
    partial_sums = column_sums.view(-1, _SINGLE_BLOCKS, N).sum(dim=1)
    return rows, partial_sums.sum(dim=0, dtype=torch.float64)[: B.size] * B.exact
