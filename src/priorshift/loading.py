"""Load a :class:`~priorshift.problem.Problem` from arrays, data frames, files, sketches, histograms or streams.

Arrays, data frames and files become rows, encoded as numbers. Sketches, histograms and files of them stay as they are.
Very large files, lists of files, folders, iterators of tables and Dask collections are streamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import IOBase
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.class_source import name_classes
from priorshift.errors import InputError
from priorshift.io.cells import as_number, as_text, is_missing_word
from priorshift.io.chunks import Chunks
from priorshift.io.column_checks import encode_tables
from priorshift.io.files import PARQUET, file_mode, is_saved, kind
from priorshift.io.labels import read_class_labels, read_labels
from priorshift.io.parameters import check_estimator
from priorshift.io.readers import frame_library, is_distributed, read_table
from priorshift.io.row_metadata import NO_METADATA, Columns, MetadataColumns
from priorshift.io.sample_size import check_sizes
from priorshift.io.tables import NO_RULES, CellRules, ColumnSelection, Table
from priorshift.io.targets import name_targets, rows_by_value, target_name
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
_MOST_CLASSES = 50  # a column of labels with more values is taken for a wrong column
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

    def complete(self, selection: ColumnSelection, role: str, class_name: str = "") -> ColumnSelection:
        """Return a selection of columns with the rules about cells and the sheet of a role, such as "target".

        A sheet can also be stated for a class, by its name.
        """
        sheet = self.sheet
        if isinstance(sheet, Mapping):
            sheet = sheet.get(class_name or role, sheet.get(role))
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
    """Table of labelled and unlabelled rows, with a column that distinguishes them."""

    data: Any  # data frame, array or path
    label_column: str
    # value of the column in positives; None if its values are 1 and 0, or true and false, or the names of classes
    positive_label: str | None = None
    unlabeled_label: str | None = None  # value in unlabelled rows, besides empty cells; then the others are classes
    takes_classes: bool = False  # whether a column with more than two values has the names of classes


def load_problem(
    *,
    positive: Any = None,
    unlabeled: Any = None,
    target: Any,
    source: LabeledTable | None = None,
    several: bool = False,
    rest: bool = True,
    options: InputOptions,
) -> Problem:
    """Load a problem from two source samples, or from one labelled table `source`, and one target or several.

    A sample is rows (an array, data frame, path or stream), a sketch, a histogram, or the path of either. `positive`
    may be a mapping from the names of classes to samples. With `several`, `target` holds several tables, or a table
    that `options.by` or `options.stratify` splits. If not `rest`, every class is labelled, and `unlabeled` is None.
    """
    classes = name_classes(positive) if isinstance(positive, Mapping) else {"": positive}
    frame = frame_library(target, unlabeled, *classes.values())
    if several:
        _check_several(target, options)
    if len(classes) > 1:
        _check_unlabeled(unlabeled, rest, options)
    if source is None and not (several and len(classes) == 1):
        problem = _load_summaries(classes, unlabeled, target, several, rest, options)
        if problem is not None:
            return replace(problem, frame=frame)
    read, unlabeled_table, tables = _read_tables(classes, unlabeled, target, source, several, rest, options)
    if len(read) > 1:
        _refuse_for_classes(options)
    labeled_tables, U, encoded = encode_tables(
        list(read.values()), unlabeled_table, list(tables.values()), options.drop, options.encoder, options.rules.kinds
    )
    by_class = dict(zip(read, labeled_tables, strict=True))
    tables = dict(zip(tables, encoded, strict=True))
    metadata = options.columns.read(by_class, None if unlabeled_table is None else U, tables)
    targets = {name: Sample(table, metadata=metadata[f"target {name}"]) for name, table in tables.items()}
    if options.by is not None:  # split the only table
        [whole] = targets.values()
        rows_of_target = rows_by_value(whole.data, options.by)
        targets = {name: whole.take(rows, f"target {name!r}") for name, rows in rows_of_target.items()}
    source_tables = labeled_tables if unlabeled_table is None else [*labeled_tables, U]
    checked = (*source_tables, *(sample.data for sample in targets.values()))
    check_sizes(**{table.name: len(table) for table in checked})
    labeled = {name: Sample(table, metadata=metadata[f"positive {name}"]) for name, table in by_class.items()}
    source_U = Sample(U, metadata=metadata.get("unlabeled", NO_METADATA))
    by, has_rest = options.by or options.stratify, unlabeled_table is not None
    return Problem(labeled, source_U, targets, options.columns, options.drop, by, frame, has_rest)


def _load_summaries(
    classes: Mapping[str, Any], unlabeled: Any, target: Any, several: bool, rest: bool, options: InputOptions
) -> Problem | None:
    """Load a problem of streams, sketches and histograms; return None if all rows are to be read into memory.

    The arguments are those of `load_problem`.
    """
    source = {_class_in_messages(name, options): sample for name, sample in classes.items()}
    if rest:
        source[f"{options.prefix}unlabeled"] = unlabeled
    is_split = options.by is not None or options.stratify is not None
    named = name_targets(target, in_shell=options.in_shell) if several and not is_split else {"": target}
    targets = {f"target {name!r}" if name else f"{options.prefix}target": sample for name, sample in named.items()}
    opened = {name: _open(sample, name) for name, sample in (source | targets).items()}
    streams = options.stream
    if streams is None:  # several targets are read into memory, however large they are
        large = source if several else source | targets
        streams = options.encoder is not None and any(needs_streaming(sample) for sample in large.values())
    if not streams and all(sample.kind == "chunks" for sample in opened.values()):
        return None
    if len(classes) > 1:
        _check_summaries_of_classes(opened, several)
    options.check_streamed()
    labeled = {name: opened[_class_in_messages(name, options)] for name in classes}
    base = opened[f"{options.prefix}unlabeled"] if rest else Sample(None)
    by_name = dict(zip(named, (opened[name] for name in targets), strict=True))
    return Problem(labeled, base, by_name, options.columns, options.drop, rest=rest)


def _check_summaries_of_classes(samples: Mapping[str, Sample], several: bool) -> None:
    """Refuse streams of several classes with several targets, and histograms; the keys are names in messages."""
    kinds = {sample.kind for sample in samples.values()}
    if several and kinds == {"chunks"}:
        name = next(name for name, sample in samples.items() if needs_streaming(sample.data))
        raise InputError(
            f"{name} would be streamed, but several targets of several classes need all rows in memory, or sketches of "
            "all samples; pass tables that fit there, or estimate the targets one by one."
        )
    for name, sample in samples.items():
        if sample.kind == "counts":
            raise InputError(
                f"{name} is a histogram, which counts the score of one class. For several classes pass sketches, files "
                "or tables."
            )


def _class_in_messages(name: str, options: InputOptions) -> str:
    """Return how messages call the sample of a labelled class; positives without a class name have an empty name."""
    return f"class {name!r}" if name else f"{options.prefix}positive"


def _open(data: Any, name: str) -> Sample:
    """Return a sketch or histogram, or a file of one, as a sample; anything else is a sample of rows not read yet."""
    # a text that cannot be a path is refused where rows are read
    if isinstance(data, (str, Path)) and len(str(data)) < 4096 and "\0" not in str(data):
        file_mode(data, f"{name} ({data})")
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


def _check_unlabeled(unlabeled: Any, rest: bool, options: InputOptions) -> None:
    """Refuse an unlabelled sample that contradicts `rest`, with several labelled classes."""
    if rest and unlabeled is None:
        remedy = "--unlabeled, or --no-rest" if options.in_shell else "a sample, or rest=False"
        raise InputError(f"{options.prefix}unlabeled is missing; pass {remedy} if every class is labelled.")
    if not rest and unlabeled is not None:
        remedy = "remove --unlabeled or --no-rest" if options.in_shell else "pass None, or leave rest out"
        raise InputError(f"unlabelled rows are not used if every class is labelled; {remedy}.")


def _refuse_for_classes(options: InputOptions) -> None:
    """Refuse options that are not supported with several labelled classes."""
    if options.stratify is not None:
        option = _SHELL_OPTIONS["stratify"] if options.in_shell else "stratify"
        raise InputError(f"{option} is not supported with several labelled classes; leave it out.")


def _read_tables(
    classes: Mapping[str, Any],
    unlabeled: Any,
    target: Any,
    source: LabeledTable | None,
    several: bool,
    rest: bool,
    options: InputOptions,
) -> tuple[dict[str, Table], Table | None, dict[str, Table]]:
    """Read the labelled samples by class, the unlabelled rows and the targets by name.

    The arguments are those of `load_problem`. Positives without a class name and a single target, also one that `by`
    or `stratify` splits later, have an empty name. There are no unlabelled rows if not `rest`.
    """
    columns, prefix, by, stratify = options.columns, options.prefix, options.by, options.stratify
    strata = [] if stratify is None else [stratify]
    source_drop = target_drop = options.drop
    if by is not None:
        source_drop = (*source_drop, by)  # a column of the target, which the source may have too
    if source is None:
        selection = columns.selection(source_drop, strata)
        labeled = {}
        for name, data in classes.items():
            shown = _class_in_messages(name, options)
            labeled[name] = read_table(data, shown, options.complete(selection, "positive", name))
        U = read_table(unlabeled, f"{prefix}unlabeled", options.complete(selection, "unlabeled")) if rest else None
    else:
        selection = columns.selection(source_drop, [*strata, source.label_column])
        table = read_table(source.data, f"{prefix}source", options.complete(selection, "source"))
        labeled, U = split_labeled(table, source, rest, "--positive-label" if options.in_shell else "positive_label")
        target_drop = (*target_drop, source.label_column)
    selection = columns.selection(target_drop, strata if by is None else [by, *strata], is_target=True)
    selection = options.complete(selection, "target")
    if several and by is None and stratify is None:
        named = name_targets(target, in_shell=options.in_shell)
        return labeled, U, {name: read_table(table, f"target {name!r}", selection) for name, table in named.items()}
    return labeled, U, {"": read_table(target, f"{prefix}target", selection)}


def split_labeled(
    table: Table, source: LabeledTable, rest: bool, parameter: str
) -> tuple[dict[str, Table], Table | None]:
    """Split the table of a labelled source by its label column into labelled samples by class, and unlabelled rows.

    Messages call the value of positives by the name `parameter`.
    """
    labels, positive_label = table.extra[source.label_column], source.positive_label
    if source.takes_classes and positive_label is None and (not rest or _has_classes(labels, source.unlabeled_label)):
        return _split_classes(table, source, rest)
    if positive_label is None:
        positive_label = _only_label(labels)
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
    positive = table.take(labeled, f"positive ({table.name})")
    return {"": positive}, table.take(~labeled, f"unlabeled ({table.name})")


# labels that do not mean positive, even if they are the only ones
_NOT_POSITIVE = frozenset({"0", "-1", "false", "f", "no", "n", "negative", "unlabeled", "unlabelled", "unknown"})


def _only_label(labels: Any) -> str | None:
    """Return the label of a column in which all other cells are empty; None if there is no such label."""
    texts = {"" if is_missing_word(str(label)) else _comparable_text(label) for label in labels.tolist()}
    is_one = len(texts) == 2 and min(texts) == ""
    return max(texts) if is_one and max(texts).lower() not in _NOT_POSITIVE else None


def _has_classes(labels: Any, unlabeled_label: str | None) -> bool:
    """Return whether a column of labels has the names of classes: more than two values, none of them a fraction."""
    if unlabeled_label is not None:
        return True
    values = {target_name(label) for label in labels.tolist()}
    numbers = [as_number(value) for value in values]
    return 2 < len(values) <= _MOST_CLASSES and all(number is None or number % 1 == 0 for number in numbers)


def _split_classes(table: Table, source: LabeledTable, rest: bool) -> tuple[dict[str, Table], Table | None]:
    """Split the table of a labelled source by its column of class names into a table of each class and the others."""
    name, labels = f"column {source.label_column!r} of {table.name}", table.extra[source.label_column]
    code, names = read_class_labels(labels, len(table), name, unlabeled_label=source.unlabeled_label, rest=rest)
    if len(names) > _MOST_CLASSES:
        raise InputError(f"{name} has {len(names)} classes, but at most {_MOST_CLASSES} are supported; merge some.")
    classes = {names[k]: table.take(code == k, f"class {names[k]!r}") for k in range(len(names))}
    return name_classes(classes), table.take(code < 0, f"unlabeled ({table.name})") if rest else None


def _comparable_text(label: Any) -> str:
    """Return a label as text that can be compared with a shell argument: 1, 1.0 and "1" give the same text."""
    text = as_text(label)
    with suppress(ValueError):
        return f"{float(text):.17g}"
    return text
