"""A small network trained on positives and unlabelled rows with a non-negative risk.

DRPU and nnPU are the same training with two risks. Each is the sum of a positive risk, a mean over positives, and a
negative risk, an integral over the negatives that is estimated as a difference of two means. In theory the negative
risk is at least 0, but a flexible network drives its empirical value below 0; where it does in a batch, the step goes
the other way (Kiryo et al. 2017; Kato and Teshima 2021).

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
from priorshift.io.parameters import check_count, check_number, check_prior, is_known
from priorshift.problem import Source
from priorshift.progress import track_progress
from priorshift.source_prior import estimate_source_prior

_ROWS_AT_A_TIME = 8192  # evaluated together


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and biases of dense layers with ReLU between them; batch normalisation is folded in."""

    layers: tuple[tuple[Floats, Floats], ...]  # weight, of shape (inputs, outputs), and bias of each layer

    def __call__(self, X: NDArray[Any]) -> Floats:
        """Compute the network's output at each row of X, in blocks of rows; the result has shape (rows,)."""
        outputs = []
        for k in range(0, len(X), _ROWS_AT_A_TIME):
            values = np.asarray(X[k : k + _ROWS_AT_A_TIME], dtype=np.float64)
            for number, (weight, bias) in enumerate(self.layers):
                if number > 0:
                    values = np.maximum(values, 0.0)  # ReLU before every layer but the first
                values = values @ weight + bias
            outputs.append(values[:, 0])  # the last layer has one output
        return np.concatenate(outputs)


# outputs at positive and at unlabelled rows (tensors) -> positive risk, negative risk
Risk = Callable[[Any, Any], tuple[Any, Any]]
_BN_EPS = 1e-5  # added to variances in batch normalisation
_LARGEST_FEATURE = 1e6  # largest absolute value of a feature; above it float32 has too few digits left


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
    """Check the training settings of an estimator, which are its attributes; raise InputError if one is invalid."""
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


def training_prior(settings: Any, source: Source, least: float) -> float:
    """Return the source prior that a risk needs: the given `source_prior`, or an estimate from the source.

    `settings` is an estimator with `source_prior` and `random_state`. An estimate below `least` is raised to it.
    """
    if is_known(settings.source_prior):
        return check_prior(settings.source_prior)
    return max(estimate_source_prior(settings.source_prior, source, settings.random_state).value, least)


@dataclass(frozen=True, eq=False)
class Split:
    """Positive and unlabelled rows to train on, and those held out; each of shape (rows, features)."""

    positive: Floats
    unlabeled: Floats
    held_positive: Floats
    held_unlabeled: Floats

    @classmethod
    def from_source(cls, rows: Floats, source: Source, held_out: Mask) -> Split:
        """Split P and U of a source; `rows` are all of its rows, scaled, and `held_out` marks those to hold out."""
        P, U = source.positive, source.population  # row numbers
        return cls(rows[P[~held_out[P]]], rows[U[~held_out[U]]], rows[P[held_out[P]]], rows[U[held_out[U]]])


def train(risk: Risk, split: Split, settings: Any, rng: np.random.Generator, name: str) -> tuple[Network, list[float]]:
    """Train a network; return it as it was at its smallest held-out risk, and the held-out risk after each epoch.

    `settings` is an estimator with the attributes `hidden`, `learning_rate`, `max_epochs` and so on; `name` is shown
    with the progress. All random numbers come from `rng`: torch's generators are not touched.
    """
    torch = import_torch()
    try:
        torch.zeros(1, device=settings.device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"torch cannot use device {settings.device!r} here ({reason}); use 'cpu'.") from None
    largest = max(float(np.abs(part).max()) for part in (split.positive, split.unlabeled))
    if largest > _LARGEST_FEATURE:
        raise InputError(f"features of {largest:.3g} are too large for a network; set standardize=True.")
    try:
        net = _build(torch, split.positive.shape[1], settings, rng)
    except (RuntimeError, MemoryError):
        raise MemoryError(f"a network with hidden={settings.hidden} does not fit into memory") from None
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    P, U, held_P, held_U = (
        torch.as_tensor(np.asarray(part, dtype=np.float32), device=settings.device)
        for part in (split.positive, split.unlabeled, split.held_positive, split.held_unlabeled)
    )
    # at most one step for each row of U, so that within an epoch only positives, of which there are few, are repeated
    steps = max(1, min(ceil((len(P) + len(U)) / settings.batch_size), len(U)))
    best_risk, best_epoch, best_state = np.inf, 0, _copy_state(net)
    held_out_risks: list[float] = []
    with track_progress(name, settings.max_epochs) as advance:
        for _ in range(settings.max_epochs):
            advance()
            net.train()
            for P_batch, U_batch in zip(_batches(len(P), steps, rng), _batches(len(U), steps, rng), strict=True):
                outputs = net(torch.cat([P[P_batch], U[U_batch]]))[:, 0]
                positive_risk, negative_risk = risk(outputs[: len(P_batch)], outputs[len(P_batch) :])
                optimizer.zero_grad(set_to_none=True)
                # a negative risk below 0 is overfitted: step back, to increase it (Kiryo et al. 2017, algorithm 1)
                loss = positive_risk + negative_risk if negative_risk.item() >= 0 else -negative_risk
                loss.backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                outputs = net(torch.cat([held_P, held_U]))[:, 0]
                positive_risk, negative_risk = risk(outputs[: len(held_P)], outputs[len(held_P) :])
            # max(x, 0·x) is max(x, 0), except that NaN and −∞ remain, so that divergence is noticed below
            held_out_risks.append(float(positive_risk + max(negative_risk, 0 * negative_risk)))
            if held_out_risks[-1] < best_risk:
                best_risk, best_epoch, best_state = held_out_risks[-1], len(held_out_risks), _copy_state(net)
            elif len(held_out_risks) - best_epoch >= settings.patience:
                break
    if not np.isfinite(best_risk):
        raise InputError(f"training diverged with learning_rate={settings.learning_rate:g}; choose a smaller one.")
    net.load_state_dict(best_state)
    return _to_network(torch, net), held_out_risks


def _batches(rows: int, batches: int, rng: np.random.Generator) -> list[Index]:
    """Split row numbers at random into batches of almost equal size; with fewer rows than batches, rows repeat."""
    order = rng.permutation(rows)
    if rows < batches:
        order = np.concatenate([order, rng.integers(rows, size=batches - rows)])
    return np.array_split(order, batches)


def _build(torch: Any, features: int, settings: Any, rng: np.random.Generator) -> Any:
    """Build a torch network: dense layers, each hidden one followed by batch normalisation and ReLU, and one output."""
    modules: list[Any] = []
    for number, (inputs, outputs) in enumerate(pairwise((features, *settings.hidden, 1))):
        dense = torch.nn.utils.skip_init(torch.nn.Linear, inputs, outputs)  # its weights are drawn from `rng` below
        # uniform initial weights: He's bound √(6/inputs) before a ReLU, a smaller one for the output
        bound = sqrt((6 if number < len(settings.hidden) else 1) / inputs)
        with torch.no_grad():
            dense.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, (outputs, inputs))))
            dense.bias.zero_()
        modules.append(dense)
        if number < len(settings.hidden):
            modules += [torch.nn.BatchNorm1d(outputs, eps=_BN_EPS), torch.nn.ReLU()]
    return torch.nn.Sequential(*modules).to(settings.device)


def _copy_state(net: Any) -> dict[str, Any]:
    """Copy the parameters and running moments of a torch network, which training goes on to change."""
    return {key: value.detach().clone() for key, value in net.state_dict().items()}


def _to_network(torch: Any, net: Any) -> Network:
    """Convert a torch network to plain arrays, with batch normalisation folded into the dense layer before it.

    With its running moments, batch normalisation is the affine map h ↦ weight·(h − mean)/√(variance + ε) + bias.
    """
    layers: list[tuple[Floats, Floats]] = []

    def to_array(tensor: Any) -> Floats:
        """Copy a tensor into a float64 array."""
        return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)

    for module in net:
        if isinstance(module, torch.nn.Linear):
            layers.append((to_array(module.weight).T, to_array(module.bias)))
        elif isinstance(module, torch.nn.BatchNorm1d):
            factor = to_array(module.weight) / np.sqrt(to_array(module.running_var) + module.eps)
            weight, bias = layers[-1]
            layers[-1] = (weight * factor, (bias - to_array(module.running_mean)) * factor + to_array(module.bias))
    return Network(tuple(layers))
