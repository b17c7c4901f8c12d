"""Arrays of whatever library: lists of rows, sparse matrices, tensors; and a sentence about what holds no table."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from priorshift.errors import InputError, InputTypeError

_TABLE = "a 2-D array, a list of rows, a data frame or the path of a CSV or Parquet file"
_DENSE = 1  # GiB up to which a sparse matrix is made dense


def as_array(source: Any, name: str, kind: Any = None) -> NDArray[Any]:
    """Rows and columns of anything, as an array of whatever type, or of a given one."""
    try:
        if issparse(source):
            source = _dense(source, name)
        _refuse_other_things(source, name)
        if type(source).__module__.split(".")[0] == "torch":
            source = _from_tensor(source, name)
        array = np.asarray(source, dtype=kind)
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"{name} has rows of different lengths; pass a table with the same columns in every row."
        ) from None
    except (TypeError, RuntimeError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise InputTypeError(f"{name} cannot be made an array ({said}); pass {_TABLE}.") from None
    if np.iscomplexobj(array):
        raise InputError(f"Complex data not supported: {name} holds complex numbers; pass real ones.")
    if array.ndim == 0:
        raise InputTypeError(f"{name} is of type {type(source).__name__}, but a table is expected; pass {_TABLE}.")
    if array.ndim != 2:
        raise InputError(
            f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)}, but rows and columns are expected. "
            "Reshape your data with .reshape(-1, 1) if it is a single feature, or .reshape(1, -1) for a single row."
        )
    return array


def _refuse_other_things(source: Any, name: str) -> None:
    """Things that hold no table, or hold one in a way that is not read."""
    if source is None:
        raise InputTypeError(f"{name} is None, but a table is expected; pass {_TABLE}.")
    if isinstance(source, Mapping):
        raise InputTypeError(f"{name} is a mapping, but a table is expected; pass pandas.DataFrame({name}).")
    if isinstance(source, io.IOBase):
        raise InputTypeError(f"{name} is an open file, but a table or a path is expected; pass the file's path.")
    if type(source).__module__.startswith(("dask.dataframe", "dask.bag", "dask.delayed")):  # names would be lost
        raise InputTypeError(
            f"{name} is a Dask {type(source).__name__}, whose rows lie elsewhere; use priorshift.distributed, or call "
            ".compute() on it first."
        )
    if isinstance(source, Iterator):
        raise InputTypeError(f"{name} is an iterator, which can be read only once; pass list({name}).")
    if isinstance(source, (set, frozenset)):
        raise InputTypeError(f"{name} is a set, whose rows have no order; pass a list of rows.")
    if isinstance(source, (list, tuple)) and source and all(map(_is_file, source)):
        raise InputError(
            f"{name} is a list of files, such as {str(source[0])!r}, but a table is expected; several files of one "
            "sample are read in batches, which stream=False and encoder=None do not do: leave these out, or pass one "
            "table."
        )
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], Mapping):
        raise InputTypeError(f"{name} is a list of mappings; pass pandas.DataFrame({name}).")


def _is_file(thing: Any) -> bool:
    return isinstance(thing, os.PathLike) or (isinstance(thing, str) and os.path.isfile(thing))


def _dense(matrix: Any, name: str) -> NDArray[Any]:
    """A sparse matrix with all its zeros, written once into place, if they fit."""
    gib = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize / 2**30
    if gib > _DENSE:
        raise InputTypeError(
            f"{name} is a sparse matrix of {' × '.join(map(str, matrix.shape))} cells, {gib:.3g} GiB when dense, "
            f"but at most {_DENSE} GiB are made dense; reduce its columns first, for example by scikit-learn's "
            "TruncatedSVD."
        )
    return np.asarray(matrix.toarray(order="C"))


def _from_tensor(tensor: Any, name: str) -> NDArray[Any]:
    """A tensor's numbers, from whatever device, without its gradients; NumPy has no bfloat16 and no float8."""
    if getattr(tensor, "is_meta", False):
        raise InputTypeError(f"{name} is a tensor on the device 'meta', which holds no numbers; pass one that does.")
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    tensor = tensor.cpu()
    if tensor.is_floating_point() and str(tensor.dtype) not in ("torch.float16", "torch.float32", "torch.float64"):
        tensor = tensor.float()
    return np.asarray(tensor.numpy())
