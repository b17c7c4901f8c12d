"""Scores on a GPU: the same numbers in double precision, for very many rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.embedding.device import device_meant, import_cuda
from priorshift.scores.ridge import Ridge

_MANY = 500_000  # rows, below which starting torch costs more than it saves
_BLOCK = 2**18  # rows whose features are held together


def choose_score_device(device: str, rows: int) -> str:
    """The device that is meant: "auto" is a GPU where there are many rows and torch sees one.

    Parameters
    ----------
    device : str
        As the user says it.
    rows : int
        That are to be scored.

    Returns
    -------
    str
        "cpu", or a torch device.
    """
    return device_meant(device, pays=rows >= _MANY)


def gpu_scores(rows: Floats, fold: Index, models: Sequence[Ridge], device: str = "cuda") -> Floats:
    """Each row by the model of its fold, as :func:`priorshift.scores.cross_fitting.scores_by_fold` gives it.

    Parameters
    ----------
    rows : ndarray of shape (rows, columns)
        Prepared.
    fold : ndarray of int
        Of each row.
    models : sequence of Ridge
        Of one repetition, which have their frequencies in common.
    device : str
        Where.

    Returns
    -------
    ndarray of shape (rows,)
    """
    torch = import_cuda(device)

    def moved(array: Floats) -> Any:
        return torch.as_tensor(array, device=device)

    half, phase = moved(models[0].half), moved(np.stack([model.phase for model in models]))
    twice = moved(np.stack([model.twice for model in models]))
    constant = moved(np.array([model.constant for model in models]))
    scores = np.empty(len(rows))
    for k in range(0, len(rows), _BLOCK):
        at = slice(k, k + _BLOCK)
        of = torch.as_tensor(fold[at], device=device)
        t = torch.tan(torch.as_tensor(rows[at], dtype=torch.float64, device=device) @ half - phase[of])
        scores[at] = ((twice[of] / (1 + t * t)).sum(dim=1) + constant[of]).cpu().numpy()
    return scores
