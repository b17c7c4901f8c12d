"""A small network trained on positives and unlabelled rows with a non-negative risk.

DRPU and nnPU are the same training with two risks. Each is split as sure + doubtful, where theory says that the
doubtful part, a difference of two means, is not negative. A flexible network drives its empirical value below zero;
where it does in a batch, the step goes the other way (Kiryo et al. 2017; Kato and Teshima 2021).

Training needs torch; the trained :class:`Network` consists of plain arrays and predicts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError, MissingExtraError
from priorshift.io.parameters import check_count, check_number
from priorshift.problem import Source
from priorshift.progress import track_progress

_ROWS = 8192  # evaluated together


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and biases of dense layers with ReLU between them; batch normalisation is folded in."""

    layers: tuple[tuple[Floats, Floats], ...]

    def __call__(self, X: NDArray[Any]) -> Floats:
        """Compute the output at each row."""
        outputs = []
        for k in range(0, len(X), _ROWS):
            h = np.asarray(X[k : k + _ROWS], dtype=np.float64)
            for number, (weight, bias) in enumerate(self.layers):
                h = (np.maximum(h, 0.0) if number else h) @ weight + bias
            outputs.append(h[:, 0])
        return np.concatenate(outputs)


Risk = Callable[[Any, Any], tuple[Any, Any]]  # outputs at positive and at unlabelled rows -> sure, doubtful
_BN_EPS = 1e-5
_LARGEST = 1e6  # of a feature: beyond it float32 has no digits left for the rest


def import_torch() -> Any:
    """Import torch, or raise an error that says how to install it."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "DRPU's network and NNPUClassifier are trained with torch, which is not installed; run pip install "
            '"priorshift[torch]", or pass DRPU a scikit-learn classifier as model.'
        ) from None
    return torch


def check_training(settings: Any) -> None:
    """Check the training settings of an estimator."""
    if not isinstance(settings.hidden, (tuple, list)):
        raise InputError(f"hidden is {settings.hidden!r}, but it must be the sizes of the layers, such as (300, 300).")
    for size in settings.hidden:
        check_count("a size in hidden", size, 1)
    for name, least in (("batch_size", 2), ("max_epochs", 1), ("patience", 1)):
        check_count(name, getattr(settings, name), least)
    if not 0 < check_number("learning_rate", settings.learning_rate) <= 10:
        raise InputError(f"learning_rate is {settings.learning_rate!r}, but it must be positive and at most 10.")
    if not 0 <= check_number("weight_decay", settings.weight_decay) <= 1e3:
        raise InputError(f"weight_decay is {settings.weight_decay!r}, but it must lie between 0 and 1000.")
    if not isinstance(settings.device, str):
        raise InputError(f"device is {settings.device!r}, but it must be a torch device, such as 'cpu' or 'cuda'.")


@dataclass(frozen=True, eq=False)
class Split:
    """Positive and unlabelled rows to train on, and those held out."""

    positive: Floats
    unlabeled: Floats
    held_positive: Floats
    held_unlabeled: Floats

    @classmethod
    def from_source(cls, rows: Floats, source: Source, held_out: Mask) -> Split:
        """Split P and U of a source; `rows` are all of its rows, scaled."""
        samples = source.positive, source.population
        parts = [sample[held_out[sample] == held] for held in (False, True) for sample in samples]
        return cls(*(rows[part] for part in parts))


def train(risk: Risk, rows: Split, how: Any, rng: np.random.Generator, name: str) -> tuple[Network, list[float]]:
    """Train a network with an estimator's settings; return the one of smallest held-out risk, and the risk by epoch.

    All that is random comes from `rng`: torch's generators are not touched.
    """
    torch = import_torch()
    try:
        torch.zeros(1, device=how.device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"torch cannot use device {how.device!r} here ({reason}); use 'cpu'.") from None
    largest = max(float(np.abs(part).max()) for part in (rows.positive, rows.unlabeled))
    if largest > _LARGEST:
        raise InputError(f"features of {largest:.3g} are too large for a network; set standardize=True.")
    try:
        net = _build(torch, rows.positive.shape[1], how, rng)
    except (RuntimeError, MemoryError):
        raise MemoryError(f"a network with hidden={how.hidden} does not fit into memory") from None
    optimizer = torch.optim.Adam(net.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay)
    P, U, held_P, held_U = (
        torch.as_tensor(np.asarray(part, dtype=np.float32), device=how.device)
        for part in (rows.positive, rows.unlabeled, rows.held_positive, rows.held_unlabeled)
    )
    steps = max(1, min(ceil((len(P) + len(U)) / how.batch_size), len(U)))
    best, best_epoch, best_state = np.inf, 0, _state(net)
    curve: list[float] = []
    with track_progress(name, how.max_epochs) as epoch:
        for _ in range(how.max_epochs):
            epoch()
            net.train()
            for p, u in zip(_batches(len(P), steps, rng), _batches(len(U), steps, rng), strict=True):
                out = net(torch.cat([P[p], U[u]]))[:, 0]
                sure, doubtful = risk(out[: len(p)], out[len(p) :])
                optimizer.zero_grad(set_to_none=True)
                (sure + doubtful if doubtful.item() >= 0 else -doubtful).backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                out = net(torch.cat([held_P, held_U]))[:, 0]
                sure, doubtful = risk(out[: len(held_P)], out[len(held_P) :])
            curve.append(float(sure + max(doubtful, 0 * doubtful)))
            if curve[-1] < best:
                best, best_epoch, best_state = curve[-1], len(curve), _state(net)
            elif len(curve) - best_epoch >= how.patience:
                break
    if not np.isfinite(best):
        raise InputError(f"training diverged with learning_rate={how.learning_rate:g}; choose a smaller one.")
    net.load_state_dict(best_state)
    return _fold(torch, net), curve


def _batches(rows: int, number: int, rng: np.random.Generator) -> list[Index]:
    """Split rows at random into batches of almost equal size; with fewer rows than batches, some are repeated."""
    order = rng.permutation(rows)
    if rows < number:
        order = np.concatenate([order, rng.integers(rows, size=number - rows)])
    return np.array_split(order, number)


def _build(torch: Any, features: int, how: Any, rng: np.random.Generator) -> Any:
    """Build dense layers, each hidden one with batch normalisation and ReLU."""
    parts: list[Any] = []
    for number, (inner, outer) in enumerate(pairwise((features, *how.hidden, 1))):
        dense = torch.nn.utils.skip_init(torch.nn.Linear, inner, outer)
        bound = sqrt((6 if number < len(how.hidden) else 1) / inner)  # He's before a ReLU
        with torch.no_grad():
            dense.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, (outer, inner))))
            dense.bias.zero_()
        parts.append(dense)
        if number < len(how.hidden):
            parts += [torch.nn.BatchNorm1d(outer, eps=_BN_EPS), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts).to(how.device)


def _state(net: Any) -> dict[str, Any]:
    return {key: value.detach().clone() for key, value in net.state_dict().items()}


def _fold(torch: Any, net: Any) -> Network:
    """Fold batch normalisation, which is affine with its running moments, into the layer before it."""
    layers: list[tuple[Floats, Floats]] = []

    def array(tensor: Any) -> Floats:
        return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)

    for part in net:
        if isinstance(part, torch.nn.Linear):
            layers.append((array(part.weight).T, array(part.bias)))
        elif isinstance(part, torch.nn.BatchNorm1d):
            factor = array(part.weight) / np.sqrt(array(part.running_var) + part.eps)
            weight, bias = layers[-1]
            layers[-1] = (weight * factor, (bias - array(part.running_mean)) * factor + array(part.bias))
    return Network(tuple(layers))
