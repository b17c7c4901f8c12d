"""What changes if the labelled positives are not a random sample of all positives.

Suppose that the odds of being labelled differ among positives by at most a factor Γ. The positives then have the
density v·f_P with f_P that of the labelled ones, E_P v = 1, and v differs by at most the factor Γ. So for the witness
function h, E₊ h over all positives lies between the smallest and the largest E_P[v h], at which v takes two values: one
below a quantile of h, and one above it (Rosenbaum's bounds).

With h centred so that E_P h = 0 and D = E_U h, R̂ − 1 = (E_T h − E_U h)/D becomes (E_T h − E_U h)/(D − E₊ h): it is
multiplied by k = D/(D − E₊ h), and so is the change of the prior, π′ − π = (1−π)(1−R). Whether the prior rose or fell
does not depend on which positives were labelled, as long as E₊ h < D.

Audited positives, where there are some, show whether the labelled ones are typical: both have the same mean of h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from priorshift.arrays import Floats
from priorshift.diagnosis.columns import mean_over_repeats
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.formatting import decimals, format_p, format_short
from priorshift.scores import mixture

_FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0)  # Γ
_LARGEST_FACTOR = 100.0  # Γ up to which a factor is searched for
_LEAST_AUDITED = 5  # audited positives that can be compared with the labelled ones
_ATYPICAL = 0.01  # p-value up to which labelled positives are not typical


@dataclass(frozen=True)
class LabelingBound:
    """What is possible if the odds of being labelled differ among positives by at most a factor."""

    odds_factor: float  # Γ
    ratio_low: float  # of R̂
    ratio_high: float
    value_low: float  # of π̂′
    value_high: float
    low: float  # of the interval of π′
    high: float


@dataclass(frozen=True)
class AuditedPositives:
    """Comparison of audited with labelled positives, by their means of the witness function."""

    count: int  # audited positives
    p_value: float  # of the hypothesis that both are samples of the same positives
    ratio: float  # R̂ with the audited positives' mean in place of the labelled ones'; NaN where they look like U


@dataclass(frozen=True)
class Labeling:
    """What changes if the labelled positives are not a random sample of all positives."""

    bounds: tuple[LabelingBound, ...]
    to_turn: float | None  # Γ at which the estimate may be on the other side; None where no factor up to 100 is enough
    to_doubt: float | None  # Γ at which the interval may reach the other side; likewise
    to_reverse: float | None  # Γ at which all positives may look like the population, so that R is not determined
    audited: AuditedPositives | None  # None without audited positives

    @property
    def is_atypical(self) -> bool:
        """Whether audited positives show that the labelled ones are not typical."""
        return self.audited is not None and self.audited.p_value <= _ATYPICAL

    @property
    def lines(self) -> list[str]:
        """Sentences of this part."""
        lines = []
        for bound in self.bounds:
            if bound.odds_factor == 2.0:
                digits = decimals(bound.value_high - bound.value_low)
                values = f"{bound.value_low:.{digits}f} and {bound.value_high:.{digits}f}"
                lines.append(
                    "If some positives were labelled with twice the odds of others, the estimate would be between "
                    f"{values}, and its interval {bound.low:.{digits}f} to {bound.high:.{digits}f}."
                )
        for factor, consequence in ((self.to_doubt, "be open"), (self.to_turn, "turn")):
            if factor is not None:
                lines.append(f"The conclusion could {consequence} if these odds differed by a factor of {factor:.2g}.")
        if self.audited is not None:
            count, p, ratio = self.audited.count, format_p(self.audited.p_value), self.audited.ratio
            consequence = f"with them R would be {format_short(ratio, 2)}" if np.isfinite(ratio) else "R is not known"
            looks = f"differ from the labelled ones ({p}): {consequence}" if self.is_atypical else (
                f"do not clearly differ from the labelled ones ({p})")  # fmt: skip
            lines.append(f"The {count} audited positives {looks}.")
        return lines


def labeling(
    inputs: DiagnosisInput, critical: float, estimate: tuple[float, float, float], ratios: tuple[float, float]
) -> Labeling:
    """Compute what labelling that is not at random would change.

    `critical` is the ratio at which the conclusion turns, `estimate` is that of π′ and the ends of its interval, and
    `ratios` is the interval of R.
    """
    fit, witness, R = inputs.fit, inputs.fit.witness, inputs.ratio
    if not np.isfinite(R):
        return Labeling((), None, None, None, None)
    h_by_bin = witness.function(np.array([max(R, 0.0)]), fit.target.size)[:, 0]
    positives = _Reweighted(mean_over_repeats(h_by_bin, witness.positive), witness.source.P.mass)
    D = float(mean_over_repeats(h_by_bin, witness.population) @ witness.source.U.mass)
    pi, (value, low, high) = fit.estimate.source_prior, estimate
    bounds = []
    for odds_factor in _FACTORS:
        means = positives.mean_range(odds_factor)
        if means[1] >= D:
            break
        k_low, k_high = (D / (D - mean) for mean in means)  # factors of R − 1 and of π′ − π
        ratio_ends = sorted(1 + (R - 1) * k for k in (k_low, k_high))
        value_ends, low_ends, high_ends = (
            np.clip([pi + (end - pi) * k for k in (k_low, k_high)], 0.0, 1.0) for end in (value, low, high)
        )
        bound = LabelingBound(
            odds_factor=odds_factor,
            ratio_low=max(ratio_ends[0], 0.0),
            ratio_high=ratio_ends[1],
            value_low=float(value_ends.min()),
            value_high=float(value_ends.max()),
            low=float(low_ends.min()),
            high=float(high_ends.max()),
        )
        bounds.append(bound)

    def factor_to_reach(ratio: float) -> float | None:
        """Return the Γ at which a ratio, R̂ or an end of its interval, may become `critical`."""
        k = (critical - 1) / (ratio - 1) if ratio != 1 else np.inf
        return positives.odds_factor(D * (1 - 1 / k)) if 0 < k < np.inf else None

    nearest = min(ratios, key=lambda end: abs(end - critical))
    is_open = ratios[0] <= critical <= ratios[1]
    return Labeling(
        bounds=tuple(bounds),
        to_turn=factor_to_reach(R),
        to_doubt=None if is_open else factor_to_reach(nearest),
        to_reverse=positives.odds_factor(D),
        audited=_audited_positives(inputs, h_by_bin, positives, D),
    )


class _Reweighted:
    """Means of h over positives whose density differs from that of the labelled ones by a limited factor."""

    def __init__(self, h: Floats, mass: Floats) -> None:
        """Take h at the labelled positives, less its mean, and their mass, which sums to 1."""
        self.h, self.mass = h - h @ mass, mass
        order = np.argsort(self.h, kind="stable")
        self._mass, self._sum = np.cumsum(mass[order]), np.cumsum((mass * self.h)[order])  # of the smallest h

    def mean_range(self, odds_factor: float) -> tuple[float, float]:
        """Return the smallest and the largest mean of h, if densities v·f_P have v in [c, Γc]."""
        more = odds_factor - 1
        # v is Γc for the smallest h, or for the largest: those after them, which sum to −(sum of the smallest)
        lowest = more * self._sum / (1 + more * self._mass)
        highest = -more * self._sum / (1 + more * (1 - self._mass))
        return min(float(lowest.min()), 0.0), max(float(highest.max()), 0.0)

    def odds_factor(self, mean: float) -> float | None:
        """Return the smallest Γ at which the mean of h may be `mean`; None where none up to 100 is enough."""
        end = 1 if mean > 0 else 0
        if abs(self.mean_range(_LARGEST_FACTOR)[end]) < abs(mean):
            return None
        missing = lambda log_factor: abs(self.mean_range(np.exp(log_factor))[end]) - abs(mean)  # noqa: E731
        return float(np.exp(brentq(missing, 0.0, np.log(_LARGEST_FACTOR)))) if mean else 1.0


def _audited_positives(
    inputs: DiagnosisInput, h_by_bin: Floats, positives: _Reweighted, D: float
) -> AuditedPositives | None:
    """Compare audited positives of source and target with the labelled ones, by Welch's test of the means of h."""
    fit, source = inputs.fit, inputs.source
    h_by_sample = []
    if source.audit is not None:
        h_of_U = mean_over_repeats(h_by_bin, fit.witness.population)
        rows = source.unshared[source.audit.index[source.audit.positive]]  # rows of the source
        h_by_sample.append(h_of_U[np.isin(source.population, rows)])
    if fit.target.audit is not None:
        h_of_T = mean_over_repeats(h_by_bin, mixture.bins(fit.p_values))
        h_by_sample.append(h_of_T[fit.target.audit.index[fit.target.audit.positive]])
    audited = np.concatenate([np.empty(0), *h_by_sample])
    if len(audited) < _LEAST_AUDITED:
        return None
    mean, labeled_size = float(audited.mean()), inputs.fit.witness.source.P.size
    variances = np.array([audited.var(ddof=1) / len(audited), positives.h**2 @ positives.mass / labeled_size])
    total = max(float(variances.sum()), 1e-300)
    freedom = total**2 / max(float(variances**2 @ (1 / np.array([len(audited) - 1, labeled_size - 1]))), 1e-300)
    p_value = 2 * float(stdtr(freedom, -abs(mean) / np.sqrt(total)))
    ratio = 1 + (inputs.ratio - 1) * D / (D - mean) if mean < D else float("nan")
    return AuditedPositives(len(audited), p_value, ratio)
