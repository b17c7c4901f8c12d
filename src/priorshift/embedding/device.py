"""Where sums and scores are computed: on the processor, or on a GPU by torch."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from priorshift.errors import InputError, MissingExtraError


def import_cuda(device: str) -> Any:
    """torch, if it can compute on that device; or a sentence.

    Parameters
    ----------
    device : str
        Such as "cuda" or "cuda:1".

    Returns
    -------
    module
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            f'device={device!r} needs torch, which is not installed; run pip install "priorshift[torch]", or leave '
            "device out."
        ) from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device={device!r} was asked for, but torch sees no GPU here; leave device out.")
    return torch


def device_meant(device: Any, *, pays: bool) -> str:
    """The device that a user means: "auto" is a GPU where one pays and torch sees one.

    Parameters
    ----------
    device : object
        As the user says it.
    pays : bool
        Whether there is enough to compute, of a kind that a GPU can.

    Returns
    -------
    str
        "cpu", or a torch device that is there.
    """
    if not isinstance(device, str) or not (device in ("auto", "cpu") or device.startswith("cuda")):
        raise InputError(f"device is {device!r}, but it must be 'auto', 'cpu' or a GPU of torch's, such as 'cuda'.")
    if device.startswith("cuda"):
        import_cuda(device)
        return device
    if device == "cpu" or not pays or importlib.util.find_spec("torch") is None or _is_without_gpu():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _is_without_gpu() -> bool:
    """Whether the torch that is installed was built for processors alone; importing it to ask takes two seconds."""
    try:
        return version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return False
