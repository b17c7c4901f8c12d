"""Choice of the bandwidth with the smallest expected variance of R, from the source alone.

With the witness w = μ_U − μ_P and D = E_U w − E_P w, label shift (b = Ra) reduces the influence values to
ψ_U = −R(w − E_U w)/D, ψ_P = −(1−R)(w − E_P w)/D and ψ_T = (w − E_T w)/D, and T is the mixture (1−R)P + RU. So the
variance under each bandwidth is known before there is a target, for every possible R; all targets get one kernel, and
the choice cannot favour any of them.

Three things keep the choice from mistaking noise for precision. w at a row leaves out the row's own observation, so its
spread includes the noise of a witness from few rows (the degenerate part of the variance of R̂), which small bandwidths
suffer from. D is the unbiased one. And E[1/D̂²] ≈ (1 + 3 Var D̂/D²)/D², so a poorly known separation counts against its
bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from priorshift.arrays import Floats
from priorshift.embedding.gram import P, U
from priorshift.embedding.samples import EmbeddedSample
from priorshift.kernels import Gaussian, Laplace

_WIDEST, _NARROWEST = 4.0, 1 / 8  # of the median distance
_RATIOS = np.array([0.25, 0.5, 0.75, 1.0])  # values of R over which the variance is averaged
_ROWS = 1000  # rows of P and of U that the choice uses at most
_ROUNDING = 1e-12  # share of a sample's mass that counts as zero


@dataclass(frozen=True, eq=False)
class BandwidthCurve:
    """Bandwidths that were tried, the expected standard error of R under each, and the best."""

    bandwidths: Floats  # increasing; each kernel is the square of the next wider one
    # root mean square over R = 1/4, 1/2, 3/4 and 1, for a target of U's effective size; infinite where P and U coincide
    standard_errors: Floats
    chosen: float  # the bandwidth with the smallest standard error


def choose_bandwidth(kernel: Gaussian | Laplace, positive: EmbeddedSample, unlabeled: EmbeddedSample) -> BandwidthCurve:
    """Try multiples of the bandwidth of `kernel`, which should be of the order of a distance between rows.

    Large samples are represented by some of their rows; the variance is that of all rows.
    """
    sizes = positive.size, unlabeled.size
    samples = _thin(positive), _thin(unlabeled)
    rows = np.concatenate([sample.rows[:] for sample in samples])
    observation = np.concatenate([sample.observation for sample in samples])
    mass = np.zeros((len(rows), 2))
    mass[: len(samples[P]), P], mass[len(samples[P]) :, U] = samples[P].mass, samples[U].mass
    kept = 1 - np.stack([np.bincount(observation, m)[observation] for m in mass.T], axis=1)
    least, kernel = _NARROWEST * kernel.bandwidth, replace(kernel, bandwidth=_WIDEST * kernel.bandwidth)
    values = kernel(rows, rows)
    values[observation[:, None] == observation] = 0.0
    tried: list[tuple[float, float, float]] = []  # the standard error, less what tells D from 0, the bandwidth
    while kernel.bandwidth > least * (1 - 1e-9):
        w, D = _witness(values @ mass, kept, mass)
        tried.append((*_expected_error(w, D, samples, sizes), kernel.bandwidth))
        kernel = kernel.squared()
        np.square(values, out=values)
    errors, _, bandwidths = np.array(tried[::-1]).T
    return BandwidthCurve(bandwidths, errors, min(tried)[-1])


def _witness(sums: Floats, kept: Floats, mass: Floats) -> tuple[Floats, float]:
    """Compute w at the rows of P and U, and D, from sums over the rows that are other observations."""
    gram = (mass.T @ sums) / np.maximum(mass.T @ kept, _ROUNDING)
    # a row that keeps no pair gets the mean's value
    means = np.where(kept > _ROUNDING, sums / np.maximum(kept, _ROUNDING), np.where(mass[:, P, None] > 0, *gram))
    return means[:, U] - means[:, P], float(gram[U, U] - gram[U, P] - gram[P, U] + gram[P, P])


def _expected_error(
    w: Floats, D: float, samples: tuple[EmbeddedSample, EmbeddedSample], sizes: tuple[float, float]
) -> tuple[float, float]:
    """Compute the standard error of R by the delta method, averaged over some R, and −D in units of its own error."""
    at_rows = w[: len(samples[P])], w[len(samples[P]) :]
    moves = [
        s.sum_by_observation((s.mass * s.spread_correction * (v - s.mass @ v))[:, None])
        for s, v in zip(samples, at_rows, strict=True)
    ]
    of_P, of_U = (float((v**2).sum()) * s.size / size for (_, v), s, size in zip(moves, samples, sizes, strict=True))
    _, at, to = np.intersect1d(moves[P][0], moves[U][0], assume_unique=True, return_indices=True)
    # the same for some rows as for all: with fewer rows each has more mass
    of_both = float((moves[P][1][at] * moves[U][1][to]).sum())
    of_D = 4 * (of_P + of_U - 2 * of_both)
    signal = D / np.sqrt(of_D) if of_D > 0 else -np.inf
    if not signal > 0:
        return np.inf, -signal
    R, keep = _RATIOS, 1 - _RATIOS
    mean, square = (
        keep * (samples[P].mass @ at_rows[P] ** k) + R * (samples[U].mass @ at_rows[U] ** k) for k in (1, 2)
    )
    of_T = np.maximum(square - mean**2, 0.0) / sizes[U]
    of_source = np.maximum(R**2 * of_U + keep**2 * of_P + 2 * R * keep * of_both, 0.0)
    variance = float((of_source + of_T).mean()) / D**2
    return float(np.sqrt(variance * (1 + 3 / signal**2))), -signal


def _thin(sample: EmbeddedSample) -> EmbeddedSample:
    """Select at most `_ROWS` rows, evenly from the first to the last."""
    if len(sample) <= _ROWS:
        return sample
    taken = sample.take(np.linspace(0, len(sample) - 1, _ROWS).astype(int))
    return replace(taken, mass=taken.mass / taken.mass.sum())
