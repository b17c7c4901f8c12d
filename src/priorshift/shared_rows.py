"""Which labelled and which unlabelled rows are the same observation: told by the user, never guessed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.embeddings import NO_PAIRS, Pairs
from priorshift.errors import InputError


def shared_pairs(X: NDArray[Any], labeled: NDArray[np.intp], unlabeled: NDArray[np.intp], shared: Any) -> Pairs:
    """Pairs (position among the labelled, position among the unlabelled) of one observation.

    `shared` is ``"identical"`` (rows of `X` with identical values are one observation) or one id for each row.
    """
    if isinstance(shared, str):
        if shared != "identical":
            raise InputError(f"shared is {shared!r}, but it must be 'identical' or one id for each row.")
        ids = row_codes(X)
    else:
        ids = np.asarray(shared)
        if ids.shape != (len(X),):
            raise InputError(f"shared has shape {ids.shape} but X has {len(X)} rows; pass one id for each row.")
        ids = comparable_ids(ids)
        for name, rows in (("labelled", labeled), ("unlabelled", unlabeled)):
            values, counts = np.unique(ids[rows], return_counts=True)
            if (counts > 1).any():
                raise InputError(
                    f"the id {values[counts > 1][0]!s} stands in several {name} rows, but an observation occurs once "
                    "in a sample; pass ids that are unique in each sample."
                )
    return _join(ids[labeled], ids[unlabeled])


def comparable_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as text, so that 7, 7.0 and "7" are one."""
    if ids.dtype.kind in "iu":
        return ids.astype(str)
    text = [_text(i) for i in ids.tolist()]
    if "" in text:
        raise InputError(f"the id in row {text.index('')} (counting from 0) is missing; give every row an id.")
    return np.array(text)


def _text(value: Any) -> str:
    """The id as text; empty for a missing one, of which every library has its own: None, NaN, NA, NaT."""
    if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT", "None"):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def row_codes(X: NDArray[Any]) -> NDArray[np.intp]:
    """A number for each row, equal where rows are identical."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1].reshape(-1))


def _join(left: NDArray[Any], right: NDArray[Any]) -> Pairs:
    order = np.argsort(right, kind="stable")
    ranked = right[order]
    first, last = np.searchsorted(ranked, left, "left"), np.searchsorted(ranked, left, "right")
    count = last - first
    total = int(count.sum())
    if total > 10 * (len(left) + len(right)):
        raise InputError(
            f"shared='identical' finds {total} identical pairs among {len(left)} positive and {len(right)} unlabeled "
            "rows, so identical values do not mean the same observation here; pass ids, or leave shared out."
        )
    if not total:
        return NO_PAIRS
    if total == len(left) * len(right):
        raise InputError(
            f"every one of {len(left)} positive rows is the same observation as every one of {len(right)} unlabeled "
            "rows, so no pair is left to compare; pass ids, or leave shared out."
        )
    at = np.repeat(np.arange(len(left)), count)
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([at, order[np.repeat(first, count) + offset]], axis=1)
