"""Estimators of the source prior side by side: ours, what can be installed, and what papers describe.

A peer is a function of X, y (1 labelled, 0 unlabelled) and a seed, and gives the share of positives among the
unlabelled rows. Methods of one sample of which some positives are labelled (pulearn, TIcE, Elkan and Noto) get P and U
together as that sample, and the share of U follows from theirs (:mod:`benchmarks.peers.label_frequency`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Peer:
    """Where a peer is to be found: a function of a module of this folder, and the package that it needs."""

    name: str
    module: str
    function: str = "prior"
    package: str | None = None

    @property
    def installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None

    def load(self) -> Callable[[np.ndarray, np.ndarray, int], float]:
        found: Any = getattr(import_module(f"benchmarks.peers.{self.module}"), self.function)
        return found


PEERS = {
    peer.name: peer
    for peer in (
        Peer("MixturePrior", "ours", "mixture_prior"),
        Peer("KM1", "ours", "km1"),
        Peer("KM2", "ours", "km2"),
        Peer("DEDPUL, network", "dedpul", "by_network"),
        Peer("DEDPUL, trees", "dedpul", "by_trees", "xgboost"),
        Peer("AlphaMax", "alphamax"),
        Peer("PULSCAR", "pulscar", package="xgboost"),
        Peer("BBE", "bbe"),
        Peer("TIcE", "tice"),
        Peer("pulearn, histogram", "installed", "pulearn_histogram", "pulearn"),
        Peer("pulearn, EM", "installed", "pulearn_em", "pulearn"),
        Peer("Elkan–Noto", "installed", "elkan_noto", "pulearn"),
    )
}
