"""Load a :class:`~priorshift.problem.Problem` from arrays, data frames, files, sketches, histograms or streams.

Arrays, data frames and files become rows, encoded as numbers. Sketches, histograms and files of them stay as they are.
Very large files, lists of files, folders, iterators of tables and Dask collections are streamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import IOBase
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.io.cells import as_text
from priorshift.io.chunks import Chunks
from priorshift.io.column_checks import encode_tables
from priorshift.io.files import PARQUET, is_saved, kind
from priorshift.io.labels import read_labels
from priorshift.io.parameters import check_estimator
from priorshift.io.readers import frame_library, is_distributed, read_table
from priorshift.io.row_metadata import Columns, MetadataColumns
from priorshift.io.sample_size import check_sizes
from priorshift.io.tables import NO_RULES, CellRules, ColumnSelection, Table
from priorshift.io.targets import name_targets, rows_by_value
from priorshift.problem import Problem, Sample
from priorshift.sketch.container import load
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Sketch

_SHELL_OPTIONS = {
    "shared": "--id-column (or --identical-rows)", "audit": "--audit-column", "groups": "--group-column",
    "stratify": "--stratify", "by": "--by", "encoder": "--encoder none", "missing": "--missing",
    "kinds": "--category, --day-first or --month-first",
}  # fmt: skip
LARGE = 2**30  # files of at least this many bytes, on disk or as numbers in memory, are streamed


@dataclass(frozen=True, eq=False)
class InputOptions:
    """How the samples of a problem are read."""

    columns: MetadataColumns = field(default_factory=MetadataColumns)  # ids, audit, weights and groups
    drop: tuple[str, ...] = ()  # columns that are not used
    encoder: Any = "auto"  # transformer of columns that are not numbers; None refuses them
    stream: bool | None = None  # None streams what is too large for memory
    rules: CellRules = NO_RULES  # values that mean "no value", and the kinds of some columns
    sheet: str | Mapping[str, str] | None = None  # sheet of all workbooks, or of each role's
    by: str | None = None  # column that says which target a row belongs to
    stratify: str | None = None  # column of strata, which are estimated one by one
    in_shell: bool = False  # whether messages name parameters as the shell does
    prefix: str = ""  # put before the names of samples in messages, "--" in the shell

    @classmethod
    def from_arguments(
        cls,
        *,
        shared: str | None = None,
        audit: Columns = None,
        weights: Columns = None,
        groups: Columns = None,
        drop: Sequence[str] = (),
        missing: Any = (),
        columns: Any = None,
        **others: Any,
    ) -> InputOptions:
        """Build and check the options from the arguments that all entry points share.

        `others` are the fields encoder, stream, sheet, by, stratify and in_shell.
        """
        metadata = MetadataColumns(shared, audit, weights, groups)
        dropped = (drop,) if isinstance(drop, str) else tuple(drop)
        prefix = "--" if others.get("in_shell") else ""
        options = cls(metadata, dropped, prefix=prefix, rules=CellRules.from_arguments(missing, columns), **others)
        if options.stream is not None and not isinstance(options.stream, bool):
            raise InputError(f"stream is {options.stream!r}, but it must be True, False or None.")
        for name, column in (("by", options.by), ("stratify", options.stratify)):
            if column is not None and not isinstance(column, str):
                raise InputError(f"{name} is {type(column).__name__}, but it must be the name of a column.")
        encoder = options.encoder
        if isinstance(encoder, str) and encoder != "auto":
            raise InputError(f"encoder is {encoder!r}, but it must be 'auto', None or a transformer.")
        if encoder is not None and not isinstance(encoder, str):
            check_estimator("encoder", encoder, ("transform",), "'auto', None or a transformer")
        options.columns.check(options.drop, by=options.by, stratify=options.stratify)
        return options

    def complete(self, selection: ColumnSelection, role: str) -> ColumnSelection:
        """Return a selection of columns with the rules about cells and the sheet of a role, such as "target"."""
        sheet = self.sheet.get(role) if isinstance(self.sheet, Mapping) else self.sheet
        return replace(selection, rules=self.rules, sheet=sheet)

    def check_streamed(self) -> None:
        """Refuse options that need all rows in memory, when samples are streamed, sketches or histograms."""
        no_stream = "--no-stream" if self.in_shell else "stream=False"
        unsupported = [name for name in ("shared", "audit", "groups") if getattr(self.columns, name) is not None]
        unsupported += [name for name in ("stratify", "by") if getattr(self, name) is not None]
        unsupported += [name for name in ("missing", "kinds") if getattr(self.rules, name)]
        if self.encoder != "auto":
            unsupported.append("encoder")
        if unsupported:
            option = _SHELL_OPTIONS[unsupported[0]] if self.in_shell else unsupported[0].replace("kinds", "columns")
            raise InputError(
                f"{option} is not supported when streaming, or with sketches and histograms. Remove it, or pass tables "
                f"that fit into memory, with {no_stream}."
            )


@dataclass(frozen=True, eq=False)
class LabeledTable:
    """Table of positives and unlabelled rows, with a column that distinguishes them."""

    data: Any  # data frame, array or path
    label_column: str
    positive_label: str | None = (
        None  # value of the column in positives; None if its values are 1 and 0, or true and false
    )


def load_problem(
    *,
    positive: Any = None,
    unlabeled: Any = None,
    target: Any,
    source: LabeledTable | None = None,
    several: bool = False,
    options: InputOptions,
) -> Problem:
    """Load a problem from two source samples, or from one labelled table `source`, and one target or several.

    A sample is rows (an array, data frame, path or stream), a sketch, a histogram, or the path of either. With
    `several`, `target` holds several tables, or a table that `options.by` or `options.stratify` splits.
    """
    frame = frame_library(target, unlabeled, positive)
    if several:
        _check_several(target, options)
    elif source is None:
        samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
        opened = {role: _open(data, options.prefix + role) for role, data in samples.items()}
        streams = options.stream
        if streams is None:
            streams = options.encoder is not None and any(needs_streaming(data) for data in samples.values())
        if streams or any(sample.kind in ("counts", "moments") for sample in opened.values()):
            options.check_streamed()
            targets = {"": opened["target"]}
            return Problem(opened["positive"], opened["unlabeled"], targets, options.columns, options.drop, frame=frame)
    P, U, tables = _read_tables(positive, unlabeled, target, source, several, options)
    P, U, encoded = encode_tables(P, U, list(tables.values()), options.drop, options.encoder, options.rules.kinds)
    tables = dict(zip(tables, encoded, strict=True))
    metadata = options.columns.read(P, U, tables)
    targets = {name: Sample(table, metadata=metadata[f"target {name}"]) for name, table in tables.items()}
    if options.by is not None:  # split the only table
        [whole] = targets.values()
        rows_of_target = rows_by_value(whole.data, options.by)
        targets = {name: whole.take(rows, f"target {name!r}") for name, rows in rows_of_target.items()}
    check_sizes(**{table.name: len(table) for table in (P, U, *(sample.data for sample in targets.values()))})
    source_P, source_U = Sample(P, metadata=metadata["positive"]), Sample(U, metadata=metadata["unlabeled"])
    by = options.by or options.stratify
    return Problem(source_P, source_U, targets, options.columns, options.drop, by, frame)


def _open(data: Any, name: str) -> Sample:
    """Return a sketch or histogram, or a file of one, as a sample; anything else is a sample of rows not read yet."""
    # a text that cannot be a path is refused where rows are read
    if isinstance(data, (str, Path)) and len(str(data)) < 4096 and "\0" not in str(data) and not os.path.exists(data):
        raise InputError(f"{name} ({data}) does not exist; check the path.")
    opened = load(data) if is_saved(data) else data
    if isinstance(opened, ScoreModel):
        raise InputError(f"{name} is a score model, but a sample is expected; count one by it, and pass its histogram.")
    if isinstance(opened, Histogram):
        return Sample(opened, "counts")
    return Sample(opened, "moments" if isinstance(opened, Sketch) else "chunks")


def needs_streaming(data: Any) -> bool:
    """Return whether a sample must be read in chunks: a stream, several files, or a file too large for memory."""
    if is_distributed(data):
        return True
    if isinstance(data, (Chunks, Iterator)):
        return not isinstance(data, IOBase)  # an open file is refused where rows are read
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(item, (str, Path)) for item in data)
    try:
        path = Path(data) if isinstance(data, (str, Path)) else None
        if path is None or not path.exists():
            return False
        if path.is_dir():
            return any(kind(file) == PARQUET for file in path.iterdir())
        return path.stat().st_size >= LARGE or (kind(path) == PARQUET and _decoded_size(path) >= LARGE)
    except (OSError, ValueError):
        return False


def _decoded_size(path: Path) -> int:
    """Return the bytes that a Parquet file's cells take as floats; 0 if the file cannot be read."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata
    except ImportError:
        return 0
    try:
        metadata = read_metadata(path)
    except (ArrowException, OSError):  # reported when the file is read
        return 0
    return int(8 * metadata.num_rows * metadata.num_columns)


def _check_several(targets: Any, options: InputOptions) -> None:
    """Refuse options that cannot be combined with several targets or, if `stratify` is set, with strata."""
    columns, holds_several = options.columns, isinstance(targets, (Mapping, list, tuple))
    if options.stratify is None:
        if options.by is not None and holds_several:
            raise InputError(
                f"by={options.by!r} names a column of one table, but targets holds {len(targets)}; pass one table, or "
                "leave by out."
            )
        for name in ("audit", "weights", "groups"):
            stated = getattr(columns, name)
            if isinstance(stated, Mapping) and "target" in stated:
                raise InputError(
                    f"{name} holds values of 'target', but there are several; put them in a column of the targets and "
                    "pass its name."
                )
        return
    if options.by is not None:
        raise InputError("by and stratify cannot be combined; estimate the targets one by one, each with stratify.")
    if columns.audit is not None:
        raise InputError("audit and stratify cannot be combined; estimate the strata one by one.")
    for name in ("weights", "groups"):
        if isinstance(getattr(columns, name), Mapping):
            raise InputError(
                f"{name} is a mapping, but with stratify it must be the name of a column; put it into the tables."
            )
    if holds_several:
        raise InputError(
            f"stratify={options.stratify!r} is for one target, but targets holds {len(targets)}; pass one table."
        )


def _read_tables(
    positive: Any, unlabeled: Any, target: Any, source: LabeledTable | None, several: bool, options: InputOptions
) -> tuple[Table, Table, dict[str, Table]]:
    """Read the positives, the unlabelled rows and the targets by name; the arguments are those of `load_problem`.

    A single target, also one that `by` or `stratify` splits later, has an empty name.
    """
    columns, prefix, by, stratify = options.columns, options.prefix, options.by, options.stratify
    strata = [] if stratify is None else [stratify]
    source_drop = target_drop = options.drop
    if by is not None:
        source_drop = (*source_drop, by)  # a column of the target, which the source may have too
    if source is None:
        selection = columns.selection(source_drop, strata)
        P = read_table(positive, f"{prefix}positive", options.complete(selection, "positive"))
        U = read_table(unlabeled, f"{prefix}unlabeled", options.complete(selection, "unlabeled"))
    else:
        selection = columns.selection(source_drop, [*strata, source.label_column])
        table = read_table(source.data, f"{prefix}source", options.complete(selection, "source"))
        P, U = _split_labeled(table, source, "--positive-label" if options.in_shell else "positive_label")
        target_drop = (*target_drop, source.label_column)
    selection = columns.selection(target_drop, strata if by is None else [by, *strata], is_target=True)
    selection = options.complete(selection, "target")
    if several and by is None and stratify is None:
        named = name_targets(target, in_shell=options.in_shell)
        return P, U, {name: read_table(table, f"target {name!r}", selection) for name, table in named.items()}
    return P, U, {"": read_table(target, f"{prefix}target", selection)}


def _split_labeled(table: Table, source: LabeledTable, parameter: str) -> tuple[Table, Table]:
    """Split the table of a labelled source by its label column into positives and unlabelled rows.

    Messages call the value of positives by the name `parameter`.
    """
    labels, positive_label = table.extra[source.label_column], source.positive_label
    if positive_label is not None:
        labels = np.array([_comparable_text(label) for label in labels.tolist()])
        positive_label = _comparable_text(positive_label)
    elif labels.dtype.kind in "OUT":  # text: true and false, or numbers; `read_labels` refuses anything else
        lower_case = np.char.lower(labels.astype(str))
        if set(lower_case) <= {"true", "false"}:
            labels = lower_case == "true"
        else:
            with suppress(ValueError):
                labels = lower_case.astype(float)
    name = f"column {source.label_column!r} of {table.name}"
    labeled, _ = read_labels(labels, len(labels), name, positive_label=positive_label, parameter=parameter)
    return table.take(labeled, f"positive ({table.name})"), table.take(~labeled, f"unlabeled ({table.name})")


def _comparable_text(label: Any) -> str:
    """Return a label as text that can be compared with a shell argument: 1, 1.0 and "1" give the same text."""
    text = as_text(label)
    with suppress(ValueError):
        return f"{float(text):.17g}"
    return text
