"""Compute the paper's image features: ResNet18 with ImageNet weights, the 30 most correlated with the class."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.datasets import IMAGES
from priorshift.errors import InputError

_FILES = {"CIFAR": "CIFAR10"}
_POSITIVE = {"MNIST": (0, 2, 4, 6, 8), "CIFAR": (0, 1, 8, 9), "Fashion": (0, 2, 3, 4, 6)}  # classes by image set
_BATCH = 256


def write_features(folder: Path) -> None:
    """Write ``NAME_resnet18.npz`` for each image set; needs torchvision, and internet access for weights and images."""
    try:
        import torch
        import torchvision
    except ImportError:
        raise InputError(
            "Image features need torchvision and torch. Run pip install torchvision priorshift[torch]."
        ) from None
    try:
        weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
        network = torchvision.models.resnet18(weights=weights)
    except Exception as error:  # a download may fail in many ways
        raise InputError(
            f"The ResNet18 weights cannot be downloaded ({error}). Run this with internet access."
        ) from None
    network.fc = torch.nn.Identity()
    network.eval()
    folder.mkdir(parents=True, exist_ok=True)
    for name in IMAGES:
        parts = {}
        for part in ("train", "test"):
            images = _images(torchvision, name, folder / "downloads", part == "train", weights.transforms())
            parts[part] = _features(torch, network, images)
        sel = most_correlated(parts["train"][0], positive_images(name, parts["train"][1]))
        arrays = {f"X_{part}": X[:, sel].astype(np.float32) for part, (X, _) in parts.items()}
        arrays |= {f"y_{part}": positive_images(name, labels).astype(int) for part, (_, labels) in parts.items()}
        draft = folder / f".{name}.npz"
        np.savez_compressed(draft, **arrays, sel=sel)
        os.replace(draft, folder / f"{_FILES.get(name, name)}_resnet18.npz")


def _images(torchvision: Any, name: str, folder: Path, train: bool, transform: Any) -> Any:
    kind = {"MNIST": "MNIST", "CIFAR": "CIFAR10", "Fashion": "FashionMNIST"}[name]

    def prepare(image: Any) -> Any:
        return transform(image.convert("RGB"))

    try:
        return getattr(torchvision.datasets, kind)(str(folder), train=train, download=True, transform=prepare)
    except Exception as error:  # a download may fail in many ways
        raise InputError(f"{name} cannot be downloaded ({error}). Run this with internet access.") from None


def _features(torch: Any, network: Any, images: Any) -> tuple[np.ndarray, np.ndarray]:
    outputs, labels = [], []
    with torch.no_grad():
        for batch, label in torch.utils.data.DataLoader(images, batch_size=_BATCH):
            outputs.append(network(batch).numpy())
            labels.append(label.numpy())
    return np.concatenate(outputs), np.concatenate(labels)


def most_correlated(X: NDArray[np.float64], y: NDArray[np.bool_], count: int = 30) -> NDArray[np.intp]:
    """Return the sorted positions of the `count` columns with the largest absolute correlation with the class."""
    centred_X, centred_y = X - X.mean(axis=0), y - y.mean()
    spread = np.sqrt((centred_X**2).sum(axis=0))
    # not divided by the spread of y, which is common to all columns; constant columns have correlation 0
    correlation = np.abs(centred_y @ centred_X) / np.where(spread > 0, spread, np.inf)
    return np.sort(np.argsort(-correlation, kind="stable")[:count])


def positive_images(name: str, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the positives from class numbers: even digits, vehicles, or clothes of the upper body."""
    return np.isin(labels, _POSITIVE[name])
