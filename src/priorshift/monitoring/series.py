"""One monitored series: its rules, what they have seen so far, and the points of its batches."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.formatting import format_fixed, range_decimals
from priorshift.io.files import Fields
from priorshift.monitoring.assumption_rule import AssumptionRule
from priorshift.monitoring.batches import Batch, all_time_interval, estimate_batch
from priorshift.monitoring.model import MonitorModel
from priorshift.monitoring.points import Alarm, MonitorPoint
from priorshift.monitoring.reference import Reference
from priorshift.monitoring.rules import SHAPE_BINS, ChangeRule, LevelRule, Starts
from priorshift.monitoring.settings import RuleSettings
from priorshift.monitoring.stored_points import StoredPoints, round_interval, round_number
from priorshift.results import Interval

_NORMAL = 1.959964  # of a 95% interval of the size of a change
_LARGEST_LOG = 690.0  # of evidence that is shown as a number
_ADVICE = "check the data, and replace a faulty batch, acknowledge a harmless difference or fit a new model."
_FIRST_VERSION = "Raised by the first version of this batch: "


@dataclass(eq=False)
class Series:
    """Rules and points of one series."""

    name: str
    settings: RuleSettings
    model: MonitorModel
    change: ChangeRule
    assumption: AssumptionRule
    levels: dict[str, LevelRule]
    points: StoredPoints
    reference_batches: int = 0  # that were counted in the reference period; a correction of an earlier batch is not
    broken_since: str | None = None  # batch at which the assumption broke, until it is acknowledged
    broken_in: int | None = None  # feature in which it broke most clearly; None if a stored state does not say it
    trusted: tuple[int, Floats] | None = None  # origin and pool of the change rule before the assumption broke
    previous: dict[str, Any] | None = None  # rules before the last batch

    @classmethod
    def new(
        cls, name: str, settings: RuleSettings, model: MonitorModel, bounds: Mapping[str, float] | None = None
    ) -> Series:
        """Start a series without any batch; `bounds` are those of the rules for the level, if they are known."""
        reference = model.reference if not settings.reference else model.reference.without_units()
        change = ChangeRule.from_reference(reference)
        if not settings.reference:
            change.complete_reference(model.prior.value, model.prior.value)
        assumption = AssumptionRule.from_reference(reference, model.reference)
        levels = {
            side: LevelRule.from_model(
                model, level, direction, settings.side_alpha, None if bounds is None else bounds[side]
            )
            for side, direction, level in settings.sides
        }
        points = StoredPoints(name, settings.confidence, _shown(settings.limits))
        return cls(name, settings, model, change, assumption, levels, points)

    def find(self, name: str) -> MonitorPoint | None:
        """Return the point of a batch; None if there is none."""
        number = self.points.number(name)
        return None if number is None else self.points[number]

    @property
    def counted(self) -> int:
        """Number of batches with rows."""
        return sum(rows > 0 for rows in self.points.rows)

    def add_empty(self, name: str, time: str | None) -> MonitorPoint:
        """Add a batch without rows, which moves no rule."""
        self.previous = self._rules_to_state()
        return self._append(MonitorPoint(name, 0, status="empty", series=self.name, time=time))

    def add(self, batch: Batch, name: str, time: str | None) -> MonitorPoint:
        """Add a batch, and return its point with its alarms."""
        self.check_units(batch)
        self.previous = self._rules_to_state()
        point = self.describe(batch, name, time, self.counted + 1)
        rng = np.random.default_rng([self.settings.seed, zlib.crc32(self.name.encode()), len(self.points)])
        if self.reference_batches < self.settings.reference:
            self._add_to_reference(batch)
            return self._append(replace(point, status="reference" if point.status == "ok" else point.status))
        evidence, limits = self.bet(batch, len(self.points), rng), self.settings.limits
        self._append(replace(point, evidence=_shown(evidence), limits=_shown(limits)))
        alarms = self._alarms(point, {rule for rule in evidence if evidence[rule] >= limits[rule]})
        self.points[-1] = replace(self.points[-1], alarms=tuple(alarms))
        return self.points[-1]

    def bet(self, batch: Batch, number: int, rng: np.random.Generator) -> dict[str, float]:
        """Let all rules bet on a batch, and return the logarithms of their evidence."""
        evidence = {
            side: rule.update(batch.rows.levels, batch.weights, batch.units.code) for side, rule in self.levels.items()
        }
        order = rng.permutation(len(batch.units))  # files may be sorted, and evidence is looked at within a batch
        evidence["change"] = self.change.update(batch.units.scores[order], number, rng)
        if self.broken_since is None:
            evidence["assumption"] = self.assumption.update(batch.units.features[order], rng)
        else:  # later batches are not compared with batches that are not to be trusted
            evidence["assumption"] = self.assumption.evidence
        return evidence

    def describe(self, batch: Batch, name: str, time: str | None, number: int) -> MonitorPoint:
        """Return the point of a batch without evidence and alarms: its estimate and intervals."""
        estimate = estimate_batch(batch, self.model, self.settings.confidence)
        mean, variance = batch.mean_and_variance()
        all_time = all_time_interval(batch, self.model, number, self.settings.confidence)
        if estimate is not None:  # by other functions of the scores, which disagree if label shift does not hold
            low, high = min(all_time.low, estimate.interval.low), max(all_time.high, estimate.interval.high)
            all_time = replace(all_time, low=low, high=high)
        return MonitorPoint(
            name,
            len(batch),
            value=None if estimate is None else round_number(estimate.value),
            interval=None if estimate is None else round_interval(estimate.interval),
            all_time=round_interval(all_time),
            status="no estimate" if estimate is None else "ok",
            series=self.name,
            time=time,
            mean=round_number(mean),
            variance=round_number(variance),
            digest=batch.digest,
        )

    def correct(self, index: int, batch: Batch | None) -> MonitorPoint:
        """Replace the estimate of an earlier batch; the evidence of the rules, which used it, stays."""
        stored, number = self.points[index], 1 + sum(rows > 0 for rows in self.points.rows[:index])
        point = MonitorPoint(stored.name, 0, status="empty", series=self.name, time=stored.time)
        if batch is not None:
            point = self.describe(batch, stored.name, stored.time, number)
        alarms = tuple(replace(alarm, message=_of_first_version(alarm.message)) for alarm in stored.alarms)
        point = replace(point, evidence=stored.evidence, limits=stored.limits, alarms=alarms)
        self.points[index] = point
        return point

    def replace_last(self) -> None:
        """Forget the last batch, so that it can be added again."""
        if self.previous is None:
            raise InputError(
                "the last batch cannot be replaced, since the state before it is not known; replace it once the next "
                "batch has been added."
            )
        self.set_rules(self.previous)
        self.points.pop()
        self.previous = None

    def repeat(self, stored: MonitorPoint) -> MonitorPoint:
        """Return the point of a batch that was counted before, with its alarms, but not with an acknowledged one."""
        alarms = [alarm for alarm in stored.alarms if alarm.rule != "assumption" or self.broken_since is not None]
        return replace(stored, status="repeated", alarms=tuple(alarms))

    def acknowledge(self) -> None:
        """Clear a broken assumption: batches are compared with those before it again."""
        if self.previous is not None and self.previous["broken_since"] is not None:  # if the last batch is replaced
            now = self._rules_to_state()
            self.set_rules(self.previous)
            self._acknowledge_rules()
            self.previous = self._rules_to_state()
            self.set_rules(now)
        self._acknowledge_rules()

    def _acknowledge_rules(self) -> None:
        """Clear a broken assumption in the rules."""
        if self.broken_since is None:
            return
        self.broken_since = self.broken_in = None
        self.assumption.restart()
        if self.trusted is not None:
            self.change.restart_from(*self.trusted)
        self.trusted = None

    def _append(self, point: MonitorPoint) -> MonitorPoint:
        """Store a point; while the assumption is broken, it carries the alarm."""
        if self.broken_since is not None:
            where = "" if self.broken_in is None else f", most clearly in {self.model.feature_names[self.broken_in]}"
            message = (
                f"The rows no longer follow label shift since {self.broken_since!r}{where}, and that was not "
                f"acknowledged. Do not trust the estimates; {_ADVICE}"
            )
            alarm = Alarm("assumption", self._in_series(message), self.broken_since)
            point = replace(point, alarms=(*point.alarms, alarm))
        self.points.append(point)
        return point

    def check_units(self, batch: Batch) -> None:
        """Refuse batches whose rows are grouped or weighted in another way than the reference."""
        grouped, first = batch.units.code is not None, not self.settings.reference
        if first and (batch.weights is not None or grouped != self.model.reference.is_grouped):
            what = "weights" if batch.weights is not None else "groups" if grouped else "no groups"
            other = "groups" if self.model.reference.is_grouped else "neither weights nor groups"
            raise InputError(
                f"the batch has {what}, but the source, with which batches are compared, has {other}. Fit the monitor "
                "with the same kind of rows, or compare with the first batches, such as reference=20."
            )

    def _add_to_reference(self, batch: Batch) -> None:
        """Count a batch of the reference period; the last one completes it.

        The first one decides the grids, if its units are of another kind than those of the source.
        """
        units, is_grouped = batch.units, batch.units.code is not None
        is_other_kind = is_grouped != self.model.reference.is_grouped
        if not self.change.pool.any() and (batch.weights is not None or is_other_kind):
            grids = Reference.from_units(units, units.features[:0], is_grouped=is_grouped).without_units()
            self.change = ChangeRule.from_reference(grids)
            if is_other_kind:  # only scores are multiplied by weights
                self.assumption = AssumptionRule.from_reference(grids, self.model.reference)
        self.change.add_to_reference(units.scores)
        self.assumption.add_to_reference(units.features)
        self.reference_batches += 1
        if self.reference_batches == self.settings.reference:
            pi = self.model.prior.value
            share = pi + self.share_scale * (self._reference_mean(batch) - self.model.mean_errors(self.model.values)[1])
            self.change.complete_reference(float(np.clip(share, 0.0, 1.0)), pi)

    def _reference_mean(self, last: Batch) -> float:
        """Return the mean score of all batches of the reference period, of which `last` is not stored yet."""
        means = [*(point.mean or 0.0 for point in self.points), last.mean_and_variance()[0]]
        return float(np.average(means, weights=[*self.points.rows, len(last)]))

    @property
    def share_scale(self) -> float:
        """By how much the share grows with the mean score: (1−π)/(E_P s − E_U s)."""
        mean_P, mean_U, _, _ = self.model.mean_errors(self.model.values)
        return (1 - self.model.prior.value) / max(mean_P - mean_U, 1e-12)

    def difference(
        self, before: Sequence[MonitorPoint], after: Sequence[MonitorPoint], *, from_source: bool = False
    ) -> tuple[float, Interval]:
        """Return the change of the share from some batches to others, with its interval.

        `from_source` adds the unlabelled source rows to the batches before.
        """
        model, means, variances = self.model, [], []
        mean_P, mean_U, var_P, var_U = model.mean_errors(model.values)
        for part in (before, after):
            moments = [(point.rows, point.mean, point.variance) for point in part if point.rows]
            if from_source and part is before:
                moments.append((model.population_levels.sum(), mean_U, var_U))
            rows, mean, variance = (np.array(column, dtype=float) for column in zip(*moments, strict=True))
            means.append(float(np.average(mean, weights=rows)))
            variances.append(float(rows**2 @ variance / rows.sum() ** 2))
        change = self.share_scale * (means[1] - means[0])
        # relative errors of the scale: that of E_P s − E_U s, and of 1 − π
        relative = (var_P + var_U) / max(mean_P - mean_U, 1e-12) ** 2
        relative += (model.prior.error / max(1 - model.prior.value, 1e-12)) ** 2
        error = float(np.sqrt(self.share_scale**2 * sum(variances) + change**2 * relative))
        low, high = max(change - _NORMAL * error, -1.0), min(change + _NORMAL * error, 1.0)
        return change, Interval(low, high, 0.95, "difference")

    def _alarms(self, point: MonitorPoint, rules: set[str]) -> list[Alarm]:
        """Return the alarms of the rules whose evidence exceeds the limit, and start these rules again."""
        alarms = list(self.points[-1].alarms)
        is_broken = self.broken_since is not None or "assumption" in rules
        for side, _, level in self.settings.sides:
            if side in rules:
                alarms.append(self._level_alarm(point, side, level, is_broken=is_broken))
                self.levels[side].restart()
        if "change" in rules:
            alarms.append(self._change_alarm(is_broken=is_broken))
            self.change.restart()
        if "assumption" in rules and self.broken_since is None:
            self.broken_since, self.broken_in = point.name, self.assumption.likely_feature
            most = self.model.feature_names[self.broken_in]
            if self.previous is not None:
                self.assumption.pool = np.array(self.previous["assumption"]["pool"], dtype=float)
                change = self.previous["change"]
                counts = np.array(change["counts"], dtype=float).reshape(-1, len(self.change.pool))
                self.trusted = change["origin"], np.array(change["pool"], dtype=float) + counts.sum(axis=0)
            message = (
                "The rows have changed in a way that a new share of positives does not explain, most clearly "
                f"in {most}. Do not trust the estimates; {_ADVICE}"
            )
            alarms.insert(0, Alarm("assumption", self._in_series(message), point.name))  # it puts the others in doubt
        return alarms

    def _in_series(self, message: str, *, is_broken: bool = False) -> str:
        """Return the message of an alarm with the name of the series, and whether it may be wrong."""
        doubt = " The rows no longer follow label shift, so this may be wrong." if is_broken else ""
        return f"{self.name}: {message}{doubt}" if self.name else f"{message}{doubt}"

    def _level_alarm(self, point: MonitorPoint, side: str, level: float, *, is_broken: bool) -> Alarm:
        """Return the alarm of a share beyond a level; `is_broken` if the rows do not follow label shift."""
        text = f"The share of positives is {side} {100 * level:g}%"
        if point.value is not None and point.interval is not None:
            value, low, high = point.percentages
            text += f": {value} in this batch, {self.settings.confidence:.0%} interval {low} to {high}"
        return Alarm("level", self._in_series(f"{text}.", is_broken=is_broken))

    def _change_alarm(self, *, is_broken: bool) -> Alarm:
        """Return the alarm of a changed share, with its size and since when; `is_broken` as for the level."""
        start = self.change.likely_start
        since = self.points[start].name
        if is_broken:  # the estimates then disagree with each other, so that no size is right
            message = f"The share of positives seems to have changed since {since!r}."
            return Alarm("change", self._in_series(message, is_broken=True), since)
        # batches that were acknowledged are not part of the reference
        before = [point for point in self.points[self.change.origin : start] if not point.broke_assumption]
        from_source = not self.settings.reference and not self.change.origin
        size, interval = self.difference(
            before, self.points[start:], from_source=from_source or not any(point.rows for point in before)
        )
        digits = range_decimals(interval.low, interval.high) - 2
        shown, low, high = (format_fixed(100 * x, digits, "+") for x in (size, interval.low, interval.high))
        message = (
            f"The share of positives has changed since {since!r}, by about {shown} percentage points (95% "
            f"interval {low} to {high})."
        )
        return Alarm("change", self._in_series(message), since, size, interval)

    def to_state(self) -> dict[str, Any]:
        """Return everything that changes over time, as values for JSON."""
        return {
            "points": self.points.to_state(),
            "rules": self._rules_to_state(),
            "previous": self.previous,
        }

    @classmethod
    def from_state(cls, name: str, settings: RuleSettings, model: MonitorModel, state: Any) -> Series:
        """Build the series from what `to_state` returned; the values are checked."""
        fields = Fields(state, "points rules previous", f"series {name!r}")
        try:
            stored = state["rules"]["levels"]
            bounds = {side: _bound(stored[side]["bound"], direction) for side, direction, _ in settings.sides}
            series = cls.new(name, settings, model, bounds)
            series.points.set_state(state["points"])
            series.previous = state["previous"]
            for rules in (state["previous"], state["rules"]):
                if rules is not None:
                    series.set_rules(rules)
                    if not set(series.change.starts.batch.tolist()) <= set(range(len(series.points))):
                        raise ValueError
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise fields.refused("its points or rules are damaged") from None
        return series

    def _rules_to_state(self) -> dict[str, Any]:
        """Return the state of all rules as plain values."""
        starts, grids = self.change.starts, self.model.reference
        return {
            "levels": {
                side: {
                    "log_wealth": _finite(rule.log_wealth),
                    "batches": rule.batches,
                    "bound": rule.bound if rule.can_alarm else None,
                }
                for side, rule in self.levels.items()
            },
            "change": {
                "edges": _unless_equal(self.change.edges, grids.score_edges),
                "pool": _whole(self.change.pool),
                "origin": self.change.origin,
                "shape": None if self.change.shape is None else self.change.shape.tolist(),
                "batch": starts.batch.tolist(),
                "before": starts.before.tolist(),
                "counts": _whole(starts.counts),
                "log_wealth": starts.log_wealth.tolist(),
            },
            "assumption": {
                "edges": _unless_equal(self.assumption.edges, grids.feature_edges),
                "pool": _whole(self.assumption.pool),
                "log_wealth": _finite(self.assumption.log_wealth),
                "recent": self.assumption.recent.tolist(),
            },
            "reference_batches": self.reference_batches,
            "broken_since": self.broken_since,
            "broken_in": self.broken_in,
            "trusted": None if self.trusted is None else {"origin": self.trusted[0], "pool": _whole(self.trusted[1])},
        }

    def set_rules(self, state: dict[str, Any]) -> None:
        """Set the state of all rules to what `_rules_to_state` returned; raise an error if it is damaged."""
        for side, rule in self.levels.items():
            rule.log_wealth = _infinite(state["levels"][side]["log_wealth"]).reshape(rule.log_wealth.shape)
            rule.batches = _count(state["levels"][side]["batches"])
        stored, grids = state["change"], self.model.reference
        shape = None if stored["shape"] is None else np.array(stored["shape"], dtype=float).reshape(SHAPE_BINS)
        edges = grids.score_edges if stored["edges"] is None else np.array(stored["edges"], dtype=float)
        edges = edges.reshape(grids.score_edges.shape)
        self.change = ChangeRule(edges, _counts(stored["pool"], self.change.pool.shape), shape)
        self.change.origin = _count(stored["origin"])
        levels, changes = len(self.change.pool), len(self.change.shifts)
        self.change.starts = Starts(
            np.array(stored["batch"], dtype=np.int64),
            np.array(stored["before"], dtype=float),
            np.array(stored["counts"], dtype=float).reshape(-1, levels),
            np.array(stored["log_wealth"], dtype=float).reshape(-1, changes),
        )
        self.change.starts.check(self.change.pool)
        stored = state["assumption"]
        edges = grids.feature_edges if stored["edges"] is None else np.array(stored["edges"], dtype=float)
        self.assumption.edges = edges.reshape(grids.feature_edges.shape)
        self.assumption.pool = _counts(stored["pool"], self.assumption.pool.shape)
        self.assumption.log_wealth = _infinite(stored["log_wealth"]).reshape(self.assumption.log_wealth.shape)
        self.assumption.recent = _counts(stored["recent"], self.assumption.recent.shape)
        counted = sum(rows > 0 for rows in self.points.rows)  # in states of earlier versions, which do not have it
        self.reference_batches = _count(state.get("reference_batches", min(counted, self.settings.reference)))
        self.broken_since = state["broken_since"]
        if self.broken_since is not None:
            self.broken_since.encode()  # raises an error unless it is text that can be written
        broken_in = state.get("broken_in")  # states of earlier versions have neither this nor the next
        self.broken_in = None if broken_in is None else range(len(self.model.feature_names))[_count(broken_in)]
        trusted = state.get("trusted")
        pool = self.change.pool.shape
        self.trusted = None if trusted is None else (_count(trusted["origin"]), _counts(trusted["pool"], pool))


def _of_first_version(message: str) -> str:
    """Return the message of an alarm for a batch that was corrected since."""
    return message if message.startswith(_FIRST_VERSION) else f"{_FIRST_VERSION}{message}"


def _counts(stored: Any, shape: tuple[int, ...]) -> Any:
    """Return stored counts as an array of this shape; raise ValueError if they are damaged."""
    counts = np.array(stored, dtype=float).reshape(shape)
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError
    return counts


def _count(stored: Any) -> int:
    """Return a stored number; raise ValueError unless it is a whole one from 0 on."""
    if not isinstance(stored, int) or not 0 <= stored < 2**53:
        raise ValueError
    return stored


def _shown(logarithms: Mapping[str, float]) -> dict[str, float]:
    """Return evidence or limits as points show them."""
    return {rule: round_number(np.exp(min(x, _LARGEST_LOG))) for rule, x in logarithms.items()}


def _whole(counts: Any) -> Any:
    """Return counts as whole numbers for JSON."""
    return np.rint(counts).astype(np.int64).tolist()


def _unless_equal(edges: Any, of_model: Any) -> list[Any] | None:
    """Return edges as a list for JSON; None if they are those of the model."""
    return None if np.array_equal(edges, of_model) else edges.tolist()


def _bound(stored: Any, side: int) -> float:
    """Return the bound of a rule for the level from what the state has of it; None is infinite."""
    return side * np.inf if stored is None else float(stored)


def _finite(log_wealth: Any) -> list[Any]:
    """Return logarithms as a flat list for JSON, which has no infinity: None is a wealth of 0."""
    return [None if not np.isfinite(x) else float(x) for x in np.ravel(log_wealth)]


def _infinite(stored: list[Any]) -> Any:
    """Return logarithms from what `_finite` returned."""
    logarithms = np.array([-np.inf if x is None else x for x in stored], dtype=float)
    if not (logarithms < np.inf).all():
        raise ValueError
    return logarithms
