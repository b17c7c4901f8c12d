"""Kernels k(x, y)."""

from priorshift.kernels.choice import bandwidth_from_gamma as bandwidth_from_gamma
from priorshift.kernels.kernel import Energy, FromFunction, Gaussian, Kernel, Laplace

__all__ = ["Energy", "FromFunction", "Gaussian", "Kernel", "Laplace"]
