"""Kernels k(x, y)."""

from priorshift.kernels.kernel import Energy, FromFunction, Gaussian, Kernel, Laplace
from priorshift.kernels.kernel import bandwidth_from_gamma as bandwidth_from_gamma

__all__ = ["Energy", "FromFunction", "Gaussian", "Kernel", "Laplace"]
