"""`priorshift sketch`: summarise a sample of any size in a small file, which merges and travels without the rows.

While it works it writes a checkpoint next to the output: the summary of the rows read so far, with the settings and the
files that it belongs to. The same command continues from it; a checkpoint of another command is never overwritten.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorshift.cli.inputs import standard_input
from priorshift.cli.output import check_writable, print_json, print_note
from priorshift.errors import InputError
from priorshift.io.chunks import check_distinct_files
from priorshift.io.files import Fields, is_saved
from priorshift.sketch import Histogram, ScoreModel, Sketch, container, load
from priorshift.sketch.design import open_chunks
from priorshift.sketch.private import check_budget, moments_noise, release

_SECONDS = 30.0  # between two checkpoints
_NAME = "the sample"  # in messages
_SETTINGS = ("features", "bandwidth", "kernel", "standardize", "random_state", "drop")  # fixed by a first sketch

Summary = Sketch | Histogram


def run(args: argparse.Namespace) -> None:
    """Run `priorshift sketch`: write a sketch, a histogram or a score model."""
    check_writable("--output", args.output, [*args.files, args.like, args.positive, args.unlabeled])
    if (args.epsilon is None) != (args.delta is None):
        raise InputError("--epsilon and --delta belong together; pass both, or none.")
    if args.epsilon is not None:
        check_budget(args.epsilon, args.delta)
    if args.positive or args.unlabeled:
        _fit_model(args)
        return
    if not args.files:
        raise InputError("name the files of a sample, or pass --positive and --unlabeled to fit a score model.")
    check_writable("--output", f"{args.output}.part", [*args.files, args.like])
    saved = [file for file in args.files if is_saved(file)]
    if saved and len(saved) < len(args.files):
        raise InputError(f"{saved[0]} is a sketch and other files are tables; pass sketches only, or tables only.")
    summary = _merge(args) if saved else _summarize(args)
    print_note(f"{summary}, written to {args.output}.")
    if isinstance(summary, Histogram):
        print_json({"kind": "histogram", "rows": len(summary), "model": summary.model, "path": args.output})
        return
    reader, features = summary.design.reader, summary.design.features
    columns = reader.width if reader.columns is None else list(reader.columns)
    print_json({
        "kind": "sketch", "rows": len(summary), "columns": columns, "features": features.size,
        "kernel": features.kernel.name, "bandwidth": features.bandwidth, "path": args.output,
    })  # fmt: skip


def _fit_model(args: argparse.Namespace) -> None:
    """Fit a score model to the source and save it."""
    if not (args.positive and args.unlabeled) or args.files:
        raise InputError("a score model is fitted to --positive and --unlabeled; pass both, and no other file.")
    unsuitable = ("like", "weight_column", "epsilon", "features", "kernel", "bandwidth")
    _refuse(args, unsuitable, "does not apply to a score model")
    settings = _passed_options(args, ("drop", "standardize", "random_state"))
    model = ScoreModel.fit(args.positive, args.unlabeled, **settings)
    model.save(args.output)
    print_note(f"{model}, written to {args.output}.")
    print_json({"kind": "score model", "model": model.fingerprint, "path": args.output})


def _passed_options(args: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of those of the named options that were passed, by name; others are None or an empty list."""
    values = {name: getattr(args, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, [])}


def _refuse(args: argparse.Namespace, names: Sequence[str], reason: str) -> None:
    """Raise InputError if one of the named options was passed, with the reason why it does not apply."""
    for name in _passed_options(args, names):
        option = "no-standardize" if name == "standardize" else name.replace("_", "-")
        raise InputError(f"--{option} {reason}; remove it.")


def _merge(args: argparse.Namespace) -> Summary:
    """Merge the sketches, or histograms, of parts of a sample, and save the result."""
    _refuse(args, _SETTINGS, "is a setting of the first sketch, but merged sketches have their own")
    _refuse(args, ("like", "weight_column"), "does not apply when sketches are merged")
    check_distinct_files(args.files, _NAME)
    parts: list[Any] = [load(file) for file in args.files]
    for file, part in zip(args.files, parts, strict=True):
        if isinstance(part, ScoreModel):
            raise InputError(f"{file} is a score model, but a sketch is expected; pass it as --like, with tables.")
    merged, *others = parts
    for part in others:
        merged = merged.merge(part)
    return _save(merged, args)


def _summarize(args: argparse.Namespace) -> Summary:
    """Summarise tables as a sketch, or as a histogram by a score model, from the last checkpoint on, and save it."""
    like = _load_like(args)
    _check_release(args, like)
    drop, fingerprint = tuple(args.drop), None
    if like is not None:
        design = like.design if isinstance(like, Sketch) else like
        drop, fingerprint = design.reader.drop, design.fingerprint
    if args.weight_column in args.drop:
        raise InputError(f"--weight-column and --drop name the same column, {args.weight_column!r}; remove one.")
    files: Any = args.files
    if "-" in files:
        if len(files) > 1:
            raise InputError("standard input (-) cannot be combined with other files; pass it alone, or pass files.")
        files = standard_input("FILE")
    chunks = open_chunks(files, drop, args.weight_column, _NAME)
    settings = {name: getattr(args, name) for name in (*_SETTINGS, "weight_column")} | {"like": fingerprint}
    from_contents: Any = Histogram.from_contents if isinstance(like, ScoreModel) else Sketch.from_contents
    # with size and time of modification, so that a changed file is noticed
    file_states = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in chunks.files]
    checkpoint = Checkpoint(f"{args.output}.part", file_states, settings, from_contents)
    start: Any = checkpoint.load()
    summaries: Iterator[Summary]  # of the rows read so far, after each chunk
    if isinstance(like, ScoreModel):
        summaries = Histogram.checkpoints(chunks, model=like, resume=start)
    else:
        options = _passed_options(args, _SETTINGS)
        summaries = Sketch.checkpoints(chunks, like=like, weights=args.weight_column, resume=start, **options)
    summary = _save(checkpoint.finish(summaries, start), args)
    Path(checkpoint.path).unlink(missing_ok=True)
    return summary


def _load_like(args: argparse.Namespace) -> Sketch | ScoreModel | None:
    """Load the sketch or the score model of --like, and check that other options go with it; None without it."""
    if args.like is None:
        return None
    like = load(args.like)
    _refuse(args, _SETTINGS, "is a setting of the first sketch, but --like has its own")
    if isinstance(like, Histogram):
        raise InputError(f"--like {args.like} is a histogram, but a score model is expected; pass the model.")
    if isinstance(like, ScoreModel):
        _refuse(args, ("weight_column",), "does not apply with a score model, which counts rows")
    return like


def _check_release(args: argparse.Namespace, like: Sketch | ScoreModel | None) -> None:
    """Raise InputError, before any row is read, if the summary could not be released with noise."""
    if args.epsilon is None or isinstance(like, ScoreModel):
        return
    if like is None:
        raise InputError(
            "--epsilon needs --like: the rows of a first sketch fix its columns and scale, which no noise hides. Pass "
            "--like with a score model or a sketch of other rows."
        )
    _refuse(args, ("weight_column",), "does not apply with --epsilon, since noise does not hide rows with weights")
    moments_noise(like.design.features.size, args.epsilon, args.delta)


def _save(summary: Summary, args: argparse.Namespace) -> Summary:
    """Save a summary and return it; with --epsilon, its private release in place of the summary itself."""
    if args.epsilon is not None:
        summary = release(summary, args.epsilon, args.delta)
    summary.save(args.output)
    return summary


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint file, with the input files and settings of the command that it belongs to."""

    path: str  # of the checkpoint
    files: list[list[Any]]  # path, size and modification time of each; empty for a pipe, which cannot be read again
    settings: dict[str, Any]  # None where an option was not given
    from_contents: Callable[[dict[str, Any], dict[str, Any]], Summary]  # restores a summary from header and arrays

    def load(self) -> Summary | None:
        """Return the summary of the rows read so far, or None if there is no checkpoint."""
        if not os.path.lexists(self.path):
            return None
        try:
            saved = container.read(self.path, [container.CHECKPOINT])
        except InputError as error:
            raise InputError(
                f"{str(error).split(';')[0]}; the checkpoint is written there: move the file, or name another --output."
            ) from None
        fields = Fields(saved.header, "files settings summary", f"checkpoint {self.path}")
        if difference := self._difference(fields.source):
            raise InputError(
                f"{self.path} is the checkpoint of another command ({difference}); run that command to continue it, or "
                "delete the file to start again."
            )
        summary = self.from_contents(fields.source["summary"], saved.arrays)
        print_note(f"continuing after {len(summary):,} rows, from {self.path}.")
        return summary

    def finish(self, summaries: Iterator[Summary], start: Summary | None) -> Summary:
        """Exhaust an iterator of the summaries of the rows read so far, and return the last one, of all rows.

        A checkpoint is saved every 30 seconds and on Ctrl-C, unless the rows come from a pipe, which has no files.
        `start` is the summary that the iterator continues, or None.
        """
        summary, saved_at = start, time.monotonic()
        try:
            for summary in summaries:
                if self.files and time.monotonic() - saved_at >= _SECONDS:
                    self._save(summary)
                    saved_at = time.monotonic()
        except KeyboardInterrupt:
            if summary is None or not self.files:
                raise
            self._save(summary)
            raise KeyboardInterrupt(
                f"interrupted after {len(summary):,} rows, saved in {self.path}; run the same command to continue."
            ) from None
        if summary is None:
            raise InputError("there are no rows; pass files with rows.")
        return summary

    def _save(self, summary: Summary) -> None:
        """Write a checkpoint with the summary so far, for this user alone: noise is added at the end only."""
        header, arrays = summary.to_contents()
        content = {"files": self.files, "settings": self.settings, "summary": header}
        container.write(self.path, container.CHECKPOINT, content, arrays, private=True)

    def _difference(self, header: dict[str, Any]) -> str | None:
        """Return how the files or settings in the header of a stored checkpoint differ from these; None if equal."""
        stored_files, stored_settings = header["files"], header["settings"]
        if stored_files != self.files:
            return "other files, or files that have changed since"
        if not isinstance(stored_settings, dict) or stored_settings.keys() != self.settings.keys():
            return "another version"
        for option, value in self.settings.items():
            stored = stored_settings[option]
            if stored != value:
                return f"--{option.replace('_', '-')} was {'not given' if stored in (None, []) else stored}"
        return None
