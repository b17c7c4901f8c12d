"""Kernels k(x, y), and which one is meant by a name and a bandwidth."""

from priorshift.kernels.choice import BANDWIDTHS, KERNELS, bandwidth_from_gamma, make_kernel
from priorshift.kernels.kernel import Energy, FromFunction, Gaussian, Kernel, Laplace, Strip

__all__ = [
    "BANDWIDTHS",
    "KERNELS",
    "Energy",
    "FromFunction",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Strip",
    "bandwidth_from_gamma",
    "make_kernel",
]
