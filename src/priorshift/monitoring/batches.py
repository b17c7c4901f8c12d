"""Batches of rows: reading, scoring and the estimate of each by the frozen scores of a model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.audit import audited_share
from priorshift.inference.audit_combination import SampleAudit, combine_target_audit
from priorshift.io.labels import as_audit
from priorshift.io.row_metadata import RowMetadata
from priorshift.io.tables import Table
from priorshift.monitoring.evidence import mean_bounds, start_weight
from priorshift.monitoring.model import MonitorModel, RowScores
from priorshift.monitoring.reference import Units
from priorshift.monitoring.rules import share_bounds
from priorshift.results import Interval
from priorshift.scores.counts import ScoreCounts
from priorshift.scores.mixture import density
from priorshift.scores.ratio_test import RatioTest, WitnessMoments

_LEAST_ROWS = 2  # for an estimate
_MANY_ROWS = 50_000  # above which rows without weights and groups are counted, which is faster
_PREDICTED = (1e-3, 1 - 1e-3)  # range of the share by which posteriors of rows are computed


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a batch with their scores, weights and groups."""

    rows: RowScores
    units: Units
    weights: Floats | None  # with the mean 1
    audit: Floats | None  # 1, 0 or NaN for each row

    @classmethod
    def read(cls, table: Table, metadata: RowMetadata, model: MonitorModel) -> Batch:
        """Score the rows of a table."""
        rows = model.score_rows(table)
        weights = None if metadata.weights is None else metadata.weights / metadata.weights.mean()
        units = Units(rows.score, rows.features, weights=weights, groups=metadata.groups)
        audit = metadata.audit if metadata.audit is not None and np.isfinite(metadata.audit).any() else None
        return cls(rows, units, weights, audit)

    def __len__(self) -> int:
        return len(self.rows.score)

    @property
    def is_plain(self) -> bool:
        """Whether all rows are independent and have the same weight."""
        return self.weights is None and self.units.code is None

    @property
    def digest(self) -> str:
        """Hash of the scored rows, which does not depend on the format of the file."""
        digest = hashlib.sha256(np.ascontiguousarray(self.rows.bins).tobytes())
        with np.errstate(over="ignore"):  # of numbers beyond single precision
            features = self.rows.features.astype(np.float32)
        for part in (features, self.weights, self.units.code, self.audit):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:32]

    @property
    def mass(self) -> Floats:
        """Weight of each row; the sum is 1."""
        return np.full(len(self), 1 / len(self)) if self.weights is None else self.weights / len(self)

    def mean_and_variance(self) -> tuple[float, float]:
        """Return the mean score of the rows and the variance of that mean."""
        influence = self.mass * (self.rows.score - self.mass @ self.rows.score)
        if self.units.code is not None:
            influence = np.bincount(self.units.code, influence).astype(float)
        count = len(influence)
        return float(self.mass @ self.rows.score), float((influence**2).sum() * count / max(count - 1, 1))


class WeightedRows:
    """Rows of a batch as a sample of which a ratio is tested: they may differ in weight, and be in groups."""

    noise = 0.0

    def __init__(self, batch: Batch) -> None:
        """Take the effective number of rows from the weights."""
        self._batch = batch
        self.rows = 1 / float((batch.mass**2).sum())

    def moments(self, h: Floats) -> WitnessMoments:
        """Return the moments of functions h of the bins, shape (repeats, functions, bins).

        The variance is such that over the effective number of rows it is that of the mean, groups included.
        """
        batch, mass = self._batch, self._batch.mass
        values = np.mean([line[:, bins] for line, bins in zip(h, batch.rows.bins, strict=True)], axis=0)
        mean = values @ mass
        influence = (values - mean[:, None]) * mass
        if batch.units.code is not None:
            influence = np.stack([np.bincount(batch.units.code, line) for line in influence])
        variance = (influence**2).sum(axis=1) * self.rows
        return WitnessMoments(mean, variance + mean**2, variance, variance)


@dataclass(frozen=True)
class BatchEstimate:
    """Share of positives of a batch with its interval."""

    value: float
    interval: Interval


def estimate_batch(batch: Batch, model: MonitorModel, confidence: float) -> BatchEstimate | None:
    """Estimate the share of positives in a batch; None if there are too few rows, or no estimate is possible."""
    if len(batch.units) < _LEAST_ROWS:
        return None
    sample: Any = WeightedRows(batch)
    if batch.is_plain and len(batch) > _MANY_ROWS:
        sample = ScoreCounts.from_bins(batch.rows.bins)
    test, prior = model.witness.test(sample), model.prior
    if batch.audit is not None:
        return _estimate_with_audit(batch, model, test, confidence)
    if not test.is_separable:
        return None
    value = prior.target_prior(test.ratio)
    low, high = prior.interval(test.curve, confidence)
    return BatchEstimate(value, Interval(min(low, value), max(high, value), confidence, "witness"))


def _estimate_with_audit(batch: Batch, model: MonitorModel, test: RatioTest, confidence: float) -> BatchEstimate:
    """Estimate the share from the rows of a batch whose class was looked up, and the scores of all rows."""
    priors, weights = model.source.law
    ratio = test.ratio if np.isfinite(test.ratio) else 1.0
    pi = np.clip(1 - (1 - priors) * ratio, *_PREDICTED)[:, None]
    posterior = pi / (pi + (1 - pi) * density(weights))  # in each bin, shape (repeats, bins)
    predicted = np.mean([line[bins] for line, bins in zip(posterior, batch.rows.bins, strict=True)], axis=0)
    code = np.arange(len(batch)) if batch.units.code is None else batch.units.code
    share = audited_share(as_audit(batch.audit), predicted, code, batch.mass)  # type: ignore[arg-type]
    _, variance = batch.mean_and_variance()
    spread = float(batch.mass @ (batch.rows.score - batch.mass @ batch.rows.score) ** 2)
    size = min(spread / variance, float(len(batch))) if variance > 0 else float(len(batch))
    combined = combine_target_audit(SampleAudit(share, size), test.curve, model.prior if test.is_separable else None)
    low, high = combined.interval(confidence)
    return BatchEstimate(combined.distribution.mean(), Interval(low, high, confidence, "audit"))


def all_time_interval(batch: Batch, model: MonitorModel, number: int, confidence: float) -> Interval:
    """Return an interval of the share of batch `number` such that those of all batches hold at once.

    Half of 1 − confidence is spent on the errors of the source, which are common to all batches; the other half is
    spread over the batches, ω_t for batch t (:func:`start_weight`).
    """
    alpha = (1 - confidence) / 2
    low, high = float(model.values[0]), float(model.values[-1])
    if batch.is_plain:
        counts = np.bincount(batch.rows.levels, minlength=len(model.values)).astype(float)
        sums, masses = model.values, np.ones(len(counts))
    else:
        counts, sums = None, batch.units.scores
        masses = np.ones(len(batch)) if batch.weights is None else batch.weights
        if batch.units.code is not None:
            masses = np.bincount(batch.units.code, masses).astype(float)
    bounds = mean_bounds(sums, masses, low, high, alpha * start_weight(number), counts)
    lower = share_bounds(model, model.values, bounds[0], 1 - alpha)[0]
    upper = share_bounds(model, model.values, bounds[1], 1 - alpha)[1]
    return Interval(lower, upper, confidence, "all time")
