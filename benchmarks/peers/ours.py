"""The library's own, as a user gets them."""

from __future__ import annotations

import numpy as np

import priorshift as ps


def mixture_prior(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    return float(ps.MixturePrior(random_state=seed).fit(X, y).prior_)


def km1(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    return float(ps.KM1(random_state=seed).fit(X, y).prior_)


def km2(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    return float(ps.KM2(random_state=seed).fit(X, y).prior_)
