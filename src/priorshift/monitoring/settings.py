"""Settings of the rules of a monitor: when it raises an alarm, and how often that may be a false one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.io.files import Fields
from priorshift.io.parameters import is_number
from priorshift.monitoring.rules import SOURCE_SHARE

_LEAST, _LONGEST = 1e-12, 10**18  # probability, and number of batches or seed


@dataclass(frozen=True)
class RuleSettings:
    """When a monitor raises an alarm."""

    low: float | None  # alarm below this share
    high: float | None  # alarm above this share
    alpha: float  # probability of a false alarm of the level rule, ever, over all series
    run_length: float  # average number of batches to a false alarm of each other rule, over all series
    reference: int  # number of batches of the reference period; 0 if the source is the reference
    confidence: float
    seed: int
    series: tuple[str, ...] = ("",)

    @classmethod
    def from_arguments(
        cls,
        level: Any,
        false_alarm: Any,
        run_length: Any,
        reference: Any,
        confidence: Any,
        random_state: Any,
        series: Sequence[str],
    ) -> RuleSettings:
        """Build the settings from the parameters of a monitor, and check them."""
        for name, value, most in (("false_alarm", false_alarm, 0.5), ("confidence", confidence, 1 - _LEAST)):
            if not is_number(value) or not _LEAST <= value <= most:
                raise InputError(f"{name} is {value!r}, but a number between 0 and {round(most, 6):g} is expected.")
        if not is_number(run_length) or not 1 <= run_length <= _LONGEST:
            raise InputError(f"run_length is {run_length!r}, but a number from 1 to {_LONGEST:g} is expected.")
        batches = 0 if isinstance(reference, str) and reference == "source" else reference
        if isinstance(batches, bool) or not isinstance(batches, (int, np.integer)) or not 0 <= batches <= _LONGEST:
            raise InputError(f"reference is {reference!r}, but 'source' or a number of batches is expected.")
        if is_number(random_state) and not (0 <= random_state <= _LONGEST and random_state == int(random_state)):
            raise InputError(f"random_state is {random_state!r}, but a whole number from 0 on is expected.")
        seed = (
            int(random_state) if is_number(random_state) else int(np.random.default_rng(random_state).integers(2**31))
        )
        return cls(
            *_read_level(level), float(false_alarm), float(run_length), int(batches), float(confidence), int(seed),
            tuple(series),
        )  # fmt: skip

    @classmethod
    def from_state(cls, state: Any) -> RuleSettings:
        """Build the settings from those in a state, and check them."""
        keys = "low high alpha run_length reference confidence seed series"
        fields = Fields(state, keys, "the settings of the state")
        return cls(
            low=None if fields.is_none("low") else fields.number("low", 0.0, 1.0),
            high=None if fields.is_none("high") else fields.number("high", 0.0, 1.0),
            alpha=fields.number("alpha", _LEAST, 1 - _LEAST),
            run_length=fields.number("run_length", 1.0, _LONGEST),
            reference=fields.whole("reference"),
            confidence=fields.number("confidence", _LEAST, 1 - _LEAST),
            seed=fields.whole("seed"),
            series=fields.texts("series"),
        )

    @property
    def level(self) -> float | tuple[float, float | None] | None:
        """The parameter `level` of a monitor."""
        return self.high if self.low is None else (self.low, self.high)

    @property
    def sides(self) -> list[tuple[str, int, float]]:
        """Name, direction and level of each limit of the share."""
        stated = (("above", 1, self.high), ("below", -1, self.low))
        return [(name, side, level) for name, side, level in stated if level is not None]

    @property
    def side_alpha(self) -> float:
        """Probability of a false alarm for each side of each series."""
        return self.alpha / (len(self.series) * max(len(self.sides), 1))

    @property
    def limits(self) -> dict[str, float]:
        """Logarithm of the evidence at which each rule raises an alarm.

        The level rule has spent a part of its probability of a false alarm on the errors of the source.
        """
        left = (1 - SOURCE_SHARE) * self.side_alpha
        by_side = {name: float(-np.log(left)) for name, _, _ in self.sides}
        return by_side | dict.fromkeys(("change", "assumption"), float(np.log(self.run_length * len(self.series))))


def _read_level(level: Any) -> tuple[float | None, float | None]:
    """Return the lower and the upper level of the share; None where there is none."""
    low, high = level if isinstance(level, (tuple, list)) and len(level) == 2 else (None, level)
    for value in (low, high):
        if value is not None and (not is_number(value) or not 0 < value < 1):
            raise InputError(f"level is {level!r}, but a share between 0 and 1, or a pair (low, high), is expected.")
    if low is not None and high is not None and low >= high:
        raise InputError(f"level is {level!r}, but the first of the pair must be smaller than the second.")
    return None if low is None else float(low), None if high is None else float(high)
