"""A monitor: the share of positives in one batch after the other, with alarms whose rate of false ones is stated."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.io.column_checks import warn_of_source_columns
from priorshift.io.files import Fields
from priorshift.io.labels import read_labels
from priorshift.io.parameters import check_choice
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import NO_METADATA, RowMetadata
from priorshift.io.tables import ColumnSelection, EmptyTableError, Table
from priorshift.io.targets import escape_name, rows_by_value, target_name
from priorshift.monitoring.batches import Batch
from priorshift.monitoring.model import MonitorModel
from priorshift.monitoring.points import MonitorPoint
from priorshift.monitoring.series import Series
from priorshift.monitoring.settings import RuleSettings
from priorshift.monitoring.state_file import parse_state, read_state, write_state
from priorshift.monitoring.stored_points import StoredPoints
from priorshift.reportable import Reportable
from priorshift.results import Interval
from priorshift.sketch import container
from priorshift.warning_records import warn

_MOST_SERIES = 1000


class Monitor(Reportable, BaseEstimator):
    """Follow the share of positives in batches that arrive over time, with alarms that keep their promise.

    The monitor is fitted to the source once. Each batch then gets an estimate with an interval, and three rules look at
    all batches so far: has the share changed, is it beyond a level, and do the rows still follow label shift?

    Parameters
    ----------
    source_prior : float, (low, high), distribution or None
        Share of positives in the source, as in :class:`WitnessShift`. Default None: estimated.
    level : float, (low, high) or None
        Alarm if the share is above this level; of a pair, if it is below the first or above the second, either of which
        may be None. Default None: no such alarm.
    false_alarm : float
        Probability that the level rule ever raises a false alarm, however long the monitor runs, at most 0.5. Default
        0.05.
    run_length : float
        Average number of batches until a false alarm of the rule for changes, and of that for the assumption. Default
        1000.
    reference : "source" or int
        What the rule for changes compares batches with: the unlabelled source rows (default), or the first so many
        batches, in which case it is silent until then.
    confidence : float
        Confidence level of the intervals. Default 0.95.
    scenario : {"case-control", "censoring"}
        As in :class:`WitnessShift`.
    weights, groups, audit : str or None
        Names of columns of batches that are not features: sample weights, groups of rows that are not independent, and
        true classes of some rows. Groups may also be a column of the source.
    by : str or None
        Name of a column of batches whose values are separate series, such as regions. All series share one budget of
        false alarms.
    series : sequence of str or None
        Names of the series, if there is `by`. Default None: the values of that column in the unlabelled rows.
    drop : sequence of str
        Columns that are not features.
    random_state : int or None
        Seed of the scores and of ties between ranks. Default 0.

    Attributes
    ----------
    model_ : MonitorModel
        What was fitted to the source.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.2, n_target=6000, shared=False, random_state=0)
    >>> monitor = ps.Monitor(source_prior=0.2, run_length=500).fit_samples(s.positive, s.unlabeled)
    >>> for day in range(5):
    ...     point = monitor.update(s.target[1000 * day : 1000 * day + 1000], name=f"day {day}")
    >>> print(point)
    day 4: 23.0% positive, 95% interval 19.1% to 26.9% (1000 rows)
    >>> point.alarms
    ()
    >>> more = ps.simulate.gaussian(source_prior=0.2, target_prior=0.4, n_target=1000, random_state=1)
    >>> print(monitor.update(more.target, name="day 5").alarms[0].rule)
    change
    """

    KIND: ClassVar[str] = "monitor"
    model_: MonitorModel
    _settings: RuleSettings
    _series: dict[str, Series]

    def __init__(
        self,
        source_prior: Any = None,
        *,
        level: Any = None,
        false_alarm: float = 0.05,
        run_length: float = 1000,
        reference: Any = "source",
        confidence: float = 0.95,
        scenario: str = "case-control",
        weights: str | None = None,
        groups: str | None = None,
        audit: str | None = None,
        by: str | None = None,
        series: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        random_state: int | None = 0,
    ) -> None:
        self.source_prior = source_prior
        self.level = level
        self.false_alarm = false_alarm
        self.run_length = run_length
        self.reference = reference
        self.confidence = confidence
        self.scenario = scenario
        self.weights = weights
        self.groups = groups
        self.audit = audit
        self.by = by
        self.series = series
        self.drop = drop
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the monitor to labelled and unlabelled rows of the source.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            Rows of the source.
        y : array-like of shape (rows,)
            1 for labelled positives, 0 for unlabelled rows.
        groups : None or array-like of shape (rows,)
            Groups of rows that are not independent.

        Returns
        -------
        Self
            The fitted monitor, without any batch.
        """
        table = self._read(X, "X")
        labeled = read_labels(y, len(table))[0]
        metadata = self._metadata(table, groups=groups)
        parts = [
            (table.take(rows, name), metadata.take(rows))
            for rows, name in ((labeled, "positive"), (~labeled, "unlabeled"))
        ]
        return self._fit_tables(*parts)

    def fit_samples(self, positive: Any, unlabeled: Any) -> Self:
        """Fit the monitor to labelled positives and unlabelled rows of the source.

        Parameters
        ----------
        positive, unlabeled : array-like, data frame or path
            Samples with the same columns.

        Returns
        -------
        Self
            The fitted monitor, without any batch.
        """
        tables = [self._read(sample, name) for sample, name in ((positive, "positive"), (unlabeled, "unlabeled"))]
        return self._fit_tables(*((table, self._metadata(table)) for table in tables))

    def _fit_tables(self, positive: tuple[Table, RowMetadata], unlabeled: tuple[Table, RowMetadata]) -> Self:
        """Fit the model to tables with their metadata, and start the series."""
        settings = self._read_settings([])
        if self.weights is not None and not settings.reference:
            raise InputError(
                "weighted batches cannot be compared with the rows of the source, which count equally; compare them "
                "with the first batches, such as reference=20."
            )
        for table, metadata in (positive, unlabeled):
            if metadata.weights is not None and np.ptp(metadata.weights) > 0:
                raise InputError(
                    f"{table.name} has weights, but a monitor needs a source whose rows count equally; leave them out."
                )
        P, U = _features_only(positive[0]), _features_only(unlabeled[0])
        self.model_ = MonitorModel.fit(
            P, U, self.source_prior, scenario=self.scenario, groups=(positive[1].groups, unlabeled[1].groups),
            random_state=settings.seed,
        )  # fmt: skip
        warn_of_source_columns([U, P], self.model_.scorer.reader.encoder)
        self.model_.warn_if_contradicted()
        if self.series is not None and self.by is None:
            raise InputError(
                "series names the values of a column, but no column is named; pass by=… (--by), or omit it."
            )
        names = [""]
        if self.by is not None:
            names = self._series_names(unlabeled[0])
        self._settings = self._read_settings(names)
        self._series = {name: Series.new(name, self._settings, self.model_) for name in names}
        return self

    def update(
        self, batch: Any, *, name: Any, time: Any = None, replace: bool = False
    ) -> MonitorPoint | dict[str, MonitorPoint]:
        """Add a batch.

        Parameters
        ----------
        batch : array-like, data frame or path
            Rows with the columns of the source; it may have none.
        name : str
            Name of the batch, such as a date. A name that was used before is ignored if the rows are the same, which
            returns the point with its alarms again, and refused if they are not.
        time : object
            Time of the batch, for charts. Batches count in the order in which they arrive.
        replace : bool
            Whether to replace the batch of this name. For the last batch all is computed again; for an earlier one the
            estimate is replaced, while the evidence of the rules stays.

        Returns
        -------
        MonitorPoint, or dict of str to MonitorPoint
            The point of the batch; with `by`, one for each series.
        """
        self._check_fitted()
        label, when = _as_text(name), None if time is None else _as_text(time)
        if not label:
            raise InputError("the name of a batch is empty; give it a name, such as its date.")
        table = self._read_batch(batch, f"batch {label!r}")
        metadata = NO_METADATA if table is None else self._metadata(table)
        if self.by is None:
            rows = {"": None if table is None else np.arange(len(table))}
        else:
            found = {} if table is None else rows_by_value(table, self.by)
            unknown = [value for value in found if value not in self._series]
            if unknown:
                raise InputError(
                    f"the batch has {unknown[0]!r} in column {self.by!r}, but the series are "
                    f"{', '.join(map(repr, list(self._series)[:5]))}; correct it, or start a new monitor."
                )
            rows = {value: found.get(value) for value in self._series}
        scored: dict[str, Batch | None] = {}
        for series, index in rows.items():
            scored[series] = None
            if table is not None and index is not None and len(index):
                part = _features_only(table.take(index, table.name))
                scored[series] = Batch.read(part, metadata.take(index), self.model_)
        for series, part_scored in scored.items():  # refuse before any series changes
            self._check_repeated(self._series[series], part_scored, label, replace)
        points = {
            series: self._add(self._series[series], part_scored, label, when, replace)
            for series, part_scored in scored.items()
        }
        return points[""] if self.by is None else points

    def _check_repeated(self, series: Series, batch: Batch | None, name: str, replace: bool) -> None:
        """Refuse a batch whose name was used for other rows."""
        stored = series.find(name)
        digest = "" if batch is None else batch.digest
        if stored is None and replace:
            raise InputError(f"there is no batch {name!r} to replace; check its name, or leave out replace=True.")
        if stored is None and digest:
            same = series.points.same_rows(digest)
            if same is not None:
                warn(
                    f"The batch {name!r} has the same rows as {same.name!r}, so they count twice. If it is a copy, "
                    f"replace the batch {name!r} by the right rows.",
                    DuplicateRowsWarning,
                )
        if stored is not None and stored.digest != digest and not replace:
            raise InputError(
                f"a batch {name!r} with {stored.rows} other rows was counted before; give the new one another name, or "
                "replace the old one (replace=True)."
            )
        is_earlier = stored is not None and stored.name != series.points[-1].name
        if batch is not None and not is_earlier:
            series.check_units(batch)

    def _add(self, series: Series, batch: Batch | None, name: str, time: str | None, replace: bool) -> MonitorPoint:
        """Add a batch to a series, or recognise it as a repeated one."""
        number = series.points.number(name)
        if number is not None:
            stored = series.points[number]
            if stored.digest == ("" if batch is None else batch.digest):
                return series.repeat(stored)
            if number < len(series.points) - 1:
                return series.correct(number, batch)
            series.replace_last()
        return series.add_empty(name, time) if batch is None else series.add(batch, name, time)

    @property
    def points(self) -> list[MonitorPoint]:
        """Points of all batches so far, in the order in which they arrived; series one after the other."""
        self._check_fitted()
        return [point for points in self.points_by_series.values() for point in points]

    @property
    def points_by_series(self) -> dict[str, StoredPoints]:
        """Points of the batches so far by the name of their series, which is empty if there is only one."""
        self._check_fitted()
        return {name: series.points for name, series in self._series.items()}

    def difference(self, first: Any, second: Any, series: str = "") -> tuple[float, Interval]:
        """Estimate the difference between the shares of two batches, from what the monitor has stored.

        Parameters
        ----------
        first, second : str
            Names of batches.
        series : str
            Name of the series, if there are several.

        Returns
        -------
        float, Interval
            Share of the second less that of the first, and its 95% interval.
        """
        self._check_fitted()
        if series not in self._series:
            raise InputError(f"there is no series {series!r}; the series are {', '.join(map(repr, self._series))}.")
        found = [self._series[series].find(_as_text(name)) for name in (first, second)]
        for name, point in zip((first, second), found, strict=True):
            if point is None or point.mean is None:
                raise InputError(f"there is no batch {name!r} with rows; check its name.")
        return self._series[series].difference([found[0]], [found[1]])  # type: ignore[list-item]

    @property
    def broken_since(self) -> dict[str, str]:
        """Batch since which label shift fails, by series; without those in which it holds or that was acknowledged."""
        self._check_fitted()
        found = {name: series.broken_since for name, series in self._series.items()}
        return {name: since for name, since in found.items() if since is not None}

    @property
    def alarm_shares(self) -> dict[str, float | None]:
        """Estimate of the share beyond which batches raise an alarm of the level sooner or later, "above" or "below".

        Between the level and this share the errors of the source leave open on which side of the level a share is. It
        is None if they leave that open for every share. The estimate itself has errors of the source as well.

        Examples
        --------
        >>> import priorshift as ps
        >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.2, shared=False, random_state=0)
        >>> monitor = ps.Monitor(source_prior=0.2, level=0.4).fit_samples(s.positive, s.unlabeled)
        >>> print(f"{monitor.alarm_shares['above']:.2f}")
        0.42
        """
        self._check_fitted()
        levels = next(iter(self._series.values())).levels  # of all series, which share one source
        return {side: rule.least_share(self.model_) for side, rule in levels.items()}

    def chart(self, path: str | os.PathLike[str], *, series: str | Sequence[str] | None = None) -> None:
        """Write a picture of the batches so far, as :func:`priorshift.plots.monitor` draws it.

        Parameters
        ----------
        path : str or path
            File to write, which ends in .svg or .png.
        series : str, sequence of str or None
            Series to draw. Default: all, up to 12, those with alarms first.
        """
        from priorshift.plots.batches import BatchesDisplay
        from priorshift.plots.display import write_picture

        self._check_fitted()
        write_picture(BatchesDisplay.from_monitor(self, series), path)

    def acknowledge(self) -> None:
        """Acknowledge that label shift failed, so that later batches no longer carry the alarm."""
        self._check_fitted()
        for series in self._series.values():
            series.acknowledge()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model and the state to one file, which holds no rows. An existing file is replaced.

        Parameters
        ----------
        path : str or path
            Path of the file.
        """
        self._check_fitted()
        header, arrays = self.model_.to_contents()
        columns = {name: getattr(self, name) for name in ("weights", "groups", "audit", "by")}
        contents = {"model": header, "columns": columns | {"drop": list(self.drop)}}
        state = json.dumps(self._to_state(), allow_nan=False, separators=(",", ":")).encode()
        container.write(path, self.KIND, contents, {**arrays, "state": np.frombuffer(state, dtype=np.uint8)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], state: str | os.PathLike[str] | None = None) -> Self:
        """Load a monitor that `save` wrote. Its contents are checked, and nothing in it is executed.

        Parameters
        ----------
        path : str or path
            Path of the file.
        state : str, path or None
            File that `save_state` wrote, whose state replaces that in the first file. Default None.

        Returns
        -------
        Monitor
        """
        contents = container.read(path, (cls.KIND,))
        try:
            fields = Fields(contents.header, "model columns", "the monitor")
            model = MonitorModel.from_contents(contents.header["model"], contents.arrays)
            columns = Fields(contents.header["columns"], "weights groups audit by drop", "the columns")
            monitor = cls(model.prior, drop=columns.texts("drop"), scenario=model.scenario)
            for key in ("weights", "groups", "audit", "by"):
                setattr(monitor, key, None if columns.is_none(key) else columns.text(key))
            monitor.model_ = model
            if state is None:
                monitor._from_state(_parse_state(contents.arrays.get("state"), fields))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if state is not None:
            stored = read_state(state)
            try:
                monitor._from_state(stored)
            except InputError as error:
                raise InputError(f"{state}: {error}") from None
        return monitor

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Save the state alone to a JSON file, without the model. An existing file is replaced.

        Parameters
        ----------
        path : str or path
            Path of the file.
        """
        self._check_fitted()
        write_state(path, self._to_state())

    def _to_state(self) -> dict[str, Any]:
        """Return everything that changes over time, and the settings of the rules, as values for JSON."""
        return {
            "model": self.model_.fingerprint,
            "settings": dataclasses.asdict(self._settings),
            "series": {name: series.to_state() for name, series in self._series.items()},
        }

    def _from_state(self, state: Any) -> None:
        """Set settings and series to what `_to_state` returned; the values are checked."""
        fields = Fields(state, "model settings series", "the state")
        if fields.text("model") != self.model_.fingerprint:
            raise InputError("the state belongs to another model; pass the model that it was started with.")
        self._settings = read = RuleSettings.from_state(state["settings"])
        self.level, self.false_alarm, self.run_length = read.level, read.alpha, read.run_length
        self.confidence = read.confidence
        self.reference, self.random_state = read.reference or "source", read.seed
        self.series = None if read.series == ("",) else read.series
        stored = state["series"]
        if not isinstance(stored, dict) or set(stored) != set(read.series):
            raise fields.refused("its series are not those of its settings")
        self._series = {
            name: Series.from_state(name, self._settings, self.model_, stored[name]) for name in read.series
        }

    def restart(self, **settings: Any) -> Self:
        """Start again without any batch, with other settings of the rules if some are passed.

        Parameters
        ----------
        **settings : object
            Any of `level`, `false_alarm`, `run_length`, `reference`, `confidence`, `series` and `random_state`.

        Returns
        -------
        Self
        """
        self._check_fitted()
        allowed = {"level", "false_alarm", "run_length", "reference", "confidence", "series", "random_state"}
        unknown = sorted(settings.keys() - allowed)
        if unknown:
            raise InputError(f"restart has no setting {unknown[0]!r}; it takes {', '.join(sorted(allowed))}.")
        for name, value in settings.items():
            setattr(self, name, value)
        names = list(self._settings.series) if self.series is None else [target_name(name) for name in self.series]
        self._settings = self._read_settings(names)
        self._series = {name: Series.new(name, self._settings, self.model_) for name in self._settings.series}
        return self

    def _read_settings(self, names: Sequence[str]) -> RuleSettings:
        """Check the settings of the rules, and return them for these series."""
        check_choice("scenario", self.scenario, ("case-control", "censoring"))
        return RuleSettings.from_arguments(
            self.level, self.false_alarm, self.run_length, self.reference, self.confidence, self.random_state, names
        )

    def _series_names(self, unlabeled: Table) -> list[str]:
        """Return the names of the series: as stated, or the values of the column `by` in the unlabelled rows."""
        names = [target_name(name) for name in self.series or ()]
        if self.series is None:
            if self.by not in unlabeled.extra:
                raise InputError(
                    f"the unlabelled rows have no column {self.by!r}, so the series are not known; pass series=[…]."
                )
            names = list(rows_by_value(unlabeled, str(self.by)))
        if not names or len(set(names)) < len(names) or len(names) > _MOST_SERIES:
            raise InputError(f"series has {len(names)} names, but 1 to {_MOST_SERIES} different ones are expected.")
        return names

    def _read(self, data: Any, name: str) -> Table:
        """Read a table, with the columns that are not features."""
        extra = tuple(column for column in (self.weights, self.groups, self.audit, self.by) if column is not None)
        drop = (self.drop,) if isinstance(self.drop, str) else tuple(self.drop)
        table = read_table(data, name, ColumnSelection(optional=extra, drop=drop))
        if len(table) == 0:
            raise EmptyTableError(f"{name} has no rows.")
        return table

    def _read_batch(self, data: Any, name: str) -> Table | None:
        """Read a batch, which needs the columns of weights and of series if there are any; None if it has no rows."""
        try:
            table = self._read(data, name)
        except EmptyTableError as error:
            if error.features:  # a table of something else is not a batch without rows
                self.model_.scorer.reader.in_order(Table(name, np.empty((0, len(error.features))), error.features))
            return None
        for column, use in ((self.weights, "has the weights of rows"), (self.by, "names the series")):
            if column is not None and column not in table.extra:
                raise InputError(f"{name} lacks the column {column!r}, which {use}; add it.")
        return table

    def _metadata(self, table: Table, groups: Any = None) -> RowMetadata:
        """Return the weights, groups and audited classes of the rows of a table."""
        columns = {"weights": self.weights, "groups": self.groups, "audit": self.audit}
        values: dict[str, Any] = {
            key: table.extra[column] for key, column in columns.items() if column is not None and column in table.extra
        }
        if groups is not None:
            values["groups"] = groups
        return RowMetadata.read(len(table), owner=table.name, **values)

    def _check_fitted(self) -> None:
        """Raise InputError unless the monitor is fitted."""
        if not hasattr(self, "model_"):
            raise InputError("the monitor is not fitted; call fit first.")


def _as_text(name: Any) -> str:
    """Return the name or the time of a batch as text."""
    return escape_name(name) if isinstance(name, str) else target_name(name)


def _parse_state(stored: Any, fields: Fields) -> Any:
    """Return the state in the file of a monitor: JSON text as an array of bytes."""
    try:
        return parse_state(stored.astype(np.uint8).tobytes())
    except (AttributeError, ValueError, RecursionError):
        raise fields.refused("its state is missing or no JSON") from None


def _features_only(table: Table) -> Table:
    """Return a table without the columns that are not features."""
    return dataclasses.replace(table, extra={}, dropped=())
