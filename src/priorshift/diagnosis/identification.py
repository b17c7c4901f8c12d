"""Is π identified? What the three tables can tell: π′, the ratio R alone, or nothing.

R needs no π and is told wherever P can be told from U. π′ = 1 − (1−π)R needs π, of which the tables give an upper bound
that is as good as the classes are apart. So there is always R with its interval, and where π is not known π′ is a band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from priorshift.errors import PriorShiftWarning
from priorshift.formatting import TextReport, decimals, range_decimals
from priorshift.inference.prior_knowledge import PointPrior
from priorshift.methods.witness_shift import TargetFit, WitnessShift
from priorshift.problem import Source
from priorshift.result_tables import to_plain
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import suppress_warnings

_KM2_ROWS = 1000  # asked only for agreement: a third opinion, not an estimate
_FAR_OUT = 0.005  # of the tables' belief, beyond which a given π contradicts them
_MOST = 0.5  # of the variance of π̂′: more than that from π, and R is what the tables tell
_OPEN = 0.1  # a range of π′ that leaves no question open, whatever it is from

_GIVEN = ("given", "range", "distribution")

Level = Literal["prior", "ratio", "nothing"]


@dataclass(frozen=True)
class Identification(TextReport):
    """What three tables can tell of π′.

    Attributes
    ----------
    level : {"prior", "ratio", "nothing"}
        π′ itself, R and a band of π′ over π, or neither.
    separation : float
        Of P from U, in its own standard errors.
    overlap : float
        How often a negative looks more positive than a positive does, 1 − AUC, from 0 to ½.
    positives : int
        Labelled rows.
    effective_positives : float
        Independent rows of equal weight that they are worth.
    source_prior : float
        The π that was used; of a range the middle.
    source_prior_by : str or None
        Who said so, as in :class:`priorshift.PriorEstimate`.
    source_prior_range : tuple of two float
        Where it may lie.
    told_range : tuple of two float
        What the tables alone tell of π, with 95%.
    estimators : dict of str to float
        What estimators of π say, of the same rows; "largest" is the largest π that the scores allow.
    contradicted : bool
        Whether a given π lies where the tables alone hardly allow it.
    variance_from_prior : float
        The share of π̂′'s variance that is from π, 0 to 1.
    ratio, ratio_low, ratio_high : float
        R and its interval, which need no π.
    target_low, target_high : float
        Of π′, over all that π may be.
    confidence : float
        Of both.
    """

    level: Level
    separation: float
    overlap: float
    positives: int
    effective_positives: float
    source_prior: float
    source_prior_by: str | None
    source_prior_range: tuple[float, float]
    told_range: tuple[float, float]
    estimators: dict[str, float]
    contradicted: bool
    variance_from_prior: float
    ratio: float
    ratio_low: float
    ratio_high: float
    target_low: float
    target_high: float
    confidence: float

    @property
    def disagreement(self) -> float:  # numpydoc ignore=RT01
        """How far apart the estimators of π are."""
        told = [value for name, value in self.estimators.items() if name != "largest" and np.isfinite(value)]
        return max(told) - min(told) if len(told) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        made: dict[str, Any] = to_plain(vars(self))
        for name in ("source_prior_range", "told_range"):
            made[name] = list(getattr(self, name))
        return made | {"estimators": to_plain(self.estimators), "sentence": str(self)}

    @property
    def given(self) -> bool:  # numpydoc ignore=RT01
        """Whether π, or a range or distribution of it, was given and not estimated from the tables."""
        return self.source_prior_by in _GIVEN

    @property
    def source_prior_in_words(self) -> str:  # numpydoc ignore=RT01
        """The π that was given, or where it may lie."""
        is_point = self.source_prior_by == "given"
        return f"{self.source_prior:.3g}" if is_point else range_in_words(self.source_prior_range)

    @property
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""
        if self.level == "nothing":
            apart = f"{max(self.separation, 0.0):.1f} standard errors apart"
            return (
                f"Positives can hardly be told from the population (they are {apart}), so neither the ratio of "
                "negatives nor the target prior can be told."
            )
        digits, told = decimals(self.ratio_high - self.ratio_low), range_in_words(self.told_range)
        ratio = f"R is {self.ratio:.{digits}f} ({self.ratio_low:.{digits}f} to {self.ratio_high:.{digits}f})"
        by = "as given" if self.given else f"by {self.source_prior_by}"
        prior = self.source_prior_in_words
        if self.level == "ratio":
            words = (
                f"{ratio} whatever the source prior is; that is known only as {prior} {by}, so the target prior is a "
                f"band, {self.target_low:.2f} to {self.target_high:.2f}."
            )
        else:
            words = f"{ratio}; with the source prior {prior} {by} it tells the target prior."
        if self.contradicted:
            return f"{words} But the tables alone tell {told} of the source prior, which contradicts it."
        return f"{words} The tables alone tell {told} of the source prior." if self.given else words


def identify(witness: WitnessShift, source: Source, seen: TargetFit) -> Identification:
    """Ask what the tables can tell.

    Parameters
    ----------
    witness : WitnessShift
        Fitted to `source`.
    source : Source
        With its rows.
    seen : Examined
        The target.

    Returns
    -------
    Identification
    """
    tables, asked = _tables_alone(witness, source)
    estimate, prior = seen.estimate, seen.prior
    low, high = (float(end) for end in prior.range)
    # at one π, and over all that it may be
    single = seen.test.ratio_error * (1 - prior.value)
    of_prior = seen.test.ratio * prior.error if np.isfinite(seen.test.ratio) else 0.0
    if not isinstance(prior, PointPrior) and prior.error == 0:  # a range, as if each value were as likely
        of_prior = seen.test.ratio * (high - low) / np.sqrt(12)
    total = single**2 + of_prior**2
    share = float(of_prior**2 / total) if np.isfinite(total) and total > 0 else 0.0
    interval = estimate.interval
    target_low, target_high = (interval.low, interval.high) if interval else (0.0, 1.0)
    level: Level = "prior"
    if not seen.is_separable or estimate.status == "no estimate":
        level = "nothing"
    elif interval is None or (share > _MOST and target_high - target_low > _OPEN):
        level = "ratio"
    least, most = (float(end) for end in tables.prior_distribution_.ppf([_FAR_OUT, 1 - _FAR_OUT]))
    given = estimate.source_prior_by in _GIVEN
    ratio_low, ratio_high = seen.curve.quantiles(witness.confidence) if seen.is_separable else (0.0, float("inf"))
    told_low, told_high = tables.interval_
    return Identification(
        level=level,
        separation=seen.test.separation,
        overlap=tables.overlap_,
        positives=len(source.positive),
        effective_positives=source.effective_positives,
        source_prior=estimate.source_prior,
        source_prior_by=estimate.source_prior_by,
        source_prior_range=(low, high),
        told_range=(told_low, told_high),
        estimators={"MixturePrior": tables.prior_, "KM2": tables.km2_prior_, "largest": tables.mixture_prior_} | asked,
        contradicted=bool(given and (high < least or low > most)),
        variance_from_prior=share,
        ratio=seen.test.ratio,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        target_low=target_low,
        target_high=target_high,
        confidence=witness.confidence,
    )


def range_in_words(ends: tuple[float, float]) -> str:
    """Write a range with as many decimals as tell its ends apart.

    Parameters
    ----------
    ends : tuple of two float
        Low and high.

    Returns
    -------
    str
    """
    return " to ".join(f"{end:.{range_decimals(*ends)}f}" for end in ends)


def _tables_alone(witness: WitnessShift, source: Source) -> tuple[MixturePrior, dict[str, float]]:
    """What the tables tell of π by themselves, and what another estimator said that was asked."""
    found = witness.prior_estimator_
    if isinstance(found, MixturePrior) and found.scored_ is witness.scored_ and found.audit_ is None:
        return found, {}
    names = ("model", "repeats", "folds", "scenario", "standardize", "random_state")
    settings = {name: getattr(witness, name) for name in names}
    with suppress_warnings(PriorShiftWarning):  # π is known from elsewhere
        made = MixturePrior(**settings, max_rows=_KM2_ROWS).fit_scores(replace(source, audit=None), witness.scored_)
    other = {} if found is None or isinstance(found, MixturePrior) else {type(found).__name__: witness.source_prior_}
    return made, other
